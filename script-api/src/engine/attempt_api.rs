//! What a `.to` function can ask of its second argument: which attempt this is, and where it could go.

use rhai::{Array, Dynamic, Engine, INT, ImmutableString, Map};

use super::{
    current::{NativeResult, request},
    text_api::bounded,
};
use crate::request::Target;

/// The value of `attempt` in a script. It carries nothing: see [`super::current`].
#[derive(Debug, Clone, Copy)]
pub(super) struct AttemptHandle;

/// Properties of `attempt`, for checks and suggestions.
pub const ATTEMPT_PROPERTIES: &[&str] = &["number", "last_error", "targets"];

/// `most` bounds the targets that are told.
pub(super) fn register(engine: &mut Engine, most: usize) {
    engine
        .register_type_with_name::<AttemptHandle>("Attempt")
        .register_get("number", |_: &mut AttemptHandle| -> NativeResult<INT> {
            request(|req| INT::from(req.attempt().number))
        })
        .register_get(
            "last_error",
            |_: &mut AttemptHandle| -> NativeResult<Dynamic> {
                request(|req| {
                    let error = req.attempt().last_error;
                    error.map_or(Dynamic::UNIT, |error| ImmutableString::from(error).into())
                })
            },
        )
        .register_get(
            "targets",
            move |_: &mut AttemptHandle| -> NativeResult<Array> {
                let targets = request(|req| req.targets())?;
                bounded(targets.into_iter().take(MOST).map(told), most)
            },
        );
}

/// Targets that are told at the most.
const MOST: usize = 256;

fn told(target: Target) -> Dynamic {
    let active = INT::try_from(target.active).unwrap_or(INT::MAX);
    let fields: [(&str, Dynamic); 4] = [
        ("pool", target.pool.into()),
        ("address", target.address.into()),
        ("active", active.into()),
        ("failed", target.failed.into()),
    ];
    let fields = fields.into_iter().map(|(name, value)| (name.into(), value));
    fields.collect::<Map>().into()
}
