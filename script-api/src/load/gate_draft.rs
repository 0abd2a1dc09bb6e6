//! The gates of a route while the top level runs.

use crate::{program::Gates, values::Cidr};

/// What the program has said so far about who may come in, how often and with how much.
#[derive(Debug, Default)]
pub(super) struct GatesDraft {
    pub(super) deny: Option<Cidr>,
    pub(super) allow: Option<Cidr>,
}

impl GatesDraft {
    /// The gates; `None` when there are none, which is what most routes have.
    pub(super) fn build(self) -> Option<Box<Gates>> {
        let Self { deny, allow } = self;
        if deny.is_none() && allow.is_none() {
            return None;
        }
        Some(Box::new(Gates { deny, allow }))
    }
}

/// Adds networks to those that were named before.
pub(super) fn add_networks(known: &mut Option<Cidr>, more: Cidr) {
    *known = Some(match known.take() {
        Some(known) => known.and(&more),
        None => more,
    });
}
