//! Calls as a worker makes them: pools of a generation, several at once.

use super::*;
use crate::config::Overrides;
use crate::generation::Generation;
use crate::jwks::KeySets;
use crate::source::Source;
use edgewright_script::{
    engine::Verdict,
    program::{Destination, PoolId},
    state::StateStore,
};

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// A generation with one pool.
fn generation(caller: &Caller, target: SocketAddr) -> (Generation, PoolId) {
    let program = format!("pool(\"auth\", [\"{target}\"]);\nroute(\"/\").to(\"auth\");\n");
    let generation = generation_of(caller, &program);
    let Destination::Pool(pool) = generation.program.routes[0].destination else {
        panic!("not a pool");
    };
    (generation, pool)
}

fn generation_of(caller: &Caller, program: &str) -> Generation {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("routes.rhai"), program).unwrap();
    let source = Source {
        path: folder.path().to_owned(),
        overrides: Overrides::default(),
        resolver: caller.resolver.clone(),
        metrics: caller.metrics.clone(),
        workers: 1,
        state: StateStore::default(),
        key_sets: Arc::new(KeySets::new(
            caller.resolver.clone(),
            caller.metrics.clone(),
            Arc::default(),
        )),
        last_good: None,
    };
    let compiled = source.compile().unwrap();
    source.generation(compiled, None).unwrap()
}

#[tokio::test]
async fn several_calls_are_made_at_once_and_answered_in_order() {
    // Nobody gets an answer before all have asked.
    let all = Arc::new(tokio::sync::Barrier::new(3));
    let script = move |_, mut peer: server::Peer| {
        let all = all.clone();
        async move {
            let path = peer.header().await.unwrap();
            all.wait().await;
            let name = path.split([' ', '/']).nth(2).unwrap();
            let length = name.len();
            let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{name}");
            peer.say(answer).await;
        }
    };
    let server = Server::start(script).await;
    let silent = Server::saying("").await;
    let caller = Caller::new();
    let (generation, pool) = generation(&caller, server.address());
    let to = |target: &str| Outgoing {
        target: target.to_owned(),
        ..get(server.address())
    };
    let calls = [
        to("/one"),
        Outgoing {
            recipient: Recipient::Pool(pool),
            ..to("/two")
        },
        Outgoing {
            timeout: Duration::from_millis(50),
            ..get(silent.address())
        },
        to("/three"),
    ];
    let replies = in_time(caller.client.call_all(&calls, &generation, MOST_BODY)).await;
    let mut replies = replies.into_iter();
    let mut next = || replies.next().unwrap();
    assert_eq!(body(next()), "one");
    assert_eq!(body(next()), "two");
    assert_fails(next(), CallFailureKind::Timeout, &["not done within 50ms"]);
    assert_eq!(body(next()), "three");
    assert_eq!(caller.outcomes("ok"), 3.0);
}

#[tokio::test]
async fn a_call_can_be_made_on_a_workers_runtime() {
    fn sendable<T: Send>(future: T) -> T {
        future
    }
    let server = Server::saying(OK).await;
    let caller = Caller::new();
    let (generation, pool) = generation(&caller, server.address());
    let call = Outgoing {
        recipient: Recipient::Pool(pool),
        ..get(server.address())
    };
    let reply = sendable(caller.client.call(&call, &generation, MOST_BODY));
    // It lies in the future of each request, also of those that call nobody.
    assert!(size_of_val(&reply) < 1024, "{}", size_of_val(&reply));
    assert_eq!(body(in_time(reply).await), "ok");
}

/// The worker's interpreter holds the program, and there may be no further request or reload for hours.
#[tokio::test]
async fn a_program_goes_with_its_last_request() {
    let caller = Caller::new();
    let hooked = "route(\"/\").on_request(|req| ()).respond(200, \"ok\");";
    let old = generation_of(&caller, hooked);
    let new = generation_of(&caller, hooked);
    let program = Arc::downgrade(&old.program);
    let client = Arc::new(caller.client);
    let shared = crate::in_force::InForce::new(old);
    let request = crate::worker::current(&shared, &client);
    let hook = request.program.routes[0].on_request[0];
    drop(crate::worker::start::<Verdict>(&request, hook).unwrap());
    shared.store(Arc::new(new));
    drop(crate::worker::current(&shared, &client));
    assert!(program.strong_count() > 0, "the request has it");
    drop(request);
    in_time(async {
        while program.strong_count() > 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_worker_frees_no_generation_itself() {
    struct Holds(std::sync::mpsc::Receiver<()>);
    impl Drop for Holds {
        fn drop(&mut self) {
            // Until the test lets it go.
            let _ = self.0.recv();
        }
    }

    let caller = Caller::new();
    let target = SocketAddr::from(([127, 0, 0, 1], 9));
    let (old, _) = generation(&caller, target);
    let (new, _) = generation(&caller, target);
    let metrics = caller.metrics.clone();
    let client = Arc::new(caller.client);
    let shared = crate::in_force::InForce::new(old);
    let request = crate::worker::current(&shared, &client);
    shared.store(Arc::new(new));
    drop(crate::worker::current(&shared, &client));
    assert_eq!(metrics.generations(), 2, "the request has it");

    // Whatever is to be freed now waits behind this.
    let (go, held) = std::sync::mpsc::channel();
    crate::discard::discard(Box::new(Holds(held)));
    drop(request);
    assert_eq!(metrics.generations(), 2, "not by this thread");
    drop(go);
    in_time(async {
        while metrics.generations() > 1 {
            tokio::task::yield_now().await;
        }
    })
    .await;
}
