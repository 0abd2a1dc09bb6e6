//! Requests that no proxy should pass on: refused with a 4xx, and nothing of them reaches the
//! upstream. The bytes are those measured against other proxies.

use crate::support::client::{Connection, exchange, get, post};
use crate::support::launch::serving;
use crate::support::upstream::Upstream;

const BAD_REQUEST: &[u16] = &[400];
const METHOD: &[u16] = &[400, 405, 501];
const CODING: &[u16] = &[400, 501];

/// What is wrong, the bytes, and the statuses that say so.
fn requests() -> Vec<(&'static str, Vec<u8>, &'static [u16])> {
    let text = |what, text: &str, allowed| (what, text.as_bytes().to_vec(), allowed);
    let long_method = "A".repeat(5000);
    vec![
        text(
            "Content-Length with Transfer-Encoding",
            "POST /x HTTP/1.1\r\nHost: edge.test\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            BAD_REQUEST,
        ),
        text(
            "Transfer-Encoding with Content-Length",
            "POST /x HTTP/1.1\r\nHost: edge.test\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
            BAD_REQUEST,
        ),
        text(
            "Transfer-Encoding twice",
            "POST /x HTTP/1.1\r\nHost: edge.test\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            CODING,
        ),
        text(
            "a coding before chunked",
            "POST /x HTTP/1.1\r\nHost: edge.test\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
            CODING,
        ),
        text(
            "an unknown coding",
            "POST /x HTTP/1.1\r\nHost: edge.test\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
            CODING,
        ),
        text(
            "two different Content-Length",
            "POST /x HTTP/1.1\r\nHost: edge.test\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
            BAD_REQUEST,
        ),
        text(
            "the same Content-Length twice",
            "POST /x HTTP/1.1\r\nHost: edge.test\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\na",
            BAD_REQUEST,
        ),
        text(
            "a list as Content-Length",
            "POST /x HTTP/1.1\r\nHost: edge.test\r\nContent-Length: 1, 1\r\n\r\na",
            BAD_REQUEST,
        ),
        text(
            "a signed Content-Length",
            "POST /x HTTP/1.1\r\nHost: edge.test\r\nContent-Length: +1\r\n\r\na",
            BAD_REQUEST,
        ),
        text("no Host", "GET /x HTTP/1.1\r\n\r\n", BAD_REQUEST),
        text(
            "an empty Host",
            "GET /x HTTP/1.1\r\nHost: \r\n\r\n",
            BAD_REQUEST,
        ),
        text(
            "two Hosts",
            "GET /x HTTP/1.1\r\nHost: edge.test\r\nHost: other.test\r\n\r\n",
            BAD_REQUEST,
        ),
        text(
            "a space in Host",
            "GET /x HTTP/1.1\r\nHost: a b\r\n\r\n",
            BAD_REQUEST,
        ),
        text(
            "a path in Host",
            "GET /x HTTP/1.1\r\nHost: a,b/c\r\n\r\n",
            BAD_REQUEST,
        ),
        text(
            "user info in Host",
            "GET /x HTTP/1.1\r\nHost: user@edge.test\r\n\r\n",
            BAD_REQUEST,
        ),
        text(
            "a target of another host than Host",
            "GET http://other.test/x HTTP/1.1\r\nHost: edge.test\r\n\r\n",
            BAD_REQUEST,
        ),
        text(
            "TRACE",
            "TRACE /x HTTP/1.1\r\nHost: edge.test\r\n\r\n",
            &[405],
        ),
        text(
            "CONNECT",
            "CONNECT edge.test:443 HTTP/1.1\r\nHost: edge.test:443\r\n\r\n",
            &[400, 405],
        ),
        text(
            "a lower-case method",
            "get /x HTTP/1.1\r\nHost: edge.test\r\n\r\n",
            METHOD,
        ),
        (
            "a method of 5,000 characters",
            format!("{long_method} /x HTTP/1.1\r\nHost: edge.test\r\n\r\n").into_bytes(),
            METHOD,
        ),
        text(
            "a method that is no token",
            "G=\":<> /x HTTP/1.1\r\nHost: edge.test\r\n\r\n",
            METHOD,
        ),
        text(
            "a target without a slash",
            "GET x HTTP/1.1\r\nHost: edge.test\r\n\r\n",
            BAD_REQUEST,
        ),
        text(
            "an asterisk with GET",
            "GET * HTTP/1.1\r\nHost: edge.test\r\n\r\n",
            BAD_REQUEST,
        ),
        text(
            "bare LF as line ends",
            "GET /x HTTP/1.1\nHost: edge.test\n\n",
            BAD_REQUEST,
        ),
        text(
            "one bare LF",
            "GET /x HTTP/1.1\r\nHost: edge.test\nX-A: 1\r\n\r\n",
            BAD_REQUEST,
        ),
        text(
            "a bare CR in a value",
            "GET /x HTTP/1.1\r\nHost: edge.test\r\nX-A: 1\r2\r\n\r\n",
            BAD_REQUEST,
        ),
        text(
            "NUL in a value",
            "GET /x HTTP/1.1\r\nHost: edge.test\r\nX-A: 1\u{0}2\r\n\r\n",
            BAD_REQUEST,
        ),
        text(
            "a space before the colon",
            "GET /x HTTP/1.1\r\nHost: edge.test\r\nX-A : 1\r\n\r\n",
            BAD_REQUEST,
        ),
        text(
            "obsolete folding",
            "GET /x HTTP/1.1\r\nHost: edge.test\r\nX-A: 1\r\n 2\r\n\r\n",
            BAD_REQUEST,
        ),
        text(
            "a line without a colon",
            "GET /x HTTP/1.1\r\nHost: edge.test\r\nnonsense\r\n\r\n",
            BAD_REQUEST,
        ),
        text(
            "another protocol version",
            "GET /x HTTP/1.2\r\nHost: edge.test\r\n\r\n",
            &[400, 505],
        ),
        text(
            "a fragment in the target",
            "GET /a#b HTTP/1.1\r\nHost: edge.test\r\n\r\n",
            BAD_REQUEST,
        ),
    ]
}

