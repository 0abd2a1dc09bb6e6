#![allow(clippy::unwrap_used)]

use super::*;
use crate::router::MAX_SEGMENTS;
use proptest::prelude::*;

fn patterns(texts: &[&str]) -> Vec<Pattern> {
    texts
        .iter()
        .map(|text| Pattern::parse(text).unwrap())
        .collect()
}

/// All routes that fit, in the order of the visit, with their captures.
fn all(router: &PathRouter, path: &str) -> Vec<(u32, Vec<String>)> {
    let mut found = Vec::new();
    let stopped: Option<()> = router.visit(path, |routes, captures| {
        let texts = |n| captures.get(path, n).unwrap().to_owned();
        let captured: Vec<String> = (0..captures.len()).map(texts).collect();
        found.extend(routes.iter().map(|route| (*route, captured.clone())));
        ControlFlow::Continue(())
    });
    assert_eq!(stopped, None);
    found
}

fn fits(pattern: &str, path: &str) -> Option<Vec<String>> {
    let router = PathRouter::build(patterns(&[pattern]));
    all(&router, path).pop().map(|(_, captures)| captures)
}

#[test]
fn which_paths_a_pattern_fits() {
    for (pattern, path, captures) in [
        ("/", "/", Some(vec![])),
        ("/", "/a", None),
        ("/a", "/a", Some(vec![])),
        ("/a", "/a/", None),
        ("/a", "/A", None),
        ("/a/", "/a/", Some(vec![])),
        ("/a/", "/a", None),
        ("/a/", "/a/b", None),
        ("/{x}", "/", None),
        ("/{x}", "/a", Some(vec!["a"])),
        ("/{x}", "/a/", None),
        ("/a/{x}", "/a/", None),
        ("/a/{x}/b", "/a//b", None),
        ("/a/{*rest}", "/a", Some(vec![""])),
        ("/a/{*rest}", "/a/", Some(vec![""])),
        ("/a/{*rest}", "/a/b/c/", Some(vec!["b/c/"])),
        ("/a/{*rest}", "/a//b", Some(vec!["/b"])),
        ("/a/{*rest}", "/ab", None),
        ("/{*rest}", "/", Some(vec![""])),
        ("/{*rest}", "/ip%0AVega", Some(vec!["ip%0AVega"])),
        ("/{x}/{*rest}", "/", None),
        ("/{x}/{*rest}", "/a", Some(vec!["a", ""])),
        ("/{*rest}", "*", None),
        ("/{*rest}", "", None),
    ] {
        let expected = captures.map(|texts| texts.into_iter().map(str::to_owned).collect());
        assert_eq!(fits(pattern, path), expected, "{pattern} {path}");
    }
}

#[test]
fn goes_on_from_the_most_specific_to_the_least() {
    let router = PathRouter::build(patterns(&[
        "/{*all}",
        "/{x}/b",
        "/a/{*rest}",
        "/a/{y}",
        "/a/b",
        "/a/{z}",
        "/a/b/{*rest}",
        "/a/c",
    ]));
    let owned = |texts: &[&str]| {
        texts
            .iter()
            .map(|text| text.to_string())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        all(&router, "/a/b"),
        [
            (4, vec![]),
            (6, owned(&[""])),
            (3, owned(&["b"])),
            (5, owned(&["b"])),
            (2, owned(&["b"])),
            (1, owned(&["a"])),
            (0, owned(&["a/b"])),
        ]
    );
}

#[test]
fn stops_where_it_is_told_to() {
    let router = PathRouter::build(patterns(&["/a", "/{x}", "/{*rest}", "/{y}"]));
    let mut seen = Vec::new();
    let answer = router.visit("/a", |routes, captures| {
        seen.push(routes.to_vec());
        match captures.is_empty() {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(captures.get("/a", 0).unwrap().to_owned()),
        }
    });
    assert_eq!(answer.as_deref(), Some("a"));
    assert_eq!(seen, [vec![0], vec![1, 3]]);
}

#[test]
fn an_empty_router_fits_nothing() {
    let router = PathRouter::build::<Pattern>([]);
    assert_eq!(all(&router, "/a"), []);
}

#[test]
fn the_deepest_pattern_and_a_longer_path() {
    let deep = "/a".repeat(MAX_SEGMENTS - 1) + "/{*rest}";
    let router = PathRouter::build(patterns(&[&deep]));
    let path = "/a".repeat(100_000);
    let rest = path[2 * (MAX_SEGMENTS - 1) + 1..].to_owned();
    assert_eq!(all(&router, &path), [(0, vec![rest])]);
}

#[test]
fn each_of_many_routes_is_found() {
    let texts: Vec<String> = (0..100_000).map(|n| format!("/api/s{n}/{{id}}")).collect();
    let router = PathRouter::build(texts.iter().map(|text| Pattern::parse(text).unwrap()));
    for n in (0..100_000).step_by(997) {
        let path = format!("/api/s{n}/7");
        assert_eq!(all(&router, &path), [(n, vec!["7".to_owned()])]);
    }
    assert_eq!(all(&router, "/api/s100000/7"), []);
}

/// The rule as it is written down: what is left of the pattern against what is left of the path.
fn naive(pattern: &[Segment], path: Option<&str>) -> Option<Vec<String>> {
    let Some(first) = pattern.first() else {
        return path.is_none().then(Vec::new);
    };
    if let Segment::Rest(_) = first {
        return Some(vec![path.unwrap_or_default().to_owned()]);
    }
    let (segment, after) = match path?.split_once('/') {
        Some((segment, after)) => (segment, Some(after)),
        None => (path?, None),
    };
    let mut captures = naive(&pattern[1..], after)?;
    match first {
        Segment::Literal(text) => (**text == *segment).then_some(captures),
        _ if segment.is_empty() => None,
        _ => {
            captures.insert(0, segment.to_owned());
            Some(captures)
        }
    }
}

fn pattern_texts() -> impl Strategy<Value = String> {
    let segment = prop::sample::select(vec!["a", "a", "b", "{}", "{}"]);
    let end = prop::sample::select(vec!["", "", "/", "/{*rest}"]);
    (prop::collection::vec(segment, 0..5), end).prop_map(|(segments, end)| {
        let named = segments
            .iter()
            .enumerate()
            .map(|(n, segment)| match *segment {
                "{}" => format!("/{{p{n}}}"),
                literal => format!("/{literal}"),
            });
        let text = named.collect::<String>() + end;
        if text.is_empty() {
            "/".to_owned()
        } else {
            text
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn as_a_naive_matcher_and_a_sort(
        texts in prop::collection::vec(pattern_texts(), 0..30),
        paths in prop::collection::vec("(/(a|b|c|)){1,6}", 1..8),
    ) {
        let patterns: Vec<Pattern> =
            texts.iter().map(|text| Pattern::parse(text).unwrap()).collect();
        let router = PathRouter::build(&patterns);
        for path in paths {
            let mut expected: Vec<(u32, Vec<String>)> = (0..)
                .zip(&patterns)
                .filter_map(|(n, pattern)| Some((n, naive(pattern.segments(), path.strip_prefix('/'))?)))
                .collect();
            // A stable sort: equal ones stay in the order of their index.
            expected.sort_by(|(a, _), (b, _)| patterns[*a as usize].cmp_specificity(&patterns[*b as usize]));
            prop_assert_eq!(all(&router, &path), expected, "{:?} {}", texts, path);
        }
    }
}
