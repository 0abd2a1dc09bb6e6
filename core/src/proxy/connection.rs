//! The connection that a request gets: who shares it, and whether it is used again.

use std::net::{IpAddr, SocketAddr};
use std::os::fd::{OwnedFd, RawFd};

use http::{HeaderMap, HeaderValue, header};
use pingora_core::{
    protocols::Digest,
    upstreams::peer::{HttpPeer, HttpUpstreamRequestPolicy},
};
use pingora_http::{RequestHeader, ResponseHeader};
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

/// Spares Pingora from removing, one by one, fields that are about the client's connection, where there are none: most
/// requests have none, and to look for all of them at once is a tenth of the work.
pub(super) fn prepare_fields(request: &HeaderMap, peer: &mut HttpPeer) {
    if !has_connection_fields(request) {
        peer.options.http_upstream_request_policy = HttpUpstreamRequestPolicy::preserve();
    }
}

/// Whether there is one of the fields that Pingora removes on the way to the upstream.
fn has_connection_fields(headers: &HeaderMap) -> bool {
    headers.keys().any(|name| {
        let name = name.as_str();
        // Few other fields have names of these lengths.
        matches!(name.len(), 2 | 7 | 10 | 14 | 16..=19)
            && matches!(
                name,
                "connection"
                    | "http2-settings"
                    | "keep-alive"
                    | "proxy-authenticate"
                    | "proxy-authorization"
                    | "proxy-connection"
                    | "te"
                    | "trailer"
                    | "transfer-encoding"
                    | "upgrade"
            )
    })
}

/// Whether a client has asked for what an upstream switches to (RFC 9110 section 7.8): all that it names, and something.
pub(super) fn is_wanted(request: &RequestHeader, response: &ResponseHeader) -> bool {
    let named = |headers: &HeaderMap| -> Vec<String> {
        let lines = headers.get_all(header::UPGRADE).iter();
        let lines = lines.map(|line| line.to_str().unwrap_or_default());
        let names = lines.flat_map(|line| line.split(',')).map(str::trim);
        names.map(str::to_ascii_lowercase).collect()
    };
    let wanted = named(&request.headers);
    let given = named(&response.headers);
    !given.is_empty() && given.iter().all(|name| wanted.contains(name))
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

/// Notes whether the connection is closed after this request, and holds back one that asks for an upgrade.
pub(super) fn look_at(fd: RawFd, reused: bool, digest: Option<&Digest>, state: &mut State) {
    if let Some(rare) = &mut state.rare
        && rare.upgrade
    {
        rare.held_back = hold_back(fd);
    }
    let wear = state.picked.as_ref().and_then(Picked::wear);
    let is_last = wear.is_some_and(|wear| wear.is_last(fd, reused, digest));
    if is_last {
        state.rare().last_on_connection = true;
    } else if let Some(rare) = &mut state.rare {
        // What was noted of another connection, which failed.
        rare.last_on_connection = false;
    }
}

/// Keeps the request in the system's buffers until [`let_go`].
///
/// Pingora reads the response while it still has to take notice that the request has no body, in no particular
/// order; when a `101` is there first, it takes that for the end of the tunnel (pingora #946). An origin can't
/// answer a request that hasn't left.
#[cfg(target_os = "linux")]
fn hold_back(fd: RawFd) -> Option<OwnedFd> {
    let connection = super::deadline::own(fd).ok()?;
    // Not on Unix sockets, where there is only the hope that the origin isn't as fast.
    rustix::net::sockopt::set_tcp_cork(&connection, true).ok()?;
    Some(connection)
}

#[cfg(not(target_os = "linux"))]
fn hold_back(_: RawFd) -> Option<OwnedFd> {
    None
}

/// Lets a request that was held back leave, at the next turn of the runtime. To be called when Pingora asks for
/// the body: in the same turn it takes notice that there is none, after it has written the header.
///
/// The system lets go by itself after 200 ms (tcp(7)).
pub(super) fn let_go(state: &mut State) {
    let held_back = state.rare.as_mut().and_then(|rare| rare.held_back.take());
    let Some(_connection) = held_back else {
        return;
    };
    #[cfg(target_os = "linux")]
    tokio::spawn(async move {
        // A connection that is gone holds nothing back.
        let _ = rustix::net::sockopt::set_tcp_cork(&_connection, false);
    });
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn only_what_was_asked_for_becomes_a_tunnel() {
        let is_wanted = |asked: &'static str, given: &[&'static str]| {
            let mut request = RequestHeader::build("GET", b"/", None).unwrap();
            request.insert_header("upgrade", asked).unwrap();
            let mut response = ResponseHeader::build(101, None).unwrap();
            for name in given {
                response.append_header("upgrade", *name).unwrap();
            }
            super::is_wanted(&request, &response)
        };
        assert!(is_wanted("websocket", &["WebSocket"]));
        assert!(is_wanted("h2c, websocket", &["websocket"]));
        assert!(!is_wanted("websocket", &["h2c"]));
        assert!(!is_wanted("websocket", &["websocket", "h2c"]));
        assert!(!is_wanted("websocket", &[]));
    }
}
