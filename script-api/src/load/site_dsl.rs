//! `route`, `site` and `pool`.

use rhai::{Array, Dynamic, Engine, Map, NativeCallContext};

use super::{
    draft::{AuthDraft, Draft, RouteDraft, SharedDraft, SiteDraft},
    gate_draft::GatesDraft,
    options::Options,
    route_dsl::RouteHandle,
};
use crate::{
    program::{MOST_WEIGHT, PoolDeclaration, TargetDeclaration},
    router::{HostPattern, Pattern},
};

/// A site in a script.
#[derive(Clone)]
pub(super) struct SiteHandle {
    pub(super) draft: SharedDraft,
    pub(super) index: usize,
}

/// The any-host site.
const ANY_HOST: usize = 0;

pub(super) fn register(engine: &mut Engine, draft: &SharedDraft) {
    engine.register_type_with_name::<SiteHandle>("Site");
    let shared = draft.clone();
    engine.register_fn("route", move |call: NativeCallContext, pattern: &str| {
        add_route(&call, &shared, ANY_HOST, pattern)
    });
    engine.register_fn(
        "route",
        |call: NativeCallContext, site: &mut SiteHandle, pattern: &str| {
            add_route(&call, &site.draft, site.index, pattern)
        },
    );
    let shared = draft.clone();
    engine.register_fn("site", move |call: NativeCallContext, host: &str| {
        add_site(&call, &shared, vec![host.to_owned()])
    });
    let shared = draft.clone();
    engine.register_fn("site", move |call: NativeCallContext, hosts: Array| {
        let hosts = hosts.into_iter().map(|host| host.to_string()).collect();
        add_site(&call, &shared, hosts)
    });
    let shared = draft.clone();
    engine.register_fn(
        "pool",
        move |call: NativeCallContext, name: &str, targets: Array| {
            add_pool(&call, &mut shared.borrow_mut(), name, targets);
        },
    );
}

fn add_route(
    call: &NativeCallContext,
    shared: &SharedDraft,
    site: usize,
    text: &str,
) -> RouteHandle {
    let mut draft = shared.borrow_mut();
    let mut place = draft.literal(call.call_position(), text);
    let pattern = match Pattern::parse(text) {
        Ok(pattern) => pattern,
        Err(error) => {
            if place.length > 1 {
                place.column += text[..error.offset].chars().count();
                place.length = error.length.max(1);
            }
            draft.error(place.clone(), error.message).help = error.help;
            Pattern::catch_all()
        }
    };
    let place = draft.place(call.call_position());
    draft.routes.push(RouteDraft {
        site,
        pattern,
        place,
        methods: Vec::new(),
        conditions: Vec::new(),
        gates: GatesDraft::default(),
        hooks: Vec::new(),
        destination: None,
        strip_prefix: None,
        rewrite: None,
        rewrite_regex: None,
        request_headers: Vec::new(),
        response_headers: Vec::new(),
        timeout: None,
        retries: None,
        compress: None,
        mirror: None,
        sticky: None,
        auth: AuthDraft::default(),
    });
    RouteHandle {
        draft: shared.clone(),
        index: draft.routes.len() - 1,
    }
}

fn add_site(call: &NativeCallContext, shared: &SharedDraft, names: Vec<String>) -> SiteHandle {
    let mut draft = shared.borrow_mut();
    let known = draft.sites.iter().position(|site| site.names == names);
    let index = known.unwrap_or_else(|| new_site(call, &mut draft, names));
    SiteHandle {
        draft: shared.clone(),
        index,
    }
}

fn new_site(call: &NativeCallContext, draft: &mut Draft, names: Vec<String>) -> usize {
    let position = call.call_position();
    let mut hosts = Vec::new();
    if names.is_empty() {
        let place = draft.place(position);
        draft.error(place, "a site needs at least one host");
    }
    for name in &names {
        let place = draft.literal(position, name);
        match HostPattern::parse(name) {
            Ok(host) => {
                let taken = draft.sites.iter().any(|site| site.hosts.contains(&host));
                if taken || hosts.contains(&host) {
                    draft.error(place, format!("the host `{name}` already has a site"));
                } else {
                    hosts.push(host);
                }
            }
            Err(error) => {
                draft.error(place, error.message).help = error.help;
            }
        }
    }
    draft.sites.push(SiteDraft {
        names,
        hosts,
        hooks: Vec::new(),
    });
    draft.sites.len() - 1
}

fn add_pool(call: &NativeCallContext, draft: &mut Draft, name: &str, targets: Array) {
    let place = draft.literal(call.call_position(), name);
    if draft.pools.iter().any(|pool| pool.name == name) {
        draft.error(place, format!("the pool `{name}` is declared twice"));
        return;
    }
    if targets.is_empty() {
        draft.error(place, format!("the pool `{name}` has no targets"));
        return;
    }
    let targets: Result<Vec<_>, _> = targets.into_iter().map(target).collect();
    match targets {
        Ok(targets) => draft.pools.push(PoolDeclaration {
            name: name.to_owned(),
            targets: Some(targets),
            place: Some(place),
        }),
        Err(message) => {
            draft.error(place, format!("the pool `{name}`: {message}"));
        }
    }
}

/// `"host:port"`, or a map with more.
fn target(given: Dynamic) -> Result<TargetDeclaration, String> {
    let mut declared = TargetDeclaration {
        target: String::new(),
        weight: 1,
        backup: false,
        zone: None,
    };
    if let Ok(text) = given.as_immutable_string_ref() {
        declared.target = text.to_string();
        return Ok(declared);
    }
    let found = given.type_name();
    let options = given.try_cast::<Map>().ok_or_else(|| {
        format!(
            "a target is \"host:port\" or #{{ target: \"host:port\", weight: 3 }}, not a value of type `{found}`"
        )
    })?;
    let known = ["target", "weight", "backup", "zone"];
    let mut options = Options::new("pool", options, &known)?;
    declared.target = options
        .text("target")?
        .ok_or("a target says where it is: #{ target: \"host:port\", .. }")?;
    if let Some(weight) = options.number("weight", 0..=MOST_WEIGHT.into())? {
        declared.weight = weight;
    }
    declared.backup = options.bool("backup")?.unwrap_or_default();
    declared.zone = options.text("zone")?;
    Ok(declared)
}
