//! Who sent a request, and what upstreams are told of it.

use std::net::{IpAddr, Ipv4Addr};

use http::{
    HeaderMap, HeaderName, HeaderValue,
    header::{CONNECTION, HOST},
};
use ipnet::IpNet;
use pingora_http::RequestHeader;
use pingora_proxy::Session;

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

/// Fields by which a client could claim what only a trusted proxy may say, and that are not
/// written anew here. There is no need for an X-Forwarded-Host: the Host itself goes along.
const CLAIMS: [HeaderName; 4] = [
    http::header::FORWARDED,
    HeaderName::from_static("x-forwarded-host"),
    HeaderName::from_static("x-forwarded-port"),
    HeaderName::from_static("x-real-ip"),
];

/// The address of the other end of the connection; `None` for a Unix socket.
pub(super) fn peer_ip(session: &Session) -> Option<IpAddr> {
    let address = session.client_addr()?.as_inet()?;
    Some(address.ip().to_canonical())
}

/// The client's address: the peer's, or, when that is a trusted proxy, the right-most address in
/// X-Forwarded-For that is none. Text that is no address ends the search: what stands left of it
/// can't be believed.
pub(super) fn ip(session: &Session, trusted: &[IpNet]) -> IpAddr {
    let Some(peer) = peer_ip(session) else {
        return IpAddr::V4(Ipv4Addr::UNSPECIFIED);
    };
    behind(peer, &session.req_header().headers, trusted)
}

/// The right-most address that is not trusted, seen from `peer`.
pub(super) fn behind(peer: IpAddr, headers: &HeaderMap, trusted: &[IpNet]) -> IpAddr {
    if !is_trusted(peer, trusted) {
        return peer;
    }
    let lines = headers.get_all(X_FORWARDED_FOR);
    // Several lines read as one list (RFC 9110 section 5.3), so the last line is the nearest.
    let lines: Vec<&HeaderValue> = lines.into_iter().collect();
    let hops = lines.iter().rev().flat_map(|line| {
        let hops = line.as_bytes().rsplit(|&byte| byte == b',');
        hops.map(|hop| std::str::from_utf8(hop).ok().and_then(hop_address))
    });
    let mut nearest = peer;
    for hop in hops {
        match hop {
            None => return nearest,
            Some(address) => nearest = address,
        }
        if !is_trusted(nearest, trusted) {
            return nearest;
        }
    }
    nearest
}

/// An address as proxies write it: bare, or with a port.
fn hop_address(text: &str) -> Option<IpAddr> {
    let text = text.trim();
    let address = text
        .parse::<IpAddr>()
        .or_else(|_| {
            text.parse::<std::net::SocketAddr>()
                .map(|address| address.ip())
        })
        .ok()?;
    Some(address.to_canonical())
}

/// Whether an address lies in one of these networks.
pub(crate) fn is_trusted(address: IpAddr, trusted: &[IpNet]) -> bool {
    trusted.iter().any(|net| net.contains(&address))
}

/// `http` or `https`.
pub(super) fn scheme(session: &Session) -> &'static str {
    let encrypted = session
        .digest()
        .is_some_and(|digest| digest.ssl_digest.is_some());
    if encrypted { "https" } else { "http" }
}

/// The host that is asked for, without a port. In its normal form, because [`normalize_host`] ran.
pub(super) fn host(header: &RequestHeader) -> &str {
    let host = header
        .headers
        .get(HOST)
        .and_then(|value| value.to_str().ok())
        .or_else(|| header.uri.authority().map(http::uri::Authority::as_str))
        .unwrap_or_default();
    let name_end = match host.strip_prefix('[') {
        Some(bracketed) => bracketed.find(']').map_or(host.len(), |end| end + 2),
        None => memchr::memchr(b':', host.as_bytes()).unwrap_or(host.len()),
    };
    &host[..name_end]
}

/// Writes the Host in its one form, for matching, scripts and the upstream: lower case, without the
/// dot of the root (RFC 9110 section 4.2.3 knows no case; names with and without the dot are the
/// same), IPv6 addresses as RFC 5952 writes them. The checks have found it to be a host.
pub(super) fn normalize_host(header: &mut RequestHeader) {
    let Some(host) = header.headers.get(HOST).and_then(|host| host.to_str().ok()) else {
        return;
    };
    let normal = match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, port)) => match address.parse::<std::net::Ipv6Addr>() {
            Ok(address) => format!("[{address}]{port}"),
            Err(_) => return,
        },
        None => {
            let (name, port) = host.split_at(host.find(':').unwrap_or(host.len()));
            let name = name.strip_suffix('.').unwrap_or(name);
            format!("{}{port}", name.to_ascii_lowercase())
        }
    };
    if let Ok(normal) = HeaderValue::try_from(normal) {
        let _ = header.insert_header(HOST, normal);
    }
}

