//! The compiled program: immutable, the same for all workers.

mod auth;
mod bodies;
mod compress;
mod condition;
mod gates;
mod hash_on;
mod matching;
mod mirror;
mod outline;
mod phases;
mod retries;
mod route;
mod split;
mod sticky;

pub use auth::{Auth, BasicAuth, ForwardAuth, ForwardCache, ForwardRules, JwtAuth, TokenFrom};
pub use bodies::{BodyHook, Later};
pub use compress::{Compress, ContentCoding};
pub use condition::{Condition, Test};
pub use gates::{
    CORS_FIELDS, ConcurrencyGate, Cors, Gate, GateKey, Gates, LimitGate, Origin, Origins,
    answer as gate_answer,
};
pub use hash_on::HashOn;
pub use matching::{Found, Match};
pub use mirror::{Mirror, MirrorRules};
pub use outline::RouteOutline;
pub use phases::Need;
pub use retries::{MOST_RETRIES, Retries, RetryCause, RetryOn};
pub use route::{Destination, HeaderChange, Route};
pub use split::Split;
pub use sticky::{Stamps, Sticky};

use std::{borrow::Cow, sync::Arc, time::Duration};

use hashbrown::HashMap;

use crate::{
    diagnostic::Place,
    engine::Limits,
    frozen::{Frozen, Function},
    jwt::Jwks,
    path::PathPolicy,
    router::{HostPattern, HostRouter, PathRouter},
    source::Source,
    state::metric::Metric,
};

/// Number of a hook in [`Program::hooks`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct HookId(pub(crate) u32);

/// Number of a route in [`Program::routes`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RouteId(pub(crate) u32);

/// Number of a site in [`Program::sites`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SiteId(pub(crate) u32);

/// Number of a pool in [`Program::pools`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PoolId(pub(crate) u32);

impl RouteId {
    /// Its place in [`Program::routes`].
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl PoolId {
    /// Its place in [`Program::pools`].
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// The kind of a hook: what it is given and what it may say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HookKind {
    /// `on_request(req)`: goes on, or answers.
    OnRequest,
    /// `on_request_body(req)`: has the whole body; goes on, or answers.
    OnRequestBody,
    /// `on_response(req, res)`: goes on, or replaces the response.
    OnResponse,
    /// `on_response_body(req, res)`: has the body, whole or piece by piece; may change it.
    OnResponseBody,
    /// `on_log(req, res)`: looks at what was.
    OnLog,
    /// `to(req)` or `to(req, attempt)`: names a pool or a split, or answers.
    To,
    /// `respond(req)`: answers.
    Respond,
    /// `when(req)`: a bool.
    When,
    /// `every(interval, fn)`: runs without a request.
    Every,
}

impl HookKind {
    /// Its name in logs, metrics and messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::OnRequest => "on_request",
            Self::OnRequestBody => "on_request_body",
            Self::OnResponse => "on_response",
            Self::OnResponseBody => "on_response_body",
            Self::OnLog => "on_log",
            Self::To => "to",
            Self::Respond => "respond",
            Self::When => "when",
            Self::Every => "every",
        }
    }

    /// What the function is given, captured values apart.
    pub const fn parameters(self) -> &'static str {
        match self {
            Self::OnResponse | Self::OnResponseBody | Self::OnLog => "req, res",
            Self::Every => "nothing",
            _ => "req",
        }
    }

    /// Whether it may wait for other services (`fetch`).
    pub fn may_wait(self) -> bool {
        self.has(Need::Waiting)
    }

    /// How many arguments the function takes, captured values apart.
    pub const fn arguments(self) -> usize {
        match self {
            Self::OnResponse | Self::OnResponseBody | Self::OnLog => 2,
            Self::Every => 0,
            _ => 1,
        }
    }
}

/// A hook that runs again and again, without a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Background {
    /// The hook.
    pub hook: HookId,
    /// From the end of a run to the next one.
    pub interval: Duration,
}

/// A function that runs for requests, or in the background.
#[derive(Debug, Clone)]
pub struct Hook {
    /// What it is for.
    pub kind: HookKind,
    /// The function, with what it captured.
    pub function: Function,
    /// Whether a `.to` function takes a second argument, so that it is asked again for each attempt.
    pub is_told_the_attempt: bool,
    /// Where it was handed over, or where its body begins when that is known.
    pub place: Place,
}

