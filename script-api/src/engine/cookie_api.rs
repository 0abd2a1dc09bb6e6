//! Cookies: those of the request on their way to the upstream, and those that clients are given.

use http::{HeaderValue, header};
use rhai::{Dynamic, Engine, ImmutableString, Map};

use super::{
    answer_api::ScriptAnswer,
    current::{NativeResult, change_request, change_response, error},
    fields_api::value_text,
    request_api::RequestHandle,
    response_api::ResponseHandle,
};
use crate::{
    cookie::{self, Attributes, SameSite},
    request::cookies,
    suggest,
};

/// The attributes that a program can give.
const OPTIONS: [&str; 6] = [
    "path",
    "domain",
    "max_age",
    "http_only",
    "secure",
    "same_site",
];

pub(super) fn register(engine: &mut Engine) {
    of_requests(engine);
    of_responses(engine);
    of_answers(engine);
}

fn of_requests(engine: &mut Engine) {
    engine
        .register_fn(
            "remove_cookie",
            |_: &mut RequestHandle, name: &str| -> NativeResult<()> {
                change_lines(|line| cookies::without(line, name)).map(|_| ())
            },
        )
        .register_fn(
            "set_cookie",
            |_: &mut RequestHandle, name: &str, value: Dynamic| -> NativeResult<()> {
                let Some(value) = value_text(&value)? else {
                    return change_lines(|line| cookies::without(line, name)).map(|_| ());
                };
                cookie::check(name, &value).map_err(error)?;
                let mut is_set = false;
                let changed = change_lines(|line| {
                    // Of several lines the first one with it counts, for us as for others.
                    if is_set {
                        return cookies::without(line, name);
                    }
                    let with = cookies::with(line, name, &value);
                    is_set = with.is_some();
                    with
                })?;
                if changed { Ok(()) } else { add(name, &value) }
            },
        );
}

/// Changes the lines of the Cookie header for which `change` gives something; an empty line goes. Says
/// whether there were any.
fn change_lines(mut change: impl FnMut(&[u8]) -> Option<Vec<u8>>) -> NativeResult<bool> {
    change_request(|req| {
        let mut changed = false;
        let lines: Vec<Vec<u8>> = req
            .headers("cookie")
            .into_iter()
            .map(|line| match change(line) {
                Some(line) => {
                    changed = true;
                    line
                }
                None => line.to_vec(),
            })
            .collect();
        if !changed {
            return Ok(false);
        }
        req.remove_header(&header::COOKIE);
        for line in lines.iter().filter(|line| !line.is_empty()) {
            req.add_header(header::COOKIE, value_of(line)?);
        }
        Ok(true)
    })?
}

/// Adds a cookie behind the others: there is one Cookie header (RFC 6265bis section 5.8.1).
fn add(name: &str, value: &str) -> NativeResult<()> {
    change_request(|req| {
        let lines = req.headers("cookie");
        let mut lines: Vec<Vec<u8>> = lines.into_iter().map(<[u8]>::to_vec).collect();
        let pair = format!("{name}={value}");
        match lines.last_mut() {
            None => lines.push(pair.into_bytes()),
            Some(line) => {
                if !line.is_empty() {
                    line.extend_from_slice(b"; ");
                }
                line.extend_from_slice(pair.as_bytes());
            }
        }
        req.remove_header(&header::COOKIE);
        for line in &lines {
            req.add_header(header::COOKIE, value_of(line)?);
        }
        Ok(())
    })?
}

fn value_of(line: &[u8]) -> NativeResult<HeaderValue> {
    HeaderValue::from_bytes(line).map_err(|_| error("a cookie can't hold control characters"))
}

fn of_responses(engine: &mut Engine) {
    fn set(name: &str, value: &Dynamic, options: Map) -> NativeResult<()> {
        let line = line(name, value, options)?;
        let line = HeaderValue::from_str(&line).map_err(|bad| error(bad.to_string()))?;
        drop_lines(name)?;
        change_response(|res| res.add_header(header::SET_COOKIE, line))
    }
    engine
        .register_fn(
            "set_cookie",
            |_: &mut ResponseHandle, name: &str, value: Dynamic| set(name, &value, Map::new()),
        )
        .register_fn(
            "set_cookie",
            |_: &mut ResponseHandle, name: &str, value: Dynamic, options: Map| {
                set(name, &value, options)
            },
        )
        .register_fn("remove_cookie", |_: &mut ResponseHandle, name: &str| {
            drop_lines(name)
        });
}

