//! `.retries` of a route.

use rhai::{Engine, INT, Map, NativeCallContext};

use super::{
    draft::RouteDraft,
    options::{Options, within},
    route_dsl::RouteHandle,
};
use crate::program::{MOST_RETRIES, Retries, RetryOn};

pub(super) fn register(engine: &mut Engine) {
    engine
        .register_fn(
            "retries",
            |call: NativeCallContext, route: &mut RouteHandle, attempts: INT| {
                route.change(&call, |route| set(route, attempts, Map::new()))
            },
        )
        .register_fn(
            "retries",
            |call: NativeCallContext, route: &mut RouteHandle, attempts: INT, options: Map| {
                route.change(&call, |route| set(route, attempts, options))
            },
        );
}

fn set(route: &mut RouteDraft, attempts: INT, options: Map) -> Result<(), String> {
    if route.retries.is_some() {
        return Err("the route has a `.retries` already".to_owned());
    }
    let attempts = within("`.retries`", attempts, 0..=MOST_RETRIES.into())?;
    let mut options = Options::new("retries", options, &["on"])?;
    let on = options.texts("on")?;
    let on = on.map(|words| RetryOn::parse(words.iter().map(String::as_str)));
    route.retries = Some(Retries {
        attempts,
        on: on.transpose()?,
    });
    Ok(())
}
