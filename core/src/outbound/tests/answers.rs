//! What servers answer, and what no answer is.

use super::*;
use CallFailureKind::{Broken, Timeout, TooLarge};

const TIMEOUT: Duration = Duration::from_millis(200);

/// What comes of an answer of these bytes, after which the server closes.
async fn answer_to(bytes: impl Into<Vec<u8>>) -> Reply {
    let server = Server::saying_last(bytes).await;
    Caller::new().get(server.address()).await
}

#[tokio::test]
async fn an_answer_has_status_fields_and_body() {
    let server = Server::saying(
        "HTTP/1.1 403 Forbidden\r\nContent-Length: 5\r\nX-Why: a\r\nX-Why: b\r\n\
         Connection: keep-alive, X-Hop\r\nX-Hop: 1\r\nKeep-Alive: timeout=5\r\n\r\nnever",
    )
    .await;
    let caller = Caller::new();
    let mut call = with(Method::POST, server.address());
    call.headers = vec![
        (HeaderName::from_static("x-a"), "1".parse().unwrap()),
        (HeaderName::from_static("x-a"), "2".parse().unwrap()),
    ];
    call.body = Bytes::from_static(b"name=joe");
    let answer = caller.call(&call).await.unwrap();
    assert_eq!(answer.status, 403);
    assert_eq!(answer.body, "never");
    let fields: Vec<_> = answer.headers.iter().collect();
    let fields: Vec<_> = fields
        .iter()
        .map(|(name, value)| (name.as_str(), value.to_str().unwrap()))
        .collect();
    assert_eq!(
        fields,
        [("content-length", "5"), ("x-why", "a"), ("x-why", "b")]
    );
    let port = server.address().port();
    assert_eq!(
        server.requests(),
        [format!(
            "POST /check?a=b HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nuser-agent: edgewright\r\n\
             x-a: 1\r\nx-a: 2\r\nContent-Length: 8\r\n\r\nname=joe"
        )]
    );
    assert_eq!(caller.outcomes("ok"), 1.0);
    assert_eq!(
        caller.metric("edgewright_outbound_duration_seconds_count"),
        1.0
    );
}

#[tokio::test]
async fn bodies_end_where_their_framing_says() {
    for answer in [
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\nX-T: 1\r\n\r\n",
        "HTTP/1.1 200 OK\r\n\r\nhello",
        "HTTP/1.0 200 OK\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello",
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n\
         HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
    ] {
        assert_eq!(body(answer_to(answer).await), "hello", "{answer}");
    }
}

#[tokio::test]
async fn interim_fields_are_not_those_of_the_answer() {
    let answer = answer_to(
        "HTTP/1.1 103 Early Hints\r\nX-Early: 1\r\n\r\n\
         HTTP/1.1 200 OK\r\nX-Late: 1\r\nContent-Length: 0\r\n\r\n",
    );
    let headers = answer.await.unwrap().headers;
    assert!(headers.contains_key("x-late") && !headers.contains_key("x-early"));
}

#[tokio::test]
async fn answers_without_a_body_are_not_waited_for() {
    for (method, answer, status) in [
        (
            Method::HEAD,
            "HTTP/1.1 200 OK\r\nContent-Length: 999999999\r\n\r\n",
            200,
        ),
        (
            Method::HEAD,
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
            200,
        ),
        (Method::GET, "HTTP/1.1 204 No Content\r\n\r\n", 204),
        (
            Method::GET,
            "HTTP/1.1 304 Not Modified\r\nContent-Length: 999999999\r\n\r\n",
            304,
        ),
        (
            Method::POST,
            "HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n",
            201,
        ),
    ] {
        // The connection stays open: an end that is waited for would not come.
        let server = Server::saying(answer).await;
        let caller = Caller::new();
        for _ in 0..2 {
            let reply = caller.call(&with(method.clone(), server.address())).await;
            let reply = reply.unwrap();
            assert_eq!(reply.status, status, "{method} {answer}");
            assert!(reply.body.is_empty());
        }
        assert_eq!(server.connections(), 1, "{method} {answer}");
    }
}

#[tokio::test]
async fn redirects_are_answers() {
    let server = Server::saying("HTTP/1.1 302 Found\r\nLocation: /\r\nContent-Length: 0\r\n\r\n");
    let server = server.await;
    let reply = Caller::new().get(server.address()).await.unwrap();
    assert_eq!(reply.status, 302);
    assert_eq!(reply.headers["location"], "/");
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn what_is_no_answer_is_broken() {
    let interim = "HTTP/1.1 100 Continue\r\n\r\n".repeat(50);
    for (answer, cause) in [
        (
            "",
            "the connection was closed while waiting for the answer of 127.0.0.1:",
        ),
        ("HTTP/1.1 200 OK\r\nX-A: ", "the connection was closed"),
        ("SSH-2.0-OpenSSH_9.9\r\n\r\n", "the header is malformed"),
        (
            "HTTP/1.1 200 OK\r\nno colon\u{1b}[31m\r\n\r\n",
            "the header is malformed",
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
            "the header is malformed",
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
            "the header is malformed",
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello",
            "the connection was closed while reading",
        ),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
            "the connection was closed while reading",
        ),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nhello\r\n",
            "the chunks are malformed",
        ),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
            "a transfer coding",
        ),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nhello",
            "a transfer coding",
        ),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            "a transfer coding",
        ),
        (
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
            "switches protocols",
        ),
        (&interim, "one interim response after the other"),
    ] {
        assert_fails(answer_to(answer).await, Broken, &[cause, "127.0.0.1:"]);
    }
}

