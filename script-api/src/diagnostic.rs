//! Findings about a user's files, and how they are shown.
//!
//! A finding has two forms: [`Diagnostic::summary`] is one line for logs and
//! metrics, [`Diagnostic::render`] shows the source line with a caret for a
//! person at a terminal.

use std::borrow::Cow;
use std::fmt;

use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// The program can't be loaded.
    Error,
    /// The program loads, but probably not as its author meant.
    Warning,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
        })
    }
}

/// A stretch of text in a user's file, on one line.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Place {
    /// The file as the user wrote it, such as `routes.rhai`.
    pub file: String,
    /// 1-based.
    pub line: usize,
    /// 1-based, in characters (a tab is one).
    pub column: usize,
    /// Characters to underline, at least 1.
    pub length: usize,
}

impl Place {
    /// The line as one who reads `file` calls it: `line 3`, or `line 3 of auth.rhai`.
    #[must_use]
    pub fn line_for(&self, file: &str) -> String {
        if self.file == file {
            format!("line {}", self.line)
        } else {
            format!("line {} of {}", self.line, self.file)
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

/// One finding about a user's file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// Whether it stops the program from being loaded.
    pub severity: Severity,
    /// What is wrong, lower case, no trailing dot.
    pub message: String,
    /// Where. Absent when the finding is about no text in particular.
    pub place: Option<Place>,
    /// What to do, such as "did you mean `require_key`?"; one line or more.
    pub help: Option<String>,
}

impl Diagnostic {
    /// An error without a place.
    pub fn error(message: impl Into<String>) -> Self {
        Self::new(Severity::Error, message.into())
    }

    /// A warning without a place.
    pub fn warning(message: impl Into<String>) -> Self {
        Self::new(Severity::Warning, message.into())
    }

    fn new(severity: Severity, message: String) -> Self {
        Self {
            severity,
            message,
            place: None,
            help: None,
        }
    }

    /// Says where: `line` and `column` count from 1 (0 is taken as 1), `column` in characters.
    #[must_use]
    pub fn at(mut self, file: impl Into<String>, line: usize, column: usize) -> Self {
        self.place = Some(Place {
            file: file.into(),
            line: line.max(1),
            column: column.max(1),
            length: 1,
        });
        self
    }

    /// Underlines `length` characters (0 is taken as 1). Does nothing before [`Diagnostic::at`].
    #[must_use]
    pub fn spanning(mut self, length: usize) -> Self {
        if let Some(place) = &mut self.place {
            place.length = length.max(1);
        }
        self
    }

    /// Says what to do. A second call adds a line.
    #[must_use]
    pub fn help(mut self, text: impl Into<String>) -> Self {
        let text = text.into();
        match &mut self.help {
            Some(help) => {
                help.push('\n');
                help.push_str(&text);
            }
            None => self.help = Some(text),
        }
        self
    }

    /// One line: `routes.rhai:3:5: error: unknown pool `wbe` (did you mean `web`?)`.
    ///
    /// Control characters are escaped, so a message made from a script's text
    /// can't forge a second log line.
    #[must_use]
    pub fn summary(&self) -> String {
        let mut text = String::new();
        if let Some(place) = &self.place {
            text.push_str(&format!("{place}: "));
        }
        text.push_str(&format!("{}: {}", self.severity, printable(&self.message)));
        if let Some(help) = &self.help {
            let lines: Vec<_> = help.lines().map(printable).collect();
            text.push_str(&format!(" ({})", lines.join("; ")));
        }
        text
    }

    /// Several lines, with the source line and a caret under the place.
    ///
    /// `source` gives the text of a file by its name; without a text only the
    /// place is named. `color` adds ANSI colours. No newline at the end.
    #[must_use]
    pub fn render(&self, source: &dyn Fn(&str) -> Option<String>, color: bool) -> String {
        let level = match self.severity {
            Severity::Error => Level::ERROR,
            Severity::Warning => Level::WARNING,
        };
        let mut group = Group::with_title(level.primary_title(printable(&self.message)));
        if let Some(place) = &self.place {
            let line = source(&place.file).and_then(|text| source_line(&text, place.line));
            group = match line {
                Some(line) => {
                    let span = byte_span(&line, place.column, place.length);
                    group.element(
                        Snippet::source(line)
                            .line_start(place.line)
                            .path(place.file.clone())
                            .annotation(AnnotationKind::Primary.span(span)),
                    )
                }
                None => group.element(
                    Origin::path(place.file.clone())
                        .line(place.line)
                        .char_column(place.column),
                ),
            };
        }
        for line in self.help.iter().flat_map(|help| help.lines()) {
            group = group.element(Level::HELP.message(printable(line)));
        }
        let renderer = if color {
            Renderer::styled()
        } else {
            Renderer::plain()
        };
        renderer.render(&[group])
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.summary())
    }
}

impl std::error::Error for Diagnostic {}

/// The text of line `number` (1-based) without its line ending. A place just
/// behind the last newline is the end of an empty line.
fn source_line(text: &str, number: usize) -> Option<String> {
    let line = text.split('\n').nth(number - 1)?;
    Some(line.strip_suffix('\r').unwrap_or(line).to_string())
}

/// Bytes of `line` that `length` characters from `column` (1-based) take.
fn byte_span(line: &str, column: usize, length: usize) -> std::ops::Range<usize> {
    let offset = |characters: usize| {
        line.char_indices()
            .nth(characters)
            .map_or(line.len(), |(at, _)| at)
    };
    let start = column - 1;
    offset(start)..offset(start.saturating_add(length))
}

/// Control characters as escapes, everything else as it is.
fn printable(text: &str) -> Cow<'_, str> {
    if !text.contains(char::is_control) {
        return Cow::Borrowed(text);
    }
    let escaped = text.chars().fold(String::new(), |mut all, c| {
        if c.is_control() {
            all.extend(c.escape_default());
        } else {
            all.push(c);
        }
        all
    });
    Cow::Owned(escaped)
}

