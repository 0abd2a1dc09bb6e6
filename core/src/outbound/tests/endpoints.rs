//! Which of a recipient's endpoints is called.

use super::*;
use crate::config::Timeouts;
use crate::dns::tests::dns_server::Answer;
use crate::dns::tests::millis;
use CallFailureKind::{Connect, Timeout, Unavailable};
use hickory_resolver::proto::rr::RecordType;
use tokio::net::TcpListener;

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// An address where nobody listens: the port is one that a socket has which doesn't.
struct Dead(tokio::net::TcpSocket);

impl Dead {
    fn new() -> Self {
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        Self(socket)
    }

    fn address(&self) -> SocketAddr {
        self.0.local_addr().unwrap()
    }
}

#[tokio::test]
async fn a_pool_is_called_with_its_first_target_as_host() {
    let server = Server::saying(OK).await;
    let caller = Caller::new();
    caller.dns.set_a("auth.test", 300, &["127.0.0.1"]);
    let target = format!("auth.test:{}", server.address().port());
    let pool = TestPool::of(&caller, &[&target]);
    assert!(pool.pool.wait_ready(std::time::Instant::now() + LIMIT));
    for _ in 0..3 {
        assert_eq!(
            body(caller.call_pool(&get(server.address()), &pool).await),
            "ok"
        );
    }
    let requests = server.requests();
    assert!(
        requests[0].contains(&format!("\r\nHost: {target}\r\n")),
        "{}",
        requests[0]
    );
    let connections = "edgewright_upstream_connections_total{pool=\"auth\",reused=";
    assert_eq!(caller.metric(&format!("{connections}\"false\"")), 1.0);
    assert_eq!(caller.metric(&format!("{connections}\"true\"")), 2.0);
    assert_eq!(pool.in_flight(), 0);
}

#[tokio::test]
async fn a_dead_endpoint_is_passed_over() {
    let server = Server::saying(OK).await;
    let caller = Caller::new();
    let dead = [Dead::new(), Dead::new()];
    let addresses = [dead[0].address(), dead[1].address(), server.address()];
    let addresses = addresses.map(|address| address.to_string());
    let addresses: Vec<&str> = addresses.iter().map(String::as_str).collect();
    let mut config = TestPool::of(&caller, &addresses).pool.config().clone();
    // In turn, so that each attempt is known: dead, dead, alive.
    config.balance = crate::config::Balance::RoundRobin;
    config
        .targets
        .sort_by(|one, two| one.target.cmp(&two.target));
    let pool = TestPool::new(&caller, config);
    for _ in 0..9 {
        let call = with(Method::POST, server.address());
        assert_eq!(body(caller.call_pool(&call, &pool).await), "ok");
    }
    assert!(caller.metric("edgewright_upstream_connect_failures_total") >= 9.0);
    assert_eq!(server.requests().len(), 9);
    assert_eq!(pool.in_flight(), 0);
}

#[tokio::test]
async fn an_endpoint_that_failed_is_avoided() {
    let server = Server::saying(OK).await;
    let caller = Caller::new();
    let dead = Dead::new();
    let addresses = [dead.address(), server.address()].map(|address| address.to_string());
    let pool = TestPool::of(&caller, &[&addresses[0], &addresses[1]]);
    let failures = || caller.metric("edgewright_upstream_connect_failures_total");
    // By chance both are met first.
    for done in 0.. {
        let before = failures();
        assert_eq!(
            body(caller.call_pool(&get(server.address()), &pool).await),
            "ok"
        );
        assert!(failures() - before <= 1.0, "the dead one was tried twice");
        if done >= 30 && failures() >= 5.0 {
            break;
        }
    }
}

#[tokio::test]
async fn three_connections_are_tried_and_no_more() {
    let caller = Caller::new();
    let dead: Vec<Dead> = (0..5).map(|_| Dead::new()).collect();
    let addresses: Vec<String> = dead.iter().map(|dead| dead.address().to_string()).collect();
    let addresses: Vec<&str> = addresses.iter().map(String::as_str).collect();
    let pool = TestPool::of(&caller, &addresses);
    let reply = caller.call_pool(&get(dead[0].address()), &pool).await;
    let parts = [
        "pool auth: no connection to 127.0.0.1:",
        ": refused, after 3 attempts",
    ];
    assert_fails(reply, Connect, &parts);
    let failures = "edgewright_upstream_connect_failures_total{pool=\"auth\",reason=\"refused\"}";
    assert_eq!(caller.metric(failures), 3.0);
    assert_eq!(caller.outcomes("connect"), 1.0);
    assert_eq!(pool.in_flight(), 0);
}

#[tokio::test]
async fn the_slot_is_held_until_the_answer_is_read() {
    let (told, mut asked) = tokio::sync::mpsc::unbounded_channel();
    let go = Arc::new(tokio::sync::Notify::new());
    let gate = go.clone();
    let server = Server::start(move |_, mut peer| {
        let (told, gate) = (told.clone(), gate.clone());
        async move {
            peer.request().await;
            peer.say("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\no")
                .await;
            told.send(()).unwrap();
            gate.notified().await;
            peer.say("k").await;
        }
    })
    .await;
    let caller = Caller::new();
    let pool = TestPool::of(&caller, &[&server.address().to_string()]);
    let call = get(server.address());
    let (reply, ()) = tokio::join!(caller.call_pool(&call, &pool), async {
        in_time(asked.recv()).await.unwrap();
        assert_eq!(pool.in_flight(), 1);
        go.notify_one();
    });
    assert_eq!(body(reply), "ok");
    assert_eq!(pool.in_flight(), 0);
}

