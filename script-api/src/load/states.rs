//! `rate`, `counter`, `cache` and `concurrency`: how they are made, and how they get their names.

use std::ops::RangeInclusive;

use rhai::{Dynamic, Engine, INT, ImmutableString, Map, NativeCallContext};

use super::{
    draft::{Draft, SharedDraft},
    options::{Options, time, within},
};
use crate::{
    diagnostic::{Diagnostic, Place},
    engine::{Local, NativeResult, native_error},
    frozen::Frozen,
    state::{
        Algorithm, Cache, CacheRule, Concurrency, ConcurrencyRule, Counter, CounterRule, Identity,
        Rate, RateRule, State, StateStore, metric::Metric,
    },
    suggest::nearest,
};

const HITS: RangeInclusive<INT> = 1..=1_000_000_000;
const ENTRIES: RangeInclusive<INT> = 1..=10_000_000;
const BYTES: RangeInclusive<INT> = 1024..=64 * 1024 * 1024 * 1024;

/// A handle that the top level has made.
#[derive(Debug)]
pub(super) struct Made {
    state: State,
    /// Where.
    place: Place,
    /// `None` until something that has a name holds it.
    identity: Option<Identity>,
}

pub(super) fn register(engine: &mut Engine, draft: &SharedDraft) {
    let shared = draft.clone();
    engine.register_fn(
        "rate",
        move |call: NativeCallContext, limit: INT, window: &str| {
            make_rate(&call, &shared, limit, window, Map::new())
        },
    );
    let shared = draft.clone();
    engine.register_fn(
        "rate",
        move |call: NativeCallContext, limit: INT, window: &str, options: Map| {
            make_rate(&call, &shared, limit, window, options)
        },
    );
    let shared = draft.clone();
    engine.register_fn("counter", move |call: NativeCallContext| {
        make_counter(&call, &shared, None, Map::new())
    });
    let shared = draft.clone();
    engine.register_fn(
        "counter",
        move |call: NativeCallContext, name: ImmutableString| {
            make_counter(&call, &shared, Some(&name), Map::new())
        },
    );
    let shared = draft.clone();
    engine.register_fn("counter", move |call: NativeCallContext, options: Map| {
        make_counter(&call, &shared, None, options)
    });
    let shared = draft.clone();
    engine.register_fn(
        "counter",
        move |call: NativeCallContext, name: ImmutableString, options: Map| {
            make_counter(&call, &shared, Some(&name), options)
        },
    );
    let shared = draft.clone();
    engine.register_fn(
        "cache",
        move |call: NativeCallContext, ttl: &str, entries: INT| {
            make_cache(&call, &shared, ttl, entries, Map::new())
        },
    );
    let shared = draft.clone();
    engine.register_fn(
        "cache",
        move |call: NativeCallContext, ttl: &str, entries: INT, options: Map| {
            make_cache(&call, &shared, ttl, entries, options)
        },
    );
    let shared = draft.clone();
    engine.register_fn("concurrency", move |call: NativeCallContext, slots: INT| {
        make_concurrency(&call, &shared, slots, Map::new())
    });
    let shared = draft.clone();
    engine.register_fn(
        "concurrency",
        move |call: NativeCallContext, slots: INT, options: Map| {
            make_concurrency(&call, &shared, slots, options)
        },
    );
}

/// The options of `rate`.
pub(super) const RATE_OPTIONS: [&str; 3] = ["algorithm", "burst", "max_keys"];

/// The rule of a `rate`, or of a `.limit` of a route, which has the same options.
pub(super) fn rate_rule(
    of: &str,
    limit: INT,
    window: &str,
    options: &mut Options,
) -> Result<RateRule, String> {
    let limit = within(&format!("the limit of `{of}`"), limit, HITS)?;
    let window = time(&format!("the window of `{of}`"), window)?;
    let algorithm = match options.take("algorithm") {
        None => Algorithm::Fixed,
        Some(given) => algorithm(&given)?,
    };
    let mut rule = RateRule::new(limit, window, algorithm);
    if let Some(burst) = options.number("burst", HITS)? {
        if algorithm != Algorithm::TokenBucket {
            return Err(
                "`burst` is the size of a bucket: it belongs to `algorithm: \"token_bucket\"`"
                    .to_owned(),
            );
        }
        rule = rule.burst(burst);
    }
    if let Some(keys) = options.number("max_keys", ENTRIES)? {
        rule = rule.max_keys(keys);
    }
    Ok(rule)
}

/// The rule of a `concurrency`, or of that of a route.
pub(super) fn concurrency_rule(
    slots: INT,
    options: &mut Options,
) -> Result<ConcurrencyRule, String> {
    let rule = ConcurrencyRule::new(within("`concurrency`", slots, HITS)?);
    let keys = options.number("max_keys", ENTRIES)?;
    Ok(keys.map_or(rule.clone(), |keys| rule.max_keys(keys)))
}

fn make_rate(
    call: &NativeCallContext,
    draft: &SharedDraft,
    limit: INT,
    window: &str,
    options: Map,
) -> NativeResult<Local<Rate>> {
    let options = Options::new("rate", options, &RATE_OPTIONS);
    let rule = options.and_then(|mut options| rate_rule("rate", limit, window, &mut options));
    let rate = Rate::new(rule.map_err(native_error)?);
    add(call, draft, State::Rate(rate.clone()), None);
    Ok(Local::new(rate))
}

