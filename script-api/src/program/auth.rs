//! Who may use a route: checked natively, before any hook.

use std::time::Duration;

use http::{HeaderName, HeaderValue, Method};

use super::PoolId;
use crate::{jwt::Verification, password::Htpasswd};

/// What a client must show, in the order in which it is asked for. All of it must be right.
#[derive(Debug, Default)]
pub struct Auth {
    /// `.basic_auth`
    pub basic: Option<BasicAuth>,
    /// `.jwt`
    pub jwt: Option<JwtAuth>,
    /// `.forward_auth`
    pub forward: Option<ForwardAuth>,
}

impl Auth {
    /// Whether one of the filters answers 401 to credentials that are there twice: then nobody else
    /// needs to refuse them.
    pub fn takes_authorization(&self) -> bool {
        let bearer = self
            .jwt
            .as_ref()
            .is_some_and(|jwt| jwt.from == TokenFrom::Bearer);
        self.basic.is_some() || bearer
    }
}

/// A user's name and password (RFC 7617).
#[derive(Debug)]
pub struct BasicAuth {
    /// Who may.
    pub users: Htpasswd,
    /// `WWW-Authenticate` of a refusal.
    pub challenge: HeaderValue,
    /// Where the upstream and hooks find the name of the user.
    pub user_header: Option<HeaderName>,
    /// Whether the upstream gets the credentials too.
    pub forward: bool,
}

/// A signed token (RFC 7519), as bearers show it (RFC 6750).
#[derive(Debug)]
pub struct JwtAuth {
    /// How it is verified.
    pub how: Verification,
    /// Where it stands.
    pub from: TokenFrom,
    /// `WWW-Authenticate` when there is no token.
    pub challenge: HeaderValue,
    /// `WWW-Authenticate` when the token is not taken.
    pub invalid: HeaderValue,
    /// Claims that the upstream and hooks find in header fields.
    pub claims: Vec<(String, HeaderName)>,
    /// Whether the upstream gets the field with the token too.
    pub forward: bool,
}

/// Where a token stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TokenFrom {
    /// In `Authorization`, behind `Bearer`.
    Bearer,
    /// In a field of its own.
    Header(HeaderName),
    /// In a cookie.
    Cookie(String),
    /// In a parameter of the query.
    Query(String),
}

/// Another service, which is asked about each request.
#[derive(Debug)]
pub struct ForwardAuth {
    /// The pool that is asked.
    pub pool: PoolId,
    /// How.
    pub rules: ForwardRules,
}

/// How a service is asked, and what is taken from its answer.
#[derive(Debug, Clone)]
pub struct ForwardRules {
    /// The method of the call.
    pub method: Method,
    /// Path and query of the call.
    pub target: String,
    /// Fields of the client's request that it gets.
    pub headers: Vec<HeaderName>,
    /// Fields of its answer that the request gets. A client's own of these names are removed.
    pub copy: Vec<HeaderName>,
    /// Fields of its answer that the response gets.
    pub response_headers: Vec<HeaderName>,
    /// Until its whole answer is there.
    pub timeout: Duration,
    /// How answers that let a request through are kept.
    pub cache: Option<ForwardCache>,
}

/// How long an answer counts, and for which other requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForwardCache {
    /// From its arrival on.
    pub ttl: Duration,
    /// Fields of the request that must be the same.
    pub key: Vec<HeaderName>,
    /// Whether method, host, path, query and the client's address may differ.
    pub whole_route: bool,
}
