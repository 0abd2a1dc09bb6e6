//! The requests of the jobs, and what has to come of them. In memory and on the wire they are the same.

use anyhow::{Context, Result};
use bytes::Bytes;
use data_encoding::{BASE64URL_NOPAD, HEXLOWER};
use edgewright_script::memory::MemoryRequest;
use http::{HeaderName, HeaderValue};
use ring::hmac;

use super::job::{Job, Said};
use crate::load::{self, CHECK_PATH, KEY_HEADER, VARIANT_HEADER};

/// How many different requests the calls in memory go through: the same bytes each time are what no cache
/// and no branch predictor ever sees in service.
pub(super) const COUNT: usize = 64;
/// The host with the hook. [`load::HOST`] is as long and has none.
pub(super) const HOOKED_HOST: &str = "hooks.test";
/// The host at which the shared counter can be asked.
pub(super) const COUNT_HOST: &str = "count.test";
/// Header with the signature of the path.
pub(super) const SIGNATURE_HEADER: &str = "x-signature";
/// What the job that sets a header says.
pub(super) const CLIENT: &str = "client-0500";
/// The variant that is refused.
pub(super) const REFUSED_VARIANT: &str = "red";
/// What signs paths and tokens.
pub(super) const SECRET: &str = "a secret of 32 bytes, or of more";
/// Who issues the tokens.
pub(super) const ISSUER: &str = "https://id.test";

/// A request and what has to come of it.
pub(super) struct Case {
    /// The request.
    pub(super) request: load::Request,
    /// What the hook says.
    pub(super) said: Said,
}

/// The requests that are measured: all of them go to an upstream.
pub(super) fn measured(job: Job) -> Vec<Case> {
    (0..COUNT).map(|number| case(job, number)).collect()
}

/// The one of them that is sent on the wire: of the middle.
pub(super) fn on_the_wire(job: Job) -> Case {
    case(job, COUNT / 2 + 8)
}

fn case(job: Job, number: usize) -> Case {
    let path = format!("/items/{}", 4000 + number * 37);
    let mut request = ordinary(&path);
    let mut said = Said::Continue;
    match job {
        Job::Prefixes => {
            let prefix = number % load::PREFIXES.len();
            request.path = format!("/{}/4711", load::PREFIXES[prefix]);
            if is_green(prefix) {
                said = Said::Green;
            }
        }
        Job::Table100 | Job::Table100k => {
            // Keys from all over the table.
            request.headers[0].1 = load::key(number * job.keys() / COUNT);
        }
        Job::Hmac => {
            let signature = HEXLOWER.encode(sign(SECRET, &path).as_ref());
            request.headers.push((SIGNATURE_HEADER, signature));
        }
        Job::Jwt => request.headers.push(bearer(&token(number, |_| {}))),
        Job::JsonBody => {
            request.method = "POST";
            request.body = order(number, "EUR");
        }
        Job::Empty | Job::HeaderGet | Job::HeaderSet | Job::Counter | Job::Regex | Job::Loop => {}
    }
    Case { request, said }
}

/// Whether requests with the prefix of this number go to the other pool.
pub(super) fn is_green(prefix: usize) -> bool {
    prefix % 2 == 1
}

