//! From what the top level said to a program, checked as a whole.

use std::sync::Arc;

use hashbrown::HashMap;
use rhai::AST;

use super::{
    Inputs,
    draft::{AuthDraft, DestinationDraft, Draft, HookDraft, MirrorDraft, RouteDraft, SiteDraft},
    gate_draft::GateNames,
    order::arrange,
};
use crate::{
    answer::redirect_status,
    diagnostic::{Diagnostic, Place},
    frozen::Function,
    program::{
        Auth, Background, BodyHook, Destination, ForwardAuth, Hook, HookId, HookKind, Later,
        Mirror, PoolDeclaration, PoolId, Program, Route, SiteId, Split,
    },
    router::{HostPattern, HostRouter, PatternError, Template},
    source::Source,
    suggest::nearest,
};

/// Builds the program, or notes why there is none.
pub(super) fn build(
    draft: Draft,
    ast: &AST,
    inputs: &Inputs,
    source: Arc<Source>,
    findings: &mut Vec<Diagnostic>,
) -> Option<Program> {
    let pools = declare_pools(&draft, inputs, findings);
    let mut builder = Builder {
        arities: arities(ast),
        pool_ids: pools
            .iter()
            .enumerate()
            .map(|(index, pool)| (pool.name.clone(), PoolId(number(index))))
            .collect(),
        hooks: Vec::new(),
        findings,
        failed: false,
        gate_names: GateNames::default(),
    };
    let common = builder.hooks(&draft.hooks);
    let site_hooks: Vec<Hooks> = draft
        .sites
        .iter()
        .map(|site| common.then(&builder.hooks(&site.hooks)))
        .collect();
    let routes: Vec<Route> = draft
        .routes
        .into_iter()
        .filter_map(|route| {
            let site = &draft.sites[route.site];
            builder.route(route, site, &site_hooks)
        })
        .collect();
    let background = draft
        .background
        .iter()
        .map(|draft| Background {
            hook: builder.hook(
                HookKind::Every,
                draft.hook.function.clone(),
                &draft.hook.place,
            ),
            interval: draft.interval,
        })
        .collect();
    let Builder {
        pool_ids,
        hooks,
        failed,
        ..
    } = builder;
    if failed {
        return None;
    }
    let (routes, sites) = arrange(routes, &draft.sites, site_hooks, findings);
    let hosts = draft.sites.iter().enumerate().flat_map(|(index, site)| {
        let hosts = site.hosts.iter().cloned();
        hosts.map(move |host| (host, number(index)))
    });
    let hosts = match HostRouter::build(hosts) {
        Ok(hosts) => hosts,
        Err(duplicate) => {
            findings.push(Diagnostic::error(duplicate.to_string()));
            return None;
        }
    };
    let mut gates = routes.iter().filter_map(|route| route.gates.as_deref());
    Some(Program {
        has_cors: gates.any(|gates| gates.cors.is_some()),
        source,
        constants: draft.constants,
        limits: inputs.limits,
        path_policy: inputs.path_policy,
        hosts,
        sites,
        routes,
        hooks,
        without_site: Later {
            on_response_body: Vec::new(),
            ..common.later
        },
        pools,
        pool_ids,
        background,
        metrics: draft.metrics,
        jwks: draft.jwks,
    })
}

/// A program has far fewer of anything than `u32` can count: its text is bounded.
pub(super) fn number(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}

fn declare_pools(
    draft: &Draft,
    inputs: &Inputs,
    findings: &mut Vec<Diagnostic>,
) -> Vec<PoolDeclaration> {
    for pool in &draft.pools {
        if inputs.pools.contains(&pool.name) {
            findings.push(Diagnostic {
                place: pool.place.clone(),
                ..Diagnostic::error(format!(
                    "the pool `{}` is declared in edgewright.toml too",
                    pool.name
                ))
            });
        }
    }
    let outside = inputs.pools.iter().map(|name| PoolDeclaration {
        name: name.clone(),
        targets: None,
        place: None,
    });
    outside.chain(draft.pools.iter().cloned()).collect()
}

