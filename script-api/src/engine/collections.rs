//! Array functions that take a function, where Rhai's own hide its failures: there, a comparator
//! that throws sorts by something else, and a filter that gives no bool says no. A gate built on
//! one would be open. And `pad`, where Rhai's own multiplies sizes until they overflow: in a release
//! build it would then ask for all memory, which ends the process.

use std::{
    cmp::Ordering,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
};

use rhai::{Array, Dynamic, Engine, EvalAltResult, FnPtr, INT, NativeCallContext, Position};

use super::{
    current::{NativeResult, error, too_long},
    limits::Limits,
    size::Size,
};

pub(super) fn register(engine: &mut Engine, limits: &Limits) {
    let limits = *limits;
    engine
        .register_fn(
            "pad",
            move |array: &mut Array, length: INT, item: Dynamic| pad(array, length, item, &limits),
        )
        .register_fn(
            "filter",
            |ctx: NativeCallContext, array: &mut Array, test: FnPtr| {
                let mut kept = Array::new();
                each(&ctx, "filter", array, &test, |item, holds| {
                    if holds {
                        kept.push(item.clone());
                    }
                    true
                })?;
                Ok(kept) as NativeResult<Array>
            },
        )
        .register_fn(
            "some",
            |ctx: NativeCallContext, array: &mut Array, test: FnPtr| {
                let mut found = false;
                each(&ctx, "some", array, &test, |_, holds| {
                    found = holds;
                    !holds
                })?;
                Ok(found) as NativeResult<bool>
            },
        )
        .register_fn(
            "all",
            |ctx: NativeCallContext, array: &mut Array, test: FnPtr| {
                let mut all = true;
                each(&ctx, "all", array, &test, |_, holds| {
                    all = holds;
                    holds
                })?;
                Ok(all) as NativeResult<bool>
            },
        )
        .register_fn(
            "find",
            |ctx: NativeCallContext, array: &mut Array, test: FnPtr| {
                let mut found = Dynamic::UNIT;
                each(&ctx, "find", array, &test, |item, holds| {
                    if holds {
                        found = item.clone();
                    }
                    !holds
                })?;
                Ok(found) as NativeResult<Dynamic>
            },
        )
        .register_fn("sort", sort)
        .register_fn("sort_by", sort)
        .register_fn("order", sorted)
        .register_fn("order_by", sorted)
        .register_fn("dedup", dedup);
}

/// Appends copies of `item` until `array` has `length` items.
fn pad(array: &mut Array, length: INT, item: Dynamic, limits: &Limits) -> NativeResult<()> {
    let Ok(length) = usize::try_from(length) else {
        return Ok(());
    };
    let Some(missing) = length.checked_sub(array.len()) else {
        return Ok(());
    };
    let padded = Size::of_items(array).and(Size::of_item(&item).times(missing));
    if padded.items > limits.items || padded.entries > limits.items {
        return Err(too_many());
    }
    if padded.text > limits.string {
        return Err(too_long());
    }
    array.resize(length, item);
    Ok(())
}

/// The error of an array that would have more items than `[script] items` allows.
pub(super) fn too_many() -> Box<EvalAltResult> {
    let what = "Size of array/BLOB".to_owned();
    Box::new(EvalAltResult::ErrorDataTooLarge(what, Position::NONE))
}

/// Calls `test` for one item after the other, until `goes_on` says no.
fn each(
    ctx: &NativeCallContext,
    name: &str,
    array: &Array,
    test: &FnPtr,
    mut goes_on: impl FnMut(&Dynamic, bool) -> bool,
) -> NativeResult<()> {
    for (index, item) in array.iter().enumerate() {
        let index = Dynamic::from(INT::try_from(index).unwrap_or(INT::MAX));
        let value =
            test.call_raw_with_extra_args(name, ctx, None, [item.clone()], [index], None)?;
        if !goes_on(item, as_bool(name, &value)?) {
            break;
        }
    }
    Ok(())
}

fn as_bool(name: &str, value: &Dynamic) -> NativeResult<bool> {
    value.as_bool().map_err(|found| {
        error(format!(
            "the function of `{name}` must say true or false, not a value of type `{found}`"
        ))
    })
}

/// Removes items that `same` says are the same as the one before.
fn dedup(ctx: NativeCallContext, array: &mut Array, same: FnPtr) -> NativeResult<()> {
    let mut failed = None;
    array.dedup_by(|later, earlier| {
        if failed.is_some() {
            return false;
        }
        let called = same.call_raw(&ctx, None, [earlier.clone(), later.clone()]);
        called
            .and_then(|value| as_bool("dedup", &value))
            .unwrap_or_else(|error| {
                failed = Some(error);
                false
            })
    });
    failed.map_or(Ok(()), Err)
}

/// A copy in the order of [`sort`].
fn sorted(ctx: NativeCallContext, array: &mut Array, compare: FnPtr) -> NativeResult<Array> {
    let mut sorted = array.clone();
    sort(ctx, &mut sorted, compare)?;
    Ok(sorted)
}

/// Sorts in place by a function that gives a number below, at or above zero.
fn sort(ctx: NativeCallContext, array: &mut Array, compare: FnPtr) -> NativeResult<()> {
    let mut failed = None;
    let sorted = catch_unwind(AssertUnwindSafe(|| {
        array.sort_by(|a, b| {
            if failed.is_some() {
                return Ordering::Equal;
            }
            let called = compare.call_raw(&ctx, None, [a.clone(), b.clone()]);
            let ordered = called.and_then(|value| match value.as_int() {
                Ok(number) => Ok(number.cmp(&0)),
                Err(found) => Err(error(format!(
                    "the function of `sort` must give a whole number, not a value of type `{found}`"
                ))),
            });
            ordered.unwrap_or_else(|error| {
                failed = Some(error);
                Ordering::Equal
            })
        });
    }));
    if let Some(error) = failed {
        return Err(error);
    }
    sorted.or_else(|panic| {
        if panic.is::<String>() || panic.is::<&str>() {
            // The library may panic when a comparator contradicts itself.
            return Err(error("the function of `sort` contradicts itself"));
        }
        // A hook that is cancelled in the middle unwinds with what is no message: to catch it would
        // let the hook run on.
        resume_unwind(panic)
    })
}
