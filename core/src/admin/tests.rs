#![allow(clippy::unwrap_used)]

use super::*;
use serde_json::{Value, json};
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Instant;

/// No step of a test takes longer than this, or it fails.
const PATIENCE: Duration = Duration::from_secs(20);

/// A proxy whose answers the test decides.
struct Fake {
    unready: Mutex<Option<String>>,
    metrics: Vec<u8>,
    /// Called for each reload.
    reload: Box<dyn Fn() -> ReloadAnswer + Send + Sync>,
}

impl Operations for Fake {
    fn readiness(&self) -> Result<(), String> {
        self.unready.lock().unwrap().clone().map_or(Ok(()), Err)
    }
    fn metrics(&self) -> Vec<u8> {
        self.metrics.clone()
    }
    fn status(&self) -> Value {
        json!({"revision": "0123456789ab"})
    }
    fn reload(&self) -> ReloadAnswer {
        (self.reload)()
    }
}

fn loaded() -> ReloadAnswer {
    ReloadAnswer::Loaded {
        revision: "0123456789ab".to_owned(),
    }
}

struct Running {
    fake: Arc<Fake>,
    admin: SocketAddr,
    health: SocketAddr,
    _server: Server,
}

fn start_with(
    settings: Settings,
    metrics: Vec<u8>,
    reload: impl Fn() -> ReloadAnswer + Send + Sync + 'static,
) -> Running {
    let fake = Arc::new(Fake {
        unready: Mutex::new(None),
        metrics,
        reload: Box::new(reload),
    });
    let any = "127.0.0.1:0".parse().unwrap();
    let listeners = [Role::Admin, Role::Health].map(|role| Listener::bind(role, any).unwrap());
    let [admin, health] = [&listeners[0], &listeners[1]].map(Listener::address);
    let server = Server::start(listeners.into(), fake.clone(), settings).unwrap();
    Running {
        fake,
        admin,
        health,
        _server: server,
    }
}

fn start(reload: impl Fn() -> ReloadAnswer + Send + Sync + 'static) -> Running {
    start_with(Settings::default(), b"up 1\n".to_vec(), reload)
}

#[derive(Debug)]
struct Reply {
    status: u16,
    head: String,
    body: String,
}

impl Reply {
    fn parse(bytes: &[u8]) -> Self {
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| {
            panic!("no complete header: {text:?}");
        });
        Self {
            status: head[9..12].parse().unwrap(),
            head: head.to_ascii_lowercase(),
            body: body.to_owned(),
        }
    }
    fn has(&self, field: &str) -> bool {
        self.head.lines().any(|line| line == field)
    }
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }
}

fn connect(address: SocketAddr) -> TcpStream {
    let socket = TcpStream::connect(address).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket
}

/// Sends `request` as it is and reads until the listener closes.
fn send(address: SocketAddr, request: &str) -> Reply {
    let mut socket = connect(address);
    socket.write_all(request.as_bytes()).unwrap();
    let mut bytes = Vec::new();
    socket.read_to_end(&mut bytes).unwrap();
    Reply::parse(&bytes)
}

fn ask(address: SocketAddr, method: &str, path: &str, fields: &str) -> Reply {
    let request = format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\n{fields}\r\n");
    send(address, &request)
}

fn get(address: SocketAddr, path: &str) -> Reply {
    ask(address, "GET", path, "")
}

#[test]
fn both_listeners_serve_health_readiness_and_metrics() {
    let running = start(loaded);
    for address in [running.admin, running.health] {
        let reply = get(address, "/healthz");
        assert_eq!((reply.status, reply.body.as_str()), (200, "ok\n"));
        assert!(reply.has("connection: close"), "{reply:?}");
        assert!(reply.has("cache-control: no-store"), "{reply:?}");
        let reply = get(address, "/readyz?verbose");
        assert_eq!((reply.status, reply.body.as_str()), (200, "ready\n"));
        let reply = get(address, "/metrics");
        assert_eq!((reply.status, reply.body.as_str()), (200, "up 1\n"));
        let kind = "content-type: text/plain; version=0.0.4; charset=utf-8";
        assert!(reply.has(kind), "{reply:?}");
    }
}

#[test]
fn readiness_gives_the_reason_in_one_line() {
    let running = start(loaded);
    *running.fake.unready.lock().unwrap() = Some("pool web:\nno addresses".to_owned());
    let reply = get(running.health, "/readyz");
    assert_eq!(reply.status, 503);
    assert_eq!(reply.body, "pool web: no addresses\n");
    assert_eq!(get(running.health, "/healthz").status, 200);
}

#[test]
fn status_and_reload_are_on_the_admin_listener_only() {
    let running = start(loaded);
    let reply = get(running.admin, "/status");
    assert_eq!(reply.status, 200);
    assert!(reply.has("content-type: application/json"), "{reply:?}");
    assert_eq!(reply.json(), json!({"revision": "0123456789ab"}));
    let reply = ask(running.admin, "POST", "/reload", "content-length: 0\r\n");
    assert_eq!(reply.status, 200);
    let expected = json!({"result": "loaded", "revision": "0123456789ab"});
    assert_eq!(reply.json(), expected);
    assert_eq!(get(running.health, "/status").status, 404);
    assert_eq!(ask(running.health, "POST", "/reload", "").status, 404);
}

