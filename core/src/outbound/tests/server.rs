//! A server whose every connection plays a script.

use std::future::Future;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use pingora_core::tls::TlsAcceptor;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UnixListener};
use tokio::task::JoinHandle;

trait Io: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Io for T {}

/// The server. Dropped, it accepts no more; connections that it has go on.
pub(super) struct Server {
    address: SocketAddr,
    seen: Arc<Seen>,
    accepting: JoinHandle<()>,
}

#[derive(Default)]
struct Seen {
    connections: AtomicUsize,
    requests: Mutex<Vec<String>>,
}

impl Seen {
    /// The number of a new connection.
    fn count(&self) -> usize {
        self.connections.fetch_add(1, Ordering::SeqCst)
    }
}

/// A connection, the server's side.
pub(super) struct Peer {
    stream: Box<dyn Io>,
    seen: Arc<Seen>,
}

impl Server {
    /// Each connection is given to `script`, with its number from 0 on.
    pub(super) async fn start<F>(script: impl Fn(usize, Peer) -> F + Send + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        Self::run(listener, None, script)
    }

    /// Answers each request on each connection with these bytes.
    pub(super) async fn saying(bytes: impl Into<Vec<u8>>) -> Self {
        let bytes = bytes.into();
        Self::start(move |_, mut peer| {
            let bytes = bytes.clone();
            async move {
                while peer.request().await.is_some() {
                    peer.say(&bytes).await;
                }
            }
        })
        .await
    }

    /// Answers the first request on a connection with these bytes, and closes.
    pub(super) async fn saying_last(bytes: impl Into<Vec<u8>>) -> Self {
        let bytes = bytes.into();
        Self::start(move |_, mut peer| {
            let bytes = bytes.clone();
            async move {
                peer.request().await;
                peer.say(&bytes).await;
                peer.end().await;
            }
        })
        .await
    }

    pub(super) fn run<F>(
        listener: TcpListener,
        tls: Option<TlsAcceptor>,
        script: impl Fn(usize, Peer) -> F + Send + 'static,
    ) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Seen::default());
        let all = seen.clone();
        let accepting = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let number = all.count();
                let Some(stream) = secured(stream, tls.as_ref()).await else {
                    continue;
                };
                let seen = all.clone();
                tokio::spawn(script(number, Peer { stream, seen }));
            }
        });
        Self {
            address,
            seen,
            accepting,
        }
    }

    /// The same on a Unix socket; `address` means nothing then.
    pub(super) fn on_socket<F>(
        path: &Path,
        script: impl Fn(usize, Peer) -> F + Send + 'static,
    ) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let listener = UnixListener::bind(path).unwrap();
        let seen = Arc::new(Seen::default());
        let all = seen.clone();
        let accepting = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let (number, seen) = (all.count(), all.clone());
                let stream = Box::new(stream);
                tokio::spawn(script(number, Peer { stream, seen }));
            }
        });
        Self {
            address: ([0, 0, 0, 0], 0).into(),
            seen,
            accepting,
        }
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Connections so far.
    pub(super) fn connections(&self) -> usize {
        self.seen.connections.load(Ordering::SeqCst)
    }

    /// The requests so far, header and body as they came.
    pub(super) fn requests(&self) -> Vec<String> {
        self.seen.requests.lock().unwrap().clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn secured(stream: TcpStream, tls: Option<&TlsAcceptor>) -> Option<Box<dyn Io>> {
    match tls {
        None => Some(Box::new(stream)),
        Some(acceptor) => {
            let stream = acceptor.accept(stream).await.ok()?;
            Some(Box::new(stream))
        }
    }
}

impl Peer {
    /// Reads a request with the body that its length announces. `None` at the end of the
    /// connection.
    pub(super) async fn request(&mut self) -> Option<()> {
        let mut request = self.header().await?;
        let lower = request.to_ascii_lowercase();
        let length = lower.split("content-length: ").nth(1);
        let length = length.map_or(0, |rest| rest.lines().next().unwrap().parse().unwrap());
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body).await.ok()?;
        request.push_str(&String::from_utf8(body).unwrap());
        self.seen.requests.lock().unwrap().push(request);
        Some(())
    }

    /// Reads a request's header only, which isn't kept.
    pub(super) async fn header(&mut self) -> Option<String> {
        let mut header = Vec::new();
        while !header.ends_with(b"\r\n\r\n") {
            header.push(self.stream.read_u8().await.ok()?);
        }
        Some(String::from_utf8(header).unwrap())
    }

    /// Sends these bytes; false when the client is gone.
    pub(super) async fn say(&mut self, bytes: impl AsRef<[u8]>) -> bool {
        let said = self.stream.write_all(bytes.as_ref()).await.is_ok();
        said && self.stream.flush().await.is_ok()
    }

    /// Says no more. What the client sends is still read, so that its end is no reset.
    pub(super) async fn end(&mut self) {
        let _ = self.stream.shutdown().await;
        self.gone().await;
    }

    /// Waits until the client has closed.
    pub(super) async fn gone(&mut self) {
        let _ = tokio::io::copy(&mut self.stream, &mut tokio::io::sink()).await;
    }
}
