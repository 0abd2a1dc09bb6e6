//! The two sides of a comparison: nginx with Lua, and edgewright, each with upstreams of its own.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use super::exchange::{Facts, exchange};
use super::job::{Job, RequestSpec, UpstreamSpec};
use super::support::launch::serving;
use super::support::nginx::Nginx;
use super::support::nginx_lua;
use super::support::proxy::Proxy;
use super::support::upstream::{Action, Seen, Upstream, answer};

/// The upstreams of one side.
pub struct Upstreams(Vec<(String, Upstream)>);

impl Upstreams {
    fn start(job: &Job) -> Self {
        let start = |(name, spec): (&String, &UpstreamSpec)| {
            let (own_name, spec) = (name.clone(), spec.clone());
            let upstream = Upstream::start(move |seen| respond(&own_name, &spec, seen));
            (name.clone(), upstream)
        };
        Self(job.spec.upstreams.iter().map(start).collect())
    }

    fn addresses(&self) -> Vec<(String, SocketAddr)> {
        let address = |(name, upstream): &(String, Upstream)| (name.clone(), upstream.address());
        self.0.iter().map(address).collect()
    }

    /// What each has seen since it was asked last.
    pub fn take(&self) -> Vec<(&str, Vec<Seen>)> {
        self.0
            .iter()
            .map(|(name, upstream)| (name.as_str(), upstream.take_requests()))
            .collect()
    }
}

fn respond(name: &str, spec: &UpstreamSpec, seen: &Seen) -> Action {
    let request = [seen.head.as_slice(), &seen.body].concat();
    let request = String::from_utf8_lossy(&request).to_lowercase();
    let fits = |when: &Option<String>| {
        when.as_ref()
            .is_none_or(|text| request.contains(&text.to_lowercase()))
    };
    let Some(found) = spec.answers.iter().find(|answer| fits(&answer.when)) else {
        return answer(200, &[("Content-Type", "text/plain")], name);
    };
    let headers: Vec<(&str, &str)> = found
        .headers
        .iter()
        .map(|line| line.split_once(": ").unwrap())
        .collect();
    answer(found.status, &headers, &found.body)
}

/// Lua modules that several jobs use.
fn lua_modules() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/oracle/lua")
}

/// A real nginx with `nginx.conf` of the job.
pub struct NginxSide {
    nginx: Nginx,
    upstreams: Upstreams,
}

impl NginxSide {
    pub fn start(job: &Job) -> Self {
        let upstreams = Upstreams::start(job);
        let nginx = nginx_lua::start(&job.files, &lua_modules(), &upstreams.addresses());
        Self { nginx, upstreams }
    }

    pub fn facts(&self, job: &Job, request: &RequestSpec) -> Facts {
        exchange(self.nginx.address(), &self.upstreams, job, request)
    }

    pub fn errors(&self) -> String {
        nginx_lua::errors(&self.nginx)
    }
}

/// The binary under test with `routes.rhai` of the job, and its `edgewright.toml` where it has one.
pub struct EdgewrightSide {
    proxy: Proxy,
    upstreams: Upstreams,
}

impl EdgewrightSide {
    pub fn start(job: &Job) -> Self {
        let upstreams = Upstreams::start(job);
        let routes = job.file("routes.rhai").expect("the job has a routes.rhai");
        let mut builder = serving(routes);
        for (name, text) in &job.files {
            builder = match name.as_str() {
                "routes.rhai" | "nginx.conf" => builder,
                "edgewright.toml" => builder.settings(text),
                _ => builder.file(name, text),
            };
        }
        for (name, address) in upstreams.addresses() {
            builder = builder.pool(&name, address);
        }
        let proxy = builder.start();
        Self { proxy, upstreams }
    }

    pub fn facts(&self, job: &Job, request: &RequestSpec) -> Facts {
        exchange(self.proxy.address(), &self.upstreams, job, request)
    }
}
