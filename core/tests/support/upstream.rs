//! A scripted HTTP/1.1 upstream: records the bytes of each request and answers by a closure.

use std::io::{self, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use super::wait;
use super::wire::read_request;

/// One request as it arrived.
#[derive(Clone, Debug)]
pub struct Seen {
    /// The request line and the headers, exactly as received, with the blank line.
    pub head: Vec<u8>,
    /// The body, unframed.
    pub body: Vec<u8>,
    /// Which connection it came on, from 0.
    pub connection: usize,
    /// Which request of its connection it is, from 0.
    pub nth: usize,
}

impl Seen {
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.head).into_owned()
    }

    fn request_line_word(&self, index: usize) -> String {
        let text = self.text();
        let line = text.lines().next().unwrap_or_default();
        line.split(' ').nth(index).unwrap_or_default().to_owned()
    }

    pub fn method(&self) -> String {
        self.request_line_word(0)
    }

    /// The request target as sent: path and query.
    pub fn target(&self) -> String {
        self.request_line_word(1)
    }

    /// The values of the headers called `name`, in order.
    pub fn headers(&self, name: &str) -> Vec<String> {
        self.text()
            .lines()
            .skip(1)
            .filter_map(|line| line.split_once(':'))
            .filter(|(n, _)| n.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.trim().to_owned())
            .collect()
    }

    /// The value of the first header called `name`.
    pub fn header(&self, name: &str) -> Option<String> {
        self.headers(name).into_iter().next()
    }
}

/// Writes a response piece by piece.
pub type Writer = dyn FnOnce(&mut TcpStream) -> io::Result<()> + Send;

/// What the upstream does with a request.
pub enum Action {
    /// Sends these bytes; the connection stays open.
    Bytes(Vec<u8>),
    /// Sends these bytes and closes the connection, without having announced it.
    BytesThenClose(Vec<u8>),
    /// Closes the connection without a byte.
    Hangup,
    /// Writes for itself; the connection is closed afterwards.
    Write(Box<Writer>),
}

/// A `200` with a body.
pub fn ok(body: impl AsRef<[u8]>) -> Action {
    answer(200, &[], body)
}

/// A response framed by Content-Length.
pub fn answer(status: u16, headers: &[(&str, &str)], body: impl AsRef<[u8]>) -> Action {
    Action::Bytes(response(status, headers, body))
}

/// The bytes of [`answer`].
pub fn response(status: u16, headers: &[(&str, &str)], body: impl AsRef<[u8]>) -> Vec<u8> {
    let body = body.as_ref();
    let mut text = format!("HTTP/1.1 {status} Answer\r\n");
    for (name, value) in headers {
        text += &format!("{name}: {value}\r\n");
    }
    text += &format!("Content-Length: {}\r\n\r\n", body.len());
    [text.as_bytes(), body].concat()
}

type Handler = dyn Fn(&Seen) -> Action + Send + Sync;

struct Shared {
    handler: Box<Handler>,
    requests: Mutex<Vec<Seen>>,
    accepted: AtomicUsize,
    serving: AtomicUsize,
    stopping: AtomicBool,
    open: Mutex<Vec<TcpStream>>,
}

/// A running upstream; it stops when dropped.
pub struct Upstream {
    address: SocketAddr,
    shared: Arc<Shared>,
    acceptor: Option<JoinHandle<()>>,
}

impl Upstream {
    /// On a port of 127.0.0.1 from the system.
    pub fn start(handler: impl Fn(&Seen) -> Action + Send + Sync + 'static) -> Self {
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        Self::start_at(any, handler).unwrap()
    }

