//! The methods of a route.

use super::entry::{Entry, Group};
use crate::program::Need::LoadTime;

pub(super) const CONDITIONS: Group = Group {
    title: "A route: conditions",
    of: Some("Route"),
    about: "When one does not hold, the next route that fits is tried: a condition is no gate.",
    entries: &[
        Entry::new(
            LoadTime,
            &["methods(methods: array) -> Route"],
            "The method is one of these texts, in upper case; `GET` also takes `HEAD`.",
        ),
        Entry::new(
            LoadTime,
            &[
                "if_header(name: text) -> Route",
                "if_header(name: text, value: text | Regex) -> Route",
            ],
            "The header field is there; one of its values is the text; one matches.",
        ),
        Entry::new(
            LoadTime,
            &[
                "if_query(name: text) -> Route",
                "if_query(name: text, value: text | Regex) -> Route",
            ],
            "The same for a query parameter, decoded.",
        ),
        Entry::new(
            LoadTime,
            &[
                "if_cookie(name: text) -> Route",
                "if_cookie(name: text, value: text | Regex) -> Route",
            ],
            "The same for a cookie.",
        ),
        Entry::new(
            LoadTime,
            &["from(networks: text | array | Cidr) -> Route"],
            "The client's address is in one of the networks.",
        ),
        Entry::new(
            LoadTime,
            &["when(test: function) -> Route"],
            "`fn(req)` says `true`. Anything but a bool, and an error, is a 500 and never \"no match\".",
        ),
    ],
};

pub(super) const DESTINATIONS: Group = Group {
    title: "A route: where a request goes",
    of: Some("Route"),
    about: "Each route has exactly one of these.",
    entries: &[
        Entry::new(
            LoadTime,
            &[
                "to(pool: text) -> Route",
                "to(weights: map) -> Route",
                "to(weights: map, options: map) -> Route",
                "to(choose: function) -> Route",
            ],
            "To a pool; to one of several by weight, `#{ a: 90, b: 10 }`, at random or by what a request has, `#{ by: \"header x-user\" }`; where `fn(req)` says: the name of a pool, `pick(..)`, a map of weights, or an answer.",
        ),
        Entry::new(
            LoadTime,
            &[
                "sticky(cookie: text) -> Route",
                "sticky(cookie: text, options: map) -> Route",
            ],
            "Gives each client a cookie, by which later requests go to the same pool of a split and the same target. Options: `ttl`, `path`, `domain`, `secure`, `http_only`, `same_site`, `secret`.",
        ),
        Entry::new(
            LoadTime,
            &[
                "respond(status: int) -> Route",
                "respond(status: int, body: text) -> Route",
                "respond(answer: Answer) -> Route",
                "respond(make: function) -> Route",
            ],
            "This answer, or the one that `fn(req)` makes.",
        ),
        Entry::new(
            LoadTime,
            &["redirect(status: int, target: text) -> Route"],
            "301, 302, 303, 307 or 308 to a target that begins with `/`, `http://` or `https://`; it may name captures.",
        ),
    ],
};

pub(super) const HOOKS: Group = Group {
    title: "A route: hooks",
    of: Some("Route"),
    about: "Several of one kind run in the order written, behind those of all sites and of the site.",
    entries: &[
        Entry::new(
            LoadTime,
            &["on_request(hook: function) -> Route"],
            "`fn(req)` gives `()` to go on, or an answer.",
        ),
        Entry::new(
            LoadTime,
            &["on_request_body(hook: function) -> Route"],
            "`fn(req)` has the whole body of the request, before any upstream is contacted; gives `()` to go on, or an answer.",
        ),
        Entry::new(
            LoadTime,
            &["on_response(hook: function) -> Route"],
            "`fn(req, res)` changes status and header, or gives an answer that takes the response's place.",
        ),
        Entry::new(
            LoadTime,
            &[
                "on_response_body(hook: function) -> Route",
                "on_response_body(options: map, hook: function) -> Route",
            ],
            "`fn(req, res)` has the body of the response and may change it. With `#{ stream: true, hold: \"4KiB\" }` it gets pieces as they come, of which `hold` bytes are kept back and shown again.",
        ),
        Entry::new(
            LoadTime,
            &["on_log(hook: function) -> Route"],
            "`fn(req, res)` looks at what was, when everything is over; once for each request.",
        ),
    ],
};

