//! `fetch(..)` and `fetch_all(..)`: calls to other services in the middle of a hook.

use std::{rc::Rc, time::Duration};

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, Uri, header};
use rhai::{Array, Dynamic, Engine, EvalAltResult, ImmutableString, Map, Position};

use super::{
    budget::{self, Exhausted},
    coroutine::{Pause, Refused, Wake, suspend},
    current::{self, NativeResult, error},
    fields_api::value_text,
    json,
    reply_api::{ScriptBody, ScriptReply},
};
use crate::{
    outbound::{Outgoing, Recipient},
    program::{HookKind, Need, PoolId},
    suggest,
};

/// What a call's options may be.
pub(crate) const OPTIONS: [&str; 6] = ["method", "path", "headers", "body", "timeout", "retries"];

/// The option of `fetch_all` that names who is called.
const TO: &str = "to";

/// How often a call may be made again.
const MOST_RETRIES: u8 = 5;

/// The longest time that a call may ask for.
const LONGEST: Duration = Duration::from_secs(600);

/// Fields that belong to the connection or say where the message ends (RFC 9110 section 7.6.1,
/// RFC 9112 section 6): whoever makes the call sets them.
const OWN_FIELDS: [&str; 10] = [
    "cdn-loop",
    "connection",
    "content-length",
    "expect",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Finds a pool by its name.
pub(super) type Pools = Rc<dyn Fn(&str) -> Option<PoolId>>;

/// Functions that wait for other services.
pub(super) const WAITING: [&str; 2] = ["fetch", "fetch_all"];

/// For hooks: calls go to `pools`, and take at most `timeout` unless they say otherwise.
pub(super) fn register(engine: &mut Engine, pools: Pools, timeout: Duration) {
    let known = pools.clone();
    engine.register_fn(
        "fetch",
        move |to: ImmutableString| -> NativeResult<ScriptReply> {
            one(outgoing(&to, Map::new(), &*known, timeout)?)
        },
    );
    let known = pools.clone();
    engine.register_fn(
        "fetch",
        move |to: ImmutableString, options: Map| -> NativeResult<ScriptReply> {
            one(outgoing(&to, options, &*known, timeout)?)
        },
    );
    engine.register_fn("fetch_all", move |calls: Array| -> NativeResult<Array> {
        take(calls.len())?;
        let calls = calls.into_iter().map(|call| {
            let (to, options) = recipient_of(call)?;
            let call = outgoing(&to, options, &*pools, timeout)?;
            if budget::is_out_of_memory() {
                return Err(ended(Exhausted::Memory));
            }
            Ok(call)
        });
        let replies = wait(calls.collect::<NativeResult<_>>()?)?;
        Ok(replies.into_iter().map(Dynamic::from).collect())
    });
}

/// For the top level, where nothing can wait.
pub(crate) fn refuse_while_loading(engine: &mut Engine) {
    fn refused<T>() -> NativeResult<T> {
        Err(error(
            "a call to another service can only stand in a hook: the top level waits for nothing",
        ))
    }
    engine.register_fn("fetch", |_: ImmutableString| refused::<ScriptReply>());
    engine.register_fn("fetch", |_: ImmutableString, _: Map| {
        refused::<ScriptReply>()
    });
    engine.register_fn("fetch_all", |_: Array| refused::<Array>());
}

/// One of `fetch_all`'s calls: a pool or URL, or a map with one under `to` beside the options.
fn recipient_of(call: Dynamic) -> NativeResult<(ImmutableString, Map)> {
    if let Ok(to) = call.as_immutable_string_ref() {
        return Ok((to.clone(), Map::new()));
    }
    let found = call.type_name();
    let mut options = call.try_cast::<Map>().ok_or_else(|| {
        error(format!(
            "a call of `fetch_all` is a text or `#{{ to: \"pool or URL\", .. }}`, not a value of type `{found}`"
        ))
    })?;
    let to = options.remove(TO).unwrap_or_default();
    let to = to.into_immutable_string().map_err(|_| {
        error("a call of `fetch_all` says who is called: `#{ to: \"pool or URL\", .. }`")
    })?;
    Ok((to, options))
}

/// Takes calls off those that the hook may still make, before they are built.
fn take(calls: usize) -> NativeResult<()> {
    let may_wait = current::kind().is_some_and(HookKind::may_wait);
    if !may_wait {
        return Err(error(format!(
            "`fetch` can only stand {}",
            Need::Waiting.places()
        )));
    }
    if !budget::take_fetches(calls) {
        return Err(ended(Exhausted::Fetches));
    }
    Ok(())
}

fn one(call: Outgoing) -> NativeResult<ScriptReply> {
    take(1)?;
    wait(vec![call])?
        .pop()
        .ok_or_else(|| error("there is no answer to the call"))
}

/// Suspends the hook until the calls are answered.
fn wait(calls: Vec<Outgoing>) -> NativeResult<Vec<ScriptReply>> {
    if calls.is_empty() {
        return Ok(Vec::new());
    }
    let asked = calls.len();
    match suspend(Pause::Calls(calls)) {
        Ok(Wake::Replies(replies)) if replies.len() == asked => {
            Ok(replies.into_iter().map(ScriptReply::new).collect())
        }
        Ok(_) => Err(error("there is no answer to the call")),
        Err(Refused::TooMany) => Err(ended(Exhausted::Waiting)),
        Err(Refused::NoHook) => Err(error("`fetch` can only be used while a hook runs")),
    }
}

/// Ends the hook; a script can't catch it.
pub(super) fn ended(what: Exhausted) -> Box<EvalAltResult> {
    budget::exhaust(what);
    Box::new(EvalAltResult::ErrorTerminated(
        Dynamic::UNIT,
        Position::NONE,
    ))
}

fn outgoing(
    to: &str,
    mut options: Map,
    pools: &dyn Fn(&str) -> Option<PoolId>,
    timeout: Duration,
) -> NativeResult<Outgoing> {
    if let Some(unknown) = options.keys().find(|key| !OPTIONS.contains(&key.as_str())) {
        let nearest = suggest::nearest(unknown, OPTIONS);
        let hint = nearest.map(|name| format!(" (did you mean `{name}`?)"));
        return Err(error(format!(
            "`fetch` has no option `{unknown}`{}; it has {}",
            hint.unwrap_or_default(),
            OPTIONS.join(", "),
        )));
    }
    // What is absent is not given.
    options.retain(|_, value| !value.is_unit());
    let path = options.remove("path");
    let (recipient, target) = match (url(to)?, path) {
        (None, path) => {
            let pool = pools(to)
                .ok_or_else(|| error(format!("there is no pool `{to}` to `fetch` from")))?;
            (
                Recipient::Pool(pool),
                path.map_or(Ok("/".to_owned()), target)?,
            )
        }
        (Some(url), None) => url,
        (Some(_), Some(_)) => {
            return Err(error("`path` belongs to a pool: a URL has its own path"));
        }
    };
    let mut call = Outgoing {
        recipient,
        method: options.remove("method").map_or(Ok(Method::GET), method)?,
        target,
        headers: headers(options.remove("headers"))?,
        body: Bytes::new(),
        timeout: options.remove("timeout").map_or(Ok(timeout), time)?,
        retries: options.remove("retries").map_or(Ok(0), retries)?,
    };
    if let Some(value) = options.remove("body") {
        let (body, kind) = body(value)?;
        call.body = body;
        if let Some(kind) = kind
            && !call
                .headers
                .iter()
                .any(|(name, _)| *name == header::CONTENT_TYPE)
        {
            let kind = HeaderValue::from_static(kind);
            call.headers.push((header::CONTENT_TYPE, kind));
        }
    }
    Ok(call)
}

/// Who a URL names, and path and query; `None` when `to` is no URL.
pub(crate) fn url(to: &str) -> NativeResult<Option<(Recipient, String)>> {
    if !to.contains("://") {
        return Ok(None);
    }
    let wrong = |what: &str| error(format!("`{to}` can't be called: {what}"));
    if to.contains('#') {
        return Err(wrong("a `#` can't be sent"));
    }
    let parsed: Uri = to.parse().map_err(|_| wrong("it is no URL"))?;
    let tls = match parsed.scheme_str() {
        Some("http") => false,
        Some("https") => true,
        _ => return Err(wrong("it must begin with `http://` or `https://`")),
    };
    let authority = parsed
        .authority()
        .ok_or_else(|| wrong("it names no host"))?;
    if authority.as_str().contains('@') {
        return Err(wrong(
            "credentials don't stand in a URL: set the header `authorization`",
        ));
    }
    let host = authority.host();
    let plain = host.trim_start_matches('[').trim_end_matches(']');
    if plain.is_empty() {
        return Err(wrong("it names no host"));
    }
    let port = match authority.port_u16() {
        Some(port) => port,
        None if authority.as_str() != host => {
            return Err(wrong("its port is no number up to 65535"));
        }
        None if tls => 443,
        None => 80,
    };
    let target = parsed
        .path_and_query()
        .map_or("/", |target| target.as_str());
    let target = if target.starts_with('/') {
        target.to_owned()
    } else {
        format!("/{target}")
    };
    let recipient = Recipient::Server {
        tls,
        host: plain.to_ascii_lowercase(),
        port,
    };
    Ok(Some((recipient, target)))
}

/// A path, with or without a query.
fn target(path: Dynamic) -> NativeResult<String> {
    let path = text(path, "path")?;
    let wrong = |what: &str| error(format!("the path `{path}` of `fetch` {what}"));
    if !path.starts_with('/') {
        return Err(wrong("must begin with `/`"));
    }
    let can_be_sent = |byte: u8| byte.is_ascii_graphic() && byte != b'#';
    if !path.bytes().all(can_be_sent) {
        return Err(wrong("holds what must be percent-encoded"));
    }
    Ok(path.to_string())
}

fn method(value: Dynamic) -> NativeResult<Method> {
    let name = text(value, "method")?;
    match name.parse() {
        // A tunnel is no call.
        Ok(method) if method != Method::CONNECT => Ok(method),
        _ => Err(error(format!("`{name}` is no method for `fetch`"))),
    }
}

fn headers(fields: Option<Dynamic>) -> NativeResult<Vec<(HeaderName, HeaderValue)>> {
    let Some(fields) = fields.filter(|fields| !fields.is_unit()) else {
        return Ok(Vec::new());
    };
    let fields = fields
        .try_cast::<Map>()
        .ok_or_else(|| error("the `headers` of `fetch` are a map: `#{ \"x-id\": \"1\" }`"))?;
    let mut headers = Vec::with_capacity(fields.len());
    for (name, value) in fields {
        let parsed = HeaderName::from_bytes(name.as_bytes())
            .map_err(|_| error(format!("`{name}` is no header name")))?;
        if OWN_FIELDS.contains(&parsed.as_str()) {
            return Err(error(format!("`fetch` sets the header `{parsed}` itself")));
        }
        let values = match value.try_cast_result::<Array>() {
            Ok(values) => values,
            Err(value) => vec![value],
        };
        for value in values {
            // As with `set_header`, what is absent is not sent.
            if let Some(value) = value_text(&value)? {
                let value = crate::answer::header_value(&value).map_err(error)?;
                headers.push((parsed.clone(), value));
            }
        }
    }
    Ok(headers)
}

/// The bytes of a body, and what they are when the program doesn't say.
fn body(value: Dynamic) -> NativeResult<(Bytes, Option<&'static str>)> {
    if value.is_unit() {
        return Ok((Bytes::new(), None));
    }
    if let Ok(text) = value.as_immutable_string_ref() {
        let text = Bytes::copy_from_slice(text.as_bytes());
        return Ok((text, Some("text/plain; charset=utf-8")));
    }
    if let Ok(blob) = value.as_blob_ref() {
        return Ok((
            Bytes::copy_from_slice(&blob),
            Some("application/octet-stream"),
        ));
    }
    if let Some(body) = value.read_lock::<ScriptBody>() {
        return Ok((body.0.clone(), Some("application/octet-stream")));
    }
    if value.is_map() || value.is_array() {
        let json = json::encode(&value).map_err(error)?;
        return Ok((json.into(), Some("application/json")));
    }
    Err(error(format!(
        "the `body` of `fetch` is text, bytes, or a map or array that is sent as JSON, not a value of type `{}`",
        value.type_name()
    )))
}

/// How often a call that failed is made again.
fn retries(value: Dynamic) -> NativeResult<u8> {
    let given = value.as_int().ok();
    let retries = given.and_then(|given| u8::try_from(given).ok());
    retries
        .filter(|retries| *retries <= MOST_RETRIES)
        .ok_or_else(|| {
            error(format!(
                "the `retries` of `fetch` are a whole number from 0 to {MOST_RETRIES}"
            ))
        })
}

/// A time with its unit, `"200ms"` or `"2s"`.
fn time(value: Dynamic) -> NativeResult<Duration> {
    let given = text(value, "timeout")?;
    let time = humantime::parse_duration(&given).ok();
    time.filter(|time| (Duration::from_millis(1)..=LONGEST).contains(time))
        .ok_or_else(|| {
            error(format!(
                "the `timeout` of `fetch` is a time like \"200ms\" or \"2s\", from 1 ms to 10 minutes, not `{given}`"
            ))
        })
}

fn text(value: Dynamic, option: &str) -> NativeResult<ImmutableString> {
    let found = value.type_name();
    value.into_immutable_string().map_err(|_| {
        error(format!(
            "the `{option}` of `fetch` is text, not a value of type `{found}`"
        ))
    })
}
