//! What `.rewrite_regex` makes of a path: the part that a pattern finds is replaced.

use super::{PatternError, template::push_into_query};
use crate::{suggest::nearest, values::Regex};

/// A pattern and what takes the place of what it finds.
#[derive(Debug, Clone, PartialEq)]
pub struct Substitution {
    pattern: Regex,
    path: Box<[Part]>,
    /// What stands behind the `?`, when there is one.
    query: Option<Box<[Part]>>,
    text: Box<str>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Text(Box<str>),
    Group(usize),
}

/// A path after a substitution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Substituted {
    /// It begins with `/` and is not in normal form yet.
    pub path: String,
    /// The query that takes the place of the client's.
    pub query: Option<String>,
}

impl Substitution {
    /// Reads a replacement: `$1` and `${name}` stand for groups of the pattern, `$$` for a dollar sign.
    ///
    /// # Errors
    /// A group that the pattern doesn't have, a `$` that says nothing, or a character that may not stand
    /// in a target: a control, a space, `#`, or one outside ASCII.
    pub fn parse(pattern: Regex, replacement: &str) -> Result<Self, PatternError> {
        let mut parts = Vec::new();
        let mut path = None;
        let mut literal = String::new();
        let mut at = 0;
        let flush = |literal: &mut String, parts: &mut Vec<Part>| {
            if !literal.is_empty() {
                parts.push(Part::Text(std::mem::take(literal).into()));
            }
        };
        while let Some(next) = replacement[at..].chars().next() {
            let rest = &replacement[at..];
            if rest.starts_with("$$") {
                literal.push('$');
                at += 2;
            } else if next == '$' {
                let (name, length) = group_name(rest)
                    .ok_or_else(|| PatternError::new(at..at + 1, "this `$` names no group").help(
                        "write `$1` or `${name}` for a group of the pattern, `$$` for a dollar sign",
                    ))?;
                let group = find_group(&pattern, name, at..at + length)?;
                flush(&mut literal, &mut parts);
                parts.push(Part::Group(group));
                at += length;
            } else if next == '?' && path.is_none() {
                flush(&mut literal, &mut parts);
                path = Some(std::mem::take(&mut parts));
                at += 1;
            } else if !next.is_ascii_graphic() || next == '#' {
                let span = at..at + next.len_utf8();
                let message = format!("{next:?} may not stand in a target");
                return Err(PatternError::new(span, message));
            } else {
                literal.push(next);
                at += 1;
            }
        }
        flush(&mut literal, &mut parts);
        let (path, query) = match path {
            Some(path) => (path, Some(parts.into())),
            None => (parts, None),
        };
        Ok(Self {
            pattern,
            path: path.into(),
            query,
            text: replacement.into(),
        })
    }

    /// Replaces what the pattern finds first in `path`. `None` when it finds nothing.
    ///
    /// As in a [`Template`](super::Template), the characters `& + ; =` of a group are percent-encoded in
    /// a query: a client must not be able to add parameters of its own.
    pub fn apply(&self, path: &str) -> Option<Substituted> {
        let found = self.pattern.first(path)?;
        let whole = found.get_match();
        let group = |number: usize| found.get(number).map_or("", |group| group.as_str());
        let mut new = String::with_capacity(path.len() + 16);
        new.push_str(&path[..whole.start()]);
        for part in &self.path {
            match part {
                Part::Text(text) => new.push_str(text),
                Part::Group(number) => new.push_str(group(*number)),
            }
        }
        new.push_str(&path[whole.end()..]);
        if !new.starts_with('/') {
            new.insert(0, '/');
        }
        let query = self.query.as_ref().map(|parts| {
            let mut query = String::new();
            for part in parts {
                match part {
                    Part::Text(text) => query.push_str(text),
                    Part::Group(number) => push_into_query(group(*number), &mut query),
                }
            }
            query
        });
        Some(Substituted { path: new, query })
    }
}

impl std::fmt::Display for Substitution {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} -> {}", self.pattern.pattern(), self.text)
    }
}

/// The name behind a `$` and the length of both. Without braces it goes on as long as it can, as the
/// regex library reads it.
fn group_name(text: &str) -> Option<(&str, usize)> {
    let rest = &text[1..];
    let name = match rest.strip_prefix('{') {
        Some(braced) => &braced[..braced.find('}')?],
        None => {
            let part = |c: char| c.is_ascii_alphanumeric() || c == '_';
            &rest[..rest.find(|c| !part(c)).unwrap_or(rest.len())]
        }
    };
    let braces = if rest.starts_with('{') { 2 } else { 0 };
    (!name.is_empty()).then_some((name, 1 + braces + name.len()))
}

