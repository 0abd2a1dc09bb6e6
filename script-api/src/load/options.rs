//! Options of natives of the load time: a map behind the other arguments, times and sizes.

use std::{ops::RangeInclusive, time::Duration};

use bytesize::ByteSize;
use rhai::{Dynamic, INT, Map};

use crate::suggest::nearest;

/// Times that state and limits may have.
pub(super) const TIMES: RangeInclusive<Duration> =
    Duration::from_millis(1)..=Duration::from_secs(366 * 24 * 60 * 60);

/// The options that stand behind the other arguments.
pub(super) struct Options {
    of: &'static str,
    given: Map,
}

impl Options {
    /// `given` for the native `of`, which knows these.
    pub(super) fn new(of: &'static str, given: Map, known: &[&str]) -> Result<Self, String> {
        check_names(of, &given, known)?;
        Ok(Self { of, given })
    }

    /// What was given under this name; `()` is nothing.
    pub(super) fn take(&mut self, name: &str) -> Option<Dynamic> {
        self.given.remove(name).filter(|value| !value.is_unit())
    }

    /// A whole number.
    pub(super) fn number<T: TryFrom<INT>>(
        &mut self,
        name: &str,
        range: RangeInclusive<INT>,
    ) -> Result<Option<T>, String> {
        let Some(given) = self.take(name) else {
            return Ok(None);
        };
        let what = self.name(name);
        let number = given
            .as_int()
            .map_err(|found| format!("{what} is a whole number, not a value of type `{found}`"))?;
        within(&what, number, range).map(Some)
    }

    /// `true` or `false`.
    pub(super) fn bool(&mut self, name: &str) -> Result<Option<bool>, String> {
        let Some(given) = self.take(name) else {
            return Ok(None);
        };
        let what = self.name(name);
        let said = given
            .as_bool()
            .map_err(|found| format!("{what} is true or false, not a value of type `{found}`"))?;
        Ok(Some(said))
    }

    /// A text.
    pub(super) fn text(&mut self, name: &str) -> Result<Option<String>, String> {
        let Some(given) = self.take(name) else {
            return Ok(None);
        };
        let what = self.name(name);
        text_of(&what, &given).map(Some)
    }

    /// One text, or an array of them.
    pub(super) fn texts(&mut self, name: &str) -> Result<Option<Vec<String>>, String> {
        let Some(given) = self.take(name) else {
            return Ok(None);
        };
        let what = self.name(name);
        let Ok(items) = given.as_array_ref() else {
            return Ok(Some(vec![text_of(&what, &given)?]));
        };
        let texts = items.iter().map(|item| text_of(&what, item));
        texts.collect::<Result<_, _>>().map(Some)
    }

    fn name(&self, option: &str) -> String {
        format!("`{option}` of `{}`", self.of)
    }
}

/// Whether all that was `given` for the native `of` are options that it has.
///
/// # Errors
/// Names one that it doesn't have, and those that it has.
pub(super) fn check_names(of: &str, given: &Map, known: &[&str]) -> Result<(), String> {
    let mut names = given.keys();
    let Some(unknown) = names.find(|name| !known.contains(&name.as_str())) else {
        return Ok(());
    };
    let near = nearest(unknown, known.iter().copied());
    let hint = near.map(|near| format!(" (did you mean `{near}`?)"));
    Err(format!(
        "`{of}` has no option `{unknown}`{}; it has {}",
        hint.unwrap_or_default(),
        known.join(", "),
    ))
}

fn text_of(what: &str, given: &Dynamic) -> Result<String, String> {
    let text = given.as_immutable_string_ref();
    let text = text.map_err(|found| format!("{what} is text, not a value of type `{found}`"))?;
    Ok(text.to_string())
}

/// A number within bounds.
pub(super) fn within<T: TryFrom<INT>>(
    what: &str,
    given: INT,
    range: RangeInclusive<INT>,
) -> Result<T, String> {
    let number = range.contains(&given).then(|| T::try_from(given).ok());
    number.flatten().ok_or_else(|| {
        let (least, most) = range.into_inner();
        format!("{what} must be between {least} and {most}, not {given}")
    })
}

/// A time with a unit.
pub(super) fn duration(given: &str) -> Result<Duration, String> {
    humantime::parse_duration(given)
        .map_err(|_| format!("`{given}` is no time; write \"1500ms\" or \"1m\""))
}

/// A time with a unit, within [`TIMES`].
pub(super) fn time(what: &str, given: &str) -> Result<Duration, String> {
    let time = duration(given)?;
    if TIMES.contains(&time) {
        return Ok(time);
    }
    Err(format!(
        "{what} must be between 1ms and 366 days, not {given}"
    ))
}

/// A size with a unit, in bytes.
pub(super) fn size(given: &str) -> Result<u64, String> {
    let text = given.trim();
    if text.parse::<f64>().is_ok() {
        return Err(format!(
            "a size needs a unit: write \"{text}B\" or \"{text}KiB\""
        ));
    }
    text.parse()
        .map(|ByteSize(bytes)| bytes)
        .map_err(|_| format!("`{given}` is no size; write \"512B\", \"64KiB\" or \"10MiB\""))
}
