//! What the top level makes: routes, sites, pools, and the hooks of all sites.

use super::entry::{Entry, Group};
use crate::program::Need::LoadTime;

pub(super) const TOP_LEVEL: Group = Group {
    title: "Routes, sites and pools",
    of: None,
    about: "They stand at the top level, or in functions that the top level calls.",
    entries: &[
        Entry::new(
            LoadTime,
            &["route(pattern: text) -> Route"],
            "A route for any host. `/a` is only `/a`; `{name}` is one segment, `{*rest}` what remains.",
        ),
        Entry::new(
            LoadTime,
            &["site(host: text) -> Site", "site(hosts: array) -> Site"],
            "The site of one or more hosts: names, `*.example.com`, or `*` for any. The same hosts again are the same site.",
        ),
        Entry::new(
            LoadTime,
            &["pool(name: text, targets: array)"],
            "Declares a pool, as `[pools.NAME]` of edgewright.toml does: `host:port`, `address:port`, `unix:PATH`, or maps with a `target`, `weight`, `backup` and `zone`.",
        ),
        Entry::new(
            LoadTime,
            &["every(interval: text, run: function)"],
            "Runs `fn()` when the program goes live and again when the interval has passed since it ended, on one worker. 1 s to 366 days; 64 for a program.",
        ),
    ],
};

pub(super) const FOR_ALL_SITES: Group = Group {
    title: "Hooks of all sites",
    of: None,
    about: "They run before those of the site and of the route; several of one kind in the order written.",
    entries: &[
        Entry::new(
            LoadTime,
            &["on_request(hook: function)"],
            "`fn(req)` gives `()` to go on, or an answer.",
        ),
        Entry::new(
            LoadTime,
            &["on_request_body(hook: function)"],
            "`fn(req)` has the whole body of the request, before any upstream is contacted; gives `()` to go on, or an answer.",
        ),
        Entry::new(
            LoadTime,
            &["on_response(hook: function)"],
            "`fn(req, res)` changes status and header, or gives an answer that takes the response's place.",
        ),
        Entry::new(
            LoadTime,
            &[
                "on_response_body(hook: function)",
                "on_response_body(options: map, hook: function)",
            ],
            "`fn(req, res)` has the body of the response and may change it. With `#{ stream: true, hold: \"4KiB\" }` it gets pieces as they come, of which `hold` bytes are kept back and shown again.",
        ),
        Entry::new(
            LoadTime,
            &["on_log(hook: function)"],
            "`fn(req, res)` looks at what was, when everything is over; once for each request.",
        ),
    ],
};

pub(super) const SITE: Group = Group {
    title: "A site",
    of: Some("Site"),
    about: "Each gives the site, but for `route`.",
    entries: &[
        Entry::new(
            LoadTime,
            &["route(pattern: text) -> Route"],
            "A route of this site.",
        ),
        Entry::new(
            LoadTime,
            &["on_request(hook: function) -> Site"],
            "`fn(req)` gives `()` to go on, or an answer.",
        ),
        Entry::new(
            LoadTime,
            &["on_request_body(hook: function) -> Site"],
            "`fn(req)` has the whole body of the request, before any upstream is contacted; gives `()` to go on, or an answer.",
        ),
        Entry::new(
            LoadTime,
            &["on_response(hook: function) -> Site"],
            "`fn(req, res)` changes status and header, or gives an answer that takes the response's place.",
        ),
        Entry::new(
            LoadTime,
            &[
                "on_response_body(hook: function) -> Site",
                "on_response_body(options: map, hook: function) -> Site",
            ],
            "`fn(req, res)` has the body of the response and may change it. With `#{ stream: true, hold: \"4KiB\" }` it gets pieces as they come, of which `hold` bytes are kept back and shown again.",
        ),
        Entry::new(
            LoadTime,
            &["on_log(hook: function) -> Site"],
            "`fn(req, res)` looks at what was, when everything is over; once for each request.",
        ),
    ],
};
