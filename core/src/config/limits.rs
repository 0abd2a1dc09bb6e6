//! `[limits]` and `[script]`: every bound that a client or a script can run into.

use std::time::Duration;

/// `[limits]`: bounds on what a client may send, hold or wait for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// `request_header`: bytes of request line and headers together; 256 B to 1023 KiB (Pingora
    /// itself stops at 1 MiB - 1). Default 32 KiB: four times the largest header most servers
    /// accept.
    pub request_header: usize,
    /// `request_headers`: header fields; 1 to 256 (Pingora's own bound). Default 100.
    pub request_headers: usize,
    /// `uri`: bytes of the request target; 16 B to 63 KiB (the `http` crate's bound is
    /// 65,534 B). Default 8 KiB, the least that RFC 9110 section 4.1 recommends to support.
    pub uri: usize,
    /// `request_body`: bytes of a request's body, or `"none"`. `None`, the default, is no limit:
    /// bodies are streamed, not held.
    pub request_body: Option<u64>,
    /// `keepalive_requests`: requests on one client connection before it is closed; at least 1.
    /// Default 10,000: long-lived clients are spread anew over replicas now and then.
    pub keepalive_requests: u32,
    /// `keepalive_timeout`: how long a client connection may stay idle between requests; whole
    /// seconds (Pingora counts in seconds), 1 s to 7 days. Default 75 s: longer than the 60 s
    /// after which common load balancers give up an idle connection, so that they close first.
    pub keepalive_timeout: Duration,
    /// `request_read_timeout`: for each read while a request's header or body arrives; 1 ms to
    /// 7 days. Default 30 s.
    pub request_read_timeout: Duration,
    /// `response_write_timeout`: for each write to the client; 1 ms to 7 days. Default 60 s.
    pub response_write_timeout: Duration,
    /// `connections`: connections of clients that the whole process has at a time, `"auto"` or 1 to 10,000,000. `None` is auto, the
    /// default: from the memory limit and the limit on open files ([`auto`](crate::server::auto)).
    pub connections: Option<usize>,
    /// `tls_handshake_timeout`: for the whole handshake of a TLS listener; 1 ms to 7 days. Default 10 s: honest
    /// clients take three round trips.
    pub tls_handshake_timeout: Duration,
    /// `password_checks`: passwords that are verified at a time in the whole process, those that wait
    /// for their turn included; 1 to 10,000. Default 64: half of the CPUs verify, and each takes up
    /// to a quarter of a second.
    pub password_checks: usize,
    /// `mirrors`: copies of requests (`.mirror`) that are under way at a time in the whole process;
    /// further ones are not made. 0 to 10,000. Default 64.
    pub mirrors: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            request_header: 32 * 1024,
            request_headers: 100,
            uri: 8 * 1024,
            request_body: None,
            keepalive_requests: 10_000,
            keepalive_timeout: Duration::from_secs(75),
            request_read_timeout: Duration::from_secs(30),
            response_write_timeout: Duration::from_secs(60),
            connections: None,
            tls_handshake_timeout: Duration::from_secs(10),
            password_checks: 64,
            mirrors: 64,
        }
    }
}

/// `[script]`: bounds on one call of a hook. 0 is never allowed: to the interpreter it would mean
/// "no limit".
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptLimits {
    /// `operations`: steps of the interpreter; 1 to 1,000,000. Default 50,000, some
    /// milliseconds.
    pub operations: u64,
    /// `time`: CPU time of the thread, so that a throttled pod refuses no honest request; 1 ms to
    /// 10 s. Default 20 ms.
    pub time: Duration,
    /// `memory`: bytes that a call may hold at a time; 64 KiB to 1 GiB. Default 16 MiB: hooks
    /// look at headers, and many may run at once.
    pub memory: usize,
    /// `call_depth`: calls inside each other; 1 to 32, which need 1 MiB of a worker's stack.
    /// Default 16.
    pub call_depth: usize,
    /// `string`: bytes of one string; 1 B to 1 MiB, the most that a native function may allocate
    /// unchecked. Default 64 KiB.
    pub string: usize,
    /// `items`: elements of one array or map; 1 to 1,000,000. Default 4096: the interpreter
    /// copies them at each use.
    pub items: usize,
    /// `body`: bytes of one body of a request or response that hooks get or make; 1 B to 64 MiB.
    /// Default 1 MiB.
    pub body: usize,
    /// `bodies`: bytes of all bodies that are kept for hooks at a time, in the whole process; 1 MiB
    /// to 64 GiB. Default 256 MiB.
    pub bodies: usize,
    /// `fetches`: calls to other services in one call of a hook; 1 to 1000. Default 8.
    pub fetches: u32,
    /// `fetch_timeout`: for a call that names none, until its whole answer is there; 1 ms to 10 min.
    /// Default 5 s.
    pub fetch_timeout: Duration,
    /// `fetch_body`: bytes of the body of one answer; 1 B to 16 MiB. Default 1 MiB.
    pub fetch_body: usize,
    /// `waiting`: hooks that may be suspended at a time in the whole process; 1 to 100,000. Default
    /// 1000: each takes some 30 KiB and what it holds.
    pub waiting: usize,
    /// `waiting_memory`: bytes that all suspended hooks may hold together; 1 MiB to 64 GiB. Default
    /// 256 MiB.
    pub waiting_memory: usize,
    /// `compile`: whether hooks are compiled where they can be. Default true.
    pub compile: bool,
}

impl Default for ScriptLimits {
    fn default() -> Self {
        Self {
            operations: 50_000,
            time: Duration::from_millis(20),
            memory: 16 * 1024 * 1024,
            call_depth: 16,
            string: 64 * 1024,
            items: 4096,
            body: 1024 * 1024,
            bodies: 256 * 1024 * 1024,
            fetches: 8,
            fetch_timeout: Duration::from_secs(5),
            fetch_body: 1024 * 1024,
            waiting: 1000,
            waiting_memory: 256 * 1024 * 1024,
            compile: true,
        }
    }
}
