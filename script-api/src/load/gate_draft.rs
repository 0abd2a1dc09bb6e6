//! The gates of a route while the top level runs.

use std::time::Duration;

use hashbrown::HashMap;
use http::{HeaderValue, StatusCode};

use crate::{
    program::{ConcurrencyGate, Cors, GateKey, Gates, LimitGate, Origins},
    state::{Concurrency, Identity, Rate},
    values::Cidr,
};

/// What the program has said so far about who may come in, how often and with how much.
#[derive(Debug, Default)]
pub(super) struct GatesDraft {
    pub(super) cors: Option<CorsDraft>,
    pub(super) deny: Option<Cidr>,
    pub(super) allow: Option<Cidr>,
    pub(super) max_body: Option<u64>,
    pub(super) limits: Vec<CountDraft<Rate>>,
    pub(super) concurrency: Vec<CountDraft<Concurrency>>,
}

/// A gate that counts.
#[derive(Debug)]
pub(super) struct CountDraft<S> {
    pub(super) state: S,
    /// Whether it was made for this route alone, so that no constant names it.
    pub(super) own: bool,
    pub(super) key: GateKey,
    pub(super) status: StatusCode,
}

/// What `.cors` was given; methods that are not given are the route's.
#[derive(Debug)]
pub(super) struct CorsDraft {
    pub(super) origins: Origins,
    pub(super) credentials: bool,
    pub(super) methods: Option<HeaderValue>,
    pub(super) headers: Option<HeaderValue>,
    pub(super) expose: Option<HeaderValue>,
    pub(super) max_age: Option<Duration>,
}

/// How many routes have had gates with state of their own, by label and methods.
#[derive(Debug, Default)]
pub(super) struct GateNames(HashMap<(String, String), usize>);

impl GatesDraft {
    /// The gates; `None` when there are none, which is what most routes have.
    pub(super) fn build(
        self,
        label: &str,
        methods: &[String],
        names: &mut GateNames,
    ) -> Option<Box<Gates>> {
        let Self {
            cors,
            deny,
            allow,
            max_body,
            limits,
            concurrency,
        } = self;
        let has_own =
            limits.iter().any(|limit| limit.own) || concurrency.iter().any(|bound| bound.own);
        let counts = !limits.is_empty() || !concurrency.is_empty();
        let others = cors.is_some() || deny.is_some() || allow.is_some() || max_body.is_some();
        if !counts && !others {
            return None;
        }
        let route = if has_own {
            names.next(label, methods)
        } else {
            0
        };
        let identity = |gate: &'static str, nth: usize| Identity::Gate {
            gate,
            label: label.to_owned(),
            methods: methods.join(","),
            route,
            nth,
        };
        Some(Box::new(Gates {
            cors: cors.map(|cors| cors.build(methods)),
            deny,
            allow,
            max_body,
            limits: limits
                .into_iter()
                .enumerate()
                .map(|(nth, limit)| {
                    let own = limit.own.then(|| identity("limit", nth));
                    LimitGate::new(limit.state, limit.key, limit.status, own)
                })
                .collect(),
            concurrency: concurrency
                .into_iter()
                .enumerate()
                .map(|(nth, bound)| {
                    let own = bound.own.then(|| identity("concurrency", nth));
                    ConcurrencyGate::new(bound.state, bound.key, bound.status, own)
                })
                .collect(),
        }))
    }
}

impl CorsDraft {
    fn build(self, methods: &[String]) -> Cors {
        // Methods of a route are tokens.
        let own = (!methods.is_empty()).then(|| HeaderValue::try_from(methods.join(", ")).ok());
        Cors {
            origins: self.origins,
            credentials: self.credentials,
            // What a form could send anyway, without any preflight.
            methods: self
                .methods
                .or_else(|| own.flatten())
                .unwrap_or(HeaderValue::from_static("GET, HEAD, POST")),
            headers: self.headers,
            expose: self.expose,
            max_age: self.max_age,
        }
    }
}

impl GateNames {
    fn next(&mut self, label: &str, methods: &[String]) -> usize {
        let known = self.0.entry((label.to_owned(), methods.join(",")));
        let count = known.or_default();
        *count += 1;
        *count - 1
    }
}

/// Adds networks to those that were named before.
pub(super) fn add_networks(known: &mut Option<Cidr>, more: Cidr) {
    *known = Some(match known.take() {
        Some(known) => known.and(&more),
        None => more,
    });
}
