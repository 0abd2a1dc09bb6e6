//! What scripts can do with `res`.

use rhai::{Dynamic, Engine, INT};

use super::{
    body_api,
    current::{NativeResult, change_response, error, response, response_body},
    facts_api,
    fields_api::{self, Fields},
    limits::Limits,
};
use crate::answer::status_code;

/// The value of `res` in a script. It carries nothing: see [`super::current`].
#[derive(Debug, Clone, Copy)]
pub(super) struct ResponseHandle;

/// Properties of `res`, for checks and suggestions.
pub const RESPONSE_PROPERTIES: &[&str] = &[
    "status",
    "is_local",
    "is_last",
    "pool",
    "upstream",
    "attempts",
    "duration",
    "upstream_duration",
    "bytes_sent",
    "error",
];

pub(super) fn register(engine: &mut Engine, limits: &Limits) {
    register_body(engine, limits);
    facts_api::register(engine);
    engine
        .register_type_with_name::<ResponseHandle>("Response")
        .register_get("status", |_: &mut ResponseHandle| status())
        .register_set(
            "status",
            |_: &mut ResponseHandle, status: INT| -> NativeResult<()> {
                let status = status_code(status).map_err(error)?;
                let bodiless = |status: u16| matches!(status, 101 | 204 | 304);
                change_response(|res| {
                    if bodiless(status.as_u16()) != bodiless(res.status().as_u16()) {
                        return Err(error(
                            "a status with a body can't become one without, or the other way round",
                        ));
                    }
                    res.set_status(status);
                    Ok(())
                })?
            },
        )
        .register_get("is_local", |_: &mut ResponseHandle| -> NativeResult<bool> {
            response(|res| res.is_local())
        });
    fields_api::register::<ResponseHandle>(engine, Fields::Response);
}

fn register_body(engine: &mut Engine, limits: &Limits) {
    let longest = limits.body;
    engine
        .register_fn("body", |_: &mut ResponseHandle| -> NativeResult<_> {
            response_body(|res| body_api::handle(res.body()))?
        })
        .register_get("is_last", |_: &mut ResponseHandle| -> NativeResult<bool> {
            response_body(|res| res.is_last())
        })
        .register_fn(
            "set_body",
            move |_: &mut ResponseHandle, body: Dynamic| -> NativeResult<()> {
                let body = body_api::bytes_of(&body, longest)?;
                response_body(|res| res.set_body(body))
            },
        );
}

/// The status of the response of the hook that runs.
pub(super) fn status() -> NativeResult<INT> {
    response(|res| INT::from(res.status().as_u16()))
}
