//! A blocking HTTP/1.1 client for one connection: one request at a time, every answer looked at.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

const MAX_HEADERS: usize = 32;
/// Far above any answer here; one that is longer is a fault.
const MAX_ANSWER: usize = 64 * 1024;

/// One keep-alive connection.
pub(crate) struct Client {
    stream: TcpStream,
    buffer: Vec<u8>,
}

/// What came back, without a copy.
pub(crate) struct Answer<'a> {
    /// The status code.
    pub(crate) status: u16,
    /// The body.
    pub(crate) body: &'a [u8],
    head: &'a [u8],
}

impl Answer<'_> {
    /// Bytes of header and body.
    pub(crate) fn length(&self) -> usize {
        self.head.len() + self.body.len()
    }

    /// The first value of a header of the answer.
    pub(crate) fn header(&self, name: &str) -> Option<String> {
        let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
        let mut response = httparse::Response::new(&mut headers);
        response.parse(self.head).ok()?;
        let found = response
            .headers
            .iter()
            .find(|header| header.name.eq_ignore_ascii_case(name))?;
        Some(String::from_utf8_lossy(found.value).into_owned())
    }
}

/// The status line and what frames the body.
#[derive(Debug, PartialEq, Eq)]
struct Head {
    status: u16,
    length: usize,
    body_length: usize,
}

impl Client {
    /// Connects; connecting and each read and write may take `timeout`.
    pub(crate) fn connect(address: SocketAddr, timeout: Duration) -> Result<Self> {
        let stream = TcpStream::connect_timeout(&address, timeout)
            .with_context(|| format!("cannot connect to {address}"))?;
        stream
            .set_nodelay(true)
            .and_then(|()| stream.set_read_timeout(Some(timeout)))
            .and_then(|()| stream.set_write_timeout(Some(timeout)))
            .context("cannot set up the socket")?;
        Ok(Self {
            stream,
            buffer: Vec::with_capacity(4096),
        })
    }

    /// Sends a request and reads its answer, which must have a Content-Length.
    pub(crate) fn exchange(&mut self, request: &[u8]) -> Result<Answer<'_>> {
        self.stream.write_all(request).context("cannot send")?;
        self.buffer.clear();
        let head = loop {
            self.fill()?;
            if let Some(head) = parse_head(&self.buffer)? {
                break head;
            }
        };
        let end = head.length + head.body_length;
        while self.buffer.len() < end {
            self.fill()?;
        }
        ensure!(
            self.buffer.len() == end,
            "bytes after the end of the answer"
        );
        let (head_bytes, body) = self.buffer.split_at(head.length);
        Ok(Answer {
            status: head.status,
            body,
            head: head_bytes,
        })
    }

    fn fill(&mut self) -> Result<()> {
        let mut chunk = [0; 4096];
        let count = self.stream.read(&mut chunk).context("cannot receive")?;
        ensure!(count > 0, "connection closed before the end of the answer");
        ensure!(self.buffer.len() + count <= MAX_ANSWER, "answer too long");
        self.buffer.extend_from_slice(&chunk[..count]);
        Ok(())
    }
}

/// `None` while the header is not complete.
fn parse_head(bytes: &[u8]) -> Result<Option<Head>> {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut response = httparse::Response::new(&mut headers);
    let httparse::Status::Complete(length) = response.parse(bytes).context("not HTTP/1")? else {
        return Ok(None);
    };
    let Some(field) = response
        .headers
        .iter()
        .find(|header| header.name.eq_ignore_ascii_case("content-length"))
    else {
        bail!("an answer without Content-Length");
    };
    let body_length = std::str::from_utf8(field.value)
        .ok()
        .and_then(|value| value.trim().parse().ok())
        .context("a Content-Length that is no number")?;
    Ok(Some(Head {
        status: response.code.context("an answer without a status")?,
        length,
        body_length,
    }))
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::thread;

    use super::*;

    const TIMEOUT: Duration = Duration::from_secs(10);

    #[test]
    fn the_head_gives_status_and_framing() {
        let text = b"HTTP/1.1 401 Unauthorized\r\ncontent-length: 16\r\n\r\nunknown";
        let head = parse_head(text).unwrap().unwrap();
        assert_eq!(
            head,
            Head {
                status: 401,
                length: 49,
                body_length: 16
            }
        );
        assert_eq!(parse_head(&text[..30]).unwrap(), None);
        assert!(parse_head(b"HTTP/1.1 200 OK\r\n\r\n").is_err());
        assert!(parse_head(b"SSH-2.0-x\r\n\r\n").is_err());
    }

    fn answering(parts: &'static [&'static [u8]]) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = [0; 1024];
            assert!(stream.read(&mut request).unwrap() > 0);
            for part in parts {
                stream.write_all(part).unwrap();
            }
        });
        address
    }

    #[test]
    fn an_answer_in_pieces_is_put_together() {
        let address = answering(&[
            b"HTTP/1.1 200 OK\r\nx-ba",
            b"ckend: blue\r\nContent-Length: 4\r\n\r\nab",
            b"cd",
        ]);
        let mut client = Client::connect(address, TIMEOUT).unwrap();
        let answer = client.exchange(b"GET / HTTP/1.1\r\n\r\n").unwrap();
        assert_eq!((answer.status, answer.body), (200, &b"abcd"[..]));
        assert_eq!(answer.header("X-Backend").as_deref(), Some("blue"));
        assert_eq!(answer.header("x-other"), None);
    }

    #[test]
    fn a_short_or_long_answer_is_an_error() {
        const SHORT: &[&[u8]] = &[b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nab"];
        const LONG: &[&[u8]] = &[b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nab"];
        for parts in [SHORT, LONG] {
            let mut client = Client::connect(answering(parts), TIMEOUT).unwrap();
            assert!(client.exchange(b"GET / HTTP/1.1\r\n\r\n").is_err());
        }
    }
}
