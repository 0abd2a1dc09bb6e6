//! The command line.

use std::env;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use clap::{Args, Parser, Subcommand};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use serde::Serialize;

use crate::backend::Backend;
use crate::hooks;
use crate::instructions::{self, Counter};
use crate::interrupt::Interrupt;
use crate::jobs;
use crate::nginx;
use crate::outage;
use crate::peers::{ALL, FLOOR, Field, Peer, Programs};
use crate::placement::Placement;
use crate::reload;
use crate::report::Skipped;
use crate::run;

/// Measures what a proxied request costs: edgewright beside the Pingora floor, nginx and nginx with Lua.
#[derive(Parser)]
#[command(version)]
pub struct Cli {
    #[command(subcommand)]
    command: Action,
}

#[derive(Subcommand)]
enum Action {
    /// CPU time, throughput and latency, in alternating rounds.
    Run(run::Options),
    /// User-space instructions per request.
    Instructions(InstructionOptions),
    /// What a hook costs by itself, without sockets, and what threads share in it.
    Hooks(hooks::Options),
    /// What the jobs of scripts cost, each by itself: in this process, and beside nginx with Lua.
    Jobs(jobs::Options),
    /// Errors and latency while one of three targets dies and another becomes slow.
    Outage(outage::Options),
    /// Latency during reloads beside latency without, how long a reload takes, and memory over many of them.
    Reload(reload::Options),
    /// What `hooks` runs under callgrind.
    #[command(hide = true)]
    HookLoop(hooks::LoopOptions),
    /// What `jobs` runs under callgrind.
    #[command(hide = true)]
    JobLoop(jobs::LoopOptions),
    /// What `hooks` runs under lackey.
    #[command(hide = true)]
    HookTrace(hooks::TraceOptions),
}

#[derive(Args)]
struct InstructionOptions {
    #[command(flatten)]
    common: Common,
    /// Requests whose instructions are counted (N; a second run sends 2N).
    #[arg(long, default_value_t = 2000, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    requests: u64,
    /// Repetitions.
    #[arg(long, default_value_t = 3, value_parser = at_least_one)]
    rounds: usize,
    /// What counts.
    #[arg(long, value_enum, default_value_t = Counter::Auto)]
    counter: Counter,
    /// Also what functions take, all that they call included, whose names contain this; may be repeated.
    #[arg(long = "function", value_name = "TEXT")]
    functions: Vec<String>,
    /// File for the result as JSON.
    #[arg(long, default_value = "instructions.json")]
    json: PathBuf,
}

/// What the commands take that send requests.
#[derive(Debug, PartialEq, Args)]
pub(crate) struct Common {
    /// Only this contestant, and the floor to compare it with; may be repeated.
    #[arg(long = "only", value_name = "NAME")]
    only: Vec<String>,
    /// Worker threads of each proxy.
    #[arg(long, default_value_t = 1, value_parser = at_least_one)]
    pub(crate) threads: usize,
    /// Idle upstream connections that each whole proxy keeps.
    #[arg(long, default_value_t = 1000, value_parser = at_least_one)]
    pub(crate) pool: usize,
    /// The proxy on CPUs of its own, backend and load on the others.
    #[arg(long)]
    pub(crate) pin: bool,
    /// The `edgewright` binary [default: beside this program].
    #[arg(long, value_name = "PATH")]
    edgewright: Option<PathBuf>,
    /// The `edgewright-floor` binary [default: beside this program].
    #[arg(long, value_name = "PATH")]
    floor: Option<PathBuf>,
    /// The nginx binary [default: found in PATH or /usr/sbin].
    #[arg(long, value_name = "PATH")]
    nginx: Option<PathBuf>,
    /// Folder of nginx's Lua module [default: where distributions put it].
    #[arg(long, value_name = "DIR")]
    nginx_modules: Option<PathBuf>,
}

