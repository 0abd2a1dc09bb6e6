#![allow(clippy::unwrap_used)]

use super::*;
use proptest::prelude::*;

const STRICT: PathPolicy = PathPolicy {
    empty_segment: Handling::Reject,
    encoded_slash: Handling::Reject,
    encoded_backslash: Handling::Reject,
    encoded_nul: Handling::Reject,
    backslash: Handling::Reject,
    double_encoding: Handling::Reject,
    semicolon: Handling::Reject,
};
const LAX: PathPolicy = PathPolicy {
    empty_segment: Handling::Keep,
    encoded_slash: Handling::Keep,
    encoded_backslash: Handling::Keep,
    encoded_nul: Handling::Keep,
    backslash: Handling::Keep,
    double_encoding: Handling::Keep,
    semicolon: Handling::Keep,
};

fn strict(raw: &str) -> Result<String, PathError> {
    normalize(raw.as_bytes(), &STRICT).map(Cow::into_owned)
}

fn lax(raw: &str) -> Result<String, PathError> {
    normalize(raw.as_bytes(), &LAX).map(Cow::into_owned)
}

#[test]
fn the_default_policy_rejects() {
    assert_eq!(PathPolicy::default(), STRICT);
}

#[test]
fn normal_paths_are_borrowed() {
    for path in [
        "/",
        "/a",
        "/a/",
        "/a.b/..c/...",
        "/%0A",
        "/ip%0AVega",
        "/a%3Bb%25",
        "/%25zz%2541",
        "/!$&'()*+,=:@-._~",
    ] {
        let normal = normalize(path.as_bytes(), &STRICT).unwrap();
        assert!(matches!(normal, Cow::Borrowed(_)), "{path}");
        assert_eq!(normal, path);
    }
    for path in ["//a//", "/a%2Fb%5C%00;x/%252e"] {
        let normal = normalize(path.as_bytes(), &LAX).unwrap();
        assert!(matches!(normal, Cow::Borrowed(_)), "{path}");
        assert_eq!(normal, path);
    }
}

#[test]
fn spellings_of_one_path_have_one_form() {
    for (raw, normal) in [
        ("/%61dmin", "/admin"),
        ("/a/../admin", "/admin"),
        ("/./admin", "/admin"),
        ("/%2e/admin", "/admin"),
        ("/a/%2E%2e/admin", "/admin"),
        ("/a/.%2e/admin", "/admin"),
        ("/a/b/../../admin", "/admin"),
        ("/%7euser", "/~user"),
        ("/a%3ab%c3%a9", "/a%3Ab%C3%A9"),
        ("/caf\u{e9}", "/caf%C3%A9"),
        ("/a b\"<>^`{|}\n", "/a%20b%22%3C%3E%5E%60%7B%7C%7D%0A"),
        ("/a?b#c[d]", "/a%3Fb%23c%5Bd%5D"),
        // RFC 3986 5.2.4: a dot segment at the end leaves a slash.
        ("/a/.", "/a/"),
        ("/a/b/..", "/a/"),
        ("/a/..", "/"),
        ("/a/b/../", "/a/"),
        ("/.", "/"),
        ("/./", "/"),
    ] {
        assert_eq!(strict(raw).as_deref(), Ok(normal), "{raw}");
    }
}

#[test]
fn bad_paths_are_errors() {
    use PathError::*;
    for (raw, error) in [
        ("", NoLeadingSlash),
        ("a", NoLeadingSlash),
        ("*", NoLeadingSlash),
        ("/%", BadEscape),
        ("/%4", BadEscape),
        ("/%4g", BadEscape),
        ("/%%32%65", BadEscape),
        ("/..", AboveRoot),
        ("/a/../..", AboveRoot),
        ("/%2e%2e/a", AboveRoot),
        ("//", EmptySegment),
        ("//admin", EmptySegment),
        ("/a//b", EmptySegment),
        ("/a//", EmptySegment),
        ("/a//../b", EmptySegment),
        ("/.//b", EmptySegment),
        ("/admin%2f", EncodedSlash),
        ("/a/..%2Fadmin", EncodedSlash),
        ("/a%5cb", EncodedBackslash),
        ("/a%00", EncodedNul),
        ("/a\0", EncodedNul),
        ("/a\\b", Backslash),
        ("/admin;x", Semicolon),
        ("/%252e%252e/admin", DoubleEncoding),
        ("/%252F", DoubleEncoding),
        ("/%255c", DoubleEncoding),
        ("/%25252e", DoubleEncoding),
        ("/%25%32%65", DoubleEncoding),
        ("/%252%45", DoubleEncoding),
        ("/%25%2532%2565", DoubleEncoding),
        ("/%252e/../b", DoubleEncoding),
    ] {
        assert_eq!(strict(raw), Err(error), "{raw}");
    }
}

