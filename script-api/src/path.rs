//! The one normal form of a request path.
//!
//! Matching, scripts and the upstream all see what [`normalize`] returns, so a rule on `/admin` can't
//! be walked around by another spelling of it (CVE-2021-43557 and its kin). The form follows RFC 3986:
//! escapes of unreserved characters are decoded (6.2.2.2), hex digits of the others are upper case
//! (6.2.2.1), dot segments are resolved (5.2.4), and bytes that are no `pchar` (3.3) are escaped.
//! Spellings that servers are known to read differently are errors unless a [`PathPolicy`] keeps them.

mod double_encoding;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::str::FromStr;

/// What happens to a path that holds one of the spellings that servers read differently.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Handling {
    /// The path is an error; the request is answered with 400.
    #[default]
    Reject,
    /// The spelling stays in the path, as an ordinary part of its segment.
    Keep,
}

/// The text is neither `reject` nor `keep`.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("unknown value `{0}`: it is `reject` or `keep`")]
pub struct UnknownHandling(pub String);

impl FromStr for Handling {
    type Err = UnknownHandling;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "reject" => Ok(Handling::Reject),
            "keep" => Ok(Handling::Keep),
            _ => Err(UnknownHandling(text.to_owned())),
        }
    }
}

/// What to do with each spelling that servers read differently. The default rejects all of them.
///
/// What is kept never separates segments. A policy decides only whether a path is an error: two
/// policies that both accept a path give the same normal form.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PathPolicy {
    /// `//` anywhere in the path. When kept, the empty segment is a segment, which only `{*rest}` matches.
    pub empty_segment: Handling,
    /// `%2F`.
    pub encoded_slash: Handling,
    /// `%5C`. Also kept where [`backslash`](Self::backslash) is, since that one is written as `%5C`.
    pub encoded_backslash: Handling,
    /// `%00` (and a bare NUL byte, which only a script could bring).
    pub encoded_nul: Handling,
    /// A bare `\`. When kept it is written as `%5C`, because RFC 3986 has no bare backslash.
    pub backslash: Handling,
    /// A dot, slash or backslash escaped twice or more: `%252e`, `%25252F`, `%25%32%65`.
    pub double_encoding: Handling,
    /// `;`, with which some servers begin parameters that they leave out when they match.
    pub semicolon: Handling,
}

/// Why a path has no normal form.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PathError {
    /// The path is empty or begins with another byte than `/`.
    #[error("the path does not start with `/`")]
    NoLeadingSlash,
    /// A `%` without two hexadecimal digits after it.
    #[error("the path has a `%` that is not followed by two hexadecimal digits")]
    BadEscape,
    /// More `..` segments than segments before them.
    #[error("the path leaves the root with `..`")]
    AboveRoot,
    /// See [`PathPolicy::empty_segment`].
    #[error("the path has an empty segment (`//`)")]
    EmptySegment,
    /// See [`PathPolicy::encoded_slash`].
    #[error("the path has an encoded slash (`%2F`)")]
    EncodedSlash,
    /// See [`PathPolicy::encoded_backslash`].
    #[error("the path has an encoded backslash (`%5C`)")]
    EncodedBackslash,
    /// See [`PathPolicy::encoded_nul`].
    #[error("the path has a NUL (`%00`)")]
    EncodedNul,
    /// See [`PathPolicy::backslash`].
    #[error("the path has a backslash")]
    Backslash,
    /// See [`PathPolicy::double_encoding`].
    #[error("the path has a dot or slash that is encoded more than once (`%252E`)")]
    DoubleEncoding,
    /// See [`PathPolicy::semicolon`].
    #[error("the path has a `;` in a segment")]
    Semicolon,
}

