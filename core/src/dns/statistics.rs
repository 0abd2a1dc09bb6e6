//! What is told about the lookups of a name, beside their answer.

use std::net::IpAddr;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::kind::Kind;
use super::outcome::{LookupResult, Outcome};
use super::snapshot::LookupCount;

/// Refused addresses that are shown for each record type.
const MOST_SHOWN: usize = 16;

const KINDS: usize = Kind::ALL.len();

/// The lookups of one name.
#[derive(Debug, Default)]
pub(super) struct Statistics {
    lookups: [[u64; LookupResult::ALL.len()]; KINDS],
    /// On the clock that nobody sets: schedules don't follow a jump of the other one.
    next: [Option<Instant>; KINDS],
    last_success: Option<SystemTime>,
    pub(super) last_error: Option<String>,
    /// Of the last answer of each record type.
    refused: [Vec<IpAddr>; KINDS],
    refused_total: u64,
    pub(super) stale: bool,
    pub(super) ttl: Option<Duration>,
    /// Everything was tried, something failed, and there is no answer.
    pub(super) unanswered: bool,
}

impl Statistics {
    /// Counts a refresh.
    pub(super) fn count<R>(&mut self, kind: Kind, outcome: &Outcome<R>) {
        self.lookups[kind as usize][outcome.result() as usize] += 1;
        match outcome {
            Outcome::Records { .. } => self.last_success = Some(SystemTime::now()),
            Outcome::Failed(failure) => self.last_error = Some(failure.detail.clone()),
            Outcome::Empty { .. } => {}
        }
    }

    /// Notes the addresses that the last answer of this type had and that are not used. True when
    /// there are some and the answer before had none.
    pub(super) fn refuse(&mut self, kind: Kind, mut refused: Vec<IpAddr>) -> bool {
        self.refused_total += refused.len() as u64;
        refused.truncate(MOST_SHOWN);
        let slot = &mut self.refused[kind as usize];
        let begins = slot.is_empty() && !refused.is_empty();
        *slot = refused;
        begins
    }

    /// The addresses that are not used although the last answers had them; a few at the most.
    pub(super) fn refused(&self) -> Vec<IpAddr> {
        self.refused.concat()
    }

    /// Such addresses in all answers so far.
    pub(super) fn refused_total(&self) -> u64 {
        self.refused_total
    }

    /// Notes when records of this type are asked for next; `None` for not by the clock.
    pub(super) fn schedule(&mut self, kind: Kind, next: Option<Duration>) {
        self.next[kind as usize] = next.map(|delay| Instant::now() + delay);
    }

    /// Seconds until the next lookup of any type; 0 while one is under way.
    pub(super) fn next_refresh(&self) -> Option<f64> {
        let next = self.next.iter().flatten().min()?;
        Some(next.saturating_duration_since(Instant::now()).as_secs_f64())
    }

    /// When DNS last gave records: seconds since the Unix epoch.
    pub(super) fn last_success(&self) -> Option<f64> {
        let since = self.last_success?.duration_since(UNIX_EPOCH);
        since.ok().map(|time| time.as_secs_f64())
    }

    /// Refreshes by record type and result; none that are zero.
    pub(super) fn lookups(&self) -> Vec<LookupCount> {
        let mut lookups = Vec::new();
        for kind in Kind::ALL {
            for (result, count) in LookupResult::ALL.iter().zip(self.lookups[kind as usize]) {
                if count > 0 {
                    lookups.push(LookupCount {
                        record_type: kind.label(),
                        result: result.label(),
                        count,
                    });
                }
            }
        }
        lookups
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refused_addresses_are_told_once_until_they_are_gone() {
        let mut statistics = Statistics::default();
        let address = |n: u8| IpAddr::from([169, 254, 0, n]);
        assert!(statistics.refuse(Kind::A, vec![address(1)]));
        assert!(!statistics.refuse(Kind::A, vec![address(2)]));
        assert!(!statistics.refuse(Kind::Aaaa, Vec::new()));
        assert_eq!(statistics.refused(), [address(2)]);
        assert!(!statistics.refuse(Kind::A, Vec::new()));
        assert!(statistics.refused().is_empty());
        assert!(statistics.refuse(Kind::A, (0..20).map(address).collect()));
        assert_eq!(statistics.refused().len(), MOST_SHOWN);
        assert_eq!(statistics.refused_total(), 22);
    }

    #[test]
    fn the_next_refresh_is_the_sooner_one() {
        let mut statistics = Statistics::default();
        assert_eq!(statistics.next_refresh(), None);
        statistics.schedule(Kind::A, Some(Duration::from_secs(100)));
        statistics.schedule(Kind::Aaaa, Some(Duration::from_secs(50)));
        assert!(
            statistics
                .next_refresh()
                .is_some_and(|next| next <= 50.0 && next > 1.0)
        );
        statistics.schedule(Kind::Aaaa, None);
        assert!(statistics.next_refresh().is_some_and(|next| next > 50.0));
    }
}
