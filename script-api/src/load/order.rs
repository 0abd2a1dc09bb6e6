//! The order of routes, and those that can never match.

use std::cmp::Ordering;

use hashbrown::HashMap;

use super::{
    build::{Hooks, number},
    draft::SiteDraft,
};
use crate::{
    diagnostic::Diagnostic,
    program::{Route, RouteId, Site, SiteId},
    router::{PathRouter, Pattern, Segment},
};

/// Puts routes in the order in which they are tried and gives each site its own.
pub(super) fn arrange(
    mut routes: Vec<Route>,
    sites: &[SiteDraft],
    site_hooks: Vec<Hooks>,
    findings: &mut Vec<Diagnostic>,
) -> (Vec<Route>, Vec<Site>) {
    // Stable: what is equal stays in the order written.
    routes.sort_by(|a, b| a.site.0.cmp(&b.site.0).then_with(|| precedence(a, b)));
    findings.extend(unreachable(&routes));
    let sites = site_hooks
        .into_iter()
        .enumerate()
        .map(|(index, hooks)| {
            let own: Vec<RouteId> = (0..routes.len())
                .filter(|&route| routes[route].site.0 as usize == index)
                .map(|route| RouteId(number(route)))
                .collect();
            Site {
                hosts: sites[index].hosts.clone(),
                on_request: hooks.on_request,
                on_response: hooks.on_response,
                later: hooks.later,
                paths: PathRouter::build(own.iter().map(|id| &routes[id.index()].pattern)),
                routes: own,
            }
        })
        .collect();
    (routes, sites)
}

/// The order of routes within a site: pattern, method, number of other conditions.
fn precedence(a: &Route, b: &Route) -> Ordering {
    a.pattern
        .cmp_specificity(&b.pattern)
        .then_with(|| a.methods.is_empty().cmp(&b.methods.is_empty()))
        .then_with(|| b.condition_count().cmp(&a.condition_count()))
}

/// Warns of routes that can never match, because one of the same pattern takes everything first.
fn unreachable(routes: &[Route]) -> Vec<Diagnostic> {
    let mut leaves: HashMap<(SiteId, String), Vec<&Route>> = HashMap::new();
    let mut findings = Vec::new();
    for route in routes {
        let earlier = leaves
            .entry((route.site, shape(&route.pattern)))
            .or_default();
        let first = earlier.iter().find(|earlier| {
            earlier.condition_count() == 0
                && (earlier.methods.is_empty()
                    || (!route.methods.is_empty()
                        && route.methods.iter().all(|m| earlier.methods.contains(m))))
        });
        if let Some(first) = first {
            let message = format!(
                "this route can never match: the one in {} takes the same requests first",
                first.place.line_for(&route.place.file)
            );
            findings.push(Diagnostic {
                place: Some(route.place.clone()),
                ..Diagnostic::warning(message)
            });
        }
        earlier.push(route);
    }
    findings
}

/// A pattern without the names of its captures: patterns of one shape fit the same paths.
fn shape(pattern: &Pattern) -> String {
    let mut shape = String::new();
    for segment in pattern.segments() {
        shape.push_str(match segment {
            Segment::Literal(text) => text,
            Segment::Param(_) => "{}",
            Segment::Rest(_) => "{*}",
        });
        shape.push('/');
    }
    shape
}
