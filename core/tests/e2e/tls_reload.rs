//! Certificates of listeners change while connections go on; each is on its own.

use std::io::{Read as _, Write as _};
use std::net::SocketAddr;
use std::time::{Duration, SystemTime};

use tempfile::TempDir;

use crate::support::atomic_writer::AtomicWriter;
use crate::support::certificates::{Authority, Issued};
use crate::support::client::{Connection, get};
use crate::support::command::{Folder, edgewright};
use crate::support::launch::{Builder, serving};
use crate::support::proxy::Proxy;
use crate::support::tls_client::asking_for;
use crate::support::tls_server::der;
use crate::support::upstream::{Action, Upstream};
use crate::support::wait::{Gate, SOON, until};

const ONE: &str = "[listeners.tls]\ncertificates = [{ cert = \"0.crt\", key = \"0.key\" }]";

fn version(name: &str) -> String {
    format!(
        "route(\"/version\").respond(200, \"{name}\");\nroute(\"/up/{{*rest}}\").to(\"web\");\n"
    )
}

fn listening(own: &Issued) -> Builder {
    serving(&version("one"))
        .settings("[pools.web]\ntargets = [\"127.0.0.1:1\"]")
        .listener(ONE)
        .file("0.crt", &own.chain)
        .file("0.key", &own.key)
}

fn put(proxy: &Proxy, own: &Issued) {
    std::fs::write(proxy.file("0.crt"), &own.chain).unwrap();
    std::fs::write(proxy.file("0.key"), &own.key).unwrap();
}

fn reload(proxy: &Proxy) {
    let (status, body) = proxy.reload();
    assert_eq!(status, 200, "{body}");
}

/// What a new client is shown, and what it is answered.
fn asked(address: SocketAddr, name: &str) -> (Vec<u8>, String) {
    let tunnel = asking_for(name).to(address);
    let said = get("/version").send(tunnel.address()).text();
    (tunnel.last().certificate, said)
}

fn failed(proxy: &Proxy, file: &str) -> f64 {
    proxy.metric("tls_certificate_failed", &[("name", file)])
}

const CHUNKED: &[u8] = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nbegin\r\n";

const SWITCH: &[u8] = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\
    Connection: Upgrade\r\n\r\n";

#[test]
fn a_new_certificate_is_for_new_connections_and_the_old_ones_go_on() {
    let gate = Gate::new();
    let held = gate.clone();
    let upstream = Upstream::start(move |seen| {
        let held = held.clone();
        if seen.target() == "/up/download" {
            return Action::Write(Box::new(move |stream| {
                stream.write_all(CHUNKED)?;
                held.pass(SOON);
                stream.write_all(b"5\r\n+rest\r\n0\r\n\r\n")
            }));
        }
        Action::Write(Box::new(|stream| {
            stream.write_all(SWITCH)?;
            let mut buffer = [0; 64];
            loop {
                match stream.read(&mut buffer)? {
                    0 => return Ok(()),
                    length => stream.write_all(&buffer[..length])?,
                }
            }
        }))
    });
    let authority = Authority::new("of the test");
    let (old, new) = (authority.issue(&["a.test"]), authority.issue(&["a.test"]));
    let proxy = serving(&version("one"))
        .pool("web", upstream.address())
        .listener(ONE)
        .file("0.crt", &old.chain)
        .file("0.key", &old.key)
        .start();
    let tunnel = asking_for("a.test").to(proxy.address());
    let mut download = Connection::open(tunnel.address()).unwrap();
    download.write(&get("/up/download").bytes()).unwrap();
    download.read_until(b"begin\r\n");
    let mut socket = Connection::open(tunnel.address()).unwrap();
    let upgrade = get("/up/socket")
        .header("Connection", "Upgrade")
        .header("Upgrade", "websocket");
    assert_eq!(socket.send(&upgrade).unwrap().status, 101);
    let mut kept = Connection::open(tunnel.address()).unwrap();
    assert_eq!(kept.send(&get("/version")).unwrap().text(), "one");

    put(&proxy, &new);
    reload(&proxy);
    assert_eq!(asked(proxy.address(), "a.test").0, der(&new.chain));
    gate.open();
    download.read_until(b"5\r\n+rest\r\n0\r\n\r\n");
    socket.write(b"echo").unwrap();
    assert_eq!(socket.read_until(b"echo"), b"echo");
    assert_eq!(kept.send(&get("/version")).unwrap().text(), "one");
    let shown = tunnel.met();
    assert_eq!(shown.len(), 3, "the old connections are the old ones");
    assert!(shown.iter().all(|met| met.certificate == der(&old.chain)));
    assert_eq!(proxy.status()["restart_required"], serde_json::json!([]));
}

