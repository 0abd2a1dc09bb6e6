//! The methods of a route.

use rhai::{Array, Dynamic, Engine, FnPtr, INT, Map, NativeCallContext};

use super::{
    draft::{DestinationDraft, RouteDraft, SharedDraft},
    options::Options,
    sticky_dsl,
};
use crate::{
    answer::{Answer, header_name, header_value},
    engine::{Local, ScriptAnswer},
    path::{PathPolicy, normalize},
    program::{Condition, HashOn, HeaderChange, Test},
    router::Substitution,
    values::{Cidr, Regex},
};

/// A route in a script.
#[derive(Clone)]
pub(super) struct RouteHandle {
    pub(super) draft: SharedDraft,
    pub(super) index: usize,
}

impl RouteHandle {
    /// Changes the route; what `change` refuses is noted with the place of the call.
    pub(super) fn change(
        &mut self,
        call: &NativeCallContext,
        change: impl FnOnce(&mut RouteDraft) -> Result<(), String>,
    ) -> Self {
        let mut draft = self.draft.borrow_mut();
        if let Err(message) = change(&mut draft.routes[self.index]) {
            let place = draft.place(call.call_position());
            draft.error(place, message);
        }
        drop(draft);
        self.clone()
    }

    fn send_to(&mut self, call: &NativeCallContext, destination: DestinationDraft) -> Self {
        let mut draft = self.draft.borrow_mut();
        let text = match &destination {
            DestinationDraft::Pool(name) => name.clone(),
            DestinationDraft::Redirect(_, target) => target.clone(),
            _ => String::new(),
        };
        let place = draft.literal(call.call_position(), &text);
        match &draft.routes[self.index].destination {
            None => draft.routes[self.index].destination = Some((destination, place)),
            Some((_, first)) => {
                let since = first.line_for(&place.file);
                let message = format!("the route already goes elsewhere since {since}");
                draft.error(place, message);
            }
        }
        drop(draft);
        self.clone()
    }

    fn function(
        &mut self,
        call: &NativeCallContext,
        pointer: FnPtr,
        wrap: fn(crate::frozen::Function) -> DestinationDraft,
    ) -> Self {
        let function = self.draft.borrow_mut().function(call, pointer);
        match function {
            Some(function) => self.send_to(call, wrap(function)),
            None => self.clone(),
        }
    }
}

pub(super) fn register(engine: &mut Engine) {
    engine.register_type_with_name::<RouteHandle>("Route");
    register_conditions(engine);
    register_destinations(engine);
    register_filters(engine);
}

fn register_conditions(engine: &mut Engine) {
    engine.register_fn(
        "methods",
        |call: NativeCallContext, route: &mut RouteHandle, methods: Array| {
            route.change(&call, |route| add_methods(route, &methods))
        },
    );
    type Make = fn(String, Test) -> Condition;
    let makers: [(&str, Make); 3] = [
        ("if_header", |name, test| {
            Condition::Header(name.to_ascii_lowercase(), test)
        }),
        ("if_query", Condition::Query),
        ("if_cookie", Condition::Cookie),
    ];
    for (function, make) in makers {
        engine
            .register_fn(
                function,
                move |call: NativeCallContext, route: &mut RouteHandle, name: &str| {
                    let condition = make(name.to_owned(), Test::Present);
                    route.change(&call, |route| add_condition(route, condition))
                },
            )
            .register_fn(
                function,
                move |call: NativeCallContext, route: &mut RouteHandle, name: &str, value: &str| {
                    let condition = make(name.to_owned(), Test::Is(value.to_owned()));
                    route.change(&call, |route| add_condition(route, condition))
                },
            )
            .register_fn(
                function,
                move |call: NativeCallContext,
                      route: &mut RouteHandle,
                      name: &str,
                      value: Local<Regex>| {
                    let condition = make(name.to_owned(), Test::Matches(Regex::clone(&value)));
                    route.change(&call, |route| add_condition(route, condition))
                },
            );
    }
    engine.register_fn(
        "from",
        |call: NativeCallContext, route: &mut RouteHandle, networks: Dynamic| {
            route.change(&call, |route| {
                let networks = networks_of(networks)?;
                route.conditions.push(Condition::From(networks));
                Ok(())
            })
        },
    );
}

