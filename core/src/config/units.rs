//! Values of `edgewright.toml` with a unit or a word: "64KiB", "1500ms", "auto", "none".

use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use bytesize::ByteSize;
use serde::de::{Deserialize, Deserializer, Error, Visitor};

/// A time: "1500ms", "2s", "5m", "1m 30s".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Time(pub Duration);

/// A size: "64KiB" (1024 bytes each), "1MB" (a million bytes), "512B".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Size(pub u64);

/// A whole number, 0 or more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Count(pub u64);

/// "auto" or a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AutoOrCount {
    Auto,
    Count(u64),
}

/// "none" or a size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoneOrSize {
    None,
    Size(u64),
}

/// "none" or a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoneOrTime {
    None,
    Time(Duration),
}

/// "none" or a whole number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoneOrCount {
    None,
    Count(u64),
}

/// A value that is written as a text or as a number; the errors say which form is right.
trait Value: Sized {
    /// What a value of another type should have been.
    const EXPECTED: &'static str;
    fn from_text(text: &str) -> Result<Self, String>;
    fn from_number(number: i128) -> Result<Self, String>;
}

impl Value for Time {
    const EXPECTED: &'static str = "a time such as \"2s\"";

    fn from_text(text: &str) -> Result<Self, String> {
        if let Ok(number) = text.trim().parse() {
            return Self::from_number(number);
        }
        humantime::parse_duration(text)
            .map(Self)
            .map_err(|_| format!("{text:?} is no time: write \"1500ms\", \"2s\" or \"5m\""))
    }

    fn from_number(number: i128) -> Result<Self, String> {
        let number = number.max(0);
        Err(format!(
            "a time needs a unit: write \"{number}s\" or \"{number}ms\""
        ))
    }
}

impl Value for Size {
    const EXPECTED: &'static str = "a size such as \"64KiB\"";

    fn from_text(text: &str) -> Result<Self, String> {
        if let Ok(number) = text.trim().parse() {
            return Self::from_number(number);
        }
        text.parse()
            .map(|ByteSize(bytes)| Self(bytes))
            .map_err(|_| format!("{text:?} is no size: write \"512B\", \"64KiB\" or \"1MiB\""))
    }

    fn from_number(number: i128) -> Result<Self, String> {
        let number = number.max(0);
        Err(format!(
            "a size needs a unit: write \"{number}B\" or \"{number}KiB\""
        ))
    }
}

impl Value for Count {
    const EXPECTED: &'static str = "a number";

    fn from_text(text: &str) -> Result<Self, String> {
        Err(match text.parse::<u64>() {
            Ok(number) => format!("a number stands without quotes: write {number}"),
            Err(_) => format!("{text:?} is no number"),
        })
    }

    fn from_number(number: i128) -> Result<Self, String> {
        u64::try_from(number)
            .map(Self)
            .map_err(|_| format!("{number} can't be: the number is 0 or more"))
    }
}

impl Value for AutoOrCount {
    const EXPECTED: &'static str = "\"auto\" or a number";

    fn from_text(text: &str) -> Result<Self, String> {
        if text == "auto" {
            return Ok(Self::Auto);
        }
        Count::from_text(text)
            .map(|Count(number)| Self::Count(number))
            .map_err(|error| format!("{error}, or \"auto\""))
    }

    fn from_number(number: i128) -> Result<Self, String> {
        Count::from_number(number).map(|Count(number)| Self::Count(number))
    }
}

impl Value for NoneOrSize {
    const EXPECTED: &'static str = "\"none\" or a size such as \"64KiB\"";

    fn from_text(text: &str) -> Result<Self, String> {
        if text == "none" {
            return Ok(Self::None);
        }
        Size::from_text(text)
            .map(|Size(bytes)| Self::Size(bytes))
            .map_err(|error| format!("{error}, or \"none\""))
    }

    fn from_number(number: i128) -> Result<Self, String> {
        Size::from_number(number).map(|Size(bytes)| Self::Size(bytes))
    }
}

impl Value for NoneOrTime {
    const EXPECTED: &'static str = "\"none\" or a time such as \"2s\"";

    fn from_text(text: &str) -> Result<Self, String> {
        if text == "none" {
            return Ok(Self::None);
        }
        Time::from_text(text)
            .map(|Time(time)| Self::Time(time))
            .map_err(|error| format!("{error}, or \"none\""))
    }

    fn from_number(number: i128) -> Result<Self, String> {
        Time::from_number(number).map(|Time(time)| Self::Time(time))
    }
}

impl Value for NoneOrCount {
    const EXPECTED: &'static str = "\"none\" or a number";

    fn from_text(text: &str) -> Result<Self, String> {
        if text == "none" {
            return Ok(Self::None);
        }
        Count::from_text(text)
            .map(|Count(number)| Self::Count(number))
            .map_err(|error| format!("{error}, or \"none\""))
    }

