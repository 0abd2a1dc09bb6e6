//! Finds the site of a Host header.

use super::{HostPattern, MAX_NAME};
use hashbrown::HashMap;
use smallvec::SmallVec;
use std::net::Ipv6Addr;

/// Finds the most specific host: exact, then the longest wildcard, then any.
#[derive(Debug, Default)]
pub struct HostRouter {
    names: HashMap<Box<[u8]>, u32>,
    addresses: HashMap<Ipv6Addr, u32>,
    wildcards: HashMap<Box<[u8]>, u32>,
    /// The length of the longest key in `wildcards`, so that a long name is not hashed for each of its dots.
    longest_wildcard: usize,
    any: Option<u32>,
}

/// One host is claimed by two sites.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("two sites have the host `{host}`")]
pub struct DuplicateHost {
    /// The host that both have.
    pub host: HostPattern,
    /// The site that came first.
    pub first: u32,
    /// The site that came later.
    pub second: u32,
}

impl HostRouter {
    /// Builds the router from hosts and the site of each. A site may have several hosts.
    ///
    /// # Errors
    /// A host of two different sites.
    pub fn build(
        hosts: impl IntoIterator<Item = (HostPattern, u32)>,
    ) -> Result<HostRouter, DuplicateHost> {
        let mut router = HostRouter::default();
        for (host, site) in hosts {
            let first = match &host {
                HostPattern::Name(name) => {
                    *router.names.entry(name.as_bytes().into()).or_insert(site)
                }
                HostPattern::Ipv6(address) => *router.addresses.entry(*address).or_insert(site),
                HostPattern::Wildcard(name) => {
                    router.longest_wildcard = router.longest_wildcard.max(name.len());
                    *router
                        .wildcards
                        .entry(name.as_bytes().into())
                        .or_insert(site)
                }
                HostPattern::Any => *router.any.get_or_insert(site),
            };
            if first != site {
                return Err(DuplicateHost {
                    host,
                    first,
                    second: site,
                });
            }
        }
        Ok(router)
    }

    /// The site of all requests, where no other site is for a host of its own: then the Host need not be looked at.
    #[inline]
    pub fn of_every_host(&self) -> Option<u32> {
        let is_alone =
            self.names.is_empty() && self.addresses.is_empty() && self.wildcards.is_empty();
        self.any.filter(|_| is_alone)
    }

    /// The site for the value of a Host header, or for `:authority`: with or without a port, in any case,
    /// with or without a trailing dot. An empty or malformed value belongs to the any-host site.
    /// Never allocates.
    pub fn find(&self, host: impl AsRef<[u8]>) -> Option<u32> {
        self.specific(host.as_ref()).or(self.any)
    }

    fn specific(&self, host: &[u8]) -> Option<u32> {
        if let Some(bracketed) = host.strip_prefix(b"[") {
            let end = memchr::memchr(b']', bracketed)?;
            if !is_port_or_nothing(&bracketed[end + 1..]) {
                return None;
            }
            let address = std::str::from_utf8(&bracketed[..end]).ok()?;
            return self
                .addresses
                .get(&address.parse::<Ipv6Addr>().ok()?)
                .copied();
        }
        let end = memchr::memchr(b':', host).unwrap_or(host.len());
        if !is_port_or_nothing(&host[end..]) {
            return None;
        }
        let name = &host[..end];
        let name = name.strip_suffix(b".").unwrap_or(name);
        if name.len() > MAX_NAME {
            return None;
        }
        if !name.iter().any(u8::is_ascii_uppercase) {
            return self.name(name);
        }
        let mut lower: SmallVec<[u8; 256]> = SmallVec::from_slice(name);
        lower.make_ascii_lowercase();
        self.name(&lower)
    }

    /// `name` is in lower case, without port and trailing dot.
    fn name(&self, name: &[u8]) -> Option<u32> {
        if let Some(&site) = self.names.get(name) {
            return Some(site);
        }
        if self.wildcards.is_empty() {
            return None;
        }
        let mut found = None;
        let mut label = 0;
        for dot in memchr::memchr_iter(b'.', name) {
            if dot == label {
                return None; // an empty label: no name that could stand below another
            }
            label = dot + 1;
            let parent = &name[label..];
            if found.is_none() && parent.len() <= self.longest_wildcard {
                found = self.wildcards.get(parent).copied();
            }
        }
        found
    }
}

/// `:8080`, `:` (RFC 3986 3.2.3 allows an empty port) or nothing.
fn is_port_or_nothing(text: &[u8]) -> bool {
    text.strip_prefix(b":")
        .map_or(text.is_empty(), |port| port.iter().all(u8::is_ascii_digit))
}
