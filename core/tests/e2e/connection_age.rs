//! Connections to a target that aren't used for ever.

use std::time::Duration;

use crate::support::client::{Connection, get};
use crate::support::http2::{self, answer};
use crate::support::launch::{Builder, serving};
use crate::support::upstream::Upstream;

fn to(target: impl ToString, settings: &str) -> Builder {
    let target = target.to_string();
    serving(r#"route("/{*rest}").to("web");"#).settings(&format!(
        "[server]\nthreads = 1\n[pools.web]\ntargets = [\"{target}\"]\n{settings}\n"
    ))
}

#[test]
fn a_connection_gets_so_many_requests() {
    let upstream = Upstream::fixed("web");
    let proxy = to(
        upstream.address(),
        "[pools.web.connections]\nmax_requests = 2",
    )
    .start();
    let mut client = Connection::open(proxy.address()).unwrap();
    for _ in 0..5 {
        let response = client.send(&get("/")).unwrap();
        assert_eq!(response.status, 200);
        assert!(!response.closes(), "the client's connection is another one");
    }
    let requests = upstream.requests();
    let of: Vec<usize> = requests.iter().map(|seen| seen.connection).collect();
    assert_eq!(of, [0, 0, 1, 1, 2]);
    let said: Vec<_> = requests
        .iter()
        .map(|seen| seen.header("connection"))
        .collect();
    let close = Some("close".to_owned());
    assert_eq!(said, [None, close.clone(), None, close, None]);
}

#[test]
fn an_old_connection_gets_one_more_request() {
    let upstream = Upstream::fixed("web");
    let proxy = to(
        upstream.address(),
        "[pools.web.connections]\nmax_age = \"100ms\"",
    )
    .start();
    assert_eq!(proxy.text("/"), "web");
    // Older than that for certain; how much older does not matter.
    std::thread::sleep(Duration::from_millis(150));
    assert_eq!(proxy.text("/"), "web");
    assert_eq!(proxy.text("/"), "web");
    let requests = upstream.requests();
    assert_eq!(requests[1].connection, 0);
    assert_eq!(requests[1].header("connection").as_deref(), Some("close"));
    assert_eq!(requests[2].connection, 1);
}

#[test]
fn http_2_has_as_many_on_all_connections_of_a_stretch() {
    let upstream = http2::Upstream::start(|_| Some(answer(200, "web")));
    let settings = "protocol = \"http2\"\n[pools.web.connections]\nmax_requests = 2";
    let proxy = to(upstream.address(), settings).start();
    for _ in 0..5 {
        assert_eq!(proxy.text("/"), "web");
    }
    let of: Vec<usize> = upstream.seen().iter().map(|seen| seen.connection).collect();
    assert_eq!(of, [0, 0, 1, 1, 2]);
}
