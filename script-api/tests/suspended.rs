//! Suspended hooks are counted for the whole process, so this test has a process of its own.

#![allow(clippy::unwrap_used)]

mod support;

use bytes::Bytes;
use edgewright_script::{
    engine::{Limits, ScriptLimit, Step, Subject, Verdict, suspended_hooks},
    memory::MemoryRequest,
    outbound::{Incoming, Reply},
};
use http::{HeaderMap, StatusCode};

use support::{inputs, program_of};

fn answer(status: u16) -> Reply {
    Ok(Incoming {
        status: StatusCode::from_u16(status).unwrap(),
        headers: HeaderMap::new(),
        body: Bytes::new(),
        ..Incoming::default()
    })
}

#[test]
fn suspended_hooks_are_bounded_counted_and_apart() {
    let mut inputs = inputs(
        r#"route("/").to("web").on_request(|req| {
            let mine = req.path;
            let r = fetch("api");
            if req.path != mine { return respond(500); }
            respond(r.status, mine)
        });"#,
    );
    inputs.limits = Limits {
        waiting: 2,
        ..Limits::default()
    };
    let mut runner = program_of(&inputs);
    let hook = runner.program.routes[0].on_request[0];
    let mut requests =
        ["/a", "/b", "/c"].map(|path| MemoryRequest::new("GET", "example.com", path));
    let mut start = |request: &mut MemoryRequest| {
        let mut running = runner.interpreter.start::<Verdict>(hook).unwrap();
        let step = running.resume(Subject::Request(request));
        (running, step)
    };
    let (mut first, step) = start(&mut requests[0]);
    assert!(matches!(step, Step::Calls(_)));
    let (second, step) = start(&mut requests[1]);
    assert!(matches!(step, Step::Calls(_)));
    assert_eq!(suspended_hooks().0, 2);
    let (_third, step) = start(&mut requests[2]);
    let Step::Ended(Err(failure)) = step else {
        panic!("{step:?}")
    };
    assert_eq!(failure.limit, Some(ScriptLimit::Waiting));

    // A hook that is dropped is cancelled, and others have its place.
    drop(second);
    assert_eq!(suspended_hooks().0, 1);
    let (mut second, step) = start(&mut requests[1]);
    assert!(matches!(step, Step::Calls(_)));

    // They end in another order than they began, each with its own request.
    for (running, index, path) in [(&mut second, 1, "/b"), (&mut first, 0, "/a")] {
        let request = Subject::Request(&mut requests[index]);
        let step = running.answer(request, vec![answer(203)]);
        let Step::Ended(Ok(Verdict::Answer(answer))) = step else {
            panic!("{step:?}")
        };
        assert_eq!(
            (answer.status.as_u16(), &answer.body[..]),
            (203, path.as_bytes())
        );
    }
    assert_eq!(suspended_hooks(), (0, 0));
    let step = first.resume(Subject::Request(&mut requests[0]));
    assert!(matches!(step, Step::Ended(Err(_))), "it ended already");
}
