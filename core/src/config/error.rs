//! From what serde and the TOML parser say to a [`Diagnostic`] with a place and a suggestion.

use std::ops::Range;

use edgewright_script::diagnostic::Diagnostic;

/// The text of a configuration file, to find places in.
#[derive(Debug, Clone, Copy)]
pub(super) struct Source<'a> {
    /// As places name it: relative to the configuration's folder.
    pub name: &'a str,
    pub text: &'a str,
}

impl Source<'_> {
    /// An error about the bytes `span` of the text.
    pub(super) fn error(&self, span: &Range<usize>, message: impl Into<String>) -> Diagnostic {
        let before = self.text.get(..span.start).unwrap_or(self.text);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let marked = self.text.get(span.clone()).unwrap_or_default();
        // A place is on one line: a table's span ends with its first.
        let marked = marked.lines().next().unwrap_or_default();
        Diagnostic::error(message)
            .at(
                self.name,
                before.matches('\n').count() + 1,
                before[line_start..].chars().count() + 1,
            )
            .spanning(marked.chars().count())
    }

    /// A warning about the bytes `span` of the text.
    pub(super) fn warning(&self, span: &Range<usize>, message: impl Into<String>) -> Diagnostic {
        Diagnostic {
            place: self.error(span, "").place,
            ..Diagnostic::warning(message)
        }
    }

    /// What the TOML parser or serde found wrong.
    pub(super) fn parse_error(&self, error: &toml::de::Error) -> Diagnostic {
        let (message, help) = explain(error.message());
        let mut diagnostic = match error.span() {
            Some(span) => self.error(&span, message),
            None => Diagnostic::error(format!("{}: {message}", self.name)),
        };
        if let Some(help) = help {
            diagnostic = diagnostic.help(help);
        }
        diagnostic
    }
}

/// Message and help for what serde says about an unknown name; other messages stay as they are.
///
/// serde has no other form for its errors than their text (`serde::de::Error::unknown_field`,
/// `unknown_variant`); a test holds that text still.
fn explain(message: &str) -> (String, Option<String>) {
    let unknown = |prefix, kind: &str, list: &str| {
        let (name, expected) = message.strip_prefix(prefix)?.rsplit_once("`, expected ")?;
        let names: Vec<_> = expected.split('`').skip(1).step_by(2).collect();
        let help = suggestion(name, &names).unwrap_or_else(|| {
            let names: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
            format!("{list} {}", names.join(", "))
        });
        Some((format!("unknown {kind} `{name}`"), Some(help)))
    };
    if message == "invalid type: map, expected a sequence" {
        let help = "write it with two brackets, [[..]]: there can be several";
        return ("this is a list of tables".to_owned(), Some(help.to_owned()));
    }
    unknown("unknown field `", "key", "the keys here are")
        .or_else(|| unknown("unknown variant `", "value", "it can be"))
        .unwrap_or_else(|| (message.to_string(), None))
}

/// "did you mean ...?" when one of `names` is near enough to `name` to be meant.
fn suggestion(name: &str, names: &[&str]) -> Option<String> {
    // One slip in three letters, a swap of two neighbours counting as one; or a shorter or longer
    // form of the same word, such as "warning".
    let most = (name.chars().count() / 3).max(1);
    let form =
        |known: &str| name.len() >= 3 && (known.starts_with(name) || name.starts_with(known));
    names
        .iter()
        .map(|known| (strsim::damerau_levenshtein(name, known), known))
        .filter(|(distance, known)| *distance <= most || form(known))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, known)| format!("did you mean `{known}`?"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code)]
    struct One {
        threads: Option<u32>,
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code)]
    struct Three {
        read: Option<u32>,
        write: Option<u32>,
        way: Option<Way>,
    }

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "snake_case")]
    enum Way {
        LeastRequests,
        RoundRobin,
    }

    fn summary<T: serde::de::DeserializeOwned + std::fmt::Debug>(text: &str) -> String {
        let source = Source {
            name: "c.toml",
            text,
        };
        source
            .parse_error(&toml::from_str::<T>(text).unwrap_err())
            .summary()
    }

    #[test]
    fn unknown_names_get_a_suggestion_or_the_list() {
        assert_eq!(
            summary::<One>("thread = 1"),
            "c.toml:1:1: error: unknown key `thread` (did you mean `threads`?)"
        );
        assert_eq!(
            summary::<One>("\n  workers = 1"),
            "c.toml:2:3: error: unknown key `workers` (the keys here are `threads`)"
        );
        assert_eq!(
            summary::<Three>("raed = 1"),
            "c.toml:1:1: error: unknown key `raed` (did you mean `read`?)"
        );
        assert_eq!(
            summary::<Three>("\"a`, b\" = 1"),
            "c.toml:1:1: error: unknown key `a`, b` (the keys here are `read`, `write`, `way`)"
        );
        assert_eq!(
            summary::<Three>("way = \"round_robbin\""),
            "c.toml:1:7: error: unknown value `round_robbin` (did you mean `round_robin`?)"
        );
        assert_eq!(
            summary::<Three>("way = \"hash\""),
            "c.toml:1:7: error: unknown value `hash` (it can be `least_requests`, `round_robin`)"
        );
    }

    #[test]
    fn a_table_in_place_of_a_list_of_them_needs_its_brackets() {
        #[derive(Debug, Deserialize)]
        #[allow(dead_code)]
        struct Many {
            listeners: Vec<One>,
        }
        let shown = summary::<Many>("[listeners]\nthreads = 1");
        assert!(shown.contains("write it with two brackets"), "{shown}");
    }

    #[test]
    fn places_count_characters_and_stay_on_one_line() {
        let text = "a = 1\nü = [\n  2,\n]\n";
        let source = Source { name: "c", text };
        let value = text.find('[').unwrap()..text.find(']').unwrap() + 1;
        let place = source.error(&value, "x").place.unwrap();
        assert_eq!((place.line, place.column, place.length), (2, 5, 1));
        let end = source.error(&(text.len()..text.len()), "x").place.unwrap();
        assert_eq!((end.line, end.column, end.length), (5, 1, 1));
        let beyond = source.error(&(99..100), "x").place.unwrap();
        assert_eq!((beyond.line, beyond.column), (5, 1));
    }

    #[test]
    fn syntax_errors_have_a_place() {
        let shown = summary::<One>("threads = 1\nthreads = = 2");
        assert!(shown.starts_with("c.toml:2:"), "{shown}");
    }

    #[test]
    fn only_near_names_are_suggested() {
        assert_eq!(
            suggestion("ot", &["to"]).unwrap(),
            "did you mean `to`?",
            "a swap is one slip"
        );
        assert_eq!(
            suggestion("conn", &["read", "connect"]).unwrap(),
            "did you mean `connect`?"
        );
        assert_eq!(suggestion("abc", &["xyz"]), None);
        assert_eq!(suggestion("random", &["round_robin"]), None);
    }
}
