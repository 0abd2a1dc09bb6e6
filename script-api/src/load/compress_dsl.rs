//! `.compress` of a route.

use rhai::{Engine, Map, NativeCallContext};

use super::{
    draft::RouteDraft,
    options::{Options, size},
    route_dsl::RouteHandle,
};
use crate::program::{Compress, ContentCoding};

pub(super) fn register(engine: &mut Engine) {
    engine
        .register_fn(
            "compress",
            |call: NativeCallContext, route: &mut RouteHandle| {
                route.change(&call, |route| set(route, Compress::default()))
            },
        )
        .register_fn(
            "compress",
            |call: NativeCallContext, route: &mut RouteHandle, options: Map| {
                route.change(&call, |route| {
                    let compress = compress(options)?;
                    set(route, compress)
                })
            },
        );
}

fn set(route: &mut RouteDraft, compress: Compress) -> Result<(), String> {
    if route.compress.is_some() {
        return Err("the route has a `.compress` already".to_owned());
    }
    route.compress = Some(compress);
    Ok(())
}

fn compress(options: Map) -> Result<Compress, String> {
    let mut options = Options::new("compress", options, &["min", "types", "codings"])?;
    let mut compress = Compress::default();
    if let Some(min) = options.text("min")? {
        compress.min = size(&min)?;
    }
    if let Some(types) = options.texts("types")? {
        for given in &types {
            let valid = given.split_once('/').is_some_and(|(main, rest)| {
                !main.is_empty()
                    && main != "*"
                    && !rest.is_empty()
                    && !rest.contains(['/', ';', ' '])
            });
            if !valid {
                return Err(format!(
                    "`{given}` is no media type; write \"application/json\" or \"text/*\""
                ));
            }
        }
        compress.types = types
            .iter()
            .map(|given| given.to_ascii_lowercase())
            .collect();
    }
    if let Some(codings) = options.texts("codings")? {
        let codings = codings.iter().map(|name| {
            ContentCoding::of(name).ok_or_else(|| {
                format!(
                    "`{name}` is no coding that is known; there are \"zstd\", \"br\" and \"gzip\""
                )
            })
        });
        compress.codings = codings.collect::<Result<_, _>>()?;
    }
    if compress.types.is_empty() || compress.codings.is_empty() {
        return Err("`.compress` with no type or no coding compresses nothing".to_owned());
    }
    Ok(compress)
}
