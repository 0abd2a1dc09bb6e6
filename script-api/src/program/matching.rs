//! Which route a request takes.

use std::ops::ControlFlow;

use smallvec::SmallVec;

use super::{Condition, Program, Route, RouteId, SiteId};
use crate::{request::Request, router::Captures};

/// What was found for a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Match {
    /// A route fits. When it has `.when` functions, they must still hold.
    Found(Found),
    /// No site is for this host.
    NoSite,
    /// The site has no route for this path, or none whose conditions hold.
    NoRoute(SiteId),
    /// The most specific pattern that fits has routes, but none for the method.
    MethodNotAllowed {
        /// The site.
        site: SiteId,
        /// The methods that would fit, for the Allow header (RFC 9110 section 15.5.6).
        allow: String,
    },
}

/// A route that fits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The route.
    pub route: RouteId,
    /// What its pattern captured in the path.
    pub captures: Captures,
}

impl Program {
    /// Finds the route for `request`, the most specific first: only the most specific site whose
    /// host fits is searched, then the pattern that is most literal from the left, then the route
    /// with methods, with more conditions, and the one written first.
    ///
    /// Where conditions don't hold, the next pattern is tried. Where only the method doesn't fit,
    /// it is not: a gate on `/api/{*rest}` for GET must not be walked around with DELETE, by way
    /// of a `/{*rest}` that was meant for everything else.
    ///
    /// Routes in `rejected` are passed over: those whose `.when` said no.
    pub fn find(&self, request: &dyn Request, rejected: &[RouteId]) -> Match {
        let site = self.hosts.of_every_host();
        let Some(site_index) = site.or_else(|| self.hosts.find(request.host())) else {
            return Match::NoSite;
        };
        let site_id = SiteId(site_index);
        let site = self.site(site_id);
        let found = site.paths.visit(request.path(), |leaf, captures| {
            let mut other_methods: SmallVec<[&Route; 4]> = SmallVec::new();
            for &position in leaf {
                let id = site.routes[position as usize];
                let route = self.route(id);
                if rejected.contains(&id) || !route.conditions_hold(request) {
                    continue;
                }
                if !route.allows(request.method()) {
                    other_methods.push(route);
                    continue;
                }
                return ControlFlow::Break(Match::Found(Found {
                    route: id,
                    captures: captures.clone(),
                }));
            }
            if other_methods.is_empty() {
                return ControlFlow::Continue(());
            }
            ControlFlow::Break(Match::MethodNotAllowed {
                site: site_id,
                allow: allow(&other_methods),
            })
        });
        found.unwrap_or(Match::NoRoute(site_id))
    }
}

impl Program {
    /// Finds the route whose `.cors` answers a preflight for a request with this method (the Fetch
    /// standard, "CORS-preflight request"). It is looked for as that request itself would be, but a
    /// preflight says nothing of the fields and cookies that will come: conditions on these, and
    /// `.when`, are passed over. `None` when the most specific pattern that fits has no such route with
    /// `.cors`: then it is a request like any other.
    pub fn find_preflight(&self, request: &dyn Request, method: &str) -> Option<Found> {
        let site = self.site(SiteId(self.hosts.find(request.host())?));
        let found = site.paths.visit(request.path(), |leaf, captures| {
            let mut fits = false;
            for &position in leaf {
                let id = site.routes[position as usize];
                let route = self.route(id);
                if !route.allows(method) || !route.known_conditions_hold(request) {
                    continue;
                }
                fits = true;
                if route
                    .gates
                    .as_ref()
                    .is_some_and(|gates| gates.cors.is_some())
                {
                    return ControlFlow::Break(Some(Found {
                        route: id,
                        captures: captures.clone(),
                    }));
                }
            }
            if fits {
                return ControlFlow::Break(None);
            }
            ControlFlow::Continue(())
        });
        found.flatten()
    }
}

impl Route {
    fn allows(&self, method: &str) -> bool {
        self.methods.is_empty()
            || self.methods.iter().any(|allowed| allowed == method)
            // A GET route also answers HEAD (RFC 9110 section 9.3.2).
            || (method == "HEAD" && self.methods.iter().any(|allowed| allowed == "GET"))
    }

    fn conditions_hold(&self, request: &dyn Request) -> bool {
        self.conditions
            .iter()
            .all(|condition| condition.holds(request))
    }

    /// Whether those conditions hold of which a preflight knows.
    fn known_conditions_hold(&self, request: &dyn Request) -> bool {
        let mut known = self.conditions.iter().filter(|condition| {
            !matches!(condition, Condition::Header(..) | Condition::Cookie(..))
        });
        known.all(|condition| condition.holds(request))
    }

    /// How many conditions besides method and path it has.
    pub(crate) fn condition_count(&self) -> usize {
        self.conditions.len() + self.when.len()
    }
}

fn allow(routes: &[&Route]) -> String {
    let mut methods: Vec<&str> = Vec::new();
    for route in routes {
        for method in &route.methods {
            if !methods.contains(&method.as_str()) {
                methods.push(method);
            }
            if method == "GET" && !methods.contains(&"HEAD") {
                methods.push("HEAD");
            }
        }
    }
    methods.join(", ")
}
