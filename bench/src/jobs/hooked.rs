//! The jobs by hooks of edgewright, over requests in memory.

use std::rc::Rc;
use std::sync::Arc;

use anyhow::{Context, Result, bail, ensure};
use edgewright_script::{
    engine::{Choice, Interpreter, Limits, Verdict, Way as Runs},
    load::{Inputs, LoadError, load},
    memory::MemoryRequest,
    path::PathPolicy,
    program::{Destination, HookId, PoolId, Program},
    state::StateStore,
    values::{FileError, Files, ProgramFile},
};

use super::cases::{COUNT_HOST, HOOKED_HOST};
use super::job::{Job, Said, Work};
use super::{native, program};
use crate::load::{BLUE, GREEN};

/// A job in a hook, and the interpreter of one worker.
pub(super) struct Hooked {
    interpreter: Interpreter,
    hook: HookId,
    /// Whether it says where the request goes.
    chooses: bool,
    green: PoolId,
    /// The hook that tells what the counter stands at.
    counted: Option<HookId>,
    requests: Vec<MemoryRequest>,
}

impl Hooked {
    /// For these requests, compiled or interpreted.
    ///
    /// # Errors
    /// When the program is wrong, or a hook can't be compiled that should be.
    pub(super) fn new(job: Job, compile: bool, requests: Vec<MemoryRequest>) -> Result<Self> {
        let program = Arc::new(loaded(job, compile)?);
        let interpreter = Interpreter::new(program.clone())
            .map_err(|error| anyhow::anyhow!("{}", error.summary()))?;
        for way in interpreter.ways() {
            ensure!(
                (*way == Runs::Compiled) == compile,
                "{}: a hook runs otherwise than asked for: {way:?}",
                job.name()
            );
        }
        let route = |label: &str| {
            let found = program.routes.iter().find(|route| route.label == label);
            found.with_context(|| format!("there is no route `{label}`"))
        };
        let hooked = route(&format!("{HOOKED_HOST}/{{*rest}}"))?;
        let gates = hooked.on_request.iter().chain(&hooked.on_request_body);
        let (hook, chooses) = match (gates.copied().next(), &hooked.destination) {
            (Some(hook), _) => (hook, false),
            (None, Destination::Function(hook)) => (*hook, true),
            (None, _) => bail!("the route has no hook"),
        };
        let counted = match job {
            Job::Counter => match route(&format!("{COUNT_HOST}/"))?.destination {
                Destination::RespondFunction(hook) => Some(hook),
                _ => None,
            },
            _ => None,
        };
        Ok(Self {
            hook,
            chooses,
            green: program.pool_id(GREEN).context("there is no pool")?,
            counted,
            interpreter,
            requests,
        })
    }
}

fn loaded(job: Job, compile: bool) -> Result<Program> {
    let inputs = Inputs {
        file: "routes.rhai".to_owned(),
        source: program::routes(job),
        files: Rc::new(Folder(program::files(job)?)),
        environment: Rc::new(|_| None),
        pools: vec![BLUE.to_owned(), GREEN.to_owned()],
        limits: Limits {
            compile,
            ..Limits::default()
        },
        path_policy: PathPolicy::default(),
        state: StateStore::default(),
    };
    match load(&inputs) {
        Ok(loaded) => Ok(loaded.program),
        Err(LoadError::Invalid(found)) => bail!("the program is wrong:\n{found}"),
        Err(LoadError::Changed) => bail!("the program changed while it was read"),
    }
}

/// The folder of the program.
struct Folder(Vec<(&'static str, String)>);

impl Files for Folder {
    fn read(&self, name: &str) -> Result<Vec<u8>, FileError> {
        let found = self.0.iter().find(|(known, _)| *known == name);
        found
            .map(|(_, content)| content.clone().into_bytes())
            .ok_or_else(|| FileError::NotFound(name.to_owned()))
    }

    fn read_program(&self, name: &str) -> Result<ProgramFile, FileError> {
        Err(FileError::NotFound(name.to_owned()))
    }
}

impl Work for Hooked {
    fn call(&mut self, request: usize) -> Result<Said> {
        let request = &mut self.requests[request];
        if self.chooses {
            return match self.interpreter.choose(self.hook, request) {
                Ok(Choice::Pool(pool)) if pool == self.green => Ok(Said::Green),
                Ok(Choice::Pool(_)) => Ok(Said::Continue),
                Ok(other) => bail!("the hook chose {other:?}"),
                Err(failure) => bail!("{failure}"),
            };
        }
        match self.interpreter.on_request(self.hook, request) {
            Ok(Verdict::Continue) => Ok(Said::Continue),
            Ok(Verdict::Answer(answer)) => Ok(Said::Answer(answer.status.as_u16())),
            Err(failure) => bail!("{failure}"),
        }
    }

    fn client(&self, request: usize) -> Option<String> {
        native::client(&self.requests[request])
    }

    fn counted(&mut self) -> Result<i64> {
        let Some(hook) = self.counted else {
            return Ok(0);
        };
        let mut request = MemoryRequest::new("GET", COUNT_HOST, "/");
        match self.interpreter.respond(hook, &mut request) {
            Ok(answer) => Ok(std::str::from_utf8(&answer.body)?.parse()?),
            Err(failure) => bail!("{failure}"),
        }
    }
}
