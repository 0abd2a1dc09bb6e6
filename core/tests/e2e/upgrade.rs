//! `--upgrade` and SIGQUIT: another process takes over, and nobody notices.

use std::io::{Read as _, Write as _};
use std::path::PathBuf;
use std::time::Duration;

use rustix::net::SocketType;
use socket2::{Domain, SockAddr, Socket, Type};
use tempfile::TempDir;

use crate::support::client::get;
use crate::support::command::{Folder, edgewright};
use crate::support::launch::{Builder, serving};
use crate::support::load::{Both, Until};
use crate::support::proxy::Proxy;
use crate::support::upstream::{Upstream, ok};
use crate::support::wait::{AT_ONCE, Gate, SOON, until};
use crate::support::websocket;

const ROUTES: &str = r#"route("/{*rest}").to("web");"#;

struct Room(TempDir);

impl Room {
    fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    fn socket(&self) -> PathBuf {
        self.0.path().join("upgrade.sock")
    }

    fn serving(&self, web: &Upstream, server: &str) -> Builder {
        let socket = self.socket().display().to_string();
        serving(ROUTES)
            .settings(&format!(
                "[server]\nupgrade_socket = \"{socket}\"\n{server}"
            ))
            .pool("web", web.address())
    }
}

/// A process that has loaded everything and waits for the sockets of `old`.
fn successor(old: &Proxy) -> Proxy {
    let new = old.beside(&["--upgrade"]);
    new.log.wait("upgrade: ready, waiting", 2 * SOON);
    new
}

fn change_settings(proxy: &Proxy, from: &str, to: &str) {
    let settings = proxy.settings();
    assert!(settings.contains(from));
    std::fs::write(proxy.file("edgewright.toml"), settings.replace(from, to)).unwrap();
}

fn handed_over(old: &mut Proxy, new: &Proxy) {
    old.signal("QUIT");
    new.log.wait("listening on", SOON);
    old.log.wait("another process has taken over", SOON);
}

/// From two workers to one and on to three: sockets that are left over belong to somebody, and missing ones are made.
#[test]
fn no_request_fails_while_processes_take_over_from_each_other() {
    let soak = std::env::var_os("EDGEWRIGHT_SOAK").is_some_and(|value| value == "1");
    let web = Upstream::fixed("ok");
    let room = Room::new();
    let mut old = room.serving(&web, "threads = 2").start();
    let address = old.address();
    let forever = Until::Elapsed(Duration::from_secs(600));
    let load = Both::start(address, forever);
    web.wait_hits(200, SOON);
    for threads in [1, 3].into_iter().cycle().take(if soak { 20 } else { 2 }) {
        let wanted = format!("threads = {threads}");
        change_settings(&old, "threads = 2", &wanted);
        let new = successor(&old);
        handed_over(&mut old, &new);
        let hits = web.hits();
        web.wait_hits(hits + 200, SOON);
        let (status, _) = old.wait_exit(AT_ONCE);
        assert_eq!(status.code(), Some(0), "{}", old.log.text());
        old = new;
        until("it to be ready", SOON, || {
            old.ask_admin("/readyz").status == 200
        });
        assert_eq!(old.metric("threads", &[]), f64::from(threads));
        // A hundred connections, so that each socket gets some.
        for _ in 0..100 {
            assert_eq!(old.text("/x"), "ok");
        }
    }
    load.stop();
    load.finish_all_ok();
    assert!(!room.socket().exists());
}

#[test]
fn what_is_under_way_ends_where_it_began_and_admin_changes_hands() {
    let gate = Gate::new();
    let held = gate.clone();
    let web = Upstream::start(move |seen| {
        if seen.target() == "/slow" {
            held.pass(SOON);
        }
        ok("done")
    });
    let room = Room::new();
    let mut old = room.serving(&web, "").start();
    let address = old.address();
    let slow = std::thread::spawn(move || get("/slow").try_send(address));
    web.wait_hits(1, SOON);
    let new = successor(&old);
    let status = |proxy: &Proxy| proxy.status()["requests_in_flight"].clone();
    assert_eq!(status(&old), 1, "still the old one's");
    handed_over(&mut old, &new);
    until("the new one to answer", SOON, || status(&new) == 0);
    assert_eq!(new.ask_health("/readyz").status, 200);
    assert_eq!(new.text("/x"), "done");
    assert!(old.running(), "it ended with a request in flight");
    gate.open();
    assert_eq!(slow.join().unwrap().expect("it was cut").text(), "done");
    assert_eq!(old.wait_exit(AT_ONCE).0.code(), Some(0));
    assert_eq!(new.text("/x"), "done");
}

