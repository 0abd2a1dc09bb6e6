//! Names of URLs, over a scripted DNS server.

use super::*;
use crate::dns::tests::dns_server::Answer;
use crate::dns::tests::{millis, wait_until};
use crate::metrics::DnsSample;
use CallFailureKind::{Connect, Timeout, Unavailable};
use hickory_resolver::proto::rr::RecordType;

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

fn names(caller: &Caller) -> Vec<String> {
    let names = caller.resolver.snapshot().names;
    names.into_iter().map(|name| name.name).collect()
}

#[tokio::test]
async fn a_name_is_asked_for_once() {
    let server = Server::saying(OK).await;
    let caller = Caller::new();
    caller.dns.set_a("api.test", 300, &["127.0.0.1"]);
    let port = server.address().port();
    for _ in 0..5 {
        let call = outgoing(Method::GET, "api.test", port);
        assert_eq!(body(caller.call(&call).await), "ok");
    }
    assert_eq!(caller.dns.count("api.test", RecordType::A), 1);
    assert!(server.requests()[0].contains(&format!("\r\nHost: api.test:{port}\r\n")));
}

#[tokio::test]
async fn calls_that_wait_for_the_same_name_are_all_woken() {
    let server = Server::saying(OK).await;
    let caller = Caller::new();
    caller.dns.set_a("api.test", 300, &["127.0.0.1"]);
    let call = outgoing(Method::GET, "api.test", server.address().port());
    let calls = (0..20).map(|_| caller.call(&call));
    for reply in futures_util::future::join_all(calls).await {
        assert_eq!(body(reply), "ok");
    }
    assert_eq!(caller.dns.count("api.test", RecordType::A), 1);
}

#[tokio::test]
async fn a_new_answer_is_followed() {
    let caller = Caller::new();
    let first = Server::saying(OK).await;
    let port = first.address().port();
    let listener = tokio::net::TcpListener::bind(("127.0.0.2", port)).await;
    let Ok(listener) = listener else {
        eprintln!("skipped: the port is taken on the other address");
        return;
    };
    let second = Server::run(listener, None, |_, mut peer| async move {
        while peer.request().await.is_some() {
            peer.say("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nnew")
                .await;
        }
    });
    caller.dns.set_a("api.test", 0, &["127.0.0.1"]);
    let call = outgoing(Method::GET, "api.test", port);
    assert_eq!(body(caller.call(&call).await), "ok");
    caller.dns.set_a("api.test", 0, &["127.0.0.2"]);
    in_time(async {
        while body(caller.call(&call).await) != "new" {
            tokio::task::yield_now().await;
        }
    })
    .await;
    drop(second);
}

#[tokio::test]
async fn a_name_that_does_not_exist_is_unavailable() {
    let caller = Caller::new();
    let reply = caller.call(&outgoing(Method::GET, "typo.test", 80)).await;
    assert_fails(reply, Unavailable, &["typo.test:80: there is no such name"]);
}

