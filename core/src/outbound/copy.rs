//! Copies of requests, whose answers nobody sees.

use std::time::Duration;

use edgewright_script::outbound::{CallFailure, CallFailureKind};
use pingora_http::RequestHeader;

use super::{
    callee::Callee,
    client::Client,
    endpoints::Endpoints,
    exchange::{Fault, discard},
    failure::{Failure, Progress},
};
use crate::{metrics::PoolMetrics, pools::Pool};

impl Client {
    /// Sends a request to a pool, reads its answer and throws that away, all within `timeout`. Not one
    /// of the calls that are counted.
    ///
    /// It is sent once: again only on a kept connection that turned out to be closed before its header
    /// was written, when nobody can have seen it.
    ///
    /// # Errors
    /// When there is no answer; one of any status is none.
    pub(crate) async fn send_copy(
        &self,
        pool: &Pool,
        metrics: &PoolMetrics,
        header: Box<RequestHeader>,
        body: &[u8],
        timeout: Duration,
    ) -> Result<(), CallFailure> {
        let callee = Callee::Pool { pool, metrics };
        let mut progress = Progress::default();
        let attempt = self.copy(pool, metrics, header, body, &mut progress);
        let result = tokio::time::timeout(timeout, attempt).await;
        let result = result.unwrap_or_else(|_| {
            progress.give_up(pool);
            let cause = format!("not done in time: it was {progress}");
            Err(Failure::new(CallFailureKind::Timeout, cause))
        });
        result.map_err(|failure| failure.towards(&callee))
    }

    async fn copy(
        &self,
        pool: &Pool,
        metrics: &PoolMetrics,
        header: Box<RequestHeader>,
        body: &[u8],
        progress: &mut Progress,
    ) -> Result<(), Failure> {
        let mut endpoints = Endpoints::of_pool(pool, metrics);
        let mut fresh = false;
        loop {
            let connections = &self.connections;
            let mut connection = connections.take(&mut endpoints, fresh, progress).await?;
            let session = &mut connection.session;
            match discard(session, header.clone(), body, progress).await {
                Ok(clean) => {
                    endpoints.settle(&connection, None, progress);
                    if clean {
                        connections.keep(connection).await;
                    }
                    return Ok(());
                }
                Err(Fault::Unsent(_)) if connection.reused => {
                    endpoints.avoid(&connection.endpoint);
                    fresh = true;
                }
                Err(fault) => {
                    let failure = Failure::from(fault);
                    endpoints.settle(&connection, Some(&failure), progress);
                    return Err(failure);
                }
            }
        }
    }
}