#[test]
fn what_is_kept_stays_in_its_segment() {
    for (raw, normal) in [
        ("/a%2f..%2fb/c", "/a%2F..%2Fb/c"),
        ("/a\\..\\b", "/a%5C..%5Cb"),
        ("/a%5c", "/a%5C"),
        ("/a\0", "/a%00"),
        ("/a;b=/../c", "/c"),
        ("/a/%252e", "/a/%252e"),
        ("/a//b", "/a//b"),
        ("/a//../b", "/a/b"),
    ] {
        assert_eq!(lax(raw).as_deref(), Ok(normal), "{raw}");
    }
    assert_eq!(lax("/%zz"), Err(PathError::BadEscape));
    assert_eq!(lax("/a/../.."), Err(PathError::AboveRoot));
}

#[test]
fn each_policy_field_keeps_its_own_spelling_only() {
    let keep = Handling::Keep;
    let policies: [(PathPolicy, &[PathError]); 7] = [
        (
            PathPolicy {
                empty_segment: keep,
                ..STRICT
            },
            &[PathError::EmptySegment],
        ),
        (
            PathPolicy {
                encoded_slash: keep,
                ..STRICT
            },
            &[PathError::EncodedSlash],
        ),
        (
            PathPolicy {
                encoded_backslash: keep,
                ..STRICT
            },
            &[PathError::EncodedBackslash],
        ),
        (
            PathPolicy {
                encoded_nul: keep,
                ..STRICT
            },
            &[PathError::EncodedNul],
        ),
        // A kept backslash is written as %5C, which therefore has to be fine as well.
        (
            PathPolicy {
                backslash: keep,
                ..STRICT
            },
            &[PathError::Backslash, PathError::EncodedBackslash],
        ),
        (
            PathPolicy {
                double_encoding: keep,
                ..STRICT
            },
            &[PathError::DoubleEncoding],
        ),
        (
            PathPolicy {
                semicolon: keep,
                ..STRICT
            },
            &[PathError::Semicolon],
        ),
    ];
    for (policy, kept) in policies {
        for raw in [
            "/a//b", "/a%2Fb", "/a%5Cb", "/a%00b", "/a\\b", "/%252E", "/a;b",
        ] {
            let error = normalize(raw.as_bytes(), &STRICT).unwrap_err();
            let result = normalize(raw.as_bytes(), &policy);
            assert_eq!(result.is_ok(), kept.contains(&error), "{policy:?} {raw}");
        }
    }
}

#[test]
fn names_of_errors_are_names_of_policy_fields() {
    let fields = format!("{STRICT:?}");
    for raw in [
        "/a//b", "/a%2Fb", "/a%5Cb", "/a%00b", "/a\\b", "/%252E", "/a;b",
    ] {
        let error = normalize(raw.as_bytes(), &STRICT).unwrap_err();
        assert!(fields.contains(&format!("{}:", error.name())), "{error:?}");
    }
}

#[test]
fn handling_is_read_from_its_name() {
    assert_eq!("keep".parse(), Ok(Handling::Keep));
    assert_eq!("reject".parse(), Ok(Handling::Reject));
    let error = "allow".parse::<Handling>().unwrap_err();
    assert_eq!(
        error.to_string(),
        "unknown value `allow`: it is `reject` or `keep`"
    );
}

/// Long runs of nested escapes must not take quadratic time or deep recursion.
#[test]
fn deep_nesting_is_linear() {
    let deep = format!("/%{}2e", "25".repeat(500_000));
    assert_eq!(strict(&deep), Err(PathError::DoubleEncoding));
    let wide = format!("/{}", "%25".repeat(500_000));
    assert_eq!(strict(&wide).as_deref(), Ok(wide.as_str()));
}