/// Takes out the fields that Connection names, as an intermediary must (RFC 9110 section 7.6.1).
/// It is done before any hook runs: what a hook sets, a client must not be able to name away.
///
/// # Errors
/// When it names what no request may lose: the Host, or how long its body is. Without the latter
/// the body would be taken for the next request.
pub(super) fn remove_nominated(header: &mut RequestHeader) -> Result<(), &'static str> {
    let mut named = Vec::new();
    let mut kept = Vec::new();
    for line in header.headers.get_all(CONNECTION) {
        for name in line.to_str().unwrap_or_default().split(',').map(str::trim) {
            if super::hygiene::is_plain_connection(name.as_bytes()) {
                kept.push(name.to_ascii_lowercase());
            } else if !name.is_empty() {
                named.push(name.to_ascii_lowercase());
            }
        }
    }
    for name in &named {
        if matches!(
            name.as_str(),
            "host" | "content-length" | "transfer-encoding"
        ) {
            return Err("Connection names the Host or the length of the body");
        }
        header.remove_header(name.as_str());
    }
    header.remove_header(&CONNECTION);
    if !kept.is_empty() {
        let _ = header.insert_header(CONNECTION, kept.join(", "));
    }
    Ok(())
}

/// Tells the upstream who asks. What an untrusted peer claims is overwritten or removed, what a
/// trusted proxy says is kept and added to. `claims` says whether the request has any such field.
///
/// It is the client's own request that is changed, before Pingora copies it for the upstream: the
/// copy has no room for more fields and would be moved to a larger place.
pub(super) fn forward(session: &mut Session, trusted: &[IpNet], claims: bool) {
    let Some(peer) = peer_ip(session) else {
        return;
    };
    let scheme = scheme(session);
    let header = session.req_header_mut();
    let mut chain = String::with_capacity(48);
    let mut scheme_is_told = false;
    if claims && is_trusted(peer, trusted) {
        for line in header.headers.get_all(X_FORWARDED_FOR) {
            if let Ok(line) = line.to_str() {
                chain.push_str(line);
                chain.push_str(", ");
            }
        }
        scheme_is_told = header.headers.contains_key(X_FORWARDED_PROTO);
    } else if claims {
        for claim in &CLAIMS {
            header.remove_header(claim);
        }
    }
    push_address(&mut chain, peer);
    // The names as text: Pingora would copy that of a `HeaderName`.
    if let Ok(chain) = HeaderValue::try_from(chain) {
        let _ = header.insert_header("X-Forwarded-For", chain);
    }
    if !scheme_is_told {
        let _ = header.insert_header("X-Forwarded-Proto", HeaderValue::from_static(scheme));
    }
}

/// Removes fields that CGI, WSGI and their like take for those by which proxies say whom they speak for:
/// they make `_` of each `-`. Nobody sends these in good faith.
#[cold]
pub(super) fn remove_odd_claims(header: &mut RequestHeader) {
    let is_odd = |name: &&HeaderName| {
        let text = name.as_str();
        let dashed = text.replace('_', "-");
        text.contains('_') && (dashed.starts_with("x-forwarded-") || dashed.starts_with("x-real-"))
    };
    let odd: Vec<HeaderName> = header.headers.keys().filter(is_odd).cloned().collect();
    for name in odd {
        header.remove_header(&name);
    }
}

/// Writes an address. Most are IPv4, and `Display` takes five times as long for those.
fn push_address(text: &mut String, address: IpAddr) {
    match address {
        IpAddr::V4(address) => {
            for (index, octet) in address.octets().into_iter().enumerate() {
                if index > 0 {
                    text.push('.');
                }
                text.push_str(itoa::Buffer::new().format(octet));
            }
        }
        IpAddr::V6(address) => text.push_str(&address.to_string()),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn hosts_have_one_form() {
        for (sent, normal) in [
            ("Admin.Example.COM.", "admin.example.com"),
            ("admin.com.:81", "admin.com:81"),
            ("[0:0:0:0:0:0:0:1]:80", "[::1]:80"),
        ] {
            let mut header = RequestHeader::build("GET", b"/", None).unwrap();
            header.insert_header(HOST, sent).unwrap();
            normalize_host(&mut header);
            assert_eq!(header.headers[HOST], normal);
        }
    }

    #[test]
    fn what_connection_names_is_gone_before_hooks() {
        let mut header = RequestHeader::build("GET", b"/", None).unwrap();
        header.append_header(CONNECTION, "close, X-Client").unwrap();
        header.append_header(CONNECTION, "authorization").unwrap();
        for name in ["x-client", "authorization", "x-kept"] {
            header.insert_header(name, "1").unwrap();
        }
        remove_nominated(&mut header).unwrap();
        let names: Vec<&str> = header.headers.keys().map(|name| name.as_str()).collect();
        assert_eq!(names, ["x-kept", "connection"]);
        for kept in ["host", "close, Content-Length", "transfer-encoding"] {
            header.insert_header(CONNECTION, kept).unwrap();
            assert!(remove_nominated(&mut header).is_err(), "{kept}");
        }
    }

    #[test]
    fn addresses_are_written_as_the_library_does() {
        for text in ["0.0.0.0", "10.1.20.255", "2001:db8::1", "::1"] {
            let mut written = String::new();
            push_address(&mut written, text.parse().unwrap());
            assert_eq!(written, text);
        }
    }

    #[test]
    fn hops_are_addresses_with_or_without_a_port() {
        let canonical = |text| hop_address(text).map(|address| address.to_string());
        assert_eq!(canonical(" 192.0.2.1 ").as_deref(), Some("192.0.2.1"));
        assert_eq!(canonical("192.0.2.1:80").as_deref(), Some("192.0.2.1"));
        assert_eq!(
            canonical("[2001:db8::1]:80").as_deref(),
            Some("2001:db8::1")
        );
        assert_eq!(canonical("::ffff:10.0.0.1").as_deref(), Some("10.0.0.1"));
        assert_eq!(canonical("unknown"), None);
    }
}
