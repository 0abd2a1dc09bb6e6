//! Case body-length: a rewritten body is longer or shorter than the Content-Length that the upstream
//! sent (lua-nginx-module 891, openstar 21).

use crate::support::client::{Connection, get, request};
use crate::support::launch::serving;
use crate::support::proxy::Proxy;
use crate::support::upstream::{Action, Upstream, answer};

const HOOKS: &str = r#"
    fn change(req, res) {
        let text = res.body().text();
        text.replace("old", req.query("to"));
        res.set_body(text);
    }
    route("/whole/{*rest}").on_response_body(change).to("web");
    route("/pieces/{*rest}").on_response_body(#{ stream: true, hold: "64B" }, change).to("web");
"#;

fn proxy() -> (Upstream, Proxy) {
    let web = Upstream::start(|seen| {
        let body = if seen.method() == "HEAD" {
            ""
        } else {
            "the old text"
        };
        match seen.target().contains("unchanged") {
            true => Action::Bytes(
                b"HTTP/1.1 304 Not Modified\r\nETag: \"v1\"\r\nContent-Length: 12\r\n\r\n".to_vec(),
            ),
            false if body.is_empty() => {
                Action::Bytes(b"HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\n".to_vec())
            }
            false => answer(200, &[("ETag", "\"v1\""), ("Accept-Ranges", "bytes")], body),
        }
    });
    let proxy = serving(HOOKS).pool("web", web.address()).start();
    (web, proxy)
}

#[test]
fn the_length_is_that_of_the_new_body() {
    let (web, proxy) = proxy();
    for way in ["whole", "pieces"] {
        let mut connection = Connection::open(proxy.address()).unwrap();
        for new in ["", "new", "n", "much+longer", "x"] {
            let target = format!("/{way}/?to={new}");
            let response = connection.send(&get(&target)).unwrap();
            assert_eq!(
                response.text(),
                format!("the {} text", new.replace('+', " "))
            );
            match response.header("content-length") {
                Some(length) => assert_eq!(length, response.body.len().to_string()),
                None => assert_eq!(response.header("transfer-encoding"), Some("chunked")),
            }
            assert_eq!(response.header("etag"), Some("W/\"v1\""));
            assert_eq!(response.header("accept-ranges"), None);
        }
    }
    // A kept response costs neither side its connection.
    assert!(web.connections() <= 2);
}

#[test]
fn http_1_0_gets_no_chunks() {
    let (_web, proxy) = proxy();
    for way in ["whole", "pieces"] {
        let mut connection = Connection::open(proxy.address()).unwrap();
        let request = format!("GET /{way}/?to=newer HTTP/1.0\r\nHost: a.test\r\n\r\n");
        connection.write(request.as_bytes()).unwrap();
        let response = connection.read_response("GET").unwrap();
        assert_eq!(response.text(), "the newer text");
        assert_eq!(response.header("transfer-encoding"), None);
    }
}

#[test]
fn head_and_304_have_no_body() {
    let (_web, proxy) = proxy();
    for way in ["whole", "pieces"] {
        let mut connection = Connection::open(proxy.address()).unwrap();
        let head = request("HEAD", &format!("/{way}/?to=newer"));
        let response = connection.send(&head).unwrap();
        assert_eq!(
            (response.status, response.header("content-length")),
            (200, None)
        );
        let unchanged = connection
            .send(&get(&format!("/{way}/unchanged?to=x")))
            .unwrap();
        assert_eq!(unchanged.status, 304);
        assert_eq!(unchanged.header("etag"), Some("W/\"v1\""));
        // Nothing was left over: the next response is read where it begins.
        let next = connection.send(&get(&format!("/{way}/?to=x"))).unwrap();
        assert_eq!(next.text(), "the x text");
    }
}

#[test]
fn what_the_upstream_is_asked_for_is_whole_and_plain() {
    let (web, proxy) = proxy();
    let partial = get("/whole/?to=x")
        .header("Range", "bytes=0-3")
        .header("Accept-Encoding", "gzip");
    assert_eq!(proxy.send(&partial).text(), "the x text");
    let seen = web.only_request();
    assert_eq!(seen.header("range"), None);
    assert_eq!(seen.headers("accept-encoding"), ["identity"]);
}

#[test]
fn an_upstream_that_breaks_off_is_a_502_while_nothing_was_sent() {
    let web = Upstream::start(|_| {
        Action::BytesThenClose(b"HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\nthe".to_vec())
    });
    let proxy = serving(HOOKS).pool("web", web.address()).start();
    assert_eq!(proxy.get("/whole/?to=x").status, 502);
}

#[test]
fn a_body_past_the_limit_is_not_passed_on_unseen() {
    let web = Upstream::fixed("0123456789");
    let proxy = serving(HOOKS)
        .settings("[script]\nbody = \"9B\"\n")
        .pool("web", web.address())
        .start();
    assert_eq!(proxy.get("/whole/?to=x").status, 500);
    let hits = proxy.metric("limit_hits_total", &[("limit", "body")]);
    assert_eq!(hits as u64, 1);
    assert_eq!(proxy.metric("script_body_bytes", &[]) as u64, 0);
}

#[test]
fn a_body_longer_than_a_text_may_be_is_rewritten_where_it_lies() {
    let body = "0123456789".repeat(50_000);
    let sent = body.clone();
    let web = Upstream::start(move |_| answer(200, &[], &sent));
    let proxy = serving(
        r#"
        const LAST = regex("9$");
        route("/").on_response_body(|req, res| res.set_body(LAST.replace_all(res.body(), "!"))).to("web");
        "#,
    )
    .pool("web", web.address())
    .start();
    let text = proxy.text("/");
    assert_eq!(text.len(), body.len());
    assert!(text.ends_with("8!"));
}