fn add_methods(route: &mut RouteDraft, methods: &Array) -> Result<(), String> {
    for method in methods {
        let method = method
            .as_immutable_string_ref()
            .map_err(|found| format!("a method is text, not a value of type `{found}`"))?;
        let token = http::Method::from_bytes(method.as_bytes())
            .map_err(|_| format!("`{}` is no method", method.as_str()))?;
        let upper = token.as_str().to_ascii_uppercase();
        if upper != token.as_str() {
            return Err(format!(
                "methods are case-sensitive: write `{upper}` instead of `{token}`"
            ));
        }
        if !route.methods.contains(&upper) {
            route.methods.push(upper);
        }
    }
    if route.methods.is_empty() {
        return Err("a route with no method can never match".to_owned());
    }
    Ok(())
}

fn add_condition(route: &mut RouteDraft, condition: Condition) -> Result<(), String> {
    if let Condition::Header(name, _) = &condition {
        header_name_for_matching(name)?;
    }
    route.conditions.push(condition);
    Ok(())
}

/// Unlike a header that is set, one that is only looked at may be a framing field.
fn header_name_for_matching(name: &str) -> Result<(), String> {
    http::HeaderName::from_bytes(name.as_bytes())
        .map(|_| ())
        .map_err(|_| format!("`{name}` is no header name"))
}

/// Networks given as `cidr(..)`, as text or as an array of texts.
pub(super) fn networks_of(value: Dynamic) -> Result<Cidr, String> {
    if let Some(networks) = value.read_lock::<Local<Cidr>>() {
        return Ok(Cidr::clone(&networks));
    }
    if let Ok(text) = value.as_immutable_string_ref() {
        return Cidr::parse([text.as_str()]);
    }
    if let Ok(items) = value.as_array_ref() {
        let texts: Vec<String> = items.iter().map(ToString::to_string).collect();
        return Cidr::parse(texts.iter().map(String::as_str));
    }
    Err(format!(
        "networks are given as cidr([..]) or as text, not as a value of type `{}`",
        value.type_name()
    ))
}

fn register_destinations(engine: &mut Engine) {
    sticky_dsl::register(engine);
    engine
        .register_fn(
            "to",
            |call: NativeCallContext, route: &mut RouteHandle, pool: &str| {
                route.send_to(&call, DestinationDraft::Pool(pool.to_owned()))
            },
        )
        .register_fn(
            "to",
            |call: NativeCallContext, route: &mut RouteHandle, weights: Map| {
                let weights = weights
                    .into_iter()
                    .map(|(name, weight)| (name.to_string(), weight.as_int().unwrap_or(-1)));
                route.send_to(&call, DestinationDraft::Split(weights.collect(), None))
            },
        )
        .register_fn(
            "to",
            |call: NativeCallContext, route: &mut RouteHandle, weights: Map, options: Map| {
                let weights = weights
                    .into_iter()
                    .map(|(name, weight)| (name.to_string(), weight.as_int().unwrap_or(-1)));
                let weights = weights.collect();
                match split_by(options) {
                    Ok(by) => route.send_to(&call, DestinationDraft::Split(weights, by)),
                    Err(message) => route.change(&call, |_| Err(message)),
                }
            },
        )
        .register_fn(
            "to",
            |call: NativeCallContext, route: &mut RouteHandle, function: FnPtr| {
                route.function(&call, function, DestinationDraft::Function)
            },
        )
        .register_fn(
            "respond",
            |call: NativeCallContext, route: &mut RouteHandle, function: FnPtr| {
                route.function(&call, function, DestinationDraft::RespondFunction)
            },
        )
        .register_fn(
            "respond",
            |call: NativeCallContext, route: &mut RouteHandle, answer: ScriptAnswer| {
                route.send_to(&call, DestinationDraft::Respond(answer.0))
            },
        )
        .register_fn(
            "respond",
            |call: NativeCallContext, route: &mut RouteHandle, status: INT| {
                respond(&call, route, status, "")
            },
        )
        .register_fn(
            "respond",
            |call: NativeCallContext, route: &mut RouteHandle, status: INT, body: &str| {
                respond(&call, route, status, body)
            },
        )
        .register_fn(
            "redirect",
            |call: NativeCallContext, route: &mut RouteHandle, status: INT, target: &str| {
                route.send_to(&call, DestinationDraft::Redirect(status, target.to_owned()))
            },
        );
}

/// What decides a split.
fn split_by(options: Map) -> Result<Option<HashOn>, String> {
    let by = Options::new("to", options, &["by"])?.text("by")?;
    by.map(|by| HashOn::parse(&by)).transpose()
}

fn respond(
    call: &NativeCallContext,
    route: &mut RouteHandle,
    status: INT,
    body: &str,
) -> RouteHandle {
    match Answer::new(status, body.to_owned()) {
        Ok(answer) => route.send_to(call, DestinationDraft::Respond(answer)),
        Err(message) => route.change(call, |_| Err(message)),
    }
}