/// Drops the Set-Cookie lines that set the cookie called `name`.
fn drop_lines(name: &str) -> NativeResult<()> {
    change_response(|res| {
        let lines = res.headers("set-cookie");
        let known = lines.len();
        let kept: Vec<Vec<u8>> = lines
            .into_iter()
            .filter(|line| !cookie::sets(line, name))
            .map(<[u8]>::to_vec)
            .collect();
        if kept.len() == known {
            return Ok(());
        }
        res.remove_header(&header::SET_COOKIE);
        for line in &kept {
            res.add_header(header::SET_COOKIE, value_of(line)?);
        }
        Ok(())
    })?
}

fn of_answers(engine: &mut Engine) {
    fn with(
        answer: &mut ScriptAnswer,
        name: &str,
        value: &Dynamic,
        options: Map,
    ) -> NativeResult<ScriptAnswer> {
        let line = line(name, value, options)?;
        answer.0.add_header("set-cookie", &line).map_err(error)?;
        Ok(answer.clone())
    }
    engine
        .register_fn(
            "cookie",
            |answer: &mut ScriptAnswer, name: ImmutableString, value: Dynamic| {
                with(answer, &name, &value, Map::new())
            },
        )
        .register_fn(
            "cookie",
            |answer: &mut ScriptAnswer, name: ImmutableString, value: Dynamic, options: Map| {
                with(answer, &name, &value, options)
            },
        );
}

fn line(name: &str, value: &Dynamic, options: Map) -> NativeResult<String> {
    let value = value_text(value)?.ok_or_else(|| {
        error(format!(
            "the cookie `{name}` has no value; a client forgets it with \
             `set_cookie(\"{name}\", \"\", #{{ max_age: 0 }})`"
        ))
    })?;
    cookie::line(name, &value, &attributes(options)?).map_err(error)
}

fn attributes(options: Map) -> NativeResult<Attributes> {
    let mut attributes = Attributes::default();
    for (name, given) in options {
        // What is absent is not given.
        if given.is_unit() {
            continue;
        }
        match name.as_str() {
            "path" => attributes.path = text(&name, &given)?,
            "domain" => attributes.domain = Some(text(&name, &given)?),
            "max_age" => attributes.max_age = Some(seconds(&given)?),
            "http_only" => attributes.http_only = flag(&name, &given)?,
            "secure" => attributes.secure = flag(&name, &given)?,
            "same_site" => {
                let given = text(&name, &given)?;
                attributes.same_site = SameSite::from_name(&given).ok_or_else(|| {
                    let hint = suggest::hint(&given, SameSite::NAMES);
                    error(format!("there is no `same_site: {given:?}` ({hint})"))
                })?;
            }
            unknown => {
                let hint = suggest::hint(unknown, OPTIONS);
                return Err(error(format!(
                    "a cookie has no option `{unknown}` ({hint})"
                )));
            }
        }
    }
    Ok(attributes)
}

fn text(name: &str, given: &Dynamic) -> NativeResult<String> {
    let text = given.clone().into_string();
    text.map_err(|found| error(format!("`{name}` of a cookie is text, not `{found}`")))
}

fn flag(name: &str, given: &Dynamic) -> NativeResult<bool> {
    let flag = given.as_bool();
    flag.map_err(|found| {
        error(format!(
            "`{name}` of a cookie is true or false, not `{found}`"
        ))
    })
}

/// Seconds as a number, or a time such as "30m".
fn seconds(given: &Dynamic) -> NativeResult<u64> {
    if let Ok(seconds) = given.as_int() {
        return u64::try_from(seconds)
            .map_err(|_| error("`max_age` of a cookie is 0 or more; 0 removes the cookie"));
    }
    let text = given.as_immutable_string_ref().ok();
    let time = text.and_then(|text| humantime::parse_duration(&text).ok());
    time.map(|time| time.as_secs()).ok_or_else(|| {
        error("`max_age` of a cookie is a number of seconds or a time such as \"30m\"")
    })
}
