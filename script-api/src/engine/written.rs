//! Arrays and maps as text, and as JSON.
//!
//! Rhai's own functions copy what is inside once for each level that it is nested in, and look at the
//! length at the end. Its JSON follows a function into the values that it captured: for ever when it
//! captured itself.

use rhai::{
    Array, Dynamic, Engine, EvalAltResult, FUNC_TO_DEBUG, FUNC_TO_STRING, ImmutableString, Map,
    NativeCallContext,
};

use super::{
    budget::Exhausted,
    current::{NativeResult, error},
    fetch_api::ended,
    json,
    limits::Limits,
    size::Size,
};

pub(super) fn register(engine: &mut Engine, limits: &Limits) {
    let limits = *limits;
    for name in [FUNC_TO_STRING, FUNC_TO_DEBUG] {
        engine
            .register_fn(name, move |ctx: NativeCallContext, array: &mut Array| {
                let size = Size::of_items(array);
                let text = written(&limits, size, |text| write_array(&ctx, array, text));
                text.ok_or_else(|| too_large(array))
            })
            .register_fn(name, move |ctx: NativeCallContext, map: &mut Map| {
                let size = Size::of_entries(map);
                let text = written(&limits, size, |text| write_map(&ctx, map, text));
                text.ok_or_else(|| too_large(map))
            });
    }
    engine.register_fn(
        "to_json",
        move |map: &mut Map| -> NativeResult<ImmutableString> {
            let json = json::encode_map_within(map, limits.string).map_err(error)?;
            let json = String::from_utf8(json).map_err(|_| error("JSON is UTF-8"))?;
            Ok(json.into())
        },
    );
}

/// Text that is not written on when it has become longer than it may.
struct Text {
    written: String,
    longest: usize,
}

impl Text {
    fn new(longest: usize) -> Self {
        Self {
            written: String::new(),
            longest,
        }
    }

    fn push(&mut self, text: &str) {
        if !self.is_full() {
            self.written.push_str(text);
        }
    }

    fn is_full(&self) -> bool {
        self.written.len() > self.longest
    }
}

/// What `write` writes; `None` when that is too long, or the value is larger than a value may be.
fn written(limits: &Limits, size: Size, write: impl FnOnce(&mut Text)) -> Option<ImmutableString> {
    if !size.is_within(limits) {
        return None;
    }
    let mut text = Text::new(limits.string);
    write(&mut text);
    (!text.is_full()).then(|| text.written.into())
}

/// Ends the hook. Whoever else asked for the text takes the error for a missing function and writes the
/// value all the same, without a bound; so nothing of it is left.
fn too_large<T: Default>(value: &mut T) -> Box<EvalAltResult> {
    *value = T::default();
    ended(Exhausted::Memory)
}

fn write_array(ctx: &NativeCallContext, array: &mut Array, text: &mut Text) {
    text.push("[");
    for (index, item) in array.iter_mut().enumerate() {
        if index > 0 {
            text.push(", ");
        }
        write(ctx, item, text);
    }
    text.push("]");
}

fn write_map(ctx: &NativeCallContext, map: &mut Map, text: &mut Text) {
    text.push("#{");
    for (index, (key, value)) in map.iter_mut().enumerate() {
        if index > 0 {
            text.push(", ");
        }
        text.push(&format!("{key:?}: "));
        write(ctx, value, text);
    }
    text.push("}");
}

fn write(ctx: &NativeCallContext, value: &mut Dynamic, text: &mut Text) {
    if text.is_full() {
        return;
    }
    if let Some(mut array) = value.write_lock::<Array>() {
        return write_array(ctx, &mut array, text);
    }
    if let Some(mut map) = value.write_lock::<Map>() {
        return write_map(ctx, &mut map, text);
    }
    if let Ok(string) = value.as_immutable_string_ref() {
        return text.push(&format!("{:?}", string.as_str()));
    }
    let type_name = value.type_name();
    match ctx.call_native_fn_raw(FUNC_TO_DEBUG, true, &mut [value]) {
        Ok(leaf) => text.push(&leaf.to_string()),
        // Out of its budget: the next operation ends the hook.
        Err(_) => text.push(type_name),
    }
}
