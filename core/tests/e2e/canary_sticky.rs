//! A canary with a weight of one half and a sticky cookie: a client never changes sides, a header wins over cookie and
//! weight, and over many clients the shares are even.

use crate::support::client::{Connection, Request, get};
use crate::support::launch::serving;
use crate::support::proxy::Proxy;
use crate::support::upstream::Upstream;

const ROUTES: &str = r#"
    route("/{*rest}").if_header("x-canary", "always").to("canary");
    route("/{*rest}").if_header("x-canary", "never").to("stable");
    route("/{*rest}").to(#{ stable: 50, canary: 50 }).sticky("edge", #{ ttl: "1h" });
"#;

struct Canary {
    proxy: Proxy,
    _upstreams: [Upstream; 2],
}

fn start() -> Canary {
    let stable = Upstream::fixed("stable");
    let canary = Upstream::fixed("canary");
    let proxy = serving(ROUTES)
        .pool("stable", stable.address())
        .pool("canary", canary.address())
        .start();
    Canary {
        proxy,
        _upstreams: [stable, canary],
    }
}

/// What was answered, and the cookie that came with it as a client sends it back.
fn visit(connection: &mut Connection, request: &Request) -> (String, Option<String>) {
    let answer = connection.send(request).unwrap();
    assert_eq!(answer.status, 200);
    let cookie = answer.header("set-cookie").map(|line| {
        assert!(line.contains("; Max-Age=3600; HttpOnly"), "{line}");
        line.split(';').next().unwrap().to_owned()
    });
    (answer.text(), cookie)
}

#[test]
fn a_client_never_flips() {
    let canary = start();
    let mut sides = Vec::new();
    for _ in 0..12 {
        let mut connection = Connection::open(canary.proxy.address()).unwrap();
        let (side, cookie) = visit(&mut connection, &get("/"));
        let cookie = cookie.unwrap();
        for _ in 0..200 {
            let again = visit(&mut connection, &get("/x").header("cookie", &cookie));
            assert_eq!(again, (side.clone(), None));
        }
        sides.push((side, cookie));
    }
    // Who is on which side outlives the process: nothing of it is kept there.
    let settings = canary.proxy.settings().to_owned();
    std::fs::write(
        canary.proxy.file("edgewright.toml"),
        settings + "\n[pools.more]\ntargets = [\"127.0.0.1:9\"]\n",
    )
    .unwrap();
    assert_eq!(canary.proxy.reload().0, 200);
    for (side, cookie) in sides {
        let mut connection = Connection::open(canary.proxy.address()).unwrap();
        let again = visit(
            &mut connection,
            &get("/").header("cookie", &format!("a=b; {cookie}")),
        );
        assert_eq!(again, (side, None));
    }
}

#[test]
fn the_header_wins_over_cookie_and_weight() {
    let canary = start();
    let mut connection = Connection::open(canary.proxy.address()).unwrap();
    let mut cookies = std::collections::BTreeMap::new();
    while cookies.len() < 2 {
        let (side, cookie) = visit(&mut connection, &get("/"));
        cookies.insert(side, cookie.unwrap());
    }
    for (says, side) in [("always", "canary"), ("never", "stable")] {
        for cookie in cookies.values() {
            let request = get("/").header("cookie", cookie).header("x-canary", says);
            for _ in 0..50 {
                // The route of the header has no cookie of its own to give.
                assert_eq!(visit(&mut connection, &request), (side.to_owned(), None));
            }
        }
        let request = get("/").header("x-canary", says);
        for _ in 0..50 {
            assert_eq!(visit(&mut connection, &request).0, side);
        }
    }
    // Meanwhile the cookies hold.
    for (side, cookie) in &cookies {
        let again = visit(&mut connection, &get("/").header("cookie", cookie));
        assert_eq!(again, (side.clone(), None));
    }
}

#[test]
fn over_many_clients_the_shares_are_even() {
    let canary = start();
    const CLIENTS: usize = 4000;
    let mut connection = Connection::open(canary.proxy.address()).unwrap();
    let mut newer = 0;
    for _ in 0..CLIENTS {
        let (side, cookie) = visit(&mut connection, &get("/"));
        assert!(cookie.is_some());
        newer += usize::from(side == "canary");
    }
    // 50 +- 5 %: six deviations of a fair draw.
    assert!((1800..=2200).contains(&newer), "{newer} of {CLIENTS}");
    let count = |outcome: &str| {
        let of = |pool| {
            canary.proxy.metric(
                "sticky_requests_total",
                &[("pool", pool), ("outcome", outcome)],
            )
        };
        of("stable") + of("canary")
    };
    assert_eq!(
        (count("new"), count("kept"), count("moved")),
        (CLIENTS as f64, 0.0, 0.0)
    );
}

/// A cookie that somebody made up is no way to anywhere.
#[test]
fn a_cookie_that_says_nothing_is_replaced() {
    let canary = start();
    let mut connection = Connection::open(canary.proxy.address()).unwrap();
    for made_up in [
        "edge=",
        "edge=canary",
        "edge=AAAAAAAAAAAAAAAAAAAAAA",
        "edge=\"\"; edge=x",
    ] {
        let (_, cookie) = visit(&mut connection, &get("/").header("cookie", made_up));
        assert!(cookie.unwrap().starts_with("edge="), "{made_up}");
    }
}
