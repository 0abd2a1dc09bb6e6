//! `regex("..")`: a pattern compiled once, at load.

use std::sync::Arc;

/// The largest compiled size of one pattern, in bytes.
const COMPILED_LIMIT: usize = 1024 * 1024;

/// Why a text was not made by [`Regex::replace_all`].
#[derive(Debug, PartialEq, Eq)]
pub enum NotReplaced<E> {
    /// It would be, or could be, longer than allowed.
    TooLong,
    /// The caller ended it.
    Stopped(E),
}

/// A compiled pattern. Matching takes time linear in the text. Cloning shares the program.
#[derive(Debug, Clone)]
pub struct Regex(Arc<regex::Regex>);

impl Regex {
    /// Compiles `pattern` (syntax of the `regex` crate: no look-around, no back-references).
    ///
    /// # Errors
    /// On bad syntax, and when the compiled pattern would take more than 1 MiB.
    pub fn compile(pattern: &str) -> Result<Self, String> {
        regex::RegexBuilder::new(pattern)
            .size_limit(COMPILED_LIMIT)
            .dfa_size_limit(COMPILED_LIMIT)
            .build()
            .map(|regex| Self(Arc::new(regex)))
            .map_err(|error| match error {
                regex::Error::CompiledTooBig(limit) => {
                    format!("the compiled pattern takes more than {limit} bytes")
                }
                other => {
                    // The library draws the pattern over several lines; the last one says why.
                    let text = other.to_string();
                    let reason = text.lines().last().unwrap_or(&text);
                    reason.trim_start_matches("error: ").to_owned()
                }
            })
    }

    /// The same pattern with a cache of its own for matching: the cache is a place where threads
    /// meet.
    pub(crate) fn with_own_cache(&self) -> Self {
        Self(Arc::new(regex::Regex::clone(&self.0)))
    }

    /// Whether the pattern is found anywhere in `text`.
    pub fn is_match(&self, text: &str) -> bool {
        self.0.is_match(text)
    }

    /// The first match and where its groups are.
    pub(crate) fn first<'t>(&self, text: &'t str) -> Option<regex::Captures<'t>> {
        self.0.captures(text)
    }

    /// The names of its groups, of which number 0 is the whole match; a group may have none.
    pub(crate) fn groups(&self) -> impl Iterator<Item = Option<&str>> {
        self.0.capture_names()
    }

    /// The groups of the first match: group 0 is the whole match; a group that took no part is
    /// `None`. `None` when nothing matches.
    pub fn captures<'t>(&self, text: &'t str) -> Option<Vec<Option<&'t str>>> {
        self.0.captures(text).map(|found| {
            found
                .iter()
                .map(|group| group.map(|m| m.as_str()))
                .collect()
        })
    }

    /// `text` with every match replaced; `$1` and `${name}` in `to` stand for groups. Each search takes
    /// time linear in the rest of the text, so all of them may take quadratic time: `goes_on` is asked
    /// after each that found something.
    ///
    /// # Errors
    /// What `goes_on` says, and when the result would be longer than `limit` bytes; no more than that is
    /// built.
    pub fn replace_all<E>(
        &self,
        text: &str,
        to: &str,
        limit: usize,
        mut goes_on: impl FnMut() -> Result<(), E>,
    ) -> Result<String, NotReplaced<E>> {
        let mut out = String::new();
        let mut end = 0;
        // No group is longer than its match, so this much at most is put in its place.
        let groups = to.matches('$').count();
        for found in self.0.captures_iter(text) {
            goes_on().map_err(NotReplaced::Stopped)?;
            let whole = found.get_match();
            let kept = &text[end..whole.start()];
            let longest = to.len().saturating_add(groups.saturating_mul(whole.len()));
            if (out.len() + kept.len()).saturating_add(longest) > limit {
                return Err(NotReplaced::TooLong);
            }
            if end == 0 {
                out.reserve(text.len().min(limit));
            }
            out.push_str(kept);
            found.expand(to, &mut out);
            end = whole.end();
        }
        if out.len() + text.len() - end > limit {
            return Err(NotReplaced::TooLong);
        }
        out.push_str(&text[end..]);
        Ok(out)
    }

    /// What stands between the matches, one part more than there are matches.
    pub fn split<'t>(&self, text: &'t str) -> impl Iterator<Item = &'t str> {
        self.0.split(text)
    }

    /// All matches, which don't overlap.
    pub fn find_all<'t>(&self, text: &'t str) -> impl Iterator<Item = &'t str> {
        self.0.find_iter(text).map(|found| found.as_str())
    }

    /// The pattern's own text.
    pub fn pattern(&self) -> &str {
        self.0.as_str()
    }
}

impl PartialEq for Regex {
    fn eq(&self, other: &Self) -> bool {
        self.pattern() == other.pattern()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn captures_and_replaces() {
        let regex = Regex::compile(r"^/u/(\d+)(/x)?").unwrap();
        assert_eq!(
            regex.captures("/u/42"),
            Some(vec![Some("/u/42"), Some("42"), None])
        );
        assert_eq!(regex.captures("/v/42"), None);
        let regex = Regex::compile("(a)(b)").unwrap();
        assert_eq!(
            regex.replace_all("abxab", "$2$1", 64, goes_on).unwrap(),
            "baxba"
        );
    }

    fn goes_on() -> Result<(), ()> {
        Ok(())
    }

    #[test]
    fn bounds_what_it_builds() {
        let all = Regex::compile("a+").unwrap();
        let bomb = all.replace_all(&"a".repeat(60_000), &"$0".repeat(30_000), 65_536, goes_on);
        assert_eq!(bomb, Err(NotReplaced::TooLong));
        let regex = Regex::compile("a").unwrap();
        let long = "a".repeat(1000);
        let replaced = regex.replace_all(&long, &"b".repeat(1000), 4096, goes_on);
        assert_eq!(replaced, Err(NotReplaced::TooLong));
        let mut searches = 0;
        let stopped = regex.replace_all(&long, "b", 4096, || {
            searches += 1;
            if searches < 10 { Ok(()) } else { Err("enough") }
        });
        assert_eq!(stopped, Err(NotReplaced::Stopped("enough")));
        assert!(
            Regex::compile(r"(\w{1000}){1000}")
                .unwrap_err()
                .contains("bytes")
        );
    }

    #[test]
    fn says_what_is_wrong_in_one_line() {
        assert_eq!(Regex::compile("(").unwrap_err(), "unclosed group");
    }
}