pub(super) const GATES: Group = Group {
    title: "A route: gates",
    of: Some("Route"),
    about: "Native, without script, before any hook. See [limits-and-access.md](limits-and-access.md).",
    entries: &[
        Entry::new(
            LoadTime,
            &["cors(options: map) -> Route"],
            "Pages of other origins: answers preflights, and says on each response who may read it. Options: `origins`, `methods`, `headers`, `expose`, `credentials`, `max_age`.",
        ),
        Entry::new(
            LoadTime,
            &["deny(networks: text | array | Cidr) -> Route"],
            "403 for clients with an address in one of the networks; further calls add to them.",
        ),
        Entry::new(
            LoadTime,
            &["allow(networks: text | array | Cidr) -> Route"],
            "403 for clients with an address in none of the networks.",
        ),
        Entry::new(
            LoadTime,
            &["max_body(size: text) -> Route"],
            "413 for a longer body, in place of `[limits] request_body`; `\"none\"` is no bound.",
        ),
        Entry::new(
            LoadTime,
            &[
                "limit(n: int, window: text) -> Route",
                "limit(n: int, window: text, options: map) -> Route",
                "limit(rate: Rate) -> Route",
                "limit(rate: Rate, options: map) -> Route",
            ],
            "429 for more than `n` requests in a window, or what a shared rate allows. Options: `key` (`\"ip\"` unless given), `status`, and those of `rate`.",
        ),
        Entry::new(
            LoadTime,
            &[
                "concurrency(n: int) -> Route",
                "concurrency(n: int, options: map) -> Route",
                "concurrency(slots: Concurrency) -> Route",
                "concurrency(slots: Concurrency, options: map) -> Route",
            ],
            "503 for more than `n` requests at a time. Options: `key` (`\"route\"` unless given), `status`, `max_keys`.",
        ),
    ],
};

pub(super) const FILTERS: Group = Group {
    title: "A route: filters",
    of: Some("Route"),
    about: "Native, without script, in one order whatever the order in which they are written.",
    entries: &[
        Entry::new(
            LoadTime,
            &["strip_prefix(prefix: text) -> Route"],
            "Takes whole segments off the front of the path.",
        ),
        Entry::new(
            LoadTime,
            &["rewrite(target: text) -> Route"],
            "The new path, with captures as `{name}`; takes the place of `strip_prefix`. The query stays unless the target has a `?`.",
        ),
        Entry::new(
            LoadTime,
            &["rewrite_regex(pattern: text, to: text) -> Route"],
            "Replaces what the pattern finds first in the path that `strip_prefix` has left; groups as `$1` and `${name}`, `$$` is a dollar sign. Not beside `rewrite`.",
        ),
        Entry::new(
            LoadTime,
            &["set_header(name: text, value: text) -> Route"],
            "Sets a field of the request to the upstream.",
        ),
        Entry::new(
            LoadTime,
            &["add_header(name: text, value: text) -> Route"],
            "Adds a value to a field of the request.",
        ),
        Entry::new(
            LoadTime,
            &["remove_header(name: text) -> Route"],
            "Removes a field of the request.",
        ),
        Entry::new(
            LoadTime,
            &["set_response_header(name: text, value: text) -> Route"],
            "Sets a field of every response of the route, the proxy's own too.",
        ),
        Entry::new(
            LoadTime,
            &["add_response_header(name: text, value: text) -> Route"],
            "Adds a value to a field of every response of the route.",
        ),
        Entry::new(
            LoadTime,
            &["remove_response_header(name: text) -> Route"],
            "Removes a field of every response of the route.",
        ),
        Entry::new(
            LoadTime,
            &["timeout(time: text) -> Route"],
            "Until the upstream's response header is there, connecting and further attempts included; then 504.",
        ),
        Entry::new(
            LoadTime,
            &[
                "retries(attempts: int) -> Route",
                "retries(attempts: int, options: map) -> Route",
            ],
            "How often a request is tried again, 0 to 10, in place of the pool's `[retries]`. Options: `on` \
             (`\"connect\"`, `\"reset\"`, `\"timeout\"`, `\"502\"`, `\"503\"`, `\"504\"`).",
        ),
        Entry::new(
            LoadTime,
            &[
                "mirror(pool: text, percent: number) -> Route",
                "mirror(pool: text, options: map) -> Route",
            ],
            "Copies a share of the requests to another pool, whose answers nobody sees. Options: `percent` (100), \
             `body` (`\"64KiB\"`; a request with a longer one is not copied), `timeout` (`\"5s\"`). See \
             [upstreams.md](upstreams.md#mirroring).",
        ),
        Entry::new(
            LoadTime,
            &["compress() -> Route", "compress(options: map) -> Route"],
            "Compresses responses for clients that want it. Options: `min` (`\"1KiB\"`), `types` (media types, `\"text/*\"`), \
             `codings` (`[\"zstd\", \"br\", \"gzip\"]`, the preferred one first).",
        ),
    ],
};
