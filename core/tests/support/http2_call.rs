//! A call over HTTP/2 in which both sides speak as long as they like: what gRPC calls bidirectional streaming.

use std::net::SocketAddr;

use bytes::Bytes;
use h2::server::SendResponse;
use h2::{RecvStream, SendStream};
use http::{HeaderMap, HeaderValue, Request, Response};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::time::timeout;

use super::http2::send;
use super::service::Service;
use super::wait::SOON;

/// A service that answers at once, sends back each piece as it comes, and says that all was well when the
/// client has ended.
pub struct Echo {
    address: SocketAddr,
    _service: Service,
}

impl Echo {
    pub fn start() -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let service = Service::run(async move {
            let listener = TcpListener::from_std(listener).unwrap();
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(async move {
                    let Ok(mut connection) = h2::server::handshake(stream).await else {
                        return;
                    };
                    while let Some(Ok((request, respond))) = connection.accept().await {
                        tokio::spawn(echo(request.into_body(), respond));
                    }
                });
            }
        });
        Self {
            address,
            _service: service,
        }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

/// A failure is the other side's doing, and it sees it.
async fn echo(mut from: RecvStream, mut respond: SendResponse<Bytes>) -> Option<()> {
    let head = Response::builder()
        .header("content-type", "application/grpc")
        .body(())
        .ok()?;
    let mut to = respond.send_response(head, false).ok()?;
    while let Some(piece) = from.data().await {
        let piece = piece.ok()?;
        from.flow_control().release_capacity(piece.len()).ok()?;
        send(&mut to, piece, false).await.ok()?;
    }
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", HeaderValue::from_static("0"));
    to.send_trailers(trailers).ok()
}

/// A call that is under way.
pub struct Call {
    runtime: Runtime,
    to: SendStream<Bytes>,
    from: RecvStream,
    /// What came and was not asked for yet.
    pending: Vec<u8>,
}

impl Call {
    /// Begins one, and has the header of the answer.
    pub fn begin(proxy: SocketAddr, path: &str) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let request = Request::builder()
            .method("POST")
            .uri(format!("http://edge.test{path}"))
            .header("content-type", "application/grpc")
            .header("te", "trailers")
            .body(())
            .unwrap();
        let (to, from) = runtime.block_on(async {
            let stream = TcpStream::connect(proxy).await.unwrap();
            let (requests, connection) = h2::client::handshake(stream).await.unwrap();
            tokio::spawn(connection);
            let mut requests = requests.ready().await.unwrap();
            let (answer, to) = requests.send_request(request, false).unwrap();
            let answer = timeout(SOON, answer).await.expect("no answer").unwrap();
            assert_eq!(answer.status(), 200);
            (to, answer.into_body())
        });
        Self {
            runtime,
            to,
            from,
            pending: Vec::new(),
        }
    }

    /// Says this, and hears it.
    pub fn echoes(&mut self, text: &[u8]) {
        let Self {
            runtime,
            to,
            from,
            pending,
        } = self;
        runtime.block_on(async {
            send(to, Bytes::copy_from_slice(text), false).await.unwrap();
            while pending.len() < text.len() {
                let piece = timeout(SOON, from.data()).await.expect("no answer");
                let piece = piece.expect("the stream has ended").unwrap();
                from.flow_control().release_capacity(piece.len()).unwrap();
                pending.extend_from_slice(&piece);
            }
        });
        assert_eq!(std::mem::take(pending), text);
    }

    /// Ends it, and has what comes after the last piece.
    pub fn end(mut self) -> Option<HeaderMap> {
        self.runtime.block_on(async {
            self.to.send_data(Bytes::new(), true).unwrap();
            let more = timeout(SOON, self.from.data()).await.expect("no end");
            assert!(more.is_none(), "{more:?}");
            self.from.trailers().await.unwrap()
        })
    }
}
