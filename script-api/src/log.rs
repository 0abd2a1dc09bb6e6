//! Lines that programs log, and where they go.

use std::{fmt, sync::OnceLock};

use crate::{diagnostic::Place, program::HookKind};

/// How much a line matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// For finding mistakes.
    Debug,
    /// What happens.
    Info,
    /// What should not happen.
    Warn,
    /// What must not happen.
    Error,
}

impl Level {
    /// All of them, the least first.
    pub const ALL: [Self; 4] = [Self::Debug, Self::Info, Self::Warn, Self::Error];

    /// Its name in programs and logs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Warn => "warn",
            Self::Error => "error",
        }
    }

    /// The level with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.name() == name)
    }
}

/// One line. Shown, it is a line of `name=value` in which the program can forge nothing: texts are
/// quoted, and what is no printable character in them is escaped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// How much it matters.
    pub level: Level,
    /// The hook that logs it; `None` at the top level.
    pub hook: Option<HookKind>,
    /// Where in the program.
    pub place: Place,
    /// What the program says, 4 KiB at the most.
    pub message: String,
    /// What it adds, 32 at the most.
    pub fields: Vec<Field>,
}

/// What a line has besides its message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// Letters, digits, `_`, `-` and `.`, 64 bytes at the most.
    pub name: String,
    /// 1 KiB at the most.
    pub value: String,
    /// Whether it is a number, a bool or `()`, which are shown as they are.
    pub is_plain: bool,
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(hook) = self.hook {
            write!(f, "hook={} ", hook.name())?;
        }
        write!(f, "at={} message={:?}", self.place, self.message)?;
        for field in &self.fields {
            if field.is_plain {
                write!(f, " {}={}", field.name, field.value)?;
            } else {
                write!(f, " {}={:?}", field.name, field.value)?;
            }
        }
        Ok(())
    }
}

/// Takes the lines of programs.
#[derive(Debug, Clone, Copy)]
pub struct Sink {
    /// Whether lines of this level are wanted; others are not made.
    pub wants: fn(Level) -> bool,
    /// Takes a line. It must not wait: requests do.
    pub write: fn(&Line),
}

static SINK: OnceLock<Sink> = OnceLock::new();

/// Sends the lines of all programs of this process to `sink`. Without one they go nowhere. The
/// first call counts.
pub fn log_to(sink: Sink) {
    // Setting it twice changes nothing.
    let _ = SINK.set(sink);
}

/// Where lines of this level go.
pub(crate) fn sink_for(level: Level) -> Option<Sink> {
    let sink = SINK.get().copied();
    sink.filter(|sink| (sink.wants)(level))
}
