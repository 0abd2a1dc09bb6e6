//! The hooks by edgewright's interpreter, over requests in memory.

use std::rc::Rc;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use edgewright_script::{
    engine::{Choice, Interpreter, Limits, Verdict},
    load::{Inputs, LoadError, load},
    memory::MemoryRequest,
    path::PathPolicy,
    program::{Destination, HookId, PoolId, Program},
    state::StateStore,
    values::{FileError, Files, ProgramFile},
};

use super::job::{Hooks, Job, Outcome, Pool};
use super::native;
use crate::edgewright::{KEYS_FILE, keys_json, routes};
use crate::load::{BLUE, GREEN};

/// Gates over the other values that all workers share.
const GATES: &str = r#"const INSIDE = cidr(["10.0.0.0/8", "127.0.0.0/8", "fd00::/8"]);
const API = regex("^/api/[a-z]+$");

route("/networks").to("blue").on_request(|req| {
    if !INSIDE.contains(req.client_ip) { return respond(403); }
});
route("/pattern").to("blue").on_request(|req| {
    if !API.is_match(req.path) { return respond(404); }
});
"#;

/// A program and the numbers of its hooks. Threads share it.
#[derive(Clone)]
pub(super) struct Hooked {
    program: Arc<Program>,
    hooks: Vec<(Job, HookId)>,
    green: PoolId,
}

impl Hooked {
    /// The program whose hooks do this job. That for routing and auth is the one of the contestant
    /// `edgewright-script`.
    pub(super) fn load(job: Job) -> Result<Self> {
        let (source, gates) = match job {
            Job::Routing | Job::Auth => (routes(true, true), &[(Job::Auth, "/{*rest}")][..]),
            Job::Networks | Job::Pattern => (
                GATES.to_owned(),
                &[(Job::Networks, "/networks"), (Job::Pattern, "/pattern")][..],
            ),
        };
        let program = program(source)?;
        let mut hooks = Vec::new();
        for &(job, label) in gates {
            let route = program.routes.iter().find(|route| route.label == label);
            let gate = route.and_then(|route| route.on_request.first());
            let gate = gate.with_context(|| format!("there is no gate on `{label}`"))?;
            hooks.push((job, *gate));
        }
        hooks.extend(program.routes.iter().find_map(|route| {
            let Destination::Function(hook) = route.destination else {
                return None;
            };
            Some((Job::Routing, hook))
        }));
        Ok(Self {
            hooks,
            green: program.pool_id(GREEN).context("there is no pool")?,
            program: Arc::new(program),
        })
    }

    fn hook(&self, job: Job) -> Result<HookId> {
        let found = self.hooks.iter().find(|(known, _)| *known == job);
        found
            .map(|(_, hook)| *hook)
            .with_context(|| format!("the program has no hook for {}", job.name()))
    }
}

fn program(source: String) -> Result<Program> {
    let inputs = Inputs {
        file: "routes.rhai".to_owned(),
        source,
        files: Rc::new(KeysFile(keys_json()?)),
        environment: Rc::new(|_| None),
        pools: vec![BLUE.to_owned(), GREEN.to_owned()],
        limits: Limits::default(),
        path_policy: PathPolicy::default(),
        state: StateStore::default(),
    };
    match load(&inputs) {
        Ok(loaded) => Ok(loaded.program),
        Err(LoadError::Invalid(found)) => bail!("the program is wrong:\n{found}"),
        Err(LoadError::Changed) => bail!("the program changed while it was read"),
    }
}

/// The folder of the program: one file.
struct KeysFile(String);

impl Files for KeysFile {
    fn read(&self, name: &str) -> Result<Vec<u8>, FileError> {
        if name == KEYS_FILE {
            Ok(self.0.clone().into_bytes())
        } else {
            Err(FileError::NotFound(name.to_owned()))
        }
    }

    fn read_program(&self, name: &str) -> Result<ProgramFile, FileError> {
        Err(FileError::NotFound(name.to_owned()))
    }
}

/// One worker's interpreter, and its requests.
pub(super) struct Interpreted {
    hooked: Hooked,
    interpreter: Interpreter,
    requests: Vec<MemoryRequest>,
}

impl Interpreted {
    /// An interpreter of its own for the program that `hooked` holds.
    pub(super) fn new(hooked: Hooked, requests: Vec<MemoryRequest>) -> Result<Self> {
        let interpreter = Interpreter::new(hooked.program.clone())
            .map_err(|error| anyhow::anyhow!("{}", error.summary()))?;
        Ok(Self {
            hooked,
            interpreter,
            requests,
        })
    }
}

impl Hooks for Interpreted {
    fn call(&mut self, job: Job, request: usize) -> Result<Outcome> {
        let hook = self.hooked.hook(job)?;
        let request = &mut self.requests[request];
        if job == Job::Routing {
            return match self.interpreter.choose(hook, request) {
                Ok(Choice::Pool(pool)) if pool == self.hooked.green => {
                    Ok(Outcome::Pool(Pool::Green))
                }
                Ok(Choice::Pool(_)) => Ok(Outcome::Pool(Pool::Blue)),
                Ok(Choice::Answer(answer)) => Ok(Outcome::Answer(answer)),
                Ok(Choice::Pick(_)) => bail!("the routing hook named a target"),
                Ok(Choice::Split(_)) => bail!("the routing hook named several pools"),
                Err(failure) => bail!("{failure}"),
            };
        }
        match self.interpreter.on_request(hook, request) {
            Ok(Verdict::Continue) => Ok(Outcome::Continue),
            Ok(Verdict::Answer(answer)) => Ok(Outcome::Answer(answer)),
            Err(failure) => bail!("{failure}"),
        }
    }

    fn client(&self, request: usize) -> Option<String> {
        native::client(&self.requests[request])
    }
}
