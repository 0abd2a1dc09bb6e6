//! Whether both sides did the same, but for what is explained.

use std::collections::BTreeSet;

use regex::Regex;

use super::exchange::Facts;
use super::job::{Difference, RequestSpec};

/// The differences of a job, and which of them were seen.
pub struct Common<'a>(Vec<(&'a Difference, bool)>);

impl<'a> Common<'a> {
    pub fn new(differences: &'a [Difference]) -> Self {
        Self(differences.iter().map(|one| (one, false)).collect())
    }

    /// Whether one of them explains how this fact differs.
    fn explains(&mut self, fact: &str, nginx: &Facts, edgewright: &Facts) -> bool {
        let found = self.0.iter_mut().find(|(difference, _)| {
            difference.of == fact
                && holds(nginx, fact, &text(&difference.nginx))
                && holds(edgewright, fact, &text(&difference.edgewright))
        });
        found.is_some_and(|(_, seen)| {
            *seen = true;
            true
        })
    }

    /// What is wrong with them when all requests were made.
    pub fn failures(&self) -> Vec<String> {
        let unseen = self.0.iter().filter(|(_, seen)| !seen);
        unseen
            .map(|(one, _)| {
                format!(
                    "  no request has the difference of `{}`: {}",
                    one.of, one.because
                )
            })
            .collect()
    }
}

/// What is wrong with one request, in words; nothing when all is as it should be.
pub fn failures(
    spec: &RequestSpec,
    common: &mut Common<'_>,
    nginx: &Facts,
    edgewright: &Facts,
) -> Vec<String> {
    let mut failures = Vec::new();
    let sent: String = spec.send.chars().take(SHOWN).collect();
    let mut fail = |text: String| failures.push(format!("  {} ({sent}): {text}", spec.about));
    let sides = [("nginx", nginx), ("edgewright", edgewright)];

    // What need not be the same text on both sides.
    let mut explained = BTreeSet::new();
    for (fact, expected) in &spec.expect {
        let expected = text(expected);
        if expected.starts_with(PATTERN) {
            explained.insert(fact.as_str());
        }
        for (side, facts) in sides {
            if !holds(facts, fact, &expected) {
                fail(format!(
                    "{side}: `{fact}` is {:?} and not {expected:?}",
                    facts.get(fact)
                ));
            }
        }
    }
    for difference in &spec.differences {
        let fact = difference.of.as_str();
        if nginx.get(fact) == edgewright.get(fact) {
            fail(format!("`{fact}` does not differ, though it is said to"));
        }
        explained.insert(fact);
        let expected = [&difference.nginx, &difference.edgewright].map(text);
        for ((side, facts), expected) in sides.into_iter().zip(expected) {
            if !holds(facts, fact, &expected) {
                fail(format!(
                    "{side}: `{fact}` is {:?} and not {expected:?}, as its difference says",
                    facts.get(fact)
                ));
            }
        }
    }
    for [one, other] in &spec.equal {
        for (side, facts) in sides {
            if facts.get(one).is_none() || facts.get(one) != facts.get(other) {
                fail(format!(
                    "{side}: `{one}` is {:?}, and `{other}` {:?}",
                    facts.get(one),
                    facts.get(other)
                ));
            }
        }
    }
    let all: BTreeSet<&String> = nginx.keys().chain(edgewright.keys()).collect();
    for fact in all {
        if nginx.get(fact) != edgewright.get(fact)
            && !of_a_request_too_many(fact, &explained, sides)
            && !explained.contains(fact.as_str())
            && !common.explains(fact, nginx, edgewright)
        {
            fail(format!(
                "`{fact}`: nginx {:?}, edgewright {:?}",
                nginx.get(fact),
                edgewright.get(fact)
            ));
        }
    }
    failures
}

/// Whether a fact is of a request that one upstream only saw, which is explained already.
fn of_a_request_too_many(
    fact: &str,
    explained: &BTreeSet<&str>,
    sides: [(&str, &Facts); 2],
) -> bool {
    let upstream = fact.split(' ').next().unwrap_or_default();
    explained.contains(format!("{upstream} requests").as_str())
        && sides.iter().any(|(_, facts)| !facts.contains_key(fact))
}

/// So much of a target is shown, in characters.
const SHOWN: usize = 80;

/// What a value begins with that is a pattern.
const PATTERN: &str = "~ ";

/// What a fact is called that there is none of: no such request was seen.
const NOTHING: &str = "(nothing)";

