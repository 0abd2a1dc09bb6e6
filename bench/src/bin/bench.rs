//! `edgewright-bench`: measures what a proxied request costs. See `bench/README.md`.

use std::process::ExitCode;

use clap::Parser;
use edgewright_bench::{Cli, Interrupted, execute};

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
