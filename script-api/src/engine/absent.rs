//! What is absent is `()`, and asking it something never throws.

use rhai::{Array, Dynamic, Engine, INT, ImmutableString};

pub(super) fn register(engine: &mut Engine) {
    for name in ["starts_with", "ends_with", "contains"] {
        engine
            .register_fn(name, |_: (), _: &str| false)
            .register_fn(name, |_: (), _: char| false)
            .register_fn(name, |_: (), _: ()| false)
            .register_fn(name, |_: &str, _: ()| false);
    }
    engine
        .register_fn("contains", |_: &mut Array, _: ()| false)
        .register_fn("contains", |_: &mut rhai::Map, _: ()| false);
    engine
        .register_fn("len", |_: ()| 0 as INT)
        .register_get("len", |_: &mut ()| 0 as INT)
        .register_fn("is_empty", |_: ()| true)
        .register_get("is_empty", |_: &mut ()| true)
        .register_fn("split", |_: (), _: &str| Array::new())
        .register_fn("split", |_: (), _: char| Array::new())
        .register_fn("split", |_: (), _: &str, _: INT| Array::new())
        .register_fn("split", |_: ()| Array::new());
    for name in [
        "to_lower",
        "to_upper",
        "trim",
        "make_lower",
        "make_upper",
        "chars",
        "bytes",
        "to_chars",
        "to_int",
        "to_float",
        "parse_int",
        "parse_float",
        "clear",
        "pop",
    ] {
        engine.register_fn(name, |_: &mut ()| ());
    }
    for name in ["truncate", "crop", "remove", "pad", "split_rev"] {
        engine
            .register_fn(name, |_: &mut (), _: Dynamic| ())
            .register_fn(name, |_: &mut (), _: Dynamic, _: Dynamic| ());
    }
    engine
        .register_fn("split", |_: &str, _: ()| Array::new())
        .register_fn("replace", |_: &mut ImmutableString, _: (), _: Dynamic| ());
    engine
        .register_fn("sub_string", |_: (), _: Dynamic| ())
        .register_fn("sub_string", |_: (), _: Dynamic, _: Dynamic| ())
        .register_fn("replace", |_: &mut (), _: Dynamic, _: Dynamic| ())
        .register_fn("index_of", |_: (), _: &str| -1 as INT)
        .register_fn("index_of", |_: (), _: char| -1 as INT);
}
