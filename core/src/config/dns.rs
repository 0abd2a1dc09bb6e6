//! `[dns]`: name resolution.

use std::net::SocketAddr;
use std::time::Duration;

use ipnet::IpNet;

/// `[dns]`: how the names of targets are resolved, never on the request path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dns {
    /// `servers`: name servers, each `IP:port`. Default none: those of `/etc/resolv.conf`.
    pub servers: Vec<SocketAddr>,
    /// `timeout`: for one question to one server; 1 ms to 7 days. Default 2 s.
    pub timeout: Duration,
    /// `attempts`: how often a question is asked before it has failed; 1 to 10. Default 2, as in
    /// resolv.conf(5).
    pub attempts: u32,
    /// `min_ttl`: no answer is asked for again sooner, whatever its TTL says; 100 ms to 7 days.
    /// Default 1 s: a TTL of 0 must not make a busy loop.
    pub min_ttl: Duration,
    /// `max_ttl`: every answer is asked for again after this long; `min_ttl` to 7 days. Default
    /// 300 s: a long TTL must not hide a move for hours.
    pub max_ttl: Duration,
    /// `hold_empty`: how long the last addresses are used on when the name is gone or has none;
    /// 0 to 7 days. Default 30 s: rollouts and restarts of a name server empty a name for
    /// moments.
    pub hold_empty: Duration,
    /// `startup_timeout`: how long the start waits for first answers before it goes on without;
    /// 0 to 7 days. Default 5 s.
    pub startup_timeout: Duration,
    /// `allow`: networks whose addresses answers may have although they are link-local or a cloud's
    /// metadata service, such as `169.254.1.0/24`. Default none: a name that somebody else controls
    /// must not lead to the machine's credentials.
    pub allow: Vec<IpNet>,
}

impl Default for Dns {
    fn default() -> Self {
        Self {
            servers: Vec::new(),
            timeout: Duration::from_secs(2),
            attempts: 2,
            min_ttl: Duration::from_secs(1),
            max_ttl: Duration::from_secs(300),
            hold_empty: Duration::from_secs(30),
            startup_timeout: Duration::from_secs(5),
            allow: Vec::new(),
        }
    }
}
