//! TLS from clients: who is shown which certificate, what is agreed upon, and what the rest of the proxy knows of it.

use rustls::SignatureScheme as Scheme;

use crate::support::certificates::{Authority, Issued};
use crate::support::client::{Connection, get};
use crate::support::http2::{Client, request};
use crate::support::launch::{Builder, serving};
use crate::support::ports;
use crate::support::tls_client::{Hello, asking_for, nameless};
use crate::support::tls_server::der;
use crate::support::upstream::Upstream;
use crate::support::wait::{SOON, until};

const WHAT: &str = r#"route("/{*rest}").respond(|req| {
    let tls = req.tls;
    let spoken = if tls == () { "plain" } else { `${tls.version} ${tls.cipher} ${tls.sni ?? "nobody"}` };
    respond(200, `${req.scheme} ${req.protocol} ${req.client_ip} ${spoken}`)
});"#;

/// A listener with these certificates, as `0.crt`, `1.crt` and so on, and these keys beside.
fn listening(routes: &str, certificates: &[&Issued], keys: &str) -> Builder {
    let numbered = 0..certificates.len();
    let entries = numbered.map(|n| format!("{{ cert = \"{n}.crt\", key = \"{n}.key\" }}"));
    let entries = entries.collect::<Vec<_>>().join(", ");
    let mut builder = serving(routes).listener(&format!(
        "[listeners.tls]\ncertificates = [{entries}]\n{keys}"
    ));
    for (number, own) in certificates.iter().enumerate() {
        builder = builder.file(&format!("{number}.crt"), &own.chain);
        builder = builder.file(&format!("{number}.key"), &own.key);
    }
    builder
}

/// The certificate that a client is shown.
fn shown(hello: Hello, proxy: &crate::support::proxy::Proxy) -> Vec<u8> {
    let tunnel = hello.to(proxy.address());
    let answer = get("/").try_send(tunnel.address());
    let answer = answer.unwrap_or_else(|e| panic!("{e}: {:?}", tunnel.failed()));
    assert_eq!(answer.status, 200);
    tunnel.last().certificate
}

#[test]
fn the_name_that_is_asked_for_chooses_the_certificate() {
    let authority = Authority::new("of the test");
    let first = authority.issue(&["a.test"]);
    let wildcard = authority.issue(&["b.test", "*.b.test"]);
    let exact = authority.issue(&["x.b.test", "192.0.2.1"]);
    let proxy = listening(WHAT, &[&first, &wildcard, &exact], "").start();
    for (name, expected) in [
        ("a.test", &first),
        ("b.test", &wildcard),
        ("y.b.test", &wildcard),
        ("x.b.test", &exact),
        // A wildcard stands for one label.
        ("z.y.b.test", &first),
        ("unknown.test", &first),
        ("test", &first),
    ] {
        let certificate = shown(asking_for(name), &proxy);
        assert_eq!(certificate, der(&expected.chain), "{name}");
    }
    assert_eq!(shown(nameless(), &proxy), der(&first.chain));
    let certificates = &proxy.status()["certificates"];
    assert_eq!(
        certificates[2]["names"],
        serde_json::json!(["x.b.test", "192.0.2.1"]),
        "{certificates}"
    );
    assert_eq!(certificates[2]["file"], "2.crt");
    assert_eq!(certificates[2]["error"], serde_json::Value::Null);
    let until = certificates[2]["not_after"].as_f64().unwrap();
    let metric = "tls_certificate_not_after_timestamp_seconds";
    assert_eq!(proxy.metric(metric, &[("name", "2.crt")]), until);
    assert_eq!(proxy.metric("tls_certificate_failed", &[]), 0.0);
    assert_eq!(
        proxy.metric("tls_handshakes_total", &[("result", "done")]),
        8.0
    );
}

