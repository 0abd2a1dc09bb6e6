//! Answers.

use super::entry::{Entry, Group};
use crate::program::Need::{Answer, Nothing};

pub(super) const MAKING: Group = Group {
    title: "Answers",
    of: None,
    about: "A hook answers by giving one back; one that is made and not given back is an error. An answer may be a constant of the top level.",
    entries: &[
        Entry::new(
            Answer,
            &[
                "respond(status: int) -> Answer",
                "respond(status: int, body: text | bytes | Body) -> Answer",
            ],
            "An answer with this status (200 to 599) and body. Text is sent as `text/plain; charset=utf-8` unless a `content-type` is added.",
        ),
        Entry::new(
            Answer,
            &["redirect(status: int, target: text) -> Answer"],
            "A redirect with 301, 302, 303, 307 or 308; any other status is an error, and so is a target with control characters. \
             Browsers take a target that begins with `//` for another host, so begin it with a text of your own.",
        ),
    ],
};

pub(super) const ANSWER: Group = Group {
    title: "An answer",
    of: Some("Answer"),
    about: "",
    entries: &[
        Entry::new(
            Nothing,
            &["header(name: text, value: value) -> Answer"],
            "Adds a header field and gives the answer: `respond(429).header(\"retry-after\", 30)`. `()` adds nothing; framing fields are an error.",
        ),
        Entry::new(
            Nothing,
            &[
                "cookie(name: text, value: text) -> Answer",
                "cookie(name: text, value: text, options: map) -> Answer",
            ],
            "Adds a `set-cookie` and gives the answer; options as for `res.set_cookie`.",
        ),
        Entry::new(Nothing, &["status: int"], "Its status."),
    ],
};
