//! `.basic_auth`: names and passwords, before anything of the program runs.

use std::thread;

use data_encoding::BASE64;

use crate::support::client::{Request, exchange, get, request};
use crate::support::launch::serving;
use crate::support::proxy::Proxy;
use crate::support::upstream::Upstream;

/// `alice:opensesame` as bcrypt (cost 5), `bob:opensesame` as `htpasswd` without options,
/// `carol:opensesame` as SHA-1.
const USERS: &str = "\
alice:$2y$05$abcdefghijklmnopqrstuuQbLfdQZSxZ9gjhA5V9o8Tyc6aQRO0Qi
bob:$apr1$pepper78$N/RCC4IkrvST6UPPSXQI00
carol:{SHA}F2GPAaOiG5EcklvLUlodIavTBnM=
";

const PROGRAM: &str = r#"
    const USERS = htpasswd("users.htpasswd");
    route("/{*rest}").basic_auth(USERS, #{ realm: "the office", user_header: "x-user" }).to("web");
    route("/kept").basic_auth(USERS, #{ forward: true }).to("web");
    route("/hook")
        .basic_auth(#{ dave: "{SHA}F2GPAaOiG5EcklvLUlodIavTBnM=" }, #{ user_header: "x-user" })
        .on_request(|req| respond(200, `hello ${req.header("x-user")} ${req.header("authorization") == ()}`))
        .to("web");
"#;

fn start(web: &Upstream) -> Proxy {
    serving(PROGRAM)
        .file("users.htpasswd", USERS)
        .pool("web", web.address())
        .start()
}

fn shows(target: &str, user: &str, password: &str) -> Request {
    let coded = BASE64.encode(format!("{user}:{password}").as_bytes());
    get(target).header("authorization", &format!("Basic {coded}"))
}

#[test]
fn only_who_knows_a_password_gets_through() {
    let web = Upstream::fixed("web");
    let proxy = start(&web);
    for user in ["alice", "bob", "carol"] {
        // The second time it is not verified anew.
        for _ in 0..2 {
            let answer = proxy.send(&shows("/", user, "opensesame"));
            assert_eq!(
                (answer.status, answer.text()),
                (200, "web".to_owned()),
                "{user}"
            );
            let seen = web.last_request();
            assert_eq!(seen.headers("x-user"), [user]);
            assert!(seen.headers("authorization").is_empty());
        }
    }
    let hits = web.hits();
    let bearer = get("/").header("authorization", "Bearer abc");
    for (what, refused) in [
        ("nothing", get("/")),
        ("another password", shows("/", "alice", "opensesam")),
        ("no password", shows("/", "alice", "")),
        ("nobody", shows("/", "mallory", "opensesame")),
        ("another case", shows("/", "Alice", "opensesame")),
        ("another scheme", bearer),
        ("no base64", get("/").header("authorization", "Basic !!!!")),
        (
            "right and wrong",
            shows("/", "alice", "opensesame").header("authorization", "Basic !"),
        ),
        ("right twice", {
            let coded = BASE64.encode(b"alice:opensesame");
            shows("/", "alice", "opensesame").header("Authorization", &format!("Basic {coded}"))
        }),
    ] {
        let answer = proxy.send(&refused);
        assert_eq!(answer.status, 401, "{what}");
        assert_eq!(
            answer.header("www-authenticate"),
            Some("Basic realm=\"the office\", charset=\"UTF-8\""),
            "{what}"
        );
    }
    assert_eq!(web.hits(), hits, "nothing of it reaches the upstream");
    let denied = [("filter", "basic_auth"), ("outcome", "refused")];
    assert!(proxy.metric("auth_denied_total", &denied) >= 9.0);
    assert!(!proxy.log.text().contains("opensesam"));
}

#[test]
fn a_client_can_not_say_who_it_is() {
    let web = Upstream::fixed("web");
    let proxy = start(&web);
    let request = shows("/", "carol", "opensesame");
    for name in ["x-user", "X-User", "x_user"] {
        let claimed = request.clone().header(name, "alice");
        assert_eq!(proxy.send(&claimed).status, 200);
        let seen = web.last_request();
        assert_eq!(seen.headers("x-user"), ["carol"], "{name}");
        assert!(seen.headers("x_user").is_empty(), "{name}");
    }
    // A field that is about the connection goes before ours is set.
    let nominated = request.header("connection", "close, x-user");
    assert_eq!(proxy.send(&nominated).status, 200);
    assert_eq!(web.last_request().headers("x-user"), ["carol"]);
}

#[test]
fn hooks_see_who_it_is_and_the_upstream_the_password_only_when_told() {
    let web = Upstream::fixed("web");
    let proxy = start(&web);
    let answer = proxy.send(&shows("/hook", "dave", "opensesame"));
    assert_eq!(answer.text(), "hello dave true");
    assert_eq!(
        proxy.send(&shows("/hook", "carol", "opensesame")).status,
        401
    );
    assert_eq!(
        proxy.send(&shows("/kept", "carol", "opensesame")).status,
        200
    );
    assert_eq!(web.only_request().headers("authorization").len(), 1);
    let options = request("OPTIONS", "/");
    assert_eq!(proxy.send(&options).status, 401, "every method is asked");
}

#[test]
fn no_gate_sees_only_the_first_of_two() {
    let web = Upstream::fixed("web");
    let proxy = serving(
        r#"route("/{*rest}").on_request(|req| if req.header("authorization") != "Basic good" { respond(403) }).to("web");"#,
    )
    .pool("web", web.address())
    .start();
    let twice = b"GET / HTTP/1.1\r\nHost: a\r\nAuthorization: Basic good\r\nauthorization: Basic bad\r\n\r\n";
    assert_eq!(exchange(proxy.address(), twice).unwrap().status, 400);
    assert_eq!(web.hits(), 0);
}

#[test]
fn requests_that_come_at_once_are_verified_once() {
    let web = Upstream::fixed("web");
    // One at a time may be verified, none may wait.
    let proxy = serving(PROGRAM)
        .file("users.htpasswd", USERS)
        .settings("[limits]\npassword_checks = 1")
        .pool("web", web.address())
        .start();
    let address = proxy.address();
    let clients = (0..16)
        .map(|_| thread::spawn(move || shows("/", "alice", "opensesame").send(address).status));
    let clients: Vec<_> = clients.collect();
    for client in clients {
        assert_eq!(client.join().unwrap(), 200);
    }
}

#[test]
fn what_is_too_much_at_once_is_refused() {
    let web = Upstream::fixed("web");
    // Cost 10 takes some 60 ms: the second of two that are different comes meanwhile.
    let users = "alice:$2b$10$abcdefghijklmnopqrstuu3KWNuWLhBnmgYfnzONPueahDuedC/lu\n";
    let proxy = serving(PROGRAM)
        .file("users.htpasswd", users)
        .settings("[limits]\npassword_checks = 1")
        .pool("web", web.address())
        .start();
    let address = proxy.address();
    let mut refused = 0;
    for round in 0..20 {
        let clients: Vec<_> = (0..8)
            .map(|client| {
                let password = format!("wrong {round} {client}");
                thread::spawn(move || shows("/", "alice", &password).send(address).status)
            })
            .collect();
        let statuses: Vec<u16> = clients
            .into_iter()
            .map(|client| client.join().unwrap())
            .collect();
        assert!(
            statuses.iter().all(|status| [401, 503].contains(status)),
            "{statuses:?}"
        );
        refused += statuses.iter().filter(|status| **status == 503).count();
        if refused > 0 {
            break;
        }
    }
    assert!(refused > 0);
    let hits = proxy.metric("limit_hits_total", &[("limit", "password_checks")]);
    assert!((hits - refused as f64).abs() < 0.5, "{hits} {refused}");
    assert_eq!(proxy.send(&shows("/", "alice", "s3cret")).status, 200);
    assert_eq!(web.hits(), 1);
}

#[test]
fn a_changed_file_counts_at_once() {
    let web = Upstream::fixed("web");
    let proxy = start(&web);
    assert_eq!(proxy.send(&shows("/", "alice", "opensesame")).status, 200);
    std::fs::write(proxy.file("users.htpasswd"), USERS.replace("alice", "eve")).unwrap();
    assert_eq!(proxy.reload().0, 200);
    assert_eq!(proxy.send(&shows("/", "alice", "opensesame")).status, 401);
    assert_eq!(proxy.send(&shows("/", "eve", "opensesame")).status, 200);

    // What is no users' file is refused, and the last good one keeps serving.
    std::fs::write(proxy.file("users.htpasswd"), "eve:opensesame\n").unwrap();
    let (status, outcome) = proxy.reload();
    assert_eq!(status, 422, "{outcome}");
    assert!(!outcome.to_string().contains("opensesame"), "{outcome}");
    assert_eq!(proxy.send(&shows("/", "eve", "opensesame")).status, 200);
}

#[test]
fn hooks_wait_for_passwords() {
    let web = Upstream::fixed("web");
    let proxy = serving(
        r#"
        const USERS = htpasswd("users.htpasswd");
        route("/login").on_request(|req| {
            if !USERS.verify(req.query("user"), req.query("password")) { return respond(401); }
            req.set_header("x-user", req.query("user"));
        }).to("web");
        route("/twelve").on_request(|req| {
            for n in 0..12 { let right = password_verify(`${n}`, "$2y$05$abcdefghijklmnopqrstuuQbLfdQZSxZ9gjhA5V9o8Tyc6aQRO0Qi"); }
        }).to("web");
        "#,
    )
    .file("users.htpasswd", USERS)
    .pool("web", web.address())
    .start();
    for user in ["alice", "bob", "carol"] {
        let login = format!("/login?user={user}&password=");
        assert_eq!(
            proxy.get(&format!("{login}opensesame")).status,
            200,
            "{user}"
        );
        assert_eq!(web.last_request().headers("x-user"), [user]);
        assert_eq!(
            proxy.get(&format!("{login}opensesam")).status,
            401,
            "{user}"
        );
    }
    assert_eq!(
        proxy.get("/login?user=mallory&password=opensesame").status,
        401
    );
    assert_eq!(proxy.get("/login?user=alice").status, 401);
    let hits = web.hits();
    assert_eq!(
        proxy.get("/twelve").status,
        500,
        "they are bounded as calls are"
    );
    assert_eq!(
        proxy.metric("limit_hits_total", &[("limit", "fetches")]),
        1.0
    );
    assert_eq!(web.hits(), hits);
}
