//! A client against servers that play a script.

#![allow(clippy::unwrap_used)]

mod answers;
mod endpoints;
mod generation;
mod names;
mod reuse;
mod server;
mod tls;

use std::collections::BTreeMap;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use edgewright_script::outbound::{
    CallFailure, CallFailureKind, Incoming, Outgoing, Recipient, Reply,
};
use http::{Method, header::HeaderName};

use self::server::Server;
use super::{Client, Roots, callee::Callee};
use crate::config::PoolConfig;
use crate::dns::Resolver;
use crate::dns::tests::dns_server::DnsServer;
use crate::dns::tests::{LIMIT, resolver};
use crate::metrics::{Metrics, PoolMetrics, ScrapeInput};
use crate::pools::{Pool, Pools};

/// The most bytes of a body in these tests.
const MOST_BODY: usize = 64 * 1024;

/// A client, and what it counts with and resolves with.
struct Caller {
    client: Client,
    metrics: Arc<Metrics>,
    resolver: Arc<Resolver>,
    dns: DnsServer,
}

impl Caller {
    fn new() -> Self {
        Self::trusting(Roots::default())
    }

    fn trusting(roots: Roots) -> Self {
        let dns = DnsServer::start();
        let resolver = Arc::new(resolver(&dns));
        let metrics = Arc::new(Metrics::new(1));
        let (names, counters) = (resolver.clone(), metrics.clone());
        Self {
            client: Client::new(names, counters, Arc::new(roots), 8),
            metrics,
            resolver,
            dns,
        }
    }

    /// Makes a call to the server of a URL.
    async fn call(&self, call: &Outgoing) -> Reply {
        let Recipient::Server { tls, host, port } = &call.recipient else {
            panic!("not a server's URL");
        };
        let callee = Callee::Server {
            tls: *tls,
            host,
            port: *port,
        };
        in_time(self.client.perform(call, callee, MOST_BODY)).await
    }

    /// Calls a pool; the recipient in `call` doesn't count.
    async fn call_pool(&self, call: &Outgoing, pool: &TestPool) -> Reply {
        in_time(self.client.perform(call, pool.callee(), MOST_BODY)).await
    }

    async fn get(&self, address: SocketAddr) -> Reply {
        self.call(&get(address)).await
    }

    /// The values of all metrics whose series begins with this.
    fn metric(&self, series: &str) -> f64 {
        let text = self.metrics.render(&ScrapeInput::default());
        let text = String::from_utf8(text).unwrap();
        let lines = text.lines().filter(|line| line.starts_with(series));
        let values = lines.map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap());
        values.sum()
    }

    fn outcomes(&self, outcome: &str) -> f64 {
        self.metric(&format!(
            "edgewright_outbound_calls_total{{outcome=\"{outcome}\"}}"
        ))
    }
}

/// A pool with its counters.
struct TestPool {
    pool: Arc<Pool>,
    metrics: Arc<PoolMetrics>,
}

impl TestPool {
    fn new(caller: &Caller, config: PoolConfig) -> Self {
        let configs = BTreeMap::from([("auth".to_owned(), config)]);
        let pools = Pools::build(&configs, &caller.resolver, None);
        Self {
            pool: pools.get("auth").unwrap().clone(),
            metrics: caller.metrics.register_pool("auth"),
        }
    }

    fn of(caller: &Caller, targets: &[&str]) -> Self {
        let targets = targets.iter().map(|target| target.parse().unwrap());
        Self::new(caller, PoolConfig::new(targets.collect()))
    }

    fn callee(&self) -> Callee<'_> {
        Callee::Pool {
            pool: &self.pool,
            metrics: &self.metrics,
        }
    }

    fn in_flight(&self) -> usize {
        let endpoints = self.pool.snapshot().endpoints;
        endpoints.iter().map(|endpoint| endpoint.in_flight).sum()
    }
}

/// A call that may take longer than any test does.
fn get(address: SocketAddr) -> Outgoing {
    outgoing(Method::GET, &address.ip().to_string(), address.port())
}

fn outgoing(method: Method, host: &str, port: u16) -> Outgoing {
    Outgoing {
        recipient: Recipient::Server {
            tls: false,
            host: host.to_owned(),
            port,
        },
        method,
        target: "/check?a=b".to_owned(),
        headers: Vec::new(),
        body: Bytes::new(),
        timeout: 2 * LIMIT,
        retries: 0,
    }
}

fn with(method: Method, address: SocketAddr) -> Outgoing {
    Outgoing {
        method,
        ..get(address)
    }
}

fn within(timeout: Duration, call: Outgoing) -> Outgoing {
    Outgoing { timeout, ..call }
}

/// Fails instead of hanging.
async fn in_time<T>(future: impl Future<Output = T>) -> T {
    let ended = tokio::time::timeout(LIMIT, future).await;
    ended.expect("no end in sight")
}

#[track_caller]
fn body(reply: Reply) -> String {
    let Incoming { status, body, .. } = reply.unwrap();
    assert_eq!(status, 200);
    String::from_utf8(body.to_vec()).unwrap()
}

/// The message of a failure of this kind, with all of `parts` in it.
#[track_caller]
fn assert_fails(reply: Reply, kind: CallFailureKind, parts: &[&str]) {
    let failure: CallFailure = reply.expect_err("there is an answer");
    assert_eq!(failure.kind, kind, "{failure}");
    for part in parts {
        assert!(
            failure.message.contains(part),
            "{failure} has no `{part}` in it"
        );
    }
    assert!(!failure.message.contains(char::is_control), "{failure:?}");
}
