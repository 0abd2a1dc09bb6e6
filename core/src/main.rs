//! The `edgewright` command.

use std::process::ExitCode;

use tikv_jemallocator::Jemalloc;

#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

/// jemalloc's settings. Memory that nobody uses goes back after 5 s, on a thread of jemalloc's
/// own: glibc's malloc kept 438 MB after 5,000 connections had closed, this keeps 15 MB.
/// (`malloc_conf` is how a program sets them: jemalloc(3), TUNING.)
// SAFETY: the symbol is the one that jemalloc reads, a pointer to a text that ends with NUL.
#[allow(non_upper_case_globals)]
#[unsafe(export_name = "_rjem_malloc_conf")]
pub static malloc_conf: &[u8; 61] =
    b"background_thread:true,dirty_decay_ms:5000,muzzy_decay_ms:0\0 ";

fn main() -> ExitCode {
    edgewright::commands::main()
}
