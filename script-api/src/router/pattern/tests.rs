#![allow(clippy::unwrap_used)]

use super::*;

fn pattern(text: &str) -> Pattern {
    Pattern::parse(text).unwrap()
}

/// Message, help and the marked text of the error in `text`.
fn mistake(text: &str) -> (String, String, &str) {
    let error = Pattern::parse(text).unwrap_err();
    let marked = &text[error.offset..error.offset + error.length];
    (error.message, error.help.unwrap_or_default(), marked)
}

#[test]
fn segments_names_and_text() {
    let text = "/api/{version}/x%2Fy;v=1/{*rest}";
    let parsed = pattern(text);
    assert_eq!(
        parsed.segments(),
        [
            Segment::Literal("api".into()),
            Segment::Param("version".into()),
            Segment::Literal("x%2Fy;v=1".into()),
            Segment::Rest("rest".into()),
        ]
    );
    assert_eq!(parsed.names().collect::<Vec<_>>(), ["version", "rest"]);
    assert_eq!(parsed.to_string(), text);
    assert_eq!(pattern("/").segments(), [Segment::Literal("".into())]);
    assert_eq!(pattern("/a/").segments().len(), 2);
    assert_ne!(pattern("/a"), pattern("/a/"));
    assert_eq!(Pattern::catch_all(), pattern("/{*rest}"));
}

#[test]
fn each_mistake_is_named_and_marked() {
    for (text, message, help, marked) in [
        ("api/x", "starts with `/`", "write `/api/x`", "api"),
        ("", "starts with `/`", "write `/`", ""),
        ("/a/x{b}/c", "takes a whole segment", "in a hook", "x{b}"),
        ("/{a}{b}", "takes a whole segment", "in a hook", "{a}{b}"),
        ("/a/x{b/c", "unclosed `{`", "closed by `}`", "{b"),
        ("/{a/b}", "unclosed `{`", "closed by `}`", "{a"),
        ("/a/b}/c", "`}` without a `{`", "", "}"),
        ("/}{", "`}` without a `{`", "", "}{"),
        ("/{a}/{a}", "`a` is used twice", "", "{a}"),
        ("/{a}/{*a}", "`a` is used twice", "", "{*a}"),
        ("/{}", "needs a name", "`{name}`", "{}"),
        ("/{*}", "needs a name", "`{*rest}`", "{*}"),
        ("/{1a}", "`1a` is not a name", "", "{1a}"),
        ("/{a-b}", "`a-b` is not a name", "", "{a-b}"),
        ("/{\u{e9}}", "is not a name", "", "{\u{e9}}"),
        ("/{rest...}", "is not a name", "`{*rest}`", "{rest...}"),
        (
            "/{*rest}/b",
            "must be the last segment",
            "`{rest}` takes one",
            "{*rest}",
        ),
        (
            "/{*rest}/",
            "must be the last segment",
            "`{rest}` takes one",
            "{*rest}",
        ),
        ("/a/*", "`*` is not a capture", "write `{*rest}`", "*"),
        ("/a/**", "`**` is not a capture", "write `{*rest}`", "**"),
        ("/a/*/b", "`*` is not a capture", "`{name}`", "*"),
        ("/a?b={c}", "the path only", ".if_query", "?b={c}"),
        ("/a#b", "the path only", ".if_query", "#b"),
        ("/a//b", "empty segment", "write one `/`", "//"),
        ("//", "empty segment", "write one `/`", "//"),
        ("/a/../b", "`..` does not occur", "leads to", ".."),
        ("/./b", "`.` does not occur", "leads to", "."),
        ("/%2e./b", "`%2e.` does not occur", "leads to", "%2e."),
        ("/%2E", "`%2E` does not occur", "leads to", "%2E"),
        ("/{a}?b=1", "the path only", ".if_query", "?b=1"),
        (
            "/caf\u{e9}",
            "not in the normal form",
            "write `caf%C3%A9`",
            "caf\u{e9}",
        ),
        ("/%61b", "not in the normal form", "write `ab`", "%61b"),
        ("/a%2f", "not in the normal form", "write `a%2F`", "a%2f"),
        ("/a b", "not in the normal form", "write `a%20b`", "a b"),
        ("/a\\b", "not in the normal form", "write `a%5Cb`", "a\\b"),
        ("/100%", "two hexadecimal digits", "", "100%"),
    ] {
        let mistake = mistake(text);
        assert!(mistake.0.contains(message), "{text}: {mistake:?}");
        assert!(mistake.1.contains(help), "{text}: {mistake:?}");
        assert_eq!(mistake.1.is_empty(), help.is_empty(), "{text}: {mistake:?}");
        assert_eq!(mistake.2, marked, "{text}");
    }
}

#[test]
fn captures_and_segments_are_bounded() {
    let captures = |count: usize| (0..count).map(|n| format!("/{{c{n}}}")).collect::<String>();
    assert_eq!(
        pattern(&captures(MAX_CAPTURES)).names().count(),
        MAX_CAPTURES
    );
    assert_eq!(mistake(&captures(MAX_CAPTURES + 1)).2, "{c16}");
    assert_eq!(
        pattern(&"/a".repeat(MAX_SEGMENTS)).segments().len(),
        MAX_SEGMENTS
    );
    let text = "/a".repeat(MAX_SEGMENTS) + "/b/c";
    let (message, _, marked) = mistake(&text);
    assert!(message.contains("at most 64 segments"), "{message}");
    assert_eq!(marked, "b/c");
}

#[test]
fn specificity_is_decided_from_the_left() {
    let sorted = [
        "/a",
        "/a/b/{*rest}",
        "/a/{x}/c",
        "/a/{x}/{y}",
        "/a/{*rest}",
        "/{x}/b/c",
        "/{x}/{*rest}",
        "/{*rest}",
    ];
    for (left, a) in sorted.iter().enumerate() {
        for (right, b) in sorted.iter().enumerate() {
            let order = pattern(a).cmp_specificity(&pattern(b));
            assert_eq!(order, left.cmp(&right), "{a} {b}");
        }
    }
    assert_eq!(
        pattern("/a/{x}").cmp_specificity(&pattern("/b/{y}")),
        Ordering::Equal
    );
}
