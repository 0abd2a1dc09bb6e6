//! Calls to other services.

use super::entry::{Entry, Group};
use crate::program::Need::{Nothing, Waiting};

pub(super) const CALLS: Group = Group {
    title: "Calls to other services",
    of: None,
    about: "The hook waits where it stands; nothing else does, and the time counts for none of its bounds.",
    entries: &[
        Entry::new(
            Waiting,
            &[
                "fetch(to: text) -> Reply",
                "fetch(to: text, options: map) -> Reply",
            ],
            "Calls a pool by its name, or an `http://` or `https://` URL. Options: `method`, `path`, `headers`, `body` (text, bytes, a body; maps and arrays as JSON), `timeout`, `retries` (0 to 5, for idempotent methods, within the timeout). \
             A call that fails is no error: its reply has the status 502, 503 or 504. At most `[script] fetches` in one call of a hook.",
        ),
        Entry::new(
            Waiting,
            &["fetch_all(calls: array) -> array"],
            "Makes several calls at once, each a text or a map with `to` beside the options, and gives their replies in order.",
        ),
    ],
};

pub(super) const REPLY: Group = Group {
    title: "A reply",
    of: Some("Reply"),
    about: "",
    entries: &[
        Entry::new(
            Nothing,
            &["status: int"],
            "The status of the answer; 502, 503 or 504 when there is none.",
        ),
        Entry::new(
            Nothing,
            &["error: text | ()"],
            "Why there is no answer, in words, or `()`.",
        ),
        Entry::new(
            Nothing,
            &["header(name: text) -> text | ()"],
            "The first value of a header field, or `()`.",
        ),
        Entry::new(
            Nothing,
            &["headers(name: text) -> array"],
            "All values of a header field.",
        ),
        Entry::new(
            Nothing,
            &["body() -> Body"],
            "The body, empty when there is no answer.",
        ),
    ],
};
