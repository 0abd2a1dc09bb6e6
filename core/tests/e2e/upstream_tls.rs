//! TLS towards the targets of a pool: who is believed, who the proxy says it is, and what a reload changes.

use std::io::Write as _;
use std::net::TcpListener;
use std::time::{Duration, SystemTime};

use crate::support::certificates::{Authority, Issued};
use crate::support::client::{Connection, get};
use crate::support::launch::{Builder, serving};
use crate::support::tls_server::{Demands, TlsServer, der};
use crate::support::upstream::Upstream;
use crate::support::wait::SOON;

const ROUTES: &str = r#"route("/{*rest}").to("web");"#;

/// A pool whose target is this server, called by its address.
fn to(server: &TlsServer, tls: &str) -> Builder {
    let target = server.address();
    let pool = format!("[pools.web]\ntargets = [\"{target}\"]\n[pools.web.tls]\n{tls}\n");
    serving(ROUTES).settings(&pool)
}

fn plain() -> (Upstream, Authority) {
    (Upstream::fixed("secure"), Authority::new("of the test"))
}

fn server(upstream: &Upstream, own: &Issued) -> TlsServer {
    TlsServer::start(own, upstream.address(), &Demands::default())
}

#[test]
fn a_server_whose_authority_is_named_is_believed_and_its_connection_kept() {
    let (upstream, authority) = plain();
    let server = server(&upstream, &authority.issue(&["web.test"]));
    let proxy = to(&server, "ca = \"ca.pem\"\nserver_name = \"web.test\"")
        .file("ca.pem", &authority.pem())
        .settings("[server]\nthreads = 1")
        .start();
    for _ in 0..3 {
        assert_eq!(proxy.text("/"), "secure");
    }
    let shaken = server.shaken();
    assert_eq!(shaken.len(), 1, "one connection serves all: {shaken:?}");
    assert_eq!(shaken[0].server_name.as_deref(), Some("web.test"));
    assert_eq!(shaken[0].alpn, None);
    assert_eq!(shaken[0].client, None);
}

#[test]
fn the_name_of_the_targets_is_the_name_that_is_asked_for() {
    let (upstream, authority) = plain();
    let server = server(&upstream, &authority.issue(&["localhost"]));
    let port = server.address().port();
    let proxy = serving(ROUTES)
        .settings(&format!(
            "[pools.web]\ntargets = [\"localhost:{port}\"]\n[pools.web.tls]\nca = \"ca.pem\""
        ))
        .file("ca.pem", &authority.pem())
        .start();
    assert_eq!(proxy.text("/"), "secure");
    assert_eq!(server.shaken()[0].server_name.as_deref(), Some("localhost"));
}

#[test]
fn an_address_can_be_what_the_certificate_is_for() {
    let (upstream, authority) = plain();
    let server = server(&upstream, &authority.issue(&["127.0.0.1"]));
    let proxy = to(&server, "ca = \"ca.pem\"\nserver_name = \"127.0.0.1\"")
        .file("ca.pem", &authority.pem())
        .start();
    assert_eq!(proxy.text("/"), "secure");
    // An address is never sent (RFC 6066 section 3).
    assert_eq!(server.shaken()[0].server_name, None);
}

#[test]
fn a_server_that_can_t_be_believed_gets_no_request() {
    let (upstream, authority) = plain();
    let other = Authority::new("another");
    let yesterday = SystemTime::now() - Duration::from_secs(24 * 3600);
    for (what, own) in [
        ("another authority", other.issue(&["web.test"])),
        ("another name", authority.issue(&["web2.test"])),
        ("expired", authority.issue_until(&["web.test"], yesterday)),
    ] {
        let server = server(&upstream, &own);
        let proxy = to(&server, "ca = \"ca.pem\"\nserver_name = \"web.test\"")
            .file("ca.pem", &authority.pem())
            .start();
        let response = proxy.get("/");
        assert_eq!(response.status, 502, "{what}");
        assert!(response.text().contains("can't be reached"), "{what}");
        let failures = proxy.metric(
            "upstream_connect_failures_total",
            &[("pool", "web"), ("reason", "tls")],
        );
        assert_eq!(failures, 3.0, "{what}: each attempt is counted");
    }
    assert_eq!(upstream.hits(), 0);
}