/// Does what the command line says.
///
/// # Errors
/// When something can't be started or measured, when a contestant does its job wrong, when a
/// measured answer was an error, or ([`crate::Interrupted`]) after a signal.
pub fn execute(cli: Cli) -> Result<()> {
    let interrupt = Interrupt::install()?;
    raise_open_files()?;
    match cli.command {
        Action::Run(options) => run::run(&options, interrupt),
        Action::Instructions(options) => count_instructions(&options, interrupt),
        Action::Hooks(options) => hooks::run(&options, interrupt),
        Action::Jobs(options) => jobs::run(&options, interrupt),
        Action::Outage(options) => outage::run(&options, &interrupt),
        Action::Reload(options) => reload::run(&options, &interrupt),
        Action::HookLoop(options) => hooks::run_loop(&options),
        Action::JobLoop(options) => jobs::run_loop(&options),
        Action::HookTrace(options) => hooks::run_trace(&options),
    }
}

fn count_instructions(options: &InstructionOptions, interrupt: Interrupt) -> Result<()> {
    let counter = options.counter.resolve()?;
    ensure_writable(&options.json)?;
    let field = options.common.field(1, interrupt)?;
    let (peers, skipped) = options.common.peers(&field.programs)?;
    for Skipped { name, why } in skipped {
        eprintln!("{name}: not run, {why}");
    }
    let count = instructions::count(
        &field,
        &peers,
        counter,
        options.requests,
        options.rounds,
        &options.functions,
    )?;
    println!("{}", count.markdown());
    write_json(&options.json, &count)
}

impl Default for Common {
    /// As without any option; a test compares.
    fn default() -> Self {
        Self {
            only: Vec::new(),
            threads: 1,
            pool: 1000,
            pin: false,
            edgewright: None,
            floor: None,
            nginx: None,
            nginx_modules: None,
        }
    }
}

impl Common {
    /// As without any option, but with this `edgewright`, if there is one.
    pub(crate) fn with_edgewright(edgewright: Option<PathBuf>) -> Self {
        Self {
            edgewright,
            ..Self::default()
        }
    }

    /// Starts the backend and finds the programs.
    pub(crate) fn field(&self, connections: usize, interrupt: Interrupt) -> Result<Field> {
        ensure!(
            self.pool >= connections,
            "--pool {} is smaller than --connections {connections}: that would measure connection churn",
            self.pool
        );
        let own = env::current_exe().context("cannot find out where this program is")?;
        let beside = |name: &str| own.with_file_name(name);
        let programs = Programs {
            floor: self
                .floor
                .clone()
                .unwrap_or_else(|| beside("edgewright-floor")),
            edgewright: self
                .edgewright
                .clone()
                .unwrap_or_else(|| beside("edgewright")),
            pgo: beside("../pgo/edgewright"),
            nginx: match &self.nginx {
                Some(path) => path.clone(),
                None => find_nginx()?,
            },
            lua_modules: self.nginx_modules.clone().or_else(nginx::find_lua_modules),
        };
        let placement = if self.pin {
            Placement::pinned(self.threads)?
        } else {
            Placement::default()
        };
        // Each of the proxy's idle connections, and as many again while one turn follows another.
        let held = (connections + self.pool) * 2 + 64;
        let backend = Backend::start(&programs.nginx, held, placement.others, &interrupt)?;
        Ok(Field {
            programs,
            threads: self.threads,
            pool: self.pool,
            connections,
            placement,
            backend,
            interrupt,
        })
    }

    /// The contestants to run, and those that can't be. Asked for by name, that is an error.
    pub(crate) fn peers(&self, programs: &Programs) -> Result<(Vec<Peer>, Vec<Skipped>)> {
        if let Some(unknown) = self
            .only
            .iter()
            .find(|name| ALL.iter().all(|peer| peer.name != **name))
        {
            let names: Vec<&str> = ALL.iter().map(|peer| peer.name).collect();
            bail!("no contestant `{unknown}`; there are {}", names.join(", "));
        }
        let mut peers = Vec::new();
        let mut skipped = Vec::new();
        for peer in ALL {
            let named = self.only.iter().any(|name| name == peer.name);
            if !self.only.is_empty() && !named && peer.name != FLOOR {
                continue;
            }
            match peer.missing(programs) {
                None => peers.push(peer),
                Some(why) if named => bail!("{}: {why}", peer.name),
                Some(why) => skipped.push(Skipped {
                    name: peer.name,
                    why,
                }),
            }
        }
        ensure!(!peers.is_empty(), "no contestant can be run");
        Ok((peers, skipped))
    }
}

