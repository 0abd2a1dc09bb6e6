//! Connections that get old: after a time, or a number of requests, another one is made.
//!
//! With HTTP/1.1 the request that finds its connection worn says `Connection: close`, and it is closed after
//! the answer. HTTP/2 has no such field, and Pingora keeps its connections to itself; but it tells connections
//! apart by a key. So time and requests are counted for the endpoint as a whole, in stretches that no connection
//! outlives: each stretch has a key of its own, and the connections of the one before fall idle.

use std::cell::RefCell;
use std::collections::HashMap;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use pingora_core::protocols::Digest;
use pingora_core::upstreams::peer::HttpPeer;

use crate::config::{PoolConfig, Protocol};
use crate::metrics::shard::Padded;

/// How the connections to one endpoint wear.
#[derive(Debug)]
pub(crate) struct Wear {
    max_age: Option<Duration>,
    max_requests: Option<u32>,
    /// With HTTP/2: since when its time counts, and its requests so far.
    stretches: Option<(Instant, Padded<AtomicU64>)>,
}

thread_local! {
    /// Requests so far on the connections of this worker, by their descriptors. There are no more of these
    /// than open files.
    static USES: RefCell<HashMap<RawFd, u32>> = RefCell::default();
}

impl Wear {
    /// `None` when connections may be used for ever.
    pub(super) fn of(config: &PoolConfig) -> Option<Self> {
        let connections = &config.connections;
        if connections.max_age.is_none() && connections.max_requests.is_none() {
            return None;
        }
        let stretches = (config.protocol != Protocol::Http1).then(|| {
            // Not all endpoints, and not all replicas of the proxy, at the same moment.
            let spread = connections
                .max_age
                .unwrap_or_default()
                .mul_f64(fastrand::f64());
            let now = Instant::now();
            (now.checked_sub(spread).unwrap_or(now), Padded::default())
        });
        Some(Self {
            max_age: connections.max_age,
            max_requests: connections.max_requests,
            stretches,
        })
    }

    /// Before a connection is looked for: gives the peer the key of its stretch.
    pub(crate) fn begin(&self, peer: &mut HttpPeer) {
        let Some((since, requests)) = &self.stretches else {
            return;
        };
        let requests = requests.0.fetch_add(1, Ordering::Relaxed);
        let by_requests = self
            .max_requests
            .map_or(0, |most| requests / u64::from(most));
        let by_age = self.max_age.map_or(0, |most| {
            let passed = since.elapsed().as_millis() / most.as_millis().max(1);
            u64::try_from(passed).unwrap_or(u64::MAX)
        });
        peer.group_key ^= mix(by_age).rotate_left(32) ^ mix(by_requests);
    }

    /// With the connection there: whether this request is its last.
    pub(crate) fn is_last(&self, fd: RawFd, reused: bool, digest: Option<&Digest>) -> bool {
        if self.stretches.is_some() {
            return false;
        }
        let is_old = self.max_age.is_some_and(|most| {
            reused
                && established(digest)
                    .is_some_and(|since| since.elapsed().is_ok_and(|age| age >= most))
        });
        let is_used_up = self.max_requests.is_some_and(|most| {
            USES.with_borrow_mut(|uses| {
                let uses = uses.entry(fd).or_insert(0);
                // A descriptor that is new has none of the requests of one that had its number.
                *uses = if reused { uses.saturating_add(1) } else { 1 };
                *uses >= most
            })
        });
        is_old || is_used_up
    }
}

fn established(digest: Option<&Digest>) -> Option<SystemTime> {
    let timing = digest?.timing_digest.first()?.as_ref()?;
    Some(timing.established_ts)
}

/// Spreads the numbers of stretches over all bits (the finalizer of splitmix64); 0 stays 0.
fn mix(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::collections::HashSet;

    use super::*;
    use crate::config::Connections;

    fn wear(protocol: Protocol, max_requests: u32) -> Wear {
        Wear::of(&PoolConfig {
            protocol,
            connections: Connections {
                max_requests: Some(max_requests),
                ..Connections::default()
            },
            ..PoolConfig::new(Vec::new())
        })
        .unwrap()
    }

    #[test]
    fn the_last_request_of_a_connection_is_known() {
        let wear = wear(Protocol::Http1, 3);
        let last = |fd, reused| wear.is_last(fd, reused, None);
        assert_eq!(
            [last(7, false), last(7, true), last(7, true)],
            [false, false, true]
        );
        // Another connection, and another one with the same descriptor.
        assert!(!last(8, false));
        assert!(!last(7, false));
        assert!(wear_of_one().is_last(9, false, None));
    }

    fn wear_of_one() -> Wear {
        wear(Protocol::Http1, 1)
    }

    #[test]
    fn a_stretch_of_http_2_has_so_many_requests() {
        let wear = wear(Protocol::Http2, 2);
        let keys: Vec<u64> = (0..6)
            .map(|_| {
                let mut peer = HttpPeer::new("127.0.0.1:1", false, String::new());
                wear.begin(&mut peer);
                assert!(!wear.is_last(7, true, None));
                peer.group_key
            })
            .collect();
        assert_eq!(keys.iter().collect::<HashSet<_>>().len(), 3, "{keys:?}");
        assert!(keys.chunks(2).all(|pair| pair[0] == pair[1]), "{keys:?}");
    }

    #[test]
    fn without_bounds_there_is_nothing_to_count() {
        assert!(Wear::of(&PoolConfig::new(Vec::new())).is_none());
    }
}