#[test]
fn without_an_authority_the_system_s_count() {
    let (upstream, authority) = plain();
    let server = server(&upstream, &authority.issue(&["web.test"]));
    let roots = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(roots.path(), authority.pem()).unwrap();
    let believed = to(&server, "server_name = \"web.test\"")
        .environment("SSL_CERT_FILE", roots.path().to_str().unwrap())
        .start();
    assert_eq!(believed.text("/"), "secure");

    std::fs::write(roots.path(), Authority::new("another").pem()).unwrap();
    let doubted = to(&server, "server_name = \"web.test\"")
        .environment("SSL_CERT_FILE", roots.path().to_str().unwrap())
        .start();
    assert_eq!(doubted.get("/").status, 502);
    assert_eq!(upstream.hits(), 1);
}

#[test]
fn verify_false_believes_everybody_and_says_so() {
    let (upstream, _) = plain();
    let server = server(&upstream, &Authority::new("anyone").issue(&["no.test"]));
    let proxy = to(&server, "server_name = \"web.test\"\nverify = false").start();
    assert_eq!(proxy.text("/"), "secure");
    proxy.log.wait("can read and change everything", SOON);
}

#[test]
fn a_server_that_speaks_no_tls_is_no_upstream() {
    let (_, authority) = plain();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let target = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
        }
    });
    let proxy = serving(ROUTES)
        .settings(&format!(
            "[pools.web]\ntargets = [\"{target}\"]\n\
             [pools.web.tls]\nca = \"ca.pem\"\nserver_name = \"web.test\""
        ))
        .file("ca.pem", &authority.pem())
        .start();
    assert_eq!(proxy.get("/").status, 502);
}

#[test]
fn the_proxy_shows_its_own_certificate_and_another_one_after_it_has_changed() {
    let (upstream, authority) = plain();
    let clients = Authority::new("clients");
    let own = authority.issue(&["web.test"]);
    let demands = Demands {
        client_authority: Some(clients.pem()),
        ..Demands::default()
    };
    let server = TlsServer::start(&own, upstream.address(), &demands);
    let (first, second) = (clients.issue(&["edge.test"]), clients.issue(&["edge.test"]));
    let proxy = to(
        &server,
        "ca = \"ca.pem\"\nserver_name = \"web.test\"\ncertificate = \"edge.pem\"\nkey = \"edge.key\"",
    )
    .settings("[server]\nthreads = 1")
    .file("ca.pem", &authority.pem())
    .file("edge.pem", &first.chain)
    .file("edge.key", &first.key)
    .start();
    assert_eq!(proxy.text("/"), "secure");

    // The key of the other one: refused, and the last good one goes on.
    std::fs::write(proxy.file("edge.pem"), &second.chain).unwrap();
    let (status, refused) = proxy.reload();
    assert_eq!(status, 422, "{refused}");
    assert!(refused.to_string().contains("does not fit"), "{refused}");
    assert_eq!(proxy.text("/"), "secure");
    assert_eq!(server.shaken().len(), 1, "{:?}", server.failed());

    // Complete: a new connection with the new one, without a change of the settings.
    std::fs::write(proxy.file("edge.key"), &second.key).unwrap();
    assert_eq!(proxy.reload().0, 200);
    assert_eq!(proxy.text("/"), "secure");
    let shown: Vec<_> = server
        .shaken()
        .into_iter()
        .map(|shaken| shaken.client)
        .collect();
    assert_eq!(shown, [Some(der(&first.chain)), Some(der(&second.chain))]);
}

#[test]
fn another_authority_does_not_share_the_connections_of_the_first() {
    let (upstream, authority) = plain();
    let server = server(&upstream, &authority.issue(&["web.test"]));
    let proxy = to(&server, "ca = \"ca.pem\"\nserver_name = \"web.test\"")
        .settings("[server]\nthreads = 1")
        .file("ca.pem", &authority.pem())
        .start();
    assert_eq!(proxy.text("/"), "secure");
    std::fs::write(proxy.file("ca.pem"), Authority::new("another").pem()).unwrap();
    assert_eq!(proxy.reload().0, 200);
    assert_eq!(
        proxy.get("/").status,
        502,
        "the kept connection is not for this pool"
    );
}

#[test]
fn requests_of_the_old_generation_end_on_their_connection() {
    let (upstream, authority) = plain();
    let server = server(&upstream, &authority.issue(&["web.test"]));
    let proxy = to(&server, "ca = \"ca.pem\"\nserver_name = \"web.test\"")
        .file("ca.pem", &authority.pem())
        .start();
    let mut connection = Connection::open(proxy.address()).unwrap();
    assert_eq!(connection.send(&get("/1")).unwrap().status, 200);
    // The authority's certificate twice: other contents, the same trust.
    let twice = authority.pem().repeat(2);
    std::fs::write(proxy.file("ca.pem"), twice).unwrap();
    assert_eq!(proxy.reload().0, 200);
    assert_eq!(connection.send(&get("/2")).unwrap().status, 200);
}
