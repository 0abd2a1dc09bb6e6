//! One request to one side, and the facts of it: what the client got and what the upstreams saw.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use super::job::{Job, RequestSpec};
use super::sides::Upstreams;
use super::support::client::request;
use super::support::upstream::Seen;

/// Facts by name: `status`, `header NAME`, `body`, and for each upstream `NAME requests`, `NAME
/// target`, `NAME header NAME` and so on.
pub type Facts = BTreeMap<String, String>;

/// What a fact says of a field that isn't there.
const ABSENT: &str = "(absent)";

pub fn exchange(to: SocketAddr, upstreams: &Upstreams, job: &Job, spec: &RequestSpec) -> Facts {
    let (method, target) = spec.send.split_once(' ').unwrap();
    let mut request = request(method, target);
    if let Some(host) = &spec.host {
        request = request.host(host);
    }
    for line in &spec.headers {
        let (name, value) = line.split_once(": ").unwrap();
        request = request.header(name, value);
    }
    if let Some(body) = &spec.body {
        request = request.body(body.as_str());
    }
    let response = request.send(to);

    let mut facts = Facts::new();
    facts.insert("status".to_owned(), response.status.to_string());
    for name in &job.spec.response_headers {
        let values: Vec<&str> = response
            .headers
            .iter()
            .filter(|(field, _)| field.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
            .collect();
        facts.insert(format!("header {name}"), joined(&values));
    }
    facts.insert("body".to_owned(), response.text());
    for (name, seen) in upstreams.take() {
        facts.insert(format!("{name} requests"), seen.len().to_string());
        for (index, seen) in seen.iter().enumerate() {
            // Most jobs send one request on for one of the client's.
            let prefix = match index {
                0 => name.to_owned(),
                _ => format!("{name} {}", index + 1),
            };
            upstream_facts(&prefix, seen, job, &mut facts);
        }
    }
    facts
}

fn upstream_facts(prefix: &str, seen: &Seen, job: &Job, facts: &mut Facts) {
    let mut insert = |what: &str, value: String| {
        facts.insert(format!("{prefix} {what}"), value);
    };
    insert("method", seen.method());
    insert("target", seen.target());
    insert("body", String::from_utf8_lossy(&seen.body).into_owned());
    for name in &job.spec.upstream_headers {
        let values = seen.headers(name);
        let values: Vec<&str> = values.iter().map(String::as_str).collect();
        insert(&format!("header {name}"), joined(&values));
    }
}

fn joined(values: &[&str]) -> String {
    if values.is_empty() {
        ABSENT.to_owned()
    } else {
        values.join(" | ")
    }
}
