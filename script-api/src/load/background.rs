//! `every(interval, fn)`: what runs without a request.

use std::{ops::RangeInclusive, time::Duration};

use rhai::{Engine, FnPtr, NativeCallContext};

use super::draft::{HookDraft, SharedDraft};
use crate::program::HookKind;

/// Shorter ones would be a load that nobody sees.
const INTERVALS: RangeInclusive<Duration> =
    Duration::from_secs(1)..=Duration::from_secs(366 * 24 * 60 * 60);

/// The most background hooks of one program.
const MOST: usize = 64;

/// A background hook as the top level says it.
#[derive(Debug)]
pub(super) struct BackgroundDraft {
    pub(super) hook: HookDraft,
    pub(super) interval: Duration,
}

pub(super) fn register(engine: &mut Engine, draft: &SharedDraft) {
    let shared = draft.clone();
    engine.register_fn(
        "every",
        move |call: NativeCallContext, interval: &str, function: FnPtr| {
            let mut draft = shared.borrow_mut();
            let place = draft.literal(call.call_position(), interval);
            let known = humantime::parse_duration(interval).ok();
            let Some(interval) = known.filter(|interval| INTERVALS.contains(interval)) else {
                let message = match known {
                    None => format!("`{interval}` is no time; write \"30s\" or \"5m\""),
                    Some(_) => format!(
                        "the interval of `every` must be between 1s and 366 days, not {interval}"
                    ),
                };
                draft.error(place, message);
                return;
            };
            if draft.background.len() >= MOST {
                draft.error(
                    place,
                    format!("a program has {MOST} background hooks at the most"),
                );
                return;
            }
            if let Some(hook) = draft.hook(&call, HookKind::Every, function) {
                draft.background.push(BackgroundDraft { hook, interval });
            }
        },
    );
}
