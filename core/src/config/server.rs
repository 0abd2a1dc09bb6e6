//! `[server]` and `[[listeners]]`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use super::ListenerTls;

/// `[server]`: the process itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// `threads`: worker threads, `"auto"` or 1 to 1024. Default auto.
    pub threads: Threads,
    /// `[server.shutdown]`: what SIGTERM does.
    pub shutdown: Shutdown,
    /// `upstream_keepalive`: idle upstream connections that the whole process keeps, `"auto"` or
    /// 1 to 1,000,000. `None` is auto, the default: from the open files limit.
    pub upstream_keepalive: Option<usize>,
    /// `forwarded_headers`: whether upstreams are told the client's address and scheme (the Host
    /// goes along anyway). Default true, as an upstream can't learn them otherwise.
    pub forwarded_headers: bool,
    /// `zone`: where the proxy stands. Targets of the same zone are preferred. Default: what `EDGEWRIGHT_ZONE` says,
    /// since the same file goes to all replicas; else nowhere in particular.
    pub zone: Option<String>,
    /// `upgrade_socket`: the absolute path of the Unix socket at which a process that takes over waits for the one that
    /// serves; 107 bytes at the longest (unix(7)). Default none: SIGQUIT is SIGTERM then.
    pub upgrade_socket: Option<PathBuf>,
}

impl Default for Server {
    fn default() -> Self {
        Self {
            threads: Threads::Auto,
            shutdown: Shutdown::default(),
            upstream_keepalive: None,
            forwarded_headers: true,
            zone: None,
            upgrade_socket: None,
        }
    }
}

/// How many worker threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Threads {
    /// From the CPU quota and affinity.
    #[default]
    Auto,
    /// This many.
    Count(usize),
}

/// `[server.shutdown]`: on SIGTERM readiness fails at once, `delay` passes, no new connection is
/// accepted, and requests in flight have `drain` to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shutdown {
    /// `delay`: how long to go on accepting, until load balancers have noticed; 0 to 7 days.
    /// Default 0: where it is needed depends on them.
    pub delay: Duration,
    /// `drain`: after this long the process ends whatever is in flight; 0 to 7 days. Default
    /// 25 s, inside the 30 s that Kubernetes gives a pod (`terminationGracePeriodSeconds`).
    pub drain: Duration,
}

impl Default for Shutdown {
    fn default() -> Self {
        Self {
            delay: Duration::ZERO,
            drain: Duration::from_secs(25),
        }
    }
}

/// One of `[[listeners]]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listener {
    /// `address`: IP and port to listen on. The port is not 0: nobody could be told which.
    pub address: SocketAddr,
    /// `http2`: whether HTTP/2 is spoken beside HTTP/1.1. Without TLS that is HTTP/2 with prior knowledge (RFC 9113
    /// section 3.3), by default not; with TLS it is offered by ALPN (RFC 7301), by default it is.
    pub http2: bool,
    /// `proxy_protocol`: whether each connection begins with a header of the PROXY protocol, by which one of
    /// `[trusted_proxies]` says who the client is. Default false.
    pub proxy_protocol: bool,
    /// `tls`: what TLS is spoken with; `None` without it, the default.
    pub tls: Option<ListenerTls>,
}

impl Listener {
    /// One for HTTP/1.1 at this address.
    #[must_use]
    pub fn plain(address: SocketAddr) -> Self {
        Self {
            address,
            http2: false,
            proxy_protocol: false,
            tls: None,
        }
    }
}
