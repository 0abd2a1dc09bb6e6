//! What scripts can do with shared state: rates, counters, caches and slots.

use std::sync::Arc;

use rhai::{Dynamic, Engine, EvalAltResult, FnPtr, INT, ImmutableString, NativeCallContext};

use super::{
    current::{self, NativeResult, error},
    loads::{self, Begun},
    local::Local,
    plain::plain,
};
use crate::{
    frozen::Frozen,
    program::Need,
    request::MOST_SLOTS,
    state::{Cache, Concurrency, Counter, Key, NotBound, Rate},
};

pub(super) fn register(engine: &mut Engine) {
    register_rate(engine);
    register_counter(engine);
    register_cache(engine);
    register_concurrency(engine);
}

fn register_rate(engine: &mut Engine) {
    fn allow(rate: &Rate, key: &str) -> NativeResult<bool> {
        rate.allow(&Key::from(key)).map_err(refused)
    }
    fn remaining(rate: &Rate, key: &str) -> NativeResult<INT> {
        let remaining = rate.remaining(&Key::from(key)).map_err(refused)?;
        Ok(whole(remaining))
    }
    /// Whole seconds, rounded up, so that who waits so long is allowed (RFC 9110 section 10.2.3).
    fn retry_after(rate: &Rate, key: &str) -> NativeResult<INT> {
        let wait = rate.retry_after(&Key::from(key)).map_err(refused)?;
        let up = u64::from(wait.subsec_nanos() > 0);
        Ok(whole(wait.as_secs().saturating_add(up)))
    }
    engine
        .register_type_with_name::<Local<Rate>>("Rate")
        .register_fn("allow", |rate: &mut Local<Rate>, key: &str| {
            allow(rate, key)
        })
        .register_fn("allow", |rate: &mut Local<Rate>, key: INT| {
            allow(rate, &key.to_string())
        })
        .register_fn("allow", |_: &mut Local<Rate>, _: ()| no_key::<bool>())
        .register_fn("remaining", |rate: &mut Local<Rate>, key: &str| {
            remaining(rate, key)
        })
        .register_fn("remaining", |rate: &mut Local<Rate>, key: INT| {
            remaining(rate, &key.to_string())
        })
        .register_fn("remaining", |_: &mut Local<Rate>, _: ()| no_key::<INT>())
        .register_fn("retry_after", |rate: &mut Local<Rate>, key: &str| {
            retry_after(rate, key)
        })
        .register_fn("retry_after", |rate: &mut Local<Rate>, key: INT| {
            retry_after(rate, &key.to_string())
        })
        .register_fn("retry_after", |_: &mut Local<Rate>, _: ()| no_key::<INT>());
}

fn register_counter(engine: &mut Engine) {
    fn add(counter: &Counter, key: &str, n: INT) -> NativeResult<INT> {
        let added = counter.add(&Key::from(key), n).map_err(refused)?;
        added.map_err(|full| error(full.to_string()))
    }
    fn get(counter: &Counter, key: &str) -> NativeResult<INT> {
        counter.get(&Key::from(key)).map_err(refused)
    }
    fn remove(counter: &Counter, key: &str) -> NativeResult<()> {
        counter.remove(&Key::from(key)).map_err(refused)
    }
    engine
        .register_type_with_name::<Local<Counter>>("Counter")
        .register_fn("add", |counter: &mut Local<Counter>, key: &str, n: INT| {
            add(counter, key, n)
        })
        .register_fn("add", |counter: &mut Local<Counter>, key: INT, n: INT| {
            add(counter, &key.to_string(), n)
        })
        .register_fn("add", |_: &mut Local<Counter>, _: (), _: INT| {
            no_key::<INT>()
        })
        .register_fn("get", |counter: &mut Local<Counter>, key: &str| {
            get(counter, key)
        })
        .register_fn("get", |counter: &mut Local<Counter>, key: INT| {
            get(counter, &key.to_string())
        })
        .register_fn("get", |_: &mut Local<Counter>, _: ()| no_key::<INT>())
        .register_fn("remove", |counter: &mut Local<Counter>, key: &str| {
            remove(counter, key)
        })
        .register_fn("remove", |counter: &mut Local<Counter>, key: INT| {
            remove(counter, &key.to_string())
        })
        .register_fn("remove", |_: &mut Local<Counter>, _: ()| no_key::<()>());
}

