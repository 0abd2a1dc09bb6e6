//! The methods of a route that set up its gates.

use rhai::{Dynamic, Engine, INT, Map, NativeCallContext};

use http::StatusCode;

use super::{
    cors_dsl,
    draft::RouteDraft,
    gate_draft::{CountDraft, add_networks},
    options::{Options, size},
    route_dsl::{RouteHandle, networks_of},
    states::{RATE_OPTIONS, concurrency_rule, rate_rule},
};
use crate::{
    answer::status_code,
    engine::Local,
    program::GateKey,
    state::{Concurrency, Rate},
};

pub(super) fn register(engine: &mut Engine) {
    register_addresses(engine);
    register_limits(engine);
    register_concurrency(engine);
    cors_dsl::register(engine);
    engine.register_fn(
        "max_body",
        |call: NativeCallContext, route: &mut RouteHandle, most: &str| {
            route.change(&call, |route| {
                if route.gates.max_body.is_some() {
                    return Err("the route has a `.max_body` already".to_owned());
                }
                let most = if most == "none" {
                    u64::MAX
                } else {
                    size(most)?
                };
                route.gates.max_body = Some(most);
                Ok(())
            })
        },
    );
}

fn register_addresses(engine: &mut Engine) {
    engine
        .register_fn(
            "deny",
            |call: NativeCallContext, route: &mut RouteHandle, networks: Dynamic| {
                route.change(&call, |route| {
                    add_networks(&mut route.gates.deny, networks_of(networks)?);
                    Ok(())
                })
            },
        )
        .register_fn(
            "allow",
            |call: NativeCallContext, route: &mut RouteHandle, networks: Dynamic| {
                route.change(&call, |route| {
                    let networks = networks_of(networks)?;
                    if networks.is_empty() {
                        return Err("no network is allowed, so nobody could come in".to_owned());
                    }
                    add_networks(&mut route.gates.allow, networks);
                    Ok(())
                })
            },
        );
}

fn register_limits(engine: &mut Engine) {
    engine
        .register_fn(
            "limit",
            |call: NativeCallContext, route: &mut RouteHandle, limit: INT, window: &str| {
                route.change(&call, |route| add_limit(route, limit, window, Map::new()))
            },
        )
        .register_fn(
            "limit",
            |call: NativeCallContext,
             route: &mut RouteHandle,
             limit: INT,
             window: &str,
             options: Map| {
                route.change(&call, |route| add_limit(route, limit, window, options))
            },
        )
        .register_fn(
            "limit",
            |call: NativeCallContext, route: &mut RouteHandle, rate: Local<Rate>| {
                route.change(&call, |route| add_shared_limit(route, &rate, Map::new()))
            },
        )
        .register_fn(
            "limit",
            |call: NativeCallContext, route: &mut RouteHandle, rate: Local<Rate>, options: Map| {
                route.change(&call, |route| add_shared_limit(route, &rate, options))
            },
        );
}

/// A limit of this route alone.
fn add_limit(route: &mut RouteDraft, limit: INT, window: &str, options: Map) -> Result<(), String> {
    let [algorithm, burst, max_keys] = RATE_OPTIONS;
    let known = ["key", "status", algorithm, burst, max_keys];
    let mut options = Options::new("limit", options, &known)?;
    let rule = rate_rule("limit", limit, window, &mut options)?;
    let (key, status) = key_and_status(&mut options, &LIMIT)?;
    route.gates.limits.push(CountDraft {
        state: Rate::new(rule),
        own: true,
        key,
        status,
    });
    Ok(())
}

/// A limit that is shared with whatever else uses the constant.
fn add_shared_limit(route: &mut RouteDraft, rate: &Rate, options: Map) -> Result<(), String> {
    let mut options = Options::new("limit", options, &["key", "status"])?;
    let (key, status) = key_and_status(&mut options, &LIMIT)?;
    route.gates.limits.push(CountDraft {
        state: rate.clone(),
        own: false,
        key,
        status,
    });
    Ok(())
}

fn register_concurrency(engine: &mut Engine) {
    engine
        .register_fn(
            "concurrency",
            |call: NativeCallContext, route: &mut RouteHandle, slots: INT| {
                route.change(&call, |route| add_concurrency(route, slots, Map::new()))
            },
        )
        .register_fn(
            "concurrency",
            |call: NativeCallContext, route: &mut RouteHandle, slots: INT, options: Map| {
                route.change(&call, |route| add_concurrency(route, slots, options))
            },
        )
        .register_fn(
            "concurrency",
            |call: NativeCallContext, route: &mut RouteHandle, slots: Local<Concurrency>| {
                route.change(&call, |route| {
                    add_shared_concurrency(route, &slots, Map::new())
                })
            },
        )
        .register_fn(
            "concurrency",
            |call: NativeCallContext,
             route: &mut RouteHandle,
             slots: Local<Concurrency>,
             options: Map| {
                route.change(&call, |route| {
                    add_shared_concurrency(route, &slots, options)
                })
            },
        );
}

fn add_concurrency(route: &mut RouteDraft, slots: INT, options: Map) -> Result<(), String> {
    let known = ["key", "status", "max_keys"];
    let mut options = Options::new("concurrency", options, &known)?;
    let rule = concurrency_rule(slots, &mut options)?;
    let (key, status) = key_and_status(&mut options, &CONCURRENCY)?;
    route.gates.concurrency.push(CountDraft {
        state: Concurrency::new(rule),
        own: true,
        key,
        status,
    });
    Ok(())
}

fn add_shared_concurrency(
    route: &mut RouteDraft,
    slots: &Concurrency,
    options: Map,
) -> Result<(), String> {
    let mut options = Options::new("concurrency", options, &["key", "status"])?;
    let (key, status) = key_and_status(&mut options, &CONCURRENCY)?;
    route.gates.concurrency.push(CountDraft {
        state: slots.clone(),
        own: false,
        key,
        status,
    });
    Ok(())
}

/// What a gate does unless it says otherwise.
struct Defaults {
    key: GateKey,
    status: StatusCode,
}

const LIMIT: Defaults = Defaults {
    key: GateKey::Ip,
    status: StatusCode::TOO_MANY_REQUESTS,
};

const CONCURRENCY: Defaults = Defaults {
    key: GateKey::Route,
    status: StatusCode::SERVICE_UNAVAILABLE,
};

fn key_and_status(
    options: &mut Options,
    defaults: &Defaults,
) -> Result<(GateKey, StatusCode), String> {
    let key = match options.text("key")? {
        Some(text) => GateKey::parse(&text)?,
        None => defaults.key.clone(),
    };
    let status = match options.number("status", 400..=599)? {
        Some(status) => status_code(status)?,
        None => defaults.status,
    };
    Ok((key, status))
}
