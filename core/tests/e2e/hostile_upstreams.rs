//! Upstreams that refuse, are silent, break off, dribble, or lie about their lengths; one test for each.
//!
//! What the client sees, how often the upstream got each request, and that nothing is left behind: no place in the
//! pool, no retry under way, no connection. A POST is never sent twice. Upstream and proxy are in network namespaces
//! of their own where the rights are there for that, else on loopback.

use std::fs;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustix::net::sockopt::set_socket_linger;

use crate::support::client::{Connection, Request, get, post, request};
use crate::support::launch::serving;
use crate::support::lock::{self, Turn};
use crate::support::netns::Namespace;
use crate::support::proxy::Proxy;
use crate::support::wait::{Gate, SOON, until};

/// An upstream that records the request lines it gets.
struct Hostile {
    address: SocketAddr,
    lines: Arc<Mutex<Vec<String>>>,
}

impl Hostile {
    /// `behaviour` is what it does with a connection once the head of a request has come, of which it also gets the
    /// number on the connection, from 0. `false`: the connection is over.
    fn start(
        ip: IpAddr,
        behaviour: impl Fn(&mut TcpStream, &str, usize) -> io::Result<bool> + Send + Sync + 'static,
    ) -> Self {
        let behaviour = Arc::new(behaviour);
        let listener = TcpListener::bind((ip, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let lines: Arc<Mutex<Vec<String>>> = Arc::default();
        let record = lines.clone();
        std::thread::spawn(move || {
            for mut stream in listener.incoming().map_while(Result::ok) {
                let (record, behaviour) = (record.clone(), behaviour.clone());
                let _ = stream.set_nodelay(true);
                std::thread::spawn(move || {
                    for nth in 0.. {
                        let Some(head) = read_head(&mut stream) else {
                            return;
                        };
                        let line = head.lines().next().unwrap_or_default().to_owned();
                        record.lock().unwrap().push(line);
                        if !behaviour(&mut stream, &head, nth).unwrap_or(false) {
                            return;
                        }
                    }
                });
            }
        });
        Self { address, lines }
    }

    /// How often it got a request with this line.
    fn copies(&self, method: &str, target: &str) -> usize {
        let line = format!("{method} {target} HTTP/1.1");
        self.lines
            .lock()
            .unwrap()
            .iter()
            .filter(|seen| **seen == line)
            .count()
    }
}

fn read_head(stream: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).ok()?;
        head.extend(byte);
    }
    String::from_utf8(head).ok()
}

/// Reads the body that a head announces.
fn read_body(stream: &mut TcpStream, head: &str) -> io::Result<()> {
    let length = head.to_lowercase();
    let length = length
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "));
    let length: usize = length.map_or(0, |length| length.trim().parse().unwrap());
    stream.read_exact(&mut vec![0; length])
}

/// Ends the connection with a reset instead of a close.
fn reset(stream: &TcpStream) -> io::Result<bool> {
    set_socket_linger(stream, Some(Duration::ZERO))?;
    Ok(false)
}

/// Waits until the proxy has ended the connection.
fn until_closed(stream: &mut TcpStream) -> io::Result<bool> {
    stream.set_read_timeout(Some(3 * SOON))?;
    let mut rest = [0; 4096];
    while stream.read(&mut rest)? > 0 {}
    Ok(false)
}

/// The proxy before a hostile upstream, and the room that it is in.
struct Room {
    proxy: Proxy,
    web: Hostile,
    // After the proxy, which is in it.
    _namespace: Option<Namespace>,
    _turn: Turn,
}

/// A proxy whose pool has this upstream, tries everything again once, and has bounds whose places are counted.
fn room(
    behaviour: impl Fn(&mut TcpStream, &str, usize) -> io::Result<bool> + Send + Sync + 'static,
    timeouts: &str,
) -> Room {
    let turn = lock::turn();
    let namespace = Namespace::create((20_000, 30_000)).ok();
    let ip = namespace
        .as_ref()
        .map_or(Ipv4Addr::LOCALHOST.into(), Namespace::outside);
    let web = Hostile::start(ip, behaviour);
    let proxy = start(namespace.as_ref(), web.address, timeouts);
    Room {
        proxy,
        web,
        _namespace: namespace,
        _turn: turn,
    }
}