#[test]
fn of_two_kinds_a_client_gets_the_one_that_it_can_check() {
    let authority = Authority::new("of the test");
    let names = ["a.test", "*.a.test"];
    let (rsa, ecdsa) = (authority.issue_rsa(&names), authority.issue(&names));
    let proxy = listening(WHAT, &[&rsa, &ecdsa], "").start();
    let old = [Scheme::RSA_PSS_SHA256, Scheme::RSA_PKCS1_SHA256];
    let new = [Scheme::ECDSA_NISTP256_SHA256];
    for hello in [asking_for("a.test"), asking_for("w.a.test"), nameless()] {
        for hello in [hello.clone(), hello.old()] {
            let of = |hello: Hello| shown(hello, &proxy);
            assert_eq!(of(hello.clone()), der(&ecdsa.chain), "{:?}", hello.sni);
            assert_eq!(of(hello.clone().schemes(&new)), der(&ecdsa.chain));
            assert_eq!(of(hello.clone().schemes(&old)), der(&rsa.chain));
        }
    }
}

#[test]
fn the_protocol_is_agreed_upon_in_the_handshake() {
    let own = Authority::new("of the test").issue(&["a.test"]);
    let proxy = listening(WHAT, &[&own], "").start();
    let both = asking_for("a.test")
        .alpn(&["h2", "http/1.1"])
        .to(proxy.address());
    let client = Client::connect(both.address());
    let answer = client
        .send(request("GET", "/").body(()).unwrap(), b"")
        .unwrap();
    let said = "https HTTP/2 127.0.0.1 TLSv1.3 TLS_AES_256_GCM_SHA384 a.test";
    assert_eq!(answer.message.text(), said);
    assert_eq!(both.last().alpn.as_deref(), Some("h2"));
    for (offered, agreed) in [(&["http/1.1"][..], Some("http/1.1")), (&[], None)] {
        let tunnel = asking_for("a.test").alpn(offered).to(proxy.address());
        let said = get("/").send(tunnel.address()).text();
        assert!(said.starts_with("https HTTP/1.1 "), "{said}");
        assert_eq!(tunnel.last().alpn.as_deref(), agreed);
    }
    // RFC 7301 section 3.2.
    let other = asking_for("a.test").alpn(&["spdy/3"]).to(proxy.address());
    assert!(get("/").try_send(other.address()).is_err());
    until("it to be counted", SOON, || {
        reason(&proxy, "tls_incompatible") == 1.0
    });
}

#[test]
fn http_2_can_be_turned_off() {
    let own = Authority::new("of the test").issue(&["a.test"]);
    let mut settings = String::from("http2 = false\n[listeners.tls]\n");
    settings += "certificates = [{ cert = \"0.crt\", key = \"0.key\" }]";
    let proxy = serving(WHAT)
        .listener(&settings)
        .file("0.crt", &own.chain)
        .file("0.key", &own.key)
        .start();
    let both = asking_for("a.test")
        .alpn(&["h2", "http/1.1"])
        .to(proxy.address());
    assert_eq!(get("/").send(both.address()).status, 200);
    assert_eq!(both.last().alpn.as_deref(), Some("http/1.1"));
}

fn reason(proxy: &crate::support::proxy::Proxy, reason: &str) -> f64 {
    proxy.metric("refused_connections_total", &[("reason", reason)])
}

#[test]
fn old_versions_are_refused() {
    let own = Authority::new("of the test").issue(&["a.test"]);
    let proxy = listening(WHAT, &[&own], "").start();
    let older = asking_for("a.test").old().to(proxy.address());
    let said = get("/").send(older.address()).text();
    assert!(said.contains("TLSv1.2 TLS_ECDHE_ECDSA_WITH_AES_"), "{said}");

    // TLS 1.1 with TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA, as no client here speaks it (RFC 4346 section 7.4.1.2).
    let hello = [&[3, 2][..], &[7; 32], &[0, 0, 2, 0xc0, 0x13, 1, 0]].concat();
    let handshake = [&[1, 0, 0, hello.len() as u8][..], &hello].concat();
    let record = [&[22, 3, 1, 0, handshake.len() as u8][..], &handshake].concat();
    let mut connection = Connection::open(proxy.address()).unwrap();
    connection.write(&record).unwrap();
    let answer = connection.read_to_end();
    // A fatal alert, and nothing else.
    assert_eq!(
        (answer[0], answer[5], answer.len()),
        (21, 2, 7),
        "{answer:?}"
    );
    until("it to be counted", SOON, || {
        reason(&proxy, "tls_incompatible") == 1.0
    });

    let newer = listening(WHAT, &[&own], "min_version = \"1.3\"").start();
    let older = asking_for("a.test").old().to(newer.address());
    assert!(get("/").try_send(older.address()).is_err());
    assert!(
        older.failed()[0].contains("ProtocolVersion"),
        "{:?}",
        older.failed()
    );
    assert_eq!(shown(asking_for("a.test"), &newer), der(&own.chain));
}

