//! One turn: a contestant, three fresh targets, the load, and the events.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use serde::Serialize;

use super::load::{self, Plan, Sample};
use super::schedule::{Event, Phase, Schedule};
use super::target::Target;
use super::windows::{Stretch, between, windows};
use crate::interrupt::Interrupt;

/// From the start of the threads to the first request.
const LEAD: Duration = Duration::from_millis(100);
/// How often a signal is looked for.
const STEP: Duration = Duration::from_millis(100);

/// What is the same in every turn.
#[derive(Debug, Clone, Copy)]
pub(super) struct Course {
    /// When what happens.
    pub(super) schedule: Schedule,
    /// Load before that, which doesn't count.
    pub(super) warmup: Duration,
    /// Requests in a second.
    pub(super) rate: u64,
    /// Connections of the load.
    pub(super) connections: usize,
    /// How long a target takes for an answer.
    pub(super) delay: Duration,
    /// How many times longer when it is slow.
    pub(super) slow_factor: u32,
}

/// Requests that reached the targets, those of failed tries included and health checks not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(super) struct Reached {
    /// The one that is killed.
    pub(super) killed: u64,
    /// The one that becomes slow.
    pub(super) slowed: u64,
    /// The one that nothing happens to.
    pub(super) other: u64,
}

/// What happened in a phase.
#[derive(Debug, Clone, Serialize)]
pub(super) struct PhaseResult {
    /// Which.
    pub(super) phase: Phase,
    /// Seconds from the first measured request.
    pub(super) start_s: f64,
    /// All of it.
    pub(super) whole: Stretch,
    /// By half seconds.
    pub(super) windows: Vec<Stretch>,
    /// Who got the requests.
    pub(super) reached: Reached,
}

/// The result of a turn.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Turn {
    /// The round, from 1.
    pub(super) round: usize,
    /// Its length.
    pub(super) seconds: f64,
    /// All phases, in order.
    pub(super) phases: Vec<PhaseResult>,
    /// How often what went wrong.
    pub(super) failures: BTreeMap<String, u64>,
    /// Requests that failed in the warm-up.
    pub(super) warmup_errors: u64,
    /// Health checks that the targets got, from the end of the warm-up on.
    pub(super) checks: u64,
    /// Milliseconds by which the latest event came late.
    pub(super) latest_event_ms: f64,
}

impl Turn {
    /// Requests that were due.
    pub(super) fn requests(&self) -> u64 {
        self.phases.iter().map(|phase| phase.whole.requests).sum()
    }

    /// Those of them that failed.
    pub(super) fn errors(&self) -> u64 {
        self.phases.iter().map(|phase| phase.whole.errors).sum()
    }

    /// The phase, if it was played.
    pub(super) fn phase(&self, phase: Phase) -> Option<&PhaseResult> {
        self.phases.iter().find(|one| one.phase == phase)
    }
}

/// Three targets with their parts, which go round so that none is always the first of a list.
pub(super) struct Targets {
    all: [Target; 3],
    killed: usize,
    slowed: usize,
    other: usize,
    course: Course,
}

impl Targets {
    /// Starts them for this round.
    pub(super) fn start(course: Course, round: usize) -> Result<Self> {
        let start = || Target::start(course.delay);
        Ok(Self {
            all: [start()?, start()?, start()?],
            killed: round % 3,
            slowed: (round + 1) % 3,
            other: (round + 2) % 3,
            course,
        })
    }

    /// Where they listen.
    pub(super) fn addresses(&self) -> [SocketAddr; 3] {
        [0, 1, 2].map(|index: usize| self.all[index].address())
    }

    fn happen(&mut self, event: Event) -> Result<()> {
        let Course {
            delay, slow_factor, ..
        } = self.course;
        match event {
            Event::Kill => self.all[self.killed].kill(),
            Event::Back => self.all[self.killed].revive()?,
            Event::Slow => self.all[self.slowed].set_delay(delay * slow_factor),
            Event::Normal => self.all[self.slowed].set_delay(delay),
        }
        Ok(())
    }

    fn count(&self) -> Count {
        Count {
            reached: Reached {
                killed: self.all[self.killed].requests(),
                slowed: self.all[self.slowed].requests(),
                other: self.all[self.other].requests(),
            },
            checks: self.all.iter().map(Target::checks).sum(),
        }
    }
}

/// What the targets have got so far.
#[derive(Clone, Copy)]
struct Count {
    reached: Reached,
    checks: u64,
}

impl Reached {
    fn since(self, earlier: Self) -> Self {
        Self {
            killed: self.killed - earlier.killed,
            slowed: self.slowed - earlier.slowed,
            other: self.other - earlier.other,
        }
    }
}

/// Plays the events while the load asks `address`.
///
/// # Errors
/// When the harness fails, and after a signal; whatever the proxy does is a result.
pub(super) fn play(
    address: SocketAddr,
    targets: &mut Targets,
    round: usize,
    interrupt: &Interrupt,
) -> Result<Turn> {
    let course = targets.course;
    let start = Instant::now() + LEAD;
    let plan = Plan {
        address,
        rate: course.rate,
        start,
        duration: course.warmup + course.schedule.length(),
        connections: course.connections,
    };
    thread::scope(|scope| {
        let load = scope.spawn(|| load::run(plan, interrupt));
        let played = events(targets, course.schedule, start + course.warmup, interrupt);
        let samples = load
            .join()
            .unwrap_or_else(|_| Err(anyhow!("the load panicked")));
        let (mut counts, latest) = played?;
        let samples = samples?;
        counts.push(targets.count());
        Ok(result(course, round, &samples, &counts, latest))
    })
}

