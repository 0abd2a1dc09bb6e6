//! `.sticky` of a route.

use std::time::Duration;

use rhai::{Engine, Map, NativeCallContext};

use super::{
    options::{Options, time},
    route_dsl::RouteHandle,
};
use crate::{
    cookie::{Attributes, SameSite},
    engine::secret_of,
    program::Sticky,
    stable_hash::StampKey,
};

const OPTIONS: [&str; 7] = [
    "ttl",
    "path",
    "domain",
    "secure",
    "http_only",
    "same_site",
    "secret",
];

/// Bytes that a secret has at the least: as many as the key that is made of it.
const LEAST_SECRET: usize = 16;

pub(super) fn register(engine: &mut Engine) {
    engine
        .register_fn(
            "sticky",
            |call: NativeCallContext, route: &mut RouteHandle, name: &str| {
                set(&call, route, name, Map::new())
            },
        )
        .register_fn(
            "sticky",
            |call: NativeCallContext, route: &mut RouteHandle, name: &str, options: Map| {
                set(&call, route, name, options)
            },
        );
}

fn set(call: &NativeCallContext, route: &mut RouteHandle, name: &str, options: Map) -> RouteHandle {
    let place = route.draft.borrow().place(call.call_position());
    route.change(call, |route| {
        if route.sticky.is_some() {
            return Err("the route has a `.sticky` already".to_owned());
        }
        route.sticky = Some((sticky(name, options)?, place));
        Ok(())
    })
}

fn sticky(name: &str, options: Map) -> Result<Sticky, String> {
    let mut options = Options::new("sticky", options, &OPTIONS)?;
    let mut attributes = Attributes::default();
    if let Some(ttl) = options.text("ttl")? {
        let ttl = time("`ttl` of `sticky`", &ttl)?;
        if ttl < Duration::from_secs(1) || ttl.subsec_nanos() != 0 {
            return Err("`ttl` of `sticky` is whole seconds: cookies know no others".to_owned());
        }
        attributes.max_age = Some(ttl.as_secs());
    }
    if let Some(path) = options.text("path")? {
        attributes.path = path;
    }
    attributes.domain = options.text("domain")?;
    if let Some(http_only) = options.bool("http_only")? {
        attributes.http_only = http_only;
    }
    if let Some(same_site) = options.text("same_site")? {
        attributes.same_site = SameSite::from_name(&same_site).ok_or_else(|| {
            format!(
                "`same_site` of `sticky` is one of {}, not `{same_site}`",
                SameSite::NAMES.join(", ")
            )
        })?;
    }
    let secure = options.bool("secure")?;
    let key = match options.take("secret") {
        None => StampKey::PUBLIC,
        Some(given) => {
            let secret = secret_of(&given);
            let text = given.as_immutable_string_ref();
            let bytes = match (&secret, &text) {
                (Some(secret), _) => secret.bytes(),
                (None, Ok(text)) => text.as_bytes(),
                (None, Err(found)) => {
                    return Err(format!(
                        "`secret` of `sticky` is secret(\"file\") or text, not a value of type `{found}`"
                    ));
                }
            };
            if bytes.len() < LEAST_SECRET {
                return Err(format!(
                    "`secret` of `sticky` has {LEAST_SECRET} bytes at the least"
                ));
            }
            StampKey::of_secret(bytes)
        }
    };
    Sticky::new(name, attributes, secure, key)
}