#[tokio::test]
async fn a_pool_without_endpoints_says_why() {
    let caller = Caller::new();
    caller.dns.set("auth.test", RecordType::A, Answer::ServFail);
    let pool = TestPool::of(&caller, &["auth.test:80"]);
    let reply = caller
        .call_pool(&get(([127, 0, 0, 1], 1).into()), &pool)
        .await;
    assert_fails(
        reply,
        Unavailable,
        &["pool auth: the upstream's name is not resolved yet"],
    );
    assert_eq!(caller.outcomes("unavailable"), 1.0);
}

#[tokio::test]
async fn a_pools_own_timeouts_hold() {
    let server = Server::saying("HTTP/1.1 200 OK\r\n").await;
    let caller = Caller::new();
    let target = server.address().to_string().parse().unwrap();
    let pool = TestPool::new(
        &caller,
        PoolConfig {
            timeouts: Timeouts {
                read: millis(50),
                ..Timeouts::default()
            },
            ..PoolConfig::new(vec![target])
        },
    );
    let reply = caller.call_pool(&get(server.address()), &pool).await;
    assert_fails(reply, Timeout, &["pool auth: nothing moved", "`timeouts`"]);
}

#[tokio::test]
async fn a_connection_is_kept_for_the_pools_idle_time() {
    let (told, mut gone) = tokio::sync::mpsc::unbounded_channel();
    let server = Server::start(move |_, mut peer| {
        let told = told.clone();
        async move {
            peer.request().await;
            peer.say(OK).await;
            peer.gone().await;
            told.send(()).unwrap();
        }
    })
    .await;
    let caller = Caller::new();
    let target = server.address().to_string().parse().unwrap();
    let pool = TestPool::new(
        &caller,
        PoolConfig {
            timeouts: Timeouts {
                idle: millis(50),
                ..Timeouts::default()
            },
            ..PoolConfig::new(vec![target])
        },
    );
    body(caller.call_pool(&get(server.address()), &pool).await);
    in_time(gone.recv()).await.unwrap();
}

#[tokio::test]
async fn a_unix_socket_is_an_endpoint() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("auth.sock");
    let server = Server::on_socket(&path, |_, mut peer| async move {
        while peer.request().await.is_some() {
            peer.say(OK).await;
        }
    });
    let caller = Caller::new();
    let pool = TestPool::of(&caller, &[&format!("unix:{}", path.display())]);
    for _ in 0..2 {
        let reply = caller
            .call_pool(&get(([127, 0, 0, 1], 1).into()), &pool)
            .await;
        assert_eq!(body(reply), "ok");
    }
    assert_eq!(server.connections(), 1);
    assert!(server.requests()[0].contains("\r\nHost: localhost\r\n"));
}

#[tokio::test]
async fn the_server_of_a_url_is_called_at_an_address_that_answers() {
    // The same port on two loopback addresses, of which one has a listener.
    let listener = TcpListener::bind("127.0.0.2:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = Server::run(listener, None, |_, mut peer| async move {
        while peer.request().await.is_some() {
            peer.say(OK).await;
        }
    });
    let caller = Caller::new();
    caller
        .dns
        .set_a("api.test", 300, &["127.0.0.2", "127.0.0.3"]);
    for _ in 0..20 {
        let call = outgoing(Method::GET, "api.test", port);
        assert_eq!(body(caller.call(&call).await), "ok");
    }
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn a_url_that_nobody_listens_at_is_refused_once_for_each_address() {
    let caller = Caller::new();
    let dead = Dead::new();
    let reply = caller.get(dead.address()).await;
    let name = dead.address().to_string();
    assert_fails(
        reply,
        Connect,
        &[&format!("{name}: no connection to {name}: refused")],
    );

    caller
        .dns
        .set_a("api.test", 300, &["127.0.0.1", "127.0.0.2"]);
    let port = dead.address().port();
    let reply = caller.call(&outgoing(Method::GET, "api.test", port)).await;
    let parts = [
        &*format!("api.test:{port}: no connection to"),
        "refused, after 2 attempts",
    ];
    assert_fails(reply, Connect, &parts);
}

#[tokio::test]
async fn an_ipv6_address_is_called_with_brackets() {
    let Ok(listener) = TcpListener::bind("[::1]:0").await else {
        eprintln!("skipped: no IPv6 here");
        return;
    };
    let port = listener.local_addr().unwrap().port();
    let server = Server::run(listener, None, |_, mut peer| async move {
        peer.request().await;
        peer.say(OK).await;
    });
    let reply = Caller::new()
        .call(&outgoing(Method::GET, "::1", port))
        .await;
    assert_eq!(body(reply), "ok");
    assert!(server.requests()[0].contains(&format!("\r\nHost: [::1]:{port}\r\n")));
}