#[test]
fn a_reload_tells_unchanged_refused_and_panicked_apart() {
    let running = start(|| ReloadAnswer::Unchanged {
        revision: "ba9876543210".to_owned(),
    });
    let reply = ask(running.admin, "POST", "/reload", "");
    assert_eq!(reply.status, 200);
    let expected = json!({"result": "unchanged", "revision": "ba9876543210"});
    assert_eq!(reply.json(), expected);

    let errors = || vec!["routes.rhai:3:5: unknown pool `wbe`".to_owned()];
    let running = start(move || ReloadAnswer::Failed { errors: errors() });
    let reply = ask(running.admin, "POST", "/reload", "");
    assert_eq!(reply.status, 422);
    let expected = json!({"result": "failed", "errors": errors()});
    assert_eq!(reply.json(), expected);

    let running = start(|| panic!("on purpose"));
    assert_eq!(ask(running.admin, "POST", "/reload", "").status, 500);
    assert_eq!(ask(running.admin, "POST", "/reload", "").status, 500);
    assert_eq!(get(running.admin, "/healthz").status, 200);
}

#[test]
fn head_is_get_without_the_body() {
    let running = start(loaded);
    for path in ["/healthz", "/readyz", "/metrics", "/status", "/nothing"] {
        let get = get(running.admin, path);
        let head = ask(running.admin, "HEAD", path, "");
        assert_eq!(head.status, get.status, "{path}");
        assert_eq!(head.body, "", "{path}");
        let length = format!("content-length: {}", get.body.len());
        assert!(head.has(&length) && get.has(&length), "{head:?} {get:?}");
    }
}

#[test]
fn other_paths_and_methods_are_refused() {
    let running = start(loaded);
    for path in ["/", "/healthz/", "//healthz", "/Healthz", "/%68ealthz"] {
        assert_eq!(get(running.admin, path).status, 404, "{path}");
    }
    for method in ["POST", "PUT", "DELETE", "OPTIONS", "BREW"] {
        let reply = ask(running.admin, method, "/metrics", "");
        assert_eq!(reply.status, 405, "{method}");
        assert!(reply.has("allow: get, head"), "{reply:?}");
    }
    for method in ["GET", "HEAD", "OPTIONS"] {
        let reply = ask(running.admin, method, "/reload", "");
        assert_eq!(reply.status, 405, "{method}");
        assert!(reply.has("allow: post"), "{reply:?}");
    }
}

#[test]
fn pages_of_other_sites_cannot_reload() {
    let running = start(|| panic!("reloaded"));
    for fields in [
        "sec-fetch-site: cross-site\r\n",
        "origin: http://evil.example\r\n",
        "origin: null\r\n",
    ] {
        let reply = ask(running.admin, "POST", "/reload", fields);
        assert_eq!(reply.status, 403, "{fields}");
    }
    let body = "content-type: text/plain\r\ncontent-length: 5\r\n\r\nhello";
    let request = format!("POST /reload HTTP/1.1\r\nhost: localhost\r\n{body}");
    assert_eq!(send(running.admin, &request).status, 400);
}

#[test]
fn names_that_are_not_loopback_are_refused() {
    let running = start(|| panic!("reloaded"));
    for (method, path) in [("GET", "/status"), ("POST", "/reload"), ("GET", "/metrics")] {
        let request = format!("{method} {path} HTTP/1.1\r\nhost: evil.example:9180\r\n\r\n");
        assert_eq!(send(running.admin, &request).status, 403, "{path}");
    }
    let twice = "GET /status HTTP/1.1\r\nhost: localhost\r\nhost: evil.example\r\n\r\n";
    assert_eq!(send(running.admin, twice).status, 400);
    assert_eq!(
        send(running.admin, "GET /healthz HTTP/1.1\r\n\r\n").status,
        400
    );
    assert_eq!(
        send(running.admin, "GET /healthz HTTP/1.0\r\n\r\n").status,
        200
    );
}

/// A reload that says when it starts and ends when told.
fn held_reload() -> (Running, Receiver<()>, Sender<()>) {
    let (started, starts) = channel();
    let (release, released) = channel::<()>();
    let (started, released) = (Mutex::new(started), Mutex::new(released));
    let running = start(move || {
        started.lock().unwrap().send(()).unwrap();
        released.lock().unwrap().recv_timeout(PATIENCE).unwrap();
        loaded()
    });
    (running, starts, release)
}

#[test]
fn a_slow_reload_holds_up_nobody_else() {
    let (running, starts, release) = held_reload();
    let admin = running.admin;
    let reload = thread::spawn(move || ask(admin, "POST", "/reload", ""));
    starts.recv_timeout(PATIENCE).unwrap();
    for address in [running.admin, running.health] {
        for path in ["/healthz", "/readyz", "/metrics"] {
            assert_eq!(get(address, path).status, 200, "{path}");
        }
    }
    assert!(!reload.is_finished());
    release.send(()).unwrap();
    assert_eq!(reload.join().unwrap().status, 200);
}

