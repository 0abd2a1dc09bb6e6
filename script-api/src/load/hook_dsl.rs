//! The hooks of a route, of a site, and of all sites.

use bytesize::ByteSize;
use rhai::{Engine, FnPtr, Map, NativeCallContext};

use super::{
    draft::{Draft, HookDraft, SharedDraft},
    options::check_names,
    route_dsl::RouteHandle,
    site_dsl::SiteHandle,
};
use crate::program::HookKind;

/// Hooks that a route, a site and the whole program can have.
const KINDS: [HookKind; 5] = [
    HookKind::OnRequest,
    HookKind::OnRequestBody,
    HookKind::OnResponse,
    HookKind::OnResponseBody,
    HookKind::OnLog,
];

/// What `.on_response_body` may be told.
const OPTIONS: [&str; 2] = ["stream", "hold"];

/// The most that may be kept back at the end of a piece, in bytes.
const MOST_HELD: u64 = 64 * 1024;

pub(super) fn register(engine: &mut Engine, draft: &SharedDraft) {
    for kind in KINDS {
        register_kind(engine, draft, kind);
    }
    engine.register_fn(
        HookKind::When.name(),
        |call: NativeCallContext, route: &mut RouteHandle, function: FnPtr| {
            let hook = route
                .draft
                .borrow_mut()
                .hook(&call, HookKind::When, function);
            on_route(route, hook)
        },
    );
    register_streams(engine, draft);
}

fn register_kind(engine: &mut Engine, draft: &SharedDraft, kind: HookKind) {
    let shared = draft.clone();
    engine
        .register_fn(
            kind.name(),
            move |call: NativeCallContext, function: FnPtr| {
                let mut draft = shared.borrow_mut();
                let hook = draft.hook(&call, kind, function);
                draft.hooks.extend(hook);
            },
        )
        .register_fn(
            kind.name(),
            move |call: NativeCallContext, site: &mut SiteHandle, function: FnPtr| {
                let hook = site.draft.borrow_mut().hook(&call, kind, function);
                on_site(site, hook)
            },
        )
        .register_fn(
            kind.name(),
            move |call: NativeCallContext, route: &mut RouteHandle, function: FnPtr| {
                let hook = route.draft.borrow_mut().hook(&call, kind, function);
                on_route(route, hook)
            },
        );
}

fn register_streams(engine: &mut Engine, draft: &SharedDraft) {
    let name = HookKind::OnResponseBody.name();
    let shared = draft.clone();
    engine
        .register_fn(
            name,
            move |call: NativeCallContext, options: Map, function: FnPtr| {
                let mut draft = shared.borrow_mut();
                let hook = stream(&mut draft, &call, &options, function);
                draft.hooks.extend(hook);
            },
        )
        .register_fn(
            name,
            |call: NativeCallContext, site: &mut SiteHandle, options: Map, function: FnPtr| {
                let hook = stream(&mut site.draft.borrow_mut(), &call, &options, function);
                on_site(site, hook)
            },
        )
        .register_fn(
            name,
            |call: NativeCallContext, route: &mut RouteHandle, options: Map, function: FnPtr| {
                let hook = stream(&mut route.draft.borrow_mut(), &call, &options, function);
                on_route(route, hook)
            },
        );
}

fn on_site(site: &SiteHandle, hook: Option<HookDraft>) -> SiteHandle {
    let mut draft = site.draft.borrow_mut();
    draft.sites[site.index].hooks.extend(hook);
    drop(draft);
    site.clone()
}

fn on_route(route: &RouteHandle, hook: Option<HookDraft>) -> RouteHandle {
    let mut draft = route.draft.borrow_mut();
    draft.routes[route.index].hooks.extend(hook);
    drop(draft);
    route.clone()
}

/// An `on_response_body` hook with options.
fn stream(
    draft: &mut Draft,
    call: &NativeCallContext,
    options: &Map,
    function: FnPtr,
) -> Option<HookDraft> {
    let stream = match held(options) {
        Ok(stream) => stream,
        Err(message) => {
            let place = draft.place(call.call_position());
            draft.error(place, message);
            return None;
        }
    };
    let hook = draft.hook(call, HookKind::OnResponseBody, function)?;
    Some(HookDraft { stream, ..hook })
}

/// How many bytes are kept back at the end of a piece; `None` when the hook wants the whole body.
fn held(options: &Map) -> Result<Option<usize>, String> {
    check_names(HookKind::OnResponseBody.name(), options, &OPTIONS)?;
    let streams = match options.get("stream") {
        None => false,
        Some(stream) => stream
            .as_bool()
            .map_err(|found| format!("`stream` is true or false, not a value of type `{found}`"))?,
    };
    let Some(hold) = options.get("hold") else {
        return Ok(streams.then_some(0));
    };
    if !streams {
        return Err("`hold` is for a hook that gets the body in pieces: add `stream: true`".into());
    }
    let text = hold.as_immutable_string_ref().map_err(|found| {
        format!("`hold` is a size such as \"4KiB\", not a value of type `{found}`")
    })?;
    let size = text
        .parse::<ByteSize>()
        .map_err(|_| format!("`{}` is no size; write \"4KiB\"", text.as_str()))?;
    if size.as_u64() > MOST_HELD {
        return Err(format!("`hold` is at most 64KiB, not {}", text.as_str()));
    }
    Ok(Some(usize::try_from(size.as_u64()).unwrap_or(usize::MAX)))
}
