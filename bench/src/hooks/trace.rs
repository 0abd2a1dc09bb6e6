//! Reads what valgrind's lackey writes with `--trace-mem=yes`: a line for each instruction (`I`), load
//! (` L`), store (` S`) and load with store (` M`), each with address and size.

use std::collections::HashMap;
use std::fs::File;
use std::io::BufRead;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use anyhow::{Context, Result, bail, ensure};

use crate::interrupt::Interrupt;

/// What the traced program's own lines begin with.
pub(super) const MARK: &str = "@ ";
/// Bytes of a cache line, log2.
const LINE_BITS: u32 = 6;
/// Lines between two looks at whether the run is to end.
const INTERRUPT_INTERVAL: u64 = 1 << 20;
/// Lines of something else that are kept for an error message.
const KEPT: usize = 10;

/// A file that is mapped as code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Module {
    /// Its path.
    pub(super) path: PathBuf,
    /// Where its first byte is mapped: the addresses in its own tables count from here.
    pub(super) base: u64,
    code: std::ops::Range<u64>,
    /// The offset in the file of the first byte of `code`.
    offset: u64,
}

impl Module {
    /// Whether an instruction is in it.
    pub(super) fn holds(&self, instruction: u64) -> bool {
        self.code.contains(&instruction)
    }
}

/// The calls of one thread.
#[derive(Debug, Default)]
pub(super) struct Phase {
    /// Instructions: their size and how often they were executed.
    executed: HashMap<u64, (u64, u64)>,
    /// Stores into a cache line by an instruction.
    writes: HashMap<(u64, u64), u64>,
    /// Loads and stores in a cache line.
    accesses: HashMap<u64, u64>,
    complete: bool,
}

/// A whole trace.
#[derive(Debug, Default)]
pub(super) struct Trace {
    /// The program and its libraries.
    pub(super) modules: Vec<Module>,
    /// The calls of either thread.
    pub(super) phases: [Phase; 2],
}

/// How often an instruction did something.
pub(super) type Sites = HashMap<u64, u64>;

impl Trace {
    /// Reads to the end.
    ///
    /// # Errors
    /// When the calls of one thread are missing or cut off, or a signal asks this program to end.
    pub(super) fn read(mut lines: impl BufRead, interrupt: &Interrupt) -> Result<Self> {
        let mut trace = Self::default();
        let mut reader = Reader::default();
        let mut others = Vec::new();
        let mut line = Vec::new();
        let mut count = 0_u64;
        loop {
            line.clear();
            let read = lines.read_until(b'\n', &mut line);
            if read.context("cannot read the trace")? == 0 {
                break;
            }
            count += 1;
            if count.is_multiple_of(INTERRUPT_INTERVAL) {
                interrupt.check()?;
            }
            if reader.take(line.trim_ascii_end(), &mut trace)?.is_none() && others.len() < KEPT {
                others.push(String::from_utf8_lossy(&line).into_owned());
            }
        }
        ensure!(
            trace.phases.iter().all(|phase| phase.complete),
            "the traced program did not get through:\n{}",
            others.concat()
        );
        Ok(trace)
    }

    /// How often each atomic read-modify-write was executed in both phases; `None` on another
    /// machine than x86-64, whose instructions are all that this knows.
    pub(super) fn atomics(&self) -> Result<Option<Sites>> {
        if !cfg!(target_arch = "x86_64") {
            return Ok(None);
        }
        let mut found = Sites::new();
        for module in &self.modules {
            let file = File::open(&module.path)
                .with_context(|| format!("cannot read {}", module.path.display()))?;
            for (&address, &(size, count)) in self.phases.iter().flat_map(|phase| &phase.executed) {
                if !module.holds(address) {
                    continue;
                }
                let mut bytes = vec![0; usize::try_from(size).unwrap_or(0)];
                file.read_exact_at(&mut bytes, address - module.code.start + module.offset)
                    .with_context(|| format!("cannot read code of {}", module.path.display()))?;
                if is_atomic(&bytes) {
                    *found.entry(address).or_default() += count;
                }
            }
        }
        Ok(Some(found))
    }

    /// The cache lines that one thread writes and the other reads or writes, both at least `least`
    /// times, and how often which instructions write them.
    pub(super) fn shared_lines(&self, least: u64) -> (usize, Sites) {
        let [first, second] = &self.phases;
        let mut lines: Vec<u64> = first
            .lines_written(least)
            .filter(|line| second.accesses_of(*line) >= least)
            .chain(
                second
                    .lines_written(least)
                    .filter(|line| first.accesses_of(*line) >= least),
            )
            .collect();
        lines.sort_unstable();
        lines.dedup();
        let mut sites = Sites::new();
        for (&(line, instruction), &count) in self.phases.iter().flat_map(|phase| &phase.writes) {
            if lines.binary_search(&line).is_ok() {
                *sites.entry(instruction).or_default() += count;
            }
        }
        (lines.len(), sites)
    }
}

