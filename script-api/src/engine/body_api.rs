//! The bodies of the request and the response in scripts.

use bytes::Bytes;
use rhai::{Dynamic, Engine, INT};

use super::{
    budget,
    current::{NativeResult, change_request_body, error, request},
    json,
    limits::Limits,
    reply_api::ScriptBody,
    request_api::RequestHandle,
};

pub(super) fn register(engine: &mut Engine, limits: &Limits) {
    let (string, items, longest) = (limits.string, limits.items, limits.body);
    engine
        .register_fn(
            "body",
            |_: &mut RequestHandle| -> NativeResult<ScriptBody> {
                request(|req| handle(req.body()))?
            },
        )
        .register_fn(
            "json",
            move |_: &mut RequestHandle| -> NativeResult<Dynamic> {
                let body = request(|req| handle(req.body()))??;
                if body.0.len() > LARGE {
                    budget::look_at_clocks();
                }
                Ok(json::decode(&body.0, string, items).unwrap_or(Dynamic::UNIT))
            },
        )
        .register_fn(
            "set_body",
            move |_: &mut RequestHandle, body: Dynamic| -> NativeResult<()> {
                let body = bytes_of(&body, longest)?;
                change_request_body(|req| req.set_body(body))
            },
        );
}

/// A body of so many bytes takes a native as long as many operations.
const LARGE: usize = 4096;

/// Bytes of a body that is made as JSON: it doubles while it is written, and a native may take 1 MiB at once.
const LONGEST_JSON: usize = 512 * 1024;

/// The handle of a body that is at hand.
pub(super) fn handle(body: Option<&Bytes>) -> NativeResult<ScriptBody> {
    let body = body.ok_or_else(|| {
        error("the body is only there on a route with an `on_request_body` hook, from that hook on")
    })?;
    Ok(ScriptBody(body.clone()))
}

/// The bytes that a body is set to: text, bytes, another body, or a map or array as JSON.
pub(super) fn bytes_of(value: &Dynamic, longest: usize) -> NativeResult<Bytes> {
    let bytes = if let Some(body) = value.read_lock::<ScriptBody>() {
        body.0.clone()
    } else if let Ok(text) = value.as_immutable_string_ref() {
        Bytes::copy_from_slice(text.as_bytes())
    } else if let Ok(blob) = value.as_blob_ref() {
        Bytes::copy_from_slice(&blob)
    } else if value.is_map() || value.is_array() {
        json::encode_within(value, longest.min(LONGEST_JSON))
            .map_err(error)?
            .into()
    } else if value.is_unit() {
        Bytes::new()
    } else {
        return Err(error(format!(
            "a body is text, bytes, a body, or a map or array that is sent as JSON, not a value of type `{}`",
            value.type_name()
        )));
    };
    if bytes.len() > longest {
        return Err(error(format!(
            "a body of {} bytes is longer than `[script] body` allows ({longest})",
            INT::try_from(bytes.len()).unwrap_or(INT::MAX)
        )));
    }
    Ok(bytes)
}
