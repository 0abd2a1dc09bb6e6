//! The kinds of hooks: what they are given and what their values mean.

use rhai::{Dynamic, Map};

use super::{
    answer_api::ScriptAnswer, current, failure::Failure, interpreter::Interpreter,
    request_api::RequestHandle, response_api::ResponseHandle,
};
use crate::{
    answer::Answer,
    program::{HookId, PoolId, Split},
    request::Request,
    response::Response,
};

/// What a hook says.
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
    /// Nowhere: this is the response.
    Answer(Answer),
}

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
        let value = self.with_request(hook, request)?;
        self.verdict(hook, value)
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
        let mut handles = (Dynamic::from(RequestHandle), Dynamic::from(ResponseHandle));
        let arguments = &mut [&mut handles.0, &mut handles.1];
        let value = current::with_response(request, response, || self.call(hook, arguments))?;
        self.verdict(hook, value)
    }

    /// Runs a `.when` function.
    ///
    /// # Errors
    /// As [`Interpreter::on_request`], and when the value is no bool.
    pub fn when(&mut self, hook: HookId, request: &mut dyn Request) -> Result<bool, Failure> {
        let value = current::with_read_only_request(request, || {
            let mut handle = Dynamic::from(RequestHandle);
            self.call(hook, &mut [&mut handle])
        })?;
        self.no_answer_lost(hook)?;
        value.as_bool().map_err(|found| {
            self.misuse(
                hook,
                format!("a `.when` must say true or false, not a value of type `{found}`"),
            )
        })
    }

    /// Runs a `.respond` function.
    ///
    /// # Errors
    /// As [`Interpreter::on_request`], and when the value is no response.
    pub fn respond(&mut self, hook: HookId, request: &mut dyn Request) -> Result<Answer, Failure> {
        let value = self.with_request(hook, request)?;
        let found = value.type_name();
        value
            .try_cast::<ScriptAnswer>()
            .map(|answer| answer.0)
            .ok_or_else(|| {
                self.misuse(
                    hook,
                    format!("a `.respond` must give `respond(..)`, not a value of type `{found}`"),
                )
            })
    }

    /// Runs a `.to` function.
    ///
    /// # Errors
    /// As [`Interpreter::on_request`], and when the value names no pool.
    pub fn choose(&mut self, hook: HookId, request: &mut dyn Request) -> Result<Choice, Failure> {
        let value = self.with_request(hook, request)?;
        if let Some(answer) = value.read_lock::<ScriptAnswer>() {
            return Ok(Choice::Answer(ScriptAnswer::answer(&answer).clone()));
        }
        self.no_answer_lost(hook)?;
        if let Ok(name) = value.as_immutable_string_ref() {
            return self.pool(hook, &name).map(Choice::Pool);
        }
        if let Some(weights) = value.read_lock::<Map>() {
            let weights = weights.iter().map(|(name, weight)| {
                let weight = weight
                    .as_int()
                    .ok()
                    .and_then(|weight| u32::try_from(weight).ok());
                let weight = weight.ok_or_else(|| {
                    self.misuse(
                        hook,
                        format!("the weight of `{name}` must be a whole number from 0"),
                    )
                })?;
                Ok((self.pool(hook, name)?, weight))
            });
            let weights = weights.collect::<Result<Vec<_>, Failure>>()?;
            return Split::new(weights)
                .map(Choice::Split)
                .map_err(|reason| self.misuse(hook, reason));
        }
        Err(self.misuse(
            hook,
            format!(
                "a `.to` must give the name of a pool, `#{{name: weight, ..}}` or `respond(..)`, not a value of type `{}`",
                value.type_name()
            ),
        ))
    }

    fn with_request(
        &mut self,
        hook: HookId,
        request: &mut dyn Request,
    ) -> Result<Dynamic, Failure> {
        let mut handle = Dynamic::from(RequestHandle);
        current::with_request(request, || self.call(hook, &mut [&mut handle]))
    }

    /// What the value of a gate means. Whatever could be a refusal that got lost is an error.
    fn verdict(&self, hook: HookId, value: Dynamic) -> Result<Verdict, Failure> {
        if let Some(answer) = value.read_lock::<ScriptAnswer>() {
            return Ok(Verdict::Answer(ScriptAnswer::answer(&answer).clone()));
        }
        let kind = self.program.hook(hook).kind.name();
        if value.is_bool() {
            return Err(self.misuse(
                hook,
                format!(
                    "a bool is no verdict: `{kind}` goes on with `()` and stops with `respond(..)`"
                ),
            ));
        }
        if value.is_fnptr() {
            return Err(self.misuse(
                hook,
                format!("a function is no verdict: `{kind}` must call it and return what it says"),
            ));
        }
        self.no_answer_lost(hook)?;
        Ok(Verdict::Continue)
    }

    /// An answer that was made, or taken from a constant, and is not what the hook says.
    fn no_answer_lost(&self, hook: HookId) -> Result<(), Failure> {
        if current::answers_made() == 0 {
            return Ok(());
        }
        Err(self.misuse(
            hook,
            "an answer was made and not returned: write `return respond(..)`",
        ))
    }

    fn pool(&self, hook: HookId, name: &str) -> Result<PoolId, Failure> {
        self.program
            .pool_id(name)
            .ok_or_else(|| self.misuse(hook, format!("there is no pool `{name}`")))
    }

    fn misuse(&self, hook: HookId, message: impl Into<String>) -> Failure {
        Failure::misuse(&self.program.hook(hook).place, message)
    }
}
