//! `balance` of a pool, and what belongs to it: which target a request gets.

use std::time::Duration;

use edgewright_script::program::HashOn;
use serde::Deserialize;
use toml::Spanned;

use crate::config::check::{Checks, POSITIVE};
use crate::config::units::Time;

/// Which target a request gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Balance {
    /// The one with fewer requests in flight of two random ones. The default: a slow target gets less.
    #[default]
    LeastRequests,
    /// The one of two random ones where the request is likely done first: by its recent latency, of which peaks count
    /// most (an exponentially weighted moving average), times its requests in flight.
    PeakEwma,
    /// One after the other, smoothly where weights differ.
    RoundRobin,
    /// Any.
    Random,
    /// Equal requests get the same one, by a Maglev table.
    Hash,
    /// Equal requests get the same one, by a ring as ketama's.
    RingHash,
}

impl Balance {
    /// Whether equal requests get the same target.
    pub const fn is_hash(self) -> bool {
        matches!(self, Self::Hash | Self::RingHash)
    }
}

/// How many requests in flight a target of a hash may have, as a multiple of its share of all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoadBound(u32);

impl LoadBound {
    /// 1 to 100. Below 1 there would be requests that nobody may have.
    const RANGE: std::ops::RangeInclusive<f64> = 1.0..=100.0;

    /// As given in hundredths.
    #[must_use]
    pub const fn from_hundredths(hundredths: u32) -> Self {
        Self(hundredths)
    }

    /// In hundredths.
    #[must_use]
    pub const fn hundredths(self) -> u32 {
        self.0
    }
}

/// The keys of a pool that are about balancing.
#[derive(Debug, Default)]
pub(super) struct Given {
    pub(super) balance: Option<Balance>,
    pub(super) hash_on: Option<Spanned<String>>,
    pub(super) load_bound: Option<Spanned<f64>>,
    pub(super) slow_start: Option<Spanned<Time>>,
}

/// What those keys amount to.
#[derive(Debug, Default)]
pub(super) struct Taken {
    pub(super) balance: Balance,
    pub(super) hash_on: Option<HashOn>,
    pub(super) load_bound: Option<LoadBound>,
    pub(super) slow_start: Option<Duration>,
}

/// The word in place of what is hashed, when only scripts say it.
const SCRIPT: &str = "script";

/// Takes what the pool called `name` says.
pub(super) fn take(checks: &mut Checks<'_>, name: &Spanned<String>, given: Given) -> Taken {
    let balance = given.balance.unwrap_or_default();
    let mut taken = Taken {
        balance,
        ..Taken::default()
    };
    if balance.is_hash() {
        match &given.hash_on {
            None => checks.error_with_help(
                &name.span(),
                format!(
                    "the pool `{}` balances by a hash, and `hash_on` doesn't say of what",
                    name.get_ref()
                ),
                format!(
                    "write hash_on = {}; or \"{SCRIPT}\" when a `.to` function gives the key with `pick`",
                    HashOn::FORMS
                ),
            ),
            Some(text) if text.get_ref() == SCRIPT => {}
            Some(text) => match HashOn::parse(text.get_ref()) {
                Ok(hash_on) => taken.hash_on = Some(hash_on),
                Err(message) => {
                    checks.error(&text.span(), format!("{message}, or \"{SCRIPT}\""));
                }
            },
        }
        if let Some(bound) = &given.load_bound {
            taken.load_bound = load_bound(checks, bound);
        }
        if let Some(time) = &given.slow_start {
            checks.error(
                &time.span(),
                "`slow_start` has no place beside a hash: keys would go there and back until its end",
            );
        }
        return taken;
    }
    let for_hashes = "`balance` is neither \"hash\" nor \"ring_hash\"";
    for (key, span) in [
        ("hash_on", given.hash_on.map(|text| text.span())),
        ("load_bound", given.load_bound.map(|bound| bound.span())),
    ] {
        if let Some(span) = span {
            checks.error(&span, format!("`{key}` does nothing: {for_hashes}"));
        }
    }
    if given.slow_start.is_some() {
        let mut time = Duration::ZERO;
        let key = format!("pools.{}.slow_start", name.get_ref());
        checks.time(&mut time, &key, given.slow_start, POSITIVE);
        taken.slow_start = Some(time);
    }
    taken
}

fn load_bound(checks: &mut Checks<'_>, given: &Spanned<f64>) -> Option<LoadBound> {
    let bound = *given.get_ref();
    if LoadBound::RANGE.contains(&bound) {
        // At most 10,000.
        return Some(LoadBound((bound * 100.0).round() as u32));
    }
    let (least, most) = LoadBound::RANGE.into_inner();
    checks.error(
        &given.span(),
        format!("`load_bound` must be between {least} and {most}, not {bound}"),
    );
    None
}
