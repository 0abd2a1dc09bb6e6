//! Values that are made at the top level: lookups and inputs.

use super::entry::{Entry, Group};
use crate::program::Need::{LoadTime, Nothing};

pub(super) const MAKING: Group = Group {
    title: "Values of the load time",
    of: None,
    about: "Made at the top level, kept in constants, used in hooks. All workers share them; they are never copied. \
            A changed file that was read here causes a reload.",
    entries: &[
        Entry::new(
            LoadTime,
            &[
                "table(file: text) -> Table",
                "table(file: text, options: map) -> Table",
                "table(entries: map) -> Table",
            ],
            "A table from a map of plain data, or from a file of the configuration's folder, 64 MiB at the most: `.csv` is two columns, or with the options `key`, `value` and `separator` named ones; \
             `.txt` and `.list` are a set of lines; any other is one JSON object.",
        ),
        Entry::new(
            LoadTime,
            &["cidr(networks: text | array | Cidr) -> Cidr"],
            "Networks such as `\"10.0.0.0/8\"`, `\"fd00::/8\"` or `\"192.0.2.7\"`, one or an array. What is no network is an error.",
        ),
        Entry::new(
            LoadTime,
            &["regex(pattern: text) -> Regex"],
            "A pattern in the syntax of the regex crate, which matches in linear time; a bad one is an error. In backquotes no backslash has to be doubled.",
        ),
        Entry::new(
            LoadTime,
            &[
                "env(name: text) -> text",
                "env(name: text, default: text) -> text",
            ],
            "An environment variable; without a default a missing one is an error.",
        ),
    ],
};

pub(super) const TABLE: Group = Group {
    title: "A table",
    of: Some("Table"),
    about: "",
    entries: &[
        Entry::new(
            Nothing,
            &["get(key: text) -> any | ()"],
            "The value of the key, or `()`; also for `get(())`. A map or array that is found is copied.",
        ),
        Entry::new(
            Nothing,
            &["contains(key: text) -> bool"],
            "Whether the key is there; `false` for `()`.",
        ),
        Entry::new(Nothing, &["len() -> int"], "The number of keys."),
    ],
};

pub(super) const CIDR: Group = Group {
    title: "Networks",
    of: Some("Cidr"),
    about: "",
    entries: &[Entry::new(
        Nothing,
        &["contains(address: text) -> bool"],
        "Whether the address lies in one of the networks; `false` for `()` and for a text that is no address. \
         An IPv4 address that is written as IPv6 (`::ffff:10.0.0.1`) counts as IPv4.",
    )],
};

pub(super) const REGEX: Group = Group {
    title: "A pattern",
    of: Some("Regex"),
    about: "",
    entries: &[
        Entry::new(
            Nothing,
            &["is_match(text: text | Body) -> bool"],
            "Whether it matches anywhere in the text; `false` for `()`.",
        ),
        Entry::new(
            Nothing,
            &["captures(text: text | Body) -> array | ()"],
            "The groups of the first match, the whole match first; a group that took no part is `()`. `()` when nothing matches.",
        ),
        Entry::new(
            Nothing,
            &[
                "replace_all(text: text, to: text) -> text",
                "replace_all(body: Body, to: text) -> Body",
            ],
            "The text with every match replaced; `$1` and `${name}` in `to` are groups. Longer than `[script] string` (text) or `body` is an error; `()` stays `()`.",
        ),
        Entry::new(
            Nothing,
            &["split(text: text) -> array"],
            "The parts of the text between the matches; `[]` for `()`.",
        ),
        Entry::new(
            Nothing,
            &["find_all(text: text) -> array"],
            "The texts of all matches; `[]` for `()`.",
        ),
    ],
};
