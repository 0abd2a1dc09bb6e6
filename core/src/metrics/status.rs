//! Response status codes as counter slots.

use std::sync::atomic::{AtomicU64, Ordering};

/// The codes that get a label of their own: the IANA registry of HTTP status codes (RFC 9110
/// section 16.2.1, as of 2025) and 499, nginx's word for "the client went away before the answer".
const CODES: [u16; 63] = [
    100, 101, 102, 103, 200, 201, 202, 203, 204, 205, 206, 207, 208, 226, 300, 301, 302, 303, 304,
    305, 307, 308, 400, 401, 402, 403, 404, 405, 406, 407, 408, 409, 410, 411, 412, 413, 414, 415,
    416, 417, 418, 421, 422, 423, 424, 425, 426, 428, 429, 431, 451, 499, 500, 501, 502, 503, 504,
    505, 506, 507, 508, 510, 511,
];

/// The slot of everything else.
const OTHER: usize = CODES.len();
const SLOTS: usize = CODES.len() + 1;
const FIRST: u16 = 100;

/// Slot by `code - 100`.
static SLOT: [u8; 500] = slots();

const fn slots() -> [u8; 500] {
    let mut table = [OTHER as u8; 500];
    let mut i = 0;
    while i < CODES.len() {
        table[(CODES[i] - FIRST) as usize] = i as u8;
        i += 1;
    }
    table
}

/// One counter per status code: 512 bytes.
#[derive(Debug)]
pub struct StatusCounters([AtomicU64; SLOTS]);

impl Default for StatusCounters {
    fn default() -> Self {
        Self([const { AtomicU64::new(0) }; SLOTS])
    }
}

impl StatusCounters {
    /// Counts one response. A code without a label of its own counts as `other`.
    #[inline]
    pub fn add(&self, status: u16) {
        let slot = match SLOT.get(usize::from(status.wrapping_sub(FIRST))) {
            Some(slot) => usize::from(*slot),
            None => OTHER,
        };
        self.0[slot].fetch_add(1, Ordering::Relaxed);
    }
}

/// The sums over all shards, as (label, count); codes never seen are left out.
pub fn totals<'a>(shards: impl Iterator<Item = &'a StatusCounters>) -> Vec<(String, u64)> {
    let mut sums = [0u64; SLOTS];
    for shard in shards {
        for (sum, counter) in sums.iter_mut().zip(&shard.0) {
            *sum += counter.load(Ordering::Relaxed);
        }
    }
    let labels = CODES.iter().map(u16::to_string);
    labels
        .chain(std::iter::once("other".to_owned()))
        .zip(sums)
        .filter(|(_, sum)| *sum > 0)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_its_own_label() {
        let counters = StatusCounters::default();
        for code in CODES {
            counters.add(code);
        }
        let totals = totals(std::iter::once(&counters));
        let expected: Vec<_> = CODES.iter().map(|code| (code.to_string(), 1)).collect();
        assert_eq!(totals, expected);
    }

    #[test]
    fn unregistered_and_impossible_codes_are_other() {
        let counters = StatusCounters::default();
        for code in [0, 99, 104, 299, 306, 498, 599, 600, 999, u16::MAX] {
            counters.add(code);
        }
        assert_eq!(
            totals(std::iter::once(&counters)),
            [("other".to_owned(), 10)]
        );
    }
}
