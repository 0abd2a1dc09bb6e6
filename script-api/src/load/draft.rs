//! What the top level has said so far.

use std::{cell::RefCell, rc::Rc, sync::Arc, time::Duration};

use rhai::{FnPtr, NativeCallContext, Position};

use super::{background::BackgroundDraft, gate_draft::GatesDraft, states::Made};
use crate::{
    answer::Answer,
    diagnostic::{Diagnostic, Place},
    frozen::{Frozen, Function},
    jwt::Jwks,
    program::{
        BasicAuth, Compress, Condition, ForwardRules, HashOn, HeaderChange, HookKind, JwtAuth,
        MirrorRules, PoolDeclaration, Retries, Sticky,
    },
    router::{HostPattern, Pattern, Substitution},
    source::Source,
    state::metric::Metric,
};

/// The draft, shared by the natives of the load time.
pub(super) type SharedDraft = Rc<RefCell<Draft>>;

/// How far behind its call a literal is looked for, in bytes.
const LITERAL_DISTANCE: usize = 64;

#[derive(Debug, Default)]
pub(super) struct Draft {
    pub(super) source: Arc<Source>,
    /// Where each line of the whole text begins, in bytes.
    lines: Vec<usize>,
    pub(super) constants: Vec<(String, Frozen)>,
    pub(super) sites: Vec<SiteDraft>,
    pub(super) routes: Vec<RouteDraft>,
    pub(super) pools: Vec<PoolDeclaration>,
    /// Handles on shared state, in the order in which they were made.
    pub(super) states: Vec<Made>,
    /// Hooks that run without a request.
    pub(super) background: Vec<BackgroundDraft>,
    /// What hooks count and measure.
    pub(super) metrics: Vec<Metric>,
    /// Key sets that are fetched, each source once.
    pub(super) jwks: Vec<Jwks>,
    /// Hooks of all sites.
    pub(super) hooks: Vec<HookDraft>,
    /// Mistakes found so far; the top level goes on, so that all are shown at once.
    pub(super) findings: Vec<Diagnostic>,
    /// Whether the folder was swapped while a file of it was read.
    pub(super) files_changed: bool,
}

#[derive(Debug)]
pub(super) struct SiteDraft {
    /// As written, for messages and for finding it again.
    pub(super) names: Vec<String>,
    pub(super) hosts: Vec<HostPattern>,
    pub(super) hooks: Vec<HookDraft>,
}

#[derive(Debug, Clone)]
pub(super) struct HookDraft {
    pub(super) kind: HookKind,
    /// Of `on_response_body`: see [`crate::program::BodyHook`].
    pub(super) stream: Option<usize>,
    pub(super) function: Function,
    pub(super) place: Place,
}

#[derive(Debug)]
pub(super) struct RouteDraft {
    pub(super) site: usize,
    pub(super) pattern: Pattern,
    pub(super) place: Place,
    pub(super) methods: Vec<String>,
    pub(super) conditions: Vec<Condition>,
    pub(super) gates: GatesDraft,
    pub(super) hooks: Vec<HookDraft>,
    pub(super) destination: Option<(DestinationDraft, Place)>,
    pub(super) strip_prefix: Option<String>,
    pub(super) rewrite: Option<(String, Place)>,
    pub(super) rewrite_regex: Option<(Substitution, Place)>,
    pub(super) request_headers: Vec<HeaderChange>,
    pub(super) response_headers: Vec<HeaderChange>,
    pub(super) timeout: Option<Duration>,
    pub(super) retries: Option<Retries>,
    pub(super) compress: Option<Compress>,
    pub(super) mirror: Option<MirrorDraft>,
    pub(super) sticky: Option<(Sticky, Place)>,
    pub(super) auth: AuthDraft,
}

/// A pool that gets copies of requests.
#[derive(Debug)]
pub(super) struct MirrorDraft {
    pub(super) pool: String,
    pub(super) place: Place,
    pub(super) rules: MirrorRules,
}

