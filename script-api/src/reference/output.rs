//! What a program says to those who run it.

use super::entry::{Entry, Group};
use crate::program::Need::{Hook, Nothing};

pub(super) const OUTPUT: Group = Group {
    title: "Log",
    of: None,
    about: "",
    entries: &[Entry::new(
        Nothing,
        &[
            "log(level: text, message: any)",
            "log(level: text, message: any, fields: map)",
        ],
        "Writes a line of the process's log with the place of the call. Levels: `debug`, `info`, `warn`, `error`; another one is an error. \
         100 lines for each call of a hook, 4 KiB for a message, 32 fields of 64 bytes (name) and 1 KiB (value); what is more is cut.",
    )],
};

pub(super) const METRICS: Group = Group {
    title: "Metrics",
    of: None,
    about: "",
    entries: &[Entry::new(
        Hook,
        &[
            "metric(name: text) -> Metric",
            "metric(name: text, labels: map) -> Metric",
        ],
        "A metric, exported as `script_` and its name. Name and labels are written out, the method stands behind them, and all uses of a name agree, or it is an error at load. \
         100 for a program, 8 labels each, 1,000 series each.",
    )],
};

pub(super) const METRIC: Group = Group {
    title: "A metric",
    of: Some("Metric"),
    about: "",
    entries: &[
        Entry::new(Hook, &["inc()"], "Counts one more: a counter."),
        Entry::new(
            Hook,
            &["add(n: number)"],
            "Adds `n` to a counter; a negative one is an error.",
        ),
        Entry::new(Hook, &["set(x: number)"], "The last value: a gauge."),
        Entry::new(
            Hook,
            &["observe(x: number)"],
            "One more value of a histogram, whose buckets from 0.005 to 10 fit seconds.",
        ),
    ],
};
