//! What a request must be like, besides host and path, for a route to fit.

use crate::{
    request::{Request, cookie_value, header_text, query_values},
    values::{Cidr, Regex},
};

/// A native condition of a route.
#[derive(Debug, Clone, PartialEq)]
pub enum Condition {
    /// A request header, in lower case, passes the test.
    Header(String, Test),
    /// A query parameter passes the test.
    Query(String, Test),
    /// A cookie passes the test.
    Cookie(String, Test),
    /// The client's address is in one of the networks.
    From(Cidr),
}

/// What a value must be like. It is enough that one of several values is.
#[derive(Debug, Clone, PartialEq)]
pub enum Test {
    /// It is there.
    Present,
    /// It is this text.
    Is(String),
    /// The pattern is found in it.
    Matches(Regex),
}

impl Test {
    fn passes(&self, value: &str) -> bool {
        match self {
            Self::Present => true,
            Self::Is(text) => text == value,
            Self::Matches(regex) => regex.is_match(value),
        }
    }
}

impl Condition {
    /// Whether `request` fits.
    pub fn holds(&self, request: &dyn Request) -> bool {
        match self {
            Self::Header(name, test) => request
                .headers(name)
                .into_iter()
                .any(|value| test.passes(&header_text(value))),
            Self::Query(name, test) => {
                query_values(request.query_string(), name).any(|value| test.passes(&value))
            }
            Self::Cookie(name, test) => request.headers("cookie").into_iter().any(|field| {
                cookie_value(&header_text(field), name).is_some_and(|value| test.passes(value))
            }),
            Self::From(networks) => networks.contains(request.client_ip()),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::memory::MemoryRequest;

    #[test]
    fn looks_at_all_values() {
        let request = MemoryRequest::new("GET", "h", "/?v=1&v=2")
            .with_header("x-a", "1")
            .with_header("x-a", "2")
            .with_header("cookie", "beta=1; a=b");
        let is = |text: &str| Test::Is(text.to_owned());
        let holds = |condition: Condition| condition.holds(&request);
        assert!(holds(Condition::Header("x-a".into(), is("2"))));
        assert!(!holds(Condition::Header("x-a".into(), is("3"))));
        assert!(!holds(Condition::Header("x-b".into(), Test::Present)));
        assert!(holds(Condition::Query("v".into(), is("2"))));
        assert!(holds(Condition::Cookie("beta".into(), Test::Present)));
        let regex = Regex::compile("^[bc]$").unwrap();
        assert!(holds(Condition::Cookie("a".into(), Test::Matches(regex))));
        assert!(holds(Condition::From(
            Cidr::parse(["127.0.0.0/8"]).unwrap()
        )));
    }
}
