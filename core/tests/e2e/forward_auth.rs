//! `.forward_auth`: another service decides, and whatever it does, nobody gets past it.

use std::io::{Read as _, Write as _};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use crate::support::client::{get, post};
use crate::support::launch::serving;
use crate::support::proxy::Proxy;
use crate::support::upstream::{Action, Upstream, answer, response};
use crate::support::wait::{Gate, SOON, until};

fn start(options: &str, authz: &Upstream, web: &Upstream) -> Proxy {
    serving(&format!(
        r#"route("/{{*rest}}").forward_auth("authz", #{{ {options} }}).to("web");"#
    ))
    .pool("authz", authz.address())
    .pool("web", web.address())
    .start()
}

/// Says yes to `authorization: yes`, and else what the path of the question says.
fn by_word(seen: &crate::support::upstream::Seen) -> Action {
    match seen.header("authorization").as_deref() {
        Some("yes") => answer(
            200,
            &[
                ("x-user", "alice"),
                ("x-other", "no"),
                ("set-cookie", "a=1"),
                ("set-cookie", "b=2"),
            ],
            "fine",
        ),
        Some(word) if word.parse::<u16>().is_ok() => {
            let status = word.parse().unwrap();
            answer(
                status,
                &[
                    ("location", "https://login.example/"),
                    ("www-authenticate", "Custom"),
                    ("set-cookie", "s=1"),
                    ("content-type", "text/html"),
                    ("connection", "keep-alive, x-inner"),
                    ("x-inner", "1"),
                ],
                format!("says {status}"),
            )
        }
        _ => answer(401, &[("www-authenticate", "Custom")], "who?"),
    }
}

#[test]
fn what_the_service_says_counts() {
    let (authz, web) = (Upstream::start(by_word), Upstream::fixed("web"));
    let options = r#"path: "/check?x=1", copy: ["x-user"], response_headers: ["set-cookie"]"#;
    let proxy = start(options, &authz, &web);

    let request = post("/a%41/b?c=d", "body")
        .header("authorization", "yes")
        .header("cookie", "k=v")
        .header("x-user", "mallory")
        .header("x_user", "mallory")
        .header("x-forwarded-uri", "/public")
        .header("x-secret", "1");
    let passed = proxy.send(&request);
    assert_eq!((passed.status, passed.text().as_str()), (200, "web"));
    let cookies: Vec<_> = passed
        .headers
        .iter()
        .filter(|(name, _)| name.eq_ignore_ascii_case("set-cookie"))
        .collect();
    assert_eq!(cookies.len(), 2, "{cookies:?}");
    let seen = web.only_request();
    assert_eq!(seen.headers("x-user"), ["alice"]);
    assert!(seen.headers("x_user").is_empty() && seen.headers("x-other").is_empty());
    assert_eq!(seen.body, b"body");

    let asked = authz.only_request();
    assert_eq!(
        (asked.method().as_str(), asked.target().as_str()),
        ("GET", "/check?x=1")
    );
    for (name, value) in [
        ("authorization", "yes"),
        ("cookie", "k=v"),
        ("x-forwarded-method", "POST"),
        ("x-forwarded-uri", "/aA/b?c=d"),
        ("x-original-uri", "/aA/b?c=d"),
        ("x-forwarded-host", "edge.test"),
        ("x-forwarded-proto", "http"),
        ("x-forwarded-for", "127.0.0.1"),
    ] {
        assert_eq!(asked.headers(name), [value], "{name}");
    }
    assert!(asked.headers("x-secret").is_empty() && asked.body.is_empty());

    for (word, status) in [("401", 401), ("403", 403), ("302", 302), ("307", 307)] {
        let refused = proxy.send(&get("/").header("authorization", word));
        assert_eq!(
            (refused.status, refused.text()),
            (status, format!("says {status}"))
        );
        assert_eq!(refused.header("location"), Some("https://login.example/"));
        assert_eq!(refused.header("www-authenticate"), Some("Custom"));
        assert_eq!(refused.header("set-cookie"), Some("s=1"));
        assert_eq!(refused.header("x-inner"), None);
    }
    for word in ["304", "400", "404", "429", "500", "503"] {
        let refused = proxy.send(&get("/").header("authorization", word));
        assert_eq!(refused.status, 502, "{word}");
        assert_eq!(refused.header("set-cookie"), None, "{word}");
    }
    assert_eq!(proxy.get("/").status, 401);
    assert_eq!(web.hits(), 1, "nothing else has reached the upstream");
    let denied = |outcome| {
        proxy.metric(
            "auth_denied_total",
            &[("filter", "forward_auth"), ("outcome", outcome)],
        )
    };
    assert_eq!((denied("refused"), denied("failed")), (5.0, 6.0));
}

