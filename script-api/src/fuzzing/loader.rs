//! A program is loaded or refused, and what is loaded runs within its bounds, and compiled as it does in
//! the interpreter.

use std::{path::PathBuf, rc::Rc, sync::Arc};

use bytes::Bytes;
use http::{HeaderMap, StatusCode};

use crate::{
    answer::Answer,
    engine::{
        Choice, Failure, FailureKind, Finished, Holds, Interpreter, Limits, Said, Seen as Logged,
        Step, Subject, Verdict,
    },
    load::{Inputs, LoadError, load},
    memory::{MemoryRequest, MemoryResponse},
    outbound::{CallFailure, CallFailureKind},
    path::PathPolicy,
    program::{HookId, HookKind, Match, Program},
    state::StateStore,
    values::{FileError, Files, ProgramFile},
};

/// The most hooks of one program that are run.
const HOOKS: usize = 16;

/// Files that a program can name.
struct Folder;

impl Folder {
    fn content(name: &str) -> Option<&'static str> {
        Some(match name {
            "lib.rhai" => "const A = 1; fn gate(req) { respond(403) } fn two() { 2 }",
            "keys.json" => r#"{"k": "alice", "l": ["bob", 2]}"#,
            "keys.csv" => "key,user,limit\nk,alice,1\nl,\"bob, b\",2\n",
            "list.txt" => "10.0.0.0/8\n# none\n192.0.2.1\n",
            "users" => "alice:{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ=\n",
            "key" => "0123456789abcdef0123456789abcdef\n",
            _ => return None,
        })
    }
}

impl Files for Folder {
    fn read(&self, name: &str) -> Result<Vec<u8>, FileError> {
        let content = Self::content(name).ok_or_else(|| FileError::NotFound(name.to_owned()))?;
        Ok(content.as_bytes().to_vec())
    }

    fn read_program(&self, name: &str) -> Result<ProgramFile, FileError> {
        Ok(ProgramFile {
            content: self.read(name)?,
            path: PathBuf::from(name),
        })
    }
}

/// The input is `routes.rhai`.
pub fn loader(input: &[u8]) {
    let Ok(source) = std::str::from_utf8(input) else {
        return;
    };
    let inputs = Inputs {
        file: "routes.rhai".to_owned(),
        source: source.to_owned(),
        files: Rc::new(Folder),
        environment: Rc::new(|name| (name == "REGION").then(|| "eu".to_owned())),
        pools: ["web", "api"].map(str::to_owned).to_vec(),
        limits: Limits::default(),
        path_policy: PathPolicy::default(),
        state: StateStore::default(),
    };
    let text = |file: &str| match file {
        "routes.rhai" => Some(source.to_owned()),
        file => Folder::content(file).map(str::to_owned),
    };
    match load(&inputs) {
        Ok(loaded) => {
            for warning in &loaded.warnings {
                let _ = warning.render(&text, true);
            }
            let compiled = run(Arc::new(loaded.program));
            if CHANGING.iter().any(|name| source.contains(name)) {
                return;
            }
            let inputs = Inputs {
                limits: Limits {
                    compile: false,
                    ..inputs.limits
                },
                state: StateStore::default(),
                ..inputs
            };
            let Ok(loaded) = load(&inputs) else {
                panic!("loaded once, and then not");
            };
            let interpreted = run(Arc::new(loaded.program));
            for (compiled, interpreted) in compiled.iter().zip(&interpreted) {
                // What memory is held and what time has passed is looked at now and then only.
                if compiled.is_about_luck() || interpreted.is_about_luck() {
                    return;
                }
                assert_eq!(compiled, interpreted, "compiled, and interpreted");
            }
        }
        Err(LoadError::Invalid(found)) => {
            assert!(found.has_errors(), "refused without a reason");
            let _ = found.render(&text, true);
        }
        Err(LoadError::Changed) => panic!("these files never change"),
    }
}

