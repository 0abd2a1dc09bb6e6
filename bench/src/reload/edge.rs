//! The proxy under test, and reloading it.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use tempfile::TempDir;

use super::program::program;
use crate::client::Client;
use crate::interrupt::Interrupt;
use crate::outage::target::Target;
use crate::ports;
use crate::process::Process;
use crate::start::{READY_TIME, retry_ports, wait_until_ready};

/// A reload that takes longer is a failure; the proxy itself answers within 60 s.
const RELOAD_TIME: Duration = Duration::from_secs(90);
const STOP_PATIENCE: Duration = Duration::from_secs(30);

/// A running proxy with a target behind it.
pub(super) struct Edge {
    // Before the folder and the target, so that it ends first.
    process: Process,
    listen: SocketAddr,
    admin: SocketAddr,
    dir: TempDir,
    /// The number of the program that was written last.
    number: u64,
    _target: Target,
}

impl Edge {
    /// Starts it with a program of so many routes.
    pub(super) fn start(
        binary: &Path,
        threads: usize,
        routes: usize,
        interrupt: &Interrupt,
    ) -> Result<Self> {
        retry_ports(|| {
            let target = Target::start(Duration::ZERO)?;
            let dir = tempfile::tempdir().context("cannot create a folder")?;
            let [listen, admin] = *ports::free(2)? else {
                anyhow::bail!("not the two ports that were asked for");
            };
            let config = format!(
                "[server]\nthreads = {threads}\n\n[[listeners]]\naddress = \"{listen}\"\n\n\
                 [pools.web]\ntargets = [\"{}\"]\n\n[admin]\naddress = \"{admin}\"\n\n\
                 [health]\naddress = \"off\"\n\n[log]\nlevel = \"warn\"\n",
                target.address()
            );
            write(dir.path(), "edgewright.toml", &config)?;
            write(dir.path(), "routes.rhai", &program(0, routes))?;
            let mut command = Command::new(binary);
            command.arg("run").arg(dir.path());
            let log = dir.path().join("output.log");
            let mut process = Process::spawn("edgewright", &mut command, &log, None)?;
            wait_until_ready(&mut process, listen, READY_TIME, interrupt)?;
            Ok(Self {
                process,
                listen,
                admin,
                dir,
                number: 0,
                _target: target,
            })
        })
        .context("edgewright")
    }

    /// Where it listens.
    pub(super) fn address(&self) -> SocketAddr {
        self.listen
    }

    /// Loads the next program of so many routes. The time is that from the request for it to its answer; `None` when
    /// the proxy had noticed the new file by itself before that.
    pub(super) fn reload(&mut self, routes: usize) -> Result<Option<Duration>> {
        self.process.ensure_alive()?;
        self.number += 1;
        let dir = self.dir.path();
        write(dir, ".routes.rhai.new", &program(self.number, routes))?;
        fs::rename(dir.join(".routes.rhai.new"), dir.join("routes.rhai"))
            .context("cannot put a program in the place of another")?;
        let mut client = Client::connect(self.admin, RELOAD_TIME)?;
        let request = format!(
            "POST /reload HTTP/1.1\r\nHost: {}\r\nContent-Length: 0\r\n\r\n",
            self.admin
        );
        let begin = Instant::now();
        let answer = client.exchange(request.as_bytes())?;
        let took = begin.elapsed();
        let body = String::from_utf8_lossy(answer.body).into_owned();
        ensure!(answer.status == 200, "a reload was refused: {body}");
        Ok(body.contains("\"loaded\"").then_some(took))
    }

    /// Resident memory in KiB.
    pub(super) fn resident_kib(&self) -> Result<u64> {
        let path = format!("/proc/{}/status", self.process.id());
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
        parse_resident(&text).with_context(|| format!("{path} has an unknown form"))
    }

    /// Ends it.
    pub(super) fn stop(mut self) -> Result<()> {
        self.process.ensure_alive()?;
        self.process.stop(STOP_PATIENCE, false).map(drop)
    }
}

/// `VmRSS` of /proc/PID/status (proc(5)).
fn parse_resident(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.split_whitespace().next()?.parse().ok()
}

fn write(dir: &Path, name: &str, text: &str) -> Result<()> {
    let file = dir.join(name);
    fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resident_memory_is_found_by_name() {
        let text = "Name:\tx\nVmHWM:\t  200 kB\nVmRSS:\t  123 kB\nThreads:\t1\n";
        assert_eq!(parse_resident(text), Some(123));
        assert_eq!(parse_resident("Name:\tx\n"), None);
    }
}
