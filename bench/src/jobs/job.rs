//! The jobs, and who does them how.

use anyhow::Result;
use clap::ValueEnum;
use serde::Serialize;

/// What a hook is there for. Each is written as one would write it, in each of the languages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Job {
    /// Nothing: what it costs that there is a hook.
    Empty,
    /// Refuses a value of a header field.
    HeaderGet,
    /// Gives the upstream a header field.
    HeaderSet,
    /// Chooses the pool by the first segment of the path, one of 16.
    Prefixes,
    /// Refuses API keys that are not in a table of 100.
    Table100,
    /// Refuses API keys that are not in a table of 100,000.
    Table100k,
    /// Adds to a counter that all workers share.
    Counter,
    /// Takes a number out of the path by a pattern, and refuses one.
    Regex,
    /// Compares the HMAC-SHA256 of the path with a header field.
    Hmac,
    /// Verifies a token signed with HS256, its issuer and its end.
    Jwt,
    /// Reads a field of a JSON body of 300 bytes.
    JsonBody,
    /// Adds a thousand numbers.
    Loop,
}

impl Job {
    /// All jobs, in the order of the report.
    pub const ALL: [Self; 12] = [
        Self::Empty,
        Self::HeaderGet,
        Self::HeaderSet,
        Self::Prefixes,
        Self::Table100,
        Self::Table100k,
        Self::Counter,
        Self::Regex,
        Self::Hmac,
        Self::Jwt,
        Self::JsonBody,
        Self::Loop,
    ];

    /// What it is, for reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Empty => "empty hook",
            Self::HeaderGet => "header get",
            Self::HeaderSet => "header set",
            Self::Prefixes => "route by 16 prefixes",
            Self::Table100 => "key in a table of 100",
            Self::Table100k => "key in a table of 100,000",
            Self::Counter => "shared counter",
            Self::Regex => "regex with a capture",
            Self::Hmac => "HMAC-SHA256, compared",
            Self::Jwt => "JWT, HS256",
            Self::JsonBody => "field of a JSON body",
            Self::Loop => "1,000 additions",
        }
    }

    /// The keys of its table; 0 without one.
    pub(super) const fn keys(self) -> usize {
        match self {
            Self::Table100 => 100,
            Self::Table100k => 100_000,
            _ => 0,
        }
    }
}

/// How a job is done in this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Way {
    /// In Rust.
    Native,
    /// As a hook of edgewright, compiled: as it is unless switched off.
    Compiled,
    /// As the same hook, run by the interpreter: `[script] compile = false`.
    Interpreted,
}

impl Way {
    /// All ways, in the order of the report.
    pub const ALL: [Self; 3] = [Self::Native, Self::Compiled, Self::Interpreted];

    /// Its name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Native => "native Rust",
            Self::Compiled => "compiled",
            Self::Interpreted => "interpreted",
        }
    }

    /// The ways in which a job is done. Nothing is not written in Rust.
    pub fn of(job: Job) -> impl Iterator<Item = Self> {
        let all = Self::ALL.into_iter();
        all.filter(move |way| *way != Self::Native || job != Job::Empty)
    }
}

/// What a hook says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Said {
    /// Nothing against the request, which goes to the pool `blue`.
    Continue,
    /// It goes to the pool `green`.
    Green,
    /// An answer with this status.
    Answer(u16),
}

/// A job, done in one [`Way`], and the requests that it is done for.
pub trait Work {
    /// Does it for the request with this number.
    ///
    /// # Errors
    /// When the hook fails.
    fn call(&mut self, request: usize) -> Result<Said>;

    /// What the upstream of that request would be told about the client.
    fn client(&self, request: usize) -> Option<String>;

    /// What the shared counter stands at; 0 when the job has none.
    ///
    /// # Errors
    /// When the hook that tells fails.
    fn counted(&mut self) -> Result<i64>;
}
