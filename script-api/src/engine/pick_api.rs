//! `pick(..)`: the pool of a `.to` function, and which of its endpoints.

use rhai::{Engine, ImmutableString, Map};

use super::{
    current::{NativeResult, error},
    fields_api::value_text,
};
use crate::{stable_hash::stable_hash, suggest};

/// The options that it has, for checks and suggestions.
pub(crate) const PICK_OPTIONS: [&str; 3] = ["key", "target", "only"];

/// What a script has picked. The pool is looked up when the hook has said it.
#[derive(Debug, Clone)]
pub(super) struct Picked {
    pub(super) pool: ImmutableString,
    pub(super) key: Option<u64>,
    pub(super) target: Option<ImmutableString>,
    pub(super) only: bool,
}

pub(super) fn register(engine: &mut Engine) {
    engine
        .register_type_with_name::<Picked>("Pick")
        .register_fn(
            "pick",
            |pool: ImmutableString, options: Map| -> NativeResult<Picked> { pick(pool, options) },
        );
}

fn pick(pool: ImmutableString, options: Map) -> NativeResult<Picked> {
    let mut picked = Picked {
        pool,
        key: None,
        target: None,
        only: false,
    };
    for (name, value) in options {
        match name.as_str() {
            // What is absent hashes to nothing: any target will do.
            "key" => {
                let text = value_text(&value)?.filter(|text| !text.is_empty());
                picked.key = text.map(|text| stable_hash(text.as_bytes()));
            }
            "target" if value.is_unit() => {}
            "target" => {
                let text = value.into_immutable_string();
                picked.target = Some(text.map_err(|found| {
                    error(format!(
                        "`target` of `pick` is an address of `attempt.targets`, not a value of type `{found}`"
                    ))
                })?);
            }
            "only" => {
                picked.only = value.as_bool().map_err(|found| {
                    error(format!(
                        "`only` of `pick` is true or false, not a value of type `{found}`"
                    ))
                })?;
            }
            unknown => {
                let near = suggest::nearest(unknown, PICK_OPTIONS);
                let hint = near.map(|near| format!(" (did you mean `{near}`?)"));
                return Err(error(format!(
                    "`pick` has no option `{unknown}`{}; it has {}",
                    hint.unwrap_or_default(),
                    PICK_OPTIONS.join(", ")
                )));
            }
        }
    }
    if picked.only && picked.target.is_none() {
        return Err(error("`only` of `pick` needs a `target`"));
    }
    Ok(picked)
}
