//! The lines that a child process wrote to stderr.

use std::io::{BufRead, BufReader, Read};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// So many lines are kept; a process that floods its log must not take the tests' memory.
const KEPT: usize = 100_000;

/// Collects lines as they come. Clones share them.
#[derive(Clone, Default)]
pub struct Log(Arc<Shared>);

#[derive(Default)]
struct Shared {
    lines: Mutex<Vec<String>>,
    changed: Condvar,
}

impl Log {
    /// Starts a thread that reads `from` to its end; joining it means that every line is here.
    pub fn follow(from: impl Read + Send + 'static) -> (Log, JoinHandle<()>) {
        let log = Log::default();
        let writer = log.clone();
        let thread = std::thread::spawn(move || {
            let mut from = BufReader::new(from);
            let mut line = Vec::new();
            while from.read_until(b'\n', &mut line).is_ok_and(|n| n > 0) {
                let text = String::from_utf8_lossy(&line).trim_end().to_owned();
                let mut lines = writer.0.lines.lock().unwrap();
                if lines.len() < KEPT {
                    lines.push(text);
                    writer.0.changed.notify_all();
                }
                drop(lines);
                line.clear();
            }
        });
        (log, thread)
    }

    /// The first line that contains `text`, as soon as there is one.
    pub fn wait(&self, text: &str, limit: Duration) -> String {
        self.wait_nth(text, 1, limit)
    }

    /// The `nth` line (from 1) that contains `text`, as soon as there is one.
    pub fn wait_nth(&self, text: &str, nth: usize, limit: Duration) -> String {
        let find = |lines: &Vec<String>| {
            lines
                .iter()
                .filter(|line| line.contains(text))
                .nth(nth - 1)
                .cloned()
        };
        let lines = self.0.lines.lock().unwrap();
        let (lines, _) = self
            .0
            .changed
            .wait_timeout_while(lines, limit, |lines| find(lines).is_none())
            .unwrap();
        match find(&lines) {
            Some(line) => line,
            None => {
                let all = lines.join("\n");
                drop(lines);
                panic!("no line {nth} with {text:?} within {limit:?} in:\n{all}")
            }
        }
    }

    /// How many lines so far contain `text`.
    pub fn count(&self, text: &str) -> usize {
        self.matching(text).len()
    }

    /// The lines so far that contain `text`.
    pub fn matching(&self, text: &str) -> Vec<String> {
        let lines = self.0.lines.lock().unwrap();
        lines
            .iter()
            .filter(|line| line.contains(text))
            .cloned()
            .collect()
    }

    /// The first lines, as many as a person reads.
    pub fn text(&self) -> String {
        let lines = self.0.lines.lock().unwrap();
        let shown = lines.len().min(200);
        let mut text = lines[..shown].join("\n");
        if shown < lines.len() {
            text += &format!("\n.. and {} more lines", lines.len() - shown);
        }
        text
    }
}