#[test]
fn upstreams_and_cookies_know_of_it() {
    let upstream = Upstream::fixed("web");
    let own = Authority::new("of the test").issue(&["a.test"]);
    let routes = r#"route("/{*rest}").sticky("s").to("web");"#;
    let proxy = listening(routes, &[&own], "")
        .pool("web", upstream.address())
        .start();
    let tunnel = asking_for("a.test").to(proxy.address());
    // The host decides the site, not the name of the handshake: connections of HTTP/2 are shared.
    let answer = get("/").host("other.test").send(tunnel.address());
    let cookie = answer.header("set-cookie").unwrap();
    assert!(cookie.contains("; Secure"), "{cookie}");
    let seen = upstream.only_request();
    assert_eq!(seen.header("x-forwarded-proto").as_deref(), Some("https"));
    assert_eq!(seen.header("host").as_deref(), Some("other.test"));
}

#[test]
fn the_header_of_the_proxy_protocol_comes_first() {
    let own = Authority::new("of the test").issue(&["a.test"]);
    let proxy = serving(WHAT)
        .settings("[trusted_proxies]\ncidrs = [\"127.0.0.0/8\"]")
        .listener(
            "proxy_protocol = true\n[listeners.tls]\n\
             certificates = [{ cert = \"0.crt\", key = \"0.key\" }]",
        )
        .file("0.crt", &own.chain)
        .file("0.key", &own.key)
        .start();
    let v2 = b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\xc0\0\x02\x07\x0a\0\0\x01\x9c\x40\0\x50";
    let v1 = b"PROXY TCP4 192.0.2.7 10.0.0.1 40000 80\r\n";
    for header in [&v2[..], v1] {
        let tunnel = asking_for("a.test").first(header).to(proxy.address());
        let said = get("/").send(tunnel.address()).text();
        assert!(
            said.starts_with("https HTTP/1.1 192.0.2.7 TLSv1.3"),
            "{said}"
        );
    }
    let without = asking_for("a.test").to(proxy.address());
    assert!(get("/").try_send(without.address()).is_err());
    until("it to be counted", SOON, || {
        reason(&proxy, "no_proxy_header") == 1.0
    });
}

#[test]
fn each_listener_has_certificates_of_its_own() {
    let authority = Authority::new("of the test");
    let (one, other) = (authority.issue(&["a.test"]), authority.issue(&["a.test"]));
    let more = ports::free([127, 0, 0, 1].into(), 2);
    let proxy = listening(WHAT, &[&one], "")
        .settings(&format!(
            "[[listeners]]\naddress = \"{}\"\n[[listeners]]\naddress = \"{}\"\n\
             tls = {{ certificates = [{{ cert = \"o.crt\", key = \"o.key\" }}] }}",
            more[0], more[1]
        ))
        .file("o.crt", &other.chain)
        .file("o.key", &other.key)
        .start();
    assert_eq!(shown(asking_for("a.test"), &proxy), der(&one.chain));
    let second = asking_for("a.test").to(more[1]);
    assert_eq!(get("/").send(second.address()).status, 200);
    assert_eq!(second.last().certificate, der(&other.chain));
    let plain = get("/").send(more[0]).text();
    assert_eq!(plain, "http HTTP/1.1 127.0.0.1 plain");
}