#[test]
fn reloads_run_one_at_a_time() {
    let (running, starts, release) = held_reload();
    let admin = running.admin;
    let reloads = [(); 2].map(|()| thread::spawn(move || ask(admin, "POST", "/reload", "")));
    starts.recv_timeout(PATIENCE).unwrap();
    // Both requests have been sent, but the second must not start before the first ends.
    let early = starts.recv_timeout(Duration::from_millis(200));
    assert!(early.is_err());
    release.send(()).unwrap();
    starts.recv_timeout(PATIENCE).unwrap();
    release.send(()).unwrap();
    for reload in reloads {
        assert_eq!(reload.join().unwrap().status, 200);
    }
}

fn hasty() -> Settings {
    Settings {
        read_timeout: Duration::from_millis(300),
        write_timeout: Duration::from_millis(300),
        ..Settings::default()
    }
}

#[test]
fn a_silent_client_is_closed_in_time() {
    let running = start_with(hasty(), Vec::new(), loaded);
    let started = Instant::now();
    let mut socket = connect(running.health);
    let mut bytes = Vec::new();
    socket.read_to_end(&mut bytes).unwrap();
    assert_eq!(Reply::parse(&bytes).status, 408);
    let took = started.elapsed();
    assert!(took >= Duration::from_millis(250), "{took:?}");
    assert!(took < Duration::from_secs(5), "{took:?}");
}

#[test]
fn a_client_that_trickles_is_closed_in_time() {
    let running = start_with(hasty(), Vec::new(), loaded);
    let started = Instant::now();
    let mut socket = connect(running.health);
    socket.write_all(b"GET /healthz HTTP/1.1\r\nx: ").unwrap();
    socket
        .set_read_timeout(Some(Duration::from_millis(30)))
        .unwrap();
    let mut bytes = [0; 256];
    let read = loop {
        assert!(started.elapsed() < PATIENCE, "never closed");
        match socket.read(&mut bytes) {
            Ok(read) => break read,
            Err(error) if error.kind() == ErrorKind::WouldBlock => socket.write_all(b"a").unwrap(),
            Err(error) => panic!("{error}"),
        }
    };
    assert!(bytes[..read].starts_with(b"HTTP/1.1 408 "));
}

#[test]
fn clients_that_do_not_read_give_their_turn_back() {
    // More than the buffers of a socket pair take.
    let running = start_with(hasty(), vec![b'x'; 64 << 20], loaded);
    let request = b"GET /metrics HTTP/1.1\r\nhost: localhost\r\n\r\n";
    let deaf: Vec<_> = (0..endpoints::SCRAPES)
        .map(|_| {
            let mut socket = connect(running.admin);
            socket.write_all(request).unwrap();
            // The answer has begun, so this one has its turn.
            socket.read_exact(&mut [0]).unwrap();
            socket
        })
        .collect();
    assert_eq!(get(running.admin, "/healthz").status, 200);
    assert_eq!(get(running.admin, "/status").status, 200);
    drop(deaf);
}

#[test]
fn a_header_has_a_bounded_size() {
    let running = start(loaded);
    let request = |filler: usize| {
        let head = "GET /healthz HTTP/1.1\r\nhost: localhost\r\nx: ";
        format!("{head}{}\r\n\r\n", "a".repeat(filler))
    };
    assert_eq!(send(running.health, &request(16_000)).status, 200);
    assert_eq!(send(running.health, &request(17_000)).status, 431);
    assert_eq!(send(running.health, &request(500_000)).status, 431);
}

#[test]
fn what_is_not_http_gets_400() {
    let running = start(loaded);
    assert_eq!(
        send(running.health, "\x16\x03\x01 hello\r\n\r\n").status,
        400
    );
    assert_eq!(send(running.health, "GET\r\n\r\n").status, 400);
    let leading = "\r\n\r\nGET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n";
    assert_eq!(send(running.health, leading).status, 200);
}

#[test]
fn more_connections_than_allowed_wait_for_their_turn() {
    let settings = Settings {
        connections: 1,
        ..hasty()
    };
    let running = start_with(settings, Vec::new(), loaded);
    let started = Instant::now();
    let silent = connect(running.health);
    assert_eq!(get(running.health, "/healthz").status, 200);
    // Not before the deadline of the silent one, which came first.
    assert!(started.elapsed() >= Duration::from_millis(250));
    drop(silent);
}

#[test]
fn an_address_in_use_is_an_error() {
    let running = start(loaded);
    let again = Listener::bind(Role::Admin, running.admin);
    assert_eq!(again.unwrap_err().kind(), ErrorKind::AddrInUse);
}

#[test]
fn dropping_the_server_closes_its_listeners() {
    let running = start(loaded);
    let address = running.admin;
    assert_eq!(get(address, "/healthz").status, 200);
    drop(running);
    assert!(TcpStream::connect(address).is_err());
}