fn find_group(
    pattern: &Regex,
    name: &str,
    span: std::ops::Range<usize>,
) -> Result<usize, PatternError> {
    let groups: Vec<Option<&str>> = pattern.groups().collect();
    let by_number = name.parse().ok().filter(|number| *number < groups.len());
    let by_name = groups.iter().position(|known| *known == Some(name));
    if let Some(group) = by_number.or(by_name) {
        return Ok(group);
    }
    let error = PatternError::new(span, format!("the pattern has no group `{name}`"));
    let digits = name.len() - name.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let known = groups.iter().flatten().copied();
    Err(if (1..name.len()).contains(&digits) {
        let (number, rest) = name.split_at(digits);
        error.help(format!(
            "for group {number} with `{rest}` behind it write `${{{number}}}{rest}`"
        ))
    } else if let Some(near) = nearest(name, known) {
        error.help(format!("did you mean `${{{near}}}`?"))
    } else {
        let last = groups.len() - 1;
        error.help(match last {
            0 => "put parentheses around the part that is to be kept".to_owned(),
            1 => "it has one group, `$1`".to_owned(),
            _ => format!("it has {last} groups, `$1` to `${last}`"),
        })
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn substitution(pattern: &str, replacement: &str) -> Result<Substitution, PatternError> {
        Substitution::parse(Regex::compile(pattern).unwrap(), replacement)
    }

    fn applied(pattern: &str, replacement: &str, path: &str) -> String {
        match substitution(pattern, replacement).unwrap().apply(path) {
            None => "no match".to_owned(),
            Some(Substituted { path, query: None }) => path,
            Some(Substituted {
                path,
                query: Some(query),
            }) => format!("{path}?{query}"),
        }
    }

    #[test]
    fn replaces_the_first_match_and_keeps_the_rest() {
        for (pattern, replacement, path, expected) in [
            ("^/v([0-9]+)/", "/api/$1/", "/v2/users", "/api/2/users"),
            ("^/v([0-9]+)/", "/api/$1/", "/w2/users", "no match"),
            (
                r"^/(?<user>[^/]+)/(\d+)$",
                "/u/${user}_$2",
                "/bob/7",
                "/u/bob_7",
            ),
            ("_", "-", "/a_b_c", "/a-b_c"),
            (r"\.html$", "", "/a.html", "/a"),
            ("^/api", "", "/api", "/"),
            ("^/api/?", "", "/api/x", "/x"),
            ("(x)?y", "z${1}z", "/y", "/zz"),
            ("a", "$$1", "/a", "/$1"),
            ("^/(.*)$", "//$1", "/evil.test", "//evil.test"),
        ] {
            assert_eq!(
                applied(pattern, replacement, path),
                expected,
                "{pattern} in {path}"
            );
        }
    }

    #[test]
    fn a_query_takes_nothing_but_values_from_the_client() {
        assert_eq!(
            applied("^/u/([^/]*)", "/user?id=$1&admin=no", "/u/1&admin=yes/rest"),
            "/user/rest?id=1%26admin%3Dyes&admin=no"
        );
        assert_eq!(applied("^/u", "/x?", "/u"), "/x?");
    }

    #[test]
    fn says_what_is_wrong_with_a_replacement() {
        for (pattern, replacement, message, help) in [
            ("(a)", "/$2", "no group `2`", "one group, `$1`"),
            ("a", "/$1", "no group `1`", "put parentheses"),
            ("(a)(b)", "/$3", "no group `3`", "2 groups, `$1` to `$2`"),
            ("(a)", "/$1b", "no group `1b`", "write `${1}b`"),
            (
                "(?<user>a)",
                "/${usr}",
                "no group `usr`",
                "did you mean `${user}`?",
            ),
            ("(a)", "/$", "names no group", "`$$` for a dollar sign"),
            ("(a)", "/${1", "names no group", "`$$`"),
            ("(a)", "/a b", "' ' may not stand", ""),
            ("(a)", "/a\r\nx: y", "may not stand", ""),
            ("(a)", "/a#b", "'#' may not stand", ""),
        ] {
            let error = substitution(pattern, replacement).unwrap_err();
            assert!(error.message.contains(message), "{}", error.message);
            let found = error.help.unwrap_or_default();
            assert!(found.contains(help), "{found}");
        }
    }
}