/// A non-empty list of findings, of which at least one is an error.
///
/// Its `Display` is the summaries, one a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostics(pub Vec<Diagnostic>);

impl Diagnostics {
    /// Whether one of them is an error.
    #[must_use]
    pub fn has_errors(&self) -> bool {
        self.iter().any(|one| one.severity == Severity::Error)
    }

    /// The findings, in the order they were made.
    pub fn iter(&self) -> std::slice::Iter<'_, Diagnostic> {
        self.0.iter()
    }

    /// Each finding as [`Diagnostic::render`] shows it, with an empty line between.
    #[must_use]
    pub fn render(&self, source: &dyn Fn(&str) -> Option<String>, color: bool) -> String {
        let all: Vec<_> = self.iter().map(|one| one.render(source, color)).collect();
        all.join("\n\n")
    }
}

impl From<Diagnostic> for Diagnostics {
    fn from(one: Diagnostic) -> Self {
        Self(vec![one])
    }
}

impl IntoIterator for Diagnostics {
    type Item = Diagnostic;
    type IntoIter = std::vec::IntoIter<Diagnostic>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'a> IntoIterator for &'a Diagnostics {
    type Item = &'a Diagnostic;
    type IntoIter = std::slice::Iter<'a, Diagnostic>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, one) in self.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{one}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Diagnostics {}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    const SOURCE: &str = "route(\"/a\")\n    .to(\"wbe\");\r\n\tlet größe = ünknown;\n";

    fn source(name: &str) -> Option<String> {
        (name == "routes.rhai").then(|| SOURCE.to_string())
    }

    fn unknown_pool() -> Diagnostic {
        Diagnostic::error("unknown pool `wbe`")
            .at("routes.rhai", 2, 9)
            .spanning(5)
            .help("did you mean `web`?")
    }

    #[test]
    fn summary_is_one_line_with_the_place_first() {
        assert_eq!(
            unknown_pool().summary(),
            "routes.rhai:2:9: error: unknown pool `wbe` (did you mean `web`?)"
        );
        assert_eq!(
            Diagnostic::warning("nothing to do").summary(),
            "warning: nothing to do"
        );
    }

    #[test]
    fn summary_escapes_control_characters() {
        let forged = Diagnostic::error("a\nreloaded revision=0 \u{1b}[31m").help("b\tc\nd");
        assert_eq!(
            forged.summary(),
            "error: a\\nreloaded revision=0 \\u{1b}[31m (b\\tc; d)"
        );
        assert!(!forged.render(&source, false).contains('\u{1b}'));
    }

    #[test]
    fn render_shows_the_line_and_a_caret() {
        assert_eq!(
            unknown_pool().render(&source, false),
            "\
error: unknown pool `wbe`
 --> routes.rhai:2:9
  |
2 |     .to(\"wbe\");
  |         ^^^^^
  |
  = help: did you mean `web`?"
        );
    }

    #[test]
    fn columns_are_characters_and_a_tab_is_one() {
        let finding = Diagnostic::error("undefined variable `ünknown`")
            .at("routes.rhai", 3, 14)
            .spanning(7);
        assert_eq!(
            finding.render(&source, false),
            "\
error: undefined variable `ünknown`
 --> routes.rhai:3:14
  |
3 |     let größe = ünknown;
  |                 ^^^^^^^"
        );
    }

    #[test]
    fn a_place_behind_the_end_points_at_the_end() {
        let finding = Diagnostic::error("the file ends too early").at("routes.rhai", 1, 40);
        assert_eq!(
            finding.render(&source, false),
            "\
error: the file ends too early
 --> routes.rhai:1:12
  |
1 | route(\"/a\")
  |            ^"
        );
    }

    #[test]
    fn without_the_text_the_place_is_still_named() {
        let finding = Diagnostic::error("bad key").at("edgewright.toml", 7, 3);
        assert_eq!(
            finding.render(&source, false),
            "error: bad key\n--> edgewright.toml:7:3"
        );
        let beyond = Diagnostic::error("gone").at("routes.rhai", 99, 1);
        assert_eq!(
            beyond.render(&source, false),
            "error: gone\n--> routes.rhai:99:1"
        );
        let nowhere = Diagnostic::error("no routes");
        assert_eq!(nowhere.render(&source, false), "error: no routes");
    }

    #[test]
    fn colour_only_when_asked_for() {
        assert!(unknown_pool().render(&source, true).contains("\u{1b}["));
    }

    #[test]
    fn a_list_shows_all_and_knows_its_errors() {
        let mut all = Diagnostics::from(unknown_pool());
        all.0.push(Diagnostic::warning("unused"));
        assert!(all.has_errors());
        assert_eq!(
            all.to_string(),
            "routes.rhai:2:9: error: unknown pool `wbe` (did you mean `web`?)\nwarning: unused"
        );
        assert!(all.render(&source, false).ends_with("\n\nwarning: unused"));
        assert!(!Diagnostics::from(Diagnostic::warning("unused")).has_errors());
    }
}
