//! Array functions that take another one by its name, as a text. Rhai has them from before it had
//! closures: which function is called doesn't show before it is, and a failure in it is hidden as
//! in those of [`super::collections`].

use rhai::{Array, Dynamic, Engine, INT, NativeCallContext};

use super::current::{NativeResult, error};

/// The functions whose first argument is a function.
pub(crate) const TAKE_A_FUNCTION: [&str; 10] = [
    "all",
    "dedup",
    "drain",
    "filter",
    "map",
    "reduce",
    "reduce_rev",
    "retain",
    "some",
    "sort",
];

pub(super) fn register(engine: &mut Engine) {
    for name in TAKE_A_FUNCTION {
        engine.register_fn(
            name,
            move |_: NativeCallContext, _: &mut Array, given: &str| refused(name, given),
        );
        if name.starts_with("reduce") {
            engine.register_fn(
                name,
                move |_: NativeCallContext, _: &mut Array, given: &str, _: Dynamic| {
                    refused(name, given)
                },
            );
        }
    }
    // A text is looked for as any other value is.
    engine
        .register_fn("index_of", |array: &mut Array, text: &str| {
            index_of(array, text, 0)
        })
        .register_fn("index_of", |array: &mut Array, text: &str, start: INT| {
            index_of(array, text, start)
        });
}

fn refused(name: &str, given: &str) -> NativeResult<()> {
    Err(error(format!(
        "`{name}` takes a function, not the text \"{given}\": write its name without quotes"
    )))
}

/// The index of `text` from `start` on, which counts from the end when it is negative; -1 when it
/// isn't there.
fn index_of(array: &Array, text: &str, start: INT) -> INT {
    let start = if start < 0 {
        let back = usize::try_from(start.unsigned_abs()).unwrap_or(usize::MAX);
        array.len().saturating_sub(back)
    } else {
        usize::try_from(start).unwrap_or(usize::MAX)
    };
    let mut items = array.iter().enumerate().skip(start);
    let found = items.find(|(_, item)| {
        let item = item.as_immutable_string_ref();
        item.is_ok_and(|item| item.as_str() == text)
    });
    found.map_or(-1, |(index, _)| INT::try_from(index).unwrap_or(-1))
}
