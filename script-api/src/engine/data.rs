//! Natives over data: text, a blob or a body. What is absent stays absent.

use rhai::{Blob, Dynamic, Engine};

use super::{current::NativeResult, local::Local, reply_api::ScriptBody};
use crate::values::Secret;

/// Registers `name(data)`.
pub(super) fn of_data(
    engine: &mut Engine,
    name: &'static str,
    make: impl Fn(&[u8]) -> NativeResult<Dynamic> + Copy + 'static,
) {
    engine
        .register_fn(name, move |text: &str| make(text.as_bytes()))
        .register_fn(name, move |blob: &mut Blob| make(blob))
        .register_fn(name, move |body: &mut ScriptBody| make(&body.0))
        .register_fn(name, |_: ()| ());
}

/// Registers `name(a, b)`, which gives `absent` when one of them is. Either may be a secret.
pub(super) fn of_two(
    engine: &mut Engine,
    name: &'static str,
    absent: fn() -> Dynamic,
    make: impl Fn(&[u8], &[u8]) -> NativeResult<Dynamic> + Copy + 'static,
) {
    engine
        .register_fn(name, move |a: &str, b: &str| {
            make(a.as_bytes(), b.as_bytes())
        })
        .register_fn(name, move |a: &str, b: Blob| make(a.as_bytes(), &b))
        .register_fn(name, move |a: &str, b: ScriptBody| make(a.as_bytes(), &b.0))
        .register_fn(name, move |a: &mut Blob, b: &str| make(a, b.as_bytes()))
        .register_fn(name, move |a: &mut Blob, b: Blob| make(a, &b))
        .register_fn(name, move |a: &mut Blob, b: ScriptBody| make(a, &b.0))
        .register_fn(name, move |a: &mut ScriptBody, b: &str| {
            make(&a.0, b.as_bytes())
        })
        .register_fn(name, move |a: &mut ScriptBody, b: Blob| make(&a.0, &b))
        .register_fn(name, move |a: &mut ScriptBody, b: ScriptBody| {
            make(&a.0, &b.0)
        })
        .register_fn(name, move |a: &mut Local<Secret>, b: &str| {
            make(a.bytes(), b.as_bytes())
        })
        .register_fn(name, move |a: &mut Local<Secret>, b: Blob| {
            make(a.bytes(), &b)
        })
        .register_fn(name, move |a: &mut Local<Secret>, b: ScriptBody| {
            make(a.bytes(), &b.0)
        })
        .register_fn(name, move |a: &mut Local<Secret>, b: Local<Secret>| {
            make(a.bytes(), b.bytes())
        })
        .register_fn(name, move |a: &str, b: Local<Secret>| {
            make(a.as_bytes(), b.bytes())
        })
        .register_fn(name, move |a: &mut Blob, b: Local<Secret>| {
            make(a, b.bytes())
        })
        .register_fn(name, move |a: &mut ScriptBody, b: Local<Secret>| {
            make(&a.0, b.bytes())
        })
        .register_fn(name, move |_: &mut Local<Secret>, _: ()| absent())
        .register_fn(name, move |_: (), _: Dynamic| absent())
        .register_fn(name, move |_: &str, _: ()| absent())
        .register_fn(name, move |_: &mut Blob, _: ()| absent())
        .register_fn(name, move |_: &mut ScriptBody, _: ()| absent());
}