#[tokio::test]
async fn a_name_that_can_not_be_looked_up_fails_at_once_with_the_reason() {
    let server = Server::saying(OK).await;
    let caller = Caller::new();
    caller.dns.set("api.test", RecordType::A, Answer::ServFail);
    let call = outgoing(Method::GET, "api.test", server.address().port());
    for _ in 0..2 {
        let reply = caller.call(&call).await;
        assert_fails(reply, Unavailable, &["api.test:", "SERVFAIL", "api.test."]);
    }
    // And works as soon as its server does.
    caller.dns.set_a("api.test", 300, &["127.0.0.1"]);
    in_time(async {
        while caller.call(&call).await.is_err() {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_first_answer_is_waited_for_until_the_calls_timeout() {
    let caller = Caller::new();
    caller.dns.set("api.test", RecordType::A, Answer::Silence);
    let call = within(millis(50), outgoing(Method::GET, "api.test", 80));
    let reply = caller.call(&call).await;
    assert_fails(
        reply,
        Timeout,
        &["not done within 50ms: it was resolving the name"],
    );
}

#[tokio::test]
async fn metadata_is_refused_by_address_and_by_name() {
    let caller = Caller::new();
    caller.dns.set_a("metadata.test", 300, &["169.254.169.254"]);
    for host in [
        "169.254.169.254",
        "fe80::1",
        "::ffff:169.254.169.254",
        "metadata.test",
    ] {
        let reply = caller.call(&outgoing(Method::GET, host, 80)).await;
        assert_fails(reply, Unavailable, &["is link-local", "metadata"]);
    }
    let reply = caller.call(&outgoing(Method::GET, "0.0.0.0", 80)).await;
    assert_fails(
        reply,
        Unavailable,
        &["is no address that can be connected to"],
    );
    assert_eq!(caller.dns.queries().len(), 1);
}

#[tokio::test]
async fn refused_addresses_of_a_name_are_left_out() {
    let server = Server::saying(OK).await;
    let caller = Caller::new();
    caller
        .dns
        .set_a("mixed.test", 300, &["169.254.169.254", "127.0.0.1"]);
    for _ in 0..10 {
        let call = outgoing(Method::GET, "mixed.test", server.address().port());
        assert_eq!(body(caller.call(&call).await), "ok");
    }
}

#[tokio::test]
async fn localhost_is_loopback_without_dns() {
    let server = Server::saying(OK).await;
    let caller = Caller::new();
    let call = outgoing(Method::GET, "localhost", server.address().port());
    assert_eq!(body(caller.call(&call).await), "ok");
    assert!(caller.dns.queries().is_empty());
}

#[tokio::test]
async fn what_can_not_be_a_name_is_not_looked_up() {
    let caller = Caller::new();
    let long = format!("{}.test", "a".repeat(64));
    let longer = "a.".repeat(130);
    for host in [
        "",
        ".",
        "a..b",
        "a b",
        "a\r\nb",
        "fe80::1%eth0",
        "é.test",
        &long,
        &longer,
    ] {
        let reply = caller.call(&outgoing(Method::GET, host, 80)).await;
        assert_fails(reply, Unavailable, &["can't be the name of a host"]);
    }
    assert!(caller.dns.queries().is_empty());
    assert!(names(&caller).is_empty());
}

#[tokio::test]
async fn names_without_end_leave_a_bounded_number_behind() {
    let caller = Caller::new();
    for number in 0..300 {
        let name = format!("n{number}.test");
        caller.dns.set_a(&name, 300, &["127.0.0.1"]);
        // Port 1 has no listener: only the name matters.
        let reply = caller.call(&outgoing(Method::GET, &name, 1)).await;
        assert_fails(reply, Connect, &["refused"]);
        // One that is used all the time stays.
        caller.dns.set_a("used.test", 300, &["127.0.0.1"]);
        let reply = caller.call(&outgoing(Method::GET, "used.test", 1)).await;
        assert_fails(reply, Connect, &["refused"]);
    }
    assert_eq!(names(&caller).len(), 64);
    assert_eq!(caller.dns.count("used.test", RecordType::A), 1);
    // And none has series of its own.
    let sample = DnsSample::from(caller.resolver.snapshot());
    assert_eq!((sample.hosts.len(), sample.lookups.len()), (0, 0));

    let Caller {
        client, resolver, ..
    } = caller;
    drop(client);
    wait_until("all are forgotten", || resolver.snapshot().names.is_empty());
}

#[tokio::test]
async fn a_name_of_a_pool_keeps_its_series() {
    let caller = Caller::new();
    caller.dns.set_a("api.test", 300, &["127.0.0.1"]);
    let reply = caller.call(&outgoing(Method::GET, "api.test", 1)).await;
    assert_fails(reply, Connect, &["refused"]);
    let pool = TestPool::of(&caller, &["api.test:1"]);
    let sample = DnsSample::from(caller.resolver.snapshot());
    assert_eq!(sample.hosts[0].name, "api.test");
    assert!(pool.pool.has_endpoints());
}
