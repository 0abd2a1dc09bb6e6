//! What `res` tells of the way that the response took.

use rhai::{Dynamic, Engine, FLOAT, INT, ImmutableString};

use super::{
    current::{NativeResult, request},
    response_api::ResponseHandle,
};
use crate::request::Facts;

pub(super) fn register(engine: &mut Engine) {
    let text =
        |text: Option<&str>| text.map_or(Dynamic::UNIT, |text| ImmutableString::from(text).into());
    fact(engine, "pool", move |facts| text(facts.pool));
    fact(engine, "upstream", move |facts| text(facts.upstream));
    fact(engine, "attempts", |facts| INT::from(facts.attempts).into());
    fact(engine, "duration", |facts| {
        Dynamic::from_float(facts.duration.as_secs_f64())
    });
    fact(engine, "upstream_duration", |facts| {
        facts.upstream_duration.map_or(Dynamic::UNIT, |time| {
            Dynamic::from_float(time.as_secs_f64() as FLOAT)
        })
    });
    fact(engine, "bytes_sent", |facts| {
        INT::try_from(facts.bytes_sent).unwrap_or(INT::MAX).into()
    });
    fact(engine, "error", move |facts| text(facts.error.as_deref()));
}

fn fact(engine: &mut Engine, name: &'static str, get: impl Fn(&Facts<'_>) -> Dynamic + 'static) {
    engine.register_get(
        name,
        move |_: &mut ResponseHandle| -> NativeResult<Dynamic> { request(|req| get(&req.facts())) },
    );
}
