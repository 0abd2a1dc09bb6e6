//! `respond(..)` and `redirect(..)` in scripts.
//!
//! An answer that a hook makes, or takes from a constant, and does not return is a refusal that got
//! lost. So each is counted: [`ScriptAnswer`] counts when it is copied out of a constant or variable.

use bytes::Bytes;
use rhai::{Blob, Dynamic, Engine, INT, ImmutableString};

use super::{
    current::{NativeResult, count_answer, error},
    fields_api::value_text,
    reply_api::ScriptBody,
};
use crate::answer::Answer;

/// An answer as scripts hold it.
#[derive(Debug)]
pub(crate) struct ScriptAnswer(pub(crate) Answer);

impl ScriptAnswer {
    /// The answer, looked at and not taken.
    pub(crate) fn answer(&self) -> &Answer {
        &self.0
    }
}

impl Clone for ScriptAnswer {
    fn clone(&self) -> Self {
        count_answer();
        Self(self.0.clone())
    }
}

pub(super) fn register(engine: &mut Engine) {
    engine
        .register_type_with_name::<ScriptAnswer>("Answer")
        .register_fn("respond", |status: INT| made(Answer::new(status, "")))
        .register_fn("respond", |status: INT, body: ImmutableString| {
            made(Answer::new(status, Bytes::copy_from_slice(body.as_bytes())))
        })
        .register_fn("respond", |status: INT, body: ScriptBody| {
            made(Answer::new(status, body.0))
        })
        .register_fn("respond", |status: INT, body: Blob| {
            made(Answer::new(status, body))
        })
        .register_fn("redirect", |status: INT, target: ImmutableString| {
            made(Answer::redirect(status, &target))
        })
        .register_fn(
            "header",
            |answer: &mut ScriptAnswer,
             name: ImmutableString,
             value: Dynamic|
             -> NativeResult<ScriptAnswer> {
                if let Some(value) = value_text(&value)? {
                    answer.0.add_header(&name, &value).map_err(error)?;
                }
                Ok(answer.clone())
            },
        )
        .register_get("status", |answer: &mut ScriptAnswer| {
            INT::from(answer.0.status.as_u16())
        });
}

fn made(answer: Result<Answer, String>) -> NativeResult<ScriptAnswer> {
    count_answer();
    answer.map(ScriptAnswer).map_err(error)
}
