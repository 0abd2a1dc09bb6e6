//! Hosts of sites, and the site of a Host header.

use std::net::Ipv6Addr;

use crate::router::{HostPattern, HostRouter};

/// The most hosts of one input.
const HOSTS: u32 = 32;

/// The input is hosts, one a line, an empty line, and a Host header.
pub fn host(input: &[u8]) {
    let split = input.windows(2).position(|window| window == b"\n\n");
    let (hosts, header) = split.map_or((input, &[][..]), |at| (&input[..at], &input[at + 2..]));
    let hosts = String::from_utf8_lossy(hosts);
    let mut sites: Vec<(HostPattern, u32)> = Vec::new();
    for (text, site) in hosts.lines().zip(0..HOSTS) {
        match HostPattern::parse(text) {
            Ok(pattern) => {
                let again = HostPattern::parse(&pattern.to_string());
                assert_eq!(again.as_ref(), Ok(&pattern), "{text}");
                if !sites.iter().any(|(known, _)| *known == pattern) {
                    sites.push((pattern, site));
                }
            }
            Err(error) => {
                let place = text.get(error.offset..error.offset + error.length);
                assert!(place.is_some(), "{error:?} does not lie in {text:?}");
            }
        }
    }
    let router = HostRouter::build(sites.iter().cloned()).expect("no host is there twice");
    assert_eq!(router.find(header), one_by_one(&sites, header));
}

/// Compares all sites, without a table.
fn one_by_one(sites: &[(HostPattern, u32)], header: &[u8]) -> Option<u32> {
    let named = named(header);
    let best = sites.iter().filter_map(|(pattern, site)| {
        let rank = match (pattern, &named) {
            (HostPattern::Any, _) => 0,
            (HostPattern::Name(name), Some(Named::Name(host))) if **name == **host => usize::MAX,
            (HostPattern::Ipv6(address), Some(Named::Address(host))) if address == host => {
                usize::MAX
            }
            (HostPattern::Wildcard(name), Some(Named::Name(host))) => {
                let labels = host.strip_suffix(&**name)?.strip_suffix('.')?;
                labels
                    .split('.')
                    .all(|label| !label.is_empty())
                    .then_some(())?;
                name.len()
            }
            _ => return None,
        };
        Some((rank, *site))
    });
    best.max_by_key(|(rank, _)| *rank).map(|(_, site)| site)
}

enum Named {
    Name(String),
    Address(Ipv6Addr),
}

fn named(header: &[u8]) -> Option<Named> {
    // Byte by byte: what is no ASCII fits no host.
    let text: String = header.iter().map(|&byte| char::from(byte)).collect();
    let (host, port) = match text.find(']') {
        Some(end) if text.starts_with('[') => text.split_at(end + 1),
        _ => text.split_at(text.find(':').unwrap_or(text.len())),
    };
    let digits = port.strip_prefix(':').unwrap_or(port);
    let has_port = port.is_empty() || port.starts_with(':');
    if !has_port || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    if let Some(address) = host.strip_prefix('[') {
        let address = address.strip_suffix(']')?.parse().ok()?;
        return Some(Named::Address(address));
    }
    let name = host.strip_suffix('.').unwrap_or(host);
    // In characters, each of which was one byte.
    (name.chars().count() <= 253).then(|| Named::Name(name.to_ascii_lowercase()))
}
