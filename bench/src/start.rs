//! Starting a contestant, and handling one that runs.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use tempfile::TempDir;

use crate::client::Client;
use crate::interrupt::Interrupt;
use crate::load;
use crate::peers::{Field, Peer};
use crate::ports;
use crate::process::Process;
use crate::procfs::ProcessTree;

/// How long a contestant may take from its start to its first good answer.
pub(crate) const READY_TIME: Duration = Duration::from_secs(20);
const READY_POLL: Duration = Duration::from_millis(10);
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
const PORT_ATTEMPTS: usize = 3;

/// How a contestant is run.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Wrapper<'a> {
    /// As it is.
    None,
    /// Under valgrind's callgrind, whose totals go to this file.
    Callgrind(&'a Path),
    /// Under `perf stat`, whose counts go to this file.
    Perf(&'a Path),
}

/// A contestant that answers.
pub(crate) struct Running {
    // Before the folder, so that it ends first.
    process: Process,
    address: SocketAddr,
    is_nginx: bool,
    _dir: TempDir,
}

impl Running {
    /// Starts it and waits for its first good answer.
    pub(crate) fn start(peer: &Peer, field: &Field, wrapper: Wrapper) -> Result<Running> {
        let ready_time = match wrapper {
            Wrapper::None | Wrapper::Perf(_) => READY_TIME,
            Wrapper::Callgrind(_) => READY_TIME * 6,
        };
        let single_process = !matches!(wrapper, Wrapper::None);
        retry_ports(|| {
            let dir = tempfile::tempdir().context("cannot create a folder")?;
            let address = ports::free(1)?[0];
            let mut command = wrap(
                peer.command(field, dir.path(), address, single_process)?,
                wrapper,
            );
            let log = dir.path().join("output.log");
            let mut process = Process::spawn(peer.name, &mut command, &log, field.placement.proxy)?;
            wait_until_ready(&mut process, address, ready_time, &field.interrupt)?;
            Ok(Running {
                process,
                address,
                is_nginx: peer.is_nginx(),
                _dir: dir,
            })
        })
        .with_context(|| format!("contestant {}", peer.name))
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its processes as they are now.
    pub(crate) fn processes(&self) -> Result<ProcessTree> {
        ProcessTree::of(self.process.id())
    }

    /// Ends it; an error if that takes longer than `patience`.
    pub(crate) fn stop(self, patience: Duration) -> Result<()> {
        self.process.stop(patience, self.is_nginx).map(|_| ())
    }
}

/// The command that runs `command` in `wrapper`.
pub(crate) fn wrap(command: Command, wrapper: Wrapper) -> Command {
    let mut outer = match wrapper {
        Wrapper::None => return command,
        Wrapper::Callgrind(file) => {
            let mut outer = Command::new("valgrind");
            let mut option = std::ffi::OsString::from("--callgrind-out-file=");
            option.push(file);
            outer.args(["--tool=callgrind", "--quiet"]).arg(option);
            // What jemalloc does every 10 ms would be done for every few requests here, where time is stretched, and how
            // often depends on the machine.
            outer.env("_RJEM_MALLOC_CONF", "experimental_tcache_gc:false");
            outer
        }
        Wrapper::Perf(file) => {
            let mut outer = Command::new("perf");
            outer
                .args(["stat", "-x,", "-e", "instructions:u", "-o"])
                .arg(file)
                .arg("--");
            outer
        }
    };
    outer.arg(command.get_program()).args(command.get_args());
    outer
}

/// Polls until the measured request is answered with 200.
pub(crate) fn wait_until_ready(
    process: &mut Process,
    address: SocketAddr,
    patience: Duration,
    interrupt: &Interrupt,
) -> Result<()> {
    let request = load::measured_request();
    let deadline = Instant::now() + patience;
    loop {
        interrupt.check()?;
        process.ensure_alive()?;
        let outcome = Client::connect(address, REQUEST_TIMEOUT)
            .and_then(|mut client| Ok(client.exchange(&request)?.status));
        match outcome {
            Ok(200) => return Ok(()),
            outcome if Instant::now() >= deadline => {
                let last = outcome.map(|status| format!("status {status}"));
                bail!(
                    "not ready after {patience:?}: {}",
                    last.unwrap_or_else(|e| format!("{e:#}"))
                );
            }
            _ => thread::sleep(READY_POLL),
        }
    }
}

/// Tries again when another process has taken a port between finding it free and using it.
pub(crate) fn retry_ports<T>(mut start: impl FnMut() -> Result<T>) -> Result<T> {
    for _ in 1..PORT_ATTEMPTS {
        match start() {
            Err(error) if format!("{error:#}").contains("in use") => {}
            other => return other,
        }
    }
    start()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_taken_port_is_tried_again() {
        let mut calls = 0;
        let result: Result<()> = retry_ports(|| {
            calls += 1;
            bail!("bind() to 127.0.0.1:1 failed (98: Address already in use)")
        });
        assert!(result.is_err());
        assert_eq!(calls, PORT_ATTEMPTS);
        calls = 0;
        let result: Result<()> = retry_ports(|| {
            calls += 1;
            bail!("unknown key `thread`")
        });
        assert!(result.is_err());
        assert_eq!(calls, 1);
    }

    #[test]
    fn a_wrapper_keeps_the_arguments() {
        let mut inner = Command::new("edgewright");
        inner.args(["run", "dir"]);
        let outer = wrap(inner, Wrapper::Callgrind(Path::new("/tmp/out")));
        let arguments: Vec<_> = outer.get_args().collect();
        assert_eq!(outer.get_program(), "valgrind");
        assert_eq!(
            arguments,
            [
                "--tool=callgrind",
                "--quiet",
                "--callgrind-out-file=/tmp/out",
                "edgewright",
                "run",
                "dir"
            ]
        );
    }
}
