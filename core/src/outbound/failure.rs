//! Why there is no answer, in words.

use std::error::Error as StdError;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use edgewright_script::outbound::{CallFailure, CallFailureKind};
use pingora_error::{Error, ErrorType};

use super::{callee::Callee, endpoints::Endpoint};
use crate::pools::{Fault, Outcome, Pool, Standing};

/// The most characters of a message: what a peer can put into it is bounded.
const MOST_CHARACTERS: usize = 400;

/// What a call is doing, for the message when it fails.
#[derive(Debug, Default)]
pub(super) struct Progress {
    doing: &'static str,
    endpoint: String,
    /// How a pool's endpoint stands, as long as its answer is waited for.
    awaited: Option<Arc<Standing>>,
    /// Since when it is in use.
    since: Option<Instant>,
    /// What it has answered, and after which time.
    answer: Option<(u16, Duration)>,
}

impl Progress {
    pub(super) fn now(&mut self, doing: &'static str) {
        self.doing = doing;
    }

    /// The same with another endpoint, which `doing` stands before.
    pub(super) fn at(&mut self, endpoint: &Endpoint, doing: &'static str) {
        self.doing = doing;
        endpoint.text().clone_into(&mut self.endpoint);
        self.awaited = endpoint.standing().cloned();
        self.since = Some(Instant::now());
        self.answer = None;
    }

    /// The header of the answer is there: what fails from now on is not held against the endpoint.
    pub(super) fn answered(&mut self, status: u16) {
        let waited = self.since.map_or(Duration::ZERO, |since| since.elapsed());
        self.answer = Some((status, waited));
    }

    /// What the endpoint has answered, if anything.
    pub(super) fn status(&self) -> Option<u16> {
        self.answer.map(|(status, _)| status)
    }

    /// How long the endpoint has taken to answer, or has been waited for.
    pub(super) fn latency(&self) -> Option<Duration> {
        let waiting = || self.since.map(|since| since.elapsed());
        self.answer.map(|(_, latency)| latency).or_else(waiting)
    }

    /// The call's own time was over: whose answer was waited for was too slow.
    pub(super) fn give_up(&mut self, pool: &Pool) {
        let Some(standing) = self.awaited.take() else {
            return;
        };
        let outcome = match self.status() {
            Some(status) => Outcome::Answered(status),
            None => Outcome::Failed(Fault::Timeout),
        };
        pool.report_on(&standing, outcome, self.latency());
    }
}

impl fmt::Display for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.doing, self.endpoint)
    }
}

/// A failure that does not name the recipient yet.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) kind: CallFailureKind,
    cause: String,
}

impl Failure {
    pub(super) fn new(kind: CallFailureKind, cause: impl Into<String>) -> Self {
        let cause = cause.into();
        Self { kind, cause }
    }

    /// One line that names the recipient.
    pub(super) fn message(&self, callee: &Callee<'_>) -> String {
        one_line(&format!("{callee}: {}", self.cause))
    }

    pub(super) fn towards(self, callee: &Callee<'_>) -> CallFailure {
        CallFailure {
            kind: self.kind,
            message: self.message(callee),
        }
    }

    /// What an error on a standing connection means.
    pub(super) fn in_use(error: &Error, progress: &Progress) -> Self {
        use CallFailureKind::{Broken, Timeout, TooLarge};
        let broken = |cause: &str| (Broken, cause.to_owned());
        let (kind, cause) = match error.etype() {
            ErrorType::ReadTimedout | ErrorType::WriteTimedout => (
                Timeout,
                "nothing moved for the time that the pool's `timeouts` allow".to_owned(),
            ),
            ErrorType::ConnectionClosed => broken("the connection was closed"),
            // What can't be parsed has the parser's error as its cause; the rest is too large.
            ErrorType::InvalidHTTPHeader if is_too_large(error) => (
                TooLarge,
                "a header of 1 MiB, or of more than 256 fields, is too large".to_owned(),
            ),
            ErrorType::InvalidHTTPHeader => broken("the header is malformed"),
            // Pingora keeps these types to itself.
            ErrorType::Custom("InvalidChunk" | "InvalidTrailerEnd") => {
                broken("the chunks are malformed")
            }
            ErrorType::Custom("PrematureBodyEnd") => broken("the connection was closed"),
            kind => match system_error(error) {
                Some(error) => (Broken, error.to_string()),
                None => broken(kind.as_str()),
            },
        };
        Self::new(kind, format!("{cause} while {progress}"))
    }
}

fn is_too_large(error: &Error) -> bool {
    match &error.cause {
        Some(parser) => parser.to_string() == "too many headers",
        None => {
            let context = error.context.as_ref();
            context.is_some_and(|context| context.as_str().contains("larger than"))
        }
    }
}

/// The system's own error at the end of the chain of causes.
fn system_error(error: &Error) -> Option<&io::Error> {
    let mut cause: &(dyn StdError + 'static) = error.root_cause();
    loop {
        if let Some(found) = cause.downcast_ref::<io::Error>() {
            return Some(found);
        }
        cause = cause.source()?;
    }
}

/// Why a connection could not be made, when it is none of the usual reasons.
pub(super) fn connect_cause(error: &Error) -> String {
    if let Some(error) = system_error(error) {
        return error.to_string();
    }
    match &error.context {
        // Pingora nests texts; the last cause is the one that says it.
        Some(context) => {
            let text = context.as_str();
            text.rsplit("cause: ").next().unwrap_or(text).to_owned()
        }
        None => error.etype().as_str().to_owned(),
    }
}

/// Without control characters (log lines must not be forged) and not longer than the bound.
fn one_line(text: &str) -> String {
    let mut characters = text.chars();
    let mut line: String = characters
        .by_ref()
        .take(MOST_CHARACTERS)
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    if characters.next().is_some() {
        line.push_str("...");
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_one_line_and_bounded() {
        assert_eq!(one_line("a\r\nb\u{1b}[31mc\u{85}d"), "a  b [31mc d");
        let long = one_line(&"é".repeat(5000));
        assert_eq!(long.chars().count(), MOST_CHARACTERS + 3);
        assert!(long.ends_with("é..."));
    }
}
