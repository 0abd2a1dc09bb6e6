//! The hooks that run once the response is there: for its body, and for the log.

use super::HookId;

/// A hook for the body of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BodyHook {
    /// The hook.
    pub hook: HookId,
    /// Whether it is called for each piece as it comes, and how many bytes at the end of a piece are
    /// kept back until the next one, so that what lies across two pieces is seen whole. `None`: it
    /// is called once, with the whole body.
    pub stream: Option<usize>,
}

/// Hooks that run once the response is there, beside `on_response`; in the order in which they run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Later {
    /// For the body of the response.
    pub on_response_body: Vec<BodyHook>,
    /// When everything is over.
    pub on_log: Vec<HookId>,
}

impl Later {
    /// Whether the body is only handed on in pieces: no hook wants the whole.
    pub fn streams(&self) -> bool {
        self.on_response_body
            .iter()
            .all(|hook| hook.stream.is_some())
    }
}
