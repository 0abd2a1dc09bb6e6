//! The oracle: jobs that people script in nginx with Lua, written for a real nginx and for
//! edgewright. Both get the same requests and have upstreams that answer alike; what the client gets
//! and what the upstreams saw must be the same. Where it can't be, the job says what each of the two does and
//! why, and that is checked as well.
//!
//! A job is a folder below `jobs`, see `jobs/README.md`.

// A failed unwrap is a failed test.
#![allow(clippy::unwrap_used)]

#[path = "../support/mod.rs"]
mod support;

mod compare;
mod exchange;
mod job;
mod sides;

use std::collections::BTreeSet;

/// A test for each job, named after its folder.
macro_rules! jobs {
    ($($name:ident)*) => {
        const JOBS: &[&str] = &[$(stringify!($name)),*];
        $(#[test] fn $name() { run(stringify!($name)); })*
    };
}

jobs! {
    ab_by_hash
    aggregate
    api_key
    basic_auth
    canary
    cidr_gate
    circuit_breaker
    cors_preflight
    csrf
    error_page
    external_auth
    hide_headers
    https_redirect
    jwt_hs256
    local_json
    maintenance
    mask_body
    path_rewrite
    policy_call
    rate_limit
    redirect_map
    request_headers
    request_id
    security_headers
    set_cookie
    shard
    sign_upstream
    signed_url
    strip_tracking
    tenants
    token_introspection
    waf
    webhook
}

fn run(name: &str) {
    let job = job::Job::read(name);
    if let Some(why) = support::nginx_lua::missing() {
        return support::skip::not_run(&format!("oracle job {name}"), &why);
    }
    let nginx = sides::NginxSide::start(&job);
    let edgewright = sides::EdgewrightSide::start(&job);
    let mut failures = Vec::new();
    let mut common = compare::Common::new(&job.spec.differences);
    for request in &job.spec.requests {
        let on_nginx = nginx.facts(&job, request);
        let on_edgewright = edgewright.facts(&job, request);
        let found = compare::failures(request, &mut common, &on_nginx, &on_edgewright);
        failures.extend(found);
    }
    failures.extend(common.failures());
    assert!(
        failures.is_empty(),
        "{name}:\n{}\n--- errors of nginx\n{}",
        failures.join("\n"),
        nginx.errors()
    );
}

#[test]
fn every_folder_is_a_job_that_is_run() {
    let folders: BTreeSet<String> = job::names();
    let run: BTreeSet<String> = JOBS.iter().map(|name| (*name).to_owned()).collect();
    assert_eq!(folders, run, "folders of jobs, and jobs in main.rs");
    assert!(run.len() >= 15, "{} jobs", run.len());
}