impl PathError {
    /// A short name for metrics and logs. Where a [`PathPolicy`] can allow the path, it is the name
    /// of the policy's field.
    pub fn name(&self) -> &'static str {
        match self {
            PathError::NoLeadingSlash => "no_leading_slash",
            PathError::BadEscape => "bad_escape",
            PathError::AboveRoot => "above_root",
            PathError::EmptySegment => "empty_segment",
            PathError::EncodedSlash => "encoded_slash",
            PathError::EncodedBackslash => "encoded_backslash",
            PathError::EncodedNul => "encoded_nul",
            PathError::Backslash => "backslash",
            PathError::DoubleEncoding => "double_encoding",
            PathError::Semicolon => "semicolon",
        }
    }
}

/// Gives the normal form of `raw`, the path part of a request target (no query).
///
/// The result is ASCII, starts with `/` and has no `.` or `..` segment. A path that is normal already
/// is borrowed: one pass over its bytes, no allocation. Normalizing a result again changes nothing.
/// `?`, `#`, `[` and `]` may not stand in a path either (RFC 3986 3.3) and come out escaped.
///
/// # Errors
/// The first [`PathError`] found; double encoding is looked for last.
pub fn normalize<'a>(raw: &'a [u8], policy: &PathPolicy) -> Result<Cow<'a, str>, PathError> {
    if raw.first() != Some(&b'/') {
        return Err(PathError::NoLeadingSlash);
    }
    if is_normal(raw, policy)
        && let Ok(text) = std::str::from_utf8(raw)
    {
        return Ok(Cow::Borrowed(text));
    }
    rewrite(raw, policy).map(Cow::Owned)
}

/// What a byte of a path is to the normal form.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    /// Stays as it is.
    Plain,
    Dot,
    Slash,
    Percent,
    Semicolon,
    Backslash,
    /// May not stand in a path bare.
    Escape,
}

static CLASSES: [Class; 256] = classes();

const fn classes() -> [Class; 256] {
    let mut classes = [Class::Escape; 256];
    let mut byte = 0;
    while byte < 256 {
        classes[byte] = match byte as u8 {
            b'/' => Class::Slash,
            b'.' => Class::Dot,
            b'%' => Class::Percent,
            b';' => Class::Semicolon,
            b'\\' => Class::Backslash,
            // pchar = unreserved / pct-encoded / sub-delims / ":" / "@"
            b'!' | b'$' | b'&' | b'\'' | b'(' | b')' | b'*' | b'+' | b',' | b'=' | b':' | b'@' => {
                Class::Plain
            }
            other if is_unreserved(other) => Class::Plain,
            _ => Class::Escape,
        };
        byte += 1;
    }
    classes
}

/// RFC 3986 2.3.
const fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

/// Whether `raw`, which starts with a slash, is what [`rewrite`] would make of it. Does not say what
/// is wrong with a path that isn't.
fn is_normal(raw: &[u8], policy: &PathPolicy) -> bool {
    let mut has_encoded_percent = false;
    let mut at = 1;
    while let Some(&byte) = raw.get(at) {
        let starts_segment = raw[at - 1] == b'/';
        match CLASSES[usize::from(byte)] {
            Class::Plain => {}
            Class::Dot => {
                if starts_segment && starts_with_dot_segment(&raw[at..]) {
                    return false;
                }
            }
            Class::Slash => {
                if starts_segment && policy.empty_segment == Handling::Reject {
                    return false;
                }
            }
            Class::Percent => {
                let Some(value) = escaped_byte(raw, at) else {
                    return false;
                };
                let lower = raw[at + 1].is_ascii_lowercase() || raw[at + 2].is_ascii_lowercase();
                if lower || is_unreserved(value) || admit_escape(value, policy).is_err() {
                    return false;
                }
                has_encoded_percent |= value == b'%';
                at += 2;
            }
            Class::Semicolon => {
                if policy.semicolon == Handling::Reject {
                    return false;
                }
            }
            Class::Backslash | Class::Escape => return false,
        }
        at += 1;
    }
    !has_encoded_percent || admit_nesting(raw, policy).is_ok()
}

