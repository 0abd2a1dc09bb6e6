//! Changes of a query string. What they don't touch stays byte for byte as it was sent: some sign
//! their queries, others cache by them.

use std::{borrow::Cow, fmt::Write as _};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::form_decode;

/// What stands for itself (RFC 3986 section 2.3). A space becomes `%20`, which all read as one.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// What a query can't hold as it is (RFC 3986 section 3.4): control characters, spaces and what is no
/// ASCII, and the `#` that would end it. The rest of what the standard excludes is sent by browsers and
/// passed on by servers.
const NEVER: &AsciiSet = &percent_encoding::CONTROLS.add(b' ').add(b'#');

/// The parameters: what stands between the `&`, empty ones left out.
fn parameters(query: &str) -> impl Iterator<Item = &str> {
    query.split('&').filter(|parameter| !parameter.is_empty())
}

/// The decoded name of a parameter.
fn name_of(parameter: &str) -> Cow<'_, str> {
    let name = parameter
        .split_once('=')
        .map_or(parameter, |(name, _)| name);
    form_decode(name)
}

/// The decoded names, each once, in the order in which they come first.
pub fn names(query: &str) -> Vec<Cow<'_, str>> {
    let mut seen = hashbrown::HashSet::new();
    let names = parameters(query).map(name_of);
    names.filter(|name| seen.insert(name.clone())).collect()
}

/// The query with the first parameter called `name` having this value and no other of that name; it is
/// added at the end when there is none.
pub fn set(query: &str, name: &str, value: &str) -> String {
    let mut is_set = false;
    let mut changed = String::with_capacity(query.len() + name.len() + value.len() + 2);
    for (index, parameter) in query.split('&').enumerate() {
        let is_it = !parameter.is_empty() && name_of(parameter) == name;
        if is_it && is_set {
            continue;
        }
        if index > 0 {
            changed.push('&');
        }
        if is_it {
            is_set = true;
            // The name stays as it was written.
            let written = parameter
                .split_once('=')
                .map_or(parameter, |(name, _)| name);
            changed.push_str(written);
            changed.push('=');
            encode(value, &mut changed);
        } else {
            changed.push_str(parameter);
        }
    }
    if is_set {
        return changed;
    }
    add(query, name, value)
}

/// The query with one parameter more, at its end.
pub fn add(query: &str, name: &str, value: &str) -> String {
    let mut changed = String::with_capacity(query.len() + name.len() + value.len() + 2);
    changed.push_str(query);
    if !query.is_empty() {
        changed.push('&');
    }
    encode(name, &mut changed);
    changed.push('=');
    encode(value, &mut changed);
    changed
}

/// The query without the parameters called `name`; `None` when there is none.
pub fn remove(query: &str, name: &str) -> Option<String> {
    let is_it = |parameter: &&str| !parameter.is_empty() && name_of(parameter) == name;
    query.split('&').find(is_it)?;
    let kept: Vec<&str> = query.split('&').filter(|one| !is_it(one)).collect();
    Some(kept.join("&"))
}

/// The query with its parameters in the order of their names, byte by byte. Those of one name keep their
/// order; empty ones (`a&&b`) go.
pub fn sorted(query: &str) -> String {
    let mut all: Vec<(Cow<'_, str>, &str)> = parameters(query)
        .map(|parameter| (name_of(parameter), parameter))
        .collect();
    all.sort_by(|a, b| a.0.cmp(&b.0));
    let parameters: Vec<&str> = all.into_iter().map(|(_, parameter)| parameter).collect();
    parameters.join("&")
}

/// A whole query as a program gives it: what can't stand in one is percent-encoded, the rest stays.
pub fn whole(query: &str) -> String {
    utf8_percent_encode(query, NEVER).to_string()
}

fn encode(text: &str, into: &mut String) {
    // Writing to a text never fails.
    let _ = write!(into, "{}", utf8_percent_encode(text, ENCODED));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Escapes in lower and upper case, needless ones, empty parameters, none without value.
    const SENT: &str = "b=%2f&a=1+2&&%61=%7e&c&b=x=y&d=";

    #[test]
    fn setting_touches_nothing_else() {
        assert_eq!(
            set(SENT, "c", "é &"),
            "b=%2f&a=1+2&&%61=%7e&c=%C3%A9%20%26&b=x=y&d="
        );
        assert_eq!(set(SENT, "a", "n"), "b=%2f&a=n&&c&b=x=y&d=");
        assert_eq!(set(SENT, "new one", ""), format!("{SENT}&new%20one="));
        assert_eq!(set("", "a", "1"), "a=1");
        assert_eq!(set("%61=1", "a", "2"), "%61=2");
    }

    #[test]
    fn adding_and_removing_touch_nothing_else() {
        assert_eq!(add(SENT, "a", "+"), format!("{SENT}&a=%2B"));
        assert_eq!(remove(SENT, "a").as_deref(), Some("b=%2f&&c&b=x=y&d="));
        assert_eq!(remove(SENT, "b").as_deref(), Some("a=1+2&&%61=%7e&c&d="));
        assert_eq!(remove(SENT, "B"), None);
        assert_eq!(remove("a=1", "a").as_deref(), Some(""));
        assert_eq!(remove("&&", ""), None);
    }

    #[test]
    fn names_and_order_go_by_the_decoded_name() {
        assert_eq!(names(SENT), ["b", "a", "c", "d"]);
        assert_eq!(names(""), Vec::<Cow<'_, str>>::new());
        assert_eq!(sorted(SENT), "a=1+2&%61=%7e&b=%2f&b=x=y&c&d=");
    }

    #[test]
    fn a_whole_query_can_hold_nothing_that_ends_it() {
        assert_eq!(
            whole("a=%20&b=x y#z\r\né?/"),
            "a=%20&b=x%20y%23z%0D%0A%C3%A9?/"
        );
    }
}
