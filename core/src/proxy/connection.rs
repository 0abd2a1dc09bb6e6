//! The connection that a request gets: who shares it, and whether it is used again.

use std::net::{IpAddr, SocketAddr};
use std::os::fd::RawFd;

use http::{HeaderValue, header};
use pingora_core::{protocols::Digest, upstreams::peer::HttpPeer};
use pingora_http::RequestHeader;
use pingora_proxy::Session;

use super::{client, context::State};
use crate::{
    config::{PoolConfig, Timeouts},
    generation::Generation,
    pools::{Picked, introduce},
    proxy_protocol::Ends,
};

/// Makes the peer of an endpoint this request's own, where its connection is not for everybody.
pub(super) fn prepare(
    session: &Session,
    generation: &Generation,
    pool: &PoolConfig,
    picked: &Picked,
    peer: &mut HttpPeer,
) {
    if let Some(wear) = picked.wear() {
        wear.begin(peer);
    }
    if let Some(version) = pool.proxy_protocol
        && let Some(ends) = ends(session, generation)
    {
        introduce(peer, version, ends);
    }
}

/// Makes the peer one whose connection becomes a tunnel: silent for longer than a response, and not of HTTP/2,
/// which has no upgrades (RFC 9113 section 8.6).
pub(super) fn prepare_upgrade(timeouts: &Timeouts, peer: &mut HttpPeer) {
    peer.options.read_timeout = Some(timeouts.tunnel);
    if peer.options.alpn.get_min_http_version() == 1 {
        peer.options.set_http_version(1, 1);
    }
}

/// The two ends of the client's connection. The port of a client behind a trusted proxy is not known: 0.
fn ends(session: &Session, generation: &Generation) -> Option<Ends> {
    let peer = session.client_addr()?.as_inet()?;
    let ip: IpAddr = client::ip(session, &generation.config.trusted_proxies);
    let is_peer = ip == peer.ip().to_canonical();
    let own = session.server_addr()?.as_inet()?;
    Some(Ends {
        source: SocketAddr::new(ip, if is_peer { peer.port() } else { 0 }),
        destination: SocketAddr::new(own.ip().to_canonical(), own.port()),
    })
}

/// Notes whether the connection is closed after this request.
pub(super) fn look_at(fd: RawFd, reused: bool, digest: Option<&Digest>, state: &mut State) {
    let wear = state.picked.as_ref().and_then(Picked::wear);
    let is_last = wear.is_some_and(|wear| wear.is_last(fd, reused, digest));
    if is_last {
        state.rare().last_on_connection = true;
    } else if let Some(rare) = &mut state.rare {
        // What was noted of another connection, which failed.
        rare.last_on_connection = false;
    }
}

/// Says so to the upstream. A connection that is upgraded is not used again anyway.
pub(super) fn say_last(state: &State, upstream: &mut RequestHeader) {
    let is_last = state
        .rare
        .as_ref()
        .is_some_and(|rare| rare.last_on_connection);
    if is_last && !upstream.headers.contains_key(header::UPGRADE) {
        let close = HeaderValue::from_static("close");
        let _ = upstream.insert_header(header::CONNECTION, close);
    }
}
