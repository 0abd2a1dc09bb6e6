//! What Lua's libraries have for texts and Rhai lacks. All give a new value and change nothing in place.
//! What is absent stays absent.

use std::net::IpAddr;

use rhai::{Array, Dynamic, Engine, FLOAT, INT, ImmutableString};

use super::{
    current::{NativeResult, error, too_long},
    limits::Limits,
};

/// The most digits behind the point: a floating-point number has no more that say anything.
const MOST_DIGITS: INT = 17;

pub(super) fn register(engine: &mut Engine, limits: &Limits) {
    trimming(engine);
    taking_apart(engine);
    making(engine, limits.string);
    engine
        .register_fn("is_ip", |text: &str| text.parse::<IpAddr>().is_ok())
        .register_fn("is_ip", |_: ()| false);
}

fn trimming(engine: &mut Engine) {
    fn set(characters: &str) -> impl Fn(char) -> bool + '_ {
        move |c| characters.contains(c)
    }
    engine
        .register_fn("trimmed", |text: &str| ImmutableString::from(text.trim()))
        .register_fn("trimmed", |text: &str, characters: &str| {
            ImmutableString::from(text.trim_matches(set(characters)))
        })
        .register_fn("trimmed_start", |text: &str, characters: &str| {
            ImmutableString::from(text.trim_start_matches(set(characters)))
        })
        .register_fn("trimmed_end", |text: &str, characters: &str| {
            ImmutableString::from(text.trim_end_matches(set(characters)))
        })
        .register_fn("trimmed", |_: ()| ())
        .register_fn("trimmed", |_: (), _: &str| ())
        .register_fn("trimmed_start", |_: (), _: &str| ())
        .register_fn("trimmed_end", |_: (), _: &str| ());
}

fn taking_apart(engine: &mut Engine) {
    fn rest(rest: Option<&str>) -> Dynamic {
        rest.map_or(Dynamic::UNIT, Into::into)
    }
    fn two(parts: Option<(&str, &str)>) -> Dynamic {
        parts.map_or(Dynamic::UNIT, |(before, behind)| {
            let parts: Array = vec![before.into(), behind.into()];
            parts.into()
        })
    }
    engine
        .register_fn("without_prefix", |text: &str, prefix: &str| {
            rest(text.strip_prefix(prefix))
        })
        .register_fn("without_suffix", |text: &str, suffix: &str| {
            rest(text.strip_suffix(suffix))
        })
        .register_fn(
            "split_once",
            |text: &str, at: &str| two(text.split_once(at)),
        )
        .register_fn("split_once_rev", |text: &str, at: &str| {
            two(text.rsplit_once(at))
        })
        .register_fn("count", |text: &str, what: &str| -> NativeResult<INT> {
            if what.is_empty() {
                return Err(error("`count` needs something to count"));
            }
            Ok(INT::try_from(text.matches(what).count()).unwrap_or(INT::MAX))
        })
        .register_fn("count", |_: (), _: &str| 0 as INT);
    for name in [
        "without_prefix",
        "without_suffix",
        "split_once",
        "split_once_rev",
    ] {
        engine.register_fn(name, |_: (), _: &str| ());
    }
}

fn making(engine: &mut Engine, longest: usize) {
    engine
        .register_fn("repeat", move |text: &str, times: INT| {
            repeat(text, times, longest)
        })
        .register_fn("repeat", |_: (), _: INT| ())
        .register_fn(
            "padded_start",
            move |text: &str, length: INT, with: &str| padded_start(text, length, with, longest),
        )
        .register_fn("padded_start", |_: (), _: INT, _: &str| ())
        .register_fn("html_escape", move |text: &str| html_escape(text, longest))
        .register_fn("html_escape", |_: ()| ())
        .register_fn("fixed", |number: FLOAT, digits: INT| fixed(number, digits))
        .register_fn("fixed", |number: INT, digits: INT| {
            // Without digits a whole number stays exact, however large.
            if digits == 0 {
                return Ok(number.to_string().into());
            }
            fixed(number as FLOAT, digits)
        })
        .register_fn("fixed", |_: (), _: INT| ());
}

fn repeat(text: &str, times: INT, longest: usize) -> NativeResult<ImmutableString> {
    let times = usize::try_from(times)
        .map_err(|_| error(format!("a text can't be repeated {times} times")))?;
    if text.len().saturating_mul(times) > longest {
        return Err(too_long());
    }
    Ok(text.repeat(times).into())
}

/// `text` with as many characters of `with` before it as it lacks to have `length`.
fn padded_start(
    text: &str,
    length: INT,
    with: &str,
    longest: usize,
) -> NativeResult<ImmutableString> {
    let length = usize::try_from(length).unwrap_or(0);
    let missing = length.saturating_sub(text.chars().count());
    if missing == 0 {
        return Ok(text.into());
    }
    if with.is_empty() {
        return Err(error("`padded_start` needs something to pad with"));
    }
    // A character takes a byte or more.
    if missing.saturating_add(text.len()) > longest {
        return Err(too_long());
    }
    let mut padded: String = with.chars().cycle().take(missing).collect();
    padded.push_str(text);
    if padded.len() > longest {
        return Err(too_long());
    }
    Ok(padded.into())
}

/// Text that is nothing but text in HTML, between tags and in quoted attributes.
fn html_escape(text: &str, longest: usize) -> NativeResult<ImmutableString> {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            c => escaped.push(c),
        }
        if escaped.len() > longest {
            return Err(too_long());
        }
    }
    Ok(escaped.into())
}

fn fixed(number: FLOAT, digits: INT) -> NativeResult<ImmutableString> {
    let known = usize::try_from(digits)
        .ok()
        .filter(|_| digits <= MOST_DIGITS);
    let digits = known.ok_or_else(|| {
        error(format!(
            "`fixed` writes 0 to {MOST_DIGITS} digits, not {digits}"
        ))
    })?;
    Ok(format!("{number:.digits$}").into())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn what_is_made_is_bounded() {
        assert_eq!(repeat("ab", 3, 6).unwrap(), "ababab");
        assert_eq!(repeat("", INT::MAX, 6).unwrap(), "");
        assert!(repeat("ab", 4, 6).is_err());
        assert!(repeat("ab", INT::MAX, 6).is_err());
        assert!(repeat("ab", -1, 6).is_err());
        assert_eq!(padded_start("7", 3, "0", 6).unwrap(), "007");
        assert_eq!(padded_start("é", 4, "ab", 6).unwrap(), "abaé");
        assert_eq!(padded_start("long", 2, "0", 6).unwrap(), "long");
        assert!(padded_start("7", INT::MAX, "0", 6).is_err());
        assert!(padded_start("7", 5, "é", 6).is_err());
        assert!(padded_start("7", 5, "", 6).is_err());
        assert_eq!(html_escape("<a>", 9).unwrap(), "&lt;a&gt;");
        assert!(html_escape("<a>", 8).is_err());
    }

    #[test]
    fn numbers_have_so_many_digits() {
        assert_eq!(fixed(1.0 / 3.0, 2).unwrap(), "0.33");
        assert_eq!(fixed(2.0, 0).unwrap(), "2");
        assert_eq!(fixed(FLOAT::MAX, 17).unwrap().len(), 309 + 1 + 17);
        assert!(fixed(1.0, 18).is_err() && fixed(1.0, -1).is_err());
    }
}
