//! A connection of HTTP/2: how it is told to go.

use std::future::pending;
use std::time::Duration;

use pingora_core::{apps::ServerApp as _, server::ShutdownWatch};
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use super::accept::closed;
use super::door::Door;
use super::spoken::{Carrier, Spoken};
use crate::worker;

/// Receivers of a connection's own end that have nothing to do with requests: one here, and two of Pingora's. Each
/// stream has one more, as long as it is served.
const WITHOUT_STREAMS: usize = 3;

/// How long a client may take to leave that was told to. It is asked what it has heard of (PING), and answers at once.
const FAREWELL: Duration = Duration::from_secs(1);

impl Door {
    /// Serves a connection until it ends by itself, the process ends, or others wait for its place while it has no stream.
    /// In both latter cases it is told so (GOAWAY), and streams that come before the client has heard it are served.
    pub(super) async fn serve_http2<C: Carrier>(
        &self,
        mut stream: Box<Spoken<C>>,
        shutdown: &ShutdownWatch,
    ) {
        let unsent = self.shared.metrics.connections().sending();
        let sending = unsent.sending();
        stream.count_unsent(unsent);
        // Pingora knows one reason to end a connection.
        let (end, ended) = watch::channel(false);
        let has_streams = || end.receiver_count() > WITHOUT_STREAMS;
        let is_free = || !has_streams() && !sending.has_unsent();
        let mut closing = shutdown.clone();
        let over = async {
            tokio::select! {
                () = closed(&mut closing) => {
                    end.send_replace(true);
                    // The process waits for it, or doesn't.
                    pending::<()>().await;
                }
                () = self.limit.give_way(self.worker, is_free) => {}
            }
            end.send_replace(true);
            sleep(FAREWELL).await;
            if has_streams() {
                self.limit.stays();
            }
            let limit = {
                let handle = worker::current(&self.shared.generation, &self.client);
                handle.config.limits.response_write_timeout
            };
            let mut since = Instant::now();
            // It ends by itself where the client reads and answers.
            while !is_free() && since.elapsed() < limit {
                if has_streams() {
                    since = Instant::now();
                }
                sleep(FAREWELL).await;
            }
        };
        tokio::select! {
            biased;
            _ = self.proxy.process_new(stream, &ended) => {}
            () = over => {}
        }
    }
}
