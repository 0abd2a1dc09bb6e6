//! A hook that runs, and may be suspended before it ends.

use std::{
    io,
    marker::PhantomData,
    panic::{AssertUnwindSafe, catch_unwind},
    rc::Rc,
};

use corosensei::CoroutineResult;
use rhai::{Dynamic, EvalAltResult};

use super::{
    budget,
    coroutine::{Pause, Task, Wake},
    current::{self, Subject},
    failure::{Failure, FailureKind},
    interpreter::{Frame, State},
    loads::Awaited,
};
use crate::{
    outbound::{Outgoing, Reply},
    password::PasswordCheck,
    program::HookId,
};

/// What a hook did when it was resumed.
#[derive(Debug)]
pub enum Step<V> {
    /// It ended.
    Ended(Result<V, Failure>),
    /// It waits for the answers to these calls: make them and give the replies, in their order, to
    /// [`Running::answer`].
    Calls(Vec<Outgoing>),
    /// It waits for a value that another hook of this thread makes: wait for this, then call
    /// [`Running::resume`]. Resumed earlier, it makes the value itself.
    Load(Awaited),
    /// It waits for a password to be verified: give the outcome to [`Running::verified`].
    Password(PasswordCheck),
    /// It has run for a while and is not at its end: let others have a turn, then call
    /// [`Running::resume`] again.
    Turn,
}

/// What a kind of hook says, made of the value that its function gives.
pub trait Said: Sized {
    #[doc(hidden)]
    fn read(ended: &Ended<'_>, value: Dynamic) -> Result<Self, Failure>;
}

/// A call that has ended, for making something of its value.
#[doc(hidden)]
pub struct Ended<'a> {
    pub(super) state: &'a State,
    pub(super) hook: HookId,
}

/// One call of a hook. Dropping it before its end cancels it: what it holds is freed, and nothing
/// more of it runs. It can't leave its thread.
pub struct Running<V> {
    form: Form,
    state: Rc<State>,
    hook: HookId,
    said: PhantomData<fn() -> V>,
}

/// What runs a call.
enum Form {
    /// It has not begun.
    New,
    /// It runs on a stack of its own, where it can be suspended.
    Task(Task<Done>),
    /// It has ended.
    Ended,
}

/// How the interpreter ended, with what it ran in.
type Done = (Box<Frame>, Result<Dynamic, Box<EvalAltResult>>);

impl<V: Said> Running<V> {
    pub(super) fn new(state: &Rc<State>, hook: HookId) -> Self {
        Self {
            form: Form::New,
            state: state.clone(),
            hook,
            said: PhantomData,
        }
    }

    /// Begins it, or goes on after a [`Step::Turn`] or [`Step::Load`]. The subject is the same each
    /// time.
    pub fn resume(&mut self, subject: Subject<'_>) -> Step<V> {
        self.go(subject, Wake::Go)
    }

    /// Goes on after [`Step::Calls`] with the replies, one for each call, in their order.
    pub fn answer(&mut self, subject: Subject<'_>, replies: Vec<Reply>) -> Step<V> {
        self.go(subject, Wake::Replies(replies))
    }

    /// Goes on after [`Step::Password`]; `None` when it can't be said now whether it is right.
    pub fn verified(&mut self, subject: Subject<'_>, right: Option<bool>) -> Step<V> {
        self.go(subject, Wake::Verified(right))
    }

    fn go(&mut self, mut subject: Subject<'_>, wake: Wake) -> Step<V> {
        if matches!(self.form, Form::New) {
            if let Some(value) = self.state.quick(self.hook, &mut subject) {
                self.form = Form::Ended;
                current::begin(self.state.program.hook(self.hook).kind);
                return Step::Ended(self.say(value));
            }
            let program = &self.state.program;
            current::begin(program.hook(self.hook).kind);
            budget::start(&program.limits);
        }
        let ran = catch_unwind(AssertUnwindSafe(|| {
            subject.during(|| self.form.resume(wake, &self.state, self.hook))
        }));
        let ran = match ran {
            Ok(Err(error)) => {
                let failed = self.failed(&format!("no stack for the hook: {error}"));
                return Step::Ended(Err(failed));
            }
            Ok(Ok(ran)) => Ok(ran),
            Err(panic) => Err(panic),
        };
        let (frame, value) = match ran {
            Ok(Some(CoroutineResult::Return(done))) => done,
            Ok(Some(CoroutineResult::Yield(pause))) => {
                return match pause {
                    Pause::Calls(calls) => Step::Calls(calls),
                    Pause::Load(load) => Step::Load(load),
                    Pause::Password(check) => Step::Password(check),
                    Pause::Turn => Step::Turn,
                };
            }
            Ok(None) => return Step::Ended(Err(self.failed("the hook has ended already"))),
            Err(_) => {
                // Its values may be half done: never use them again.
                self.state.is_broken.set(true);
                return Step::Ended(Err(Failure {
                    kind: FailureKind::Panic,
                    ..self.failed("the interpreter panicked")
                }));
            }
        };
        self.state.keep_frame(frame);
        Step::Ended(self.read(value))
    }

    fn read(&self, value: Result<Dynamic, Box<EvalAltResult>>) -> Result<V, Failure> {
        let place = &self.state.program.hook(self.hook).place;
        let value =
            value.map_err(|error| Failure::from_rhai(&error, &self.state.program.source, place))?;
        // What ran out may have been caught by the program, in a callback of a native.
        if let Some(failure) = Failure::exhausted(place) {
            return Err(failure);
        }
        self.say(value)
    }

