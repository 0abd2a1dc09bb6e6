//! `res`.

use super::entry::{Entry, Group};
use crate::program::Need::{Destination, Request, Response, ResponseBody, ResponseChange};

pub(super) const RESPONSE: Group = Group {
    title: "The response: `res`",
    of: Some("Response"),
    about: "The second parameter of the hooks that see a response.",
    entries: &[
        Entry::new(
            Response,
            &["status: int"],
            "Assigned, it is 200 to 599; a status that has a body can't become 204 or 304, nor the other way round.",
        )
        .assignable(ResponseChange),
        Entry::new(
            Response,
            &["is_local: bool"],
            "Whether the response was made here (an answer of a hook, a 404, 502, 503 or 504) and not by the upstream.",
        ),
        Entry::new(
            Response,
            &["header(name: text) -> text | ()"],
            "The first value of a header field, or `()` when it is absent.",
        ),
        Entry::new(
            Response,
            &["headers(name: text) -> array"],
            "All values of a header field, each `set-cookie` by itself; `[]` when it is absent.",
        ),
        Entry::new(
            ResponseChange,
            &["set_header(name: text, value: value)"],
            "Sets the field, in place of all that it had; `()` removes it. Fields that frame the message are an error.",
        ),
        Entry::new(
            ResponseChange,
            &["add_header(name: text, value: value)"],
            "Adds one more value, one more `set-cookie` for instance; `()` adds nothing.",
        ),
        Entry::new(ResponseChange, &["remove_header(name: text)"], "Removes all values of the field."),
        Entry::new(
            ResponseChange,
            &[
                "set_cookie(name: text, value: text)",
                "set_cookie(name: text, value: text, options: map)",
            ],
            "A `set-cookie` in place of those of this name; others stay. Options: `path` (`/` unless given), `domain`, `max_age`, `http_only` (`true` unless given), `secure`, `same_site` \
             (`\"Lax\"` unless given). What browsers would refuse is an error.",
        ),
        Entry::new(
            ResponseChange,
            &["remove_cookie(name: text)"],
            "Drops the `set-cookie` of this name: the client isn't told of the cookie.",
        ),
        Entry::new(
            ResponseBody,
            &["body() -> Body"],
            "The body, or the piece of it that a streaming hook gets.",
        ),
        Entry::new(
            ResponseBody,
            &["set_body(body: text | bytes | Body | map | array)"],
            "Another body, or piece, for the client; maps and arrays as JSON (512 KiB at the most), `()` for none.",
        ),
        Entry::new(
            ResponseBody,
            &["is_last: bool"],
            "Whether nothing comes behind this piece.",
        ),
        Entry::new(
            Response,
            &["pool: text | ()"],
            "The pool that it came from, or `()`.",
        ),
        Entry::new(
            Response,
            &["upstream: text | ()"],
            "The address of the upstream, or `()`.",
        ),
        Entry::new(
            Response,
            &["attempts: int"],
            "Connections that were tried.",
        ),
        Entry::new(
            Response,
            &["duration: float"],
            "Seconds since the request's header was there, until now.",
        ),
        Entry::new(
            Response,
            &["upstream_duration: float | ()"],
            "Seconds until the upstream's header was there, or `()`.",
        ),
        Entry::new(
            Response,
            &["bytes_sent: int"],
            "Bytes of the response's body that were sent.",
        ),
        Entry::new(
            Response,
            &["error: text | ()"],
            "Why it failed, in words, or `()`.",
        ),
    ],
};

pub(super) const ATTEMPT: Group = Group {
    title: "An attempt",
    of: Some("Attempt"),
    about: "The second parameter of a `.to` function of two, which is asked anew for each attempt, three at the most.",
    entries: &[
        Entry::new(Request, &["number: int"], "Which attempt this is, from 1."),
        Entry::new(
            Request,
            &["last_error: text | ()"],
            "Why the last one failed (`refused`, `timeout`, `unavailable`, ..), `()` at first.",
        ),
        Entry::new(
            Request,
            &["targets: array"],
            "Where it could go: maps of `pool`, `address`, `active` (requests) and `failed`, whether this request has tried it; 256 at the most.",
        ),
    ],
};

pub(super) const PICKING: Group = Group {
    title: "Picking a target",
    of: None,
    about: "For a `.to` function to give back, in place of the name of a pool.",
    entries: &[Entry::new(
        Destination,
        &["pick(pool: text, options: map) -> Pick"],
        "The pool, and which of its targets: with `key`, equal values get the same one, whatever the pool's `balance` is; with `target`, the one at this \
         address (one of `attempt.targets`), or another one when it is not usable or has failed, but for `only: true`: then 503.",
    )],
};