/// Plays the events; gives what the targets had got at the beginning of each phase, and by how much the
/// latest event was late.
fn events(
    targets: &mut Targets,
    schedule: Schedule,
    zero: Instant,
    interrupt: &Interrupt,
) -> Result<(Vec<Count>, Duration)> {
    wait_until(zero, interrupt)?;
    let mut counts = vec![targets.count()];
    let mut latest = Duration::ZERO;
    for (event, time) in schedule.events() {
        wait_until(zero + time, interrupt)?;
        counts.push(targets.count());
        targets.happen(event)?;
        latest = latest.max((zero + time).elapsed());
    }
    Ok((counts, latest))
}

fn wait_until(time: Instant, interrupt: &Interrupt) -> Result<()> {
    loop {
        interrupt.check()?;
        let left = time.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(());
        }
        thread::sleep(left.min(STEP));
    }
}

fn result(
    course: Course,
    round: usize,
    samples: &[Sample],
    counts: &[Count],
    latest: Duration,
) -> Turn {
    // From here on times count from the end of the warm-up.
    let (warmup, measured): (Vec<Sample>, Vec<Sample>) = samples
        .iter()
        .partition(|sample| sample.due < course.warmup);
    let measured: Vec<Sample> = measured
        .into_iter()
        .map(|sample| Sample {
            due: sample.due - course.warmup,
            ..sample
        })
        .collect();
    let phases = course
        .schedule
        .phases()
        .into_iter()
        .zip(counts.windows(2))
        .map(|((phase, start, end), counts)| PhaseResult {
            phase,
            start_s: start.as_secs_f64(),
            whole: Stretch::of(between(&measured, start, end)),
            windows: windows(&measured, start, end),
            reached: counts[1].reached.since(counts[0].reached),
        })
        .collect();
    let checks = |count: Option<&Count>| count.map_or(0, |count| count.checks);
    Turn {
        round,
        seconds: course.schedule.length().as_secs_f64(),
        phases,
        failures: load::failures(measured.iter()),
        warmup_errors: Stretch::of(warmup.iter()).errors,
        checks: checks(counts.last()) - checks(counts.first()),
        latest_event_ms: latest.as_secs_f64() * 1e3,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COURSE: Course = Course {
        schedule: Schedule::new(Duration::from_secs(3)),
        warmup: Duration::from_millis(200),
        rate: 200,
        connections: 64,
        delay: Duration::from_millis(2),
        slow_factor: 20,
    };

    /// The load asks one target itself, as through a proxy that does nothing.
    fn without_a_proxy(index: fn(&Targets) -> usize) -> Turn {
        let mut targets = Targets::start(COURSE, 1).unwrap();
        let address = targets.addresses()[index(&targets)];
        play(address, &mut targets, 1, &Interrupt::never()).unwrap()
    }

    #[test]
    fn a_killed_target_fails_what_is_sent_to_it_until_it_is_back() {
        let turn = without_a_proxy(|targets| targets.killed);
        assert_eq!((turn.requests(), turn.warmup_errors), (600, 0));
        let errors = |phase| turn.phase(phase).unwrap().whole.errors;
        // 150 requests were due while it was away; a machine that is late may have sent some of them
        // only when it was back.
        assert!(errors(Phase::Killed) > 0);
        assert_eq!(errors(Phase::Normal), 0);
        let named: u64 = turn.failures.values().sum();
        assert_eq!(named, turn.errors());
        assert!(
            turn.failures.contains_key("no connection"),
            "{:?}",
            turn.failures
        );
        let reached = |phase| turn.phase(phase).unwrap().reached;
        assert!(reached(Phase::Before).killed > 0 && reached(Phase::Slow).killed > 0);
        assert_eq!(
            reached(Phase::Before).slowed + reached(Phase::Slow).other,
            0
        );
    }

    #[test]
    fn a_slow_target_is_late_by_its_factor() {
        let turn = without_a_proxy(|targets| targets.slowed);
        assert_eq!((turn.requests(), turn.errors()), (600, 0));
        let slow = turn.phase(Phase::Slow).unwrap();
        assert!(slow.whole.p99_us.unwrap() >= 40_000, "{slow:?}");
        // 0.75 s are one window, which takes the rest too.
        assert_eq!(slow.windows, std::slice::from_ref(&slow.whole));
        assert!(turn.phase(Phase::Before).unwrap().reached.slowed > 0);
    }

    #[test]
    fn the_parts_go_round() {
        for part in [
            |targets: &Targets| targets.killed,
            |targets: &Targets| targets.slowed,
            |targets: &Targets| targets.other,
        ] {
            let mut seen: Vec<_> = (1..=3)
                .map(|round| part(&Targets::start(COURSE, round).unwrap()))
                .collect();
            seen.sort_unstable();
            assert_eq!(seen, [0, 1, 2]);
        }
    }

    #[test]
    fn a_signal_ends_a_turn() {
        let mut targets = Targets::start(COURSE, 1).unwrap();
        let address = targets.addresses()[0];
        assert!(play(address, &mut targets, 1, &Interrupt::arrived()).is_err());
    }
}
