//! A worker's client.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use edgewright_script::outbound::{CallFailureKind, Incoming, Outgoing, Reply};
use futures_util::future::join_all;

use super::{
    addresses,
    callee::Callee,
    connect::Connections,
    endpoints::Endpoints,
    exchange::{Answer, Fault, exchange},
    failure::{Failure, Progress},
    names::Names,
    request,
    tls::{Roots, Tls},
};
use crate::{dns::Resolver, generation::Generation, metrics::Metrics};

/// The most idle connections that a client keeps. A call is one of a few services, not of many.
pub const MOST_KEPT: usize = 128;

/// Makes the calls of one worker, on the worker's runtime. It may be sent there from another
/// thread, but is of use to one runtime only: idle connections belong to the one that made them.
pub struct Client {
    pub(super) connections: Connections,
    names: Names,
    tls: Tls,
    metrics: Arc<Metrics>,
}

/// About as long is waited before a call is made again, and twice as long each further time.
const FIRST_PAUSE: Duration = Duration::from_millis(20);

impl Client {
    /// A client that keeps at most `kept` idle connections, and not more than [`MOST_KEPT`].
    /// `roots` are those of the process.
    pub fn new(
        resolver: Arc<Resolver>,
        metrics: Arc<Metrics>,
        roots: Arc<Roots>,
        kept: usize,
    ) -> Self {
        Self {
            connections: Connections::new(kept.clamp(1, MOST_KEPT)),
            names: Names::new(resolver),
            tls: Tls::new(roots),
            metrics,
        }
    }

    /// Makes one call; pools are those of `generation`. The answer's body may have `most_body`
    /// bytes, its header what Pingora reads (1 MiB, 256 fields). It takes no longer than the call's
    /// own timeout.
    ///
    /// Dropping the future closes the connection and gives the pool's slot back; such a call isn't
    /// counted.
    ///
    /// # Errors
    /// When there is no answer, whatever the reason; an answer of any status is none.
    pub async fn call(&self, call: &Outgoing, generation: &Generation, most_body: usize) -> Reply {
        let callee = Callee::find(&call.recipient, generation);
        self.perform(call, callee, most_body).await
    }

    /// Makes several calls at once, all on this task. The replies are in the order of the calls.
    pub async fn call_all(
        &self,
        calls: &[Outgoing],
        generation: &Generation,
        most_body: usize,
    ) -> Vec<Reply> {
        let calls = calls.iter();
        join_all(calls.map(|call| self.call(call, generation, most_body))).await
    }

    pub(super) async fn perform(
        &self,
        call: &Outgoing,
        callee: Callee<'_>,
        most_body: usize,
    ) -> Reply {
        let started = Instant::now();
        let mut progress = Progress::default();
        // 10 KiB of state, which must not become part of each request's future.
        let attempt = Box::pin(self.attempts(call, callee, most_body, &mut progress));
        let result = tokio::time::timeout(call.timeout, attempt).await;
        let result = result.unwrap_or_else(|_| {
            if let Callee::Pool { pool, .. } = callee {
                progress.give_up(pool);
            }
            let limit = humantime::format_duration(call.timeout);
            let cause = format!("not done within {limit}: it was {progress}");
            Err(Failure::new(CallFailureKind::Timeout, cause))
        });
        let outcome = result.as_ref().map(|_| ()).map_err(|failure| failure.kind);
        self.metrics.outbound_call(outcome, started.elapsed());
        result.map_err(|failure| failure.towards(&callee))
    }

    /// Makes a call, and again as often as it asks for.
    async fn attempts(
        &self,
        call: &Outgoing,
        callee: Callee<'_>,
        most_body: usize,
        progress: &mut Progress,
    ) -> Result<Incoming, Failure> {
        let retries = if call.method.is_idempotent() {
            call.retries
        } else {
            0
        };
        let mut pause = FIRST_PAUSE;
        for _ in 0..retries {
            match self.attempt(call, callee, most_body, progress).await {
                Ok(answer) if !matches!(answer.status.as_u16(), 502..=504) => return Ok(answer),
                // It would be as large the next time.
                Err(failure) if failure.kind == CallFailureKind::TooLarge => return Err(failure),
                _ => {}
            }
            // Not all that failed at once come back at once.
            tokio::time::sleep(pause.mul_f32(0.5 + fastrand::f32())).await;
            pause *= 2;
        }
        self.attempt(call, callee, most_body, progress).await
    }

    async fn attempt(
        &self,
        call: &Outgoing,
        callee: Callee<'_>,
        most_body: usize,
        progress: &mut Progress,
    ) -> Result<Incoming, Failure> {
        let mut endpoints = self.endpoints(callee, progress).await?;
        let authority = callee.authority();
        let mut fresh = false;
        loop {
            let header = request::header(call, &authority).map_err(|error| {
                let cause = format!("the request can't be written: {}", error.etype().as_str());
                Failure::new(CallFailureKind::Broken, cause)
            })?;
            let mut connection = self
                .connections
                .take(&mut endpoints, fresh, progress)
                .await?;
            let session = &mut connection.session;
            let answer = exchange(session, header, &call.body, most_body, progress).await;
            let fault = match answer {
                Ok(Answer { incoming, clean }) => {
                    endpoints.settle(&connection, None, progress);
                    if clean {
                        self.connections.keep(connection).await;
                    }
                    return Ok(incoming);
                }
                Err(fault) => fault,
            };
            // The server had closed a kept connection while it was idle. A new one will show
            // whether it is there at all.
            let again = match &fault {
                Fault::Unsent(_) => true,
                Fault::Unanswered(_) => call.method.is_idempotent(),
                Fault::Final(_) => false,
            };
            if !(again && connection.reused) {
                let failure = Failure::from(fault);
                endpoints.settle(&connection, Some(&failure), progress);
                return Err(failure);
            }
            endpoints.avoid(&connection.endpoint);
            fresh = true;
        }
    }

    async fn endpoints<'a>(
        &'a self,
        callee: Callee<'a>,
        progress: &mut Progress,
    ) -> Result<Endpoints<'a>, Failure> {
        let (tls, host, port) = match callee {
            Callee::Pool { pool, metrics } => return Ok(Endpoints::of_pool(pool, metrics)),
            Callee::Server { tls, host, port } => (tls, host, port),
        };
        progress.now("resolving the name");
        let unavailable = |cause| Failure::new(CallFailureKind::Unavailable, cause);
        let found = match host.parse::<IpAddr>() {
            Ok(address) => addresses::candidates(&[address.to_canonical()]),
            Err(_) => match self.names.resolve(host, addresses::candidates).await {
                Ok(found) => found,
                Err(cause) => return Err(unavailable(cause)),
            },
        };
        let candidates = found.map_err(unavailable)?;
        if !tls {
            return Ok(Endpoints::of_server(callee, candidates, port, None));
        }
        progress.now("reading the root certificates");
        let connector = self.tls.connector().await;
        let connector = connector.map_err(|cause| {
            let cause = format!("its certificate can't be verified: {cause}");
            Failure::new(CallFailureKind::Connect, cause)
        })?;
        // TLS knows no dot at the end of a name (RFC 6066 section 3).
        let name = host.strip_suffix('.').unwrap_or(host);
        let tls = Some((connector, name));
        Ok(Endpoints::of_server(callee, candidates, port, tls))
    }
}
