//! Text functions: those of Rhai that could build more than a script may hold, bounded before they
//! build it, and those that Lua has and Rhai lacks.

use rhai::{Dynamic, Engine, ImmutableString};

use super::current::{NativeResult, too_long};

/// `longest` bounds the text that a function may make, in bytes.
pub(super) fn register(engine: &mut Engine, longest: usize) {
    // Rhai's own `replace` checks the size only after it has built the text: two strings of 64 KiB
    // would make 4 GiB.
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
    engine
        .register_fn("num", |text: &str| number(text))
        .register_fn("num", |_: ()| Dynamic::UNIT);
}

/// Replaces in place, as Rhai's own function does.
fn replace(text: &mut ImmutableString, find: &str, to: &str, longest: usize) -> NativeResult<()> {
    if to.len() > find.len() {
        let grows = text.matches(find).count() * (to.len() - find.len());
        if text.len() + grows > longest {
            return Err(too_long());
        }
    }
    *text = text.replace(find, to).into();
    Ok(())
}

/// A whole or floating-point number; `()` when the text is neither.
fn number(text: &str) -> Dynamic {
    let text = text.trim();
    if let Ok(whole) = text.parse::<rhai::INT>() {
        return whole.into();
    }
    match text.parse::<rhai::FLOAT>() {
        Ok(number) if number.is_finite() => number.into(),
        _ => Dynamic::UNIT,
    }
}
