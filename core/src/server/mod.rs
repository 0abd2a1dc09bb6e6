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
mod http2;
mod sockets;
mod spoken;
mod transport;
mod workers;

use std::{fmt, io, net::TcpListener, sync::Arc};

use edgewright_script::program::MOST_RETRIES;
use futures_util::future::join_all;
use pingora_core::{
    apps::{HttpServerApp as _, HttpServerOptions},
    protocols::http::v2::server::default_h2_options,
    server::configuration::ServerConf,
};
use pingora_proxy::HttpProxy;
use tokio::sync::watch;

pub use connections::{ConnectionLimit, auto};
pub use sockets::Sockets;
pub use workers::Workers;

use crate::{config::Config, outbound::NO_CERTIFICATES, proxy::Edge};
use door::{Door, Manners};

/// Upstream connections that Pingora may try for one request, over all kinds of failures. How many
/// are tried is decided case by case, in [`crate::proxy`].
const MAX_TRIES: usize = 1 + MOST_RETRIES as usize;

/// What one worker serves: its sockets, each with what is expected there, in front of one proxy.
pub struct Server {
    sockets: Vec<(TcpListener, Arc<Door>)>,
    proxy: Arc<HttpProxy<Edge>>,
    limit: Arc<ConnectionLimit>,
    number: usize,
    /// Tells the doors that a connection without a request has to go.
    leave: watch::Sender<bool>,
}

impl Server {
    /// Accepts connections until `closing` says so, and takes those that have waited until then.
    async fn accept(&mut self, closing: &watch::Receiver<bool>) {
        let serving = self.sockets.drain(..).map(|(socket, door)| {
            let closing = closing.clone();
            async move {
                match tokio::net::TcpListener::from_std(socket) {
                    Ok(listener) => accept::serve(listener, door, closing).await,
                    Err(error) => tracing::error!("a listener can't be used: {error}"),
                }
            }
        });
        join_all(serving).await;
    }

    /// Lets go of connections that wait for a request. Those that have one end after it.
    async fn leave(&self) {
        self.limit.close_idle(self.number);
        self.proxy.http_cleanup().await;
        self.leave.send_replace(true);
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sockets = self.sockets.iter().map(|(socket, _)| socket);
        f.debug_list().entries(sockets).finish()
    }
}

/// What the worker `number` of `threads` serves, which keeps its share of `kept` upstream connections and has its
/// share of `sockets`; all of them have as many connections as `limit` says.
///
/// # Errors
/// When the files run out.
pub fn proxy(
    config: &Config,
    edge: Edge,
    sockets: &Sockets,
    limit: &Arc<ConnectionLimit>,
    (number, threads): (usize, usize),
    kept: usize,
) -> io::Result<Server> {
    let configuration = ServerConf {
        // Of this proxy: the workers are proxies of their own.
        threads: 1,
        upstream_keepalive_pool_size: kept.div_ceil(threads),
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

    let (leave, leaving) = watch::channel(false);
    let door = |listener| Door {
        proxy: proxy.clone(),
        shared: shared.clone(),
        client: client.clone(),
        limit: limit.clone(),
        worker: number,
        manners: Manners::of(listener),
        leaving: leaving.clone(),
    };
    let mut own = Vec::new();
    for (address, socket) in sockets.of_worker(number, threads)? {
        let mut listeners = config.listeners.iter();
        if let Some(listener) = listeners.find(|listener| listener.address == address) {
            own.push((socket, Arc::new(door(listener))));
        }
    }
    Ok(Server {
        sockets: own,
        proxy,
        limit: limit.clone(),
        number,
        leave,
    })
}
