//! Values as plain data, which outlives the hook that made them.

use rhai::{Dynamic, NativeCallContext};

use super::current::{NativeResult, error};
use crate::frozen::Frozen;

/// The value as plain data; `holder` is what keeps it, such as "a cache".
pub(super) fn plain(
    ctx: &NativeCallContext,
    value: &Dynamic,
    holder: &str,
) -> NativeResult<Frozen> {
    // A map to whose keys was assigned may be larger than a value may be, and all of it is copied.
    ctx.engine().ensure_data_size_within_limits(value)?;
    let refused = |what: &str| {
        error(format!(
            "{holder} can't hold {what}: it keeps plain data (text, numbers, bools, bytes, arrays, maps)"
        ))
    };
    let frozen = Frozen::freeze(value).map_err(|what| refused(&what))?;
    if frozen.is_plain() {
        return Ok(frozen);
    }
    Err(refused(
        "functions, answers and what is made at the top level",
    ))
}