impl Hook {
    /// How many arguments it is given, captured values apart.
    pub fn arguments(&self) -> usize {
        self.kind.arguments() + usize::from(self.is_told_the_attempt)
    }
}

/// A pool that the program names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolDeclaration {
    /// Its name.
    pub name: String,
    /// Its targets, when the program declares it with `pool(name, [..])`; `None` for a pool of
    /// `edgewright.toml`.
    pub targets: Option<Vec<TargetDeclaration>>,
    /// Where it is declared, for messages.
    pub place: Option<Place>,
}

/// The most that a target of a pool can weigh.
pub const MOST_WEIGHT: u16 = 1000;

/// A target of a pool that the program declares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetDeclaration {
    /// Where it is, as written: `host:port` and so on.
    pub target: String,
    /// Its share beside the others, 0 to 1000.
    pub weight: u16,
    /// Whether it is only used when no other target is usable.
    pub backup: bool,
    /// Where it stands.
    pub zone: Option<String>,
}

/// The routes of one or more hosts.
#[derive(Debug)]
pub struct Site {
    /// The hosts that it is for.
    pub hosts: Vec<HostPattern>,
    /// Hooks for a request of this site that fits no route.
    pub on_request: Vec<HookId>,
    /// Hooks for the response to such a request.
    pub on_response: Vec<HookId>,
    /// Hooks for its body, and for its end.
    pub later: Later,
    /// The patterns of its routes; positions are those in `routes`.
    pub(crate) paths: PathRouter,
    /// Its routes in the order in which they are tried for one pattern.
    pub(crate) routes: Vec<RouteId>,
}

/// A compiled `routes.rhai`.
#[derive(Debug)]
pub struct Program {
    pub(crate) source: Arc<Source>,
    pub(crate) constants: Vec<(String, Frozen)>,
    pub(crate) limits: Limits,
    pub(crate) path_policy: PathPolicy,
    pub(crate) hosts: HostRouter,
    /// All sites.
    pub sites: Vec<Site>,
    /// All routes, in the order in which they are listed.
    pub routes: Vec<Route>,
    /// All hooks.
    pub hooks: Vec<Hook>,
    /// Hooks for a request that belongs to no site: the `on_log` hooks of all sites.
    pub without_site: Later,
    /// All pools that are known, whether a route uses them or not.
    pub pools: Vec<PoolDeclaration>,
    pub(crate) pool_ids: HashMap<String, PoolId>,
    /// Whether any route has `.cors`.
    pub(crate) has_cors: bool,
    /// What runs without a request.
    pub background: Vec<Background>,
    /// What it counts and measures.
    pub(crate) metrics: Vec<Metric>,
    /// Key sets that somebody must fetch, each source once.
    pub jwks: Vec<Jwks>,
}

impl Program {
    /// The route with this number.
    pub fn route(&self, id: RouteId) -> &Route {
        &self.routes[id.index()]
    }

    /// The site with this number.
    pub fn site(&self, id: SiteId) -> &Site {
        &self.sites[id.0 as usize]
    }

    /// The hook with this number.
    pub fn hook(&self, id: HookId) -> &Hook {
        &self.hooks[id.0 as usize]
    }

    /// The numbers of all hooks, in their order.
    pub fn hook_ids(&self) -> impl Iterator<Item = HookId> + use<> {
        let hooks = u32::try_from(self.hooks.len()).unwrap_or(u32::MAX);
        (0..hooks).map(HookId)
    }

    /// The pool called `name`.
    pub fn pool_id(&self, name: &str) -> Option<PoolId> {
        self.pool_ids.get(name).copied()
    }

    /// What `function` is called in the program's own file: `auth::gate` when it is one of a file
    /// imported as `auth`. Not for closures, whose names say nothing.
    pub fn name_of<'n>(&self, function: &'n Function) -> Cow<'n, str> {
        self.source
            .readable(&function.name, self.source.main_file())
    }

    /// The name of the program's own file, as the places in it call it.
    pub fn file(&self) -> &str {
        self.source.main_file()
    }

    /// Whether a preflight may be for one of its routes: most programs need not look.
    pub fn answers_preflights(&self) -> bool {
        self.has_cors
    }

    /// What paths must look like for this program.
    pub fn path_policy(&self) -> &PathPolicy {
        &self.path_policy
    }
}