#[tokio::test]
async fn a_reset_is_broken_wherever_it_comes() {
    for start in [
        "",
        "HTTP/1.1 200 OK\r\nX-A: ",
        "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhell",
        "HTTP/1.1 200 OK\r\n\r\nhell",
    ] {
        let server = Server::start(move |_, mut peer| async move {
            // The rest of the request stays unread, so that closing resets the connection.
            peer.header().await;
            peer.say(start).await;
        })
        .await;
        let mut call = with(Method::POST, server.address());
        call.body = Bytes::from_static(&[b'x'; 1000]);
        let reply = Caller::new().call(&call).await;
        assert_fails(reply, Broken, &["Connection reset by peer"]);
    }
}

#[tokio::test]
async fn silence_ends_with_the_calls_timeout() {
    for (start, doing) in [
        ("", "waiting for the answer of 127.0.0.1:"),
        (
            "HTTP/1.1 200 OK\r\nX-A: ",
            "waiting for the answer of 127.0.0.1:",
        ),
        (
            "HTTP/1.1 100 Continue\r\n\r\n",
            "waiting for the answer of 127.0.0.1:",
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello",
            "reading the answer of 127.0.0.1:",
        ),
        (
            "HTTP/1.1 200 OK\r\n\r\nhello",
            "reading the answer of 127.0.0.1:",
        ),
    ] {
        let server = Server::saying(start).await;
        let caller = Caller::new();
        let reply = caller.call(&within(TIMEOUT, get(server.address()))).await;
        assert_fails(reply, Timeout, &["not done within 200ms", doing]);
        assert_eq!(caller.outcomes("timeout"), 1.0);
    }
}

#[tokio::test]
async fn a_slow_drip_ends_with_the_calls_timeout() {
    for start in ["HTTP/1.1 200 OK\r\nX-A: ", "HTTP/1.1 200 OK\r\n\r\n"] {
        let (told, gone) = tokio::sync::oneshot::channel();
        let told = std::sync::Mutex::new(Some(told));
        let server = Server::start(move |_, mut peer| {
            let told = told.lock().unwrap().take();
            async move {
                peer.request().await;
                peer.say(start).await;
                // The pace of this server is what the test is about.
                while peer.say("x").await {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
                let _ = told.unwrap().send(());
            }
        })
        .await;
        let call = within(TIMEOUT, get(server.address()));
        assert_fails(Caller::new().call(&call).await, Timeout, &["200ms"]);
        // And the connection is closed.
        in_time(gone).await.unwrap();
    }
}

#[tokio::test]
async fn a_body_that_is_too_large_is_not_read() {
    let length = MOST_BODY + 1;
    for start in [
        format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n"),
        "HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551615\r\n\r\n".to_owned(),
    ] {
        // Nothing of the body has to come.
        let server = Server::saying(start).await;
        let reply = Caller::new().get(server.address()).await;
        assert_fails(reply, TooLarge, &["larger than 65536 bytes", "127.0.0.1:"]);
    }
}

#[tokio::test]
async fn an_endless_body_is_cut_off() {
    for (start, more) in [
        ("HTTP/1.1 200 OK\r\n\r\n", "x".repeat(1000)),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
            format!("3e8\r\n{}\r\n", "x".repeat(1000)),
        ),
    ] {
        let server = Server::start(move |_, mut peer| {
            let more = more.clone();
            async move {
                peer.request().await;
                peer.say(start).await;
                while peer.say(&more).await {}
            }
        })
        .await;
        let caller = Caller::new();
        let reply = caller.get(server.address()).await;
        assert_fails(reply, TooLarge, &["larger than 65536 bytes"]);
        assert_eq!(caller.outcomes("too_large"), 1.0);
    }
}

#[tokio::test]
async fn a_body_of_the_largest_size_passes() {
    for start in [
        format!("HTTP/1.1 200 OK\r\nContent-Length: {MOST_BODY}\r\n\r\n"),
        "HTTP/1.1 200 OK\r\n\r\n".to_owned(),
    ] {
        let answer = format!("{start}{}", "x".repeat(MOST_BODY));
        assert_eq!(body(answer_to(answer).await).len(), MOST_BODY);
    }
}

#[tokio::test]
async fn a_huge_header_is_too_large() {
    let line = format!("X-A: {}\r\n", "x".repeat(8000));
    let long = format!("HTTP/1.1 200 OK\r\n{}", line.repeat(200));
    let many = format!("HTTP/1.1 200 OK\r\n{}\r\n", "X-A: 1\r\n".repeat(300));
    for answer in [long, many] {
        assert_fails(
            answer_to(answer).await,
            TooLarge,
            &["header", "1 MiB", "256"],
        );
    }
}

#[tokio::test]
async fn an_answer_before_the_body_was_read_counts() {
    let server = Server::start(|_, mut peer| async move {
        peer.header().await;
        peer.say("HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\n\r\nno!")
            .await;
        peer.end().await;
    })
    .await;
    let mut call = with(Method::PUT, server.address());
    call.body = Bytes::from(vec![b'x'; 100_000]);
    let reply = Caller::new().call(&call).await.unwrap();
    assert_eq!(reply.status, 413);
    assert_eq!(reply.body, "no!");
}
