//! A started process that never outlives its handle.

use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use nix::sched::{CpuSet, sched_setaffinity};
use nix::sys::prctl;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use crate::interrupt::Interrupt;

const POLL: Duration = Duration::from_millis(5);
const REPEAT: Duration = Duration::from_millis(500);
/// How long a process may take to end after SIGTERM when its handle is dropped.
const DROP_PATIENCE: Duration = Duration::from_secs(3);

/// A child in a process group of its own; dropped, the whole group is ended.
pub(crate) struct Process {
    child: Child,
    name: String,
    log: PathBuf,
}

impl Process {
    /// Starts `command` with standard output and error in the file `log`, on the given CPUs.
    pub(crate) fn spawn(
        name: &str,
        command: &mut Command,
        log: &Path,
        cpus: Option<CpuSet>,
    ) -> Result<Self> {
        let file = File::create(log).with_context(|| format!("cannot create {}", log.display()))?;
        command
            .stdout(file.try_clone().context("cannot share the log file")?)
            .stderr(file);
        Self::start(name, command, log, cpus)
    }

    /// Starts `command` with standard output in the file `log` and standard error in a pipe, whose
    /// other end is given.
    pub(crate) fn spawn_piped(
        name: &str,
        command: &mut Command,
        log: &Path,
    ) -> Result<(Self, ChildStderr)> {
        let file = File::create(log).with_context(|| format!("cannot create {}", log.display()))?;
        command.stdout(file).stderr(Stdio::piped());
        let mut process = Self::start(name, command, log, None)?;
        let pipe = process.child.stderr.take();
        Ok((process, pipe.context("a process without its pipe")?))
    }

    fn start(name: &str, command: &mut Command, log: &Path, cpus: Option<CpuSet>) -> Result<Self> {
        command.stdin(Stdio::null());
        let child = spawn_bound(command, cpus).with_context(|| format!("cannot start {name}"))?;
        Ok(Self {
            child,
            name: name.to_owned(),
            log: log.to_owned(),
        })
    }

    /// The process id.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// An error, with the end of its log, when the process has ended by itself.
    pub(crate) fn ensure_alive(&mut self) -> Result<()> {
        match self.child.try_wait().context("cannot wait for a process")? {
            None => Ok(()),
            Some(status) => bail!("{} ended with {status}\n{}", self.name, self.log_tail()),
        }
    }

    /// Sends SIGTERM and waits at most `patience` for the end; an error when it takes longer (the
    /// process is then killed). With `repeat` the signal is sent again every half second: an nginx
    /// without a master process misses one that arrives just before it waits for events.
    pub(crate) fn stop(mut self, patience: Duration, repeat: bool) -> Result<ExitStatus> {
        let deadline = Instant::now() + patience;
        loop {
            signal_group(&self.child, Signal::SIGTERM);
            let left = deadline.saturating_duration_since(Instant::now());
            let step = if repeat { left.min(REPEAT) } else { left };
            if let Some(status) = wait(&mut self.child, step)? {
                return Ok(status);
            }
            ensure!(
                Instant::now() < deadline,
                "{} did not end within {patience:?} of SIGTERM\n{}",
                self.name,
                self.log_tail()
            );
        }
    }

    /// Waits for the process to end by itself, at most `patience`, and gives what it wrote; an
    /// error when it takes longer, fails, or a signal asks this program to end.
    pub(crate) fn finish(mut self, patience: Duration, interrupt: &Interrupt) -> Result<String> {
        let deadline = Instant::now() + patience;
        loop {
            interrupt.check()?;
            if let Some(status) = wait(&mut self.child, POLL)? {
                ensure!(
                    status.success(),
                    "{} ended with {status}\n{}",
                    self.name,
                    self.log_tail()
                );
                return fs::read_to_string(&self.log)
                    .with_context(|| format!("cannot read what {} wrote", self.name));
            }
            ensure!(
                Instant::now() < deadline,
                "{} takes more than {patience:?}",
                self.name
            );
        }
    }

    /// The last lines that the process wrote.
    fn log_tail(&self) -> String {
        let text = fs::read(&self.log).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(15)..].join("\n")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if !matches!(self.child.try_wait(), Ok(Some(_))) {
            signal_group(&self.child, Signal::SIGTERM);
            if matches!(wait(&mut self.child, DROP_PATIENCE), Ok(Some(_))) {
                return;
            }
        }
        // Also when the leader has ended by itself: a worker of it may be left.
        signal_group(&self.child, Signal::SIGKILL);
        let _ = self.child.wait();
    }
}

/// Starts `command` in a process group of its own (so that a Ctrl-C at the terminal reaches this
/// program only, which then ends things in order), on the given CPUs, and bound to this thread's
/// life: if this program is killed, the kernel sends the child SIGTERM.
fn spawn_bound(command: &mut Command, cpus: Option<CpuSet>) -> std::io::Result<Child> {
    command.process_group(0);
    // SAFETY: the closure runs between fork and exec and makes two plain system calls; it neither
    // allocates nor takes a lock, and owns all it uses.
    unsafe {
        command.pre_exec(move || {
            prctl::set_pdeathsig(Signal::SIGTERM)?;
            if let Some(cpus) = &cpus {
                sched_setaffinity(Pid::from_raw(0), cpus)?;
            }
            Ok(())
        });
    }
    command.spawn()
}

/// Waits for the end of `child`, at most `patience`; `None` when it is still running then.
fn wait(child: &mut Child, patience: Duration) -> Result<Option<ExitStatus>> {
    let deadline = Instant::now() + patience;
    loop {
        if let Some(status) = child.try_wait().context("cannot wait for a process")? {
            return Ok(Some(status));
        }
        if Instant::now() >= deadline {
            return Ok(None);
        }
        thread::sleep(POLL);
    }
}

/// Signals the whole group of `child`; that it has already ended is no error.
fn signal_group(child: &Child, signal: Signal) {
    if let Ok(id) = i32::try_from(child.id()) {
        let _ = killpg(Pid::from_raw(id), signal);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, log: &Path) -> Process {
        Process::spawn("sh", Command::new("sh").args(["-c", script]), log, None).unwrap()
    }

    #[test]
    fn a_dropped_process_is_gone() {
        let dir = tempfile::tempdir().unwrap();
        let process = shell("sleep 600", &dir.path().join("log"));
        let proc = PathBuf::from(format!("/proc/{}", process.id()));
        assert!(proc.exists());
        drop(process);
        assert!(!proc.exists());
    }

    #[test]
    fn an_early_end_is_reported_with_its_log() {
        let dir = tempfile::tempdir().unwrap();
        let mut process = shell("echo no such key; exit 3", &dir.path().join("log"));
        wait(&mut process.child, Duration::from_secs(10)).unwrap();
        let error = process.ensure_alive().unwrap_err().to_string();
        assert!(
            error.contains("exit status: 3") && error.contains("no such key"),
            "{error}"
        );
    }

    #[test]
    fn one_that_ignores_the_signal_is_killed() {
        let dir = tempfile::tempdir().unwrap();
        let ready = dir.path().join("ready");
        let script = format!(
            "trap '' TERM; touch {}; while :; do sleep 1; done",
            ready.display()
        );
        let process = shell(&script, &dir.path().join("log"));
        let deadline = Instant::now() + Duration::from_secs(10);
        while !ready.exists() {
            assert!(Instant::now() < deadline, "the script did not start");
            thread::sleep(POLL);
        }
        let proc = PathBuf::from(format!("/proc/{}", process.id()));
        assert!(process.stop(Duration::from_millis(100), false).is_err());
        assert!(!proc.exists());
    }
}
