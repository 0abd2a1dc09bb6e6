//! The time.

use super::entry::{Entry, Group};
use crate::program::Need::Nothing;

pub(super) const TIME: Group = Group {
    title: "Time",
    of: None,
    about: "Seconds since 1970-01-01 00:00 UTC.",
    entries: &[
        Entry::new(
            Nothing,
            &["now() -> float"],
            "Now, in seconds with a fraction.",
        ),
        Entry::new(Nothing, &["now_ms() -> int"], "Now, in whole milliseconds."),
        Entry::new(
            Nothing,
            &["http_date(seconds: number) -> text"],
            "As header fields have it, `Sun, 06 Nov 1994 08:49:37 GMT` (RFC 9110 section 5.6.7); before 1970 or after 9999 is an error.",
        ),
        Entry::new(
            Nothing,
            &["parse_http_date(date: text) -> int | ()"],
            "Seconds, or `()` when it is none of the three forms that RFC 9110 knows.",
        ),
        Entry::new(
            Nothing,
            &["iso_date(seconds: number) -> text"],
            "`1994-11-06T08:49:37.000Z` (RFC 3339); before 1970 or after 9999 is an error.",
        ),
        Entry::new(
            Nothing,
            &["parse_iso_date(date: text) -> float | ()"],
            "Seconds with a fraction, or `()` when it is no date of RFC 3339, or one before 1970.",
        ),
    ],
};
