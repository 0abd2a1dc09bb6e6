//! Findings on a terminal.

use std::{
    io::{IsTerminal as _, Write as _},
    path::Path,
};

use edgewright_script::diagnostic::Diagnostic;

use crate::source::{LastRead, Refused};

/// Writes findings to standard error, each with its source line; `root` is the folder that the
/// files they are about lie in.
pub(super) fn findings<'d>(findings: impl IntoIterator<Item = &'d Diagnostic>, root: &Path) {
    let source = |name: &str| std::fs::read_to_string(root.join(name)).ok();
    let mut out = std::io::stderr().lock();
    let color = out.is_terminal() && std::env::var_os("NO_COLOR").is_none();
    for finding in findings {
        // Nobody is left to tell when standard error is closed.
        let _ = writeln!(out, "{}\n", finding.render(&source, color));
    }
}

/// Writes why files were refused.
pub(super) fn refused(refused: &Refused) {
    let root = refused.last.as_ref().map_or(Path::new("."), LastRead::root);
    findings(refused.diagnostics.iter(), root);
}