fn register_cache(engine: &mut Engine) {
    fn get(cache: &Cache, key: &str) -> NativeResult<Dynamic> {
        let found = cache.get(&Key::from(key)).map_err(refused)?;
        Ok(found.map_or(Dynamic::UNIT, |value| value.thaw_data()))
    }
    fn set(ctx: &NativeCallContext, cache: &Cache, key: &str, value: &Dynamic) -> NativeResult<()> {
        let value = Arc::new(plain(ctx, value, "a cache")?);
        keep(cache, &Key::from(key), value)
    }
    fn remove(cache: &Cache, key: &str) -> NativeResult<()> {
        cache.remove(&Key::from(key)).map_err(refused)
    }
    engine
        .register_type_with_name::<Local<Cache>>("Cache")
        .register_fn("get", |cache: &mut Local<Cache>, key: &str| get(cache, key))
        .register_fn("get", |cache: &mut Local<Cache>, key: INT| {
            get(cache, &key.to_string())
        })
        // As in a table: what is absent is absent.
        .register_fn("get", |_: &mut Local<Cache>, _: ()| Dynamic::UNIT)
        .register_fn(
            "set",
            |ctx: NativeCallContext, cache: &mut Local<Cache>, key: &str, value: Dynamic| {
                set(&ctx, cache, key, &value)
            },
        )
        .register_fn(
            "set",
            |ctx: NativeCallContext, cache: &mut Local<Cache>, key: INT, value: Dynamic| {
                set(&ctx, cache, &key.to_string(), &value)
            },
        )
        .register_fn("set", |_: &mut Local<Cache>, _: (), _: Dynamic| {
            no_key::<()>()
        })
        .register_fn("remove", |cache: &mut Local<Cache>, key: &str| {
            remove(cache, key)
        })
        .register_fn("remove", |cache: &mut Local<Cache>, key: INT| {
            remove(cache, &key.to_string())
        })
        .register_fn("remove", |_: &mut Local<Cache>, _: ()| no_key::<()>())
        .register_fn(
            "get_or",
            |ctx: NativeCallContext,
             cache: &mut Local<Cache>,
             key: ImmutableString,
             make: FnPtr| { get_or(&ctx, cache, &key, &make) },
        )
        .register_fn(
            "get_or",
            |ctx: NativeCallContext, cache: &mut Local<Cache>, key: INT, make: FnPtr| {
                get_or(&ctx, cache, &key.to_string(), &make)
            },
        )
        .register_fn("get_or", |_: &mut Local<Cache>, _: (), _: FnPtr| {
            no_key::<Dynamic>()
        });
}

fn register_concurrency(engine: &mut Engine) {
    /// Takes a slot, which the request keeps to its end.
    fn acquire(slots: &Concurrency, key: &str) -> NativeResult<bool> {
        if !current::kind().is_some_and(|kind| kind.has(Need::RequestSlot)) {
            return Err(error(format!(
                "a slot is taken before the request goes on: {}",
                Need::RequestSlot.places()
            )));
        }
        let slot = slots.acquire(&Key::from(key)).map_err(refused)?;
        let Some(slot) = slot else {
            return Ok(false);
        };
        if current::request(|request| request.hold(slot))? {
            return Ok(true);
        }
        Err(error(format!(
            "a request can hold {MOST_SLOTS} slots at most"
        )))
    }
    fn in_use(slots: &Concurrency, key: &str) -> NativeResult<INT> {
        let taken = slots.in_use(&Key::from(key)).map_err(refused)?;
        Ok(whole(taken.into()))
    }
    engine
        .register_type_with_name::<Local<Concurrency>>("Concurrency")
        .register_fn("acquire", |slots: &mut Local<Concurrency>| {
            acquire(slots, "")
        })
        .register_fn("acquire", |slots: &mut Local<Concurrency>, key: &str| {
            acquire(slots, key)
        })
        .register_fn("acquire", |slots: &mut Local<Concurrency>, key: INT| {
            acquire(slots, &key.to_string())
        })
        .register_fn("acquire", |_: &mut Local<Concurrency>, _: ()| {
            no_key::<bool>()
        })
        .register_fn("in_use", |slots: &mut Local<Concurrency>| in_use(slots, ""))
        .register_fn("in_use", |slots: &mut Local<Concurrency>, key: &str| {
            in_use(slots, key)
        })
        .register_fn("in_use", |slots: &mut Local<Concurrency>, key: INT| {
            in_use(slots, &key.to_string())
        })
        .register_fn("in_use", |_: &mut Local<Concurrency>, _: ()| {
            no_key::<INT>()
        });
}

/// The value of `key`; when there is none, what `make` gives, which is kept. Nothing is locked while
/// `make` runs: it may wait for other services.
fn get_or(
    ctx: &NativeCallContext,
    cache: &Cache,
    key: &str,
    make: &FnPtr,
) -> NativeResult<Dynamic> {
    let kept = Key::from(key);
    if let Some(found) = cache.get(&kept).map_err(refused)? {
        return Ok(found.thaw_data());
    }
    let making = match loads::begin(cache.number().map_err(refused)?, &kept)? {
        Begun::Made(value) => return Ok(value.thaw_data()),
        Begun::Make(making) => making,
    };
    let outside = current::begin_making();
    // A function by its name may take the key, a closure knows it.
    let argument = Dynamic::from(ImmutableString::from(key));
    let made = make.call_raw_with_extra_args("get_or", ctx, None, [], [argument], None);
    current::end_making(outside);
    let made = made?;
    let value = Arc::new(plain(ctx, &made, "a cache")?);
    if !made.is_unit() {
        keep(cache, &kept, value.clone())?;
    }
    making.made(value);
    Ok(made)
}

/// Keeps a value; `()` is what is not there.
fn keep(cache: &Cache, key: &Key<'_>, value: Arc<Frozen>) -> NativeResult<()> {
    if *value == Frozen::Unit {
        return cache.remove(key).map_err(refused);
    }
    let kept = cache.set(key, value).map_err(refused)?;
    kept.map_err(|large| error(large.to_string()))
}

/// What is absent has no key: all who lack one would share one, and be taken for one another.
fn no_key<T>() -> NativeResult<T> {
    Err(error(
        "the key is `()`: something is absent, and all who lack it would share one key; answer \
         first, `if key == () { return respond(401); }`, or give them a key, \"none\"",
    ))
}

fn refused(not_bound: NotBound) -> Box<EvalAltResult> {
    error(not_bound.to_string())
}

fn whole(number: u64) -> INT {
    INT::try_from(number).unwrap_or(INT::MAX)
}
