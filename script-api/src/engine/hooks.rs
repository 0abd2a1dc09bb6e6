//! The kinds of hooks: what their values mean.

use rhai::{Dynamic, Map};

use super::{
    answer_api::ScriptAnswer,
    current::{self, Subject},
    failure::Failure,
    interpreter::Interpreter,
    pick_api::Picked,
    running::{Ended, Said, Step},
};
use crate::{
    answer::Answer,
    outbound::{CallFailure, CallFailureKind, Outgoing, Reply},
    program::{HookId, PoolId, Split},
    request::Request,
    response::Response,
};

/// What an `on_request` or `on_response` hook says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing against it.
    Continue,
    /// This is the response.
    Answer(Answer),
}

/// Where a `.to` function sends a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Choice {
    /// To a pool.
    Pool(PoolId),
    /// To one of several pools by weight.
    Split(Split),
    /// To a pool, and there where it says.
    Pick(Pick),
    /// Nowhere: this is the response.
    Answer(Answer),
}

/// A pool, and which of its endpoints.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pick {
    /// The pool.
    pub pool: PoolId,
    /// Equal keys get the same endpoint.
    pub key: Option<u64>,
    /// The address of the one that it is to be.
    pub target: Option<Box<str>>,
    /// Whether it is that one or none.
    pub only: bool,
}

/// What a `.when` function says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Holds(pub bool);

/// What an `on_log` hook says: nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen;

/// A response that is made when everything is over is one that got lost.
impl Said for Seen {
    fn read(ended: &Ended<'_>, value: Dynamic) -> Result<Self, Failure> {
        if value.is::<ScriptAnswer>() {
            return Err(ended.misuse("it is too late for a response in `on_log`"));
        }
        ended.no_answer_lost()?;
        Ok(Self)
    }
}

/// What a background hook says: nothing but that it has run to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Finished;

/// Whatever could be a refusal that got lost is an error.
impl Said for Verdict {
    fn read(ended: &Ended<'_>, value: Dynamic) -> Result<Self, Failure> {
        if value.is_unit() {
            ended.no_answer_lost()?;
            return Ok(Self::Continue);
        }
        if let Some(answer) = value.read_lock::<ScriptAnswer>() {
            return Ok(Self::Answer(ScriptAnswer::answer(&answer).clone()));
        }
        let kind = ended.state.program.hook(ended.hook).kind.name();
        if value.is_bool() {
            return Err(ended.misuse(format!(
                "a bool is no verdict: `{kind}` goes on with `()` and stops with `respond(..)`"
            )));
        }
        if value.is_fnptr() {
            return Err(ended.misuse(format!(
                "a function is no verdict: `{kind}` must call it and return what it says"
            )));
        }
        ended.no_answer_lost()?;
        Ok(Self::Continue)
    }
}

impl Said for Choice {
    fn read(ended: &Ended<'_>, value: Dynamic) -> Result<Self, Failure> {
        if let Some(answer) = value.read_lock::<ScriptAnswer>() {
            return Ok(Self::Answer(ScriptAnswer::answer(&answer).clone()));
        }
        ended.no_answer_lost()?;
        if let Ok(name) = value.as_immutable_string_ref() {
            return ended.pool(&name).map(Self::Pool);
        }
        if let Some(picked) = value.read_lock::<Picked>() {
            return Ok(Self::Pick(Pick {
                pool: ended.pool(&picked.pool)?,
                key: picked.key,
                target: picked.target.as_deref().map(Into::into),
                only: picked.only,
            }));
        }
        if let Some(weights) = value.read_lock::<Map>() {
            let weights = weights.iter().map(|(name, weight)| {
                let weight = weight
                    .as_int()
                    .ok()
                    .and_then(|weight| u32::try_from(weight).ok());
                let weight = weight.ok_or_else(|| {
                    ended.misuse(format!(
                        "the weight of `{name}` must be a whole number from 0"
                    ))
                })?;
                Ok((ended.pool(name)?, weight))
            });
            let weights = weights.collect::<Result<Vec<_>, Failure>>()?;
            return Split::new(weights)
                .map(Self::Split)
                .map_err(|reason| ended.misuse(reason));
        }
        Err(ended.misuse(format!(
            "a `.to` must give the name of a pool, `#{{name: weight, ..}}`, `pick(..)` or `respond(..)`, not a value of type `{}`",
            value.type_name()
        )))
    }
}

impl Said for Holds {
    fn read(ended: &Ended<'_>, value: Dynamic) -> Result<Self, Failure> {
        ended.no_answer_lost()?;
        value.as_bool().map(Self).map_err(|found| {
            ended.misuse(format!(
                "a `.when` must say true or false, not a value of type `{found}`"
            ))
        })
    }
}

impl Said for Finished {
    fn read(ended: &Ended<'_>, value: Dynamic) -> Result<Self, Failure> {
        if value.is::<ScriptAnswer>() || current::answers_made() > 0 {
            return Err(ended.misuse("`every` runs without a request: there is nobody to answer"));
        }
        Ok(Self)
    }
}

