//! Blanking parts of a file's text without moving anything else.

use std::ops::Range;

use rhai::Position;

use super::{
    file::ParsedFile,
    words::{Blank, Word},
};
use crate::diagnostic::Diagnostic;

/// The text of `file` with spaces in the place of `blanks`, as many characters as before in each
/// line.
///
/// # Errors
/// When a place can't be found in the text.
pub(super) fn blank(file: &ParsedFile, blanks: &[Blank]) -> Result<String, Diagnostic> {
    let text = Text::of(&file.text);
    let mut ranges = Vec::new();
    for blank in blanks {
        let found = match blank {
            Blank::Import(at, end) => text.import(*at, *end),
            Blank::Behind(first, last) => text.behind(first, last),
        };
        let at = match blank {
            Blank::Import(at, _) => *at,
            Blank::Behind(first, _) => first.at,
        };
        ranges.push(found.ok_or_else(|| {
            let error = file.error(at, 1, "this can't be told apart from the text before it");
            error.help("put it on a line of its own")
        })?);
    }
    ranges.sort_by_key(|range| range.start);
    let mut blanked = String::with_capacity(file.text.len());
    let mut done = 0;
    for range in ranges {
        blanked.push_str(&file.text[done..range.start]);
        let inside = file.text[range.clone()].chars();
        blanked.extend(inside.map(|c| if c.is_whitespace() { c } else { ' ' }));
        done = range.end;
    }
    blanked.push_str(&file.text[done..]);
    Ok(blanked)
}

struct Text<'a> {
    text: &'a str,
    /// Where each line begins, in bytes.
    lines: Vec<usize>,
}

impl<'a> Text<'a> {
    fn of(text: &'a str) -> Self {
        let ends = memchr::memchr_iter(b'\n', text.as_bytes());
        Self {
            text,
            lines: std::iter::once(0).chain(ends.map(|end| end + 1)).collect(),
        }
    }

    fn import(&self, at: Position, end: Option<Position>) -> Option<Range<usize>> {
        let begin = self.find(at, "import")?;
        let end = match end {
            Some(end) => self.find(end, ";")?,
            None => self.text.len(),
        };
        (begin <= end).then_some(begin..end)
    }

    fn behind(&self, first: &Word, last: &Word) -> Option<Range<usize>> {
        let begin = self.find(first.at, &first.text)? + first.text.len();
        let end = self.find(last.at, &last.text)? + last.text.len();
        (begin <= end).then_some(begin..end)
    }

    /// Where `word` stands whose place is `at`, in bytes. Rhai counts `\$` in a text between
    /// backticks as one character, so what stands behind it in that line is a little further to
    /// the right.
    fn find(&self, at: Position, word: &str) -> Option<usize> {
        let start = *self.lines.get(at.line()? - 1)?;
        let line = self.text[start..].split('\n').next()?;
        let (place, _) = line.char_indices().nth(at.position()? - 1)?;
        let uncounted = line.matches("\\$").count();
        let candidates = line[place..].char_indices().take(uncounted + 1);
        let mut candidates = candidates.map(|(offset, _)| place + offset);
        let found = candidates.find(|offset| is_word(line, *offset, word))?;
        Some(start + found)
    }
}

/// Whether `word` stands at `offset` of `line`, and is no part of a longer one.
fn is_word(line: &str, offset: usize, word: &str) -> bool {
    let is_inside = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let joins = |outside: Option<char>, inside: Option<char>| {
        outside.is_some_and(is_inside) && inside.is_some_and(is_inside)
    };
    line[offset..].strip_prefix(word).is_some_and(|behind| {
        let before = line[..offset].chars().next_back();
        !joins(before, word.chars().next())
            && !joins(behind.chars().next(), word.chars().next_back())
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn word(text: &str, line: u16, column: u16) -> Word {
        Word {
            text: text.to_owned(),
            at: Position::new(line, column),
        }
    }

    #[test]
    fn words_are_found_by_characters() {
        let text = Text::of("é a\nab a;\n");
        assert_eq!(text.find(Position::new(1, 3), "a"), Some(3));
        assert_eq!(text.find(Position::new(2, 4), "a"), Some(8));
        assert_eq!(text.find(Position::new(2, 1), "a"), None);
        assert_eq!(text.find(Position::new(2, 9), "a"), None);
        assert_eq!(text.find(Position::new(9, 1), "a"), None);
    }

    #[test]
    fn escapes_that_are_not_counted() {
        let line = r"`\${x} \$y ${a::b}`";
        let text = Text::of(line);
        // The two backslashes are missing in the place of `a`.
        let place = u16::try_from(line.find("a::").unwrap() + 1 - 2).unwrap();
        let found = text.behind(&word("a", 1, place), &word("b", 1, place + 3));
        let found = found.unwrap();
        assert_eq!(&line[found.clone()], "::b");
    }

    #[test]
    fn an_import_may_stand_in_several_lines() {
        let source = "1; import \"a\"\n  as a /* é */ ; b";
        let text = Text::of(source);
        let end = Some(Position::new(2, 16));
        let found = text.import(Position::new(1, 4), end).unwrap();
        assert_eq!(&source[found], "import \"a\"\n  as a /* é */ ");
    }
}
