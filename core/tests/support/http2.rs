//! HTTP/2 without TLS, with prior knowledge: a client, and a scripted upstream.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use h2::client::SendRequest;
use h2::server::SendResponse;
use h2::{RecvStream, SendStream};
use http::{HeaderMap, Request, Response};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;

use super::service::Service;
use super::wait::SOON;

/// A message with everything that may come with it.
#[derive(Debug, Clone, Default)]
pub struct Message {
    pub headers: HeaderMap,
    pub body: Vec<u8>,
    pub trailers: Option<HeaderMap>,
}

impl Message {
    /// The first field called `name`.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// The first field called `name` behind the body.
    pub fn trailer(&self, name: &str) -> Option<&str> {
        self.trailers.as_ref()?.get(name)?.to_str().ok()
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// A response.
#[derive(Debug, Clone)]
pub struct Answer {
    pub status: u16,
    pub message: Message,
}

/// A connection of a client.
pub struct Client {
    runtime: Runtime,
    requests: SendRequest<Bytes>,
}

/// `POST` or another method to a path of `edge.test`.
pub fn request(method: &str, path: &str) -> http::request::Builder {
    Request::builder()
        .method(method)
        .uri(format!("http://edge.test{path}"))
}

impl Client {
    pub fn connect(to: SocketAddr) -> Self {
        Self::begin(to, b"")
    }

    /// The same, with bytes before everything else.
    pub fn begin(to: SocketAddr, first: &[u8]) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let requests = runtime.block_on(async {
            let mut stream = TcpStream::connect(to).await.unwrap();
            tokio::io::AsyncWriteExt::write_all(&mut stream, first)
                .await
                .unwrap();
            let (requests, connection) = h2::client::handshake(stream).await.unwrap();
            tokio::spawn(connection);
            requests
        });
        Self { runtime, requests }
    }

    /// Sends a request with a body; no body without one.
    pub fn send(&self, request: Request<()>, body: &[u8]) -> Result<Answer, h2::Error> {
        self.send_in_pieces(request, &[body])
    }

    /// Sends a body as so many frames.
    pub fn send_in_pieces(
        &self,
        request: Request<()>,
        body: &[&[u8]],
    ) -> Result<Answer, h2::Error> {
        let requests = self.requests.clone();
        let pieces: Vec<Bytes> = body
            .iter()
            .map(|piece| Bytes::copy_from_slice(piece))
            .collect();
        self.runtime.block_on(async {
            tokio::time::timeout(SOON, exchange(requests, request, pieces))
                .await
                .expect("neither an answer nor a failure")
        })
    }

    /// Sends requests without a body, all at the same time.
    pub fn send_all(&self, all: Vec<Request<()>>) -> Vec<Result<Answer, h2::Error>> {
        self.runtime.block_on(async {
            let sent: Vec<_> = all
                .into_iter()
                .map(|request| tokio::spawn(exchange(self.requests.clone(), request, Vec::new())))
                .collect();
            let mut answers = Vec::new();
            for answer in sent {
                answers.push(tokio::time::timeout(SOON, answer).await.unwrap().unwrap());
            }
            answers
        })
    }
}

async fn exchange(
    requests: SendRequest<Bytes>,
    request: Request<()>,
    pieces: Vec<Bytes>,
) -> Result<Answer, h2::Error> {
    let mut requests = requests.ready().await?;
    let end = pieces.iter().all(Bytes::is_empty);
    let (answer, mut body) = requests.send_request(request, end)?;
    if !end {
        let last = pieces.len() - 1;
        for (index, piece) in pieces.into_iter().enumerate() {
            // An answer may come before all of it is sent, and the rest is not wanted then.
            if send(&mut body, piece, index == last).await.is_err() {
                break;
            }
        }
    }
    let (head, body) = answer.await?.into_parts();
    let mut message = receive(body).await?;
    message.headers = head.headers;
    Ok(Answer {
        status: head.status.as_u16(),
        message,
    })
}

/// Sends a piece as the other side makes room for it.
pub(super) async fn send(
    body: &mut SendStream<Bytes>,
    mut piece: Bytes,
    end: bool,
) -> Result<(), h2::Error> {
    while !piece.is_empty() {
        body.reserve_capacity(piece.len());
        let room = std::future::poll_fn(|context| body.poll_capacity(context)).await;
        let room = room.transpose()?.unwrap_or_default().min(piece.len());
        let part = piece.split_to(room);
        body.send_data(part, end && piece.is_empty())?;
    }
    Ok(())
}

async fn receive(mut body: RecvStream) -> Result<Message, h2::Error> {
    let mut message = Message::default();
    while let Some(piece) = body.data().await {
        let piece = piece?;
        message.body.extend_from_slice(&piece);
        body.flow_control().release_capacity(piece.len())?;
    }
    message.trailers = body.trailers().await?;
    Ok(message)
}

/// A request as the upstream got it.
#[derive(Debug, Clone)]
pub struct Seen {
    pub method: String,
    pub uri: String,
    pub message: Message,
    /// Which connection it came on, from 0.
    pub connection: usize,
}

type Handler = dyn Fn(&Seen) -> Option<Answer> + Send + Sync;

/// An answer of this status with this body.
pub fn answer(status: u16, body: &str) -> Answer {
    Answer {
        status,
        message: Message {
            body: body.as_bytes().to_vec(),
            ..Message::default()
        },
    }
}

impl Answer {
    pub fn header(mut self, name: &'static str, value: &str) -> Self {
        self.message.headers.insert(name, value.parse().unwrap());
        self
    }

