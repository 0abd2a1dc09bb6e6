//! A scripted target: a small HTTP/1.1 server in this process that can be killed, slowed and healed.
//!
//! A thread for each connection, because a proxy keeps a few dozen at most. To a proxy a killed target
//! looks like a process that died: connections are refused, and those that stood are reset.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use rustix::net::{self, AddressFamily, SocketFlags, SocketType, sockopt};

use crate::load;

/// Where health checks ask; they count apart.
pub(super) const HEALTH_PATH: &str = "/healthz";
/// Far above any request here.
const MAX_REQUEST: usize = 16 * 1024;
const MAX_HEADERS: usize = 32;
const STACK: usize = 128 * 1024;
/// How long the acceptor waits after an error that is not the end, such as too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);

/// The server. Dropped, it is killed.
pub(crate) struct Target {
    shared: Arc<Shared>,
    address: SocketAddr,
    /// Bound and never listening: while the target is dead, nobody else gets its port. It would be an ephemeral port, which a
    /// proxy that connects to it could even be given itself, and so be connected to itself.
    _port: OwnedFd,
    acceptor: Option<(Arc<TcpListener>, JoinHandle<()>)>,
}

struct Shared {
    state: Mutex<State>,
    killed: Condvar,
    answer: Vec<u8>,
    last_answer: Vec<u8>,
    requests: AtomicU64,
    checks: AtomicU64,
}

struct State {
    /// Counts the lives; a connection of an earlier one must not answer any more.
    life: u64,
    delay: Duration,
    connections: Vec<Weak<TcpStream>>,
}

impl Target {
    /// Starts one that answers each request after `delay`.
    pub(crate) fn start(delay: Duration) -> Result<Self> {
        let (port, address) = reserve_port().context("cannot get a free port for a target")?;
        let mut target = Self {
            shared: Arc::new(Shared {
                state: Mutex::new(State {
                    life: 0,
                    delay,
                    connections: Vec::new(),
                }),
                killed: Condvar::new(),
                answer: answer("keep-alive"),
                last_answer: answer("close"),
                requests: AtomicU64::new(0),
                checks: AtomicU64::new(0),
            }),
            address,
            _port: port,
            acceptor: None,
        };
        target.revive()?;
        Ok(target)
    }

    /// Where it listens, in every life.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Requests that it got, without health checks, whether or not it answered them.
    pub(super) fn requests(&self) -> u64 {
        self.shared.requests.load(Ordering::Relaxed)
    }

    /// Health checks that it got.
    pub(super) fn checks(&self) -> u64 {
        self.shared.checks.load(Ordering::Relaxed)
    }

    /// How long each answer takes from now on.
    pub(super) fn set_delay(&self, delay: Duration) {
        self.shared.lock().delay = delay;
    }

    /// Closes the listener and resets every connection, also one that waits for its answer.
    pub(super) fn kill(&mut self) {
        let Some((listener, acceptor)) = self.acceptor.take() else {
            return;
        };
        let connections = {
            let mut state = self.shared.lock();
            state.life += 1;
            std::mem::take(&mut state.connections)
        };
        self.shared.killed.notify_all();
        // Ends a waiting `accept` at once; on Linux the socket stops listening with it.
        let _ = net::shutdown(&*listener, net::Shutdown::Both);
        let _ = acceptor.join();
        for stream in connections.iter().filter_map(Weak::upgrade) {
            reset_when_closed(&stream);
            // Wakes the thread that reads from it, and sends nothing. That thread then drops it.
            let _ = stream.shutdown(Shutdown::Read);
        }
    }