    fn say(&self, value: Dynamic) -> Result<V, Failure> {
        let ended = Ended {
            state: &self.state,
            hook: self.hook,
        };
        V::read(&ended, value)
    }

    fn failed(&self, message: &str) -> Failure {
        Failure::misuse(&self.state.program.hook(self.hook).place, message)
    }
}

impl Form {
    /// Runs it until it stops or ends. `None` when it has already ended.
    ///
    /// # Errors
    /// When the system gives no stack.
    fn resume(
        &mut self,
        wake: Wake,
        state: &Rc<State>,
        hook: HookId,
    ) -> io::Result<Option<CoroutineResult<Pause, Done>>> {
        match self {
            Self::Task(task) => return Ok(task.resume(wake)),
            Self::Ended => return Ok(None),
            Self::New => {}
        }
        let mut frame = state.take_frame();
        if state.needs_stack(hook) {
            let runs = state.clone();
            let mut task = Task::new(move || {
                let ended = runs.run(hook, &mut frame);
                (frame, ended)
            })?;
            let ran = task.resume(wake);
            *self = Self::Task(task);
            return Ok(ran);
        }
        // It runs on the stack of who resumes it, in one go: it is short, and waits for nothing.
        *self = Self::Ended;
        let ended = state.run(hook, &mut frame);
        Ok(Some(CoroutineResult::Return((frame, ended))))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::{rc::Rc, sync::Arc};

    use super::*;
    use crate::{
        engine::{Interpreter, Limits, Verdict},
        load::{Inputs, load},
        memory::MemoryRequest,
        path::PathPolicy,
        program::Program,
        state::StateStore,
        values::{FileError, Files, ProgramFile},
    };

    struct NoFiles;

    impl Files for NoFiles {
        fn read(&self, name: &str) -> Result<Vec<u8>, FileError> {
            Err(FileError::NotFound(name.to_owned()))
        }

        fn read_program(&self, name: &str) -> Result<ProgramFile, FileError> {
            Err(FileError::NotFound(name.to_owned()))
        }
    }

    fn program(source: &str) -> Arc<Program> {
        let inputs = Inputs {
            file: "routes.rhai".to_owned(),
            source: source.to_owned(),
            files: Rc::new(NoFiles),
            environment: Rc::new(|_| None),
            pools: vec!["web".to_owned()],
            limits: Limits::default(),
            path_policy: PathPolicy::default(),
            state: StateStore::default(),
        };
        Arc::new(load(&inputs).unwrap().program)
    }

    #[test]
    fn a_panic_ends_its_hook_alone() {
        let program = program(
            "const N = 7;
             route(\"/panics\").on_request(|req| { let a = [1]; a.map(|x| panic_on_purpose()); }).to(\"web\");
             route(\"/waits\").on_request(|req| { let r = fetch(\"web\"); if N != 7 || r.status != 502 { return respond(500); } }).to(\"web\");",
        );
        let hooks = [0, 1].map(|route: usize| program.routes[route].on_request[0]);
        let mut interpreter = Interpreter::new(program).unwrap();
        let mut request = MemoryRequest::new("GET", "a", "/");
        let mut waits = interpreter.start::<Verdict>(hooks[1]).unwrap();
        let step = waits.resume(Subject::Request(&mut request));
        assert!(matches!(step, Step::Calls(_)));

        for _ in 0..2 {
            let failure = interpreter.on_request(hooks[0], &mut request).unwrap_err();
            assert_eq!(failure.kind, FailureKind::Panic);
            assert_eq!(failure.limit, None);
        }

        // A hook that waited meanwhile ends in the engine that it began in, others in a new one.
        let failed = Err(crate::outbound::CallFailure {
            kind: crate::outbound::CallFailureKind::Broken,
            message: "broken".to_owned(),
        });
        let step = waits.answer(Subject::Request(&mut request), vec![failed]);
        assert!(
            matches!(step, Step::Ended(Ok(Verdict::Continue))),
            "{step:?}"
        );
        assert!(matches!(
            interpreter.on_request(hooks[1], &mut request),
            Ok(Verdict::Answer(_))
        ));
        assert!(interpreter.is_idle());
    }

    #[test]
    fn a_cancelled_hook_is_freed_and_does_not_run_on() {
        for body in [
            "let a = [req, 1]; a.map(|x| fetch(\"web\").status);",
            // Whoever could catch it would come to the panic, which would fail this test.
            "let a = [2, 1]; try { a.sort(|x, y| fetch(\"web\").status) } catch { } panic_on_purpose();",
            "let a = [2, 1]; try { a.dedup(|x, y| fetch(\"web\").status == 1) } catch { } panic_on_purpose();",
            "let a = [2, 1]; let n = a.reduce(|x, y| fetch(\"web\").status, 0); panic_on_purpose();",
        ] {
            let source = format!("route(\"/\").on_request(|req| {{ {body} }}).to(\"web\");");
            let program = program(&source);
            let hook = program.routes[0].on_request[0];
            let mut interpreter = Interpreter::new(program).unwrap();
            let mut request = MemoryRequest::new("GET", "a", "/");
            for _ in 0..100 {
                let mut running = interpreter.start::<Verdict>(hook).unwrap();
                let step = running.resume(Subject::Request(&mut request));
                assert!(matches!(step, Step::Calls(_)), "{body}: {step:?}");
                assert!(!interpreter.is_idle());
                drop(running);
                assert!(interpreter.is_idle(), "its stack holds the engine no more");
            }
        }
    }
}
