//! Many keep-alive connections that each send one request after the other.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use super::client;

/// No request of a load may take longer.
const REQUEST_LIMIT: Duration = Duration::from_secs(30);

/// When a load ends.
#[derive(Clone, Copy)]
pub enum Until {
    /// So many requests were answered.
    Requests(usize),
    /// So much time has passed.
    Elapsed(Duration),
    /// Each connection was closed by the other side, which has said so with an answer. None is made anew.
    LastAnswer,
}

/// What came back.
#[derive(Default, Debug)]
pub struct Report {
    /// Responses by status.
    pub statuses: BTreeMap<u16, u64>,
    /// Requests that got no whole response: the first few reasons.
    pub errors: Vec<String>,
    /// Their number.
    pub failed: u64,
}

impl Report {
    pub fn answered(&self) -> u64 {
        self.statuses.values().sum()
    }

    /// Panics unless there were responses and all were `200`.
    pub fn assert_all_ok(&self) {
        assert!(
            self.failed == 0 && self.answered() > 0 && self.statuses.keys().eq([&200]),
            "not all requests were answered with 200: {self:?}"
        );
    }
}

/// A load that runs in a thread of its own.
pub struct Load(JoinHandle<Report>, Arc<AtomicBool>);

impl Load {
    /// Starts `connections` connections that send `GET target`.
    pub fn start(to: SocketAddr, target: &str, connections: usize, until: Until) -> Self {
        Self::of(client::get(target).bytes(), to, connections, until)
    }

    /// The same, but each request has a connection of its own.
    pub fn on_new_connections(
        to: SocketAddr,
        target: &str,
        connections: usize,
        until: Until,
    ) -> Self {
        let request = client::get(target).header("Connection", "close");
        Self::of(request.bytes(), to, connections, until)
    }

    fn of(request: Vec<u8>, to: SocketAddr, connections: usize, until: Until) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap()
                .block_on(run(to, request, connections, until, flag))
        });
        Self(thread, stop)
    }

    /// Ends it early: no further requests.
    pub fn stop(&self) {
        self.1.store(true, Ordering::SeqCst);
    }

    pub fn finish(self) -> Report {
        self.0.join().unwrap()
    }
}

/// Two loads at once: one on connections that are kept, one on a new one for each request.
pub struct Both {
    kept: Load,
    fresh: Load,
}

impl Both {
    /// Starts eight connections of each.
    pub fn start(to: SocketAddr, until: Until) -> Self {
        Self {
            kept: Load::start(to, "/kept", 8, until),
            fresh: Load::on_new_connections(to, "/fresh", 8, until),
        }
    }

    /// Ends both early: no further requests.
    pub fn stop(&self) {
        self.kept.stop();
        self.fresh.stop();
    }

    /// Panics unless all were answered with 200.
    pub fn finish_all_ok(self) {
        self.kept.finish().assert_all_ok();
        self.fresh.finish().assert_all_ok();
    }
}

/// [`Load::start`] and [`Load::finish`].
pub fn load(to: SocketAddr, target: &str, connections: usize, until: Until) -> Report {
    Load::start(to, target, connections, until).finish()
}

async fn run(
    to: SocketAddr,
    request: Vec<u8>,
    connections: usize,
    until: Until,
    stop: Arc<AtomicBool>,
) -> Report {
    let request: Arc<[u8]> = request.into();
    let report = Arc::new(Mutex::new(Report::default()));
    let sent = Arc::new(AtomicUsize::new(0));
    let start = Instant::now();
    let mut tasks = JoinSet::new();
    for _ in 0..connections {
        let (request, report, sent, stop) =
            (request.clone(), report.clone(), sent.clone(), stop.clone());
        tasks.spawn(async move {
            let more = || {
                !stop.load(Ordering::Relaxed)
                    && match until {
                        Until::Requests(count) => sent.fetch_add(1, Ordering::Relaxed) < count,
                        Until::Elapsed(limit) => start.elapsed() < limit,
                        Until::LastAnswer => true,
                    }
            };
            let mut connection = None;
            while more() {
                let answer = one(to, &request, &mut connection);
                let answer = tokio::time::timeout(REQUEST_LIMIT, answer).await;
                let mut report = report.lock().unwrap();
                match answer.unwrap_or_else(|_| Err(std::io::ErrorKind::TimedOut.into())) {
                    Ok(status) => *report.statuses.entry(status).or_default() += 1,
                    Err(error) => {
                        connection = None;
                        report.failed += 1;
                        if report.errors.len() < 5 {
                            report.errors.push(error.to_string());
                        }
                    }
                }
                if connection.is_none() && matches!(until, Until::LastAnswer) {
                    return;
                }
            }
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
    Arc::into_inner(report).unwrap().into_inner().unwrap()
}

/// One request; the connection is kept unless the server says that it closes it.
async fn one(
    to: SocketAddr,
    request: &[u8],
    connection: &mut Option<TcpStream>,
) -> std::io::Result<u16> {
    let mut stream = match connection.take() {
        Some(stream) => stream,
        None => {
            let stream = TcpStream::connect(to).await?;
            stream.set_nodelay(true)?;
            stream
        }
    };
    stream.write_all(request).await?;
    let mut buffer = Vec::with_capacity(4096);
    loop {
        if stream.read_buf(&mut buffer).await? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        if let Some((length, status, closes)) = whole(&buffer)? {
            if buffer.len() > length {
                return Err(std::io::Error::other("more bytes than the response has"));
            }
            if buffer.len() == length {
                if !closes {
                    *connection = Some(stream);
                }
                return Ok(status);
            }
        }
    }
}

/// The length of the response at the start of `buffer` (head and body), its status, and whether
/// the connection ends with it; `None` while the head is not complete.
fn whole(buffer: &[u8]) -> std::io::Result<Option<(usize, u16, bool)>> {
    let mut headers = [httparse::EMPTY_HEADER; 64];
    let mut response = httparse::Response::new(&mut headers);
    let parsed = response.parse(buffer).map_err(std::io::Error::other)?;
    let httparse::Status::Complete(head) = parsed else {
        return Ok(None);
    };
    let header = |name: &str| {
        response
            .headers
            .iter()
            .find(|h| h.name.eq_ignore_ascii_case(name))
            .map(|h| String::from_utf8_lossy(h.value).to_ascii_lowercase())
    };
    let length: usize = header("content-length")
        .and_then(|value| value.parse().ok())
        .ok_or_else(|| std::io::Error::other("a response without Content-Length"))?;
    let closes = header("connection").is_some_and(|value| value == "close");
    Ok(Some((
        head + length,
        response.code.unwrap_or_default(),
        closes,
    )))
}
