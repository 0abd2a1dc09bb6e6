//! The reference: everything that a program can call, read and assign to, and where it may stand.
//!
//! These tables say for each native what it gives and what it needs of its place. From them come
//! `docs/reference.md`, the phase table in it, and the checks at load of where a call stands
//! (`lint::phases`). A test compares them with what is registered with the engine, name by name and
//! type by type: a native can't be there and not here, nor the other way round.

mod answers;
mod auth;
mod coding;
mod digests;
mod entry;
mod markdown;
mod outbound;
mod output;
mod request;
mod response;
mod routes;
mod state;
mod text;
mod time;
mod tokens;
mod top_level;
mod values;

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;

use std::{collections::HashMap, sync::LazyLock};

pub use entry::{Entry, Group, Signature};
pub use markdown::markdown;

/// All groups, in the order in which they are shown.
pub const GROUPS: &[&Group] = &[
    &top_level::TOP_LEVEL,
    &top_level::FOR_ALL_SITES,
    &top_level::SITE,
    &routes::CONDITIONS,
    &routes::DESTINATIONS,
    &routes::GATES,
    &auth::FILTERS,
    &routes::HOOKS,
    &routes::FILTERS,
    &request::REQUEST,
    &response::RESPONSE,
    &response::ATTEMPT,
    &response::PICKING,
    &answers::MAKING,
    &answers::ANSWER,
    &values::MAKING,
    &values::TABLE,
    &values::CIDR,
    &values::REGEX,
    &auth::MAKING,
    &auth::SECRET,
    &auth::USERS,
    &auth::KEY_SET,
    &state::MAKING,
    &state::RATE,
    &state::COUNTER,
    &state::CACHE,
    &state::CONCURRENCY,
    &outbound::CALLS,
    &outbound::REPLY,
    &coding::BODY,
    &coding::BYTES,
    &coding::CODING,
    &digests::DIGESTS,
    &time::TIME,
    &tokens::TOKENS,
    &auth::PASSWORDS,
    &text::TEXT,
    &output::OUTPUT,
    &output::METRICS,
    &output::METRIC,
];

/// What types are called in signatures, and what they are; a type of edgewright's own has a group.
pub const TYPES: &[(&str, &str)] = &[
    ("text", "a string"),
    ("int", "a whole number of 64 bits"),
    ("float", "a floating-point number"),
    ("number", "`int` or `float`"),
    ("bool", "`true` or `false`"),
    ("bytes", "a blob"),
    ("array", "`[..]`"),
    ("map", "`#{ .. }`"),
    ("function", "a function by its name, or a closure"),
    ("data", "`text`, `bytes` or `Body`"),
    ("key", "`text` or `int`"),
    (
        "value",
        "what a header field can be given: `text`, a number, a bool, or `()`",
    ),
    ("any", "any value"),
    ("Pick", "what `pick` gives"),
    ("()", "nothing: what is absent"),
];

/// By type (none for functions) and name.
static ENTRIES: LazyLock<HashMap<(Option<&str>, &str), &Entry>> = LazyLock::new(|| {
    let all = GROUPS.iter().flat_map(|group| {
        let entries = group.entries.iter();
        entries.map(|entry| ((group.of, entry.name()), entry))
    });
    all.collect()
});

/// The function `name`, or the method or property of a type.
pub fn find(of: Option<&str>, name: &str) -> Option<&'static Entry> {
    ENTRIES.get(&(of, name)).copied()
}

/// How the function `name` is written, or the method of the type `of`, for messages. `None` when there is none.
pub(crate) fn usage(of: Option<&str>, name: &str) -> Option<String> {
    said(find(of, name).map(|entry| entry.signatures)?)
}

/// The same for a method of whatever type has one of this name. `None` when too many do.
pub(crate) fn usage_of_method(name: &str) -> Option<String> {
    let methods = GROUPS.iter().filter(|group| group.of.is_some());
    let entries = methods.flat_map(|group| group.entries);
    let named = entries.filter(|entry| entry.name() == name);
    let mut signatures: Vec<_> = named
        .flat_map(|entry| entry.signatures)
        .filter(|signature| signature.contains('('))
        .copied()
        .collect();
    signatures.sort_unstable();
    signatures.dedup();
    said(&signatures)
}

fn said(signatures: &[&str]) -> Option<String> {
    if signatures.is_empty() || signatures.len() > MOST_SAID {
        return None;
    }
    let each: Vec<_> = signatures.iter().map(|one| format!("`{one}`")).collect();
    Some(format!("it is {}", each.join(" or ")))
}

/// Signatures that a message shows.
const MOST_SAID: usize = 4;

/// Whether some type has a method or property of this name.
pub(crate) fn is_method(name: &str) -> bool {
    ENTRIES
        .keys()
        .any(|(of, known)| of.is_some() && *known == name)
}
