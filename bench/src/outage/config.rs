//! What each contestant is told: the same three targets, and everything that it has against one of them
//! failing, as an operator would write it who knows it well.
//!
//! The same for all: connecting takes 1 s at most and an answer 5 s, three tries for a request with
//! different targets, active checks (where there are any) each second, no access log.

use std::net::SocketAddr;

use super::target::HEALTH_PATH;
use crate::nginx::main_context;

/// Connections that a process may have open: those of the load, and many times what the targets get.
const CONNECTIONS: usize = 4096;

/// What differs between two starts.
#[derive(Debug, Clone, Copy)]
pub(super) struct Setup {
    /// Where it listens.
    pub(super) listen: SocketAddr,
    /// Where it sends requests.
    pub(super) targets: [SocketAddr; 3],
    /// Worker threads (nginx: processes).
    pub(super) threads: usize,
}

/// How edgewright is set up.
pub(super) const EDGEWRIGHT_IS: &str =
    "least_requests, http checks each second, ejection by default, retries on another target";

/// How edgewright is set up when it looks at latencies.
pub(super) const EDGEWRIGHT_BY_LATENCY_IS: &str = "the same with balance = \"peak_ewma\"";

/// The program of edgewright.
pub(super) const EDGEWRIGHT_ROUTES: &str = "route(\"/{*rest}\").to(\"web\");\n";

/// `edgewright.toml`.
pub(super) fn edgewright(setup: &Setup, balance: &str) -> String {
    let targets = setup.targets.map(|target| format!("\"{target}\""));
    format!(
        "[server]\nthreads = {}\n\n[[listeners]]\naddress = \"{}\"\n\n\
         [pools.web]\ntargets = [{}]\nbalance = \"{balance}\"\n\n[pools.web.timeouts]\nconnect = \"1s\"\nread = \"5s\"\n\n\
         [pools.web.retries]\nattempts = 2\n\
         on = [\"connect\", \"reset\", \"timeout\", \"502\", \"503\", \"504\"]\n\n\
         [pools.web.health]\npath = \"{HEALTH_PATH}\"\ninterval = \"1s\"\ntimeout = \"1s\"\n\
         healthy = 2\nunhealthy = 2\n\n\
         [admin]\naddress = \"off\"\n\n[health]\naddress = \"off\"\n\n[log]\nlevel = \"warn\"\n",
        setup.threads,
        setup.listen,
        targets.join(", ")
    )
}

/// How nginx is set up.
pub(super) const NGINX_IS: &str =
    "least_conn with a shared zone, max_fails=2 fail_timeout=5s, proxy_next_upstream";

/// `nginx.conf`. Without its commercial form it has no active checks.
pub(super) fn nginx(setup: &Setup) -> String {
    let servers: String = setup
        .targets
        .iter()
        .map(|target| format!("  server {target} max_fails=2 fail_timeout=5s;\n"))
        .collect();
    let http = format!(
        "upstream web {{\n  zone web 64k;\n  least_conn;\n{servers}  keepalive 64;\n  \
         keepalive_requests 1000000000;\n}}\n\
         server {{\n  listen {} backlog=4096;\n  location / {{\n    proxy_pass http://web;\n    \
         proxy_http_version 1.1;\n    proxy_set_header Connection \"\";\n    \
         proxy_set_header Host $http_host;\n    proxy_connect_timeout 1s;\n    \
         proxy_read_timeout 5s;\n    \
         proxy_next_upstream error timeout http_502 http_503 http_504;\n    \
         proxy_next_upstream_tries 3;\n  }}\n}}\n",
        setup.listen
    );
    main_context(setup.threads, CONNECTIONS, "", &http)
}

/// How HAProxy is set up.
pub(super) const HAPROXY_IS: &str =
    "leastconn, httpchk each second, observe layer7 with mark-down, retry-on with redispatch";

/// `haproxy.cfg`.
pub(super) fn haproxy(setup: &Setup) -> String {
    let servers: String = setup
        .targets
        .iter()
        .enumerate()
        .map(|(number, target)| format!("    server target{number} {target}\n"))
        .collect();
    format!(
        "global
    maxconn {CONNECTIONS}
    nbthread {}
    spread-checks 10

defaults
    mode http
    timeout connect 1s
    timeout server 5s
    timeout client 75s
    timeout http-request 10s
    timeout queue 1s
    timeout check 1s
    retries 2
    option redispatch 1
    retry-on conn-failure empty-response response-timeout 502 503 504

frontend load
    bind {}
    default_backend web

backend web
    balance leastconn
    http-reuse always
    http-request disable-l7-retry unless METH_GET
    option httpchk
    http-check send meth GET uri {HEALTH_PATH} ver HTTP/1.1 hdr Host bench.test
    http-check expect status 200
    default-server check inter 1s fastinter 250ms fall 2 rise 2 observe layer7 error-limit 3 on-error mark-down
{servers}",
        setup.threads, setup.listen
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_all_three_targets() {
        let address = |port| SocketAddr::from(([127, 0, 0, 1], port));
        let setup = Setup {
            listen: address(4000),
            targets: [address(4001), address(4002), address(4003)],
            threads: 2,
        };
        for text in [
            edgewright(&setup, "peak_ewma"),
            nginx(&setup),
            haproxy(&setup),
        ] {
            for port in 4000..=4003 {
                assert_eq!(
                    text.matches(&format!("127.0.0.1:{port}")).count(),
                    1,
                    "{text}"
                );
            }
            let threads = ["threads = 2\n", "worker_processes 2;", "nbthread 2\n"];
            assert!(threads.iter().any(|line| text.contains(line)), "{text}");
        }
    }
}
