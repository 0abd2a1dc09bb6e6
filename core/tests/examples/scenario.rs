//! `requests.toml` of an example: what is sent, and what must come of it. `docs/examples.md`
//! explains its keys.

use std::collections::BTreeMap;

use serde::Deserialize;

/// The whole file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Environment variables of the proxy.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// What the pools answer, by their names; one that isn't here says what it got.
    #[serde(default)]
    pub upstreams: BTreeMap<String, Script>,
    /// In the order in which they are sent.
    pub requests: Vec<Exchange>,
}

/// What an upstream does.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Script {
    /// Nothing listens there.
    #[serde(default)]
    pub down: bool,
    /// The first whose conditions hold is given; without one the upstream says what it got.
    #[serde(default)]
    pub answers: Vec<Answer>,
}

/// One answer of an upstream.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Answer {
    /// Only for requests whose path and query begin with this.
    pub target: Option<String>,
    /// Only for requests whose body holds this.
    pub holds: Option<String>,
    /// Only for requests with these header fields.
    #[serde(default)]
    pub sent: BTreeMap<String, String>,
    #[serde(default = "ok")]
    pub status: u16,
    #[serde(default)]
    pub headers: BTreeMap<String, Values>,
    #[serde(default)]
    pub body: String,
}

fn ok() -> u16 {
    200
}

/// A request, and what must come of it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exchange {
    /// What it shows, for who reads that it doesn't.
    pub what: String,
    /// Method and target.
    pub send: String,
    pub host: Option<String>,
    #[serde(default)]
    pub headers: BTreeMap<String, Values>,
    pub body: Option<String>,
    /// The name under which the body of the answer is kept; `${name}` in a later header field stands
    /// for it.
    pub keep: Option<String>,
    /// How often it is sent.
    #[serde(default = "once")]
    pub times: usize,

    pub status: u16,
    /// Header fields of the answer.
    #[serde(default)]
    pub answer: BTreeMap<String, Expected>,
    /// The whole body of the answer.
    pub text: Option<String>,
    /// A part of it.
    pub has: Option<String>,

    /// Method and target that the pool got, or `false`: none was asked.
    pub upstream: Option<Upstream>,
    /// The pool that got it.
    pub pool: Option<String>,
    /// Header fields that the pool got.
    #[serde(default)]
    pub seen: BTreeMap<String, Expected>,
    /// The whole body that the pool got.
    pub seen_text: Option<String>,
    /// How many of `times` each pool got: at least, at most.
    #[serde(default)]
    pub shares: BTreeMap<String, (usize, usize)>,
    /// How many each pool gets in all, now or a little later: copies, which no answer waits for.
    #[serde(default)]
    pub copies: BTreeMap<String, usize>,
}

fn once() -> usize {
    1
}

/// One or more values of a header field.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub enum Values {
    One(String),
    Several(Vec<String>),
}

impl Values {
    /// All of them.
    pub fn all(&self) -> &[String] {
        match self {
            Self::One(value) => std::slice::from_ref(value),
            Self::Several(values) => values,
        }
    }
}

/// What a header field must be.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub enum Expected {
    /// `false`: absent.
    There(bool),
    /// Exactly these values, in this order.
    Values(Values),
    /// One value, which matches.
    Like { like: String },
}

/// What reached an upstream.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub enum Upstream {
    /// `false`: nothing.
    Any(bool),
    /// Method and target.
    Line(String),
}
