//! The `edgewright` command.

use std::process::ExitCode;

use edgewright::memory::Allocator;

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

/// jemalloc's settings. What a peak has taken goes back 5 s after it is over, by a thread of
/// jemalloc's own. (`malloc_conf` is how a program sets them: jemalloc(3), TUNING.)
// SAFETY: the symbol is the one that jemalloc reads, a pointer to a text that ends with NUL.
#[allow(non_upper_case_globals)]
#[unsafe(export_name = "_rjem_malloc_conf")]
pub static malloc_conf: &[u8; 61] =
    b"background_thread:true,dirty_decay_ms:5000,muzzy_decay_ms:0\0 ";

fn main() -> ExitCode {
    edgewright::commands::main()
}
