//! `.mirror` of a route.

use rhai::{Dynamic, Engine, FLOAT, INT, ImmutableString, Map, NativeCallContext};

use super::{
    draft::MirrorDraft,
    options::{Options, duration, size},
    route_dsl::RouteHandle,
};
use crate::program::MirrorRules;
use std::{ops::RangeInclusive, time::Duration};

/// A copy holds one of few places until its answer is there.
const TIMEOUTS: RangeInclusive<Duration> = Duration::from_millis(1)..=Duration::from_secs(60);

pub(super) fn register(engine: &mut Engine) {
    engine
        .register_fn(
            "mirror",
            |call: NativeCallContext,
             route: &mut RouteHandle,
             pool: ImmutableString,
             percent: INT| {
                mirror(&call, route, &pool, || {
                    MirrorRules::DEFAULT.with_percent(percent as f64)
                })
            },
        )
        .register_fn(
            "mirror",
            |call: NativeCallContext,
             route: &mut RouteHandle,
             pool: ImmutableString,
             percent: FLOAT| {
                mirror(&call, route, &pool, || {
                    MirrorRules::DEFAULT.with_percent(percent)
                })
            },
        )
        .register_fn(
            "mirror",
            |call: NativeCallContext,
             route: &mut RouteHandle,
             pool: ImmutableString,
             options: Map| { mirror(&call, route, &pool, || rules(options)) },
        );
}

fn mirror(
    call: &NativeCallContext,
    route: &mut RouteHandle,
    pool: &str,
    rules: impl FnOnce() -> Result<MirrorRules, String>,
) -> RouteHandle {
    let place = route.draft.borrow().literal(call.call_position(), pool);
    route.change(call, |route| {
        if route.mirror.is_some() {
            return Err("the route has a `.mirror` already".to_owned());
        }
        route.mirror = Some(MirrorDraft {
            pool: pool.to_owned(),
            place,
            rules: rules()?,
        });
        Ok(())
    })
}

fn rules(options: Map) -> Result<MirrorRules, String> {
    let mut options = Options::new(".mirror", options, &["percent", "body", "timeout"])?;
    let mut rules = MirrorRules::DEFAULT;
    if let Some(percent) = options.take("percent") {
        rules = rules.with_percent(number(&percent)?)?;
    }
    if let Some(body) = options.text("body")? {
        let bytes = size(&body)?;
        if bytes > MirrorRules::MOST_BODY {
            return Err(format!(
                "`body` of `.mirror` is 16MiB at the most, not {body}"
            ));
        }
        rules.body = usize::try_from(bytes).unwrap_or(usize::MAX);
    }
    if let Some(timeout) = options.text("timeout")? {
        rules.timeout = duration(&timeout)?;
        if !TIMEOUTS.contains(&rules.timeout) {
            return Err(format!(
                "`timeout` of `.mirror` must be between 1ms and 60s, not {timeout}"
            ));
        }
    }
    Ok(rules)
}

fn number(given: &Dynamic) -> Result<f64, String> {
    let whole = given.as_int().map(|number| number as f64);
    whole.or_else(|_| given.as_float()).map_err(|found| {
        format!("`percent` of `.mirror` is a number, not a value of type `{found}`")
    })
}
