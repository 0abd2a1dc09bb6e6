//! What scripts can do with values of the load time.

use rhai::{Array, Dynamic, Engine, ImmutableString, NativeCallContext};

use super::{
    budget,
    collections::too_many,
    current::{NativeResult, count_answer, error, too_long},
    limits::Limits,
    local::Local,
    reply_api::ScriptBody,
};
use crate::{
    frozen::Frozen,
    values::{Cidr, NotReplaced, Regex, Table},
};

/// A native that only counts one operation. No script can call it by this name.
const COUNT: &str = "count$";

pub(super) fn register(engine: &mut Engine, limits: &Limits) {
    let (longest, most) = (limits.string, limits.items);
    register_for_bodies(engine, longest, limits.body);
    engine
        .register_type_with_name::<Local<Table>>("Table")
        .register_fn("get", |table: &mut Local<Table>, key: &str| {
            table_entry(table, key)
        })
        .register_fn("get", |_: &mut Local<Table>, _: ()| Dynamic::UNIT)
        .register_fn("contains", |table: &mut Local<Table>, key: &str| {
            table.contains(key)
        })
        .register_fn("contains", |_: &mut Local<Table>, _: ()| false)
        .register_fn("len", |table: &mut Local<Table>| len(table.len()));

    engine
        .register_type_with_name::<Local<Cidr>>("Cidr")
        .register_fn("contains", |cidr: &mut Local<Cidr>, address: &str| {
            cidr.contains_text(address)
        })
        .register_fn("contains", |_: &mut Local<Cidr>, _: ()| false);

    engine
        .register_type_with_name::<Local<Regex>>("Regex")
        .register_fn("is_match", |regex: &mut Local<Regex>, text: &str| {
            regex.is_match(text)
        })
        .register_fn("is_match", |_: &mut Local<Regex>, _: ()| false)
        .register_fn(
            "captures",
            move |regex: &mut Local<Regex>, text: &str| -> NativeResult<Dynamic> {
                captures(regex, text, longest)
            },
        )
        .register_fn("captures", |_: &mut Local<Regex>, _: ()| Dynamic::UNIT)
        .register_fn(
            "replace_all",
            move |ctx: NativeCallContext,
                  regex: &mut Local<Regex>,
                  text: &str,
                  to: &str|
                  -> NativeResult<ImmutableString> {
                // Each match may take a look at all that follows, so each is an operation.
                let count = || ctx.call_native_fn_raw(COUNT, false, &mut []).map(|_| ());
                let replaced = regex.replace_all(text, to, longest, count);
                replaced.map(Into::into).map_err(|why| match why {
                    NotReplaced::TooLong => too_long(),
                    NotReplaced::Stopped(error) => error,
                })
            },
        )
        .register_fn(
            "split",
            move |ctx: NativeCallContext,
                  regex: &mut Local<Regex>,
                  text: &str|
                  -> NativeResult<Array> {
                parts(&ctx, regex.split(text), longest, most)
            },
        )
        .register_fn("split", |_: &mut Local<Regex>, _: ()| Array::new())
        .register_fn(
            "find_all",
            move |ctx: NativeCallContext,
                  regex: &mut Local<Regex>,
                  text: &str|
                  -> NativeResult<Array> {
                parts(&ctx, regex.find_all(text), longest, most)
            },
        )
        .register_fn("find_all", |_: &mut Local<Regex>, _: ()| Array::new())
        .register_fn(COUNT, || ())
        .register_fn("replace_all", |_: &mut Local<Regex>, _: (), _: &str| ());
}

/// A body is searched where it lies: none of it becomes a text of the script.
fn register_for_bodies(engine: &mut Engine, longest: usize, longest_body: usize) {
    engine
        .register_fn(
            "is_match",
            |regex: &mut Local<Regex>, body: ScriptBody| -> NativeResult<bool> {
                let found = regex.is_match(text_of(&body)?);
                budget::look_at_clocks();
                Ok(found)
            },
        )
        .register_fn(
            "captures",
            move |regex: &mut Local<Regex>, body: ScriptBody| -> NativeResult<Dynamic> {
                let found = captures(regex, text_of(&body)?, longest);
                budget::look_at_clocks();
                found
            },
        )
        .register_fn(
            "replace_all",
            move |ctx: NativeCallContext,
                  regex: &mut Local<Regex>,
                  body: ScriptBody,
                  to: &str|
                  -> NativeResult<ScriptBody> {
                let text = text_of(&body)?;
                let count = || ctx.call_native_fn_raw(COUNT, false, &mut []).map(|_| ());
                let replaced = regex.replace_all(text, to, longest_body, count);
                budget::look_at_clocks();
                match replaced {
                    Ok(text) => Ok(ScriptBody(text.into())),
                    Err(NotReplaced::TooLong) => Err(error(format!(
                        "the body would be longer than `[script] body` allows ({longest_body})"
                    ))),
                    Err(NotReplaced::Stopped(error)) => Err(error),
                }
            },
        );
}

fn text_of(body: &ScriptBody) -> NativeResult<&str> {
    std::str::from_utf8(&body.0).map_err(|_| error("the body is not UTF-8: use `bytes()`"))
}

/// Parts of a text that a pattern finds, one after the other. Each may take a look at all that follows,
/// so each is an operation.
fn parts<'t>(
    ctx: &NativeCallContext,
    parts: impl Iterator<Item = &'t str>,
    longest: usize,
    most: usize,
) -> NativeResult<Array> {
    let mut array = Array::new();
    let mut bytes = 0;
    for part in parts {
        let _counted = ctx.call_native_fn_raw(COUNT, false, &mut [])?;
        bytes += part.len();
        if bytes > longest {
            return Err(too_long());
        }
        if array.len() == most {
            return Err(too_many());
        }
        array.push(part.into());
    }
    Ok(array)
}

/// The entry of a table as a value of its own, or `()`.
pub(super) fn table_entry(table: &Table, key: &str) -> Dynamic {
    let found = table.get(key);
    if matches!(found, Some(Frozen::Answer(_))) {
        count_answer();
    }
    found.map_or(Dynamic::UNIT, Frozen::thaw_data)
}

/// The groups of the first match. Groups that hold the same text each count.
fn captures(regex: &Regex, text: &str, longest: usize) -> NativeResult<Dynamic> {
    let Some(groups) = regex.captures(text) else {
        return Ok(Dynamic::UNIT);
    };
    let bytes: usize = groups.iter().flatten().map(|group| group.len()).sum();
    if bytes > longest {
        return Err(too_long());
    }
    let groups = groups.into_iter();
    let groups: Array = groups
        .map(|group| group.map_or(Dynamic::UNIT, |text| ImmutableString::from(text).into()))
        .collect();
    Ok(groups.into())
}

fn len(items: usize) -> rhai::INT {
    rhai::INT::try_from(items).unwrap_or(rhai::INT::MAX)
}