    pub fn trailer(mut self, name: &'static str, value: &str) -> Self {
        let trailers = self.message.trailers.get_or_insert_default();
        trailers.insert(name, value.parse().unwrap());
        self
    }
}

/// A scripted upstream; it stops when dropped.
pub struct Upstream {
    address: SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
    connections: Arc<AtomicUsize>,
    /// How many requests were given up by the other side.
    resets: Arc<AtomicUsize>,
    _service: Service,
}

impl Upstream {
    /// `handler` may block. Without an answer the request is left as it is until it is reset.
    pub fn start(handler: impl Fn(&Seen) -> Option<Answer> + Send + Sync + 'static) -> Self {
        Self::run(handler, false)
    }

    /// The same, but each connection says GOAWAY as soon as it has got a request, which it still answers.
    pub fn leaving(handler: impl Fn(&Seen) -> Option<Answer> + Send + Sync + 'static) -> Self {
        Self::run(handler, true)
    }

    fn run(
        handler: impl Fn(&Seen) -> Option<Answer> + Send + Sync + 'static,
        leaves: bool,
    ) -> Self {
        let handler: Arc<Handler> = Arc::new(handler);
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::<Mutex<Vec<Seen>>>::default();
        let connections = Arc::<AtomicUsize>::default();
        let resets = Arc::<AtomicUsize>::default();
        let (all, accepted, given_up) = (seen.clone(), connections.clone(), resets.clone());
        let service = Service::run(async move {
            let listener = TcpListener::from_std(listener).unwrap();
            while let Ok((stream, _)) = listener.accept().await {
                let number = accepted.fetch_add(1, Ordering::SeqCst);
                let (handler, all, given_up) = (handler.clone(), all.clone(), given_up.clone());
                tokio::spawn(async move {
                    let Ok(mut connection) = h2::server::handshake(stream).await else {
                        return;
                    };
                    while let Some(Ok((request, respond))) = connection.accept().await {
                        let serve = serve(
                            request,
                            respond,
                            number,
                            handler.clone(),
                            all.clone(),
                            given_up.clone(),
                        );
                        tokio::spawn(serve);
                        if leaves {
                            connection.graceful_shutdown();
                        }
                    }
                });
            }
        });
        Self {
            address,
            seen,
            connections,
            resets,
            _service: service,
        }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    pub fn resets(&self) -> usize {
        self.resets.load(Ordering::SeqCst)
    }
}

async fn serve(
    request: Request<RecvStream>,
    mut respond: SendResponse<Bytes>,
    connection: usize,
    handler: Arc<Handler>,
    all: Arc<Mutex<Vec<Seen>>>,
    given_up: Arc<AtomicUsize>,
) {
    let (head, body) = request.into_parts();
    let Ok(mut message) = receive(body).await else {
        given_up.fetch_add(1, Ordering::SeqCst);
        return;
    };
    message.headers = head.headers;
    let seen = Seen {
        method: head.method.to_string(),
        uri: head.uri.to_string(),
        message,
        connection,
    };
    all.lock().unwrap().push(seen.clone());
    let answer = tokio::task::spawn_blocking(move || handler(&seen))
        .await
        .unwrap();
    let Some(Answer { status, message }) = answer else {
        let _ = std::future::poll_fn(|context| respond.poll_reset(context)).await;
        given_up.fetch_add(1, Ordering::SeqCst);
        return;
    };
    let mut head = Response::builder().status(status).body(()).unwrap();
    *head.headers_mut() = message.headers;
    let end = message.body.is_empty() && message.trailers.is_none();
    let Ok(mut body) = respond.send_response(head, end) else {
        return;
    };
    let _ = send(&mut body, message.body.into(), message.trailers.is_none()).await;
    if let Some(trailers) = message.trailers {
        let _ = body.send_trailers(trailers);
    }
}
