//! The worker threads.
//!
//! Each worker is a whole small server: its own thread with its own runtime, its own listening
//! sockets (the kernel spreads connections over them, SO_REUSEPORT), its own Pingora proxy with its
//! own kept upstream connections. Nothing that a request needs belongs to another thread.
//!
//! Pingora's own `Server` and `Service` are not used: its threads share one pool of upstream connections, which
//! loses kept ones when they move between threads; it sleeps on SIGTERM; and it panics when an
//! address is taken. What they do for a connection is in `accept`.

mod accept;
mod agreed;
mod connections;
mod door;
mod handshake;
mod spoken;

use std::{fmt, net::TcpListener, sync::Arc, thread, time::Duration};

use anyhow::Context as _;
use edgewright_script::program::MOST_RETRIES;
use futures_util::future::join_all;
use pingora_core::{
    apps::HttpServerOptions, protocols::http::v2::server::default_h2_options,
    server::configuration::ServerConf,
};
use pingora_proxy::HttpProxy;
use pingora_timeout::fast_timeout::set_fast_timeout_to_tokio_threshold;
use tokio::sync::watch;

use crate::{config::Config, outbound::NO_CERTIFICATES, proxy::Edge};
use door::{Door, Manners};

pub use connections::{Connections, auto};

/// Bytes of a worker's stack. The deepest calls and expressions that are allowed need 22 MiB, and a
/// chain of closures as long as a hook can make one is freed by recursion. Only what is used
/// takes memory.
const STACK: usize = 64 * 1024 * 1024;

/// Upstream connections that Pingora may try for one request, over all kinds of failures. How many
/// are tried is decided case by case, in [`crate::proxy`].
const MAX_TRIES: usize = 1 + MOST_RETRIES as usize;

/// The threads that serve.
#[derive(Debug)]
pub struct Workers {
    closing: Arc<watch::Sender<bool>>,
}

impl Default for Workers {
    /// No worker yet, and timers those of the workers' own runtimes: Pingora's faster ones for long
    /// times are shared by all threads, and each is kept until its time has come, used or not.
    fn default() -> Self {
        set_fast_timeout_to_tokio_threshold(Some(Duration::ZERO));
        Self {
            closing: Arc::new(watch::Sender::new(false)),
        }
    }
}

impl Workers {
    /// Starts a thread that does `work` until the process ends. It is told when the listeners are to be closed.
    ///
    /// # Errors
    /// When the thread or its runtime can't be made.
    pub fn start<W, R>(&self, name: &str, work: W) -> anyhow::Result<()>
    where
        W: FnOnce(watch::Receiver<bool>) -> R + Send + 'static,
        R: Future<Output = ()>,
    {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .context("can't make the runtime of a worker")?;
        let closing = self.closing.subscribe();
        let open = self.closing.clone();
        thread::Builder::new()
            .name(name.to_owned())
            .stack_size(STACK)
            .spawn(move || {
                runtime.block_on(async {
                    work(closing).await;
                    // Were the other end gone, Pingora would report an error.
                    let _open = open;
                    // The listeners are closed; connections are served until the process ends.
                    std::future::pending::<()>().await;
                });
            })
            .context("can't start a worker")?;
        Ok(())
    }

    /// Closes the listeners. Connections that have no request end, requests in flight go on.
    pub fn close(&self) {
        // Nobody listens to the signal when no worker was started.
        let _ = self.closing.send(true);
    }
}

/// What one worker serves: its sockets, each with what is expected there, in front of one proxy.
pub struct Server {
    sockets: Vec<(TcpListener, Arc<Door>)>,
}

impl Server {
    /// Serves until `closing` says so, and the connections that there are then to their end.
    pub async fn serve(self, closing: watch::Receiver<bool>) {
        let doors: Vec<_> = self.sockets.iter().map(|(_, door)| door.clone()).collect();
        let serving = self.sockets.into_iter().map(|(socket, door)| {
            let closing = closing.clone();
            async move {
                match tokio::net::TcpListener::from_std(socket) {
                    Ok(listener) => accept::serve(listener, door, closing).await,
                    Err(error) => tracing::error!("a listener can't be used: {error}"),
                }
            }
        });
        join_all(serving).await;
        for door in doors {
            door.close().await;
        }
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sockets = self.sockets.iter().map(|(socket, _)| socket);
        f.debug_list().entries(sockets).finish()
    }
}

/// What the worker with this number serves, which keeps `kept` idle upstream connections. Its sockets listen from now on.
///
/// # Errors
/// When an address can't be listened on.
pub fn proxy(
    config: &Config,
    edge: Edge,
    connections: &Arc<Connections>,
    worker: usize,
    kept: usize,
) -> anyhow::Result<Server> {
    let configuration = ServerConf {
        // Of this proxy: the workers are proxies of their own.
        threads: 1,
        upstream_keepalive_pool_size: kept,
        max_retries: MAX_TRIES,
        // Pools that are called over TLS have their authorities with them. Pingora would read the root
        // certificates of the system, for each worker twice, and panic when something is wrong with one of
        // them.
        ca_file: Some(NO_CERTIFICATES.to_owned()),
        ..ServerConf::default()
    };
    let (shared, client) = (edge.shared().clone(), edge.client().clone());
    let mut proxy = HttpProxy::new(edge, Arc::new(configuration));
    proxy.handle_init_modules();
    let limits = &config.limits;
    let mut options = HttpServerOptions::default();
    // Pingora counts how often a connection is used again.
    options.keepalive_request_limit = Some(limits.keepalive_requests.saturating_sub(1));
    options.h2_idle_timeout = Some(limits.keepalive_timeout);
    proxy.server_options = Some(options);
    let mut http2 = default_h2_options();
    // Counted with 32 bytes more for each field (RFC 9113 section 6.5.2); what comes near the bound is refused
    // by the same checks as with HTTP/1.
    let overhead = 32 * (limits.request_headers + 4);
    let most = u32::try_from(limits.request_header + overhead).unwrap_or(u32::MAX);
    http2.max_header_list_size(most);
    proxy.h2_options = Some(http2);
    let proxy = Arc::new(proxy);

    let sockets = config.listeners.iter().map(|listener| {
        let door = Door {
            proxy: proxy.clone(),
            shared: shared.clone(),
            client: client.clone(),
            connections: connections.clone(),
            worker,
            manners: Manners::of(listener),
        };
        Ok((accept::listen(listener.address)?, Arc::new(door)))
    });
    let sockets = sockets.collect::<anyhow::Result<_>>()?;
    Ok(Server { sockets })
}