fn holds(facts: &Facts, fact: &str, expected: &str) -> bool {
    let actual = facts.get(fact).map_or(NOTHING, String::as_str);
    match expected.strip_prefix(PATTERN) {
        Some(pattern) => Regex::new(&format!("(?s)^(?:{pattern})$"))
            .unwrap()
            .is_match(actual),
        None => actual == expected,
    }
}

fn text(value: &toml::Value) -> String {
    match value {
        toml::Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// The comparison finds what it is there for.
mod itself {
    use super::{Common, Facts, failures};
    use crate::job::{Difference, RequestSpec};

    fn facts(pairs: &[(&str, &str)]) -> Facts {
        let pair = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        pairs.iter().map(pair).collect()
    }

    /// How many failures there are, for a request that says `text`.
    fn found(text: &str, nginx: &[(&str, &str)], edgewright: &[(&str, &str)]) -> usize {
        let text = format!("about = \"x\"\nsend = \"GET /\"\n{text}");
        let spec: RequestSpec = toml::from_str(&text).unwrap();
        let mut common = Common::new(&[]);
        failures(&spec, &mut common, &facts(nginx), &facts(edgewright)).len()
    }

    const DIFFERS: &str =
        "[[differences]]\nof = \"status\"\nnginx = 200\nedgewright = 403\nbecause = \"of this\"\n";

    #[test]
    fn what_differs_is_found() {
        assert_eq!(found("", &[("status", "200")], &[("status", "200")]), 0);
        assert_eq!(found("", &[("status", "200")], &[("status", "403")]), 1);
        assert_eq!(found("", &[("status", "200")], &[]), 1);
        assert_eq!(
            found(DIFFERS, &[("status", "200")], &[("status", "403")]),
            0
        );
    }

    #[test]
    fn an_explanation_that_does_not_hold_is_found() {
        // Not a difference any more, and not what nginx was said to do.
        assert_eq!(
            found(DIFFERS, &[("status", "403")], &[("status", "403")]),
            2
        );
        assert_eq!(
            found(DIFFERS, &[("status", "200")], &[("status", "404")]),
            1
        );
        assert_eq!(found(DIFFERS, &[("status", "200")], &[]), 1);
        // A request more explains what is in it.
        let more = DIFFERS.replace("status", "web requests");
        let seen = [("web requests", "200"), ("web target", "/")];
        assert_eq!(found(&more, &seen, &[("web requests", "403")]), 0);
        let other = [("web requests", "403"), ("web target", "/x")];
        assert_eq!(found(&more, &seen, &other), 1);
    }

    #[test]
    fn a_difference_of_the_job_must_be_seen() {
        let difference = "of = \"status\"\nnginx = 200\nedgewright = 403\nbecause = \"of this\"";
        let differences: [Difference; 1] = [toml::from_str(difference).unwrap()];
        let spec: RequestSpec = toml::from_str("about = \"x\"\nsend = \"GET /\"").unwrap();
        let mut common = Common::new(&differences);
        let mut found = |nginx: &str, edgewright: &str| {
            let (nginx, edgewright) = (
                facts(&[("status", nginx)]),
                facts(&[("status", edgewright)]),
            );
            failures(&spec, &mut common, &nginx, &edgewright).len()
        };
        assert_eq!((found("200", "200"), found("200", "404")), (0, 1));
        assert_eq!(common.failures().len(), 1);
        let mut found = |nginx: &str, edgewright: &str| {
            let (nginx, edgewright) = (
                facts(&[("status", nginx)]),
                facts(&[("status", edgewright)]),
            );
            failures(&spec, &mut common, &nginx, &edgewright).len()
        };
        assert_eq!(found("200", "403"), 0);
        assert!(common.failures().is_empty());
    }

    #[test]
    fn what_is_expected_must_hold_on_both_sides() {
        let fixed = "expect = { status = 200 }";
        assert_eq!(found(fixed, &[("status", "500")], &[("status", "500")]), 2);
        let pattern = "expect = { id = \"~ [0-9]+\" }";
        assert_eq!(found(pattern, &[("id", "12")], &[("id", "345")]), 0);
        assert_eq!(found(pattern, &[("id", "12")], &[("id", "12x")]), 1);
        let equal = "equal = [[\"a\", \"b\"]]";
        assert_eq!(
            found(equal, &[("a", "1"), ("b", "1")], &[("a", "1"), ("b", "1")]),
            0
        );
        assert_eq!(
            found(equal, &[("a", "1"), ("b", "2")], &[("a", "1"), ("b", "2")]),
            2
        );
        assert_eq!(found(equal, &[], &[]), 2);
    }
}