/// The numbers of parameters with which each function exists; of a closure, its captured values
/// count too.
fn arities(ast: &AST) -> HashMap<String, Vec<usize>> {
    let mut arities: HashMap<String, Vec<usize>> = HashMap::new();
    for function in ast.iter_functions() {
        let known = arities.entry(function.name.to_owned()).or_default();
        known.push(function.params.len());
    }
    arities
}

/// Hooks in the order in which they run.
#[derive(Debug, Clone, Default)]
pub(super) struct Hooks {
    pub(super) on_request: Vec<HookId>,
    on_request_body: Vec<HookId>,
    pub(super) on_response: Vec<HookId>,
    pub(super) later: Later,
    when: Vec<HookId>,
}

impl Hooks {
    fn then(&self, later: &Self) -> Self {
        let mut all = self.clone();
        all.on_request.extend(&later.on_request);
        all.on_request_body.extend(&later.on_request_body);
        all.on_response.extend(&later.on_response);
        let (more, bodies) = (&later.later, &mut all.later);
        bodies.on_response_body.extend(&more.on_response_body);
        bodies.on_log.extend(&more.on_log);
        all.when.extend(&later.when);
        all
    }
}

struct Builder<'a> {
    arities: HashMap<String, Vec<usize>>,
    pool_ids: HashMap<String, PoolId>,
    hooks: Vec<Hook>,
    findings: &'a mut Vec<Diagnostic>,
    failed: bool,
    gate_names: GateNames,
}