    /// Listens again, at the same address.
    pub(super) fn revive(&mut self) -> Result<()> {
        ensure!(
            self.acceptor.is_none(),
            "a target that lives can't be revived"
        );
        let listener = TcpListener::bind(self.address)
            .with_context(|| format!("a target cannot listen at {}", self.address))?;
        let listener = Arc::new(listener);
        let life = self.shared.lock().life;
        let thread = thread::Builder::new()
            .name("target".to_owned())
            .stack_size(STACK)
            .spawn({
                let (shared, listener) = (Arc::clone(&self.shared), Arc::clone(&listener));
                move || accept(&shared, &listener, life)
            })
            .context("cannot start a target's thread")?;
        self.acceptor = Some((listener, thread));
        Ok(())
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        self.kill();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing panics with it held, and half a change would be no harm.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits as long as an answer takes; false when the target was killed meanwhile.
    fn work(&self, life: u64) -> bool {
        let state = self.lock();
        let delay = state.delay;
        let (state, _) = self
            .killed
            .wait_timeout_while(state, delay, |state| state.life == life)
            .unwrap_or_else(PoisonError::into_inner);
        state.life == life
    }
}

fn reserve_port() -> Result<(OwnedFd, SocketAddr)> {
    let socket = net::socket_with(
        AddressFamily::INET,
        SocketType::STREAM,
        SocketFlags::CLOEXEC,
        None,
    )?;
    // Both sockets must have it, or the listener can't be bound beside this one.
    sockopt::set_socket_reuseaddr(&socket, true)?;
    net::bind(&socket, &SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
    let address = SocketAddr::try_from(net::getsockname(&socket)?)?;
    Ok((socket, address))
}

fn answer(connection: &str) -> Vec<u8> {
    let body = load::body();
    format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {}\r\nConnection: {connection}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// Makes the kernel send a reset when the stream is closed, and no orderly end.
fn reset_when_closed(stream: &TcpStream) {
    // Fails only for what is no socket.
    let _ = sockopt::set_socket_linger(stream, Some(Duration::ZERO));
}

fn accept(shared: &Arc<Shared>, listener: &TcpListener, life: u64) {
    loop {
        let accepted = listener.accept();
        let mut state = shared.lock();
        let alive = state.life == life;
        match accepted {
            Ok((stream, _)) if alive => {
                let stream = Arc::new(stream);
                state.connections.retain(|one| one.strong_count() > 0);
                state.connections.push(Arc::downgrade(&stream));
                drop(state);
                let shared = Arc::clone(shared);
                // Without a thread the connection is closed, and the proxy sees that.
                let _ = thread::Builder::new()
                    .name("connection".to_owned())
                    .stack_size(STACK)
                    .spawn(move || serve(&shared, &stream, life));
            }
            Ok((stream, _)) => reset_when_closed(&stream),
            Err(_) if alive => {
                drop(state);
                thread::sleep(ACCEPT_PAUSE);
            }
            Err(_) => {}
        }
        if !alive {
            return;
        }
    }
}

/// Answers the requests of one connection, one after the other.
fn serve(shared: &Shared, mut stream: &TcpStream, life: u64) {
    if stream.set_nodelay(true).is_err() {
        return;
    }
    let mut buffer = Vec::with_capacity(1024);
    loop {
        let mut chunk = [0; 1024];
        let request = loop {
            match parse(&buffer) {
                Some(Ok(request)) => break request,
                Some(Err(())) => return,
                None => {}
            }
            match stream.read(&mut chunk) {
                Ok(count) if count > 0 && buffer.len() + count <= MAX_REQUEST => {
                    buffer.extend_from_slice(&chunk[..count]);
                }
                _ => return,
            }
        };
        buffer.drain(..request.length);
        let counter = if request.is_check {
            &shared.checks
        } else {
            &shared.requests
        };
        counter.fetch_add(1, Ordering::Relaxed);
        if !shared.work(life) {
            reset_when_closed(stream);
            return;
        }
        let answer = if request.is_last {
            &shared.last_answer
        } else {
            &shared.answer
        };
        if stream.write_all(answer).is_err() || request.is_last {
            return;
        }
    }
}

struct Request {
    length: usize,
    is_check: bool,
    is_last: bool,
}

/// `None` while the header isn't complete. No request here has a body.
fn parse(bytes: &[u8]) -> Option<Result<Request, ()>> {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    let length = match request.parse(bytes) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) => return None,
        Err(_) => return Some(Err(())),
    };
    let closes = request.headers.iter().any(|header| {
        header.name.eq_ignore_ascii_case("connection")
            && header.value.eq_ignore_ascii_case(b"close")
    });
    Some(Ok(Request {
        length,
        is_check: request.path == Some(HEALTH_PATH),
        is_last: closes || request.version == Some(0),
    }))
}

#[cfg(test)]
#[path = "target_tests.rs"]
mod tests;
