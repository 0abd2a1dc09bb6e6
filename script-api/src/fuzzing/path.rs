//! The normal form of a path: is it one, and is it the one that the rules give?

use std::borrow::Cow;

use crate::path::{
    Handling::{Keep, Reject},
    PathPolicy, normalize,
};

const STRICT: PathPolicy = PathPolicy {
    empty_segment: Reject,
    encoded_slash: Reject,
    encoded_backslash: Reject,
    encoded_nul: Reject,
    backslash: Reject,
    double_encoding: Reject,
    semicolon: Reject,
};

pub(super) const KEEP_ALL: PathPolicy = PathPolicy {
    empty_segment: Keep,
    encoded_slash: Keep,
    encoded_backslash: Keep,
    encoded_nul: Keep,
    backslash: Keep,
    double_encoding: Keep,
    semicolon: Keep,
};

/// Policies that keep one thing each.
fn keep_one() -> [PathPolicy; 7] {
    let mut policies = [STRICT; 7];
    policies[0].empty_segment = Keep;
    policies[1].encoded_slash = Keep;
    policies[2].encoded_backslash = Keep;
    policies[3].encoded_nul = Keep;
    policies[4].backslash = Keep;
    policies[5].double_encoding = Keep;
    policies[6].semicolon = Keep;
    policies
}

/// The input is the path as it was sent.
pub fn path(raw: &[u8]) {
    let expected = by_segments(raw);
    let kept = normal(raw, &KEEP_ALL);
    assert_eq!(
        kept,
        expected,
        "the normal form of {:?}",
        raw.escape_ascii()
    );
    for policy in keep_one() {
        let found = normal(raw, &policy);
        assert!(found.is_none() || found == expected, "{policy:?}");
    }
    if let Some(strict) = normal(raw, &STRICT) {
        assert_eq!(Some(&strict), expected.as_ref());
        hides_nothing(&strict);
        for policy in keep_one() {
            assert_eq!(normal(raw, &policy).as_ref(), Some(&strict), "{policy:?}");
        }
    }
}

/// The normal form under a policy, which stays what it is.
fn normal(raw: &[u8], policy: &PathPolicy) -> Option<String> {
    let normal = normalize(raw, policy).ok()?.into_owned();
    let again = normalize(normal.as_bytes(), policy);
    assert_eq!(again, Ok(Cow::Borrowed(normal.as_str())), "{policy:?}");
    assert!(matches!(again, Ok(Cow::Borrowed(_))), "it is made anew");
    assert!(normal.is_ascii() && normal.starts_with('/'));
    let mut segments = normal[1..].split('/');
    assert!(!segments.any(|segment| segment == "." || segment == ".."));
    Some(normal)
}

/// However often somebody behind decodes it, no separator and no dot segment comes to light.
fn hides_nothing(strict: &str) {
    let mut decoded = strict.as_bytes().to_vec();
    loop {
        let once: Vec<u8> = percent_encoding::percent_decode(&decoded).collect();
        if once == decoded {
            break;
        }
        decoded = once;
    }
    let slashes = |text: &[u8]| text.iter().filter(|&&byte| byte == b'/').count();
    assert_eq!(slashes(&decoded), slashes(strict.as_bytes()), "{strict}");
    assert!(!decoded.contains(&b'\\'), "{strict}");
    for segment in decoded.split(|&byte| byte == b'/') {
        assert!(segment != b"." && segment != b"..", "{strict}");
    }
    assert!(!strict.contains("//") && !strict.contains(';'), "{strict}");
}

/// The normal form that keeps all, made segment by segment.
fn by_segments(raw: &[u8]) -> Option<String> {
    let below_root = raw.strip_prefix(b"/")?;
    let mut segments = Vec::new();
    let mut ends_with_dots = false;
    for segment in below_root.split(|&byte| byte == b'/') {
        let segment = spelled(segment)?;
        ends_with_dots = segment == "." || segment == "..";
        if segment == ".." {
            segments.pop()?;
        } else if segment != "." {
            segments.push(segment);
        }
    }
    if ends_with_dots {
        segments.push(String::new());
    }
    Some(format!("/{}", segments.join("/")))
}

fn spelled(segment: &[u8]) -> Option<String> {
    let mut text = String::new();
    let mut rest = segment;
    while let Some((&byte, behind)) = rest.split_first() {
        rest = behind;
        let (value, was_escaped) = if byte == b'%' {
            let digits = std::str::from_utf8(rest.get(..2)?).ok()?;
            let are_digits = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
            let value = u8::from_str_radix(digits, 16).ok().filter(|_| are_digits)?;
            rest = &rest[2..];
            (value, true)
        } else {
            (byte, false)
        };
        let is_unreserved = value.is_ascii_alphanumeric() || b"-._~".contains(&value);
        if is_unreserved || !was_escaped && b"!$&'()*+,;=:@".contains(&value) {
            text.push(char::from(value));
        } else {
            text.push_str(&format!("%{value:02X}"));
        }
    }
    Some(text)
}
