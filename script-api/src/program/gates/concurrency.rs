//! `.concurrency(..)`: how many requests may be served at a time.

use http::{HeaderValue, StatusCode, header::RETRY_AFTER};

use super::key::GateKey;
use crate::{
    answer::Answer,
    request::Request,
    state::{Concurrency, Identity, Slot},
};

/// Seconds after which a refused client may try again: nobody knows when a slot gets free.
const RETRY: HeaderValue = HeaderValue::from_static("1");

/// One bound of a route.
#[derive(Debug)]
pub struct ConcurrencyGate {
    slots: Concurrency,
    key: GateKey,
    status: StatusCode,
    /// What its state is called, unless a constant holds the slots.
    pub(crate) own: Option<Identity>,
}

impl ConcurrencyGate {
    pub(crate) fn new(
        slots: Concurrency,
        key: GateKey,
        status: StatusCode,
        own: Option<Identity>,
    ) -> Self {
        Self {
            slots,
            key,
            status,
            own,
        }
    }

    /// The slots that it gives out.
    pub fn slots(&self) -> &Concurrency {
        &self.slots
    }

    /// Takes a slot for the request, which is to hold it to its end. `label` is the route's.
    ///
    /// # Errors
    /// With the answer when all are taken.
    pub fn enter(&self, request: &dyn Request, label: &str) -> Result<Slot, Answer> {
        let slot = self.key.with(request, label, |key| self.slots.acquire(key));
        match slot {
            Ok(Some(slot)) => Ok(slot),
            Ok(None) => {
                let mut answer = super::answer(self.status);
                answer.headers.push((RETRY_AFTER, RETRY));
                Err(answer)
            }
            // Not reached: a program whose handles are not bound serves nothing.
            Err(_) => Err(super::answer(StatusCode::INTERNAL_SERVER_ERROR)),
        }
    }
}
