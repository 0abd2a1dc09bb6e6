//! `[log]`: the log on standard error.

use std::fmt;

use serde::Deserialize;

/// `[log]`: the log on standard error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Log {
    /// `level`: the least important lines that are written. Default info.
    pub level: Level,
    /// `format`: how a line looks. Default text, for people.
    pub format: Format,
}

/// How important a log line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// Something does not work.
    Error,
    /// Something may soon not work, or is not as meant.
    Warn,
    /// What an operator wants to know of a normal day.
    #[default]
    Info,
    /// What a developer wants to know.
    Debug,
    /// Every step.
    Trace,
}

/// The word of the configuration, which `tracing` understands as well.
impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Error => "error",
            Self::Warn => "warn",
            Self::Info => "info",
            Self::Debug => "debug",
            Self::Trace => "trace",
        })
    }
}

/// How a log line looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    /// Words for people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}
