//! Reading what the counters of instructions wrote.

use std::collections::{BTreeMap, HashMap, HashSet};
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

/// The instructions of the functions whose names fit, what they call included, as a callgrind file tells it: behind `fn=`
/// come lines with a place and a cost, of the function's own, or behind `calls=` of what it has called. What calls itself
/// counts once.
pub(crate) fn callgrind_inclusive(
    text: &str,
    fits: impl Fn(&str) -> bool,
) -> BTreeMap<String, u64> {
    let mut names: HashMap<&str, &str> = HashMap::new();
    let mut costs: BTreeMap<String, u64> = BTreeMap::new();
    let (mut function, mut callee) = ("", "");
    let mut is_call = false;
    for line in text.lines() {
        let (key, value) = line.split_once('=').unwrap_or((line, ""));
        match key {
            "fn" | "cfn" => {
                let (number, name) = value.split_once(' ').unwrap_or((value, ""));
                if !name.is_empty() {
                    names.insert(number, name.split('\'').next().unwrap_or(name));
                }
                let name = names.get(number).copied().unwrap_or_default();
                match key {
                    "fn" => function = name,
                    _ => callee = name,
                }
            }
            "calls" => is_call = true,
            _ if line
                .starts_with(|first: char| first.is_ascii_digit() || "+-*".contains(first)) =>
            {
                let counts = !std::mem::take(&mut is_call) || callee != function;
                let cost = line
                    .split(' ')
                    .nth(1)
                    .and_then(|cost| cost.parse::<u64>().ok());
                if let (true, true, Some(cost)) = (counts, fits(function), cost) {
                    *costs.entry(function.to_owned()).or_default() += cost;
                }
            }
            _ => {}
        }
    }
    costs
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
    fn what_a_function_calls_is_its_own_too() {
        let text = "events: Ir\n\nfn=(1) one::serve\n16 20\ncfn=(2) malloc\ncalls=5 0\n16 400\n\
                    +3 7\n\nfn=(2)\n3 300\ncfn=(3) malloc'2\ncalls=1 0\n* 100\n\n\
                    fn=(3)\n3 100\n\nfn=(1)\n20 1\ntotals: 1\n";
        let costs = |part: &str| callgrind_inclusive(text, |name| name.contains(part));
        assert_eq!(
            costs("serve"),
            BTreeMap::from([("one::serve".to_owned(), 428)])
        );
        assert_eq!(
            costs("malloc"),
            BTreeMap::from([("malloc".to_owned(), 400)])
        );
        assert!(costs("free").is_empty());
    }

    #[test]
    fn perf_counts_or_says_why_not() {
        let text = "# started on Sun\n\n987654,,instructions:u,1000,100.00,,\n";
        assert_eq!(perf_total(text).unwrap(), 987_654);
        let error = perf_total("<not supported>,,instructions:u,0,100.00,,\n").unwrap_err();
        assert!(error.to_string().contains("not supported"));
    }
}
