//! What scripts can do with `res`.

use rhai::{Array, Dynamic, Engine, INT, ImmutableString};

use super::{
    body_api,
    current::{NativeResult, change_response, error, response, response_body},
    facts_api,
    limits::Limits,
    request_api::{header_value_of, value_text},
};
use crate::answer::{header_name, header_value, status_code};

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
        .register_get("status", |_: &mut ResponseHandle| -> NativeResult<INT> {
            response(|res| INT::from(res.status().as_u16()))
        })
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
        })
        .register_fn(
            "header",
            |_: &mut ResponseHandle, name: ImmutableString| -> NativeResult<Dynamic> {
                response(|res| res.header(&name).map_or(Dynamic::UNIT, header_value_of))
            },
        )
        .register_fn(
            "headers",
            |_: &mut ResponseHandle, name: ImmutableString| -> NativeResult<Array> {
                response(|res| {
                    res.headers(&name)
                        .into_iter()
                        .map(header_value_of)
                        .collect()
                })
            },
        )
        .register_fn(
            "set_header",
            |_: &mut ResponseHandle, name: ImmutableString, value: Dynamic| -> NativeResult<()> {
                let name = header_name(&name).map_err(error)?;
                match value_text(&value)? {
                    None => change_response(|res| res.remove_header(&name)),
                    Some(value) => {
                        let value = header_value(&value).map_err(error)?;
                        change_response(|res| res.set_header(name, value))
                    }
                }
            },
        )
        .register_fn(
            "add_header",
            |_: &mut ResponseHandle, name: ImmutableString, value: Dynamic| -> NativeResult<()> {
                let name = header_name(&name).map_err(error)?;
                let Some(value) = value_text(&value)? else {
                    return Ok(());
                };
                let value = header_value(&value).map_err(error)?;
                change_response(|res| res.add_header(name, value))
            },
        )
        .register_fn(
            "remove_header",
            |_: &mut ResponseHandle, name: ImmutableString| -> NativeResult<()> {
                let name = header_name(&name).map_err(error)?;
                change_response(|res| res.remove_header(&name))
            },
        );
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
