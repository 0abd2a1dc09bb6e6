//! What the pipeline tells about itself: `/status`, the metrics and readers of the log.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use edgewright_script::diagnostic::{Diagnostic, Severity};
use serde::Serialize;

use super::{Changes, Initial, Outcome};

/// How many errors of one attempt are spelled out in a log line; a file with a systematic mistake can have
/// hundreds. The outcome itself holds them all.
const ERRORS_SHOWN: usize = 8;

/// A snapshot of the pipeline.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ReloadStatus {
    /// The revision that serves.
    pub revision: String,
    /// When it was loaded, in seconds since 1970.
    pub loaded_at: f64,
    /// The last attempt after the load at start. A look that found the files unchanged is one only when it
    /// was asked for explicitly.
    pub last_attempt: Option<Attempt>,
    /// Why the last attempt failed, on one line; none when it didn't.
    pub last_error: Option<String>,
    /// Attempts since the start, by result. The load at start is not counted.
    pub counts: Counts,
    /// Errors of the file watcher since the start. None of them stops reloading.
    pub watch_errors: u64,
    /// Whether at least one folder can't be watched, so that changes in it are found by the poll alone.
    pub polling: bool,
    /// The folders under watch, sorted. A folder that doesn't exist is absent until it is back.
    pub watching: Vec<String>,
}

/// One attempt.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Attempt {
    /// When it began, in seconds since 1970.
    pub at: f64,
    /// How it ended.
    pub result: ResultKind,
    /// How long it took, in seconds.
    pub duration: f64,
    /// What it has changed; none when it put nothing in force.
    pub changes: Option<Changes>,
}

/// How an attempt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ResultKind {
    /// A new revision serves.
    Loaded,
    /// The files are those of the serving revision.
    Unchanged,
    /// The files were refused.
    Failed,
}

impl ResultKind {
    /// The word used in metrics and JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            ResultKind::Loaded => "loaded",
            ResultKind::Unchanged => "unchanged",
            ResultKind::Failed => "failed",
        }
    }
}

/// Attempts by result.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// A new revision was put in place.
    pub loaded: u64,
    /// The files were those of the serving revision.
    pub unchanged: u64,
    /// The files were refused.
    pub failed: u64,
}

impl ReloadStatus {
    pub(super) fn new(initial: &Initial) -> Self {
        ReloadStatus {
            revision: initial.revision.clone(),
            loaded_at: unix_seconds(initial.loaded_at),
            last_attempt: None,
            last_error: (!initial.refused.is_empty()).then(|| failure_text(&initial.refused)),
            counts: Counts::default(),
            watch_errors: 0,
            polling: false,
            watching: Vec::new(),
        }
    }

    /// Takes in the outcome of an attempt that began at `began` and took `duration`.
    pub(super) fn record(&mut self, outcome: &Outcome, began: SystemTime, duration: Duration) {
        let at = unix_seconds(began);
        self.last_attempt = Some(Attempt {
            at,
            result: outcome.kind(),
            duration: duration.as_secs_f64(),
            changes: match outcome {
                Outcome::Loaded { changes, .. } => Some(Changes::clone(changes)),
                _ => None,
            },
        });
        self.last_error = None;
        match outcome {
            Outcome::Loaded { revision, .. } => {
                self.counts.loaded += 1;
                self.revision.clone_from(revision);
                self.loaded_at = at + duration.as_secs_f64();
            }
            Outcome::Unchanged { .. } => self.counts.unchanged += 1,
            Outcome::Failed { errors } => {
                self.counts.failed += 1;
                self.last_error = Some(failure_text(errors));
            }
        }
    }
}

/// The errors on one line, warnings left out.
pub(crate) fn failure_text(diagnostics: &[Diagnostic]) -> String {
    let errors: Vec<String> = diagnostics
        .iter()
        .filter(|diagnostic| diagnostic.severity == Severity::Error)
        .map(Diagnostic::summary)
        .collect();
    if errors.is_empty() {
        return "no reason given".to_owned();
    }
    let mut text = errors[..errors.len().min(ERRORS_SHOWN)].join("; ");
    if errors.len() > ERRORS_SHOWN {
        text.push_str(&format!("; and {} more", errors.len() - ERRORS_SHOWN));
    }
    text
}

fn unix_seconds(time: SystemTime) -> f64 {
    // A clock before 1970 is a clock that isn't set yet.
    time.duration_since(UNIX_EPOCH)
        .map_or(0.0, |since| since.as_secs_f64())
}
