//! The contestants of this comparison, and starting one.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use tempfile::TempDir;

use super::config::{self, Setup};
use crate::interrupt::Interrupt;
use crate::nginx;
use crate::ports;
use crate::process::Process;
use crate::start::{READY_TIME, retry_ports, wait_until_ready};

/// How long a contestant may take to end.
const STOP_PATIENCE: Duration = Duration::from_secs(10);

/// A contestant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Contestant {
    Edgewright,
    EdgewrightByLatency,
    Nginx,
    Haproxy,
}

/// The programs that are started; `None` for what isn't installed.
#[derive(Debug, Clone)]
pub(super) struct Programs {
    /// `edgewright`.
    pub(super) edgewright: PathBuf,
    /// nginx.
    pub(super) nginx: Option<PathBuf>,
    /// HAProxy.
    pub(super) haproxy: Option<PathBuf>,
}

impl Contestant {
    /// All of them, in the order of the report.
    pub(super) const ALL: [Self; 4] = [
        Self::Edgewright,
        Self::EdgewrightByLatency,
        Self::Nginx,
        Self::Haproxy,
    ];

    /// Its name, as `--only` takes it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Edgewright => "edgewright",
            Self::EdgewrightByLatency => "edgewright-peak-ewma",
            Self::Nginx => "nginx",
            Self::Haproxy => "haproxy",
        }
    }

    /// How it is set up, for the report.
    pub(super) fn what(self) -> &'static str {
        match self {
            Self::Edgewright => config::EDGEWRIGHT_IS,
            Self::EdgewrightByLatency => config::EDGEWRIGHT_BY_LATENCY_IS,
            Self::Nginx => config::NGINX_IS,
            Self::Haproxy => config::HAPROXY_IS,
        }
    }

    /// Whether it is this product, in whatever setting.
    pub(super) fn is_edgewright(self) -> bool {
        matches!(self, Self::Edgewright | Self::EdgewrightByLatency)
    }

    /// Its program.
    ///
    /// # Errors
    /// In words, why it can't be run here.
    pub(super) fn program(self, programs: &Programs) -> Result<&Path, String> {
        let not_installed =
            |name: &str| format!("it is not installed (Debian: apt-get install {name})");
        match self {
            Self::Edgewright | Self::EdgewrightByLatency => {
                let program = &programs.edgewright;
                let missing = || format!("{} does not exist", program.display());
                program.is_file().then_some(&**program).ok_or_else(missing)
            }
            Self::Nginx => programs
                .nginx
                .as_deref()
                .ok_or_else(|| not_installed("nginx")),
            Self::Haproxy => programs
                .haproxy
                .as_deref()
                .ok_or_else(|| not_installed("haproxy")),
        }
    }

    /// The command that serves with the files of `dir`, and those files.
    fn command(self, program: &Path, dir: &Path, setup: &Setup) -> Result<Command> {
        let write = |name: &str, text: String| {
            let file = dir.join(name);
            std::fs::write(&file, text)
                .with_context(|| format!("cannot write {}", file.display()))?;
            anyhow::Ok(file)
        };
        match self {
            Self::Edgewright | Self::EdgewrightByLatency => {
                let balance = match self {
                    Self::EdgewrightByLatency => "peak_ewma",
                    _ => "least_requests",
                };
                write("edgewright.toml", config::edgewright(setup, balance))?;
                write("routes.rhai", config::EDGEWRIGHT_ROUTES.to_owned())?;
                let mut command = Command::new(program);
                command.arg("run").arg(dir);
                Ok(command)
            }
            Self::Nginx => nginx::command(program, dir, &config::nginx(setup)),
            Self::Haproxy => {
                let file = write("haproxy.cfg", config::haproxy(setup))?;
                let mut command = Command::new(program);
                // In the foreground.
                command.arg("-db").arg("-f").arg(file);
                Ok(command)
            }
        }
    }
}

/// A contestant that answers.
pub(super) struct Running {
    // Before the folder, so that it ends first.
    process: Process,
    address: SocketAddr,
    _dir: TempDir,
}

impl Running {
    /// Starts it before these targets and waits for its first good answer.
    pub(super) fn start(
        contestant: Contestant,
        program: &Path,
        targets: [SocketAddr; 3],
        threads: usize,
        interrupt: &Interrupt,
    ) -> Result<Self> {
        retry_ports(|| {
            let dir = tempfile::tempdir().context("cannot create a folder")?;
            let address = ports::free(1)?[0];
            let setup = Setup {
                listen: address,
                targets,
                threads,
            };
            let mut command = contestant.command(program, dir.path(), &setup)?;
            let log = dir.path().join("output.log");
            let mut process = Process::spawn(contestant.name(), &mut command, &log, None)?;
            wait_until_ready(&mut process, address, READY_TIME, interrupt)?;
            Ok(Self {
                process,
                address,
                _dir: dir,
            })
        })
        .with_context(|| format!("contestant {}", contestant.name()))
    }

    /// Where it listens.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Ends it; an error when it had ended by itself, or doesn't end in time.
    pub(super) fn stop(mut self) -> Result<()> {
        self.process.ensure_alive()?;
        self.process.stop(STOP_PATIENCE, false).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_there_says_why() {
        let here = std::env::current_exe().unwrap();
        let programs = Programs {
            edgewright: PathBuf::from("/nowhere/edgewright"),
            nginx: Some(here.clone()),
            haproxy: None,
        };
        let why = |contestant: Contestant| contestant.program(&programs).unwrap_err();
        assert!(why(Contestant::Edgewright).contains("/nowhere/edgewright does not exist"));
        assert!(why(Contestant::Haproxy).contains("apt-get install haproxy"));
        assert_eq!(Contestant::Nginx.program(&programs), Ok(here.as_path()));
    }
}
