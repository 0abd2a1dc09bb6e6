//! What two threads share on the way of a hook. No free cores are needed for that: this program runs
//! itself under valgrind's lackey, which writes out each instruction and each access to memory, and
//! two threads run the same hook one after the other.
//!
//! A cache line that one of them writes and the other reads or writes, call by call, is what two cores
//! would take from each other. An atomic read-modify-write (on x86-64 an instruction with the prefix
//! `lock`, or `xchg` with memory) is what a lock or a shared reference count is made of.

use std::fs;
use std::io::{BufReader, Write};
use std::process::Command;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Args;
use serde::Serialize;

use super::counted::{argument, own_program};
use super::cpu::per_call;
use super::memory;
use super::places;
use super::requests;
use super::trace::{MARK, Module, Sites, Trace};
use super::work::{Shared, Work, Worker};
use crate::interrupt::Interrupt;
use crate::process::Process;

/// Calls in each thread before those that are looked at.
const WARMUP: u64 = requests::COUNT as u64;
/// How long the traced program may take to end after its last line.
const PATIENCE: Duration = Duration::from_secs(30);
/// What happens less often than so often in a call belongs to no call: a thread's allocator going
/// back to its arena, a thread that ends.
const RARE: f64 = 0.25;

/// The command that [`look`] runs under lackey.
#[derive(Args)]
pub(crate) struct TraceOptions {
    #[arg(long, value_enum)]
    work: Work,
    #[arg(long)]
    calls: u64,
}

/// Runs the work in this thread and in a second one that comes and goes before, and marks on standard
/// error, where lackey writes too, when the calls of either begin and end.
pub(crate) fn run_trace(options: &TraceOptions) -> Result<()> {
    memory::bound_hooks();
    let maps = fs::read_to_string("/proc/self/maps").context("cannot read the memory map")?;
    for line in maps.lines() {
        mark(&format!("map {line}"))?;
    }
    let shared = Shared::new(options.work)?;
    // Both are there before either begins, so that neither takes memory that the other gave back.
    let mut own = prepare(&shared)?;
    let other = thread::scope(|scope| {
        // This thread waits meanwhile: the trace doesn't say whose instruction it shows.
        let other = scope.spawn(|| phase(&mut prepare(&shared)?, options.calls));
        other.join().unwrap_or_else(|_| bail!("a thread panicked"))
    });
    other?;
    phase(&mut own, options.calls)
}

fn prepare(shared: &Shared) -> Result<Worker<'_>> {
    let mut worker = shared.worker()?;
    worker.run(WARMUP)?;
    Ok(worker)
}

fn phase(worker: &mut Worker, calls: u64) -> Result<()> {
    mark("begin")?;
    worker.run(calls)?;
    mark("end")
}

/// Writes one line in one piece.
fn mark(text: &str) -> Result<()> {
    let line = format!("{MARK}{text}\n");
    std::io::stderr()
        .write_all(line.as_bytes())
        .context("cannot write to standard error")
}

/// What happens at one place of the code.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Site {
    /// Function and line.
    pub(crate) place: String,
    /// How often, for each call.
    pub(crate) per_call: f64,
}

/// What two threads share.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Sharing {
    /// What they do.
    pub(crate) work: Work,
    /// Cache lines that one of them writes and the other reads or writes.
    pub(crate) shared_lines: usize,
    /// Who writes them.
    pub(crate) writes: Vec<Site>,
    /// Atomic read-modify-writes, on shared lines and others; `None` where they can't be told.
    pub(crate) atomics: Option<Vec<Site>>,
}

/// Looks at `calls` calls of each of two threads.
pub(super) fn look(work: Work, calls: u64, interrupt: &Interrupt) -> Result<Sharing> {
    let dir = tempfile::tempdir().context("cannot create a folder")?;
    let mut command = Command::new("valgrind");
    command
        .args(["--tool=lackey", "--trace-mem=yes", "--basic-counts=no"])
        .arg(own_program()?)
        .arg("hook-trace")
        .arg(format!("--work={}", argument(work)))
        .arg(format!("--calls={calls}"));
    let log = dir.path().join("output.log");
    let (process, output) = Process::spawn_piped("lackey", &mut command, &log)?;
    let trace = Trace::read(BufReader::with_capacity(1 << 20, output), interrupt)
        .with_context(|| format!("the trace of {}", work.name()))?;
    process.finish(PATIENCE, interrupt)?;
    let (shared_lines, writes) = trace.shared_lines(at_least(calls));
    let atomics = trace.atomics()?;
    Ok(Sharing {
        work,
        shared_lines,
        writes: sites(&trace.modules, writes, calls),
        atomics: atomics.map(|found| sites(&trace.modules, found, calls)),
    })
}

/// How often in `calls` calls is more than [`RARE`].
fn at_least(calls: u64) -> u64 {
    ((calls as f64 * RARE).ceil() as u64).max(1)
}

/// Names what both threads did in `calls` calls each, the most frequent first.
fn sites(modules: &[Module], found: Sites, calls: u64) -> Vec<Site> {
    let found = found
        .into_iter()
        .map(|(address, count)| (address, per_call(count as f64, calls * 2)));
    let frequent: Vec<(u64, f64)> = found.filter(|(_, per_call)| *per_call >= RARE).collect();
    let names = places::name(modules, frequent.iter().map(|(address, _)| *address));
    let mut sites: Vec<Site> = Vec::new();
    for (address, per_call) in frequent {
        let place = names
            .get(&address)
            .cloned()
            .unwrap_or_else(|| format!("{address:#x}"));
        match sites.iter_mut().find(|site| site.place == place) {
            Some(site) => site.per_call += per_call,
            None => sites.push(Site { place, per_call }),
        }
    }
    sites.sort_by(|a, b| {
        b.per_call
            .total_cmp(&a.per_call)
            .then_with(|| a.place.cmp(&b.place))
    });
    sites
}
