//! What a route is, as numbers that can be compared between two programs: to tell what a reload has changed.

use std::{
    fmt::{self, Write as _},
    hash::Hasher as _,
};

use siphasher::sip::SipHasher24;

use super::{Auth, BodyHook, Destination, HookId, PoolId, Program, Route};
use crate::{frozen::Frozen, state::State};

/// A route of one program, to be compared with those of another.
///
/// What is inside functions, tables and other files is not in it, nor where things stand in the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RouteOutline {
    /// Which one it is: a digest of hosts, methods and pattern. Routes that differ in their other
    /// conditions only share it.
    pub identity: u64,
    /// What it says: a digest of all the rest.
    pub content: u64,
}

impl Program {
    /// The outlines of all routes, in order.
    pub fn outlines(&self) -> Vec<RouteOutline> {
        let mut outlines: Vec<_> = self
            .routes
            .iter()
            .map(|route| self.outline(route))
            .collect();
        outlines.sort_unstable();
        outlines
    }

    fn outline(&self, route: &Route) -> RouteOutline {
        let mut identity = Digest::new();
        for host in &self.site(route.site).hosts {
            identity.add(format_args!("{host} "));
        }
        identity.add(format_args!("{:?} {}", route.methods, route.pattern));
        let mut content = Digest::new();
        self.describe(route, &mut content);
        RouteOutline {
            identity: identity.finish(),
            content: content.finish(),
        }
    }

    /// Everything of a route but what its identity says. A field that is new must be thought of here.
    fn describe(&self, route: &Route, to: &mut Digest) {
        let Route {
            label: _,
            site: _,
            pattern: _,
            place: _,
            methods: _,
            conditions,
            when,
            gates,
            on_request,
            on_request_body,
            on_response,
            later,
            destination,
            strip_prefix,
            rewrite,
            rewrite_regex,
            request_headers,
            response_headers,
            timeout,
            retries,
            compress,
            mirror,
            sticky,
            auth,
        } = route;
        to.add(format_args!("{conditions:?}{gates:?}{strip_prefix:?}"));
        to.add(format_args!("{rewrite:?}{rewrite_regex:?}{timeout:?}"));
        to.add(format_args!("{request_headers:?}{response_headers:?}"));
        to.add(format_args!("{retries:?}{compress:?}{sticky:?}"));
        for hooks in [
            when,
            on_request,
            on_request_body,
            on_response,
            &later.on_log,
        ] {
            self.describe_hooks(hooks, to);
        }
        for BodyHook { hook, stream } in &later.on_response_body {
            self.describe_hooks(&[*hook], to);
            to.add(format_args!("{stream:?}"));
        }
        self.describe_destination(destination, to);
        if let Some(mirror) = mirror {
            self.describe_pool(mirror.pool, to);
            to.add(format_args!("{:?}", mirror.rules));
        }
        if let Some(auth) = auth {
            self.describe_auth(auth, to);
        }
    }

    fn describe_destination(&self, destination: &Destination, to: &mut Digest) {
        match destination {
            Destination::Pool(pool) => self.describe_pool(*pool, to),
            Destination::Split(split) => {
                for (pool, weight) in split.weights() {
                    self.describe_pool(pool, to);
                    to.add(format_args!("{weight}"));
                }
                to.add(format_args!("{:?}", split.decided_by()));
            }
            Destination::Function(hook) => {
                to.add(format_args!("to"));
                self.describe_hooks(&[*hook], to);
            }
            Destination::RespondFunction(hook) => {
                to.add(format_args!("respond"));
                self.describe_hooks(&[*hook], to);
            }
            Destination::Respond(answer) => to.add(format_args!("{answer:?}")),
            Destination::Redirect(status, target) => to.add(format_args!("{status}{target:?}")),
        }
    }

    fn describe_pool(&self, pool: PoolId, to: &mut Digest) {
        let pool = self.pools.get(pool.index());
        to.add(format_args!("pool {:?}", pool.map(|pool| &pool.name)));
    }

