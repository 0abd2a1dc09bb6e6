//! `.forward_auth`.

use std::time::Duration;

use http::Method;
use rhai::{Engine, ImmutableString, Map, NativeCallContext};

use super::{
    auth_options::{AuthOptions, own_field},
    draft::ForwardDraft,
    route_dsl::RouteHandle,
};
use crate::program::{ForwardCache, ForwardRules};

/// Time until the answer of a service that is asked is there.
const TIMEOUT: Duration = Duration::from_secs(5);
const MOST_TIMEOUT: Duration = Duration::from_secs(60);

/// The longest time that an answer counts.
const MOST_TTL: Duration = Duration::from_secs(3600);

pub(super) fn register(engine: &mut Engine) {
    engine
        .register_fn(
            "forward_auth",
            |call: NativeCallContext, route: &mut RouteHandle, pool: ImmutableString| {
                forward_auth(&call, route, &pool, Map::new())
            },
        )
        .register_fn(
            "forward_auth",
            |call: NativeCallContext,
             route: &mut RouteHandle,
             pool: ImmutableString,
             options: Map| forward_auth(&call, route, &pool, options),
        );
}

fn forward_auth(
    call: &NativeCallContext,
    route: &mut RouteHandle,
    pool: &str,
    options: Map,
) -> RouteHandle {
    let place = route.draft.borrow().literal(call.call_position(), pool);
    route.change(call, |route| {
        if route.auth.forward.is_some() {
            return Err("the route has a `.forward_auth` already".to_owned());
        }
        route.auth.forward = Some(ForwardDraft {
            pool: pool.to_owned(),
            place,
            rules: forward_rules(options)?,
        });
        Ok(())
    })
}

fn forward_rules(options: Map) -> Result<ForwardRules, String> {
    let known = [
        "path",
        "method",
        "headers",
        "copy",
        "response_headers",
        "timeout",
        "cache",
        "cache_key",
        "cache_scope",
    ];
    let mut options = AuthOptions::new(".forward_auth", options, &known)?;
    let target = options.text("path")?.unwrap_or_else(|| "/".to_owned());
    let can_be_sent = |byte: u8| byte.is_ascii_graphic() && byte != b'#';
    if !target.starts_with('/') || !target.bytes().all(can_be_sent) {
        return Err(format!(
            "the `path` of `.forward_auth` begins with `/` and is percent-encoded, which `{}` is not",
            target.escape_debug()
        ));
    }
    let method = match options.text("method")?.as_deref() {
        None => Method::GET,
        Some("GET") => Method::GET,
        Some("HEAD") => Method::HEAD,
        Some("POST") => Method::POST,
        Some(other) => {
            return Err(format!(
                "the `method` of `.forward_auth` is GET, HEAD or POST, not `{other}`"
            ));
        }
    };
    let headers = options.headers("headers")?;
    let headers =
        headers.unwrap_or_else(|| vec![http::header::AUTHORIZATION, http::header::COOKIE]);
    if let Some(own) = headers.iter().find(|name| is_told(name)) {
        return Err(format!(
            "`headers` of `.forward_auth` can't have `{own}`: the proxy sets it in the question"
        ));
    }
    let copy = options.headers("copy")?.unwrap_or_default();
    // A token for the upstream, for instance: it takes the place of the client's.
    let replaced = [http::header::AUTHORIZATION, http::header::COOKIE];
    for name in copy.iter().filter(|name| !replaced.contains(name)) {
        own_field(name.as_str())?;
    }
    let response_headers = options.headers("response_headers")?.unwrap_or_default();
    let timeout = options.time("timeout", MOST_TIMEOUT)?.unwrap_or(TIMEOUT);
    let cache = forward_cache(&mut options, &headers)?;
    Ok(ForwardRules {
        method,
        target,
        headers,
        copy,
        response_headers,
        timeout,
        cache,
    })
}

/// Fields of the question that the proxy sets itself, whatever a client sends, or that belong to its
/// connection.
fn is_told(name: &http::HeaderName) -> bool {
    let name = name.as_str();
    let told = ["method", "uri", "host", "proto", "for"];
    let own = [
        "x-original-uri",
        "host",
        "cdn-loop",
        "expect",
        "keep-alive",
        "proxy-connection",
        "te",
        "trailer",
        "upgrade",
    ];
    own.contains(&name)
        || name
            .strip_prefix("x-forwarded-")
            .is_some_and(|rest| told.contains(&rest))
}

fn forward_cache(
    options: &mut AuthOptions,
    headers: &[http::HeaderName],
) -> Result<Option<ForwardCache>, String> {
    let Some(ttl) = options.time("cache", MOST_TTL)? else {
        if options.has("cache_key") || options.has("cache_scope") {
            return Err("`cache_key` and `cache_scope` need `cache: \"30s\"`".to_owned());
        }
        return Ok(None);
    };
    let key = options.headers("cache_key")?;
    let whole_route = match options.text("cache_scope")?.as_deref() {
        None | Some("request") => false,
        Some("route") => true,
        Some(other) => {
            return Err(format!(
                "`cache_scope` is \"request\" (the same method, host, path, query and client \
                 address) or \"route\", not `{other}`"
            ));
        }
    };
    let key = key.unwrap_or_else(|| headers.to_vec());
    if whole_route && key.is_empty() {
        return Err(
            "with `cache_scope: \"route\"` and no `cache_key`, one client's answer would be that of \
             all"
                .to_owned(),
        );
    }
    Ok(Some(ForwardCache {
        ttl,
        key,
        whole_route,
    }))
}
