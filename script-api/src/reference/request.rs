//! `req`.

use super::entry::{Entry, Group};
use crate::program::Need::{Request, RequestBody, RequestBodyChange, RequestChange, RequestValues};

pub(super) const REQUEST: Group = Group {
    title: "The request: `req`",
    of: Some("Request"),
    about: "The first parameter of every hook that runs for a request. It is a view: it copies nothing, and outside of its hook it is \
            an error to use it. Changes are what the upstream gets; routes are not matched again.",
    entries: &[
        Entry::new(Request, &["method: text"], "`GET`, `POST`, .. as sent; methods are case-sensitive."),
        Entry::new(Request, &["scheme: text"], "`http` or `https`: how the client connected."),
        Entry::new(
            Request,
            &["host: text"],
            "In normal form: lower case, without a port and without a dot at its end.",
        ),
        Entry::new(
            Request,
            &["path: text"],
            "The path in normal form. Assigned, it must be one that a client could have sent, else it is an error; \
             `strip_prefix` and `rewrite` of the route start from it, and the query stays.",
        )
        .assignable(RequestChange),
        Entry::new(Request, &["raw_path: text"], "The path as sent, without the query."),
        Entry::new(
            Request,
            &["query_string: text"],
            "What stands behind the `?`, as sent; empty when there is none. Assigned, what can't stand in a query is percent-encoded.",
        )
        .assignable(RequestChange),
        Entry::new(
            Request,
            &["client_ip: text"],
            "The client's address: that of the connection, or what a trusted proxy says (`[trusted_proxies]`).",
        ),
        Entry::new(Request, &["peer_ip: text"], "The address of the other end of the connection."),
        Entry::new(
            Request,
            &["id: text"],
            "A UUID (version 7), made when it is first asked for and the same for the rest of the request.",
        ),
        Entry::new(Request, &["protocol: text"], "`HTTP/1.1`, .. as the client speaks it."),
        Entry::new(
            Request,
            &["params: map"],
            "What the `{names}` of the route's pattern have captured, percent-encoded as in the normal path.",
        ),
        Entry::new(Request, &["param(name: text) -> text | ()"], "One capture, or `()` when the pattern has none of that name."),
        Entry::new(
            Request,
            &["header(name: text) -> text | ()"],
            "The first value of a header field, or `()` when it is absent. Names are compared without case; bytes that are no UTF-8 are replaced.",
        ),
        Entry::new(Request, &["headers(name: text) -> array"], "All values of a header field, in their order; `[]` when it is absent."),
        Entry::new(
            RequestChange,
            &["set_header(name: text, value: value)"],
            "Sets the field for the upstream, in place of all that it had; `()` removes it. \
             Fields that frame the message or belong to the connection are an error.",
        ),
        Entry::new(
            RequestChange,
            &["add_header(name: text, value: value)"],
            "Adds one more value; `()` adds nothing.",
        ),
        Entry::new(RequestChange, &["remove_header(name: text)"], "Removes all values of the field."),
        Entry::new(
            Request,
            &["query(name: text) -> text | ()"],
            "The first query parameter of that name, decoded (`+` is a space), or `()`.",
        ),
        Entry::new(Request, &["queries(name: text) -> array"], "All query parameters of that name, decoded; at most `[script] items`."),
        Entry::new(Request, &["cookie(name: text) -> text | ()"], "The value of a cookie as sent, or `()`."),
        Entry::new(
            Request,
            &["query_names() -> array"],
            "The names of the query parameters, decoded, each once, in the order in which they come.",
        ),
        Entry::new(
            RequestChange,
            &["set_query(name: text, value: value)"],
            "Changes the first parameter of that name in its place and drops its others; all else stays byte for byte. `()` removes it.",
        ),
        Entry::new(
            RequestChange,
            &["add_query(name: text, value: value)"],
            "Adds a parameter behind the others; `()` adds nothing.",
        ),
        Entry::new(
            RequestChange,
            &["remove_query(name: text)"],
            "Removes all parameters of that name.",
        ),
        Entry::new(
            RequestChange,
            &["sort_query()"],
            "Sorts the parameters by name; those of one name keep their order.",
        ),
        Entry::new(
            RequestChange,
            &["set_cookie(name: text, value: value)"],
            "Sets a cookie that the upstream gets; all others stay byte for byte. `()` removes it.",
        ),
        Entry::new(
            RequestChange,
            &["remove_cookie(name: text)"],
            "Removes a cookie from what the upstream gets.",
        ),
        Entry::new(
            Request,
            &["tls: map | ()"],
            "`()` on a plain connection, else `version` (`TLSv1.2` or `TLSv1.3`), `cipher`, and `sni`: the name that the client asked for, or `()`.",
        ),
        Entry::new(
            Request,
            &["get(key: text) -> any | ()"],
            "What an earlier hook of this request has kept, as a copy, or `()`.",
        ),
        Entry::new(
            RequestValues,
            &["set(key: text, value: any)"],
            "Keeps plain data for later hooks of this request; `()` removes it. 64 values and 256 KiB at the most.",
        ),
        Entry::new(
            RequestBody,
            &["body() -> Body"],
            "The whole body, as it came; an error on a route without an `on_request_body` hook.",
        ),
        Entry::new(
            RequestBody,
            &["json() -> any | ()"],
            "The value of its JSON, or `()` when it is none.",
        ),
        Entry::new(
            RequestBodyChange,
            &["set_body(body: text | bytes | Body | map | array)"],
            "Another body for the upstream, maps and arrays as JSON (512 KiB at the most); `()` for none. `content-length` follows. `[script] body` at the most.",
        ),
    ],
};
