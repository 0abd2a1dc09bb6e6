//! `edgewright health`: asks a running one, without a shell or curl in the image.

use std::{
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    process::ExitCode,
    time::Duration,
};

use super::WRONG;

/// For connecting, and for each read and write.
const TIMEOUT: Duration = Duration::from_secs(3);

/// More than any answer has.
const MOST: u64 = 64 * 1024;

pub(super) fn run(address: SocketAddr, ready: bool) -> ExitCode {
    let path = if ready { "/readyz" } else { "/healthz" };
    match ask(address, path) {
        Ok((200, body)) => {
            println!("{}", body.trim_end());
            ExitCode::SUCCESS
        }
        Ok((_, body)) => {
            eprintln!("{}", body.trim_end());
            ExitCode::from(WRONG)
        }
        Err(error) => {
            eprintln!("{address} does not answer: {error}");
            ExitCode::from(WRONG)
        }
    }
}

/// The status and body of one answer.
fn ask(address: SocketAddr, path: &str) -> std::io::Result<(u16, String)> {
    let mut stream = TcpStream::connect_timeout(&address, TIMEOUT)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n"
    )?;
    let mut answer = Vec::new();
    stream.take(MOST).read_to_end(&mut answer)?;
    let answer = String::from_utf8_lossy(&answer);
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    let status = head
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok());
    let status = status.ok_or_else(|| std::io::Error::other("the answer is no HTTP"))?;
    Ok((status, body.to_owned()))
}
