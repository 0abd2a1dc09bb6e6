//! `.retries`: how often a request is tried again, and after what.

use crate::suggest::nearest;

/// The most retries that a route or a pool can ask for.
pub const MOST_RETRIES: u8 = 10;

/// Why an attempt failed, where another one may follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum RetryCause {
    /// No connection could be made: nobody has got the request.
    Connect,
    /// The connection broke before a response header was there.
    Reset,
    /// The response header did not come in time.
    Timeout,
    /// The upstream itself has answered 502.
    BadGateway,
    /// The upstream itself has answered 503.
    Unavailable,
    /// The upstream itself has answered 504.
    GatewayTimeout,
}

impl RetryCause {
    /// All of them, in the order of their discriminants.
    pub const ALL: [Self; 6] = [
        Self::Connect,
        Self::Reset,
        Self::Timeout,
        Self::BadGateway,
        Self::Unavailable,
        Self::GatewayTimeout,
    ];

    /// Its word in `on`, and in metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Connect => "connect",
            Self::Reset => "reset",
            Self::Timeout => "timeout",
            Self::BadGateway => "502",
            Self::Unavailable => "503",
            Self::GatewayTimeout => "504",
        }
    }

    /// The cause that a status of the upstream's own is, if it can be one.
    pub const fn of_status(status: u16) -> Option<Self> {
        match status {
            502 => Some(Self::BadGateway),
            503 => Some(Self::Unavailable),
            504 => Some(Self::GatewayTimeout),
            _ => None,
        }
    }
}

/// A set of causes: `on` of a route or a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryOn(u8);

impl Default for RetryOn {
    /// What is safe whatever the request is: nobody has got it.
    fn default() -> Self {
        Self::NONE.with(RetryCause::Connect)
    }
}

impl RetryOn {
    /// After nothing.
    pub const NONE: Self = Self(0);

    /// The set of these words.
    ///
    /// # Errors
    /// The text names the word that is none, and those that there are.
    pub fn parse<'a>(words: impl IntoIterator<Item = &'a str>) -> Result<Self, String> {
        let mut all = Self::NONE;
        for word in words {
            let found = RetryCause::ALL
                .into_iter()
                .find(|cause| cause.name() == word);
            let Some(cause) = found else {
                let names = RetryCause::ALL.map(RetryCause::name);
                let near = nearest(word, names);
                let hint = near.map(|near| format!(" (did you mean \"{near}\"?)"));
                return Err(format!(
                    "\"{word}\" is nothing to try again after{}; there are \"{}\"",
                    hint.unwrap_or_default(),
                    names.join("\", \""),
                ));
            };
            all = all.with(cause);
        }
        Ok(all)
    }

    const fn with(self, cause: RetryCause) -> Self {
        Self(self.0 | 1 << cause as u8)
    }

    /// Whether this cause is in it.
    pub const fn contains(self, cause: RetryCause) -> bool {
        self.0 & (1 << cause as u8) != 0
    }
}

/// What `.retries` of a route says in place of its pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retries {
    /// Attempts after the first; 0 to [`MOST_RETRIES`].
    pub attempts: u8,
    /// After what; `None` leaves it to the pool.
    pub on: Option<RetryOn>,
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read() {
        let all = RetryOn::parse(RetryCause::ALL.map(RetryCause::name)).unwrap();
        assert!(RetryCause::ALL.into_iter().all(|cause| all.contains(cause)));
        let some = RetryOn::parse(["503", "connect", "503"]).unwrap();
        let contained = RetryCause::ALL.map(|cause| some.contains(cause));
        assert_eq!(contained, [true, false, false, false, true, false]);
        assert_eq!(RetryOn::parse([]), Ok(RetryOn::NONE));
        assert_eq!(RetryOn::parse(["connect"]), Ok(RetryOn::default()));
        let error = RetryOn::parse(["conect"]).unwrap_err();
        assert!(error.contains("did you mean \"connect\"?"), "{error}");
        let error = RetryOn::parse(["500"]).unwrap_err();
        assert!(
            error.contains("there are \"connect\", \"reset\""),
            "{error}"
        );
    }

    #[test]
    fn statuses_are_their_words() {
        for status in [502, 503, 504] {
            let cause = RetryCause::of_status(status).unwrap();
            assert_eq!(cause.name(), status.to_string());
        }
        assert_eq!(RetryCause::of_status(500), None);
        for (index, cause) in RetryCause::ALL.into_iter().enumerate() {
            assert_eq!(cause as usize, index);
        }
    }
}
