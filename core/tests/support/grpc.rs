//! A server of `grpc.health.v1.Health/Check`, over HTTP/2 without TLS. The framing is Pingora's, which the messages that are sent
//! and expected know nothing of.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue};
use pingora_core::protocols::http::v2::server::{H2Accept, HttpSession, handshake};
use pingora_core::protocols::{Digest, Stream};
use pingora_http::ResponseHeader;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;

/// `HealthCheckResponse.ServingStatus`.
pub const SERVING: u8 = 1;
pub const NOT_SERVING: u8 = 2;

/// A running server; it stops when dropped.
pub struct GrpcHealth {
    address: SocketAddr,
    status: Arc<AtomicU8>,
    asked: Arc<Mutex<Vec<Asked>>>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// One call as it arrived.
#[derive(Clone, Debug)]
pub struct Asked {
    pub uri: String,
    pub content_type: String,
    pub te: String,
    /// The message with its prefix.
    pub body: Vec<u8>,
}

impl GrpcHealth {
    /// One that says `status`, on a port of 127.0.0.1 from the system.
    pub fn start(status: u8) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let listener = runtime.block_on(TcpListener::bind(any)).unwrap();
        let address = listener.local_addr().unwrap();
        let status = Arc::new(AtomicU8::new(status));
        let asked = Arc::<Mutex<Vec<Asked>>>::default();
        let (stop, stopped) = oneshot::channel();
        let (said, known) = (status.clone(), asked.clone());
        let thread = std::thread::spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    () = accept(listener, said, known) => {}
                    _ = stopped => {}
                }
            });
        });
        Self {
            address,
            status,
            asked,
            stop: Some(stop),
            thread: Some(thread),
        }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What it says from now on.
    pub fn say(&self, status: u8) {
        self.status.store(status, Ordering::SeqCst);
    }

    /// All calls so far.
    pub fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }
}

impl Drop for GrpcHealth {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

async fn accept(listener: TcpListener, status: Arc<AtomicU8>, asked: Arc<Mutex<Vec<Asked>>>) {
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        // A connection that breaks is the other side's doing.
        tokio::spawn(serve(stream, status.clone(), asked.clone()));
    }
}

async fn serve(
    stream: TcpStream,
    status: Arc<AtomicU8>,
    asked: Arc<Mutex<Vec<Asked>>>,
) -> pingora_error::Result<()> {
    let stream: Stream = Box::new(pingora_core::protocols::l4::stream::Stream::from(stream));
    let mut connection = handshake(stream, None).await?;
    let digest = Arc::new(Digest::default());
    while let Some(accepted) = HttpSession::from_h2_conn(&mut connection, digest.clone()).await? {
        if let H2Accept::Session(session) = accepted {
            tokio::spawn(call(session, status.clone(), asked.clone()));
        }
    }
    Ok(())
}

async fn call(
    mut session: HttpSession,
    status: Arc<AtomicU8>,
    asked: Arc<Mutex<Vec<Asked>>>,
) -> pingora_error::Result<()> {
    let mut body = Vec::new();
    while let Some(part) = session.read_body_bytes().await? {
        body.extend_from_slice(&part);
    }
    let head = session.req_header();
    let field = |name: &str| {
        let value = head.headers.get(name).and_then(|value| value.to_str().ok());
        value.unwrap_or_default().to_owned()
    };
    let call = Asked {
        uri: head.uri.to_string(),
        content_type: field("content-type"),
        te: field("te"),
        body,
    };
    asked.lock().unwrap().push(call);
    let mut response = ResponseHeader::build(200, None)?;
    response.insert_header("content-type", "application/grpc")?;
    session.write_response_header(Box::new(response), false)?;
    let message = [0, 0, 0, 0, 2, 8, status.load(Ordering::SeqCst)];
    let message = Bytes::copy_from_slice(&message);
    session.write_body(message, false).await?;
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", HeaderValue::from_static("0"));
    session.write_trailers(trailers)
}
