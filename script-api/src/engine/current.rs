//! The request and response of the hook that runs on this thread.
//!
//! Scripts hold handles that carry nothing; the natives behind them find the request here. So no
//! header map is copied, and a handle that outlives its hook finds nothing.

use std::cell::Cell;

use rhai::{EvalAltResult, Position};
use scoped_tls_hkt::scoped_thread_local;

use crate::{
    program::{HookKind, Need},
    request::Request,
    response::Response,
};

scoped_thread_local!(static mut REQUEST: for<'a> &'a mut (dyn Request + 'a));
scoped_thread_local!(static mut RESPONSE: for<'a> &'a mut (dyn Response + 'a));

thread_local! {
    /// Answers that natives made since the hook began.
    static ANSWERS: Cell<u32> = const { Cell::new(0) };
    /// What the hook that runs is.
    static KIND: Cell<Option<HookKind>> = const { Cell::new(None) };
    /// Whether it makes a value for a cache.
    static MAKES: Cell<bool> = const { Cell::new(false) };
}

/// What natives return: a value, or an error that names the mistake.
pub(crate) type NativeResult<T> = Result<T, Box<EvalAltResult>>;

/// An error of a native function, without a place: the interpreter adds that of the call.
pub(crate) fn error(message: impl Into<String>) -> Box<EvalAltResult> {
    Box::new(EvalAltResult::ErrorRuntime(
        message.into().into(),
        Position::NONE,
    ))
}

/// The error of a text that would be longer than `[script] string` allows.
pub(super) fn too_long() -> Box<EvalAltResult> {
    let what = "Length of string".to_owned();
    Box::new(EvalAltResult::ErrorDataTooLarge(what, Position::NONE))
}

/// The error of a blob that would be longer than `[script] items` allows.
pub(super) fn too_many_bytes() -> Box<EvalAltResult> {
    let what = "Size of BLOB".to_owned();
    Box::new(EvalAltResult::ErrorDataTooLarge(what, Position::NONE))
}

/// The error of a map or array that would have more than `[script] items` allows.
pub(super) fn too_many_items() -> Box<EvalAltResult> {
    let what = "Size of object map".to_owned();
    Box::new(EvalAltResult::ErrorDataTooLarge(what, Position::NONE))
}

/// What a hook is called for.
pub enum Subject<'a> {
    /// A request.
    Request(&'a mut dyn Request),
    /// A request that was sent, and the response to it.
    Exchange(&'a mut dyn Request, &'a mut dyn Response),
    /// Nothing: a hook that runs in the background.
    Nothing,
}

impl Subject<'_> {
    /// Runs `run` with natives finding the subject.
    pub(super) fn during<R>(self, run: impl FnOnce() -> R) -> R {
        match self {
            Self::Nothing => run(),
            Self::Request(request) => REQUEST.set(request, run),
            Self::Exchange(request, response) => {
                REQUEST.set(request, || RESPONSE.set(response, run))
            }
        }
    }
}

/// Begins a hook of this kind on this thread.
pub(super) fn begin(kind: HookKind) {
    ANSWERS.set(0);
    KIND.set(Some(kind));
    MAKES.set(false);
}

/// The kind of the hook that runs on this thread; at the top level there is none.
pub(super) fn kind() -> Option<HookKind> {
    KIND.get()
}

/// Whether the running hook makes a value for a cache.
pub(super) fn is_making() -> bool {
    MAKES.get()
}

/// The running hook makes a value for a cache; gives what [`end_making`] wants. A hook that is
/// cancelled meanwhile never comes to that, and the next one begins anew.
pub(super) fn begin_making() -> bool {
    MAKES.replace(true)
}

/// The value is made.
pub(super) fn end_making(before: bool) {
    MAKES.set(before);
}

/// What is kept here of a hook that is suspended.
pub(super) struct Paused {
    answers: u32,
    kind: Option<HookKind>,
    makes: bool,
}

/// Takes what belongs to the running hook aside.
pub(super) fn pause() -> Paused {
    Paused {
        answers: ANSWERS.get(),
        kind: KIND.take(),
        makes: MAKES.take(),
    }
}

/// Goes on with a hook that was suspended.
pub(super) fn resume(paused: Paused) {
    ANSWERS.set(paused.answers);
    KIND.set(paused.kind);
    MAKES.set(paused.makes);
}

/// Looks at the request.
pub(super) fn request<R>(look: impl FnOnce(&mut dyn Request) -> R) -> NativeResult<R> {
    if !REQUEST.is_set() {
        return Err(error("`req` can only be used while its hook runs"));
    }
    Ok(REQUEST.with(look))
}

/// Changes the request.
pub(super) fn change_request<R>(change: impl FnOnce(&mut dyn Request) -> R) -> NativeResult<R> {
    // No kind: nothing runs that a script has written.
    if kind().is_some() {
        wants(Need::RequestChange, "the request can only be changed")?;
    }
    request(change)
}

/// Looks at the response.
pub(super) fn response<R>(look: impl FnOnce(&mut dyn Response) -> R) -> NativeResult<R> {
    if !RESPONSE.is_set() {
        return Err(error("`res` can only be used while its hook runs"));
    }
    Ok(RESPONSE.with(look))
}

/// Changes the status or the header fields of the response.
pub(super) fn change_response<R>(change: impl FnOnce(&mut dyn Response) -> R) -> NativeResult<R> {
    wants(
        Need::ResponseChange,
        "status and header fields of the response can only be changed",
    )?;
    response(change)
}

/// Looks at or changes the body of the response.
pub(super) fn response_body<R>(look: impl FnOnce(&mut dyn Response) -> R) -> NativeResult<R> {
    wants(Need::ResponseBody, "the body of the response is only there")?;
    response(look)
}

/// Changes the body of the request.
pub(super) fn change_request_body<R>(
    change: impl FnOnce(&mut dyn Request) -> R,
) -> NativeResult<R> {
    wants(
        Need::RequestBodyChange,
        "the body of the request can only be changed",
    )?;
    request(change)
}

/// Refuses what hooks of the running kind don't have.
fn wants(need: Need, what: &str) -> NativeResult<()> {
    if kind().is_some_and(|kind| kind.has(need)) {
        return Ok(());
    }
    Err(error(format!("{what} {}", need.places())))
}

/// Begins to count answers anew: what was copied to call the hook is none of its doing.
pub(super) fn forget_answers() {
    ANSWERS.set(0);
}

/// Notes that an answer was made.
pub(super) fn count_answer() {
    ANSWERS.set(ANSWERS.get() + 1);
}

/// How many answers were made since the hook began.
pub(super) fn answers_made() -> u32 {
    ANSWERS.get()
}