    fn from_number(number: i128) -> Result<Self, String> {
        Count::from_number(number).map(|Count(number)| Self::Count(number))
    }
}

struct ValueVisitor<T>(PhantomData<T>);

impl<T: Value> Visitor<'_> for ValueVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::EXPECTED)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        T::from_text(text).map_err(E::custom)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<T, E> {
        T::from_number(number.into()).map_err(E::custom)
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<T, E> {
        T::from_number(number.into()).map_err(E::custom)
    }
}

macro_rules! deserialize {
    ($($name:ident),*) => {$(
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_any(ValueVisitor(PhantomData))
            }
        }
    )*};
}

deserialize!(
    Time,
    Size,
    Count,
    AutoOrCount,
    NoneOrSize,
    NoneOrTime,
    NoneOrCount
);

/// As a user would write it.
impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", humantime::format_duration(self.0))
    }
}

/// As a user would write it: in the largest unit that gives a whole number.
impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [(30, "GiB"), (20, "MiB"), (10, "KiB")];
        let unit = units
            .into_iter()
            .find(|(bits, _)| self.0 != 0 && self.0.trailing_zeros() >= *bits);
        let (bits, unit) = unit.unwrap_or((0, "B"));
        write!(f, "{}{unit}", self.0 >> bits)
    }
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn text<T: Value>(text: &str) -> Result<T, String> {
        T::from_text(text)
    }

    #[test]
    fn times() {
        for (written, millis) in [
            ("0s", 0),
            ("1500ms", 1500),
            ("2s", 2000),
            ("5m", 300_000),
            ("1m 30s", 90_000),
            ("1h", 3_600_000),
        ] {
            assert_eq!(
                text::<Time>(written),
                Ok(Time(Duration::from_millis(millis))),
                "{written}"
            );
        }
        for (written, expected) in [
            ("30", "a time needs a unit: write \"30s\" or \"30ms\""),
            ("0", "a time needs a unit: write \"0s\" or \"0ms\""),
            (" 30 ", "a time needs a unit"),
            ("-3", "a time needs a unit: write \"0s\" or \"0ms\""),
            ("", "\"\" is no time"),
            ("-3s", "\"-3s\" is no time: write \"1500ms\""),
            ("2 parsecs", "is no time"),
            ("s", "is no time"),
            ("99999999999999999999s", "is no time"),
        ] {
            let error = text::<Time>(written).unwrap_err();
            assert!(
                error.starts_with(expected) || error.contains(expected),
                "{error}"
            );
        }
    }

    #[test]
    fn sizes() {
        for (written, bytes) in [
            ("0B", 0),
            ("512B", 512),
            ("64KiB", 65_536),
            ("64 KiB", 65_536),
            ("1.5KiB", 1536),
            ("64KB", 64_000),
            ("1MiB", 1 << 20),
            ("2GiB", 2 << 30),
        ] {
            assert_eq!(text::<Size>(written), Ok(Size(bytes)), "{written}");
        }
        for (written, expected) in [
            ("64", "a size needs a unit: write \"64B\" or \"64KiB\""),
            ("64KiBs", "\"64KiBs\" is no size: write \"512B\""),
            ("", "\"\" is no size"),
            ("KiB", "is no size"),
            ("-1B", "is no size"),
        ] {
            let error = text::<Size>(written).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn sizes_are_shown_as_written() {
        for shown in [
            "0B", "1B", "512B", "1000B", "64KiB", "1023KiB", "1MiB", "3GiB",
        ] {
            assert_eq!(text::<Size>(shown).unwrap().to_string(), shown);
        }
        assert_eq!(Time(Duration::from_millis(1500)).to_string(), "1s 500ms");
    }

    #[test]
    fn numbers_and_words() {
        assert_eq!(AutoOrCount::from_number(4), Ok(AutoOrCount::Count(4)));
        assert_eq!(text::<AutoOrCount>("auto"), Ok(AutoOrCount::Auto));
        assert_eq!(
            text::<AutoOrCount>("4").unwrap_err(),
            "a number stands without quotes: write 4, or \"auto\""
        );
        assert_eq!(
            text::<AutoOrCount>("all").unwrap_err(),
            "\"all\" is no number, or \"auto\""
        );
        assert!(Count::from_number(-1).unwrap_err().contains("0 or more"));
        assert_eq!(text::<NoneOrSize>("none"), Ok(NoneOrSize::None));
        assert_eq!(text::<NoneOrSize>("1KiB"), Ok(NoneOrSize::Size(1024)));
        assert!(
            text::<NoneOrSize>("x")
                .unwrap_err()
                .ends_with("\"1MiB\", or \"none\"")
        );
        assert!(NoneOrSize::from_number(5).is_err());
    }
}