fn start(namespace: Option<&Namespace>, web: SocketAddr, timeouts: &str) -> Proxy {
    let mut builder = serving(r#"route("/{*rest}").to("web");"#).settings(&format!(
        "[pools.web]\ntargets = [\"{web}\"]\n[pools.web.timeouts]\n{timeouts}\n\
         [pools.web.retries]\nattempts = 1\nbackoff = \"1ms\"\n\
         on = [\"connect\", \"reset\", \"timeout\", \"502\", \"503\", \"504\"]\n\
         [pools.web.limits]\nrequests = 10"
    ));
    if let Some(namespace) = namespace {
        builder = builder.at(namespace.inside()).through(namespace.prefix());
    }
    builder.start()
}

/// What comes of one request.
struct Expected {
    /// `None`: the connection breaks in the middle of the response.
    status: Option<u16>,
    /// How often the upstream gets it.
    copies: usize,
}

impl Room {
    fn expect(&self, request: &Request, line: (&str, &str), expected: Expected) {
        let (method, target) = line;
        let status = request.try_send(self.proxy.address()).ok();
        let status = status.map(|response| response.status);
        assert_eq!(status, expected.status, "{method} {target}");
        assert_eq!(
            self.web.copies(method, target),
            expected.copies,
            "copies of {method} {target}"
        );
    }

    /// A GET, a PUT and a POST; what is idempotent arrives `repeated` times, the POST once.
    fn expect_all(&self, status: Option<u16>, repeated: usize, reason: &str) {
        let again = || Expected {
            status,
            copies: repeated,
        };
        self.expect(&get("/get"), ("GET", "/get"), again());
        let put = request("PUT", "/put").body("body");
        self.expect(&put, ("PUT", "/put"), again());
        let once = Expected { status, copies: 1 };
        self.expect(&post("/post", "body"), ("POST", "/post"), once);
        self.expect_failures(reason, 3.0);
        self.expect_nothing_left();
    }

    fn expect_failures(&self, reason: &str, count: f64) {
        let labels = [("pool", "web"), ("reason", reason)];
        until(&format!("failures of {reason}"), SOON, || {
            self.proxy.metric("upstream_errors_total", &labels) == count
        });
        let all = self.proxy.metric("upstream_errors_total", &[]);
        assert_eq!(all, count, "failures for other reasons");
    }

    fn expect_nothing_left(&self) {
        self.expect_idle();
        until("no connection to be open", SOON, || self.connections() == 0);
    }

    fn expect_idle(&self) {
        until("everything to be given back", SOON, || {
            let pool = &self.proxy.status()["pools"][0];
            pool["places_taken"] == 0
                && pool["requests_waiting"] == 0
                && pool["retries_in_flight"] == 0
                && self.proxy.metric("requests_in_flight", &[]) == 0.0
                && self.proxy.metric("upstream_requests_in_flight", &[]) == 0.0
        });
    }

    /// Connections of the proxy to the upstream that it has not closed.
    fn connections(&self) -> usize {
        connections_to(self.proxy.pid(), self.web.address)
    }
}

/// Open connections to `address` in the network namespace of a process; `rem_address` is `IP:PORT` in hex, the IP in
/// the machine's byte order, and the states are those of ESTABLISHED and CLOSE_WAIT (proc_pid_net(5)).
fn connections_to(pid: u32, address: SocketAddr) -> usize {
    let IpAddr::V4(ip) = address.ip() else {
        panic!("{address} is not IPv4")
    };
    let remote = format!(
        "{:08X}:{:04X}",
        u32::from_ne_bytes(ip.octets()),
        address.port()
    );
    let table = fs::read_to_string(format!("/proc/{pid}/net/tcp")).unwrap();
    let rows = table
        .lines()
        .map(|row| row.split_whitespace().collect::<Vec<_>>());
    rows.filter(|row| row.len() > 3 && row[2] == remote && matches!(row[3], "01" | "08"))
        .count()
}

