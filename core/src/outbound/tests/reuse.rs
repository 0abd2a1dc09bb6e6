//! Connections that are kept, and that are not.

use super::*;
use crate::outbound::exchange::{Fault, exchange};
use crate::outbound::failure::Progress;
use crate::outbound::request;
use CallFailureKind::Broken;
use pingora_core::protocols::http::v1::client::HttpSession;

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const EMPTY: &str = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

#[tokio::test]
async fn a_connection_is_used_again() {
    let server = Server::saying(OK).await;
    let caller = Caller::new();
    for _ in 0..5 {
        assert_eq!(body(caller.get(server.address()).await), "ok");
    }
    assert_eq!(server.connections(), 1);
    assert_eq!(server.requests().len(), 5);
}

#[tokio::test]
async fn calls_at_the_same_time_have_connections_of_their_own() {
    // Answers when both have asked.
    let both = Arc::new(tokio::sync::Barrier::new(2));
    let server = Server::start(move |_, mut peer| {
        let both = both.clone();
        async move {
            while peer.request().await.is_some() {
                both.wait().await;
                peer.say(OK).await;
            }
        }
    })
    .await;
    let caller = Caller::new();
    for _ in 0..2 {
        let (one, two) = tokio::join!(caller.get(server.address()), caller.get(server.address()),);
        assert_eq!((body(one), body(two)), ("ok".to_owned(), "ok".to_owned()));
    }
    assert_eq!(server.connections(), 2);
}

