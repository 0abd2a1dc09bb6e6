//! Helpers that Rhai lacks.

use super::entry::{Entry, Group};
use crate::program::Need::Nothing;

pub(super) const TEXT: Group = Group {
    title: "Text",
    of: None,
    about: "Beside Rhai's own. These give a new value and change nothing in place; for `()` they give `()`, `is_ip` `false` and `count` 0.",
    entries: &[
        Entry::new(
            Nothing,
            &["num(text: text) -> int | float | ()"],
            "The number that a text holds, spaces around it apart; `()` when it holds none.",
        ),
        Entry::new(
            Nothing,
            &[
                "trimmed(text: text) -> text",
                "trimmed(text: text, characters: text) -> text",
            ],
            "Without the spaces, or any of these characters, at its ends.",
        ),
        Entry::new(
            Nothing,
            &["trimmed_start(text: text, characters: text) -> text"],
            "Without any of these characters at its beginning.",
        ),
        Entry::new(
            Nothing,
            &["trimmed_end(text: text, characters: text) -> text"],
            "Without any of these characters at its end.",
        ),
        Entry::new(
            Nothing,
            &["without_prefix(text: text, prefix: text) -> text | ()"],
            "The rest, or `()` when it doesn't begin so.",
        ),
        Entry::new(
            Nothing,
            &["without_suffix(text: text, suffix: text) -> text | ()"],
            "The rest, or `()` when it doesn't end so.",
        ),
        Entry::new(
            Nothing,
            &["split_once(text: text, at: text) -> array | ()"],
            "What stands before and behind the first `at`, or `()` when it isn't there.",
        ),
        Entry::new(
            Nothing,
            &["split_once_rev(text: text, at: text) -> array | ()"],
            "What stands before and behind the last `at`, or `()` when it isn't there.",
        ),
        Entry::new(
            Nothing,
            &["count(text: text, what: text) -> int"],
            "How often it is there, without overlaps; an empty `what` is an error.",
        ),
        Entry::new(
            Nothing,
            &["repeat(text: text, times: int) -> text"],
            "The text so many times; longer than `[script] string` is an error.",
        ),
        Entry::new(
            Nothing,
            &["padded_start(text: text, length: int, with: text) -> text"],
            "With characters before it, so that it has `length` characters.",
        ),
        Entry::new(
            Nothing,
            &["html_escape(text: text) -> text"],
            "Text that is only text in HTML, also in quoted attributes.",
        ),
        Entry::new(
            Nothing,
            &["fixed(number: number, digits: int) -> text"],
            "With so many digits behind the point, 0 to 17.",
        ),
        Entry::new(
            Nothing,
            &["is_ip(text: text) -> bool"],
            "Whether it is an IPv4 or IPv6 address.",
        ),
    ],
};
