//! Shared state.

use super::entry::{Entry, Group};
use crate::program::Need::{Hook, LoadTime, RequestSlot};

pub(super) const MAKING: Group = Group {
    title: "Shared state",
    of: None,
    about: "Shared by all workers and kept over reloads, under the name of the constant that holds it or the path to it (`LIMITS.gold`). \
            A window or a time to live is a text such as `\"1500ms\"`, `\"10s\"` or `\"1m\"`, a millisecond to 366 days. \
            Keys are text or whole numbers, which are the same as their text; `()` is no key and an error, but for `cache.get`.",
    entries: &[
        Entry::new(
            LoadTime,
            &[
                "rate(n: int, window: text) -> Rate",
                "rate(n: int, window: text, options: map) -> Rate",
            ],
            "A limit of `n` hits for each key in a window that begins with the key's first hit. Options: `algorithm`, `\"sliding\"` or `\"token_bucket\"`; \
             `burst`, for the latter; `max_keys`, the keys that it knows at a time, 100,000 unless given.",
        ),
        Entry::new(
            LoadTime,
            &[
                "counter() -> Counter",
                "counter(name: text) -> Counter",
                "counter(options: map) -> Counter",
                "counter(name: text, options: map) -> Counter",
            ],
            "Counts, by key. With a name it needs no constant. Option: `max_keys`, 100,000 unless given; nothing is forgotten, so one key more is an error.",
        ),
        Entry::new(
            LoadTime,
            &[
                "concurrency(n: int) -> Concurrency",
                "concurrency(n: int, options: map) -> Concurrency",
            ],
            "Slots, `n` for each key, that requests hold to their end. Option: `max_keys`, the keys that hold some at a time, 100,000 unless given; a new one is refused then.",
        ),
        Entry::new(
            LoadTime,
            &[
                "cache(ttl: text, entries: int) -> Cache",
                "cache(ttl: text, entries: int, options: map) -> Cache",
            ],
            "Keeps at most `entries` values of plain data, each until its time to live is over; what was not asked for longest goes first. \
             Option: `max_bytes` of all values, 64 MiB unless given; one value has 1 MiB at most.",
        ),
    ],
};

pub(super) const RATE: Group = Group {
    title: "A rate",
    of: Some("Rate"),
    about: "",
    entries: &[
        Entry::new(
            Hook,
            &["allow(key: key) -> bool"],
            "Takes one hit of the key: `true` when there was one left. A refused hit takes nothing. To throw the value away is an error at load.",
        ),
        Entry::new(
            Hook,
            &["remaining(key: key) -> int"],
            "Hits that are left now.",
        ),
        Entry::new(
            Hook,
            &["retry_after(key: key) -> int"],
            "Whole seconds until there is a hit left, rounded up, 0 when there is one: what `retry-after` wants.",
        ),
    ],
};

pub(super) const COUNTER: Group = Group {
    title: "A counter",
    of: Some("Counter"),
    about: "",
    entries: &[
        Entry::new(
            Hook,
            &["add(key: key, n: int) -> int"],
            "Adds `n`, which may be negative, and gives the new number. Numbers stay within 64 bits.",
        ),
        Entry::new(
            Hook,
            &["get(key: key) -> int"],
            "The number, 0 when there is none.",
        ),
        Entry::new(Hook, &["remove(key: key)"], "Forgets the key."),
    ],
};

pub(super) const CACHE: Group = Group {
    title: "A cache",
    of: Some("Cache"),
    about: "Values are plain data: text, numbers, bools, bytes, arrays and maps; others are errors.",
    entries: &[
        Entry::new(
            Hook,
            &["get(key: key) -> any | ()"],
            "A copy of the value, or `()`; also for `get(())`.",
        ),
        Entry::new(
            Hook,
            &["set(key: key, value: any)"],
            "Keeps a value; `()` removes it.",
        ),
        Entry::new(
            Hook,
            &["remove(key: key)"],
            "Removes the value, if there is one.",
        ),
        Entry::new(
            Hook,
            &["get_or(key: key, make: function) -> any"],
            "The value, or what `make` gives, which is kept. `make` takes nothing or the key and may `fetch` where its hook may; hooks of the same worker \
             that miss the same key meanwhile wait for it. What it throws is thrown here, and nothing is kept.",
        ),
    ],
};

pub(super) const CONCURRENCY: Group = Group {
    title: "Slots",
    of: Some("Concurrency"),
    about: "",
    entries: &[
        Entry::new(
            RequestSlot,
            &["acquire() -> bool", "acquire(key: key) -> bool"],
            "Takes a slot, which the request holds until its last byte, whatever way it ends: `true` when there was one. 16 for each request at the most; each call takes one.",
        ),
        Entry::new(
            Hook,
            &["in_use() -> int", "in_use(key: key) -> int"],
            "Slots that are taken now.",
        ),
    ],
};