const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

#[test]
fn nobody_listens() {
    let room = room(|_, _, _| Ok(false), "");
    let closed = crate::support::ports::free([127, 0, 0, 1].into(), 1)[0];
    let proxy = start(None, closed, "");
    for request in [get("/get"), post("/post", "body")] {
        let answer = proxy.send(&request);
        assert_eq!(
            (answer.status, answer.text().as_str()),
            (502, "502 the upstream can't be reached\n")
        );
    }
    // Nobody has got it, so even a POST is tried again.
    assert_eq!(proxy.metric("upstream_connect_failures_total", &[]), 4.0);
    let labels = [("pool", "web"), ("reason", "connect")];
    assert_eq!(proxy.metric("upstream_errors_total", &labels), 2.0);
    room.expect_nothing_left();
}

#[test]
fn it_never_answers() {
    let room = room(
        |stream, _, _| until_closed(stream),
        "first_byte = \"300ms\"",
    );
    room.expect_all(Some(504), 2, "first_byte_timeout");
}

#[test]
fn it_closes_without_a_word() {
    let room = room(
        |stream, head, _| read_body(stream, head).map(|()| false),
        "",
    );
    room.expect_all(Some(502), 2, "reset");
}

#[test]
fn it_resets_in_the_middle_of_the_header() {
    let room = room(
        |stream, head, _| {
            read_body(stream, head)?;
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Le")?;
            reset(stream)
        },
        "",
    );
    room.expect_all(Some(502), 2, "reset");
}

#[test]
fn it_resets_in_the_middle_of_the_body() {
    let read = [Gate::new(), Gate::new()];
    let gates = read.clone();
    let room = room(
        move |stream: &mut TcpStream, request: &str, _| {
            read_body(stream, request)?;
            let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
            stream.write_all(format!("{head}4\r\nhalf\r\n").as_bytes())?;
            // What has not been read is lost with a reset.
            gates[usize::from(request.starts_with("POST"))].pass(3 * SOON);
            reset(stream)
        },
        "",
    );
    for (request, gate) in [get("/get"), post("/post", "body")].iter().zip(read) {
        let mut connection = Connection::open(room.proxy.address()).unwrap();
        connection.write(&request.bytes()).unwrap();
        connection.read_until(b"half\r\n");
        gate.open();
        assert!(connection.closed_within(SOON), "the rest is not made up");
    }
    for (method, target) in [("GET", "/get"), ("POST", "/post")] {
        assert_eq!(room.web.copies(method, target), 1);
    }
    room.expect_failures("broken", 2.0);
    room.expect_nothing_left();
}

#[test]
fn it_announces_more_than_it_sends() {
    let room = room(
        |stream, head, _| {
            read_body(stream, head)?;
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")?;
            Ok(false)
        },
        "",
    );
    room.expect_all(None, 1, "broken");
}

/// What is too much belongs to no response, least of all to the next one of the connection.
#[test]
fn it_sends_more_than_it_announces() {
    let room = room(
        |stream, head, _| {
            read_body(stream, head)?;
            let more = [OK, b"HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nINJECTED"].concat();
            stream.write_all(&more)?;
            Ok(true)
        },
        "",
    );
    let mut connection = Connection::open(room.proxy.address()).unwrap();
    for number in 0..10 {
        let answer = connection.send(&get(&format!("/{number}"))).unwrap();
        assert_eq!((answer.status, answer.text().as_str()), (200, "ok"));
        assert_eq!(room.web.copies("GET", &format!("/{number}")), 1);
    }
    drop(connection);
    room.expect_nothing_left();
}

