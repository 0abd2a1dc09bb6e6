//! The jobs through proxies: what a request costs more at the host with the hook than at the one without,
//! in the same process.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde::Serialize;

use super::cases;
use super::job::Job;
use super::wire::{self, hooked};
use crate::callgrind::callgrind_total;
use crate::cli::Common;
use crate::client::Client;
use crate::instructions::{STOP_PATIENCE as COUNTED_STOP, TIMEOUT};
use crate::interrupt::Interrupt;
use crate::load;
use crate::peers::{Field, Peer, Side};
use crate::procfs::ProcessTree;
use crate::report::Skipped;
use crate::run::{STOP_PATIENCE, turn_order};
use crate::start::{Running, Wrapper};
use crate::stats::Spread;
use crate::turn::ensure_length;
use crate::wrk::Wrk;

const CONNECTIONS: usize = 50;
/// Requests to each host before those whose instructions count: LuaJIT compiles, pools are filled.
const WARMUP_REQUESTS: u64 = 300;

/// How it is measured.
pub(super) struct Plan {
    /// Rounds; in each, every job has one turn in each proxy.
    pub(super) rounds: usize,
    /// Pairs of loads in a turn, one for each host.
    pub(super) pairs: usize,
    /// Seconds of a load.
    pub(super) seconds: u64,
    /// Requests whose instructions are counted, if they are.
    pub(super) counted: Option<u64>,
    /// The `edgewright` binary, if it isn't the one beside this program.
    pub(super) edgewright: Option<PathBuf>,
}

/// What a request costs in one turn, in microseconds of CPU time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Turn {
    /// Without the hook, the median of the loads.
    pub(crate) plain_us: f64,
    /// What it is more with the hook, the median of the pairs.
    pub(crate) more_us: f64,
}

/// A job in one proxy.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Row {
    /// The job.
    pub(crate) job: Job,
    /// Who does it.
    pub(crate) side: Side,
    /// One a round.
    pub(crate) turns: Vec<Turn>,
    /// Instructions in user space that a request costs more with the hook.
    pub(crate) instructions: Option<f64>,
}

/// Measures these jobs, and gives what can't be run.
pub(super) fn compare(
    jobs: &[Job],
    plan: &Plan,
    interrupt: Interrupt,
) -> Result<(Vec<Row>, Vec<Skipped>)> {
    let common = Common::with_edgewright(plan.edgewright.clone());
    let field = common.field(CONNECTIONS, interrupt)?;
    let mut skipped = Vec::new();
    let mut rows = Vec::new();
    for side in Side::ALL {
        if let Some(why) = Peer::doing(Job::Empty, side).missing(&field.programs) {
            let name = side.name();
            skipped.push(Skipped { name, why });
            continue;
        }
        rows.extend(jobs.iter().map(|&job| Row {
            job,
            side,
            turns: Vec::new(),
            instructions: None,
        }));
    }
    ensure!(
        !rows.is_empty(),
        "neither edgewright nor nginx with Lua is here"
    );
    let wrk = Wrk::new(Path::new("wrk"), 1, CONNECTIONS, None)?;
    for round in 1..=plan.rounds {
        for position in 0..rows.len() {
            let count = rows.len();
            let row = &mut rows[turn_order(position, round, count)];
            eprintln!(
                "round {round}/{}: {}, {}",
                plan.rounds,
                row.job.name(),
                row.side.name()
            );
            let turn = turn(&field, &wrk, row, plan)
                .with_context(|| format!("{}, {}", row.job.name(), row.side.name()))?;
            row.turns.push(turn);
        }
    }
    if let Some(requests) = plan.counted {
        for row in &mut rows {
            eprintln!("counting: {}, {}", row.job.name(), row.side.name());
            let found = instructions(&field, row, requests)
                .with_context(|| format!("{}, {}", row.job.name(), row.side.name()))?;
            row.instructions = Some(found);
        }
    }
    Ok((rows, skipped))
}

fn turn(field: &Field, wrk: &Wrk, row: &Row, plan: &Plan) -> Result<Turn> {
    let peer = Peer::doing(row.job, row.side);
    let running = Running::start(&peer, field, Wrapper::None)?;
    let load = Load {
        field,
        wrk,
        address: running.address(),
        answer_length: wire::check(row.job, running.address())?,
        processes: running.processes()?,
    };
    let plain = cases::on_the_wire(row.job).request;
    let hooked = hooked(&plain);
    // The first ones count for nothing.
    load.cost(&plain, plan.seconds)?;
    load.cost(&hooked, plan.seconds)?;
    let (mut without, mut more) = (Vec::new(), Vec::new());
    for pair in 0..plan.pairs {
        // What changes with time falls on either in turn.
        let (plain_us, hooked_us) = if pair % 2 == 0 {
            let plain_us = load.cost(&plain, plan.seconds)?;
            (plain_us, load.cost(&hooked, plan.seconds)?)
        } else {
            let hooked_us = load.cost(&hooked, plan.seconds)?;
            (load.cost(&plain, plan.seconds)?, hooked_us)
        };
        without.push(plain_us);
        more.push(hooked_us - plain_us);
    }
    running.stop(STOP_PATIENCE)?;
    let median = |values| Spread::of(values).map(|spread| spread.median);
    Ok(Turn {
        plain_us: median(without).context("no pair")?,
        more_us: median(more).context("no pair")?,
    })
}

/// A proxy under load.
struct Load<'f> {
    field: &'f Field,
    wrk: &'f Wrk,
    address: SocketAddr,
    answer_length: usize,
    processes: ProcessTree,
}

impl Load<'_> {
    /// Microseconds of CPU time for each request. One that is refused is an error.
    fn cost(&self, request: &load::Request, seconds: u64) -> Result<f64> {
        let before = self.processes.cpu_clock()?;
        let interrupt = &self.field.interrupt;
        let load = self.wrk.send(request, self.address, seconds, interrupt)?;
        let taken = self.processes.cpu_clock()?.saturating_sub(before);
        ensure!(
            load.errors() == 0 && load.completed() > 0,
            "numbers with errors are no result: {load:?}"
        );
        ensure_length(&load, self.answer_length)?;
        Ok(taken.as_secs_f64() * 1e6 / load.completed() as f64)
    }
}

/// Two runs, one of which sends `requests` more to the host with the hook, the other one to that without.
fn instructions(field: &Field, row: &Row, requests: u64) -> Result<f64> {
    let plain = cases::on_the_wire(row.job).request;
    let hooked = hooked(&plain);
    let total = |measured: &load::Request| -> Result<f64> {
        let dir = tempfile::tempdir().context("cannot create a folder")?;
        let file = dir.path().join("counts");
        let peer = Peer::doing(row.job, row.side);
        let running = Running::start(&peer, field, Wrapper::Callgrind(&file))?;
        let mut client = Client::connect(running.address(), TIMEOUT)?;
        for (request, count) in [
            (&plain, WARMUP_REQUESTS),
            (&hooked, WARMUP_REQUESTS),
            (measured, requests),
        ] {
            let bytes = request.bytes();
            for _ in 0..count {
                field.interrupt.check()?;
                let answer = client.exchange(&bytes)?;
                ensure!(
                    answer.status == 200 && answer.body.len() == load::BODY_LENGTH,
                    "status {} with {} bytes",
                    answer.status,
                    answer.body.len()
                );
            }
        }
        drop(client);
        running.stop(COUNTED_STOP)?;
        let text = fs::read_to_string(&file).context("callgrind left no file")?;
        Ok(callgrind_total(&text)? as f64)
    };
    Ok((total(&hooked)? - total(&plain)?) / requests as f64)
}
