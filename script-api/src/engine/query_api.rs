//! Changes of the query: `req.set_query`, `add_query`, `remove_query`, `sort_query`, and what is in it.

use rhai::{Array, Dynamic, Engine, ImmutableString};

use super::{
    current::{NativeResult, change_request, error, request, too_long},
    fields_api::value_text,
    limits::Limits,
    request_api::RequestHandle,
    text_api::bounded,
};
use crate::request::{Request, query};

pub(super) fn register(engine: &mut Engine, limits: &Limits) {
    let (longest, most) = (limits.string, limits.items);
    engine
        .register_set(
            "query_string",
            move |_: &mut RequestHandle, text: ImmutableString| -> NativeResult<()> {
                change(longest, |_| Some(query::whole(&text)))
            },
        )
        .register_fn(
            "query_names",
            move |_: &mut RequestHandle| -> NativeResult<Array> {
                request(|req| {
                    let names = query::names(req.query_string()).into_iter();
                    bounded(names.map(|name| ImmutableString::from(&*name).into()), most)
                })?
            },
        )
        .register_fn(
            "set_query",
            move |_: &mut RequestHandle, name: &str, value: Dynamic| -> NativeResult<()> {
                let Some(value) = value_text(&value)? else {
                    return change(longest, |sent| query::remove(sent, name));
                };
                change(longest, |sent| Some(query::set(sent, name, &value)))
            },
        )
        .register_fn(
            "add_query",
            move |_: &mut RequestHandle, name: &str, value: Dynamic| -> NativeResult<()> {
                let Some(value) = value_text(&value)? else {
                    return Ok(());
                };
                change(longest, |sent| Some(query::add(sent, name, &value)))
            },
        )
        .register_fn(
            "remove_query",
            move |_: &mut RequestHandle, name: &str| -> NativeResult<()> {
                change(longest, |sent| query::remove(sent, name))
            },
        )
        .register_fn(
            "sort_query",
            move |_: &mut RequestHandle| -> NativeResult<()> {
                change(longest, |sent| Some(query::sorted(sent)))
            },
        );
}

/// Puts what `change` makes of the query in its place; `None` leaves it alone.
fn change(longest: usize, change: impl FnOnce(&str) -> Option<String>) -> NativeResult<()> {
    change_request(|req: &mut dyn Request| {
        let sent = req.query_string();
        let Some(changed) = change(sent) else {
            return Ok(());
        };
        // A query that was sent may be longer than a text of a script; what makes it longer may not.
        if changed.len() > longest.max(sent.len()) {
            return Err(too_long());
        }
        if changed == sent {
            return Ok(());
        }
        let set = req.set_query_string(&changed);
        set.map_err(|long| error(long.to_string()))
    })?
}
