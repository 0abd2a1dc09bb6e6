//! One program in two interpreters: compiled, and not.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::Duration,
};

use edgewright_script::{
    engine::{Failure, Interpreter, Limits, Way},
    load::{Inputs, LoadError, load},
    memory::{MemoryRequest, MemoryResponse},
    program::{HookId, HookKind, Program},
    state::StateStore,
};

/// A program, compiled or not.
pub struct Side {
    interpreter: Interpreter,
    program: Arc<Program>,
}

/// Both.
pub struct Both {
    pub compiled: Side,
    pub interpreted: Side,
}

/// What is seen of a call.
#[derive(Debug, PartialEq)]
pub struct Seen {
    pub ended: Result<String, String>,
    pub request: String,
    pub response: String,
}

impl Side {
    fn load(inputs: &Inputs, compile: bool) -> Result<Self, String> {
        let inputs = Inputs {
            limits: Limits {
                compile,
                // One way is slower than the other, and a machine slower than another one.
                time: Duration::from_secs(600),
                wall_time: Duration::from_secs(600),
                ..inputs.limits
            },
            files: inputs.files.clone(),
            environment: inputs.environment.clone(),
            file: inputs.file.clone(),
            source: inputs.source.clone(),
            pools: inputs.pools.clone(),
            path_policy: inputs.path_policy,
            // Each counts for itself.
            state: StateStore::default(),
        };
        let loaded = match load(&inputs) {
            Ok(loaded) => loaded,
            Err(LoadError::Invalid(found)) => return Err(found.to_string()),
            Err(LoadError::Changed) => panic!("files don't change here"),
        };
        let program = Arc::new(loaded.program);
        Ok(Self {
            interpreter: Interpreter::new(program.clone()).unwrap(),
            program,
        })
    }

    /// How the hooks run.
    pub fn ways(&self) -> Vec<Way> {
        self.interpreter.ways().cloned().collect()
    }

    /// All hooks, in their order.
    pub fn hooks(&self) -> Vec<(HookId, HookKind)> {
        let ids = self.program.hook_ids();
        ids.map(|id| (id, self.program.hook(id).kind)).collect()
    }

    /// Runs one hook with copies of these, as what it is.
    pub fn run(
        &mut self,
        (hook, kind): (HookId, HookKind),
        request: &MemoryRequest,
        response: &MemoryResponse,
    ) -> Seen {
        let (mut request, mut response) = (request.clone(), response.clone());
        let interpreter = &mut self.interpreter;
        let ended = catch_unwind(AssertUnwindSafe(|| match kind {
            HookKind::OnResponse => {
                shown(interpreter.on_response(hook, &mut request, &mut response))
            }
            HookKind::When => shown(interpreter.when(hook, &mut request)),
            HookKind::To => shown(interpreter.choose(hook, &mut request)),
            HookKind::Respond => shown(interpreter.respond(hook, &mut request)),
            HookKind::OnRequest => shown(interpreter.on_request(hook, &mut request)),
            _ => Ok("not run here".to_owned()),
        }));
        Seen {
            ended: ended.unwrap_or_else(|_| Err("a panic".to_owned())),
            request: format!("{request:?}"),
            response: format!("{response:?}"),
        }
    }
}

fn shown<T: std::fmt::Debug>(ended: Result<T, Failure>) -> Result<String, String> {
    match ended {
        Ok(said) => Ok(format!("{said:?}")),
        Err(failure) => Err(format!("{failure:?}")),
    }
}

impl Both {
    /// An error when the program is refused.
    pub fn load(inputs: &Inputs) -> Result<Self, String> {
        Ok(Self {
            compiled: Side::load(inputs, true)?,
            interpreted: Side::load(inputs, false)?,
        })
    }

    /// Runs every hook both ways, several times, and fails when there is any difference. Gives what was
    /// seen.
    pub fn compare(
        &mut self,
        request: &MemoryRequest,
        response: &MemoryResponse,
        about: &dyn std::fmt::Display,
    ) -> Vec<Seen> {
        let mut seen = Vec::new();
        for (index, hook) in self.compiled.hooks().into_iter().enumerate() {
            // The first call of a place looks functions up, the later ones know them.
            for turn in 0..3 {
                let compiled = self.compiled.run(hook, request, response);
                let interpreted = self.interpreted.run(hook, request, response);
                assert_eq!(
                    compiled, interpreted,
                    "left: compiled, right: interpreted; hook {index}, turn {turn}\n{about}"
                );
                seen.push(compiled);
            }
        }
        seen
    }
}

/// A response with nothing in it.
pub fn response() -> MemoryResponse {
    MemoryResponse {
        status: http::StatusCode::OK,
        headers: http::HeaderMap::new(),
        is_local: false,
        body: bytes::Bytes::new(),
    }
}
