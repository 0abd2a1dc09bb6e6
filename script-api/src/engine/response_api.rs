//! What scripts can do with `res` in `on_response`.

use rhai::{Array, Dynamic, Engine, INT, ImmutableString};

use super::{
    current::{NativeResult, error, response},
    request_api::{header_value_of, value_text},
};
use crate::answer::{header_name, header_value, status_code};

/// The value of `res` in a script. It carries nothing: see [`super::current`].
#[derive(Debug, Clone, Copy)]
pub(super) struct ResponseHandle;

/// Properties of `res`, for checks and suggestions.
pub const RESPONSE_PROPERTIES: &[&str] = &["status", "is_local"];

pub(super) fn register(engine: &mut Engine) {
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
                response(|res| {
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
                    None => response(|res| res.remove_header(&name)),
                    Some(value) => {
                        let value = header_value(&value).map_err(error)?;
                        response(|res| res.set_header(name, value))
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
                response(|res| res.add_header(name, value))
            },
        )
        .register_fn(
            "remove_header",
            |_: &mut ResponseHandle, name: ImmutableString| -> NativeResult<()> {
                let name = header_name(&name).map_err(error)?;
                response(|res| res.remove_header(&name))
            },
        );
}