fn make_concurrency(
    call: &NativeCallContext,
    draft: &SharedDraft,
    slots: INT,
    options: Map,
) -> NativeResult<Local<Concurrency>> {
    let options = Options::new("concurrency", options, &["max_keys"]);
    let rule = options.and_then(|mut options| concurrency_rule(slots, &mut options));
    let slots = Concurrency::new(rule.map_err(native_error)?);
    add(call, draft, State::Concurrency(slots.clone()), None);
    Ok(Local::new(slots))
}

fn make_counter(
    call: &NativeCallContext,
    draft: &SharedDraft,
    name: Option<&str>,
    options: Map,
) -> NativeResult<Local<Counter>> {
    if name == Some("") {
        return Err(native_error("the name of a counter can't be empty"));
    }
    let options = Options::new("counter", options, &["max_keys"]);
    let rule = options.and_then(|mut options| options.number("max_keys", ENTRIES));
    let rule = rule.map_err(native_error)?;
    let rule = rule.map_or_else(CounterRule::default, CounterRule::max_keys);
    let counter = Counter::new(rule);
    let identity = name.map(|name| Identity::Name(name.to_owned()));
    add(call, draft, State::Counter(counter.clone()), identity);
    Ok(Local::new(counter))
}

fn make_cache(
    call: &NativeCallContext,
    draft: &SharedDraft,
    ttl: &str,
    entries: INT,
    options: Map,
) -> NativeResult<Local<Cache>> {
    let ttl = time("the time of `cache`", ttl).map_err(native_error)?;
    let entries = within("the entries of `cache`", entries, ENTRIES).map_err(native_error)?;
    let options = Options::new("cache", options, &["max_bytes"]);
    let bytes = options.and_then(|mut options| options.number("max_bytes", BYTES));
    let mut rule = CacheRule::new(ttl, entries);
    if let Some(bytes) = bytes.map_err(native_error)? {
        rule = rule.max_bytes(bytes);
    }
    let cache = Cache::new(rule);
    add(call, draft, State::Cache(cache.clone()), None);
    Ok(Local::new(cache))
}

fn add(call: &NativeCallContext, draft: &SharedDraft, state: State, identity: Option<Identity>) {
    let mut draft = draft.borrow_mut();
    let place = draft.place(call.call_position());
    draft.states.push(Made {
        state,
        place,
        identity,
    });
}

fn algorithm(given: &Dynamic) -> Result<Algorithm, String> {
    let name = given.as_immutable_string_ref();
    let name = name.as_ref().map_or("", |name| name.as_str());
    Algorithm::from_name(name).ok_or_else(|| {
        let near = nearest(name, Algorithm::NAMES);
        let hint = near.map(|near| format!(" (did you mean {near:?}?)"));
        format!(
            "there is no algorithm `{given}`{}; there is {}, and without one a fixed window",
            hint.unwrap_or_default(),
            Algorithm::NAMES
                .map(|name| format!("{name:?}"))
                .join(" and "),
        )
    })
}

impl Draft {
    /// Names the handles that the constant `name` holds, by itself or in maps. The first name that a
    /// handle gets is its own.
    pub(super) fn name_states(&mut self, name: &str, value: &Frozen) {
        let mut path = vec![self.source.lasting_name(name)];
        self.name_below(&mut path, value);
    }

    fn name_below(&mut self, path: &mut Vec<String>, value: &Frozen) {
        match value {
            Frozen::State(state) => {
                let identity = Identity::Constant(path.clone());
                let mut others = self.states.iter();
                // A constant that is declared twice would give one name to two.
                if others.any(|made| made.identity.as_ref() == Some(&identity)) {
                    return;
                }
                let made = self.states.iter_mut().find(|made| made.state == *state);
                if let Some(made) = made {
                    made.identity.get_or_insert(identity);
                }
            }
            Frozen::Map(entries) => {
                for (key, value) in entries {
                    path.push(key.clone());
                    self.name_below(path, value);
                    path.pop();
                }
            }
            _ => {}
        }
    }

    /// Handles that have no name: a reload could not find their state again.
    pub(super) fn nameless_states(&self) -> Vec<Diagnostic> {
        let nameless = self.states.iter().filter(|made| made.identity.is_none());
        nameless
            .map(|made| {
                let word = made.state.word();
                let message = format!("this {word} has no name, so a reload would lose its state");
                let mut help = format!(
                    "make it a constant of the top level, `const NAME = {word}(..)`, or an entry \
                     of one that is a map: `const ALL = #{{ gold: {word}(..) }}`"
                );
                if matches!(made.state, State::Counter(_)) {
                    help.push_str("; or name it: `counter(\"name\")`");
                }
                let place = Place {
                    length: word.len(),
                    ..made.place.clone()
                };
                Diagnostic {
                    place: Some(place),
                    ..Diagnostic::error(message).help(help)
                }
            })
            .collect()
    }
}

/// Binds all handles to their state. The program is known to be right by then, so one that is
/// refused leaves nothing behind.
pub(super) fn bind(states: &[Made], metrics: &[Metric], store: &StateStore) {
    store.forget_unused();
    for made in states {
        if let Some(identity) = &made.identity {
            made.state.bind(store, identity);
        }
    }
    for metric in metrics {
        metric.bind(store);
    }
}