#[test]
fn what_is_not_clean_is_refused_and_nothing_goes_upstream() {
    let web = Upstream::fixed("upstream");
    let proxy = serving(r#"route("/{*rest}").to("web");"#)
        .pool("web", web.address())
        .start();
    let mut wrong = Vec::new();
    for (what, bytes, allowed) in requests() {
        let status = exchange(proxy.address(), &bytes).map(|response| response.status);
        // A close without an answer refuses too.
        if status.is_some_and(|status| !allowed.contains(&status)) {
            wrong.push(format!("{what}: {}", status.unwrap_or_default()));
        }
        if !web.take_requests().is_empty() {
            wrong.push(format!("{what}: reached the upstream"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // The upstream hears of a good request and of nothing else.
    assert_eq!(proxy.send(&get("/good")).status, 200);
    assert_eq!(web.only_request().target(), "/good");
}

#[test]
fn a_second_request_hidden_in_a_body_is_never_seen() {
    let web = Upstream::fixed("upstream");
    let proxy = serving(r#"route("/{*rest}").to("web");"#)
        .pool("web", web.address())
        .start();
    let hidden = "GET /hidden HTTP/1.1\r\nHost: edge.test\r\n\r\n";
    let both = format!(
        "POST /x HTTP/1.1\r\nHost: edge.test\r\nContent-Length: {}\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{hidden}",
        hidden.len() + 5
    );
    let refused = exchange(proxy.address(), both.as_bytes());
    assert!(refused.is_none_or(|response| response.status == 400));
    let with_body = format!(
        "GET /x HTTP/1.1\r\nHost: edge.test\r\nContent-Length: {}\r\n\r\n{hidden}",
        hidden.len()
    );
    assert_eq!(
        exchange(proxy.address(), with_body.as_bytes())
            .unwrap()
            .status,
        200
    );
    assert_eq!(proxy.get("/after").status, 200);
    let targets: Vec<String> = web.requests().iter().map(|seen| seen.target()).collect();
    assert_eq!(targets, ["/x", "/after"]);
    assert_eq!(web.requests()[0].body, hidden.as_bytes());
}

/// Pingora encodes a raw space before anyone can see it; what arrives is then one normal form.
#[test]
fn a_raw_space_arrives_encoded() {
    let web = Upstream::fixed("upstream");
    let proxy = serving(r#"route("/a%20b").to("web"); route("/{*rest}").respond(404, "other");"#)
        .pool("web", web.address())
        .start();
    let raw = b"GET /a b HTTP/1.1\r\nHost: edge.test\r\n\r\n";
    let status = exchange(proxy.address(), raw).map(|response| response.status);
    assert_eq!(status, Some(200));
    assert_eq!(web.only_request().target(), "/a%20b");
}

/// RFC 9112 section 2.2.
#[test]
fn empty_lines_before_a_request_are_ignored() {
    let web = Upstream::fixed("upstream");
    let proxy = serving(r#"route("/{*rest}").to("web");"#)
        .pool("web", web.address())
        .start();
    let mut connection = Connection::open(proxy.address()).unwrap();
    let one = [&b"\r\n"[..], &post("/x", "body").bytes()].concat();
    for _ in 0..3 {
        connection.write(&one).unwrap();
        assert_eq!(connection.read_response("POST").unwrap().status, 200);
    }
    // In a packet of its own.
    connection.write(b"\r\n").unwrap();
    assert_eq!(connection.send(&get("/x")).unwrap().status, 200);
    let status = |empty: &str| {
        let raw = [empty.as_bytes(), &get("/x").bytes()].concat();
        exchange(proxy.address(), &raw).map(|response| response.status)
    };
    assert_eq!(status("\r\n\r\n"), Some(200));
    assert_eq!(web.hits(), 5);
    for odd in ["\n", "\r", "\r\n\n", "\r\n\r\n\r\n", "\r\n \r\n"] {
        assert_eq!(status(odd), Some(400), "{odd:?}");
    }
    assert_eq!(web.hits(), 5);
}
