//! `respond(..)` and `redirect(..)` in scripts.

use bytes::Bytes;
use rhai::{Blob, Dynamic, Engine, INT, ImmutableString};

use super::{
    current::{NativeResult, count_answer, error},
    request_api::value_text,
};
use crate::answer::Answer;

pub(super) fn register(engine: &mut Engine) {
    engine
        .register_type_with_name::<Answer>("Answer")
        .register_fn("respond", |status: INT| made(Answer::new(status, "")))
        .register_fn("respond", |status: INT, body: ImmutableString| {
            made(Answer::new(status, Bytes::copy_from_slice(body.as_bytes())))
        })
        .register_fn("respond", |status: INT, body: Blob| {
            made(Answer::new(status, body))
        })
        .register_fn("redirect", |status: INT, target: ImmutableString| {
            made(Answer::redirect(status, &target))
        })
        .register_fn(
            "header",
            |answer: &mut Answer, name: ImmutableString, value: Dynamic| -> NativeResult<Answer> {
                if let Some(value) = value_text(&value)? {
                    answer.add_header(&name, &value).map_err(error)?;
                }
                Ok(answer.clone())
            },
        )
        .register_get("status", |answer: &mut Answer| {
            INT::from(answer.status.as_u16())
        });
}

fn made(answer: Result<Answer, String>) -> NativeResult<Answer> {
    count_answer();
    answer.map_err(error)
}