fn starts_with_dot_segment(rest: &[u8]) -> bool {
    matches!(
        rest,
        [b'.'] | [b'.', b'/', ..] | [b'.', b'.'] | [b'.', b'.', b'/', ..]
    )
}

/// Builds the normal form of `raw`, which starts with a slash, or says why there is none.
fn rewrite(raw: &[u8], policy: &PathPolicy) -> Result<String, PathError> {
    let mut out = String::with_capacity(raw.len() + 16);
    out.push('/');
    let mut segment = out.len();
    let mut has_encoded_percent = false;
    let mut at = 1;
    while let Some(&byte) = raw.get(at) {
        match CLASSES[usize::from(byte)] {
            Class::Plain | Class::Dot => out.push(char::from(byte)),
            Class::Slash => {
                if out.len() == segment && policy.empty_segment == Handling::Reject {
                    return Err(PathError::EmptySegment);
                }
                if !resolve_dots(&mut out, segment)? {
                    out.push('/');
                }
                segment = out.len();
            }
            Class::Percent => {
                let value = escaped_byte(raw, at).ok_or(PathError::BadEscape)?;
                if is_unreserved(value) {
                    out.push(char::from(value));
                } else {
                    push_escape(&mut out, value, policy)?;
                }
                has_encoded_percent |= value == b'%';
                at += 2;
            }
            Class::Semicolon if policy.semicolon == Handling::Reject => {
                return Err(PathError::Semicolon);
            }
            Class::Semicolon => out.push(';'),
            Class::Backslash if policy.backslash == Handling::Reject => {
                return Err(PathError::Backslash);
            }
            Class::Backslash | Class::Escape => push_escape(&mut out, byte, policy)?,
        }
        at += 1;
    }
    resolve_dots(&mut out, segment)?;
    if has_encoded_percent {
        admit_nesting(raw, policy)?;
    }
    Ok(out)
}

/// Takes the last segment, which begins at `segment`, off `out` when it is `.` or `..` (and for `..`
/// the one before). `out` then ends with a slash. Says whether it did.
fn resolve_dots(out: &mut String, segment: usize) -> Result<bool, PathError> {
    match &out[segment..] {
        "." => out.truncate(segment),
        ".." => {
            let parent = out[..segment - 1].rfind('/').ok_or(PathError::AboveRoot)?;
            out.truncate(parent + 1);
        }
        _ => return Ok(false),
    }
    Ok(true)
}

/// The byte that the escape at `at` stands for, `None` when it isn't one.
fn escaped_byte(raw: &[u8], at: usize) -> Option<u8> {
    Some(hex_value(*raw.get(at + 1)?)? << 4 | hex_value(*raw.get(at + 2)?)?)
}

fn hex_value(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        b'A'..=b'F' => Some(digit - b'A' + 10),
        _ => None,
    }
}

fn push_escape(out: &mut String, value: u8, policy: &PathPolicy) -> Result<(), PathError> {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    admit_escape(value, policy)?;
    out.push('%');
    out.push(char::from(HEX[usize::from(value >> 4)]));
    out.push(char::from(HEX[usize::from(value & 15)]));
    Ok(())
}

/// Whether the normal form may hold the escape of `value`.
fn admit_escape(value: u8, policy: &PathPolicy) -> Result<(), PathError> {
    let (error, kept) = match value {
        b'/' => (PathError::EncodedSlash, policy.encoded_slash),
        b'\\' if policy.backslash == Handling::Keep => return Ok(()),
        b'\\' => (PathError::EncodedBackslash, policy.encoded_backslash),
        0 => (PathError::EncodedNul, policy.encoded_nul),
        _ => return Ok(()),
    };
    match kept {
        Handling::Keep => Ok(()),
        Handling::Reject => Err(error),
    }
}

fn admit_nesting(raw: &[u8], policy: &PathPolicy) -> Result<(), PathError> {
    if policy.double_encoding == Handling::Reject && double_encoding::hides_separator(raw) {
        return Err(PathError::DoubleEncoding);
    }
    Ok(())
}