/// Those that must come out otherwise: a hook that lets everything pass is no result.
pub(super) fn others(job: Job) -> Vec<Case> {
    let refused = |status, change: &dyn Fn(&mut load::Request)| {
        let mut request = on_the_wire(job).request;
        change(&mut request);
        let said = Said::Answer(status);
        Case { request, said }
    };
    let header = |name: &'static str, value: Option<String>| {
        move |request: &mut load::Request| {
            request.headers.retain(|(known, _)| *known != name);
            request
                .headers
                .extend(value.clone().map(|value| (name, value)));
        }
    };
    let bad_token = |change: &dyn Fn(&mut serde_json::Value)| {
        let (name, value) = bearer(&token(1, change));
        refused(401, &header(name, Some(value)))
    };
    match job {
        Job::Empty | Job::HeaderSet | Job::Counter | Job::Loop => Vec::new(),
        Job::HeaderGet => vec![refused(
            403,
            &header(VARIANT_HEADER, Some(REFUSED_VARIANT.to_owned())),
        )],
        Job::Prefixes => vec![Case {
            request: ordinary("/other/4711"),
            said: Said::Continue,
        }],
        Job::Table100 | Job::Table100k => vec![
            refused(401, &header(KEY_HEADER, Some(load::key(job.keys())))),
            refused(401, &header(KEY_HEADER, None)),
        ],
        Job::Regex => vec![
            refused(403, &|request| request.path = "/items/13".to_owned()),
            refused(404, &|request| request.path = "/items/13/parts".to_owned()),
        ],
        Job::Hmac => vec![
            refused(401, &header(SIGNATURE_HEADER, Some("0".repeat(64)))),
            refused(401, &header(SIGNATURE_HEADER, None)),
            refused(401, &|request| request.path += "0"),
        ],
        Job::Jwt => vec![
            bad_token(&|claims| claims["exp"] = 1_600_000_000.into()),
            bad_token(&|claims| claims["iss"] = "https://id.example".into()),
            refused(401, &header("authorization", None)),
            refused(401, &|request| {
                if let Some((_, value)) = request.headers.last_mut() {
                    *value += "AAAA";
                }
            }),
        ],
        Job::JsonBody => vec![
            refused(400, &|request| request.body = order(1, "USD")),
            refused(400, &|request| request.body.push('x')),
        ],
    }
}

/// A request at whose path the backend tells what it got; only for the job that sets a header.
pub(super) fn shown() -> load::Request {
    ordinary(CHECK_PATH)
}

fn ordinary(path: &str) -> load::Request {
    load::Request {
        path: path.to_owned(),
        ..load::measured()
    }
}

/// The HMAC-SHA256 of a text.
pub(super) fn sign(secret: &str, text: &str) -> hmac::Tag {
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
    hmac::sign(&key, text.as_bytes())
}

fn bearer(token: &str) -> (&'static str, String) {
    ("authorization", format!("Bearer {token}"))
}

fn token(number: usize, change: impl Fn(&mut serde_json::Value)) -> String {
    let mut claims = serde_json::json!({
        "iss": ISSUER,
        "sub": format!("user-{number:04}"),
        "exp": 4_102_444_800_u64,
        "iat": 1_760_000_000_u64,
        "scope": "orders:read orders:write",
    });
    change(&mut claims);
    let head = BASE64URL_NOPAD.encode(br#"{"alg":"HS256","typ":"JWT"}"#);
    let body = BASE64URL_NOPAD.encode(claims.to_string().as_bytes());
    let signed = format!("{head}.{body}");
    let signature = BASE64URL_NOPAD.encode(sign(SECRET, &signed).as_ref());
    format!("{signed}.{signature}")
}

fn order(number: usize, currency: &str) -> String {
    format!(
        r#"{{"id":"order-{number:06}","customer":{{"name":"Ada Lovelace","email":"ada@example.org","member":true}},"lines":[{{"item":"A-1001","count":2,"price":12.99}},{{"item":"B-2002","count":1,"price":45.5}},{{"item":"C-3003","count":12,"price":0.75}}],"currency":"{currency}","total":80.48,"note":"leave it at the door","gift":null}}"#
    )
}

/// The same request in memory, with what a browser sends besides.
pub(super) fn in_memory(request: &load::Request) -> Result<MemoryRequest> {
    let mut memory = MemoryRequest::new(request.method, request.host, &request.path);
    let host = [("host", request.host)].into_iter();
    let own = request.headers.iter();
    let own = own.map(|(name, value)| (*name, value.as_str()));
    for (name, value) in host.chain(load::BROWSER_FIELDS).chain(own) {
        let value = HeaderValue::from_str(value).context("no value of a header field")?;
        memory.headers.append(HeaderName::from_static(name), value);
    }
    memory.body = Some(Bytes::copy_from_slice(request.body.as_bytes()));
    Ok(memory)
}