/// What gives something else each time, or waits for others.
const CHANGING: [&str; 8] = [
    "now", "random", "uuid", "rate", "cache", "every", "nanos", "_sign",
];

/// What is seen of a hook.
#[derive(Debug, PartialEq)]
struct Seen {
    ended: Result<(), Failure>,
    request: String,
    response: String,
}

impl Seen {
    fn is_about_luck(&self) -> bool {
        let failed = self.ended.as_ref().err();
        failed
            .is_some_and(|failure| matches!(failure.kind, FailureKind::Time | FailureKind::Memory))
    }
}

fn run(program: Arc<Program>) -> Vec<Seen> {
    let mut seen = Vec::new();
    let mut interpreter = Interpreter::new(program.clone()).expect("a program that loads can run");
    let mut request = MemoryRequest::new("POST", "a.example", "/api/v1/x?a=1&b=x+y")
        .with_header("x-api-key", "k")
        .with_header("cookie", "s=1; t=2")
        .with_header("authorization", "Bearer abc");
    request.body = Some(Bytes::from_static(br#"{"a": [1, 2.5, "x"]}"#));
    let mut response = MemoryResponse {
        status: StatusCode::OK,
        headers: HeaderMap::new(),
        is_local: false,
        body: Bytes::from_static(b"hello"),
    };
    for path in ["/", "/api", "/api/v1/x", "/a/b/c/d/"] {
        let request = MemoryRequest::new("GET", "a.example", path);
        if let Match::Found(found) = program.find(&request, &[]) {
            let route = program.route(found.route);
            assert_eq!(route.pattern.names().count(), found.captures.len());
        }
    }
    for (index, hook) in (0..).zip(program.hooks.iter().take(HOOKS)) {
        let id = HookId(index);
        let exchange = (&mut request, &mut response);
        let ended = match hook.kind {
            HookKind::OnRequest | HookKind::OnRequestBody => {
                finish::<Verdict>(&mut interpreter, id, exchange, false)
            }
            HookKind::OnResponse | HookKind::OnResponseBody => {
                finish::<Verdict>(&mut interpreter, id, exchange, true)
            }
            HookKind::OnLog => finish::<Logged>(&mut interpreter, id, exchange, true),
            HookKind::To => finish::<Choice>(&mut interpreter, id, exchange, false),
            HookKind::Respond => finish::<Answer>(&mut interpreter, id, exchange, false),
            HookKind::When => finish::<Holds>(&mut interpreter, id, exchange, false),
            HookKind::Every => {
                let said: Result<Finished, Failure> = interpreter
                    .background(id, |calls| calls.iter().map(|_| unavailable()).collect());
                said.map(|_| ())
            }
        };
        seen.push(Seen {
            ended,
            request: format!("{request:?}"),
            response: format!("{response:?}"),
        });
    }
    assert!(interpreter.is_idle(), "a hook has not come to its end");
    seen
}

fn unavailable() -> crate::outbound::Reply {
    Err(CallFailure {
        kind: CallFailureKind::Unavailable,
        message: "there is no network here".to_owned(),
    })
}

/// Runs a hook to its end; passwords are right, and nobody answers calls.
fn finish<V: Said>(
    interpreter: &mut Interpreter,
    hook: HookId,
    (request, response): (&mut MemoryRequest, &mut MemoryResponse),
    has_response: bool,
) -> Result<(), Failure> {
    let mut running = interpreter.start::<V>(hook)?;
    let mut step = None;
    loop {
        let subject = if has_response {
            Subject::Exchange(request, response)
        } else {
            Subject::Request(request)
        };
        step = Some(match step {
            None | Some(Step::Turn | Step::Load(_)) => running.resume(subject),
            Some(Step::Ended(said)) => return said.map(|_| ()),
            Some(Step::Calls(calls)) => {
                running.answer(subject, calls.iter().map(|_| unavailable()).collect())
            }
            Some(Step::Password(_)) => running.verified(subject, Some(true)),
        });
    }
}