/// Who may use a route.
#[derive(Debug, Default)]
pub(super) struct AuthDraft {
    pub(super) basic: Option<BasicAuth>,
    pub(super) jwt: Option<JwtAuth>,
    pub(super) forward: Option<ForwardDraft>,
}

/// A service that is asked about each request of a route.
#[derive(Debug)]
pub(super) struct ForwardDraft {
    pub(super) pool: String,
    pub(super) place: Place,
    pub(super) rules: ForwardRules,
}

#[derive(Debug)]
pub(super) enum DestinationDraft {
    Pool(String),
    Split(Vec<(String, i64)>, Option<HashOn>),
    Function(Function),
    Respond(Answer),
    RespondFunction(Function),
    Redirect(i64, String),
}

impl Draft {
    pub(super) fn new() -> Self {
        Self {
            // The any-host site: top-level `route` belongs to it.
            sites: vec![SiteDraft {
                names: vec!["*".to_owned()],
                hosts: vec![HostPattern::Any],
                hooks: Vec::new(),
            }],
            ..Self::default()
        }
    }

    /// Says what the places of calls are about, before the first call.
    pub(super) fn set_source(&mut self, source: &Arc<Source>) {
        let text = source.text().as_bytes();
        self.lines = std::iter::once(0)
            .chain(memchr::memchr_iter(b'\n', text).map(|end| end + 1))
            .collect();
        self.source = source.clone();
    }

    /// The place of a native call.
    pub(super) fn place(&self, position: Position) -> Place {
        self.source.place_or_start(position)
    }

    /// The place of `text` where it stands as a literal behind a call, else that of the call. It
    /// is the first occurrence of the quoted text from the call's position on.
    pub(super) fn literal(&self, position: Position, text: &str) -> Place {
        let mut place = self.place(position);
        let line = position.line().unwrap_or(1);
        let start = self.lines.get(line - 1).copied().unwrap_or_default();
        let rest = &self.source.text()[start..];
        let line = &rest[..memchr::memchr(b'\n', rest.as_bytes()).unwrap_or(rest.len())];
        let skipped = line.char_indices().nth(place.column - 1);
        let skipped = skipped.map_or(line.len(), |(index, _)| index);
        // A literal stands near its call; a line of a generated file can be very long.
        let end = (skipped + text.len() + LITERAL_DISTANCE).min(line.len());
        let near = line.as_bytes()[skipped..end].windows(text.len() + 2);
        let quoted = format!("\"{text}\"");
        let found = near
            .into_iter()
            .position(|window| window == quoted.as_bytes());
        if let Some(found) = found {
            let before = line[skipped..skipped + found].chars().count();
            place.column += before + 1;
            place.length = text.chars().count().max(1);
        }
        place
    }

    /// Notes a mistake.
    pub(super) fn error(&mut self, place: Place, message: impl Into<String>) -> &mut Diagnostic {
        let finding = Diagnostic {
            place: Some(place),
            ..Diagnostic::error(message)
        };
        self.findings.push(finding);
        let last = self.findings.len() - 1;
        &mut self.findings[last]
    }

    /// Takes a function out of the interpreter; notes a mistake and gives `None` when it captured
    /// what can't be kept.
    pub(super) fn function(
        &mut self,
        call: &NativeCallContext,
        pointer: FnPtr,
    ) -> Option<Function> {
        match Frozen::freeze(&pointer.into()) {
            Ok(Frozen::Function(function)) => Some(function),
            Ok(_) => None,
            Err(what) => {
                let place = self.place(call.call_position());
                self.error(place, format!("the function captures {what}"))
                    .help = Some(
                    "a hook can keep plain data, tables, networks, patterns, shared state and functions"
                        .to_owned(),
                );
                None
            }
        }
    }

    /// Takes a hook.
    pub(super) fn hook(
        &mut self,
        call: &NativeCallContext,
        kind: HookKind,
        pointer: FnPtr,
    ) -> Option<HookDraft> {
        let place = self.place(call.call_position());
        self.function(call, pointer).map(|function| HookDraft {
            kind,
            stream: None,
            function,
            place,
        })
    }
}
