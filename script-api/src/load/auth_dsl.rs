//! `.basic_auth` and `.jwt`.

use rhai::{Dynamic, Engine, Map, NativeCallContext};

use super::{
    auth_options::{AuthOptions, challenge, own_field},
    auth_values::hash_of,
    draft::RouteDraft,
    route_dsl::RouteHandle,
};
use crate::{
    answer::header_name,
    engine::{Local, jwt::verification},
    jwt::FILTER,
    password::Htpasswd,
    program::{BasicAuth, JwtAuth, TokenFrom},
};

/// What a client is asked for when the program says nothing else.
const REALM: &str = "restricted";

pub(super) fn register(engine: &mut Engine) {
    engine
        .register_fn(
            "basic_auth",
            |call: NativeCallContext, route: &mut RouteHandle, users: Dynamic| {
                route.change(&call, |route| basic_auth(route, users, Map::new()))
            },
        )
        .register_fn(
            "basic_auth",
            |call: NativeCallContext, route: &mut RouteHandle, users: Dynamic, options: Map| {
                route.change(&call, |route| basic_auth(route, users, options))
            },
        )
        .register_fn(
            "jwt",
            |call: NativeCallContext, route: &mut RouteHandle, options: Map| {
                route.change(&call, |route| jwt(route, options))
            },
        );
}

fn basic_auth(route: &mut RouteDraft, users: Dynamic, options: Map) -> Result<(), String> {
    let known = ["realm", "user_header", "forward"];
    let mut options = AuthOptions::new(".basic_auth", options, &known)?;
    if route.auth.basic.is_some() {
        return Err("the route has a `.basic_auth` already".to_owned());
    }
    if let Some(jwt) = &route.auth.jwt
        && jwt.from == TokenFrom::Bearer
    {
        return Err(both_in_authorization());
    }
    let realm = options.text("realm")?;
    route.auth.basic = Some(BasicAuth {
        users: users_of(users)?,
        challenge: challenge(
            "Basic",
            Some(realm.as_deref().unwrap_or(REALM)),
            &["charset=\"UTF-8\""],
        )?,
        user_header: options.header("user_header")?,
        forward: options.flag("forward", false)?,
    });
    Ok(())
}

fn both_in_authorization() -> String {
    "`.basic_auth` and `.jwt` can't both read `Authorization`, which holds one of them: give `.jwt` \
     another `from`"
        .to_owned()
}

/// `htpasswd(..)`, or a map of users and hashes.
fn users_of(users: Dynamic) -> Result<Htpasswd, String> {
    if let Some(users) = users.read_lock::<Local<Htpasswd>>() {
        return Ok(Htpasswd::clone(&users));
    }
    let found = users.type_name();
    let Some(users) = users.try_cast::<Map>() else {
        return Err(format!(
            "users are given as `htpasswd(\"users.htpasswd\")` or as `#{{ alice: \"$2y$..\" }}`, not \
             as a value of type `{found}`"
        ));
    };
    let users = users.into_iter().map(|(user, hash)| {
        let hash =
            hash_of(&hash).map_err(|reason| format!("the password of `{user}`: {reason}"))?;
        Ok((user.to_string(), hash))
    });
    Htpasswd::new(users.collect::<Result<Vec<_>, String>>()?)
}

fn jwt(route: &mut RouteDraft, options: Map) -> Result<(), String> {
    if route.auth.jwt.is_some() {
        return Err("the route has a `.jwt` already".to_owned());
    }
    let mut options = AuthOptions::new(".jwt", options, FILTER.options)?;
    let from = match options.text("from")? {
        None => TokenFrom::Bearer,
        Some(from) => token_from(&from)?,
    };
    if from == TokenFrom::Bearer && route.auth.basic.is_some() {
        return Err(both_in_authorization());
    }
    if options.has("forward") && matches!(from, TokenFrom::Cookie(_) | TokenFrom::Query(_)) {
        return Err(
            "`forward` is about a header field: a token of a cookie or of the query goes on \
                    to the upstream"
                .to_owned(),
        );
    }
    let forward = options.flag("forward", true)?;
    let realm = options.text("realm")?;
    let claims = options.texts("claims")?.into_iter();
    let claims = claims.map(|(claim, field)| Ok((claim, own_field(&field)?)));
    let claims = claims.collect::<Result<_, String>>()?;
    let how = verification(&FILTER, &options.rest());
    let how = how.map_err(|error| message_of(&error))?;
    route.auth.jwt = Some(JwtAuth {
        how,
        from,
        challenge: challenge("Bearer", realm.as_deref(), &[])?,
        invalid: challenge("Bearer", realm.as_deref(), &["error=\"invalid_token\""])?,
        claims,
        forward,
    });
    Ok(())
}

/// What an error of a native says, without a place: that of the filter is the right one.
fn message_of(error: &rhai::EvalAltResult) -> String {
    match error {
        rhai::EvalAltResult::ErrorRuntime(message, _) => message.to_string(),
        other => other.to_string(),
    }
}

fn token_from(from: &str) -> Result<TokenFrom, String> {
    let wrong = || {
        format!(
            "a token can't be taken from `{from}`: write \"authorization\", \"header:x-token\", \
             \"cookie:session\" or \"query:token\""
        )
    };
    if from == "authorization" {
        return Ok(TokenFrom::Bearer);
    }
    let (kind, name) = from.split_once(':').ok_or_else(wrong)?;
    let is_token = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_graphic());
    match kind {
        "header" => Ok(match header_name(name)? {
            http::header::AUTHORIZATION => TokenFrom::Bearer,
            name => TokenFrom::Header(name),
        }),
        "cookie" if is_token => Ok(TokenFrom::Cookie(name.to_owned())),
        "query" if is_token => Ok(TokenFrom::Query(name.to_owned())),
        _ => Err(wrong()),
    }
}
