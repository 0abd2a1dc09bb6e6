//! Reading what the counters of instructions wrote.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

/// The instructions in a callgrind file: its line `totals:`, or `summary:` in older versions.
pub(crate) fn callgrind_total(text: &str) -> Result<u64> {
    ["totals:", "summary:"]
        .iter()
        .find_map(|mark| text.lines().rev().find_map(|line| line.strip_prefix(mark)))
        .and_then(|rest| rest.split_whitespace().next()?.parse().ok())
        .context("no total in callgrind's file: did the program end in order?")
}

/// The count in the file of `perf stat -x,`: value, unit, event, and more.
pub(crate) fn perf_total(text: &str) -> Result<u64> {
    text.lines()
        .find(|line| {
            line.split(',')
                .nth(2)
                .is_some_and(|event| event.starts_with("instructions"))
        })
        .and_then(|line| line.split(',').next()?.parse().ok())
        .with_context(|| format!("perf counted no instructions:\n{text}"))
}

/// Whether this machine can count instructions in hardware. Virtual machines often can't.
pub(crate) fn perf_works() -> bool {
    Command::new("perf")
        .args(["stat", "-x,", "-e", "instructions:u", "--", "true"])
        .stdin(Stdio::null())
        .output()
        .is_ok_and(|output| perf_total(&String::from_utf8_lossy(&output.stderr)).is_ok())
}

/// Whether valgrind is there.
pub(crate) fn valgrind_works() -> bool {
    Command::new(Path::new("valgrind"))
        .arg("--version")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_total_of_a_file_counts() {
        let text =
            "version: 1\nevents: Ir\nsummary: 111\n\nfn=(1) main\n16 20\n\ntotals: 730000123\n";
        assert_eq!(callgrind_total(text).unwrap(), 730_000_123);
        assert_eq!(callgrind_total("events: Ir\nsummary: 42\n").unwrap(), 42);
        assert!(callgrind_total("events: Ir\nfn=(1) main\n").is_err());
    }

    #[test]
    fn perf_counts_or_says_why_not() {
        let text = "# started on Sun\n\n987654,,instructions:u,1000,100.00,,\n";
        assert_eq!(perf_total(text).unwrap(), 987_654);
        let error = perf_total("<not supported>,,instructions:u,0,100.00,,\n").unwrap_err();
        assert!(error.to_string().contains("not supported"));
    }
}