    /// Functions by their names. A closure's name depends on the line that it stands in, so of closures only what
    /// they captured counts.
    fn describe_hooks(&self, hooks: &[HookId], to: &mut Digest) {
        to.add(format_args!("hooks {}", hooks.len()));
        for hook in hooks {
            let function = &self.hook(*hook).function;
            describe_function(&function.name, to);
            for value in &function.captures {
                describe_value(value, to);
            }
        }
    }

    fn describe_auth(&self, auth: &Auth, to: &mut Digest) {
        let Auth {
            basic,
            jwt,
            forward,
        } = auth;
        if let Some(basic) = basic {
            to.add(format_args!("basic {:?}", basic.challenge));
            to.add(format_args!("{:?}{}", basic.user_header, basic.forward));
        }
        if let Some(jwt) = jwt {
            let how = &jwt.how;
            to.add(format_args!("jwt {:?}{:?}", jwt.from, jwt.claims));
            to.add(format_args!("{:?}{}", jwt.challenge, jwt.forward));
            to.add(format_args!("{:?}{:?}", how.keys, how.required));
            to.add(format_args!("{}", how.leeway));
            to.add(format_args!("{:?}", how.validation.algorithms));
            for names in [&how.validation.aud, &how.validation.iss] {
                let mut names: Vec<_> = names.iter().flatten().collect();
                names.sort_unstable();
                to.add(format_args!("{names:?}"));
            }
        }
        if let Some(forward) = forward {
            self.describe_pool(forward.pool, to);
            to.add(format_args!("{:?}", forward.rules));
        }
    }
}

fn describe_function(name: &str, to: &mut Digest) {
    let name = if name.contains('$') { "closure" } else { name };
    to.add(format_args!("function {name:?}"));
}

/// Of natives that hold what stands in files, or what was counted, the kind alone.
fn describe_value(value: &Frozen, to: &mut Digest) {
    match value {
        Frozen::Array(items) => {
            to.add(format_args!("array {}", items.len()));
            items.iter().for_each(|item| describe_value(item, to));
        }
        Frozen::Map(entries) => {
            to.add(format_args!("map {}", entries.len()));
            for (key, value) in entries {
                to.add(format_args!("{key:?}"));
                describe_value(value, to);
            }
        }
        Frozen::Function(function) => {
            describe_function(&function.name, to);
            for value in &function.captures {
                describe_value(value, to);
            }
        }
        Frozen::Table(_) => to.add(format_args!("table")),
        Frozen::Secret(_) => to.add(format_args!("secret")),
        Frozen::Htpasswd(_) => to.add(format_args!("htpasswd")),
        Frozen::State(State::Rate(rate)) => to.add(format_args!("{:?}", rate.rule())),
        Frozen::State(_) => to.add(format_args!("state")),
        Frozen::Unit
        | Frozen::Bool(_)
        | Frozen::Int(_)
        | Frozen::Float(_)
        | Frozen::Char(_)
        | Frozen::Text(_)
        | Frozen::Blob(_)
        | Frozen::Cidr(_)
        | Frozen::Regex(_)
        | Frozen::Jwks(_)
        | Frozen::Answer(_) => to.add(format_args!("{value:?}")),
    }
}

/// A hash of what is written to it.
struct Digest(SipHasher24);

impl Digest {
    fn new() -> Self {
        Self(SipHasher24::new_with_keys(0, 0))
    }

    /// Adds a part, and an end, so that no two lists of parts run together.
    fn add(&mut self, part: fmt::Arguments<'_>) {
        // Writing to a hash can't fail.
        let _ = self.write_fmt(part);
        self.0.write_u8(0xff);
    }

    fn finish(&self) -> u64 {
        self.0.finish()
    }
}

impl fmt::Write for Digest {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.write(text.as_bytes());
        Ok(())
    }
}