/// A number of things of which there is at least one, for clap.
pub(crate) fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) | Err(_) => Err("a whole number of at least 1".to_owned()),
        Ok(number) => Ok(number),
    }
}

/// An error now instead of after minutes of measuring, when the result can't be written.
pub(crate) fn ensure_writable(path: &Path) -> Result<()> {
    File::options()
        .create(true)
        .append(true)
        .open(path)
        .map(drop)
        .with_context(|| format!("cannot write {}", path.display()))
}

/// Writes a result for programs.
pub(crate) fn write_json(path: &Path, value: &impl Serialize) -> Result<()> {
    let text = serde_json::to_string_pretty(value).context("cannot write the result as JSON")?;
    fs::write(path, text + "\n").with_context(|| format!("cannot write {}", path.display()))?;
    eprintln!("the numbers of every round are in {}", path.display());
    Ok(())
}

/// Lets everything that is started open as many files as allowed: `edgewright` raises its own
/// limit, and the others must not be the poorer for it.
fn raise_open_files() -> Result<()> {
    let (_, hard) =
        getrlimit(Resource::RLIMIT_NOFILE).context("cannot read the open-file limit")?;
    setrlimit(Resource::RLIMIT_NOFILE, hard, hard).context("cannot raise the open-file limit")
}

fn find_nginx() -> Result<PathBuf> {
    find_program("nginx")
        .context("nginx is not installed (Debian: apt-get install nginx libnginx-mod-http-lua)")
}

/// A program of this name in PATH or where distributions put servers.
pub(crate) fn find_program(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    // An ordinary user's PATH often lacks that folder.
    env::split_paths(&path)
        .chain([PathBuf::from("/usr/sbin")])
        .map(|folder| folder.join(name))
        .find(|file| file.is_file())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    fn common(arguments: &[&str]) -> Common {
        let cli = Cli::parse_from([&["edgewright-bench", "instructions"], arguments].concat());
        match cli.command {
            Action::Instructions(options) => options.common,
            _ => panic!("another command"),
        }
    }

    fn programs() -> Programs {
        let here = env::current_exe().unwrap();
        Programs {
            floor: here.clone(),
            edgewright: PathBuf::from("/nowhere/edgewright"),
            pgo: PathBuf::from("/nowhere/pgo/edgewright"),
            nginx: here,
            lua_modules: None,
        }
    }

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
        assert!(at_least_one("0").is_err() && at_least_one("x").is_err());
    }

    #[test]
    fn the_defaults_are_those_of_the_command_line() {
        assert_eq!(common(&[]), Common::default());
    }

    #[test]
    fn what_is_missing_is_skipped_unless_named() {
        let (peers, skipped) = common(&[]).peers(&programs()).unwrap();
        let names: Vec<_> = peers.iter().map(|peer| peer.name).collect();
        assert_eq!(names, ["floor", "floor-timeouts", "nginx"]);
        assert_eq!(skipped.len(), ALL.len() - 3);
        let error = common(&["--only", "nginx-lua"])
            .peers(&programs())
            .unwrap_err();
        assert!(error.to_string().contains("not installed"), "{error}");
    }

    #[test]
    fn the_floor_is_always_there_to_compare_with() {
        let (peers, _) = common(&["--only", "nginx"]).peers(&programs()).unwrap();
        let names: Vec<_> = peers.iter().map(|peer| peer.name).collect();
        assert_eq!(names, ["floor", "nginx"]);
        let error = common(&["--only", "ngnix"]).peers(&programs()).unwrap_err();
        assert!(
            error.to_string().contains("no contestant `ngnix`"),
            "{error}"
        );
    }
}