fn register_filters(engine: &mut Engine) {
    engine
        .register_fn(
            "strip_prefix",
            |call: NativeCallContext, route: &mut RouteHandle, prefix: &str| {
                route.change(&call, |route| {
                    route.strip_prefix = Some(prefix_of(prefix)?);
                    Ok(())
                })
            },
        )
        .register_fn(
            "rewrite",
            |call: NativeCallContext, route: &mut RouteHandle, target: &str| {
                let mut draft = route.draft.borrow_mut();
                let place = draft.literal(call.call_position(), target);
                draft.routes[route.index].rewrite = Some((target.to_owned(), place));
                drop(draft);
                route.clone()
            },
        )
        .register_fn(
            "rewrite_regex",
            |call: NativeCallContext, route: &mut RouteHandle, pattern: &str, to: &str| {
                rewrite_regex(&call, route, pattern, to);
                route.clone()
            },
        )
        .register_fn(
            "timeout",
            |call: NativeCallContext, route: &mut RouteHandle, time: &str| {
                route.change(&call, |route| {
                    let parsed = humantime::parse_duration(time)
                        .map_err(|_| format!("`{time}` is no time; write \"1500ms\" or \"2s\""))?;
                    if parsed.is_zero() {
                        return Err("a timeout of zero lets no request through".to_owned());
                    }
                    route.timeout = Some(parsed);
                    Ok(())
                })
            },
        )
        .register_fn(
            "header",
            |call: NativeCallContext, route: &mut RouteHandle, _: Dynamic, _: Dynamic| {
                route.change(&call, |_| {
                    Err("a route has no `.header`: use `.if_header` for a condition, `.set_header` \
                         for the request or `.set_response_header` for the response"
                        .to_owned())
                })
            },
        );
    type Changes = fn(&mut RouteDraft) -> &mut Vec<HeaderChange>;
    let sides: [([&str; 3], Changes); 2] = [
        (["set_header", "add_header", "remove_header"], |route| {
            &mut route.request_headers
        }),
        (
            [
                "set_response_header",
                "add_response_header",
                "remove_response_header",
            ],
            |route| &mut route.response_headers,
        ),
    ];
    for ([set, add, remove], changes) in sides {
        engine
            .register_fn(
                set,
                move |call: NativeCallContext, route: &mut RouteHandle, name: &str, value: &str| {
                    route.change(&call, |route| {
                        let change = HeaderChange::Set(header_name(name)?, header_value(value)?);
                        changes(route).push(change);
                        Ok(())
                    })
                },
            )
            .register_fn(
                add,
                move |call: NativeCallContext, route: &mut RouteHandle, name: &str, value: &str| {
                    route.change(&call, |route| {
                        let change = HeaderChange::Add(header_name(name)?, header_value(value)?);
                        changes(route).push(change);
                        Ok(())
                    })
                },
            )
            .register_fn(
                remove,
                move |call: NativeCallContext, route: &mut RouteHandle, name: &str| {
                    route.change(&call, |route| {
                        changes(route).push(HeaderChange::Remove(header_name(name)?));
                        Ok(())
                    })
                },
            );
    }
}

fn rewrite_regex(call: &NativeCallContext, route: &RouteHandle, pattern: &str, to: &str) {
    let mut draft = route.draft.borrow_mut();
    let position = call.call_position();
    let regex = match Regex::compile(pattern) {
        Ok(regex) => regex,
        Err(reason) => {
            let place = draft.literal(position, pattern);
            draft.error(place, format!("bad pattern `{pattern}`: {reason}"));
            return;
        }
    };
    let place = draft.place(position);
    if draft.routes[route.index].rewrite_regex.is_some() {
        draft.error(place, "the route has a `.rewrite_regex` already");
        return;
    }
    match Substitution::parse(regex, to) {
        Ok(substitution) => {
            draft.routes[route.index].rewrite_regex = Some((substitution, place));
        }
        Err(error) => {
            let mut place = draft.literal(position, to);
            if place.length > 1 {
                place.column += error.offset;
                place.length = error.length.max(1);
            }
            draft.error(place, error.message).help = error.help;
        }
    }
}

/// A prefix to strip, in normal form and without a slash at its end.
fn prefix_of(prefix: &str) -> Result<String, String> {
    let normal = normalize(prefix.as_bytes(), &PathPolicy::default())
        .map_err(|reason| format!("`{prefix}` can't be a prefix: {reason}"))?;
    let trimmed = normal.trim_end_matches('/');
    if trimmed.is_empty() {
        return Err("there is nothing to strip in `/`".to_owned());
    }
    Ok(trimmed.to_owned())
}
