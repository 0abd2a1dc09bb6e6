//! Calls over TLS.

use super::*;
use CallFailureKind::Connect;
use pingora_core::tls::{
    RootCertStore, ServerConfig, TlsAcceptor, install_default_crypto_provider,
    load_ca_file_into_store, load_certs_and_key_files,
};
use tokio::net::TcpListener;

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

macro_rules! certificate {
    ($name:literal) => {
        concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/src/outbound/tests/certificates/",
            $name
        )
    };
}

/// Its certificate is for api.test and 127.0.0.1.
async fn server() -> Server {
    install_default_crypto_provider();
    let files = (certificate!("server.pem"), certificate!("server.key"));
    let (chain, key) = load_certs_and_key_files(files.0, files.1).unwrap().unwrap();
    let config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    Server::run(listener, Some(acceptor), |_, mut peer| async move {
        while peer.request().await.is_some() {
            peer.say(OK).await;
        }
    })
}

fn authority() -> Result<RootCertStore, String> {
    let mut store = RootCertStore::empty();
    load_ca_file_into_store(certificate!("authority.pem"), &mut store).unwrap();
    Ok(store)
}

fn to(host: &str, server: &Server) -> Outgoing {
    let port = server.address().port();
    let recipient = Recipient::Server {
        tls: true,
        host: host.to_owned(),
        port,
    };
    Outgoing {
        recipient,
        ..outgoing(Method::GET, host, port)
    }
}

#[tokio::test]
async fn a_certificate_that_is_valid_for_the_host_is_accepted() {
    let server = server().await;
    let caller = Caller::trusting(Roots::read_with(authority));
    caller.dns.set_a("api.test", 300, &["127.0.0.1"]);
    for host in ["api.test", "127.0.0.1", "api.test."] {
        for _ in 0..2 {
            assert_eq!(body(caller.call(&to(host, &server)).await), "ok", "{host}");
        }
    }
    // With and without the dot the certificate is the same, and so is the connection.
    assert_eq!(server.connections(), 2);
    let port = server.address().port();
    assert!(server.requests()[0].contains(&format!("\r\nHost: api.test:{port}\r\n")));
}

#[tokio::test]
async fn a_certificate_for_another_host_is_refused() {
    let server = server().await;
    let caller = Caller::trusting(Roots::read_with(authority));
    caller.dns.set_a("other.test", 300, &["127.0.0.1"]);
    let reply = caller.call(&to("other.test", &server)).await;
    assert_fails(
        reply,
        Connect,
        &[
            "other.test:",
            "no connection to 127.0.0.1:",
            "not valid for name",
        ],
    );
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn a_connection_for_one_host_is_not_used_for_another() {
    let server = server().await;
    let caller = Caller::trusting(Roots::read_with(authority));
    caller.dns.set_a("api.test", 300, &["127.0.0.1"]);
    caller.dns.set_a("other.test", 300, &["127.0.0.1"]);
    body(caller.call(&to("api.test", &server)).await);
    let reply = caller.call(&to("other.test", &server)).await;
    assert_fails(reply, Connect, &["not valid for name"]);
    let plain = within(Duration::from_millis(200), get(server.address()));
    assert!(caller.call(&plain).await.is_err());
}

#[tokio::test]
async fn a_certificate_of_an_unknown_authority_is_refused() {
    fn empty() -> Result<RootCertStore, String> {
        Ok(RootCertStore::empty())
    }
    let server = server().await;
    let caller = Caller::trusting(Roots::read_with(empty));
    caller.dns.set_a("api.test", 300, &["127.0.0.1"]);
    let reply = caller.call(&to("api.test", &server)).await;
    assert_fails(reply, Connect, &["api.test:", "UnknownIssuer"]);
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn without_root_certificates_there_is_no_connection() {
    fn none() -> Result<RootCertStore, String> {
        Err("there are no root certificates".to_owned())
    }
    let server = server().await;
    let caller = Caller::trusting(Roots::read_with(none));
    for _ in 0..2 {
        let reply = caller.call(&to("127.0.0.1", &server)).await;
        let parts = [
            "127.0.0.1:",
            "can't be verified: there are no root certificates",
        ];
        assert_fails(reply, Connect, &parts);
    }
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn a_server_that_speaks_no_tls_is_no_connection() {
    let server = Server::start(|_, mut peer| async move {
        peer.say("HTTP/1.1 400 Bad Request\r\n\r\n").await;
        peer.gone().await;
    })
    .await;
    let caller = Caller::trusting(Roots::read_with(authority));
    let reply = caller.call(&to("127.0.0.1", &server)).await;
    assert_fails(reply, Connect, &["127.0.0.1:", "no connection to"]);
}

#[tokio::test]
async fn a_handshake_ends_with_the_calls_timeout() {
    let server = Server::start(|_, mut peer| async move { peer.gone().await }).await;
    let caller = Caller::trusting(Roots::read_with(authority));
    let call = within(Duration::from_millis(200), to("127.0.0.1", &server));
    let reply = caller.call(&call).await;
    assert_fails(
        reply,
        CallFailureKind::Timeout,
        &["it was connecting to 127.0.0.1:"],
    );
}

#[tokio::test]
async fn the_systems_authorities_are_not_those_of_the_tests() {
    let server = server().await;
    let caller = Caller::new();
    let reply = caller.call(&to("127.0.0.1", &server)).await;
    assert_fails(reply, Connect, &["127.0.0.1:", "certificate"]);
    assert!(server.requests().is_empty());
}
