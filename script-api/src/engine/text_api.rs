//! Text functions: those of Rhai that could build more than a script may hold, or never end, bounded
//! before they build it, and those that Lua has and Rhai lacks.

use rhai::{Array, Dynamic, Engine, INT, ImmutableString};

use super::{
    collections::too_many,
    current::{NativeResult, error, too_long},
    limits::Limits,
};

pub(super) fn register(engine: &mut Engine, limits: &Limits) {
    replacing(engine, limits.string);
    padding(engine, limits.string);
    splitting(engine, limits.items);
    engine
        .register_fn("num", |text: &str| number(text))
        .register_fn("num", |_: ()| Dynamic::UNIT);
}

/// Rhai's own `replace` checks the size only after it has built the text: two strings of 64 KiB
/// would make 4 GiB.
fn replacing(engine: &mut Engine, longest: usize) {
    engine
        .register_fn(
            "replace",
            move |text: &mut ImmutableString, find: &str, to: &str| -> NativeResult<()> {
                replace(text, find, to, longest)
            },
        )
        .register_fn(
            "replace",
            move |text: &mut ImmutableString, find: char, to: &str| -> NativeResult<()> {
                replace(text, find.encode_utf8(&mut [0; 4]), to, longest)
            },
        )
        .register_fn(
            "replace",
            move |text: &mut ImmutableString, find: &str, to: char| -> NativeResult<()> {
                replace(text, find, to.encode_utf8(&mut [0; 4]), longest)
            },
        )
        .register_fn(
            "replace",
            move |text: &mut ImmutableString, find: char, to: char| -> NativeResult<()> {
                let (mut a, mut b) = ([0; 4], [0; 4]);
                replace(
                    text,
                    find.encode_utf8(&mut a),
                    to.encode_utf8(&mut b),
                    longest,
                )
            },
        );
}

/// Replaces in place, as Rhai's own function does.
fn replace(text: &mut ImmutableString, find: &str, to: &str, longest: usize) -> NativeResult<()> {
    if text.is_empty() {
        return Ok(());
    }
    if to.len() > find.len() {
        let grows = text.matches(find).count() * (to.len() - find.len());
        if text.len() + grows > longest {
            return Err(too_long());
        }
    }
    *text = text.replace(find, to).into();
    Ok(())
}

/// Rhai's own `pad` never ends when the padding is empty.
fn padding(engine: &mut Engine, longest: usize) {
    engine
        .register_fn(
            "pad",
            move |text: &mut ImmutableString, length: INT, with: &str| -> NativeResult<()> {
                pad(text, length, with, longest)
            },
        )
        .register_fn(
            "pad",
            move |text: &mut ImmutableString, length: INT, with: char| -> NativeResult<()> {
                pad(text, length, with.encode_utf8(&mut [0; 4]), longest)
            },
        );
}

/// Appends as many characters of `with`, again and again, as `text` lacks to have `length`.
fn pad(text: &mut ImmutableString, length: INT, with: &str, longest: usize) -> NativeResult<()> {
    let Ok(length) = usize::try_from(length) else {
        return Ok(());
    };
    let missing = length.saturating_sub(text.chars().count());
    if missing == 0 {
        return Ok(());
    }
    if with.is_empty() {
        return Err(error("`pad` needs something to pad with"));
    }
    let room = longest.saturating_sub(text.len());
    // A character takes a byte or more.
    if missing > room {
        return Err(too_long());
    }
    let added: usize = with.chars().cycle().take(missing).map(char::len_utf8).sum();
    if added > room {
        return Err(too_long());
    }
    let mut padded = String::with_capacity(text.len() + added);
    padded.push_str(text);
    padded.extend(with.chars().cycle().take(missing));
    *text = padded.into();
    Ok(())
}

/// Rhai's own functions count the parts after they have made them, one allocation for each.
fn splitting(engine: &mut Engine, most: usize) {
    engine
        .register_fn("split", move |text: &str| {
            parts(text, text.split_whitespace(), most)
        })
        .register_fn("split", move |text: &str, at: &str| {
            parts(text, text.split(at), most)
        })
        .register_fn("split", move |text: &str, at: char| {
            parts(text, text.split(at), most)
        })
        .register_fn("split", move |text: &str, at: &str, number: INT| {
            parts(text, text.splitn(at_least_one(number), at), most)
        })
        .register_fn("split", move |text: &str, at: char, number: INT| {
            parts(text, text.splitn(at_least_one(number), at), most)
        })
        .register_fn("split_rev", move |text: &str, at: &str| {
            parts(text, text.rsplit(at), most)
        })
        .register_fn("split_rev", move |text: &str, at: char| {
            parts(text, text.rsplit(at), most)
        })
        .register_fn("split_rev", move |text: &str, at: &str, number: INT| {
            parts(text, text.rsplitn(at_least_one(number), at), most)
        })
        .register_fn("split_rev", move |text: &str, at: char, number: INT| {
            parts(text, text.rsplitn(at_least_one(number), at), most)
        })
        .register_fn("to_chars", move |text: &str| {
            let characters = text.chars().map(Dynamic::from);
            bounded(characters, most)
        });
}

/// The number of parts that a script asks for; Rhai takes what is below one as one.
fn at_least_one(number: INT) -> usize {
    usize::try_from(number).unwrap_or(0).max(1)
}

/// An array of the parts of `text`; an empty text is its own only part.
fn parts<'t>(
    text: &'t str,
    parts: impl Iterator<Item = &'t str>,
    most: usize,
) -> NativeResult<Array> {
    if text.is_empty() {
        return Ok(vec![ImmutableString::new().into()]);
    }
    bounded(parts.map(Into::into), most)
}

/// An array of `items`, of which there may be `most`.
pub(super) fn bounded(items: impl Iterator<Item = Dynamic>, most: usize) -> NativeResult<Array> {
    let mut array = Array::new();
    for item in items {
        if array.len() == most {
            return Err(too_many());
        }
        array.push(item);
    }
    Ok(array)
}

/// A whole or floating-point number; `()` when the text is neither.
fn number(text: &str) -> Dynamic {
    let text = text.trim();
    if let Ok(whole) = text.parse::<INT>() {
        return whole.into();
    }
    match text.parse::<rhai::FLOAT>() {
        Ok(number) if number.is_finite() => number.into(),
        _ => Dynamic::UNIT,
    }
}
