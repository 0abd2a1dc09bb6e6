//! Options of natives of the load time: the map behind the other arguments.

use std::ops::RangeInclusive;

use rhai::{Dynamic, INT, Map};

use crate::{
    engine::{NativeResult, native_error},
    suggest::nearest,
};

/// The options that stand behind the other arguments.
pub(super) struct Options {
    of: &'static str,
    given: Map,
}

impl Options {
    pub(super) fn new(of: &'static str, given: Map, known: &[&str]) -> NativeResult<Self> {
        let mut names = given.keys();
        if let Some(unknown) = names.find(|name| !known.contains(&name.as_str())) {
            let near = nearest(unknown, known.iter().copied());
            let hint = near.map(|near| format!(" (did you mean `{near}`?)"));
            return Err(native_error(format!(
                "`{of}` has no option `{unknown}`{}; it has {}",
                hint.unwrap_or_default(),
                known.join(", "),
            )));
        }
        Ok(Self { of, given })
    }

    pub(super) fn take(&mut self, name: &str) -> Option<Dynamic> {
        self.given.remove(name)
    }

    pub(super) fn number<T: TryFrom<INT>>(
        &mut self,
        name: &str,
        range: RangeInclusive<INT>,
    ) -> NativeResult<Option<T>> {
        let Some(given) = self.take(name) else {
            return Ok(None);
        };
        let what = format!("`{name}` of `{}`", self.of);
        let number = given.as_int().map_err(|found| {
            native_error(format!(
                "{what} is a whole number, not a value of type `{found}`"
            ))
        })?;
        within(&what, number, range).map(Some)
    }

    /// A text, when it is given and not `()`.
    pub(super) fn text(&mut self, name: &str) -> NativeResult<Option<String>> {
        let given = self.take(name).filter(|given| !given.is_unit());
        let text = given.map(Dynamic::into_string).transpose();
        text.map_err(|found| {
            native_error(format!(
                "`{name}` of `{}` is text, not a value of type `{found}`",
                self.of
            ))
        })
    }
}

/// A number that must lie in a range.
pub(super) fn within<T: TryFrom<INT>>(
    what: &str,
    given: INT,
    range: RangeInclusive<INT>,
) -> NativeResult<T> {
    let number = range.contains(&given).then(|| T::try_from(given).ok());
    number.flatten().ok_or_else(|| {
        let (least, most) = range.into_inner();
        native_error(format!(
            "{what} must be between {least} and {most}, not {given}"
        ))
    })
}
