//! The PROXY protocol: a header at the beginning of a connection, by which a proxy says whose connection it
//! passes on (HAProxy's `proxy-protocol.txt`, versions 1 and 2).

use std::net::{IpAddr, SocketAddr};

use ppp::{HeaderResult, PartialResult as _, v1, v2};

use crate::config::ProxyProtocol;

/// The most bytes that a header may have here. Addresses take 52 at most; what else there may be
/// (TLVs) is passed over.
pub(crate) const LONGEST: usize = 4096;

/// The longest header of version 1, its line end included (section 2.1).
const LONGEST_LINE: usize = 107;

/// Whose connection it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ends {
    /// Who has connected.
    pub(crate) source: SocketAddr,
    /// Where to.
    pub(crate) destination: SocketAddr,
}

/// What stands at the beginning of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Beginning {
    /// The beginning of a header: more must come.
    Part,
    /// A header of this many bytes. No ends: the proxy speaks for itself, or of no TCP connection.
    Header(usize, Option<Ends>),
    /// No header, or one that is too long.
    Other,
}

/// Looks at the first bytes of a connection.
pub(crate) fn read(bytes: &[u8]) -> Beginning {
    // The library takes a line that ends in the middle of a number for a wrong one.
    if bytes.starts_with(b"PROXY ") {
        let line = &bytes[..bytes.len().min(LONGEST_LINE)];
        if memchr::memmem::find(line, b"\r\n").is_none() {
            return match line.len() {
                LONGEST_LINE => Beginning::Other,
                _ => Beginning::Part,
            };
        }
    }
    let parsed = HeaderResult::parse(bytes);
    if parsed.is_incomplete() {
        return if bytes.len() < LONGEST {
            Beginning::Part
        } else {
            Beginning::Other
        };
    }
    match parsed {
        HeaderResult::V1(Ok(header)) => {
            Beginning::Header(header.header.len(), of_v1(&header.addresses))
        }
        // A datagram has no connection.
        HeaderResult::V2(Ok(header)) if header.protocol == v2::Protocol::Datagram => {
            Beginning::Other
        }
        HeaderResult::V2(Ok(header)) if header.len() > LONGEST => Beginning::Other,
        HeaderResult::V2(Ok(header)) => {
            let speaks = header.command == v2::Command::Proxy;
            let ends = of_v2(&header.addresses).filter(|_| speaks);
            Beginning::Header(header.len(), ends)
        }
        HeaderResult::V1(Err(_)) | HeaderResult::V2(Err(_)) => Beginning::Other,
    }
}

fn of_v1(addresses: &v1::Addresses) -> Option<Ends> {
    Some(match addresses {
        v1::Addresses::Unknown => return None,
        v1::Addresses::Tcp4(ip) => ends(
            (ip.source_address, ip.source_port),
            (ip.destination_address, ip.destination_port),
        ),
        v1::Addresses::Tcp6(ip) => ends(
            (ip.source_address, ip.source_port),
            (ip.destination_address, ip.destination_port),
        ),
    })
}

fn of_v2(addresses: &v2::Addresses) -> Option<Ends> {
    Some(match addresses {
        v2::Addresses::Unspecified | v2::Addresses::Unix(_) => return None,
        v2::Addresses::IPv4(ip) => ends(
            (ip.source_address, ip.source_port),
            (ip.destination_address, ip.destination_port),
        ),
        v2::Addresses::IPv6(ip) => ends(
            (ip.source_address, ip.source_port),
            (ip.destination_address, ip.destination_port),
        ),
    })
}

fn ends(source: impl Into<SocketAddr>, destination: impl Into<SocketAddr>) -> Ends {
    Ends {
        source: source.into(),
        destination: destination.into(),
    }
}