/// What a `.respond` function says.
impl Said for Answer {
    fn read(ended: &Ended<'_>, value: Dynamic) -> Result<Self, Failure> {
        let found = value.type_name();
        value
            .try_cast::<ScriptAnswer>()
            .map(|answer| answer.0)
            .ok_or_else(|| {
                ended.misuse(format!(
                    "a `.respond` must give `respond(..)`, not a value of type `{found}`"
                ))
            })
    }
}

impl Ended<'_> {
    /// An answer that was made, or taken from a constant, and is not what the hook says.
    fn no_answer_lost(&self) -> Result<(), Failure> {
        if current::answers_made() == 0 {
            return Ok(());
        }
        Err(self.misuse("an answer was made and not returned: write `return respond(..)`"))
    }

    fn pool(&self, name: &str) -> Result<PoolId, Failure> {
        let known = self.state.program.pool_id(name);
        known.ok_or_else(|| self.misuse(format!("there is no pool `{name}`")))
    }

    fn misuse(&self, message: impl Into<String>) -> Failure {
        Failure::misuse(&self.state.program.hook(self.hook).place, message)
    }
}

/// Calls that nobody makes: for programs that are run without a network.
fn no_network(calls: &[Outgoing]) -> Vec<Reply> {
    let failure = CallFailure {
        kind: CallFailureKind::Unavailable,
        message: "there is no network here".to_owned(),
    };
    calls.iter().map(|_| Err(failure.clone())).collect()
}

/// Hooks run to their end at once, for tests and tools. Their calls to other services fail.
impl Interpreter {
    /// Runs an `on_request` hook.
    ///
    /// # Errors
    /// When the program fails, runs out of its budget, or says what is no verdict.
    pub fn on_request(
        &mut self,
        hook: HookId,
        request: &mut dyn Request,
    ) -> Result<Verdict, Failure> {
        self.finish(hook, request, no_network)
    }

    /// Runs an `on_response` hook.
    ///
    /// # Errors
    /// As [`Interpreter::on_request`].
    pub fn on_response(
        &mut self,
        hook: HookId,
        request: &mut dyn Request,
        response: &mut dyn Response,
    ) -> Result<Verdict, Failure> {
        let mut running = self.start(hook)?;
        let mut step = running.resume(Subject::Exchange(request, response));
        loop {
            let subject = Subject::Exchange(request, response);
            step = match step {
                Step::Ended(said) => return said,
                Step::Calls(calls) => running.answer(subject, no_network(&calls)),
                Step::Password(check) => running.verified(subject, Some(check.run())),
                Step::Turn | Step::Load(_) => running.resume(subject),
            };
        }
    }

    /// Runs a `.when` function.
    ///
    /// # Errors
    /// As [`Interpreter::on_request`], and when the value is no bool.
    pub fn when(&mut self, hook: HookId, request: &mut dyn Request) -> Result<bool, Failure> {
        let said = self.finish(hook, request, no_network);
        said.map(|Holds(holds)| holds)
    }

    /// Runs a `.respond` function.
    ///
    /// # Errors
    /// As [`Interpreter::on_request`], and when the value is no response.
    pub fn respond(&mut self, hook: HookId, request: &mut dyn Request) -> Result<Answer, Failure> {
        self.finish(hook, request, no_network)
    }

    /// Runs a `.to` function.
    ///
    /// # Errors
    /// As [`Interpreter::on_request`], and when the value names no pool.
    pub fn choose(&mut self, hook: HookId, request: &mut dyn Request) -> Result<Choice, Failure> {
        self.finish(hook, request, no_network)
    }

    /// Runs a background hook to its end; `network` makes its calls.
    ///
    /// # Errors
    /// As [`Interpreter::on_request`].
    pub fn background(
        &mut self,
        hook: HookId,
        mut network: impl FnMut(&[Outgoing]) -> Vec<Reply>,
    ) -> Result<Finished, Failure> {
        let mut running = self.start(hook)?;
        let mut step = running.resume(Subject::Nothing);
        loop {
            step = match step {
                Step::Ended(said) => return said,
                Step::Calls(calls) => running.answer(Subject::Nothing, network(&calls)),
                Step::Password(check) => running.verified(Subject::Nothing, Some(check.run())),
                Step::Turn | Step::Load(_) => running.resume(Subject::Nothing),
            };
        }
    }

    /// Runs a hook of a request to its end; `network` makes its calls.
    ///
    /// # Errors
    /// As [`Interpreter::on_request`].
    pub fn finish<V: Said>(
        &mut self,
        hook: HookId,
        request: &mut dyn Request,
        mut network: impl FnMut(&[Outgoing]) -> Vec<Reply>,
    ) -> Result<V, Failure> {
        let mut running = self.start(hook)?;
        let mut step = running.resume(Subject::Request(request));
        loop {
            let subject = Subject::Request(request);
            step = match step {
                Step::Ended(said) => return said,
                Step::Calls(calls) => running.answer(subject, network(&calls)),
                Step::Password(check) => running.verified(subject, Some(check.run())),
                Step::Turn | Step::Load(_) => running.resume(subject),
            };
        }
    }
}
