//! The time, and dates as header fields have them.

use std::time::{Duration, UNIX_EPOCH};

use rhai::{Dynamic, Engine, FLOAT, INT, ImmutableString};

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
        .register_fn("parse_http_date", |_: ()| ());
}

fn http_date(seconds: Option<u64>) -> NativeResult<ImmutableString> {
    let known = seconds.filter(|&seconds| seconds <= LAST_DATE);
    let seconds = known.ok_or_else(|| {
        error("a date lies from 1970 to 9999, in seconds since 1970-01-01 00:00 UTC")
    })?;
    let date = UNIX_EPOCH + Duration::from_secs(seconds);
    Ok(httpdate::fmt_http_date(date).into())
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
}
