//! WebSockets (RFC 6455), as far as a proxy has to do with them: the handshake, and bytes after it.

use std::io::{Read as _, Write as _};
use std::net::SocketAddr;

use super::client::{Connection, Request, get};
use super::upstream::{Action, Upstream};

const SWITCH: &str = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\
                      Connection: Upgrade\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";

/// A text frame from a server: `hello`.
pub const HELLO: &[u8] = b"\x81\x05hello";

/// An origin that switches, says hello in the same segment, and sends back what it gets.
pub fn echo() -> Upstream {
    Upstream::start(|_| echo_action())
}

/// What [`echo`] does with each request.
pub fn echo_action() -> Action {
    Action::Write(Box::new(|stream| {
        stream.write_all(&[SWITCH.as_bytes(), HELLO].concat())?;
        let mut buffer = [0; 1024];
        loop {
            match stream.read(&mut buffer)? {
                0 => return Ok(()),
                length => stream.write_all(&buffer[..length])?,
            }
        }
    }))
}

/// The request for an upgrade to this protocol.
pub fn upgrade(to: &str) -> Request {
    get("/socket")
        .header("Connection", "Upgrade")
        .header("Upgrade", to)
        .header("Sec-WebSocket-Version", "13")
        .header("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==")
}

/// Opens one through the proxy at this address, and has the first frame.
pub fn open(proxy: SocketAddr) -> Connection {
    let mut socket = Connection::open(proxy).unwrap();
    let response = socket.send(&upgrade("websocket")).unwrap();
    assert_eq!(response.status, 101);
    let accept = response.header("sec-websocket-accept");
    assert_eq!(accept, Some("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="));
    assert_eq!(socket.read_until(HELLO), HELLO);
    socket
}

/// Sends this, and has it back.
pub fn echoes(socket: &mut Connection, text: &[u8]) {
    socket.write(text).unwrap();
    assert_eq!(socket.read_until(text), text);
}
