//! `cache.get_or` when several hooks miss the same value at the same time.

#![allow(clippy::unwrap_used)]

mod support;

use std::{
    pin::pin,
    sync::{Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
};

use bytes::Bytes;
use edgewright_script::{
    engine::{Awaited, Limits, Running, ScriptLimit, Step, Subject, Verdict, suspended_hooks},
    memory::MemoryRequest,
    outbound::{CallFailure, CallFailureKind, Incoming, Reply},
};
use http::{HeaderMap, StatusCode};

use support::{Runner, inputs, program, program_of};

fn answer(body: &'static str) -> Reply {
    Ok(Incoming {
        status: StatusCode::OK,
        headers: HeaderMap::new(),
        body: Bytes::from_static(body.as_bytes()),
        ..Incoming::default()
    })
}

fn refused() -> Reply {
    Err(CallFailure {
        kind: CallFailureKind::Connect,
        message: "refused".to_owned(),
    })
}

/// A hook that answers with the value of its query parameter `key`, made by a call.
const SOURCE: &str = "const KEPT = cache(\"1m\", 10);
    route(\"/{*rest}\").on_request(|req| {
        let key = req.query(\"key\");
        return respond(200, \"\" + KEPT.get_or(key, || ask(key)));
    }).to(\"web\");
    fn ask(key) {
        let r = fetch(\"api\", #{ path: \"/\" + key });
        if r.error != () { throw \"no answer\"; }
        if r.body().len() == 0 { return (); }
        r.body().text()
    }";

/// Suspended hooks are counted for the whole process, so the tests run one after the other.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A request whose hook runs.
struct Client {
    running: Running<Verdict>,
    request: MemoryRequest,
    step: Step<Verdict>,
}

impl Client {
    fn new(runner: &mut Runner, key: &str) -> Self {
        let hook = runner.program.routes[0].on_request[0];
        let mut request = MemoryRequest::new("GET", "any.example", &format!("/?key={key}"));
        let mut running = runner.interpreter.start::<Verdict>(hook).unwrap();
        let step = running.resume(Subject::Request(&mut request));
        let mut client = Self {
            running,
            request,
            step,
        };
        client.take_turns();
        client
    }

    /// On a slow machine a hook may let others have a turn at any time.
    fn take_turns(&mut self) {
        while matches!(self.step, Step::Turn) {
            self.step = self.running.resume(Subject::Request(&mut self.request));
        }
    }

    fn calls(&self) -> bool {
        matches!(self.step, Step::Calls(_))
    }

    fn waits(&self) -> bool {
        matches!(self.step, Step::Load(_))
    }

    /// Whether what it waits for is there.
    fn is_ready(&mut self) -> bool {
        let Step::Load(load) = &mut self.step else {
            panic!("it waits for nobody: {:?}", self.step);
        };
        is_ready(load)
    }

    fn resume(&mut self) {
        self.step = self.running.resume(Subject::Request(&mut self.request));
        self.take_turns();
    }

    fn answer(&mut self, reply: Reply) {
        let subject = Subject::Request(&mut self.request);
        self.step = self.running.answer(subject, vec![reply]);
        self.take_turns();
    }

    /// The text that it answers with.
    fn said(&self) -> String {
        match &self.step {
            Step::Ended(Ok(Verdict::Answer(answer))) => {
                String::from_utf8(answer.body.to_vec()).unwrap()
            }
            other => panic!("{other:?}"),
        }
    }
}

fn is_ready(load: &mut Awaited) -> bool {
    let mut context = Context::from_waker(Waker::noop());
    matches!(pin!(load).poll(&mut context), Poll::Ready(()))
}

#[test]
fn one_makes_it_and_the_others_of_the_worker_wait() {
    let _alone = alone();
    let mut runner = program(SOURCE);
    let mut first = Client::new(&mut runner, "a");
    assert!(first.calls());
    let mut others: Vec<_> = (0..5).map(|_| Client::new(&mut runner, "a")).collect();
    assert!(others.iter().all(Client::waits));
    assert_eq!(suspended_hooks().0, 6);
    assert!(!others[0].is_ready());
    // Another key is another value.
    let mut other = Client::new(&mut runner, "b");
    assert!(other.calls());
    other.answer(answer("of b"));
    assert_eq!(other.said(), "of b");
    assert!(!others[0].is_ready());

    first.answer(answer("of a"));
    assert_eq!(first.said(), "of a");
    for other in &mut others {
        assert!(other.is_ready());
        other.resume();
        assert_eq!(other.said(), "of a");
    }
    assert_eq!(Client::new(&mut runner, "a").said(), "of a");
    assert_eq!(suspended_hooks(), (0, 0));
}

#[test]
fn nothing_is_an_answer_for_all_who_wait() {
    let _alone = alone();
    let mut runner = program(SOURCE);
    let mut first = Client::new(&mut runner, "a");
    let mut second = Client::new(&mut runner, "a");
    first.answer(answer(""));
    assert!(second.is_ready());
    second.resume();
    assert_eq!(second.said(), "");
    assert!(Client::new(&mut runner, "a").calls(), "and is not kept");
}

#[test]
fn who_waited_in_vain_makes_it_himself() {
    let _alone = alone();
    let mut runner = program(SOURCE);
    for is_cancelled in [false, true] {
        let mut first = Client::new(&mut runner, "a");
        let mut others: Vec<_> = (0..3).map(|_| Client::new(&mut runner, "a")).collect();
        assert!(others.iter().all(Client::waits));
        if is_cancelled {
            drop(first);
        } else {
            first.answer(refused());
            assert!(matches!(first.step, Step::Ended(Err(_))));
        }
        // None of them waits a second time, whatever the others do.
        for other in &mut others {
            assert!(other.is_ready());
            other.resume();
            assert!(other.calls());
        }
        for other in &mut others {
            other.answer(refused());
            assert!(matches!(other.step, Step::Ended(Err(_))));
        }
        assert_eq!(suspended_hooks(), (0, 0));
    }
    let mut last = Client::new(&mut runner, "a");
    assert!(last.calls());
    last.answer(answer("at last"));
    assert_eq!(last.said(), "at last");
}

#[test]
fn who_is_resumed_too_early_makes_it_himself() {
    let _alone = alone();
    let mut runner = program(SOURCE);
    let mut first = Client::new(&mut runner, "a");
    let mut second = Client::new(&mut runner, "a");
    second.resume();
    assert!(second.calls());
    second.answer(answer("second"));
    assert_eq!(second.said(), "second");
    first.answer(answer("first"));
    assert_eq!(first.said(), "first");
}

/// A hook that makes a value needs another value, which a hook makes that needs the first.
#[test]
fn no_two_wait_for_each_other() {
    let _alone = alone();
    let source = "const KEPT = cache(\"1m\", 10);
        route(\"/{*rest}\").on_request(|req| {
            let key = req.query(\"key\");
            let other = if key == \"a\" { \"b\" } else { \"a\" };
            return respond(200, \"\" + KEPT.get_or(key, || both(key, other)));
        }).to(\"web\");
        fn both(key, other) { ask(key) + KEPT.get_or(other, || ask(other)) }
        fn ask(key) { fetch(\"api\", #{ path: \"/\" + key }).body().text() }";
    let mut runner = program(source);
    let mut first = Client::new(&mut runner, "a");
    let mut second = Client::new(&mut runner, "b");
    assert!(
        first.calls() && second.calls(),
        "{:?} {:?}",
        first.step,
        second.step
    );
    first.answer(answer("a"));
    assert!(first.calls(), "it does not wait for the second");
    second.answer(answer("b"));
    assert!(second.calls());
    first.answer(answer("b"));
    second.answer(answer("a"));
    assert_eq!(
        (first.said(), second.said()),
        ("ab".to_owned(), "ba".to_owned())
    );

    // Nor does one wait for itself: it calls itself until that is too deep.
    let source = "const KEPT = cache(\"1m\", 10);
        route(\"/{*rest}\").on_request(|req| respond(200, \"\" + again())).to(\"web\");
        fn again() { KEPT.get_or(\"k\", || again()) }";
    let client = Client::new(&mut program(source), "a");
    assert!(
        matches!(client.step, Step::Ended(Err(_))),
        "{:?}",
        client.step
    );
}

#[test]
fn generations_that_share_a_cache_share_its_making() {
    let _alone = alone();
    let old = inputs(SOURCE);
    let (mut first, mut second) = (program_of(&old), program_of(&old));
    let mut maker = Client::new(&mut first, "a");
    let mut waits = Client::new(&mut second, "a");
    assert!(maker.calls() && waits.waits());
    maker.answer(answer("made"));
    waits.resume();
    assert_eq!(waits.said(), "made");
}

#[test]
fn those_who_wait_are_bounded_as_suspended_hooks_are() {
    let _alone = alone();
    let mut inputs = inputs(SOURCE);
    inputs.limits = Limits {
        waiting: 2,
        ..Limits::default()
    };
    let mut runner = program_of(&inputs);
    let _first = Client::new(&mut runner, "a");
    let second = Client::new(&mut runner, "a");
    assert!(second.waits());
    let third = Client::new(&mut runner, "a");
    let Step::Ended(Err(failure)) = third.step else {
        panic!("{:?}", third.step)
    };
    assert_eq!(failure.limit, Some(ScriptLimit::Waiting));
}
