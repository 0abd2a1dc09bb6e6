//! `[pools.NAME.retries]`: what is tried again, how often, and how much of it at a time.

use std::time::Duration;

use edgewright_script::program::{MOST_RETRIES, RetryOn};
use serde::Deserialize;
use toml::Spanned;

use crate::config::check::{Checks, OR_ZERO};
use crate::config::units::{Count, Time};

/// Parts of a whole in which [`Retries::budget`] counts.
pub const BUDGET_WHOLE: u32 = 1_000_000;

/// `[pools.NAME.retries]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retries {
    /// `attempts`: attempts after the first, 0 to 10; 0 tries nothing again. Default 2. A route's `.retries`
    /// takes its place.
    pub attempts: u8,
    /// `on`: what is tried again after. Default `["connect"]`: nobody has got the request.
    pub on: RetryOn,
    /// `budget`: the share of the pool's requests in flight that may be retries, in millionths. Default a fifth, as
    /// Envoy and linkerd have it.
    pub budget: u32,
    /// `min_retries`: so many retries at a time are within the budget, however few requests there are; 0 to
    /// 1000. Default 3.
    pub min_retries: usize,
    /// `backoff`: the longest wait before the first retry, which doubles with each further one. Default 25 ms.
    pub backoff: Duration,
    /// `max_backoff`: the longest wait before any retry. Default 250 ms.
    pub max_backoff: Duration,
}

impl Default for Retries {
    fn default() -> Self {
        Self {
            attempts: 2,
            on: RetryOn::default(),
            budget: BUDGET_WHOLE / 5,
            min_retries: 3,
            backoff: Duration::from_millis(25),
            max_backoff: Duration::from_millis(250),
        }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
pub(super) struct Table {
    attempts: Option<Spanned<Count>>,
    on: Option<Spanned<Vec<String>>>,
    budget: Option<Spanned<f64>>,
    min_retries: Option<Spanned<Count>>,
    backoff: Option<Spanned<Time>>,
    max_backoff: Option<Spanned<Time>>,
}

/// Takes the table of the pool whose keys begin with `prefix`.
pub(super) fn take(checks: &mut Checks<'_>, prefix: &str, table: Table) -> Retries {
    let mut retries = Retries::default();
    let prefix = format!("{prefix}.retries");
    let attempts = format!("{prefix}.attempts");
    let most = u64::from(MOST_RETRIES);
    checks.count(&mut retries.attempts, &attempts, table.attempts, 0..=most);
    if let Some(given) = table.on {
        match RetryOn::parse(given.get_ref().iter().map(String::as_str)) {
            Ok(on) => retries.on = on,
            Err(reason) => checks.error(&given.span(), reason),
        }
    }
    if let Some(given) = table.budget {
        match budget(*given.get_ref()) {
            Some(budget) => retries.budget = budget,
            None => checks.error(
                &given.span(),
                format!(
                    "`{prefix}.budget` must be between 0 and 1, not {}",
                    given.get_ref()
                ),
            ),
        }
    }
    let least = format!("{prefix}.min_retries");
    checks.count(
        &mut retries.min_retries,
        &least,
        table.min_retries,
        0..=1000,
    );
    let longest = table.max_backoff.as_ref().or(table.backoff.as_ref());
    let longest = longest.map(Spanned::span);
    for (slot, key, given) in [
        (&mut retries.backoff, "backoff", table.backoff),
        (&mut retries.max_backoff, "max_backoff", table.max_backoff),
    ] {
        checks.time(slot, &format!("{prefix}.{key}"), given, OR_ZERO);
    }
    if let Some(span) = longest
        && retries.max_backoff < retries.backoff
    {
        checks.error(
            &span,
            format!("`{prefix}.max_backoff` must not be shorter than `{prefix}.backoff`"),
        );
    }
    retries
}

/// A share in millionths; `None` when it is none.
fn budget(share: f64) -> Option<u32> {
    // Not a number is in no range.
    (0.0..=1.0)
        .contains(&share)
        .then(|| (share * f64::from(BUDGET_WHOLE)).round() as u32)
}
