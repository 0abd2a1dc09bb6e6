//! What scripts can do with bytes. Rhai's own package is not loaded: it grows blobs without asking
//! first. Comparing, indexing and joining them is built into the interpreter, which bounds it.

use rhai::{Blob, Engine, INT, ImmutableString};

use super::current::{NativeResult, error, too_long};

/// `longest` bounds the text that a blob may become, in bytes.
pub(super) fn register(engine: &mut Engine, longest: usize) {
    engine
        .register_fn("len", len)
        .register_get("len", len)
        .register_fn("is_empty", |blob: &mut Blob| blob.is_empty())
        .register_get("is_empty", |blob: &mut Blob| blob.is_empty())
        .register_fn(
            "text",
            move |blob: &mut Blob| -> NativeResult<ImmutableString> {
                let text = std::str::from_utf8(blob)
                    .map_err(|_| error("these bytes are not UTF-8: use `hex(..)`"))?;
                if text.len() > longest {
                    return Err(too_long());
                }
                Ok(text.into())
            },
        )
        .register_fn("text", |_: ()| ());
}

fn len(blob: &mut Blob) -> INT {
    INT::try_from(blob.len()).unwrap_or(INT::MAX)
}
