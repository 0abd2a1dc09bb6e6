//! Reading what the counters of instructions wrote.

use std::collections::HashSet;
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

/// How often the functions whose names fit were called, as a callgrind file tells it: a line `cfn=`
/// names the callee, and the next `calls=` says how often. A name is written out once and stands as a
/// number in parentheses from then on.
pub(crate) fn callgrind_calls(text: &str, fits: impl Fn(&str) -> bool) -> u64 {
    let mut fitting = HashSet::new();
    let mut counts = false;
    let mut sum = 0;
    for line in text.lines() {
        let (key, value) = line.split_once('=').unwrap_or((line, ""));
        match key {
            "fn" | "cfn" => {
                let (number, name) = value.split_once(' ').unwrap_or((value, ""));
                // What calls itself is listed again with a `'` and its depth.
                if fits(name.split('\'').next().unwrap_or(name)) {
                    fitting.insert(number);
                }
                counts = key == "cfn" && fitting.contains(number);
            }
            "calls" if counts => {
                let calls = value.split_whitespace().next();
                sum += calls
                    .and_then(|calls| calls.parse::<u64>().ok())
                    .unwrap_or(0);
            }
            _ => {}
        }
    }
    sum
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
    fn calls_are_added_up_by_name() {
        let text = "events: Ir\n\nfn=(1) main\n16 20\ncfn=(2) malloc\ncalls=5 0\n16 400\n\
                    cfn=(3) free\ncalls=7 0\n16 30\n\nfn=(2)\n3 80\ncfn=(4) malloc'2\ncalls=1 0\n\
                    3 9\n\nfn=(5) other\ncfn=(2)\ncalls=2 0\n9 100\ntotals: 1\n";
        assert_eq!(callgrind_calls(text, |name| name == "malloc"), 8);
        assert_eq!(callgrind_calls(text, |name| name == "free"), 7);
        assert_eq!(callgrind_calls(text, |name| name == "calloc"), 0);
    }

    #[test]
    fn perf_counts_or_says_why_not() {
        let text = "# started on Sun\n\n987654,,instructions:u,1000,100.00,,\n";
        assert_eq!(perf_total(text).unwrap(), 987_654);
        let error = perf_total("<not supported>,,instructions:u,0,100.00,,\n").unwrap_err();
        assert!(error.to_string().contains("not supported"));
    }
}
