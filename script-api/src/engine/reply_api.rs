//! What scripts can do with the answer to a call.

use std::rc::Rc;

use bytes::Bytes;
use rhai::{Array, Blob, Dynamic, Engine, INT, ImmutableString};

use super::{
    budget,
    current::{NativeResult, error, too_long, too_many_bytes},
    json,
    limits::Limits,
    suspended::Arriving,
};
use crate::{outbound::Reply, request::header_text};

/// The answer to a call as scripts hold it; cloning shares it.
#[derive(Debug, Clone)]
pub(super) struct ScriptReply(Rc<Reply>);

impl ScriptReply {
    pub(super) fn new(mut reply: Reply) -> Self {
        if let Ok(answer) = &mut reply {
            // From here on it counts as what the hook holds.
            answer.arriving = Arriving::default();
        }
        Self(Rc::new(reply))
    }
}

/// A body of so many bytes takes a native as long as many operations.
const LARGE: usize = 4096;

/// A body as scripts hold it: a handle, and no copy.
#[derive(Debug, Clone)]
pub(super) struct ScriptBody(pub(super) Bytes);

pub(super) fn register(engine: &mut Engine, limits: &Limits) {
    register_reply(engine);
    register_body(engine, limits);
}

fn register_reply(engine: &mut Engine) {
    engine
        .register_type_with_name::<ScriptReply>("Reply")
        .register_get("status", |reply: &mut ScriptReply| {
            let status = match &*reply.0 {
                Ok(answer) => answer.status,
                Err(failure) => failure.kind.status(),
            };
            INT::from(status.as_u16())
        })
        .register_get("error", |reply: &mut ScriptReply| match &*reply.0 {
            Ok(_) => Dynamic::UNIT,
            Err(failure) => failure.message.as_str().into(),
        })
        .register_fn("header", |reply: &mut ScriptReply, name: &str| {
            let answer = reply.0.as_ref().as_ref().ok();
            let value = answer.and_then(|answer| answer.headers.get(name));
            value.map_or(Dynamic::UNIT, |value| {
                ImmutableString::from(&*header_text(value.as_bytes())).into()
            })
        })
        .register_fn("headers", |reply: &mut ScriptReply, name: &str| {
            let answer = reply.0.as_ref().as_ref().ok();
            let values = answer.map(|answer| answer.headers.get_all(name).into_iter());
            let values = values.into_iter().flatten();
            values
                .map(|value| ImmutableString::from(&*header_text(value.as_bytes())).into())
                .collect::<Array>()
        })
        .register_fn("body", |reply: &mut ScriptReply| {
            let answer = reply.0.as_ref().as_ref().ok();
            ScriptBody(answer.map(|answer| answer.body.clone()).unwrap_or_default())
        });
}

fn register_body(engine: &mut Engine, limits: &Limits) {
    let (string, items) = (limits.string, limits.items);
    engine
        .register_type_with_name::<ScriptBody>("Body")
        .register_fn("len", |body: &mut ScriptBody| {
            INT::try_from(body.0.len()).unwrap_or(INT::MAX)
        })
        .register_fn(
            "text",
            move |body: &mut ScriptBody| -> NativeResult<ImmutableString> {
                let text = std::str::from_utf8(&body.0)
                    .map_err(|_| error("the body is not UTF-8: use `bytes()`"))?;
                if text.len() > string {
                    return Err(too_long());
                }
                Ok(text.into())
            },
        )
        .register_fn(
            "bytes",
            move |body: &mut ScriptBody| -> NativeResult<Blob> {
                if body.0.len() > items {
                    return Err(too_many_bytes());
                }
                Ok(body.0.to_vec())
            },
        )
        .register_fn(
            "json",
            move |body: &mut ScriptBody| -> NativeResult<Dynamic> {
                if body.0.len() > LARGE {
                    budget::look_at_clocks();
                }
                json::decode(&body.0, string, items)
                    .map_err(|reason| error(format!("the body is no usable JSON: {reason}")))
            },
        );
}
