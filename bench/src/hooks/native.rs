//! The hooks in Rust: what a hook can't cost less than.

use std::collections::HashMap;

use anyhow::{Context, Result, bail};
use edgewright_script::{answer::Answer, memory::MemoryRequest};
use http::{HeaderName, HeaderValue};

use super::job::{Hooks, Job, Outcome, Pool, REFUSAL};
use crate::load::{self, CLIENT_HEADER, GREEN, KEY_HEADER, VARIANT_HEADER};

/// Names are parsed once, as one would do it in Rust.
static KEY: HeaderName = HeaderName::from_static(KEY_HEADER);
static VARIANT: HeaderName = HeaderName::from_static(VARIANT_HEADER);
static CLIENT: HeaderName = HeaderName::from_static(CLIENT_HEADER);

/// The hooks in Rust.
pub(super) struct Native {
    keys: HashMap<String, String>,
    requests: Vec<MemoryRequest>,
}

impl Native {
    /// For these requests.
    pub(super) fn new(requests: Vec<MemoryRequest>) -> Self {
        Self {
            keys: load::keys().collect(),
            requests,
        }
    }
}

impl Hooks for Native {
    fn call(&mut self, job: Job, request: usize) -> Result<Outcome> {
        let request = &mut self.requests[request];
        match job {
            Job::Routing => Ok(Outcome::Pool(route(request))),
            Job::Auth => authenticate(&self.keys, request),
            Job::Networks | Job::Pattern => bail!("not written in Rust"),
        }
    }

    fn client(&self, request: usize) -> Option<String> {
        client(&self.requests[request])
    }
}

fn route(request: &MemoryRequest) -> Pool {
    match request.headers.get(&VARIANT) {
        Some(variant) if variant == GREEN => Pool::Green,
        _ => Pool::Blue,
    }
}

fn authenticate(keys: &HashMap<String, String>, request: &mut MemoryRequest) -> Result<Outcome> {
    let key = request.headers.get(&KEY);
    let client = key
        .and_then(|key| std::str::from_utf8(key.as_bytes()).ok())
        .and_then(|key| keys.get(key));
    let Some(client) = client else {
        let answer = Answer::new(REFUSAL.0, REFUSAL.1).map_err(anyhow::Error::msg)?;
        return Ok(Outcome::Answer(answer));
    };
    let value = HeaderValue::from_str(client).context("a client's name is no header value")?;
    request.headers.insert(CLIENT.clone(), value);
    Ok(Outcome::Continue)
}

/// What the upstream of `request` would be told about the client.
pub(super) fn client(request: &MemoryRequest) -> Option<String> {
    let value = request.headers.get(&CLIENT)?;
    Some(String::from_utf8_lossy(value.as_bytes()).into_owned())
}
