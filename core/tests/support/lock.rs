//! Tests that load the machine, or change what is the machine's own, take turns.

use std::fs::File;

/// Held while a test needs the machine's namespaces, cgroups or most of its CPU for itself.
pub struct Turn(#[allow(dead_code)] File);

/// Waits for a turn. A file lock, because the test binaries of one `cargo test` may be several.
pub fn turn() -> Turn {
    let path = std::env::temp_dir().join("edgewright-e2e.lock");
    let file = File::create(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    file.lock()
        .unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    Turn(file)
}
