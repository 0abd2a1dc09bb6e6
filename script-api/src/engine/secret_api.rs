//! What scripts can do with `secret(..)`: hand it to a native that needs a key, and no more unless
//! they say so.

use rhai::{Dynamic, Engine, FUNC_TO_DEBUG, FUNC_TO_STRING, ImmutableString};

use super::{
    current::{NativeResult, error, too_long},
    local::Local,
};
use crate::values::Secret;

/// What stands for a secret wherever it would be written.
const HIDDEN: &str = "secret(..)";

/// `longest` bounds the text that a secret may become, in bytes.
pub(super) fn register(engine: &mut Engine, longest: usize) {
    engine
        .register_type_with_name::<Local<Secret>>("Secret")
        .register_fn(FUNC_TO_STRING, |_: &mut Local<Secret>| HIDDEN)
        .register_fn(FUNC_TO_DEBUG, |_: &mut Local<Secret>| HIDDEN)
        .register_fn("+", |_: &str, _: Local<Secret>| no_text())
        .register_fn("+", |_: &mut Local<Secret>, _: &str| no_text())
        .register_fn("==", |_: &str, _: Local<Secret>| not_compared())
        .register_fn("==", |_: &mut Local<Secret>, _: &str| not_compared())
        .register_fn("!=", |_: &str, _: Local<Secret>| not_compared())
        .register_fn("!=", |_: &mut Local<Secret>, _: &str| not_compared())
        .register_fn(
            "text",
            move |secret: &mut Local<Secret>| -> NativeResult<ImmutableString> {
                let text = std::str::from_utf8(secret.bytes())
                    .map_err(|_| error("the secret is not UTF-8: it can only be used as a key"))?;
                if text.len() > longest {
                    return Err(too_long());
                }
                Ok(text.into())
            },
        );
}

fn no_text() -> NativeResult<ImmutableString> {
    Err(error(
        "a secret is no text: write `SECRET.text()` where its text is wanted",
    ))
}

fn not_compared() -> NativeResult<bool> {
    Err(error(
        "a secret is compared with `constant_time_eq`, which takes as long whatever is wrong",
    ))
}

/// The secret in a value, when it is one.
pub(crate) fn secret_of(value: &Dynamic) -> Option<Local<Secret>> {
    value
        .read_lock::<Local<Secret>>()
        .map(|secret| secret.clone())
}