    /// On a given address.
    pub fn start_at(
        address: SocketAddr,
        handler: impl Fn(&Seen) -> Action + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            handler: Box::new(handler),
            requests: Mutex::default(),
            accepted: AtomicUsize::new(0),
            serving: AtomicUsize::new(0),
            stopping: AtomicBool::new(false),
            open: Mutex::default(),
        });
        let acceptor = std::thread::spawn({
            let shared = Arc::clone(&shared);
            move || accept(&listener, &shared)
        });
        Ok(Self {
            address,
            shared,
            acceptor: Some(acceptor),
        })
    }

    /// An upstream that answers everything with `200` and this body.
    pub fn fixed(body: &'static str) -> Self {
        Self::start(move |_| ok(body))
    }

    /// The same port on 127.0.0.1 and on 127.0.0.2: two machines behind one name.
    pub fn pair(first: &'static str, second: &'static str) -> (Self, Self) {
        loop {
            let one = Self::fixed(first);
            let other = SocketAddr::from((Ipv4Addr::new(127, 0, 0, 2), one.address.port()));
            if let Ok(two) = Self::start_at(other, move |_| ok(second)) {
                return (one, two);
            }
        }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// All requests so far.
    pub fn requests(&self) -> Vec<Seen> {
        self.shared.requests.lock().unwrap().clone()
    }

    /// All requests so far, which are forgotten then.
    pub fn take_requests(&self) -> Vec<Seen> {
        std::mem::take(&mut self.shared.requests.lock().unwrap())
    }

    /// The only request there was.
    pub fn only_request(&self) -> Seen {
        let requests = self.requests();
        assert_eq!(requests.len(), 1, "requests at the upstream: {requests:?}");
        requests[0].clone()
    }

    /// The last request there was.
    pub fn last_request(&self) -> Seen {
        self.requests().pop().expect("a request at the upstream")
    }

    /// How many requests so far.
    pub fn hits(&self) -> usize {
        self.shared.requests.lock().unwrap().len()
    }

    /// How many connections were accepted so far.
    pub fn connections(&self) -> usize {
        self.shared.accepted.load(Ordering::SeqCst)
    }

    /// How many connections are open now, as far as this side knows.
    pub fn open_connections(&self) -> usize {
        self.shared.serving.load(Ordering::SeqCst)
    }

    /// Waits until `hits` requests have arrived.
    pub fn wait_hits(&self, hits: usize, limit: Duration) {
        wait::until("requests at the upstream", limit, || self.hits() >= hits);
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.shared.stopping.store(true, Ordering::SeqCst);
        // Wakes the acceptor, which then sees the flag.
        let _ = TcpStream::connect(self.address);
        if let Some(acceptor) = self.acceptor.take() {
            let _ = acceptor.join();
        }
        for stream in self.shared.open.lock().unwrap().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    for stream in listener.incoming().map_while(Result::ok) {
        if shared.stopping.load(Ordering::SeqCst) {
            return;
        }
        let connection = shared.accepted.fetch_add(1, Ordering::SeqCst);
        let _ = stream.set_nodelay(true);
        if let Ok(copy) = stream.try_clone() {
            shared.open.lock().unwrap().push(copy);
        }
        let shared = Arc::clone(shared);
        shared.serving.fetch_add(1, Ordering::SeqCst);
        std::thread::spawn(move || {
            let mut stream = stream;
            // A broken connection is the other side's doing; what arrived is on record.
            let _ = serve(&mut stream, connection, &shared);
            let _ = stream.shutdown(Shutdown::Both);
            shared.serving.fetch_sub(1, Ordering::SeqCst);
        });
    }
}

fn serve(stream: &mut TcpStream, connection: usize, shared: &Shared) -> io::Result<()> {
    let mut pending = Vec::new();
    for nth in 0.. {
        let Some((head, body)) = read_request(stream, &mut pending)? else {
            return Ok(());
        };
        let seen = Seen {
            head,
            body,
            connection,
            nth,
        };
        shared.requests.lock().unwrap().push(seen.clone());
        match (shared.handler)(&seen) {
            Action::Bytes(bytes) => stream.write_all(&bytes)?,
            Action::BytesThenClose(bytes) => return stream.write_all(&bytes),
            Action::Hangup => return Ok(()),
            Action::Write(write) => return write(stream),
        }
    }
    Ok(())
}
