//! `req.get(key)` and `req.set(key, value)`: what hooks leave for later hooks of the same request.

use rhai::{Dynamic, Engine, NativeCallContext};

use super::{
    current::{NativeResult, error, kind, request},
    plain::plain,
    request_api::RequestHandle,
};
use crate::{frozen::Frozen, program::HookKind};

pub(super) fn register(engine: &mut Engine) {
    engine
        .register_fn(
            "get",
            |_: &mut RequestHandle, key: &str| -> NativeResult<Dynamic> {
                request(|req| {
                    let kept = req.values().and_then(|values| values.get(key));
                    kept.map_or(Dynamic::UNIT, Frozen::thaw_data)
                })
            },
        )
        // As in a table: what is absent is absent.
        .register_fn("get", |_: &mut RequestHandle, _: ()| Dynamic::UNIT)
        .register_fn(
            "set",
            |ctx: NativeCallContext,
             _: &mut RequestHandle,
             key: &str,
             value: Dynamic|
             -> NativeResult<()> {
                if kind() == Some(HookKind::When) {
                    return Err(error("a `.when` only looks at the request"));
                }
                let value = plain(&ctx, &value, "a request")?;
                let kept = request(|req| {
                    // Removing what isn't there makes nothing to keep values in.
                    if value == Frozen::Unit && req.values().is_none() {
                        return Ok(());
                    }
                    req.values_mut().set(key, value)
                })?;
                kept.map_err(|full| error(full.to_string()))
            },
        )
        .register_fn(
            "set",
            |_: &mut RequestHandle, _: (), _: Dynamic| -> NativeResult<()> {
                Err(error("the key of `req.set` is text, not `()`"))
            },
        );
}
