//! `import` but at the top level, and `eval` and `export` anywhere.

use rhai::{FnCallExpr, Position, Stmt};

use super::findings::Findings;
use super::program::Program;
use super::scope::Scope;
use super::walk::Check;
use crate::source::Source;

pub(super) struct Forbidden<'a> {
    pub(super) program: &'a Program<'a>,
    pub(super) source: &'a Source,
}

impl Forbidden<'_> {
    /// Whether the `import` at `at` is a statement of the top level itself.
    fn is_at_the_top(&self, at: Position) -> bool {
        let mut statements = self.program.statements.iter();
        statements.any(|one| matches!(one, Stmt::Import(_, import) if *import == at))
    }
}

impl<'a> Check<'a> for Forbidden<'a> {
    fn import(&mut self, at: Position, scope: &Scope<'a>, findings: &mut Findings) {
        if self.is_at_the_top(at) {
            return;
        }
        let message = if scope.is_plain_top_level() {
            "`import` can't stand in a block: files are read before anything runs"
        } else {
            "`import` can't stand in a function: files are read only while loading"
        };
        findings.error(
            at,
            "import".len(),
            message,
            Some("move it to the top level".to_string()),
        );
    }

    fn export(&mut self, at: Position, findings: &mut Findings) {
        findings.error(
            export_before(self.source.text(), at).unwrap_or(at),
            "export".len(),
            "`export` isn't needed: a file that imports this one sees all its functions and constants",
            Some("take it away; what must not be seen is a `private fn` or a `let`".to_string()),
        );
    }

    fn call(&mut self, call: &'a FnCallExpr, at: Position, _: &Scope<'a>, findings: &mut Findings) {
        if call.name == "eval" {
            findings.error(
                at,
                "eval".len(),
                "`eval` isn't available: a program must be checkable before it runs",
                None,
            );
        }
    }
}

/// Where `export` stands when `at` is the word behind it: Rhai gives `export const` the place of
/// its `const`.
fn export_before(text: &str, at: Position) -> Option<Position> {
    let line = text.lines().nth(at.line()? - 1)?;
    let (end, _) = line.char_indices().nth(at.position()? - 1)?;
    let before = line[..end].trim_end().strip_suffix("export")?;
    let column = u16::try_from(before.chars().count() + 1).ok()?;
    Some(Position::new(u16::try_from(at.line()?).ok()?, column))
}
