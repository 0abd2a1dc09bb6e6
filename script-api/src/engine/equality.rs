//! Whether arrays and maps are equal, and what they contain.
//!
//! Rhai's own functions copy the value that is looked for once for each item, and what is nested once
//! for each level.

use rhai::{
    Array, Blob, Dynamic, Engine, EvalAltResult, FnPtr, INT, Map, NativeCallContext, OP_EQUALS,
};

use super::current::NativeResult;

pub(super) fn register(engine: &mut Engine) {
    type Ctx<'c> = NativeCallContext<'c>;
    engine
        .register_fn(OP_EQUALS, |ctx: Ctx, a: &mut Array, b: Array| {
            arrays(&ctx, a, &b)
        })
        .register_fn("!=", |ctx: Ctx, a: &mut Array, b: Array| {
            arrays(&ctx, a, &b).map(|equal| !equal)
        })
        .register_fn(OP_EQUALS, |ctx: Ctx, a: &mut Map, b: Map| maps(&ctx, a, &b))
        .register_fn("!=", |ctx: Ctx, a: &mut Map, b: Map| {
            maps(&ctx, a, &b).map(|equal| !equal)
        })
        .register_fn("contains", |ctx: Ctx, array: &mut Array, value: Dynamic| {
            position(&ctx, array, &value, 0).map(|found| found.is_some()) as NativeResult<bool>
        })
        .register_fn("index_of", |ctx: Ctx, array: &mut Array, value: Dynamic| {
            index_of(&ctx, array, &value, 0)
        })
        .register_fn(
            "index_of",
            |ctx: Ctx, array: &mut Array, value: Dynamic, start: INT| {
                index_of(&ctx, array, &value, start)
            },
        );
}

/// The index of the first item that equals `value`, from `start` on; below zero it counts from the end.
/// -1 when there is none.
fn index_of(
    ctx: &NativeCallContext,
    array: &Array,
    value: &Dynamic,
    start: INT,
) -> NativeResult<INT> {
    let start = match usize::try_from(start) {
        Ok(start) => start,
        Err(_) => {
            let from_end = usize::try_from(start.unsigned_abs()).unwrap_or(usize::MAX);
            array.len().saturating_sub(from_end)
        }
    };
    let found = position(ctx, array, value, start)?;
    Ok(found.map_or(-1, |index| INT::try_from(index).unwrap_or(INT::MAX)))
}

fn position(
    ctx: &NativeCallContext,
    array: &Array,
    value: &Dynamic,
    start: usize,
) -> NativeResult<Option<usize>> {
    for (index, item) in array.iter().enumerate().skip(start) {
        if equal(ctx, item, value)? {
            return Ok(Some(index));
        }
    }
    Ok(None)
}

fn arrays(ctx: &NativeCallContext, a: &Array, b: &Array) -> NativeResult<bool> {
    if a.len() != b.len() {
        return Ok(false);
    }
    for (a, b) in a.iter().zip(b) {
        if !equal(ctx, a, b)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn maps(ctx: &NativeCallContext, a: &Map, b: &Map) -> NativeResult<bool> {
    if a.len() != b.len() {
        return Ok(false);
    }
    for ((a_key, a), (b_key, b)) in a.iter().zip(b) {
        // Both are in the order of their keys.
        if a_key != b_key || !equal(ctx, a, b)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// What `==` says; values of types that can't be compared are different.
fn equal(ctx: &NativeCallContext, a: &Dynamic, b: &Dynamic) -> NativeResult<bool> {
    if let (Some(a), Some(b)) = (a.read_lock::<Array>(), b.read_lock::<Array>()) {
        return arrays(ctx, &a, &b);
    }
    if let (Some(a), Some(b)) = (a.read_lock::<Map>(), b.read_lock::<Map>()) {
        return maps(ctx, &a, &b);
    }
    let same_type = a.type_id() == b.type_id();
    if !same_type && (is_large(a) || is_large(b)) {
        return Ok(false);
    }
    // Both are small, or there is no `==` for them at all.
    let (mut a, mut b) = (a.clone(), b.clone());
    match ctx.call_native_fn_raw(OP_EQUALS, true, &mut [&mut a, &mut b]) {
        Ok(equal) => Ok(equal.as_bool().unwrap_or(false)),
        Err(error) => match *error {
            EvalAltResult::ErrorFunctionNotFound(ref name, _)
                if !same_type && name.starts_with(OP_EQUALS) =>
            {
                Ok(false)
            }
            _ => Err(error),
        },
    }
}

/// Whether copying it could take long, and nothing else than its own kind equals it.
fn is_large(value: &Dynamic) -> bool {
    value.is::<Array>() || value.is::<Map>() || value.is::<Blob>() || value.is::<FnPtr>()
}
