//! A raw HTTP/1.1 client: sends exactly the bytes it is given and reads one response at a time.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

use super::wait::SOON;

/// The Host that requests carry unless they say otherwise.
pub const HOST: &str = "edge.test";

/// A request under construction.
#[derive(Clone)]
pub struct Request {
    method: String,
    target: String,
    host: String,
    headers: Vec<(String, String)>,
    body: Option<Vec<u8>>,
}

/// A request without a body.
pub fn request(method: &str, target: &str) -> Request {
    Request {
        method: method.to_owned(),
        target: target.to_owned(),
        host: HOST.to_owned(),
        headers: Vec::new(),
        body: None,
    }
}

/// `GET target`.
pub fn get(target: &str) -> Request {
    request("GET", target)
}

/// `POST target` with a body.
pub fn post(target: &str, body: impl Into<Vec<u8>>) -> Request {
    request("POST", target).body(body)
}

impl Request {
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub fn host(mut self, host: &str) -> Self {
        self.host = host.to_owned();
        self
    }

    /// Adds a body, framed by Content-Length.
    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = Some(body.into());
        self
    }

    /// The bytes on the wire.
    pub fn bytes(&self) -> Vec<u8> {
        let mut text = format!(
            "{} {} HTTP/1.1\r\nHost: {}\r\n",
            self.method, self.target, self.host
        );
        for (name, value) in &self.headers {
            text += &format!("{name}: {value}\r\n");
        }
        if let Some(body) = &self.body {
            text += &format!("Content-Length: {}\r\n", body.len());
        }
        let mut bytes = (text + "\r\n").into_bytes();
        bytes.extend(self.body.iter().flatten());
        bytes
    }

    /// Sends it on a new connection and reads the response.
    pub fn try_send(&self, to: SocketAddr) -> io::Result<Response> {
        let mut connection = Connection::open(to)?;
        connection.write(&self.bytes())?;
        connection.read_response(&self.method)
    }

    /// [`Request::try_send`], and a failure is the test's.
    pub fn send(&self, to: SocketAddr) -> Response {
        self.try_send(to)
            .unwrap_or_else(|e| panic!("{} {}: {e}", self.method, self.target))
    }
}

/// One response, its body unframed.
#[derive(Debug, Clone)]
pub struct Response {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Response {
    /// The first header called `name`.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(n, _)| n.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// Whether the server said that it closes the connection after this.
    pub fn closes(&self) -> bool {
        self.header("connection")
            .is_some_and(|value| value.eq_ignore_ascii_case("close"))
    }
}

/// Sends `bytes` on a new connection. `None`: the connection was closed without an answer.
pub fn exchange(to: SocketAddr, bytes: &[u8]) -> Option<Response> {
    let mut connection = Connection::open(to).unwrap();
    // A proxy may answer and close before it has read everything.
    let _ = connection.write(bytes);
    match connection.read_response("") {
        Ok(response) => Some(response),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
            panic!("neither an answer nor a close within {SOON:?}")
        }
        Err(_) => None,
    }
}

/// A connection that stays open between requests.
pub struct Connection {
    stream: TcpStream,
    /// Read and not yet taken.
    pending: Vec<u8>,
}

