//! `protocol`, `proxy_protocol` and `[pools.NAME.connections]`: what is spoken on connections to the targets,
//! and how long one is used.

use std::time::Duration;

use serde::Deserialize;
use toml::Spanned;

use crate::config::check::{Checks, POSITIVE};
use crate::config::units::{Count, Time};

/// `protocol`: what is spoken to the targets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Protocol {
    /// HTTP/1.1. The default.
    #[default]
    Http1,
    /// HTTP/2. Without TLS with prior knowledge (RFC 9113 section 3.3).
    Http2,
    /// Over TLS: HTTP/2 where the server agrees to it in the handshake (ALPN), else HTTP/1.1.
    Auto,
}

/// `proxy_protocol`: the client's address, at the beginning of each connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProxyProtocol {
    /// As a line of text.
    V1,
    /// In binary.
    V2,
}

/// `[pools.NAME.connections]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Connections {
    /// `max_age`: how long a connection gets new requests, 1 ms to 7 days. Default none: for ever.
    pub max_age: Option<Duration>,
    /// `max_requests`: how many requests a connection gets, 1 to 4294967295. Default none: any number.
    pub max_requests: Option<u32>,
    /// `streams`: how many requests are under way on one connection at the same time with HTTP/2, 1 to
    /// 10000. Default 100, the least that servers are recommended to allow (RFC 9113 section 6.5.2).
    pub streams: usize,
}

impl Default for Connections {
    fn default() -> Self {
        Self {
            max_age: None,
            max_requests: None,
            streams: 100,
        }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
pub(super) struct Table {
    max_age: Option<Spanned<Time>>,
    max_requests: Option<Spanned<Count>>,
    streams: Option<Spanned<Count>>,
}

/// Takes the table of the pool whose keys begin with `prefix`.
pub(super) fn take(checks: &mut Checks<'_>, prefix: &str, table: Table) -> Connections {
    let mut connections = Connections::default();
    if table.max_age.is_some() {
        let mut age = Duration::ZERO;
        let key = format!("{prefix}.connections.max_age");
        checks.time(&mut age, &key, table.max_age, POSITIVE);
        connections.max_age = Some(age);
    }
    if table.max_requests.is_some() {
        let mut requests = 0;
        let key = format!("{prefix}.connections.max_requests");
        let range = 1..=u32::MAX.into();
        checks.count(&mut requests, &key, table.max_requests, range);
        connections.max_requests = Some(requests);
    }
    let key = format!("{prefix}.connections.streams");
    checks.count(&mut connections.streams, &key, table.streams, 1..=10_000);
    connections
}

/// Whether the protocol can be agreed upon.
pub(super) fn check_protocol(
    checks: &mut Checks<'_>,
    prefix: &str,
    given: Option<Spanned<Protocol>>,
    has_tls: bool,
) -> Protocol {
    let Some(given) = given else {
        return Protocol::default();
    };
    if *given.get_ref() == Protocol::Auto && !has_tls {
        checks.error_with_help(
            &given.span(),
            format!("`{prefix}.protocol` can't be \"auto\" without TLS: nothing tells what the target speaks"),
            "write \"http1\" or \"http2\", or give the pool a `tls` table",
        );
    }
    given.into_inner()
}