#[test]
fn a_successor_that_dies_changes_nothing() {
    let web = Upstream::fixed("ok");
    let room = Room::new();
    let mut old = room.serving(&web, "").start();
    // Between the sockets and their use: it may not listen on what its files say now.
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let more = format!(
        "[[listeners]]\naddress = \"{}\"\n[admin]",
        taken.local_addr().unwrap()
    );
    change_settings(&old, "[admin]", &more);
    let mut new = successor(&old);
    old.signal("QUIT");
    let (status, _) = new.wait_exit(2 * AT_ONCE);
    assert_eq!(status.code(), Some(1), "{}", new.log.text());
    assert_eq!(new.log.count("can't listen on"), 1, "{}", new.log.text());
    old.log.wait("upgrade failed, this process goes on", SOON);
    assert_eq!(old.text("/x"), "ok");
    assert_eq!(old.ask_admin("/readyz").status, 200);
    // The next one may do better.
    std::fs::write(old.file("edgewright.toml"), old.settings()).unwrap();
    let new = successor(&old);
    handed_over(&mut old, &new);
    assert_eq!(old.wait_exit(AT_ONCE).0.code(), Some(0));
    assert_eq!(new.text("/x"), "ok");
}

/// One of the kind that both sides meet at.
fn unix_socket() -> Socket {
    let kind = SocketType::SEQPACKET.as_raw().cast_signed();
    Socket::new(Domain::UNIX, Type::from(kind), None).unwrap()
}

/// A signal that comes while one side waits for the other is no failure. The successor is played by the test, as a real one
/// is too fast.
#[test]
fn a_signal_does_not_break_the_hand_over() {
    let web = Upstream::fixed("ok");
    let room = Room::new();
    let mut old = room.serving(&web, "").start();
    let waiting = unix_socket();
    let place = SockAddr::unix(room.socket()).unwrap();
    waiting.bind(&place).unwrap();
    waiting.listen(1).unwrap();
    old.signal("QUIT");
    let (mut connection, _) = waiting.accept().unwrap();
    connection.set_read_timeout(Some(SOON)).unwrap();
    let mut message = [0; 8192];
    while {
        let length = connection.read(&mut message).unwrap();
        assert!(length > 0, "{}", old.log.text());
        &message[..length] != b"end"
    } {}
    // It waits for the answer now, and is interrupted more than once.
    for reloads in 1..=3 {
        old.signal("HUP");
        until("the signal to be heard", SOON, || {
            old.log.count("reload: nothing changed") == reloads
        });
    }
    connection.write_all(b"ready").unwrap();
    let length = connection.read(&mut message).unwrap();
    assert_eq!(&message[..length], b"go", "{}", old.log.text());
    assert_eq!(old.wait_exit(AT_ONCE).0.code(), Some(0));
}

/// Who has only connected doesn't keep others from handing over.
#[test]
fn a_silent_client_does_not_block_the_hand_over() {
    let web = Upstream::fixed("ok");
    let room = Room::new();
    let mut old = room.serving(&web, "").start();
    let new = successor(&old);
    let silent = unix_socket();
    silent
        .connect(&SockAddr::unix(room.socket()).unwrap())
        .unwrap();
    handed_over(&mut old, &new);
    assert!(new.log.text().contains("upgrade: not handed over"));
    assert_eq!(old.wait_exit(AT_ONCE).0.code(), Some(0));
    assert_eq!(new.text("/x"), "ok");
}

#[test]
fn without_a_successor_sigquit_ends_the_process() {
    let web = Upstream::fixed("ok");
    let room = Room::new();
    let mut proxy = room.serving(&web, "").start();
    proxy.signal("QUIT");
    assert_eq!(proxy.wait_exit(AT_ONCE).0.code(), Some(0));
    assert_eq!(proxy.log.count("upgrade: no process waits at"), 1);

    let mut proxy = serving(ROUTES).pool("web", web.address()).start();
    proxy.signal("QUIT");
    assert_eq!(proxy.wait_exit(AT_ONCE).0.code(), Some(0));
    assert_eq!(proxy.log.count("drained"), 1);
}

#[test]
fn a_successor_can_be_called_off() {
    let web = Upstream::fixed("ok");
    let room = Room::new();
    let old = room.serving(&web, "").start();
    let mut new = successor(&old);
    new.signal("TERM");
    assert_eq!(new.wait_exit(AT_ONCE).0.code(), Some(0));
    assert!(!room.socket().exists());
    assert_eq!(old.text("/x"), "ok");
}

#[test]
fn a_websocket_and_a_kept_connection_live_through_it() {
    let web = Upstream::start(|seen| {
        if seen.target() != "/socket" {
            return ok("ok");
        }
        websocket::echo_action()
    });
    let room = Room::new();
    let mut old = room.serving(&web, "").start();
    let mut socket = websocket::open(old.address());
    let new = successor(&old);
    handed_over(&mut old, &new);
    for _ in 0..3 {
        websocket::echoes(&mut socket, b"hello");
        assert_eq!(new.text("/x"), "ok");
    }
    assert!(old.running());
    drop(socket);
    assert_eq!(old.wait_exit(AT_ONCE).0.code(), Some(0));
}

#[test]
fn upgrade_without_a_place_to_meet_is_wrong_use() {
    let folder = Folder::with(&[("routes.rhai", "route(\"/\").respond(200);")]);
    let ended = edgewright([
        "run".as_ref(),
        "--upgrade".as_ref(),
        folder.path().as_os_str(),
    ]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.text().contains("upgrade_socket"), "{ended:?}");
}