impl Connection {
    pub fn open(to: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect_timeout(&to, SOON)?;
        stream.set_read_timeout(Some(SOON))?;
        stream.set_write_timeout(Some(SOON))?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            pending: Vec::new(),
        })
    }

    /// Sends bytes as they are.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)
    }

    /// Sends a request and reads its response.
    pub fn send(&mut self, request: &Request) -> io::Result<Response> {
        self.write(&request.bytes())?;
        self.read_response(&request.method)
    }

    /// No longer than this for one read.
    pub fn read_timeout(&self, limit: Duration) {
        self.stream.set_read_timeout(Some(limit)).unwrap();
    }

    /// Reads until what was read ends with `bytes`, and gives all of it.
    pub fn read_until(&mut self, bytes: &[u8]) -> Vec<u8> {
        while !self.pending.ends_with(bytes) {
            self.fill().unwrap();
        }
        std::mem::take(&mut self.pending)
    }

    /// All that comes until the server closes the connection.
    pub fn read_to_end(&mut self) -> Vec<u8> {
        let mut rest = std::mem::take(&mut self.pending);
        self.stream.read_to_end(&mut rest).unwrap();
        rest
    }

    /// Whether the server closes the connection within `limit`; bytes that come before are dropped.
    pub fn closed_within(&mut self, limit: Duration) -> bool {
        self.read_timeout(limit);
        loop {
            match self.stream.read(&mut [0; 1024]) {
                Ok(0) => return true,
                Ok(_) => {}
                Err(error) => {
                    return !matches!(
                        error.kind(),
                        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
                    );
                }
            }
        }
    }

    /// The next final response; interim ones (1xx) are passed over. `method` tells whether a body
    /// follows: none does after HEAD.
    pub fn read_response(&mut self, method: &str) -> io::Result<Response> {
        loop {
            let mut response = self.read_head()?;
            if !(100..200).contains(&response.status) || response.status == 101 {
                let bodiless = method == "HEAD" || matches!(response.status, 101 | 204 | 304);
                if !bodiless {
                    response.body = self.read_body(&response)?;
                }
                return Ok(response);
            }
        }
    }

    fn read_head(&mut self) -> io::Result<Response> {
        loop {
            let mut headers = [httparse::EMPTY_HEADER; 256];
            let mut parsed = httparse::Response::new(&mut headers);
            match parsed.parse(&self.pending).map_err(invalid)? {
                httparse::Status::Complete(length) => {
                    let response = Response {
                        status: parsed.code.unwrap_or_default(),
                        headers: parsed
                            .headers
                            .iter()
                            .map(|h| {
                                (
                                    h.name.to_owned(),
                                    String::from_utf8_lossy(h.value).into_owned(),
                                )
                            })
                            .collect(),
                        body: Vec::new(),
                    };
                    self.pending.drain(..length);
                    return Ok(response);
                }
                httparse::Status::Partial => self.fill()?,
            }
        }
    }

    fn read_body(&mut self, response: &Response) -> io::Result<Vec<u8>> {
        let chunked = response
            .header("transfer-encoding")
            .is_some_and(|value| value.eq_ignore_ascii_case("chunked"));
        if chunked {
            return self.read_chunks();
        }
        match response.header("content-length") {
            Some(length) => {
                let length = length.parse().map_err(invalid)?;
                self.take(length)
            }
            None => {
                let mut body = std::mem::take(&mut self.pending);
                self.stream.read_to_end(&mut body)?;
                Ok(body)
            }
        }
    }

    fn read_chunks(&mut self) -> io::Result<Vec<u8>> {
        let mut body = Vec::new();
        loop {
            let size = loop {
                match httparse::parse_chunk_size(&self.pending)
                    .map_err(|_| invalid("bad chunk size"))?
                {
                    httparse::Status::Complete((line, size)) => {
                        self.pending.drain(..line);
                        break size as usize;
                    }
                    httparse::Status::Partial => self.fill()?,
                }
            };
            body.extend(self.take(size)?);
            if self.take(2)? != b"\r\n" {
                return Err(invalid("no line end after a chunk (trailers are not read)"));
            }
            if size == 0 {
                return Ok(body);
            }
        }
    }

    fn take(&mut self, length: usize) -> io::Result<Vec<u8>> {
        while self.pending.len() < length {
            self.fill()?;
        }
        Ok(self.pending.drain(..length).collect())
    }

    fn fill(&mut self) -> io::Result<()> {
        let mut buffer = [0; 16 * 1024];
        match self.stream.read(&mut buffer)? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            length => {
                self.pending.extend(&buffer[..length]);
                Ok(())
            }
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

fn invalid(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}