#[test]
fn a_pair_that_does_not_fit_keeps_the_one_before_and_holds_nothing_else_up() {
    let authority = Authority::new("of the test");
    let (old, new) = (authority.issue(&["a.test"]), authority.issue(&["a.test"]));
    let proxy = listening(&old).start();
    // One of the two files is there already, and the routes change.
    std::fs::write(proxy.file("0.crt"), &new.chain).unwrap();
    std::fs::write(proxy.file("routes.rhai"), version("two")).unwrap();
    reload(&proxy);
    let (certificate, said) = asked(proxy.address(), "a.test");
    assert_eq!((certificate, said.as_str()), (der(&old.chain), "two"));
    assert_eq!(failed(&proxy, "0.crt"), 1.0);
    let line = proxy.log.wait("certificate not used", SOON);
    assert!(
        line.contains("file=0.crt: the one before goes on"),
        "{line}"
    );
    assert!(line.contains("the key is not that of"), "{line}");
    // Who looks at the last line hears of it too.
    let line = proxy.log.wait("reloaded revision=", SOON);
    let unused = "certificate not used: 0.crt: the one before goes on";
    assert!(line.ends_with(unused) && line.contains(" WARN "), "{line}");
    let status = proxy.status();
    let unused = &status["last_attempt"]["changes"]["unused"];
    assert_eq!(
        unused,
        &serde_json::json!(["0.crt: the one before goes on"])
    );
    let error = status["certificates"][0]["error"].as_str().unwrap();
    assert!(error.starts_with("edgewright.toml:"), "{error}");
    let check = edgewright(["check".as_ref(), proxy.folder()]);
    assert_eq!(check.code, Some(1), "{}", check.text());
    assert!(
        check.text().contains("the key is not that of"),
        "{}",
        check.text()
    );

    // The other one comes, without anybody asking.
    std::fs::write(proxy.file("0.key"), &new.key).unwrap();
    until("the new certificate", SOON, || {
        asked(proxy.address(), "a.test").0 == der(&new.chain)
    });
    assert_eq!(failed(&proxy, "0.crt"), 0.0);
    assert_eq!(edgewright(["check".as_ref(), proxy.folder()]).code, Some(0));
    until("a line without that", SOON, || {
        let text = proxy.log.text();
        let last = text
            .lines()
            .rfind(|line| line.contains("reloaded revision="));
        last.is_some_and(|line| !line.contains("not used"))
    });
}

#[test]
fn what_is_missing_or_has_expired_keeps_the_one_before_over_any_number_of_reloads() {
    let authority = Authority::new("of the test");
    let own = authority.issue(&["a.test"]);
    let yesterday = SystemTime::now() - Duration::from_secs(24 * 3600);
    let expired = authority.issue_until(&["a.test"], yesterday);
    let proxy = listening(&own).start();
    put(&proxy, &expired);
    reload(&proxy);
    proxy.log.wait("has expired on", SOON);
    std::fs::remove_file(proxy.file("0.crt")).unwrap();
    std::fs::write(proxy.file("routes.rhai"), version("two")).unwrap();
    reload(&proxy);
    let asked_now = asked(proxy.address(), "a.test");
    assert_eq!(asked_now, (der(&own.chain), "two".to_owned()));
    assert_eq!(failed(&proxy, "0.crt"), 1.0);
    // Just what was there before is something new again.
    put(&proxy, &own);
    reload(&proxy);
    assert_eq!(failed(&proxy, "0.crt"), 0.0);
}

#[test]
fn an_entry_that_never_worked_is_left_out_unless_nothing_would_be_left() {
    let authority = Authority::new("of the test");
    let (own, other) = (authority.issue(&["a.test"]), authority.issue(&["b.test"]));
    let proxy = listening(&own).start();
    let with = |entries: &str| {
        let text = proxy
            .settings()
            .replace("{ cert = \"0.crt\", key = \"0.key\" }", entries);
        assert_ne!(text, proxy.settings());
        std::fs::write(proxy.file("edgewright.toml"), text).unwrap();
    };
    let more = "{ cert = \"0.crt\", key = \"0.key\" }, { cert = \"1.crt\", key = \"1.key\" }";
    with(more);
    reload(&proxy);
    let line = proxy.log.wait("certificate not used", SOON);
    assert!(line.contains("file=1.crt: it is left out"), "{line}");
    assert_eq!(asked(proxy.address(), "b.test").0, der(&own.chain));
    assert_eq!(failed(&proxy, "1.crt"), 1.0);
    for (name, text) in [("1.crt", &other.chain), ("1.key", &other.key)] {
        std::fs::write(proxy.file(name), text).unwrap();
    }
    reload(&proxy);
    assert_eq!(asked(proxy.address(), "b.test").0, der(&other.chain));

    with("{ cert = \"2.crt\", key = \"2.key\" }");
    let (status, refused) = proxy.reload();
    assert_eq!(status, 422, "{refused}");
    assert!(refused.to_string().contains("2.crt"), "{refused}");
    assert_eq!(asked(proxy.address(), "b.test").0, der(&other.chain));
}

