//! The jobs in Rust: what a hook can't cost less than.

use std::collections::HashMap;
use std::hint::black_box;
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Result, bail};
use data_encoding::{BASE64URL_NOPAD, HEXLOWER};
use edgewright_script::memory::MemoryRequest;
use http::header::AUTHORIZATION;
use http::{HeaderName, HeaderValue};
use regex::Regex;
use ring::hmac;
use serde_json::Value;
use subtle::ConstantTimeEq;

use super::cases::{CLIENT, ISSUER, REFUSED_VARIANT, SECRET, SIGNATURE_HEADER, is_green};
use super::job::{Job, Said, Work};
use crate::load::{self, CLIENT_HEADER, KEY_HEADER, PREFIXES, VARIANT_HEADER};

/// Names are parsed once, as one would do it in Rust.
static KEY: HeaderName = HeaderName::from_static(KEY_HEADER);
static VARIANT: HeaderName = HeaderName::from_static(VARIANT_HEADER);
static SIGNATURE: HeaderName = HeaderName::from_static(SIGNATURE_HEADER);
static CLIENT_NAME: HeaderName = HeaderName::from_static(CLIENT_HEADER);

/// A job in Rust.
pub(super) struct Native {
    job: Job,
    requests: Vec<MemoryRequest>,
    keys: HashMap<String, String>,
    hits: Mutex<HashMap<String, i64>>,
    item: Regex,
    secret: hmac::Key,
}

impl Native {
    /// For these requests.
    pub(super) fn new(job: Job, requests: Vec<MemoryRequest>) -> Result<Self> {
        let keys = (0..job.keys()).map(|number| (load::key(number), load::client(number)));
        Ok(Self {
            job,
            requests,
            keys: keys.collect(),
            hits: Mutex::default(),
            item: Regex::new("^/items/([0-9]+)$")?,
            secret: hmac::Key::new(hmac::HMAC_SHA256, SECRET.as_bytes()),
        })
    }

    fn header<'r>(request: &'r MemoryRequest, name: &HeaderName) -> Option<&'r str> {
        let value = request.headers.get(name)?;
        std::str::from_utf8(value.as_bytes()).ok()
    }

    fn item(&self, path: &str) -> Said {
        match self.item.captures(path) {
            None => Said::Answer(404),
            Some(found) if &found[1] == "13" => Said::Answer(403),
            Some(_) => Said::Continue,
        }
    }

    fn is_signed(&self, request: &MemoryRequest) -> bool {
        let made = HEXLOWER.encode(hmac::sign(&self.secret, request.path.as_bytes()).as_ref());
        Self::header(request, &SIGNATURE)
            .is_some_and(|given| bool::from(made.as_bytes().ct_eq(given.as_bytes())))
    }

    /// The claims of a token that is good.
    fn claims(&self, token: &str) -> Option<Value> {
        let (signed, signature) = token.rsplit_once('.')?;
        let (head, body) = signed.split_once('.')?;
        let decoded = |text: &str| BASE64URL_NOPAD.decode(text.as_bytes()).ok();
        let head: Value = serde_json::from_slice(&decoded(head)?).ok()?;
        if head["alg"] != "HS256" {
            return None;
        }
        hmac::verify(&self.secret, signed.as_bytes(), &decoded(signature)?).ok()?;
        let claims: Value = serde_json::from_slice(&decoded(body)?).ok()?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?.as_secs();
        let is_good = claims["exp"].as_u64()? > now && claims["iss"] == ISSUER;
        is_good.then_some(claims)
    }
}

impl Work for Native {
    fn call(&mut self, number: usize) -> Result<Said> {
        let request = &mut self.requests[number];
        let refuse_unless = |holds: bool, status| match holds {
            true => Said::Continue,
            false => Said::Answer(status),
        };
        Ok(match self.job {
            Job::Empty => bail!("nothing is not written in Rust"),
            Job::HeaderGet => {
                let variant = request.headers.get(&VARIANT);
                refuse_unless(variant.is_none_or(|value| value != REFUSED_VARIANT), 403)
            }
            Job::HeaderSet => {
                let value = HeaderValue::from_static(CLIENT);
                request.headers.insert(CLIENT_NAME.clone(), value);
                Said::Continue
            }
            Job::Prefixes => match prefix(&request.path) {
                Some(number) if is_green(number) => Said::Green,
                _ => Said::Continue,
            },
            Job::Table100 | Job::Table100k => {
                let key = Self::header(request, &KEY);
                refuse_unless(key.is_some_and(|key| self.keys.contains_key(key)), 401)
            }
            Job::Counter => {
                let mut hits = self.hits.lock().unwrap_or_else(PoisonError::into_inner);
                match hits.get_mut("all") {
                    Some(count) => *count += 1,
                    None => drop(hits.insert("all".to_owned(), 1)),
                }
                Said::Continue
            }
            Job::Regex => self.item(&self.requests[number].path),
            Job::Hmac => refuse_unless(self.is_signed(&self.requests[number]), 401),
            Job::Jwt => {
                let token = Self::header(&self.requests[number], &AUTHORIZATION);
                let token = token.and_then(|text| text.strip_prefix("Bearer "));
                let claims = token.and_then(|token| self.claims(token));
                refuse_unless(black_box(claims).is_some(), 401)
            }
            Job::JsonBody => {
                let body = request.body.as_deref().unwrap_or_default();
                let order: Option<Value> = serde_json::from_slice(body).ok();
                let is_good = order.is_some_and(|order| order["currency"] == "EUR");
                refuse_unless(is_good, 400)
            }
            Job::Loop => {
                let sum = (0..1000).fold(0, |sum, n| black_box(sum + n));
                refuse_unless(sum == 499_500, 500)
            }
        })
    }

    fn client(&self, number: usize) -> Option<String> {
        client(&self.requests[number])
    }

    fn counted(&mut self) -> Result<i64> {
        let hits = self.hits.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(hits.get("all").copied().unwrap_or(0))
    }
}

/// One after the other.
fn prefix(path: &str) -> Option<usize> {
    PREFIXES.iter().position(|prefix| {
        let rest = path
            .strip_prefix('/')
            .and_then(|path| path.strip_prefix(prefix));
        rest.is_some_and(|rest| rest.starts_with('/'))
    })
}

/// What the upstream of `request` would be told about the client.
pub(super) fn client(request: &MemoryRequest) -> Option<String> {
    Native::header(request, &CLIENT_NAME).map(str::to_owned)
}
