//! The time, and dates as header fields have them.

use std::time::{Duration, UNIX_EPOCH};

use rhai::{Dynamic, Engine, EvalAltResult, FLOAT, INT, ImmutableString};

use super::{
    clock,
    current::{NativeResult, error},
};

/// 9999-12-31 23:59:59 UTC: the format has four digits for the year (RFC 9110 section 5.6.7).
const LAST_DATE: u64 = 253_402_300_799;

pub(super) fn register(engine: &mut Engine) {
    engine
        .register_fn("now", || clock::since_epoch().as_secs_f64())
        .register_fn("now_ms", || {
            INT::try_from(clock::since_epoch().as_millis()).unwrap_or(INT::MAX)
        })
        .register_fn(
            "http_date",
            |seconds: INT| -> NativeResult<ImmutableString> {
                http_date(u64::try_from(seconds).ok())
            },
        )
        .register_fn(
            "http_date",
            |seconds: FLOAT| -> NativeResult<ImmutableString> {
                // Below the second the format has nothing.
                let whole = Duration::try_from_secs_f64(seconds.floor());
                http_date(whole.ok().map(|since| since.as_secs()))
            },
        )
        .register_fn("http_date", |_: ()| ())
        .register_fn("parse_http_date", |date: &str| parse(date))
        .register_fn("parse_http_date", |_: ()| ())
        .register_fn(
            "iso_date",
            |seconds: INT| -> NativeResult<ImmutableString> {
                iso_date(u64::try_from(seconds).ok().map(Duration::from_secs))
            },
        )
        .register_fn(
            "iso_date",
            |seconds: FLOAT| -> NativeResult<ImmutableString> {
                iso_date(Duration::try_from_secs_f64(seconds).ok())
            },
        )
        .register_fn("iso_date", |_: ()| ())
        .register_fn("parse_iso_date", |date: &str| parse_iso(date))
        .register_fn("parse_iso_date", |_: ()| ());
}

fn http_date(seconds: Option<u64>) -> NativeResult<ImmutableString> {
    let known = seconds.filter(|&seconds| seconds <= LAST_DATE);
    let seconds = known.ok_or_else(out_of_range)?;
    let date = UNIX_EPOCH + Duration::from_secs(seconds);
    Ok(httpdate::fmt_http_date(date).into())
}

fn out_of_range() -> Box<EvalAltResult> {
    error("a date lies from 1970 to 9999, in seconds since 1970-01-01 00:00 UTC")
}

/// Seconds since 1970-01-01 00:00 UTC; `()` when it is no date in one of the three forms that RFC
/// 9110 section 5.6.7 has.
fn parse(date: &str) -> Dynamic {
    let Ok(date) = httpdate::parse_http_date(date) else {
        return Dynamic::UNIT;
    };
    let since = date.duration_since(UNIX_EPOCH).unwrap_or_default();
    INT::try_from(since.as_secs()).map_or(Dynamic::UNIT, Dynamic::from)
}

/// As RFC 3339 writes it, in UTC and to the millisecond.
fn iso_date(since: Option<Duration>) -> NativeResult<ImmutableString> {
    let known = since.filter(|since| since.as_secs() <= LAST_DATE);
    let since = known.ok_or_else(out_of_range)?;
    let date = humantime::format_rfc3339_millis(UNIX_EPOCH + since);
    Ok(date.to_string().into())
}

/// Seconds since 1970-01-01 00:00 UTC, with a fraction; `()` when it is no date of RFC 3339, or one before
/// 1970.
fn parse_iso(date: &str) -> Dynamic {
    let Some((date, offset)) = split_offset(date) else {
        return Dynamic::UNIT;
    };
    let Ok(date) = humantime::parse_rfc3339(&format!("{date}Z")) else {
        return Dynamic::UNIT;
    };
    let Ok(since) = date.duration_since(UNIX_EPOCH) else {
        return Dynamic::UNIT;
    };
    let seconds = since.as_secs_f64() - offset;
    if seconds < 0.0 {
        return Dynamic::UNIT;
    }
    seconds.into()
}

/// A date without its offset from UTC, and that in seconds.
fn split_offset(date: &str) -> Option<(&str, FLOAT)> {
    if let Some(date) = date.strip_suffix(['Z', 'z']) {
        return Some((date, 0.0));
    }
    let at = date.len().checked_sub("+00:00".len())?;
    let (date, offset) = (date.get(..at)?, date.get(at..)?);
    let sign = match offset.as_bytes()[0] {
        b'+' => 1.0,
        b'-' => -1.0,
        _ => return None,
    };
    let (hours, minutes) = offset[1..].split_once(':')?;
    let number = |text: &str, most: u32| {
        let digits = text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
        let number = text.parse::<u32>().ok().filter(|_| digits)?;
        (number <= most).then(|| FLOAT::from(number))
    };
    let offset = number(hours, 23)? * 3600.0 + number(minutes, 59)? * 60.0;
    Some((date, sign * offset))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// The dates of RFC 9110 section 5.6.7.
    #[test]
    fn reads_the_three_forms_and_writes_one() {
        for date in [
            "Sun, 06 Nov 1994 08:49:37 GMT",
            "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun Nov  6 08:49:37 1994",
        ] {
            assert_eq!(parse(date).as_int(), Ok(784_111_777), "{date}");
        }
        assert_eq!(
            http_date(Some(784_111_777)).unwrap(),
            "Sun, 06 Nov 1994 08:49:37 GMT"
        );
        for date in ["", "yesterday", "1994-11-06T08:49:37Z"] {
            assert!(parse(date).is_unit(), "{date}");
        }
    }

    #[test]
    fn dates_that_the_format_cannot_hold_are_errors() {
        assert_eq!(
            http_date(Some(LAST_DATE)).unwrap(),
            "Fri, 31 Dec 9999 23:59:59 GMT"
        );
        assert!(http_date(Some(LAST_DATE + 1)).is_err());
        assert!(http_date(None).is_err());
    }

    #[test]
    fn iso_dates_go_both_ways() {
        let written = |seconds| iso_date(Some(Duration::from_millis(seconds))).unwrap();
        assert_eq!(written(784_111_777_000), "1994-11-06T08:49:37.000Z");
        assert_eq!(written(1_500), "1970-01-01T00:00:01.500Z");
        assert!(iso_date(Some(Duration::from_secs(LAST_DATE + 1))).is_err());
        for (date, seconds) in [
            ("1994-11-06T08:49:37Z", 784_111_777.0),
            ("1994-11-06T08:49:37.25Z", 784_111_777.25),
            ("1994-11-06T10:19:37+01:30", 784_111_777.0),
            ("1994-11-06T00:49:37-08:00", 784_111_777.0),
        ] {
            assert_eq!(parse_iso(date).as_float(), Ok(seconds), "{date}");
        }
        for date in [
            "",
            "Z",
            "1994-11-06",
            "1994-11-06T08:49:37",
            "1994-11-06T08:49:37+1:30",
            "1994-11-06T08:49:37+24:00",
            "1994-11-06T08:49:37 01:00",
            "1994-13-06T08:49:37Z",
            "1969-12-31T23:59:59Z",
            "1970-01-01T00:00:00+01:00",
            "é+00:00",
        ] {
            assert!(parse_iso(date).is_unit(), "{date}");
        }
    }
}
