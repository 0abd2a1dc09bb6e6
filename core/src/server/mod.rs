//! The worker threads.
//!
//! Each worker is a whole small server: its own thread with its own runtime, its own listening
//! sockets (the kernel spreads connections over them, SO_REUSEPORT; [`Sockets`]), its own Pingora proxy with its
//! own kept upstream connections. Nothing that a request needs belongs to another thread.
//!
//! Pingora's own `Server` is not used: its threads share one pool of upstream connections, which
//! loses kept ones when they move between threads; it sleeps on SIGTERM; and it panics when an
//! address is taken.

mod door;
mod sockets;
mod spoken;
mod workers;

use std::{collections::BTreeMap, io, os::fd::IntoRawFd as _, sync::Arc};

use edgewright_script::program::MOST_RETRIES;
use pingora_core::{
    apps::HttpServerOptions,
    listeners::ListenerConfig,
    protocols::http::v2::server::default_h2_options,
    server::{Fds, ListenFds, configuration::ServerConf},
    services::listening::Service as ListeningService,
};
use pingora_proxy::HttpProxy;
use tokio::sync::watch;

pub use door::Door;
pub use sockets::Sockets;
pub use workers::{Serving, Workers};

use crate::{config::Config, outbound::NO_CERTIFICATES, proxy::Edge};
use door::Manners;

/// Upstream connections that Pingora may try for one request, over all kinds of failures. How many
/// are tried is decided case by case, in [`crate::proxy`].
const MAX_TRIES: usize = 1 + MOST_RETRIES as usize;

/// What the worker `number` of `threads` serves with, which keeps its share of `kept` upstream connections: one
/// service for the listeners of each kind, all in front of one proxy, with the worker's share of `sockets`.
///
/// # Errors
/// When the files run out.
pub fn proxy(
    config: &Config,
    edge: Edge,
    sockets: &Sockets,
    (number, threads): (usize, usize),
    kept: usize,
) -> io::Result<Serving> {
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
    let shared = edge.shared().clone();
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
    let door = |manners| Door {
        proxy: proxy.clone(),
        shared: shared.clone(),
        manners,
        leaving: leaving.clone(),
    };
    let mut services = BTreeMap::new();
    let mut fds = Fds::new();
    let mut late = Vec::new();
    for (address, socket) in sockets.of_worker(number, threads)? {
        let listener = config.listeners.iter();
        let Some(listener) = { listener }.find(|listener| listener.address == address) else {
            continue;
        };
        let manners = Manners::of(listener);
        let service = services.entry(manners).or_insert_with(|| {
            ListeningService::new("proxy".to_owned(), door(manners))
        });
        late.push((socket.try_clone()?, Arc::new(door(manners))));
        // Found by this name, and not bound anew. Two sockets of one address need two names.
        let name = format!("{address} #{}", late.len());
        fds.add(name.clone(), socket.into_raw_fd());
        service.add_listener(ListenerConfig::tcp(name));
    }
    Ok(Serving {
        services: services.into_values().collect(),
        fds: ListenFds::new(fds.into()),
        late,
        proxy,
        leave,
    })
}
