//! What a hook is there for, and what it says.

use anyhow::Result;
use clap::ValueEnum;
use edgewright_script::answer::Answer;
use serde::Serialize;

/// The job of a hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Job {
    /// Chooses one of two pools by a request header.
    Routing,
    /// Looks the API key up in a table of 1000, refuses unknown ones and tells the upstream whose
    /// key it was.
    Auth,
    /// Refuses clients outside a set of networks (`cidr(..)`).
    Networks,
    /// Refuses paths that don't match a pattern (`regex(..)`).
    Pattern,
}

impl Job {
    /// Its name in reports.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Routing => "routing",
            Self::Auth => "auth",
            Self::Networks => "networks",
            Self::Pattern => "pattern",
        }
    }
}

/// How a job is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Way {
    /// In Rust.
    Native,
    /// By edgewright's interpreter.
    Edgewright,
    /// By Rhai alone: `Engine::call_fn`, which runs the top level of the script for each call.
    CallFn,
    /// By Rhai alone, without the top level: `call_fn_with_options` and `eval_ast(false)`.
    CallFnBare,
}

impl Way {
    /// All ways, in the order of the report.
    pub(crate) const ALL: [Self; 4] = [
        Self::Native,
        Self::Edgewright,
        Self::CallFn,
        Self::CallFnBare,
    ];

    /// Its name in reports.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Native => "native Rust",
            Self::Edgewright => "edgewright",
            Self::CallFn => "plain `call_fn`",
            Self::CallFnBare => "plain, `eval_ast(false)`",
        }
    }
}

/// The pools that a request can go to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pool {
    /// [`crate::load::BLUE`].
    Blue,
    /// [`crate::load::GREEN`].
    Green,
}

/// What a hook says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Nothing against the request.
    Continue,
    /// It goes to this pool.
    Pool(Pool),
    /// This is the response.
    Answer(Answer),
}

/// The answer to an unknown key.
pub(super) const REFUSAL: (i64, &str) = (401, "unknown API key\n");

/// The hooks, done in one of the [`Way`]s, and the requests that they run on.
pub(crate) trait Hooks {
    /// Runs the hook for `job` on the request with this number.
    ///
    /// # Errors
    /// When the hook fails, or there is none for this job.
    fn call(&mut self, job: Job, request: usize) -> Result<Outcome>;

    /// What the upstream of that request would be told about the client.
    fn client(&self, request: usize) -> Option<String>;
}