#[test]
fn a_start_needs_every_certificate() {
    let authority = Authority::new("of the test");
    let (own, other) = (authority.issue(&["a.test"]), authority.issue(&["a.test"]));
    let settings = "[[listeners]]\naddress = \"127.0.0.1:9\"\n[listeners.tls]\ncertificates = [\n\
        { cert = \"0.crt\", key = \"0.key\" },\n{ cert = \"1.crt\", key = \"0.key\" },\n]\n";
    let folder = Folder::with(&[
        ("routes.rhai", "route(\"/\").respond(200);"),
        ("edgewright.toml", settings),
        ("0.crt", &own.chain),
        ("0.key", &own.key),
        ("1.crt", &other.chain),
    ]);
    for command in ["check", "run"] {
        let ended = edgewright([command.as_ref(), folder.path()]);
        assert_eq!(ended.code, Some(1), "{command}: {}", ended.text());
        assert!(
            ended.text().contains("edgewright.toml:6:"),
            "{}",
            ended.text()
        );
    }
}

#[test]
fn a_mounted_secret_that_is_swapped_is_noticed() {
    let authority = Authority::new("of the test");
    let (old, new) = (authority.issue(&["a.test"]), authority.issue(&["a.test"]));
    let secret = TempDir::new().unwrap();
    let mount = secret.path().to_str().unwrap().to_owned();
    let publish = |own: &Issued| {
        let files = [("tls.crt", &own.chain), ("tls.key", &own.key)];
        assert!(AtomicWriter::new(secret.path()).publish(&files).unwrap());
    };
    publish(&old);
    let proxy = serving(&version("one"))
        .settings(&format!(
            "[pools.web]\ntargets = [\"127.0.0.1:1\"]\n[files]\nallow = [\"{mount}\"]"
        ))
        .listener(&format!(
            "[listeners.tls]\ncertificates = [{{ cert = \"{mount}/tls.crt\", key = \"{mount}/tls.key\" }}]"
        ))
        .start();
    assert_eq!(asked(proxy.address(), "a.test").0, der(&old.chain));
    publish(&new);
    until("the new certificate", SOON, || {
        asked(proxy.address(), "a.test").0 == der(&new.chain)
    });
    // Both files are of one revision: there was no moment in which they did not fit.
    assert_eq!(proxy.log.count("certificate not used"), 0);
}

#[test]
fn sessions_are_resumed_until_something_of_tls_changes() {
    let authority = Authority::new("of the test");
    let (old, new) = (authority.issue(&["a.test"]), authority.issue(&["a.test"]));
    let proxy = listening(&old).start();
    for hello in [asking_for("a.test"), asking_for("a.test").old()] {
        put(&proxy, &old);
        reload(&proxy);
        let tunnel = hello.to(proxy.address());
        let resumed = || {
            assert_eq!(get("/version").send(tunnel.address()).status, 200);
            tunnel.last().resumed
        };
        assert!(!resumed());
        assert!(resumed(), "by whichever worker");
        let routes = format!("{}// {}\n", version("two"), tunnel.address());
        std::fs::write(proxy.file("routes.rhai"), routes).unwrap();
        reload(&proxy);
        assert!(resumed(), "this reload has nothing to do with it");
        put(&proxy, &new);
        reload(&proxy);
        assert!(!resumed(), "who comes back sees the new certificate");
        assert_eq!(tunnel.last().certificate, der(&new.chain));
    }
}

#[test]
fn what_needs_a_restart_is_told_and_what_does_not_is_done() {
    let authority = Authority::new("of the test");
    let (own, new) = (authority.issue(&["a.test"]), authority.issue(&["a.test"]));
    let proxy = listening(&own).start();
    let settings = format!("{}\n", proxy.settings());
    let stricter = settings.replace(ONE, &format!("{ONE}\nmin_version = \"1.3\""));
    std::fs::write(proxy.file("edgewright.toml"), stricter).unwrap();
    reload(&proxy);
    assert_eq!(proxy.status()["restart_required"], serde_json::json!([]));
    let old = asking_for("a.test").old().to(proxy.address());
    assert!(get("/version").try_send(old.address()).is_err());

    // Without TLS after the next start: until then it goes on as it was.
    std::fs::write(proxy.file("edgewright.toml"), settings.replace(ONE, "")).unwrap();
    reload(&proxy);
    assert_eq!(
        proxy.status()["restart_required"],
        serde_json::json!(["[[listeners]]"])
    );
    assert_eq!(asked(proxy.address(), "a.test").0, der(&own.chain));
    // And back again.
    std::fs::write(proxy.file("edgewright.toml"), &settings).unwrap();
    put(&proxy, &new);
    reload(&proxy);
    assert_eq!(asked(proxy.address(), "a.test").0, der(&new.chain));
}