#[test]
fn it_speaks_another_protocol() {
    let room = room(
        |stream, head, _| {
            read_body(stream, head)?;
            stream.write_all(b"220 mail.example.com ESMTP\r\n")?;
            until_closed(stream)
        },
        "",
    );
    // Whoever has answered has got it: that is no reset.
    room.expect_all(Some(502), 1, "broken");
}

#[test]
fn its_header_never_ends() {
    let room = room(
        |stream, head, _| {
            read_body(stream, head)?;
            stream.write_all(b"HTTP/1.1 200 OK\r\nX-Slow: ")?;
            loop {
                stream.write_all(b"x")?;
                std::thread::sleep(Duration::from_millis(20));
            }
        },
        "first_byte = \"500ms\"",
    );
    room.expect_all(Some(504), 2, "first_byte_timeout");
}

#[test]
fn its_body_never_ends() {
    let room = room(
        |stream, head, _| {
            read_body(stream, head)?;
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")?;
            loop {
                stream.write_all(b"x")?;
                std::thread::sleep(Duration::from_millis(20));
            }
        },
        "request = \"2s\"",
    );
    room.expect_all(None, 1, "request_timeout");
}

/// An answer to an upload that it does not want: the client gets it, and the rest goes nowhere.
#[test]
fn it_answers_before_it_has_the_body() {
    let room = room(
        |stream, head, _| {
            stream.write_all(b"HTTP/1.1 413 Too Large\r\nContent-Length: 5\r\n\r\nearly")?;
            // It takes the whole upload in the end, so the connection may be kept.
            read_body(stream, head)?;
            Ok(true)
        },
        "",
    );
    for method in ["POST", "PUT"] {
        let body = vec![b'x'; 4 * 1024 * 1024];
        let mut connection = Connection::open(room.proxy.address()).unwrap();
        // The proxy may answer and close before it has read everything.
        let _ = connection.write(&request(method, "/large").body(body).bytes());
        let answer = connection.read_response(method).unwrap();
        assert_eq!((answer.status, answer.text().as_str()), (413, "early"));
        assert_eq!(room.web.copies(method, "/large"), 1);
    }
    room.expect_idle();
}

/// It closes each connection after some requests, just when the proxy takes it for kept.
#[test]
fn it_closes_after_some_requests() {
    let room = room(
        |stream, head, nth| {
            read_body(stream, head)?;
            stream.write_all(OK)?;
            Ok(nth < 2)
        },
        "",
    );
    let mut connection = Connection::open(room.proxy.address()).unwrap();
    for number in 0..60 {
        let status = connection
            .send(&get(&format!("/get/{number}")))
            .unwrap()
            .status;
        assert_eq!(status, 200, "{number}");
    }
    for number in 0..30 {
        let target = format!("/post/{number}");
        // One that meets a closed connection can't be sent again.
        let status = room.proxy.send(&post(&target, "once")).status;
        assert!(matches!(status, 200 | 502), "{status}");
        let copies = room.web.copies("POST", &target);
        assert!(copies <= 1, "{target} arrived {copies} times");
    }
    drop(connection);
    room.expect_idle();
}

/// The first request of a connection is answered, the second one never: whether the upstream has acted on it can't
/// be known.
#[test]
fn it_hangs_up_on_kept_connections() {
    let room = room(
        |stream, head, nth| {
            read_body(stream, head)?;
            if nth == 0 {
                stream.write_all(OK)?;
            }
            Ok(nth == 0)
        },
        "",
    );
    for number in 0..20 {
        for again in 0..2 {
            let target = format!("/get/{number}/{again}");
            assert_eq!(room.proxy.get(&target).status, 200);
        }
        let target = format!("/post/{number}");
        let status = room.proxy.send(&post(&target, "once")).status;
        assert!(matches!(status, 200 | 502), "{status}");
        assert_eq!(room.web.copies("POST", &target), 1);
    }
    let stale = [("pool", "web"), ("cause", "stale")];
    assert!(room.proxy.metric("upstream_retries_total", &stale) > 0.0);
    room.expect_idle();
}