/// The header for a connection of these ends; for one of the proxy's own without them.
pub(crate) fn write(version: ProxyProtocol, ends: Option<Ends>) -> Vec<u8> {
    let ends = ends.map(one_family);
    match version {
        ProxyProtocol::V1 => {
            let addresses = ends.map_or(v1::Addresses::Unknown, |ends| {
                v1::Addresses::from((ends.source, ends.destination))
            });
            addresses.to_string().into_bytes()
        }
        ProxyProtocol::V2 => {
            let (command, protocol, addresses) = match ends {
                Some(ends) => (
                    v2::Command::Proxy,
                    v2::Protocol::Stream,
                    v2::Addresses::from((ends.source, ends.destination)),
                ),
                None => (
                    v2::Command::Local,
                    v2::Protocol::Unspecified,
                    v2::Addresses::Unspecified,
                ),
            };
            let header =
                v2::Builder::with_addresses(v2::Version::Two | command, protocol, addresses);
            // It only fails for more than 64 KiB.
            header.build().unwrap_or_default()
        }
    }
}

/// Both ends as addresses of one family, which is all that a header has room for.
fn one_family(ends: Ends) -> Ends {
    if ends.source.is_ipv4() == ends.destination.is_ipv4() {
        return ends;
    }
    let mapped = |address: SocketAddr| match address.ip() {
        IpAddr::V4(ip) => SocketAddr::new(ip.to_ipv6_mapped().into(), address.port()),
        IpAddr::V6(_) => address,
    };
    Ends {
        source: mapped(ends.source),
        destination: mapped(ends.destination),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn of(source: &str, destination: &str) -> Ends {
        ends(
            source.parse::<SocketAddr>().unwrap(),
            destination.parse::<SocketAddr>().unwrap(),
        )
    }

    #[test]
    fn what_is_written_is_read_the_same() {
        for version in [ProxyProtocol::V1, ProxyProtocol::V2] {
            for ends in [
                None,
                Some(of("192.0.2.1:1234", "10.0.0.1:80")),
                Some(of("[2001:db8::1]:65535", "[fd00::1]:1")),
            ] {
                let mut bytes = write(version, ends);
                let length = bytes.len();
                assert_eq!(read(&bytes), Beginning::Header(length, ends));
                for cut in 0..length {
                    assert_eq!(
                        read(&bytes[..cut]),
                        Beginning::Part,
                        "{version:?} {ends:?} {cut}"
                    );
                }
                bytes.extend_from_slice(b"GET / HTTP/1.1\r\n\r\n");
                assert_eq!(read(&bytes), Beginning::Header(length, ends));
            }
        }
    }

    #[test]
    fn ends_of_two_families_become_one() {
        let ends = of("192.0.2.1:1", "[fd00::1]:2");
        let Beginning::Header(_, Some(read)) = read(&write(ProxyProtocol::V2, Some(ends))) else {
            panic!("no header");
        };
        assert_eq!(read, of("[::ffff:192.0.2.1]:1", "[fd00::1]:2"));
    }

    #[test]
    fn what_is_no_header_is_seen_at_once() {
        for bytes in [
            &b"GET / HTTP/1.1\r\n"[..],
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
            b"PROXY TCP4 192.0.2.1 10.0.0.1 x 80\r\n",
            b"PROXY TCP4 192.0.2.256 10.0.0.1 1 80\r\n",
            b"PROXY UDP4 192.0.2.1 10.0.0.1 1 80\r\n",
            b"\r\n\r\n\0\r\nQUIT\n\x31\x11\0\x0c",
            b"\x16\x03\x01",
        ] {
            assert_eq!(read(bytes), Beginning::Other, "{bytes:?}");
        }
        let endless = [&b"PROXY "[..], &[b'a'; 200]].concat();
        assert_eq!(read(&endless), Beginning::Other);
    }

    #[test]
    fn a_header_is_bounded() {
        let mut header = write(ProxyProtocol::V2, Some(of("192.0.2.1:1", "10.0.0.1:2")));
        header[14..16].copy_from_slice(&u16::MAX.to_be_bytes());
        header.resize(LONGEST, 0);
        assert_eq!(read(&header), Beginning::Other);
        assert_eq!(read(&header[..LONGEST - 1]), Beginning::Part);
    }
}
