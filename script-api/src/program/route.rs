//! One route: what fits it, and what happens to a request that does.

use std::time::Duration;

use http::{HeaderName, HeaderValue, StatusCode};

use super::{
    Auth, Compress, Condition, Gates, HookId, Later, Mirror, PoolId, Retries, SiteId, Split, Sticky,
};
use crate::{
    answer::Answer,
    diagnostic::Place,
    router::{Pattern, Substitution, Template},
};

/// A route and its native filters.
#[derive(Debug)]
pub struct Route {
    /// The label of its metrics and logs: host (nothing for the any-host site) and pattern.
    pub label: String,
    /// The site that it belongs to.
    pub site: SiteId,
    /// The pattern of the path.
    pub pattern: Pattern,
    /// Where it stands in the program.
    pub place: Place,
    /// The methods that fit, in upper case; empty for all.
    pub methods: Vec<String>,
    /// Native conditions; all must hold.
    pub conditions: Vec<Condition>,
    /// Conditions that are functions; all must hold.
    pub when: Vec<HookId>,
    /// What is asked before any hook runs; most routes have none.
    pub gates: Option<Box<Gates>>,
    /// Hooks before the destination is chosen: of all sites, of the site, of the route.
    pub on_request: Vec<HookId>,
    /// Hooks that have the body of the request, in the same order.
    pub on_request_body: Vec<HookId>,
    /// Hooks for the response header, in the same order.
    pub on_response: Vec<HookId>,
    /// Hooks for the body of the response and the log, in the same order.
    pub later: Later,
    /// Where the request goes.
    pub destination: Destination,
    /// Taken off the front of the path, whole segments only.
    pub strip_prefix: Option<String>,
    /// What the path becomes.
    pub rewrite: Option<Template>,
    /// What is replaced in the path that is left.
    pub rewrite_regex: Option<Substitution>,
    /// Changes to the request's header, after all hooks.
    pub request_headers: Vec<HeaderChange>,
    /// Changes to the response's header, after all hooks.
    pub response_headers: Vec<HeaderChange>,
    /// How long the upstream may take until its response header is complete.
    pub timeout: Option<Duration>,
    /// How often a request is tried again, where the route says so.
    pub retries: Option<Retries>,
    /// Which of its responses are compressed.
    pub compress: Option<Box<Compress>>,
    /// Which of its requests are copied, and where to.
    pub mirror: Option<Mirror>,
    /// Whether a client stays where it was sent to.
    pub sticky: Option<Box<Sticky>>,
    /// Who may use it: asked before any hook.
    pub auth: Option<Box<Auth>>,
}

impl Route {
    /// Whether a request takes it without any script, and nobody has to be asked.
    pub fn needs_no_hook(&self) -> bool {
        let function = matches!(
            self.destination,
            Destination::Function(_) | Destination::RespondFunction(_)
        );
        !function
            && self.when.is_empty()
            && self.on_request.is_empty()
            && self.on_request_body.is_empty()
            && self.auth.is_none()
    }
}

/// Where a request goes.
#[derive(Debug)]
pub enum Destination {
    /// To a pool.
    Pool(PoolId),
    /// To one of several pools by weight.
    Split(Split),
    /// Where a function says.
    Function(HookId),
    /// Nowhere: this response is the answer.
    Respond(Answer),
    /// Nowhere: a function makes the answer.
    RespondFunction(HookId),
    /// Nowhere: the client is sent elsewhere.
    Redirect(StatusCode, Template),
}

/// A change to one header field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HeaderChange {
    /// Replaces all values.
    Set(HeaderName, HeaderValue),
    /// Adds a value.
    Add(HeaderName, HeaderValue),
    /// Removes the field.
    Remove(HeaderName),
}
