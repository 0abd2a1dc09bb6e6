//! The closed loop: wrk, which sends the next request when the answer is there.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use nix::sched::CpuSet;
use serde::{Deserialize, Serialize};
use tempfile::TempDir;

use crate::interrupt::Interrupt;
use crate::load::{self, Request};
use crate::process::Process;

/// wrk's own summary as one line of JSON: exact numbers instead of the rounded ones that it
/// prints for people. Only `done` is defined, which costs nothing while the load runs.
const SCRIPT: &str = r#"done = function(summary, latency, requests)
  local e = summary.errors
  io.write(string.format('%s{"requests":%d,"duration_us":%d,"bytes":%d,"connect":%d,"read":%d,"write":%d,"status":%d,"timeout":%d,"p50_us":%d,"p99_us":%d}\n',
    "RESULT ", summary.requests, summary.duration, summary.bytes, e.connect, e.read, e.write, e.status, e.timeout,
    latency:percentile(50), latency:percentile(99)))
end
"#;
const MARK: &str = "RESULT ";
/// wrk waits for open requests at the end, two seconds at most; the rest is slack.
const OVERTIME: Duration = Duration::from_secs(15);

/// What wrk saw.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct WrkResult {
    /// Answers received, of any status.
    pub(crate) requests: u64,
    /// Length of the run in microseconds.
    pub(crate) duration_us: u64,
    /// Bytes received, headers included.
    pub(crate) bytes: u64,
    /// Failed connects.
    pub(crate) connect: u64,
    /// Failed reads.
    pub(crate) read: u64,
    /// Failed writes.
    pub(crate) write: u64,
    /// Answers with a status above 399.
    pub(crate) status: u64,
    /// Requests that took more than two seconds.
    pub(crate) timeout: u64,
    /// Half of the requests took no longer, in microseconds.
    pub(crate) p50_us: u64,
    /// 99 of 100 requests took no longer, in microseconds.
    pub(crate) p99_us: u64,
}

impl WrkResult {
    /// Good answers.
    pub(crate) fn completed(&self) -> u64 {
        self.requests.saturating_sub(self.status)
    }

    /// Everything that went wrong.
    pub(crate) fn errors(&self) -> u64 {
        self.connect + self.read + self.write + self.status + self.timeout
    }

    /// Good answers in a second.
    pub(crate) fn per_second(&self) -> f64 {
        self.completed() as f64 * 1e6 / self.duration_us.max(1) as f64
    }
}

/// wrk with a fixed number of threads and connections.
pub(crate) struct Wrk {
    program: PathBuf,
    threads: usize,
    connections: usize,
    cpus: Option<CpuSet>,
    dir: TempDir,
}

impl Wrk {
    /// Prepares it; there are never more threads than connections, as wrk demands.
    pub(crate) fn new(
        program: &Path,
        threads: usize,
        connections: usize,
        cpus: Option<CpuSet>,
    ) -> Result<Self> {
        let dir = tempfile::tempdir().context("cannot create a folder")?;
        Ok(Self {
            program: program.to_owned(),
            threads: threads.min(connections),
            connections,
            cpus,
            dir,
        })
    }

    /// Loads `address` for so many seconds with the measured request.
    pub(crate) fn run(
        &self,
        address: SocketAddr,
        seconds: u64,
        interrupt: &Interrupt,
    ) -> Result<WrkResult> {
        self.send(&load::measured(), address, seconds, interrupt)
    }

    /// The same with another request.
    pub(crate) fn send(
        &self,
        request: &Request,
        address: SocketAddr,
        seconds: u64,
        interrupt: &Interrupt,
    ) -> Result<WrkResult> {
        let script = self.dir.path().join("wrk.lua");
        fs::write(&script, script_for(request)).context("cannot write wrk's script")?;
        let mut command = Command::new(&self.program);
        command
            .arg(format!("-t{}", self.threads))
            .arg(format!("-c{}", self.connections))
            .arg(format!("-d{seconds}s"))
            .arg("-s")
            .arg(script)
            .arg("-H")
            .arg(format!("Host: {}", request.host));
        for (name, value) in &request.headers {
            command.arg("-H").arg(format!("{name}: {value}"));
        }
        command.arg(format!("http://{address}{}", request.path));
        let log = self.dir.path().join("output.log");
        let output = Process::spawn("wrk", &mut command, &log, self.cpus)?
            .finish(Duration::from_secs(seconds) + OVERTIME, interrupt)?;
        parse(&output)
    }
}

/// Method and body are no arguments of wrk. It writes the length by itself.
fn script_for(request: &Request) -> String {
    let Request { method, body, .. } = request;
    let body = match body.as_str() {
        "" => String::new(),
        body => format!("wrk.body = [==[{body}]==]\n"),
    };
    format!("wrk.method = \"{method}\"\n{body}{SCRIPT}")
}

fn parse(output: &str) -> Result<WrkResult> {
    let line = output
        .lines()
        .find_map(|line| line.strip_prefix(MARK))
        .with_context(|| format!("wrk gave no result:\n{output}"))?;
    serde_json::from_str(line).with_context(|| format!("wrk gave an unknown result: {line}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "Running 5s test @ http://127.0.0.1:8080/api/items\n  \
        1 threads and 50 connections\n  120000 requests in 5.00s, 138.00MB read\n\
        RESULT {\"requests\":120000,\"duration_us\":5000000,\"bytes\":144000000,\"connect\":1,\
        \"read\":2,\"write\":3,\"status\":20000,\"timeout\":4,\"p50_us\":1900,\"p99_us\":4100}\n";

    #[test]
    fn the_marked_line_is_read() {
        let result = parse(OUTPUT).unwrap();
        assert_eq!(result.completed(), 100_000);
        assert_eq!(result.errors(), 20_010);
        assert_eq!(result.per_second(), 20_000.0);
        assert_eq!((result.p50_us, result.p99_us), (1900, 4100));
    }

    #[test]
    fn the_script_has_what_is_no_argument() {
        let mut request = load::measured();
        assert!(script_for(&request).starts_with("wrk.method = \"GET\"\ndone = "));
        request.method = "POST";
        request.body = "{\"a\":1}".to_owned();
        assert!(
            script_for(&request)
                .starts_with("wrk.method = \"POST\"\nwrk.body = [==[{\"a\":1}]==]\ndone = ")
        );
    }

    #[test]
    fn output_without_it_is_an_error_that_shows_it() {
        let error = parse("unable to connect to 127.0.0.1:8080 Connection refused\n").unwrap_err();
        assert!(error.to_string().contains("Connection refused"));
    }
}