#[test]
fn a_service_that_misbehaves_lets_nobody_through() {
    let web = Upstream::fixed("web");
    let authz = Upstream::start(|seen| match seen.header("authorization").as_deref() {
        Some("hangs up") => Action::Hangup,
        // Until the proxy has had enough.
        Some("is silent") => Action::Write(Box::new(|stream| stream.read(&mut [0]).map(drop))),
        Some("is cut") => {
            Action::BytesThenClose(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf".to_vec())
        }
        Some("is large") => Action::Write(Box::new(|stream| {
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n")?;
            loop {
                stream.write_all(&[b'a'; 65536])?;
            }
        })),
        Some("is endless") => Action::Write(Box::new(|stream| {
            stream.write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")?;
            loop {
                stream.write_all(b"4\r\naaaa\r\n")?;
            }
        })),
        Some("is garbage") => Action::BytesThenClose(b"\0\0 no http\r\n\r\n".to_vec()),
        Some("switches") => Action::Bytes(response(101, &[("upgrade", "x")], "")),
        _ => answer(200, &[], ""),
    });
    let proxy = start(r#"timeout: "500ms""#, &authz, &web);
    for word in [
        "hangs up",
        "is silent",
        "is cut",
        "is large",
        "is endless",
        "is garbage",
        "switches",
    ] {
        let refused = proxy.send(&get("/").header("authorization", word));
        assert!(
            [502, 503].contains(&refused.status),
            "{word}: {}",
            refused.status
        );
    }
    assert_eq!(web.hits(), 0);
    assert_eq!(
        proxy.get("/").status,
        200,
        "and what follows is not touched by it"
    );

    drop(authz);
    let gone = proxy.get("/");
    assert_eq!(gone.status, 503);
    assert!(
        proxy
            .log
            .text()
            .contains("authorization failed route=/{*rest}")
    );
}

#[test]
fn answers_are_kept_for_the_same_request_and_no_longer() {
    let (authz, web) = (
        Upstream::start(by_word_without_cookies),
        Upstream::fixed("web"),
    );
    let proxy = start(r#"copy: ["x-user"], cache: "1s""#, &authz, &web);
    let alice = get("/a").header("authorization", "yes alice");
    let began = Instant::now();
    for _ in 0..5 {
        assert_eq!(proxy.send(&alice).status, 200);
        assert_eq!(web.last_request().headers("x-user"), ["yes alice"]);
    }
    let asked = authz.hits();
    assert!(
        asked == 1 || began.elapsed() >= Duration::from_secs(1),
        "{asked}"
    );
    // Whatever the service was told before must be the same.
    for other in [
        get("/a").header("authorization", "yes bob"),
        get("/b").header("authorization", "yes alice"),
        get("/a?x=1").header("authorization", "yes alice"),
        post("/a", "").header("authorization", "yes alice"),
        get("/a")
            .header("authorization", "yes alice")
            .host("other.test"),
        get("/a")
            .header("authorization", "yes alice")
            .header("cookie", "a=1"),
    ] {
        let before = authz.hits();
        assert_eq!(proxy.send(&other).status, 200);
        assert_eq!(authz.hits(), before + 1);
        let who = other_of(&other.bytes());
        assert_eq!(web.last_request().headers("x-user"), [who]);
    }
    // Refusals and failures are asked for each time.
    for word in ["401", "500"] {
        let before = authz.hits();
        for _ in 0..3 {
            assert_ne!(
                proxy.send(&get("/a").header("authorization", word)).status,
                200
            );
        }
        assert_eq!(authz.hits(), before + 3, "{word}");
    }
    // Its time is over at some time, and then it is asked again.
    let before = authz.hits();
    until("the answer to be asked for again", SOON, || {
        assert_eq!(proxy.send(&alice).status, 200);
        authz.hits() > before
    });
}

fn other_of(request: &[u8]) -> String {
    let text = String::from_utf8_lossy(request);
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("authorization: "));
    line.unwrap().to_owned()
}

fn by_word_without_cookies(seen: &crate::support::upstream::Seen) -> Action {
    match seen.header("authorization").as_deref() {
        Some(word) if word.starts_with("yes") => answer(200, &[("x-user", word)], ""),
        Some("500") => answer(500, &[], ""),
        _ => answer(401, &[], ""),
    }
}

#[test]
fn one_answer_may_count_for_a_whole_route_but_not_what_is_made_for_one_client() {
    let (authz, web) = (Upstream::start(by_word), Upstream::fixed("web"));
    let proxy = start(
        r#"cache: "1h", cache_key: ["authorization"], cache_scope: "route""#,
        &authz,
        &web,
    );
    for target in ["/a", "/b?c", "/d"] {
        assert_eq!(
            proxy
                .send(&get(target).header("authorization", "yes"))
                .status,
            200
        );
    }
    assert_eq!(authz.hits(), 1);
    assert_eq!(
        proxy.get("/a").status,
        401,
        "who shows nothing is another one"
    );

    let proxy = start(
        r#"cache: "1h", response_headers: ["set-cookie"]"#,
        &authz,
        &web,
    );
    let before = authz.hits();
    for _ in 0..3 {
        let passed = proxy.send(&get("/a").header("authorization", "yes"));
        assert_eq!(passed.header("set-cookie"), Some("a=1"));
    }
    assert_eq!(authz.hits(), before + 3);
}

#[test]
fn one_asks_for_all_who_come_at_once() {
    let web = Upstream::fixed("web");
    let gate = Gate::new();
    let words = Arc::new(Mutex::new(Vec::new()));
    let authz = Upstream::start({
        let (gate, words) = (gate.clone(), words.clone());
        move |seen| {
            words.lock().unwrap().push(seen.header("authorization"));
            gate.pass(SOON);
            answer(200, &[], "")
        }
    });
    let proxy = start(r#"cache: "1h", timeout: "30s""#, &authz, &web);
    let address = proxy.address();
    let clients: Vec<_> = (0..8)
        .map(|_| thread::spawn(move || get("/").header("authorization", "a").send(address).status))
        .collect();
    authz.wait_hits(1, SOON);
    // They all wait for the one question: it is the only thing that they can wait for.
    until("all requests to be there", SOON, || {
        proxy.metric("requests_in_flight", &[]) >= 8.0
    });
    gate.open();
    for client in clients {
        assert_eq!(client.join().unwrap(), 200);
    }
    assert_eq!(words.lock().unwrap().len(), 1);
    assert_eq!(web.hits(), 8);
}

#[test]
fn a_service_behind_the_proxy_itself_ends() {
    let web = Upstream::fixed("web");
    let ports = crate::support::ports::free(std::net::Ipv4Addr::LOCALHOST.into(), 1);
    let itself = ports[0];
    let proxy = serving(r#"route("/{*rest}").forward_auth("itself").to("web");"#)
        .settings(&format!("[[listeners]]\naddress = \"{itself}\""))
        .pool("itself", itself)
        .pool("web", web.address())
        .start();
    let answer = proxy.get("/");
    assert!([502, 503].contains(&answer.status), "{}", answer.status);
    assert_eq!(web.hits(), 0);
}

#[test]
fn all_filters_of_a_route_are_asked_in_their_order_before_hooks() {
    let (authz, web) = (
        Upstream::start(by_word_without_cookies),
        Upstream::fixed("web"),
    );
    let proxy = serving(
        r#"
        on_request(|req| if req.header("x-user") == () { respond(500, "a hook ran before") });
        route("/{*rest}")
            .forward_auth("authz", #{ headers: ["authorization", "x-name"], copy: ["x-user"] })
            .basic_auth(#{ yes: "{SHA}F2GPAaOiG5EcklvLUlodIavTBnM=" }, #{ user_header: "x-name" })
            .to("web");
        "#,
    )
    .pool("authz", authz.address())
    .pool("web", web.address())
    .start();
    assert_eq!(proxy.get("/").status, 401);
    assert_eq!(authz.hits(), 0, "who has no password is asked nothing else");
    let coded = data_encoding::BASE64.encode(b"yes:opensesame");
    let shown = get("/").header("authorization", &format!("Basic {coded}"));
    let answer = proxy.send(&shown);
    assert_eq!(answer.status, 401, "the service knows no such word");
    assert_eq!(authz.only_request().headers("x-name"), ["yes"]);
    assert_eq!(web.hits(), 0);
}

#[test]
fn a_service_may_give_the_upstream_another_token() {
    let web = Upstream::fixed("web");
    let authz = Upstream::start(|seen| match seen.header("authorization").as_deref() {
        Some("Bearer outside") => answer(200, &[("authorization", "Bearer inside")], ""),
        Some("Bearer none") => answer(200, &[], ""),
        _ => answer(401, &[], ""),
    });
    let proxy = start(r#"copy: ["authorization"]"#, &authz, &web);
    for (shown, got) in [
        ("Bearer outside", vec!["Bearer inside"]),
        ("Bearer none", vec![]),
    ] {
        assert_eq!(
            proxy.send(&get("/").header("authorization", shown)).status,
            200
        );
        assert_eq!(web.last_request().headers("authorization"), got);
    }
    assert_eq!(
        proxy.send(&get("/").header("authorization", "x")).status,
        401
    );
    assert_eq!(web.hits(), 2);
}
