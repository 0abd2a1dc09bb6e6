//! The one backend behind every contestant.

use std::cell::Cell;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use nix::sched::CpuSet;
use tempfile::TempDir;

use crate::client::Client;
use crate::interrupt::Interrupt;
use crate::nginx::{self, BackendAddresses};
use crate::ports;
use crate::process::Process;
use crate::start::{READY_TIME, retry_ports, wait_until_ready};

const STATUS_TIMEOUT: Duration = Duration::from_secs(5);

/// A running nginx with a fixed answer.
pub(crate) struct Backend {
    // Before the folder, so that it ends first.
    _process: Process,
    addresses: BackendAddresses,
    status_polls: Cell<u64>,
    _dir: TempDir,
}

impl Backend {
    /// Starts it; `connections` is how many it can hold open at once.
    pub(crate) fn start(
        nginx: &Path,
        connections: usize,
        cpus: Option<CpuSet>,
        interrupt: &Interrupt,
    ) -> Result<Self> {
        retry_ports(|| {
            let dir = tempfile::tempdir().context("cannot create a folder")?;
            let ports = ports::free(3)?;
            let addresses = BackendAddresses {
                blue: ports[0],
                green: ports[1],
                status: ports[2],
            };
            let config = nginx::backend_config(addresses, connections);
            let mut command = nginx::command(nginx, dir.path(), &config)?;
            let log = dir.path().join("output.log");
            let mut process = Process::spawn("the nginx backend", &mut command, &log, cpus)?;
            wait_until_ready(&mut process, addresses.blue, READY_TIME, interrupt)?;
            Ok(Self {
                _process: process,
                addresses,
                status_polls: Cell::new(0),
                _dir: dir,
            })
        })
    }

    /// Where it listens.
    pub(crate) fn addresses(&self) -> BackendAddresses {
        self.addresses
    }

    /// Connections accepted so far, without those that asked this question.
    pub(crate) fn accepted(&self) -> Result<u64> {
        let accepted = poll(self.addresses.status).context("cannot ask stub_status")?;
        self.status_polls.set(self.status_polls.get() + 1);
        Ok(accepted.saturating_sub(self.status_polls.get()))
    }
}

fn poll(address: SocketAddr) -> Result<u64> {
    let mut client = Client::connect(address, STATUS_TIMEOUT)?;
    let answer = client.exchange(b"GET / HTTP/1.1\r\nHost: status\r\nConnection: close\r\n\r\n")?;
    let text = std::str::from_utf8(answer.body).context("not text")?;
    parse_accepted(text).with_context(|| format!("an unknown form: {text}"))
}

/// The first of the three numbers under "server accepts handled requests".
fn parse_accepted(text: &str) -> Option<u64> {
    let mut lines = text.lines();
    lines.find(|line| line.starts_with("server accepts"))?;
    lines.next()?.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepts_are_the_first_number() {
        let text = "Active connections: 3 \nserver accepts handled requests\n 120 119 4711 \n\
                    Reading: 0 Writing: 1 Waiting: 2 \n";
        assert_eq!(parse_accepted(text), Some(120));
        assert_eq!(parse_accepted("nothing here"), None);
    }
}
