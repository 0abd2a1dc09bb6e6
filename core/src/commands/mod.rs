//! The command line. Exit codes: 0 fine, 1 the user's configuration is wrong, 2 wrong use.

mod check;
mod demo;
mod health;
mod listeners;
mod report;
mod routes;
mod run;
mod start;

use std::{net::SocketAddr, path::PathBuf, process::ExitCode};

use clap::{Parser, Subcommand, ValueEnum};

/// A reverse proxy whose routing, auth and rewriting are one program, routes.rhai.
#[derive(Debug, Parser)]
#[command(name = "edgewright", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serves a program.
    Run {
        /// A folder, an edgewright.toml or a routes.rhai.
        #[arg(default_value = ".")]
        path: PathBuf,
        /// Listens here instead of where the configuration says; may be repeated.
        #[arg(long, value_name = "ADDR")]
        listen: Vec<SocketAddr>,
        /// Keeps a copy of the last good files here, and serves it at a start whose files are refused.
        #[arg(long, value_name = "DIR")]
        last_good: Option<PathBuf>,
        /// Takes the listeners over from a process that serves and gets SIGQUIT.
        #[arg(long)]
        upgrade: bool,
    },
    /// Serves a complete example on this machine, with two upstreams of its own.
    Demo {
        /// Where the proxy listens.
        #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8080")]
        listen: SocketAddr,
    },
    /// Finds everything that can be found without serving.
    Check {
        /// A folder, an edgewright.toml or a routes.rhai.
        #[arg(default_value = ".")]
        path: PathBuf,
        /// How findings are written.
        #[arg(long, value_enum, default_value_t = Format::Text)]
        format: Format,
        /// Says of each hook whether it is compiled or interpreted, and why.
        #[arg(long, short)]
        verbose: bool,
    },
    /// Shows the routes in the order in which they are matched.
    Routes {
        /// A folder, an edgewright.toml or a routes.rhai.
        #[arg(default_value = ".")]
        path: PathBuf,
    },
    /// Asks a running one whether it lives.
    Health {
        /// Asks whether it is ready for requests.
        #[arg(long)]
        ready: bool,
        /// Its health or admin listener.
        #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:9181")]
        address: SocketAddr,
    },
}

/// How findings are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people.
    Text,
    /// One JSON object, for tools.
    Json,
}

/// The user's configuration is wrong.
const WRONG: u8 = 1;

/// The command was used wrongly.
const WRONG_USE: u8 = 2;

/// Runs what the command line says.
pub fn main() -> ExitCode {
    crate::memory::bound_hooks();
    crate::logging::take_script_lines();
    // Wrong use ends here with clap's exit code, which is 2.
    match Cli::parse().command {
        Command::Run {
            path,
            listen,
            last_good,
            upgrade,
        } => run::run(path, listen, last_good, upgrade),
        Command::Demo { listen } => demo::run(listen),
        Command::Check {
            path,
            format,
            verbose,
        } => check::run(&path, format, verbose),
        Command::Routes { path } => routes::run(&path),
        Command::Health { ready, address } => health::run(address, ready),
    }
}
