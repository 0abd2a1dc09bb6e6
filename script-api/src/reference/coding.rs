//! JSON, codings of bytes, URLs and forms; what bytes and bodies have.

use super::entry::{Entry, Group};
use crate::program::Need::Nothing;

pub(super) const CODING: Group = Group {
    title: "Coding",
    of: None,
    about: "*Data* is text, bytes, or a body. Each function gives `()` for `()`, and can be written as a method: `x.hex()` is `hex(x)`. \
            A result beyond `[script] string` (text) or `items` (bytes, arrays, maps) is an error.",
    entries: &[
        Entry::new(
            Nothing,
            &["json_parse(data: data) -> any"],
            "The value of a JSON text (RFC 8259); what is none is an error that says where.",
        ),
        Entry::new(
            Nothing,
            &["json_encode(value: any) -> text"],
            "JSON without spaces, keys in order; `()` is `null`. What is no plain data is an error.",
        ),
        Entry::new(
            Nothing,
            &["base64(data: data) -> text"],
            "RFC 4648 section 4, with padding.",
        ),
        Entry::new(
            Nothing,
            &["from_base64(data: data) -> bytes | ()"],
            "The bytes, or `()` when it is not exactly base64: no spaces, padding in place.",
        ),
        Entry::new(
            Nothing,
            &["base64url(data: data) -> text"],
            "RFC 4648 section 5, without padding.",
        ),
        Entry::new(
            Nothing,
            &["from_base64url(data: data) -> bytes | ()"],
            "The bytes, with padding or without, or `()` when it is no base64url.",
        ),
        Entry::new(
            Nothing,
            &["hex(data: data) -> text"],
            "Two digits for each byte, in lower case.",
        ),
        Entry::new(
            Nothing,
            &["from_hex(data: data) -> bytes | ()"],
            "The bytes, from upper or lower case, or `()` when it is no hexadecimal.",
        ),
        Entry::new(
            Nothing,
            &["url_encode(data: data) -> text"],
            "All but letters, digits and `-._~` escaped (RFC 3986 section 2.3): for one segment of a path or one part of a query.",
        ),
        Entry::new(
            Nothing,
            &["url_decode(data: data) -> text | ()"],
            "Escapes resolved; `()` when one is broken or the result is no UTF-8. A `+` stays one.",
        ),
        Entry::new(
            Nothing,
            &["form_encode(fields: map) -> text"],
            "`a=1&b=2`, a space as `+`. Values are text, numbers and bools; an array is the name several times, `()` is left out.",
        ),
        Entry::new(
            Nothing,
            &["form_parse(data: data) -> map | ()"],
            "A map of texts; a name that stands there several times has an array. `()` when it is no UTF-8.",
        ),
    ],
};

pub(super) const BYTES: Group = Group {
    title: "Bytes",
    of: Some("bytes"),
    about: "Rhai calls them blobs. They can be compared with `==` and `!=` (never equal to text), joined with `+`, indexed, and be constants.",
    entries: &[
        Entry::new(
            Nothing,
            &["len() -> int", "len: int"],
            "The number of bytes.",
        ),
        Entry::new(
            Nothing,
            &["is_empty() -> bool", "is_empty: bool"],
            "Whether there are none.",
        ),
        Entry::new(
            Nothing,
            &["text() -> text"],
            "As text; bytes that are no UTF-8 are an error. `().text()` is `()`, so `from_base64(x).text()` is too when `x` is no base64.",
        ),
    ],
};

pub(super) const BODY: Group = Group {
    title: "A body",
    of: Some("Body"),
    about: "A handle, not a copy; it can be sent on as it is.",
    entries: &[
        Entry::new(Nothing, &["len() -> int"], "The number of bytes."),
        Entry::new(
            Nothing,
            &["text() -> text"],
            "As text; an error when it is no UTF-8 or longer than `[script] string`.",
        ),
        Entry::new(
            Nothing,
            &["json() -> any"],
            "The value of its JSON; an error when it is none.",
        ),
        Entry::new(
            Nothing,
            &["bytes() -> bytes"],
            "A copy as bytes; an error when there are more than `[script] items`.",
        ),
    ],
};
