//! What a client or a proxy claims of the way of a request.

use std::net::IpAddr;

use http::header::CONNECTION;
use ipnet::IpNet;
use pingora_http::RequestHeader;

use super::{fields, line};
use crate::proxy::client;

/// The input is the peer's address, trusted networks with commas between, and header fields, a line
/// each.
pub fn forwarded(input: &[u8]) {
    let (peer, rest) = line(input);
    let (networks, rest) = line(rest);
    let headers = fields(rest);
    let Ok(peer) = peer.parse::<IpAddr>() else {
        return;
    };
    let networks = networks.split(',').filter_map(|net| net.parse().ok());
    let trusted: Vec<IpNet> = networks.collect();
    let found = client::behind(peer, &headers, &trusted);

    let lines = headers.get_all("x-forwarded-for").into_iter();
    let list: Vec<&[u8]> = lines
        .flat_map(|line| line.as_bytes().split(|&byte| byte == b','))
        .collect();
    assert_eq!(found, from_the_left(peer, &list, &trusted));

    let Ok(mut request) = RequestHeader::build("GET", b"/", None) else {
        return;
    };
    for (name, value) in &headers {
        let _ = request.append_header(name.clone(), value.clone());
    }
    let named = nominated(&request);
    if client::remove_nominated(&mut request).is_ok() {
        for name in named {
            assert!(
                !request.headers.contains_key(name.as_str()),
                "{name} is there"
            );
        }
        assert!(request.headers.get_all(CONNECTION).iter().count() <= 1);
        for name in ["host", "content-length", "transfer-encoding"] {
            assert_eq!(
                request.headers.contains_key(name),
                headers.contains_key(name)
            );
        }
    }
}

/// Goes through the whole list in its order, and forgets what it has believed at each hop that nobody
/// can vouch for.
fn from_the_left(peer: IpAddr, list: &[&[u8]], trusted: &[IpNet]) -> IpAddr {
    let is_trusted = |address: &IpAddr| trusted.iter().any(|net| net.contains(address));
    let mut client = None;
    for hop in list {
        let address = std::str::from_utf8(hop)
            .ok()
            .map(str::trim)
            .and_then(|hop| {
                let address = hop.parse::<IpAddr>().ok();
                address.or_else(|| Some(hop.parse::<std::net::SocketAddr>().ok()?.ip()))
            });
        client = match address.map(|address| address.to_canonical()) {
            None => None,
            Some(address) if is_trusted(&address) => client.or(Some(address)),
            Some(address) => Some(address),
        };
    }
    if is_trusted(&peer) {
        client.unwrap_or(peer)
    } else {
        peer
    }
}

/// The fields that Connection names and that are not about the connection itself.
fn nominated(request: &RequestHeader) -> Vec<String> {
    let lines = request.headers.get_all(CONNECTION).into_iter();
    let lines = lines.filter_map(|line| line.to_str().ok());
    let names = lines.flat_map(|line| line.split(','));
    let names = names.map(|name| name.trim().to_ascii_lowercase());
    names
        .filter(|name| {
            let plain = ["", "close", "keep-alive", "upgrade", "connection"];
            !plain.contains(&name.as_str())
        })
        .collect()
}
