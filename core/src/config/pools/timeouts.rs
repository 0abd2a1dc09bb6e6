//! `[pools.NAME.timeouts]`: how long a step of a request may take.

use std::time::Duration;

use serde::Deserialize;
use toml::Spanned;

use crate::config::check::{Checks, POSITIVE};
use crate::config::units::{NoneOrTime, Time};

/// `[pools.NAME.timeouts]`; each 1 ms to 7 days. Pingora's own defaults are infinite.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// `connect`: until a connection stands. Default 1 s: within a cluster it takes
    /// milliseconds, and one lost SYN is sent again after 1 s.
    pub connect: Duration,
    /// `first_byte`: from the end of the request to the response header, for each attempt. Default none: only
    /// `read` bounds it.
    pub first_byte: Option<Duration>,
    /// `read`: between two reads from the upstream. Default 60 s.
    pub read: Duration,
    /// `write`: for one write to the upstream. Default 60 s.
    pub write: Duration,
    /// `idle`: how long an unused pooled connection is kept. Default 60 s.
    pub idle: Duration,
    /// `request`: for the whole request, bodies and all attempts included, from its header on. Default none.
    pub request: Option<Duration>,
    /// `tunnel`: in place of `read` once a connection was upgraded (WebSocket). Default 1 h: such a connection
    /// is silent for as long as nothing happens.
    pub tunnel: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(1),
            first_byte: None,
            read: Duration::from_secs(60),
            write: Duration::from_secs(60),
            idle: Duration::from_secs(60),
            request: None,
            tunnel: Duration::from_secs(3600),
        }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
pub(super) struct Table {
    connect: Option<Spanned<Time>>,
    first_byte: Option<Spanned<NoneOrTime>>,
    read: Option<Spanned<Time>>,
    write: Option<Spanned<Time>>,
    idle: Option<Spanned<Time>>,
    request: Option<Spanned<NoneOrTime>>,
    tunnel: Option<Spanned<Time>>,
}

/// Takes the table of the pool whose keys begin with `prefix`.
pub(super) fn take(checks: &mut Checks<'_>, prefix: &str, table: Table) -> Timeouts {
    let mut timeouts = Timeouts::default();
    for (slot, key, given) in [
        (&mut timeouts.connect, "connect", table.connect),
        (&mut timeouts.read, "read", table.read),
        (&mut timeouts.write, "write", table.write),
        (&mut timeouts.idle, "idle", table.idle),
        (&mut timeouts.tunnel, "tunnel", table.tunnel),
    ] {
        checks.time(slot, &format!("{prefix}.timeouts.{key}"), given, POSITIVE);
    }
    for (slot, key, given) in [
        (&mut timeouts.first_byte, "first_byte", table.first_byte),
        (&mut timeouts.request, "request", table.request),
    ] {
        checks.time_or_none(slot, &format!("{prefix}.timeouts.{key}"), given, POSITIVE);
    }
    timeouts
}
