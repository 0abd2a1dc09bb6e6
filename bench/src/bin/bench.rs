//! `edgewright-bench`: measures what a proxied request costs. See `bench/README.md`.

use std::process::ExitCode;

use clap::Parser;
use edgewright_bench::{Cli, Interrupted, execute};

// The hooks are measured with the allocator of `edgewright`, whose settings these are (its main.rs).
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

// SAFETY: the symbol is the one that jemalloc reads (jemalloc(3), TUNING), a pointer to a text that
// ends with NUL; nothing else defines it.
#[unsafe(export_name = "_rjem_malloc_conf")]
static MALLOC_CONF: &[u8; 60] = b"background_thread:true,dirty_decay_ms:5000,muzzy_decay_ms:0\0";

fn main() -> ExitCode {
    match execute(Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("edgewright-bench: {error:#}");
            // 130 = 128 + SIGINT, as a shell reports it.
            ExitCode::from(if error.is::<Interrupted>() { 130 } else { 1 })
        }
    }
}
