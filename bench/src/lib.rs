//! The benchmark harness of edgewright: the peers, the load and the report.
//!
//! The binaries are `edgewright-bench` (this library behind a command line) and `edgewright-floor`
//! (which shares nothing with it). How it measures, and why, is written in `bench/README.md`.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod backend;
mod callgrind;
mod checks;
mod cli;
mod client;
mod edgewright;
mod environment;
mod hooks;
mod instructions;
mod interrupt;
pub mod jobs;
mod load;
mod nginx;
mod outage;
mod pace;
mod peers;
mod placement;
mod ports;
mod process;
mod procfs;
mod rate;
mod reload;
mod report;
mod run;
mod start;
mod stats;
mod turn;
mod wrk;

pub use cli::{Cli, execute};
pub use interrupt::Interrupted;