/// Mostly pieces that mean something to the normal form, and some arbitrary bytes.
fn paths() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        8 => prop::sample::select(vec![
            "/", "/", "/", ".", "..", "/..", "/.", "%2e", "%2E", "%25", "%32", "%65", "2", "e", "2e",
            "2f", "5c", "25", "%2f", "%5C", "%00", "\\", "\0", ";", "a", "B", "%41", "%7e", "%0a",
            "%3b", "%c3", "%", "%z", " ", "?", "{", "\u{e9}",
        ]).prop_map(|text| text.as_bytes().to_vec()),
        1 => prop::collection::vec(any::<u8>(), 0..3),
    ];
    prop::collection::vec(piece, 0..16).prop_map(|pieces| {
        let mut path = b"/".to_vec();
        path.extend(pieces.concat());
        path
    })
}

fn policies() -> impl Strategy<Value = PathPolicy> {
    let handling = || {
        any::<bool>().prop_map(|keep| {
            if keep {
                Handling::Keep
            } else {
                Handling::Reject
            }
        })
    };
    let seven = (
        handling(),
        handling(),
        handling(),
        handling(),
        handling(),
        handling(),
        handling(),
    );
    let mixed = seven.prop_map(|(a, b, c, d, e, f, g)| PathPolicy {
        empty_segment: a,
        encoded_slash: b,
        encoded_backslash: c,
        encoded_nul: d,
        backslash: e,
        double_encoding: f,
        semicolon: g,
    });
    prop_oneof![Just(STRICT), Just(LAX), mixed]
}

/// Decodes until nothing changes, telling whether any round but the first brought a separator to light.
fn naive_hides_separator(path: &[u8]) -> bool {
    let count = |text: &[u8]| text.iter().filter(|byte| b"./\\".contains(byte)).count();
    let mut text: Vec<u8> = percent_encoding::percent_decode(path).collect();
    loop {
        let next: Vec<u8> = percent_encoding::percent_decode(&text).collect();
        if count(&next) > count(&text) {
            return true;
        }
        if next == text {
            return false;
        }
        text = next;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn any_bytes_are_safe(raw in prop::collection::vec(any::<u8>(), 0..64), policy in policies()) {
        if let Ok(normal) = normalize(&raw, &policy) {
            prop_assert!(normal.starts_with('/'));
        }
    }

    #[test]
    fn the_normal_form_is_normal(raw in paths(), policy in policies()) {
        if let Ok(normal) = normalize(&raw, &policy) {
            prop_assert!(normal.starts_with('/') && normal.is_ascii());
            prop_assert!(normal.split('/').all(|segment| segment != "." && segment != ".."));
            let again = normalize(normal.as_bytes(), &policy);
            prop_assert!(matches!(again, Ok(Cow::Borrowed(_))), "{:?}", again);
            prop_assert_eq!(again, Ok(Cow::Borrowed(&*normal)));
        }
    }

    /// The quick scan and the full one agree, so that "borrowed" never hides an error.
    #[test]
    fn the_scan_agrees_with_the_rewrite(raw in paths(), policy in policies()) {
        let rewritten = rewrite(&raw, &policy);
        let same = rewritten.as_ref().is_ok_and(|normal| normal.as_bytes() == raw);
        prop_assert_eq!(is_normal(&raw, &policy), same);
    }

    /// A stricter policy refuses more, but never gives another form.
    #[test]
    fn a_policy_only_accepts_or_refuses(raw in paths(), policy in policies()) {
        if let Ok(normal) = normalize(&raw, &policy) {
            prop_assert_eq!(normalize(&raw, &LAX), Ok(normal));
        }
    }

    /// Where no segment is resolved away, the decoded bytes are the client's.
    #[test]
    fn the_meaning_stays(raw in paths()) {
        let decode = |path: &[u8]| percent_encoding::percent_decode(path).collect::<Vec<u8>>();
        let is_dots = |segment: &[u8]| matches!(decode(segment).as_slice(), b"." | b"..");
        if let Ok(normal) = normalize(&raw, &LAX)
            && !raw.split(|byte| *byte == b'/').any(is_dots)
        {
            prop_assert_eq!(decode(&raw), decode(normal.as_bytes()));
        }
    }

    #[test]
    fn double_encoding_is_found_as_by_repeated_decoding(raw in paths()) {
        // Only of paths whose escapes are well formed is the question asked.
        if rewrite(&raw, &LAX).is_ok() {
            prop_assert_eq!(double_encoding::hides_separator(&raw), naive_hides_separator(&raw));
        }
    }
}
