//! Checks that need rights or tools which a machine may lack.

use std::io::Write;

/// Says on stderr, past the capture of the test harness, that `check` was not run and why.
///
/// With `EDGEWRIGHT_E2E_STRICT=1` (continuous integration sets it) a check that can't run fails.
pub fn not_run(check: &str, why: &str) {
    let text = format!("NOT RUN: {check}: {why}\n");
    assert!(
        std::env::var_os("EDGEWRIGHT_E2E_STRICT").is_none(),
        "{text}"
    );
    // eprintln! would be swallowed with the output of a test that passes.
    let _ = std::io::stderr().write_all(text.as_bytes());
}

/// Prints a figure that a check measured, past the capture of the test harness.
pub fn measured(check: &str, text: &str) {
    let _ = std::io::stderr().write_all(format!("measured: {check}: {text}\n").as_bytes());
}
