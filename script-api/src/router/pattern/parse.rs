//! Reads the text of a pattern, with a helpful error for each mistake.

use super::{MAX_CAPTURES, MAX_SEGMENTS, Segment};
use crate::path::{Handling, PathError, PathPolicy, normalize};
use crate::router::PatternError;

/// What a literal may hold. A policy can only refuse requests with it, so a pattern may always name it;
/// an empty segment alone has no place in a pattern.
const LITERALS: PathPolicy = PathPolicy {
    empty_segment: Handling::Reject,
    encoded_slash: Handling::Keep,
    encoded_backslash: Handling::Keep,
    encoded_nul: Handling::Keep,
    backslash: Handling::Keep,
    double_encoding: Handling::Keep,
    semicolon: Handling::Keep,
};

/// One segment's text and where it stands.
#[derive(Clone, Copy)]
struct Part<'a> {
    text: &'a str,
    offset: usize,
    last: bool,
}

impl Part<'_> {
    fn error(&self, message: impl Into<String>) -> PatternError {
        PatternError::new(self.offset..self.offset + self.text.len(), message)
    }

    /// An error about the bytes from `from` on in this part.
    fn error_from(&self, from: usize, message: impl Into<String>) -> PatternError {
        PatternError::new(self.offset + from..self.offset + self.text.len(), message)
    }
}

pub(super) fn segments(text: &str) -> Result<Vec<Segment>, PatternError> {
    let Some(below_root) = text.strip_prefix('/') else {
        let first = text.split('/').next().unwrap_or_default();
        return Err(
            PatternError::new(0..first.len(), "a pattern starts with `/`")
                .help(format!("write `/{text}`")),
        );
    };
    let mut segments: Vec<Segment> = Vec::new();
    let mut names: Vec<&str> = Vec::new();
    let mut offset = 1;
    for text_of_part in below_root.split('/') {
        let part = Part {
            text: text_of_part,
            offset,
            last: offset + text_of_part.len() == text.len(),
        };
        if segments.len() == MAX_SEGMENTS {
            let message = format!("a pattern has at most {MAX_SEGMENTS} segments");
            return Err(PatternError::new(offset..text.len(), message));
        }
        if let Some(at) = part.text.find(['?', '#']) {
            return Err(part
                .error_from(at, "a pattern is compared with the path only")
                .help("use `.if_query` for a condition on the query"));
        }
        if let Some(name) = capture_name(part)? {
            if names.contains(&name) {
                return Err(part.error(format!("the name `{name}` is used twice")));
            }
            if names.len() == MAX_CAPTURES {
                return Err(part.error(format!("a pattern has at most {MAX_CAPTURES} captures")));
            }
            names.push(name);
            segments.push(if part.text.starts_with("{*") {
                Segment::Rest(name.into())
            } else {
                Segment::Param(name.into())
            });
        } else {
            check_literal(part)?;
            segments.push(Segment::Literal(part.text.into()));
        }
        offset += part.text.len() + 1;
    }
    Ok(segments)
}

/// The name in a segment that is a capture, `None` for a literal.
fn capture_name(part: Part<'_>) -> Result<Option<&str>, PatternError> {
    if !part.text.contains(['{', '}']) {
        return Ok(None);
    }
    let inner = part
        .text
        .strip_prefix('{')
        .and_then(|rest| rest.strip_suffix('}'))
        .filter(|inner| !inner.contains(['{', '}']))
        .ok_or_else(|| stray_brace(part))?;
    let (name, rest) = match inner.strip_prefix('*') {
        Some(name) => (name, true),
        None => (inner, false),
    };
    if name.is_empty() {
        let example = if rest { "{*rest}" } else { "{name}" };
        return Err(part
            .error("a capture needs a name")
            .help(format!("for example `{example}`")));
    }
    if !is_identifier(name) {
        let error = part.error(format!(
            "`{name}` is not a name: a name has ASCII letters, digits and `_`, and starts with no digit"
        ));
        let without_dots = name.trim_end_matches(['*', '.']);
        return Err(
            if name.ends_with(['*', '.']) && is_identifier(without_dots) {
                error.help(format!(
                    "for the rest of the path write `{{*{without_dots}}}`"
                ))
            } else {
                error
            },
        );
    }
    if rest && !part.last {
        return Err(part
            .error(format!(
                "`{{*{name}}}` takes the rest of the path, so it must be the last segment"
            ))
            .help(format!("`{{{name}}}` takes one segment")));
    }
    Ok(Some(name))
}

fn is_identifier(name: &str) -> bool {
    !name.starts_with(|first: char| first.is_ascii_digit())
        && !name.is_empty()
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Says what is wrong with a segment that has braces and is not `{..}` as a whole.
fn stray_brace(part: Part<'_>) -> PatternError {
    let opened = part.text.find('{');
    let closed = part.text.find('}');
    match (opened, closed) {
        (Some(open), None) => part
            .error_from(open, "unclosed `{`")
            .help("a capture is closed by `}` before the next `/`"),
        (None, Some(close)) => part.error_from(close, "`}` without a `{` before it"),
        (Some(open), Some(close)) if close < open => {
            part.error_from(close, "`}` without a `{` before it")
        }
        _ => part
            .error("a capture takes a whole segment, without other text beside it")
            .help("capture the segment, and take it apart in a hook or with `rewrite_regex`"),
    }
}

fn check_literal(part: Part<'_>) -> Result<(), PatternError> {
    let text = part.text;
    if text == "*" || text == "**" {
        let error = part.error(format!("`{text}` is not a capture"));
        return Err(error.help(if part.last {
            "for the rest of the path write `{*rest}`"
        } else {
            "for one segment write `{name}`, for the rest of the path `{*rest}` at the end"
        }));
    }
    if text.is_empty() && !part.last {
        return Err(PatternError::new(
            part.offset - 1..part.offset + 1,
            "empty segment: `//` does not occur in a normal path",
        )
        .help("write one `/`"));
    }
    let path = format!("/{text}");
    match normalize(path.as_bytes(), &LITERALS) {
        Ok(normal) if normal == path => Ok(()),
        // `.` and `..`, also where they are written with escapes.
        Ok(normal) if normal == "/" => Err(dot_segment(part)),
        Err(PathError::AboveRoot) => Err(dot_segment(part)),
        Ok(normal) => Err(part
            .error(format!(
                "`{text}` is not in the normal form of a path, so it would never match"
            ))
            .help(format!("write `{}`", &normal[1..]))),
        Err(error) => Err(part.error(error.to_string())),
    }
}

fn dot_segment(part: Part<'_>) -> PatternError {
    part.error(format!("`{}` does not occur in a normal path", part.text))
        .help("write the path that it leads to")
}