impl Builder<'_> {
    fn error(&mut self, place: &Place, message: impl Into<String>) -> &mut Diagnostic {
        self.failed = true;
        self.findings.push(Diagnostic {
            place: Some(place.clone()),
            ..Diagnostic::error(message)
        });
        let last = self.findings.len() - 1;
        &mut self.findings[last]
    }

    fn pattern_error(&mut self, place: &Place, error: PatternError) {
        let mut place = place.clone();
        if place.length > 1 {
            place.column += error.offset;
            place.length = error.length.max(1);
        }
        self.error(&place, error.message).help = error.help;
    }

    fn hooks(&mut self, drafts: &[HookDraft]) -> Hooks {
        let mut hooks = Hooks::default();
        for draft in drafts {
            let id = self.hook(draft.kind, draft.function.clone(), &draft.place);
            match draft.kind {
                HookKind::OnRequestBody => hooks.on_request_body.push(id),
                HookKind::OnResponse => hooks.on_response.push(id),
                HookKind::OnResponseBody => hooks.later.on_response_body.push(BodyHook {
                    hook: id,
                    stream: draft.stream,
                }),
                HookKind::OnLog => hooks.later.on_log.push(id),
                HookKind::When => hooks.when.push(id),
                HookKind::OnRequest | HookKind::To | HookKind::Respond | HookKind::Every => {
                    hooks.on_request.push(id);
                }
            }
        }
        hooks
    }

    /// Adds a hook whose function must exist with the right number of parameters.
    fn hook(&mut self, kind: HookKind, function: Function, place: &Place) -> HookId {
        let wanted = function.captures.len() + kind.arguments();
        let arities = self.arities.get(&function.name);
        let is_told_the_attempt = kind == HookKind::To
            && arities
                .is_some_and(|known| !known.contains(&wanted) && known.contains(&(wanted + 1)));
        let wanted = wanted + usize::from(is_told_the_attempt);
        match self.arities.get(&function.name) {
            None => {
                let known = self.arities.keys().filter(|name| !name.contains('$'));
                let near = nearest(&function.name, known.map(String::as_str));
                let help = near.map(|near| format!("did you mean `{near}`?"));
                self.error(place, format!("there is no function `{}`", function.name))
                    .help = help;
            }
            Some(arities) if !arities.contains(&wanted) => {
                let takes: Vec<String> = arities
                    .iter()
                    .map(|arity| arity.saturating_sub(function.captures.len()).to_string())
                    .collect();
                let message = format!(
                    "a function for `{}` takes {} ({}), this one takes {}",
                    kind.name(),
                    kind.arguments(),
                    kind.parameters(),
                    takes.join(" or "),
                );
                self.error(place, message);
            }
            Some(_) => {}
        }
        self.hooks.push(Hook {
            kind,
            function,
            is_told_the_attempt,
            place: place.clone(),
        });
        HookId(number(self.hooks.len() - 1))
    }

    fn route(&mut self, draft: RouteDraft, site: &SiteDraft, sites: &[Hooks]) -> Option<Route> {
        let hooks = sites[draft.site].then(&self.hooks(&draft.hooks));
        let label = match site.hosts.first() {
            Some(HostPattern::Any) | None => draft.pattern.to_string(),
            Some(host) => format!("{host}{}", draft.pattern),
        };
        let names: Vec<String> = draft.pattern.names().map(str::to_owned).collect();
        let rewrite = match draft.rewrite {
            None => None,
            Some((target, place)) => Some(self.target(&target, &names, &place, &["/"])?),
        };
        let rewrite_regex = match draft.rewrite_regex {
            Some((_, place)) if rewrite.is_some() => {
                let message = "the route has a `.rewrite` too, and one path can't come of both";
                self.error(&place, message);
                return None;
            }
            substitution => substitution.map(|(substitution, _)| substitution),
        };
        let destination = match draft.destination {
            None => {
                self.error(&draft.place, "the route goes nowhere").help =
                    Some("end it with `.to(..)`, `.respond(..)` or `.redirect(..)`".to_owned());
                return None;
            }
            Some((destination, place)) => self.destination(destination, &names, &place)?,
        };
        let goes_on = matches!(
            destination,
            Destination::Pool(_) | Destination::Split(_) | Destination::Function(_)
        );
        let sticky = match draft.sticky {
            Some((_, place)) if !goes_on => {
                self.error(
                    &place,
                    "`.sticky` does nothing on a route that answers itself",
                );
                return None;
            }
            sticky => sticky.map(|(sticky, _)| Box::new(sticky)),
        };
        let gates = draft
            .gates
            .build(&label, &draft.methods, &mut self.gate_names);
        let mirror = self.mirror(draft.mirror, &destination)?;
        let auth = self.auth(draft.auth)?;
        Some(Route {
            label,
            site: SiteId(number(draft.site)),
            pattern: draft.pattern,
            place: draft.place,
            methods: draft.methods,
            conditions: draft.conditions,
            when: hooks.when,
            gates,
            on_request: hooks.on_request,
            on_request_body: hooks.on_request_body,
            on_response: hooks.on_response,
            later: hooks.later,
            destination,
            strip_prefix: draft.strip_prefix,
            rewrite,
            rewrite_regex,
            request_headers: draft.request_headers,
            response_headers: draft.response_headers,
            timeout: draft.timeout,
            retries: draft.retries,
            compress: draft.compress.map(Box::new),
            mirror,
            sticky,
            auth,
        })
    }

    /// `None` when it names a pool that does not exist, or there is nothing to copy.
    fn mirror(
        &mut self,
        draft: Option<MirrorDraft>,
        destination: &Destination,
    ) -> Option<Option<Mirror>> {
        let Some(MirrorDraft { pool, place, rules }) = draft else {
            return Some(None);
        };
        let local = matches!(
            destination,
            Destination::Respond(_) | Destination::RespondFunction(_) | Destination::Redirect(..)
        );
        if local {
            self.error(
                &place,
                "the route answers itself: there is no request to copy",
            )
            .help =
                Some("`.mirror` copies what goes to a pool; give the route a `.to(..)`".to_owned());
            return None;
        }
        let pool = self.pool(&pool, &place)?;
        Some(Some(Mirror { pool, rules }))
    }

    /// `None` when it names a pool that does not exist.
    fn auth(&mut self, draft: AuthDraft) -> Option<Option<Box<Auth>>> {
        let forward = match draft.forward {
            None => None,
            Some(forward) => Some(ForwardAuth {
                pool: self.pool(&forward.pool, &forward.place)?,
                rules: forward.rules,
            }),
        };
        let auth = Auth {
            basic: draft.basic,
            jwt: draft.jwt,
            forward,
        };
        let some = auth.basic.is_some() || auth.jwt.is_some() || auth.forward.is_some();
        Some(some.then(|| Box::new(auth)))
    }

    fn destination(
        &mut self,
        draft: DestinationDraft,
        names: &[String],
        place: &Place,
    ) -> Option<Destination> {
        Some(match draft {
            DestinationDraft::Pool(name) => Destination::Pool(self.pool(&name, place)?),
            DestinationDraft::Split(weights, by) => {
                let mut known = Vec::new();
                for (name, weight) in weights {
                    let Ok(weight) = u32::try_from(weight) else {
                        let message =
                            format!("the weight of `{name}` must be a whole number from 0");
                        self.error(place, message);
                        return None;
                    };
                    known.push((self.pool(&name, place)?, weight));
                }
                match Split::new(known) {
                    Ok(split) => Destination::Split(match by {
                        Some(by) => split.by(by),
                        None => split,
                    }),
                    Err(message) => {
                        self.error(place, message);
                        return None;
                    }
                }
            }
            DestinationDraft::Function(function) => {
                Destination::Function(self.hook(HookKind::To, function, place))
            }
            DestinationDraft::Respond(answer) => Destination::Respond(answer),
            DestinationDraft::RespondFunction(function) => {
                Destination::RespondFunction(self.hook(HookKind::Respond, function, place))
            }
            DestinationDraft::Redirect(status, target) => {
                let status = match redirect_status(status) {
                    Ok(status) => status,
                    Err(message) => {
                        self.error(place, message);
                        return None;
                    }
                };
                let target = self.target(&target, names, place, &["/", "http://", "https://"])?;
                Destination::Redirect(status, target)
            }
        })
    }

    /// A target with captures. Its beginning is fixed text, so that no capture decides where a
    /// client or a request goes.
    fn target(
        &mut self,
        text: &str,
        names: &[String],
        place: &Place,
        beginnings: &[&str],
    ) -> Option<Template> {
        if !beginnings.iter().any(|start| text.starts_with(start)) || text.starts_with("//") {
            let message = format!("a target begins with `{}`", beginnings.join("` or `"));
            self.error(place, message);
            return None;
        }
        let authority = text.split_once("://").map(|(_, rest)| rest);
        let host = authority.map(|rest| rest.split('/').next().unwrap_or(rest));
        if host.is_some_and(|host| host.contains('{') || host.is_empty())
            || authority.is_some_and(|rest| !rest.contains('/') && rest.contains('{'))
        {
            self.error(
                place,
                "a capture can't be part of a host: put a `/` before it",
            );
            return None;
        }
        match Template::parse(text, names) {
            Ok(template) => Some(template),
            Err(error) => {
                self.pattern_error(place, error);
                None
            }
        }
    }

    fn pool(&mut self, name: &str, place: &Place) -> Option<PoolId> {
        if let Some(id) = self.pool_ids.get(name) {
            return Some(*id);
        }
        let near = nearest(name, self.pool_ids.keys().map(String::as_str));
        let help = match near {
            Some(near) => format!("did you mean `{near}`?"),
            None if name.contains("://") => {
                "a pool is named here, not a URL: declare pool(\"authz\", [\"authz.internal:80\"]) and write \
                 \"authz\""
                    .to_owned()
            }
            None => format!(
                "declare it: pool(\"{name}\", [\"127.0.0.1:9000\"]), or [pools.{name}] in edgewright.toml"
            ),
        };
        self.error(place, format!("there is no pool `{name}`")).help = Some(help);
        None
    }
}