impl Phase {
    fn lines_written(&self, least: u64) -> impl Iterator<Item = u64> {
        let mut sums: HashMap<u64, u64> = HashMap::new();
        for (&(line, _), &count) in &self.writes {
            *sums.entry(line).or_default() += count;
        }
        sums.into_iter()
            .filter(move |(_, sum)| *sum >= least)
            .map(|(line, _)| line)
    }

    fn accesses_of(&self, line: u64) -> u64 {
        self.accesses.get(&line).copied().unwrap_or(0)
    }

    fn access(&mut self, instruction: u64, address: u64, size: u64, writes: bool) {
        let last = address.saturating_add(size.saturating_sub(1));
        for line in (address >> LINE_BITS)..=(last >> LINE_BITS) {
            *self.accesses.entry(line).or_default() += 1;
            if writes {
                *self.writes.entry((line, instruction)).or_default() += 1;
            }
        }
    }
}

/// Where in the trace the reader is.
#[derive(Default)]
struct Reader {
    /// The phase that has begun and not ended.
    open: Option<usize>,
    begun: usize,
    instruction: u64,
    /// Where the files begin that are mapped so far.
    bases: HashMap<PathBuf, u64>,
}

impl Reader {
    /// Takes one line; `None` when it is none of a trace.
    fn take(&mut self, line: &[u8], trace: &mut Trace) -> Result<Option<()>> {
        let Some((kind, rest)) = line.split_at_checked(2) else {
            return Ok(None);
        };
        let writes = match kind {
            b"I " | b" L" => false,
            b" S" | b" M" => true,
            b"==" => return Ok(Some(())),
            _ if kind == MARK.as_bytes() => {
                let text = String::from_utf8_lossy(rest);
                return self.mark(&text, trace).map(Some);
            }
            _ => return Ok(None),
        };
        let Some(open) = self.open else {
            return Ok(Some(()));
        };
        let Some((address, size)) = parse(rest) else {
            bail!("not a line of a trace: {}", String::from_utf8_lossy(line));
        };
        let phase = &mut trace.phases[open];
        if kind == b"I " {
            self.instruction = address;
            phase.executed.entry(address).or_insert((size, 0)).1 += 1;
        } else {
            phase.access(self.instruction, address, size, writes);
        }
        Ok(Some(()))
    }

    fn mark(&mut self, text: &str, trace: &mut Trace) -> Result<()> {
        match text {
            "begin" => {
                ensure!(
                    self.open.is_none() && self.begun < trace.phases.len(),
                    "phases in disorder"
                );
                self.open = Some(self.begun);
                self.begun += 1;
            }
            "end" => {
                let open = self.open.take().context("an end without a beginning")?;
                trace.phases[open].complete = true;
            }
            _ => {
                let map = text.strip_prefix("map ").context("an unknown mark")?;
                trace.modules.extend(self.module(map));
            }
        }
        Ok(())
    }

    /// A line of /proc/PID/maps (proc(5)), when it maps code of a file.
    fn module(&mut self, text: &str) -> Option<Module> {
        let mut fields = text.split_whitespace();
        let (start, end) = fields.next()?.split_once('-')?;
        let permissions = fields.next()?;
        let offset = u64::from_str_radix(fields.next()?, 16).ok()?;
        // Then device, inode, and a path when it is a file.
        let path = PathBuf::from(fields.nth(2)?);
        if !path.is_absolute() {
            return None;
        }
        let start = u64::from_str_radix(start, 16).ok()?;
        let code = start..u64::from_str_radix(end, 16).ok()?;
        if offset == 0 {
            self.bases.entry(path.clone()).or_insert(start);
        }
        let base = *self.bases.get(&path)?;
        permissions.contains('x').then_some(Module {
            path,
            base,
            code,
            offset,
        })
    }
}

/// Address and size: `0401ab70,3`.
fn parse(text: &[u8]) -> Option<(u64, u64)> {
    let text = std::str::from_utf8(text).ok()?.trim_start();
    let (address, size) = text.split_once(',')?;
    Some((u64::from_str_radix(address, 16).ok()?, size.parse().ok()?))
}

/// Whether an instruction of x86-64 is an atomic read-modify-write: it has the prefix `lock`, or is
/// an `xchg` with memory, which locks by itself (Intel SDM volume 2, section 2.1.1 and XCHG).
fn is_atomic(instruction: &[u8]) -> bool {
    let mut bytes = instruction.iter().copied().peekable();
    while let Some(prefix) = bytes.next_if(|byte| {
        matches!(
            byte,
            0xf0 | 0xf2 | 0xf3 | 0x2e | 0x36 | 0x3e | 0x26 | 0x64 | 0x65 | 0x66 | 0x67
        )
    }) {
        if prefix == 0xf0 {
            return true;
        }
    }
    // REX.
    let _ = bytes.next_if(|byte| byte & 0xf0 == 0x40);
    let opcode = bytes.next();
    // The two highest bits of ModRM are 11 when the operand is a register.
    matches!(opcode, Some(0x86 | 0x87)) && bytes.next().is_some_and(|modrm| modrm >> 6 != 3)
}

#[cfg(test)]
#[path = "trace_tests.rs"]
mod tests;
