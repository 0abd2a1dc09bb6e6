//! What scripts can do with `req`.

use rhai::{Array, Dynamic, Engine, ImmutableString, Map};

use super::{
    current::{NativeResult, change_request, error, request},
    fields_api::{self, Fields},
    request_text,
    text_api::bounded,
};
use crate::{
    path::{PathPolicy, normalize},
    request::{Request, Tls, cookie_value, header_text, query_values},
};

/// The value of `req` in a script. It carries nothing: see [`super::current`].
#[derive(Debug, Clone, Copy)]
pub(super) struct RequestHandle;

/// Properties of `req`, for checks and suggestions.
pub const REQUEST_PROPERTIES: &[&str] = &[
    "method",
    "scheme",
    "host",
    "path",
    "raw_path",
    "query_string",
    "client_ip",
    "peer_ip",
    "id",
    "protocol",
    "params",
    "tls",
];

/// `most` bounds the values that `queries` finds.
pub(super) fn register(engine: &mut Engine, path_policy: PathPolicy, most: usize) {
    engine.register_type_with_name::<RequestHandle>("Request");
    register_properties(engine, path_policy);
    fields_api::register::<RequestHandle>(engine, Fields::Request);
    register_inputs(engine, most);
}

/// Registers a property whose value is text.
fn text(
    engine: &mut Engine,
    name: &'static str,
    get: impl Fn(&mut dyn Request) -> ImmutableString + 'static,
) {
    engine.register_get(
        name,
        move |_: &mut RequestHandle| -> NativeResult<ImmutableString> { request(&get) },
    );
}

fn register_properties(engine: &mut Engine, path_policy: PathPolicy) {
    request_text::register(engine);
    text(engine, "client_ip", |req| {
        req.client_ip().to_string().into()
    });
    text(engine, "peer_ip", |req| req.peer_ip().to_string().into());
    text(engine, "id", |req| req.id().into());
    engine.register_get("params", |_: &mut RequestHandle| -> NativeResult<Map> {
        request(|req| {
            let params = req.params().into_iter();
            params
                .map(|(name, value)| (name.into(), value.into()))
                .collect()
        })
    });
    engine.register_get("tls", |_: &mut RequestHandle| -> NativeResult<Dynamic> {
        request(|req| req.tls().map_or(Dynamic::UNIT, |tls| tls_map(&tls).into()))
    });
    engine.register_set(
        "path",
        move |_: &mut RequestHandle, path: ImmutableString| -> NativeResult<()> {
            let normal = normalize(path.as_bytes(), &path_policy)
                .map_err(|reason| error(format!("`{path}` can't be a path: {reason}")))?;
            change_request(|req| req.set_path(&normal))
        },
    );
}

/// What is known of a connection; without a name that the client asked for, that is `()`.
fn tls_map(tls: &Tls<'_>) -> Map {
    Map::from([
        ("version".into(), tls.version.into()),
        ("cipher".into(), tls.cipher.into()),
        ("sni".into(), tls.sni.map_or(Dynamic::UNIT, Into::into)),
    ])
}

fn register_inputs(engine: &mut Engine, most: usize) {
    engine
        .register_fn(
            "query",
            |_: &mut RequestHandle, name: ImmutableString| -> NativeResult<Dynamic> {
                request(|req| {
                    query_values(req.query_string(), &name)
                        .next()
                        .map_or(Dynamic::UNIT, |value| {
                            Dynamic::from(ImmutableString::from(&*value))
                        })
                })
            },
        )
        .register_fn(
            "queries",
            move |_: &mut RequestHandle, name: ImmutableString| -> NativeResult<Array> {
                request(|req| {
                    let values = query_values(req.query_string(), &name)
                        .map(|value| Dynamic::from(ImmutableString::from(&*value)));
                    bounded(values, most)
                })?
            },
        )
        .register_fn(
            "cookie",
            |_: &mut RequestHandle, name: ImmutableString| -> NativeResult<Dynamic> {
                request(|req| {
                    let fields = req.headers("cookie");
                    let mut fields = fields.into_iter().map(header_text);
                    fields
                        .find_map(|field| {
                            cookie_value(&field, &name)
                                .map(|value| Dynamic::from(ImmutableString::from(value)))
                        })
                        .unwrap_or(Dynamic::UNIT)
                })
            },
        )
        .register_fn(
            "param",
            |_: &mut RequestHandle, name: ImmutableString| -> NativeResult<Dynamic> {
                request(|req| req.param(&name).map_or(Dynamic::UNIT, |value| value.into()))
            },
        );
}
