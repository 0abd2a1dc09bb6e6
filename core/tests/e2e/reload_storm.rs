//! Many reloads with alternating programs while requests are served and WebSockets are open.

use std::time::{Duration, Instant};

use crate::support::launch::serving;
use crate::support::load::{Load, Until};
use crate::support::proxy::Proxy;
use crate::support::skip::measured;
use crate::support::upstream::{Upstream, ok};
use crate::support::versions::{replace, resident, soak, wait_generations};
use crate::support::websocket::{echo_action, echoes, open};

/// A text frame of a client.
const FRAME: &[u8] = b"\x81\x82abcdgo";

/// One of two programs that differ in size, in hooks and in pools.
fn program(number: usize) -> String {
    let own = format!("const VERSION = \"v{number}\";\n");
    let routes: String = if number.is_multiple_of(2) {
        (0..200)
            .map(|n| {
                format!(
                    "route(\"/item/{n}/{{*rest}}\").set_header(\"x-n\", \"{n}\").to(\"web\");\n"
                )
            })
            .collect()
    } else {
        "pool(\"other\", [\"127.0.0.1:9\"]);\nroute(\"/other\").to(\"other\");\n".to_owned()
    };
    let served = r#"
        fn mark(req) { req.set_header("x-version", VERSION); }
        route("/version").respond(200, VERSION);
        route("/{*rest}").on_request(mark).on_response(|req, res| res.set_header("x-v", VERSION)).to("web");
    "#;
    [own.as_str(), routes.as_str(), served].concat()
}

/// Resident memory in KiB once the allocator has given back what it gives back.
fn settled(proxy: &Proxy) -> u64 {
    let begin = Instant::now();
    let mut lowest = u64::MAX;
    // jemalloc gives pages back that were not used for five seconds.
    while begin.elapsed() < Duration::from_secs(12) {
        lowest = lowest.min(resident(proxy));
        std::thread::sleep(Duration::from_millis(100));
    }
    lowest
}

#[test]
fn no_request_fails_no_socket_breaks_and_memory_stays() {
    let (sockets, reloads) = if soak() { (100, 1000) } else { (20, 60) };
    let web = Upstream::start(|seen| {
        if seen.header("upgrade").is_some() {
            echo_action()
        } else {
            ok("ok")
        }
    });
    let proxy = serving(&program(0)).pool("web", web.address()).start();
    let mut open: Vec<_> = (0..sockets).map(|_| open(proxy.address())).collect();
    let load = Load::start(
        proxy.address(),
        "/item/7/x",
        16,
        Until::Elapsed(Duration::from_secs(1800)),
    );
    let mut after_the_first = 0;
    for number in 1..=reloads {
        replace(&proxy, &program(number));
        let (status, body) = proxy.reload();
        assert_eq!(status, 200, "{body}");
        assert_eq!(proxy.text("/version"), format!("v{number}"));
        let socket = number % sockets;
        echoes(&mut open[socket], FRAME);
        if soak() && number == 100 {
            after_the_first = settled(&proxy);
        }
    }
    for socket in &mut open {
        echoes(socket, FRAME);
    }
    if soak() {
        let end = settled(&proxy);
        measured(
            "memory over 1,000 reloads",
            &format!("{after_the_first} KiB after the first 100, {end} KiB after all"),
        );
        assert!(end * 100 <= after_the_first * 105);
    }
    load.stop();
    load.finish().assert_all_ok();
    // The sockets' and the one in force.
    wait_generations(&proxy, 2);
    drop(open);
    wait_generations(&proxy, 1);
    let failed = proxy.metric("config_reloads_total", &[("result", "failed")]);
    assert_eq!(failed, 0.0);
}
