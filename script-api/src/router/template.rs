//! Targets of rewrites and redirects: `/x/{rest}?a={name}`.

#[cfg(test)]
mod tests;

use super::{Captures, PatternError};
use crate::suggest::nearest;
use std::fmt;

/// Text with places for the captures of a pattern. `{{` and `}}` stand for the braces themselves.
/// [`Display`](fmt::Display) gives the text back.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Template {
    text: Box<str>,
    parts: Box<[Part]>,
    has_query: bool,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Part {
    Text(Box<str>),
    Capture {
        index: usize,
        /// After the first `?` of the template.
        in_query: bool,
    },
}

impl Template {
    /// Reads a template. `names` are the captures that it may use, in the order in which
    /// [`Captures`] has them.
    ///
    /// # Errors
    /// A capture that isn't among `names`, a brace that is not closed or not opened, or a character that may
    /// not stand in a URI: a control, a space, or one outside ASCII. So what a template gives can't
    /// break a header line.
    pub fn parse<S: AsRef<str>>(text: &str, names: &[S]) -> Result<Template, PatternError> {
        let mut parts = Vec::new();
        let mut literal = String::new();
        let mut has_query = false;
        let mut at = 0;
        while let Some(next) = text[at..].chars().next() {
            let rest = &text[at..];
            if rest.starts_with("{{") || rest.starts_with("}}") {
                literal.push(next);
                at += 2;
            } else if next == '{' {
                let Some(close) = rest.find('}') else {
                    return Err(PatternError::new(at..text.len(), "unclosed `{`")
                        .help("write `{{` for a brace that is not a capture"));
                };
                let span = at..at + close + 1;
                let index = find_name(&rest[1..close], names, span)?;
                if !literal.is_empty() {
                    parts.push(Part::Text(std::mem::take(&mut literal).into()));
                }
                parts.push(Part::Capture {
                    index,
                    in_query: has_query,
                });
                at += close + 1;
            } else if next == '}' {
                return Err(PatternError::new(at..at + 1, "`}` without a `{` before it")
                    .help("write `}}` for a brace that is not a capture"));
            } else if !next.is_ascii_graphic() {
                let mut utf8 = [0; 4];
                let bytes = next.encode_utf8(&mut utf8).as_bytes();
                let escaped =
                    percent_encoding::percent_encode(bytes, percent_encoding::NON_ALPHANUMERIC);
                let span = at..at + bytes.len();
                return Err(
                    PatternError::new(span, format!("{next:?} may not stand in a URI"))
                        .help(format!("write `{escaped}`")),
                );
            } else {
                has_query |= next == '?';
                literal.push(next);
                at += 1;
            }
        }
        if !literal.is_empty() {
            parts.push(Part::Text(literal.into()));
        }
        Ok(Template {
            text: text.into(),
            parts: parts.into(),
            has_query,
        })
    }

    /// Appends the text to `out`, with the captures percent-encoded as they stand in `path`, the path that
    /// `captures` were made from.
    ///
    /// After the template's `?`, the characters `& + ; =` of a capture are percent-encoded as
    /// well: they are plain text in a path and have a meaning in a query, and a client must not be
    /// able to add parameters of its own.
    pub fn render(&self, path: &str, captures: &Captures, out: &mut String) {
        for part in &self.parts {
            match *part {
                Part::Text(ref text) => out.push_str(text),
                Part::Capture { index, in_query } => {
                    let value = captures.get(path, index).unwrap_or_default();
                    if in_query {
                        push_into_query(value, out);
                    } else {
                        out.push_str(value);
                    }
                }
            }
        }
    }

    /// Whether it gives the same text for each request.
    pub fn is_constant(&self) -> bool {
        !self
            .parts
            .iter()
            .any(|part| matches!(part, Part::Capture { .. }))
    }

    /// Whether it has a `?`, and so brings a query of its own. A capture never brings one.
    pub fn has_query(&self) -> bool {
        self.has_query
    }
}

impl fmt::Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

pub(super) fn push_into_query(value: &str, out: &mut String) {
    for character in value.chars() {
        match character {
            '&' => out.push_str("%26"),
            '+' => out.push_str("%2B"),
            ';' => out.push_str("%3B"),
            '=' => out.push_str("%3D"),
            other => out.push(other),
        }
    }
}

fn find_name<S: AsRef<str>>(
    name: &str,
    names: &[S],
    span: std::ops::Range<usize>,
) -> Result<usize, PatternError> {
    if let Some(index) = names.iter().position(|known| known.as_ref() == name) {
        return Ok(index);
    }
    let known: Vec<String> = names
        .iter()
        .map(|known| format!("`{}`", known.as_ref()))
        .collect();
    let message = if known.is_empty() {
        format!("unknown capture `{name}`: the pattern has none")
    } else {
        format!(
            "unknown capture `{name}`: the pattern has {}",
            known.join(", ")
        )
    };
    let error = PatternError::new(span, message);
    Err(match meant(name, names) {
        Some(known) => error.help(format!("did you mean `{{{known}}}`?")),
        None => error,
    })
}

/// The name that `name` was most likely meant to be. `{*rest}` is written `{rest}` here.
fn meant<'n, S: AsRef<str>>(name: &str, names: &'n [S]) -> Option<&'n str> {
    let name = name.trim_start_matches('*');
    let mut known = names.iter().map(AsRef::as_ref);
    known
        .clone()
        .find(|known| *known == name)
        .or_else(|| nearest(name, &mut known))
}