#[tokio::test]
async fn no_more_connections_are_kept_than_allowed() {
    let all = Arc::new(tokio::sync::Barrier::new(12));
    let open = Arc::new(());
    let counted = open.clone();
    let server = Server::start(move |_, mut peer| {
        let (all, open) = (all.clone(), counted.clone());
        async move {
            peer.request().await;
            all.wait().await;
            peer.say(OK).await;
            peer.gone().await;
            drop(open);
        }
    })
    .await;
    let caller = Caller::new();
    let calls = (0..12).map(|_| caller.get(server.address()));
    for reply in futures_util::future::join_all(calls).await {
        body(reply);
    }
    // Without the test's own and the server's there is one for each connection that is kept. Pingora
    // makes room for a few more when it has to close some.
    let kept = || Arc::strong_count(&open) - 2;
    in_time(async {
        while kept() > 8 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert!(kept() >= 6, "{}", kept());
}

/// The first connection answers once and then plays `end` at the second request.
async fn going_stale() -> Server {
    Server::start(|number, mut peer| async move {
        peer.request().await;
        peer.say(EMPTY).await;
        if number == 0 {
            // As a server that closes an idle connection while a request is on its way.
            peer.request().await;
            peer.end().await;
            return;
        }
        while peer.request().await.is_some() {
            peer.say(EMPTY).await;
        }
    })
    .await
}

#[tokio::test]
async fn a_stale_connection_is_no_failure_of_an_idempotent_call() {
    for method in [Method::GET, Method::HEAD, Method::PUT, Method::DELETE] {
        let server = going_stale().await;
        let caller = Caller::new();
        let mut call = with(method.clone(), server.address());
        if method == Method::PUT {
            call.body = Bytes::from_static(b"again");
        }
        caller.call(&call).await.unwrap();
        let reply = caller.call(&call).await;
        assert_eq!(reply.unwrap().status, 200, "{method}");
        assert_eq!(server.connections(), 2);
        let requests = server.requests();
        assert_eq!(requests.len(), 3);
        assert!(requests.iter().all(|request| *request == requests[0]));
        assert_eq!(caller.outcomes("ok"), 2.0);
    }
}

#[tokio::test]
async fn a_post_is_not_sent_twice() {
    for method in [Method::POST, Method::PATCH] {
        let server = going_stale().await;
        let caller = Caller::new();
        let call = with(method, server.address());
        caller.call(&call).await.unwrap();
        assert_fails(caller.call(&call).await, Broken, &["closed"]);
        assert_eq!(server.connections(), 1);
        assert_eq!(server.requests().len(), 2);
    }
}

#[tokio::test]
async fn a_call_is_tried_again_once_and_only_after_a_kept_connection() {
    // Whoever asks first on a connection gets an answer the first time only.
    let server = Server::start(|number, mut peer| async move {
        peer.request().await;
        if number == 0 {
            peer.say(OK).await;
            peer.request().await;
        }
        peer.end().await;
    })
    .await;
    let caller = Caller::new();
    body(caller.get(server.address()).await);
    assert_fails(caller.get(server.address()).await, Broken, &["closed"]);
    assert_eq!((server.connections(), server.requests().len()), (2, 3));
    assert_fails(caller.get(server.address()).await, Broken, &["closed"]);
    assert_eq!((server.connections(), server.requests().len()), (3, 4));
}

#[tokio::test]
async fn the_second_try_is_on_a_new_connection() {
    // Two connections are kept, and both go stale.
    let both = Arc::new(tokio::sync::Barrier::new(2));
    let server = Server::start(move |number, mut peer| {
        let both = both.clone();
        async move {
            peer.request().await;
            if number < 2 {
                both.wait().await;
                peer.say(OK).await;
                peer.request().await;
                peer.end().await;
            } else {
                peer.say(OK).await;
            }
        }
    })
    .await;
    let caller = Caller::new();
    let (one, two) = tokio::join!(caller.get(server.address()), caller.get(server.address()));
    assert_eq!((body(one), body(two)), ("ok".to_owned(), "ok".to_owned()));
    assert_eq!(body(caller.get(server.address()).await), "ok");
    assert_eq!((server.connections(), server.requests().len()), (3, 4));
}

#[tokio::test]
async fn an_answer_that_began_is_not_asked_for_again() {
    for start in [
        "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhe",
        "HTTP/1.1 103 E\r\n\r\n",
    ] {
        let server = Server::start(move |_, mut peer| async move {
            peer.request().await;
            peer.say(OK).await;
            peer.request().await;
            peer.say(start).await;
            peer.end().await;
        })
        .await;
        let caller = Caller::new();
        body(caller.get(server.address()).await);
        assert_fails(caller.get(server.address()).await, Broken, &["closed"]);
        assert_eq!(server.connections(), 1);
    }
}

#[tokio::test]
async fn a_header_that_was_not_sent_is_told_apart() {
    let header = || {
        let call = get(([127, 0, 0, 1], 1).into());
        request::header(&call, "api.test").unwrap()
    };
    // Nobody reads at the other end any more.
    let (near, far) = tokio::io::duplex(16);
    drop(far);
    let mut session = HttpSession::new(Box::new(near));
    let mut progress = Progress::default();
    let fault = exchange(&mut session, header(), b"", 1, &mut progress).await;
    assert!(matches!(fault, Err(Fault::Unsent(_))));

    let (near, far) = tokio::io::duplex(4096);
    let mut session = HttpSession::new(Box::new(near));
    let close = async {
        let mut far = far;
        let mut byte = [0];
        tokio::io::AsyncReadExt::read_exact(&mut far, &mut byte)
            .await
            .unwrap();
    };
    let (fault, ()) = tokio::join!(
        exchange(&mut session, header(), b"", 1, &mut progress),
        close
    );
    assert!(matches!(fault, Err(Fault::Unanswered(_))));
}

#[tokio::test]
async fn connections_that_may_not_be_used_again_are_closed() {
    for answer in [
        // It says so.
        "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok",
        "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok",
        // Its end is not certain.
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
        // There is more than the answer: the next one would begin with it.
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil",
        "HTTP/1.1 204 No Content\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil",
    ] {
        let (told, mut closed) = tokio::sync::mpsc::unbounded_channel();
        let server = Server::start(move |_, mut peer| {
            let told = told.clone();
            async move {
                while peer.request().await.is_some() {
                    peer.say(answer).await;
                }
                let _ = told.send(());
            }
        })
        .await;
        let caller = Caller::new();
        for _ in 0..2 {
            let reply = caller.get(server.address()).await.unwrap();
            assert!(reply.body.is_empty() || reply.body == "ok");
            in_time(closed.recv()).await.unwrap();
        }
        assert_eq!(server.connections(), 2, "{answer}");
    }
}

#[tokio::test]
async fn a_server_that_closes_after_its_answer_costs_nothing() {
    let server = Server::saying_last(OK).await;
    let caller = Caller::new();
    for _ in 0..5 {
        assert_eq!(body(caller.get(server.address()).await), "ok");
    }
    assert_eq!(server.connections(), 5);
}

#[tokio::test]
async fn a_failed_call_leaves_no_connection_behind() {
    // Too large, and more than Pingora has read of it.
    let server = Server::start(|_, mut peer| async move {
        while peer.request().await.is_some() {
            peer.say("HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
                .await;
            while peer.say([b'x'; 1000]).await {}
        }
    })
    .await;
    let caller = Caller::new();
    for _ in 0..2 {
        let reply = caller.get(server.address()).await;
        assert_fails(reply, CallFailureKind::TooLarge, &[]);
    }
    assert_eq!(server.connections(), 2);
}

#[tokio::test]
async fn a_call_that_is_dropped_closes_its_connection() {
    for start in ["", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello"] {
        let (told, mut events) = tokio::sync::mpsc::unbounded_channel();
        let server = Server::start(move |_, mut peer| {
            let told = told.clone();
            async move {
                peer.request().await;
                peer.say(start).await;
                told.send("asked").unwrap();
                peer.gone().await;
                let _ = told.send("gone");
            }
        })
        .await;
        let caller = Caller::new();
        let address = server.address().to_string();
        let pool = TestPool::of(&caller, &[&address]);
        let call = get(server.address());
        tokio::select! {
            _ = caller.call_pool(&call, &pool) => panic!("there is no answer"),
            event = events.recv() => assert_eq!(event, Some("asked")),
        }
        assert_eq!(in_time(events.recv()).await, Some("gone"));
        assert_eq!(pool.in_flight(), 0);
        assert_eq!(caller.metric("edgewright_outbound_calls_total"), 0.0);
        // The next call has a connection of its own.
        tokio::select! {
            _ = caller.call_pool(&call, &pool) => panic!("there is no answer"),
            event = events.recv() => assert_eq!(event, Some("asked")),
        }
        assert_eq!(server.connections(), 2);
    }
}
