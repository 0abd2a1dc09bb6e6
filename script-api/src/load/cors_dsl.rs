//! `.cors(..)` of a route.

use std::time::Duration;

use http::{HeaderName, HeaderValue, Method};
use rhai::{Engine, Map, NativeCallContext};

use super::{
    gate_draft::CorsDraft,
    options::{Options, duration},
    route_dsl::RouteHandle,
};
use crate::program::{Origin, Origins};

/// The longest time for which any browser keeps the answer to a preflight.
const MOST_MAX_AGE: Duration = Duration::from_secs(24 * 60 * 60);

const OPTIONS: [&str; 6] = [
    "origins",
    "methods",
    "headers",
    "expose",
    "credentials",
    "max_age",
];

pub(super) fn register(engine: &mut Engine) {
    engine.register_fn(
        "cors",
        |call: NativeCallContext, route: &mut RouteHandle, options: Map| {
            route.change(&call, |route| {
                if route.gates.cors.is_some() {
                    return Err("the route has a `.cors` already".to_owned());
                }
                route.gates.cors = Some(cors(options)?);
                Ok(())
            })
        },
    );
}

fn cors(given: Map) -> Result<CorsDraft, String> {
    let mut options = Options::new("cors", given, &OPTIONS)?;
    let credentials = options.bool("credentials")?.unwrap_or(false);
    let origins = origins(options.texts("origins")?)?;
    if credentials && origins == Origins::Any {
        return Err(
            "with `credentials` any page could act as whoever looks at it: name the `origins` \
             instead of \"*\""
                .to_owned(),
        );
    }
    let mut list = |name, check: Check| -> Result<_, String> {
        let Some(texts) = options.texts(name)? else {
            return Ok(None);
        };
        let is_any = texts == ["*"];
        if is_any && credentials {
            return Err(format!(
                "`{name}: \"*\"` means nothing to browsers when `credentials` go along: name them"
            ));
        }
        if !is_any {
            texts.iter().try_for_each(|text| check(text))?;
        }
        if texts.is_empty() {
            return Ok(None);
        }
        let joined = HeaderValue::try_from(texts.join(", "));
        joined
            .map(Some)
            .map_err(|_| format!("`{name}` of `cors` can't stand in a header"))
    };
    let methods = list("methods", check_method)?;
    let headers = list("headers", check_header)?;
    let expose = list("expose", check_header)?;
    let max_age = options.text("max_age")?.map(|text| max_age(&text));
    Ok(CorsDraft {
        origins,
        credentials,
        methods,
        headers,
        expose,
        max_age: max_age.transpose()?,
    })
}

type Check = fn(&str) -> Result<(), String>;

fn origins(given: Option<Vec<String>>) -> Result<Origins, String> {
    let example = "#{ origins: [\"https://app.example\"] }";
    let given = given.ok_or_else(|| format!("`.cors` says whose pages may: `.cors({example})`"))?;
    if given == ["*"] {
        return Ok(Origins::Any);
    }
    if given.is_empty() {
        return Err(format!(
            "no origin is allowed: leave `.cors` out, or name one: `.cors({example})`"
        ));
    }
    let parsed = given.iter().map(|text| Origin::parse(text));
    parsed.collect::<Result<_, _>>().map(Origins::Listed)
}

fn check_method(text: &str) -> Result<(), String> {
    let method =
        Method::from_bytes(text.as_bytes()).map_err(|_| format!("`{text}` is no method"))?;
    let upper = method.as_str().to_ascii_uppercase();
    if upper != text {
        return Err(format!(
            "methods are case-sensitive: write `{upper}` instead of `{text}`"
        ));
    }
    Ok(())
}

fn check_header(text: &str) -> Result<(), String> {
    HeaderName::from_bytes(text.as_bytes())
        .map(|_| ())
        .map_err(|_| format!("`{text}` is no header name"))
}

fn max_age(text: &str) -> Result<Duration, String> {
    let time = duration(text)?;
    if time > MOST_MAX_AGE {
        return Err(format!(
            "`max_age` of `cors` is \"24h\" at most, which is as long as any browser keeps it, not \
             {text}"
        ));
    }
    Ok(time)
}
