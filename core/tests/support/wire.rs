//! Reading an HTTP/1.1 request off a stream, as the scripted upstream does.
//!
//! By hand and not with a parser, because the bytes of the head are what the tests compare.

use std::io::{self, Read};
use std::net::TcpStream;

/// Head and body of the next request; `None` when the connection ended between two.
pub fn read_request(
    stream: &mut TcpStream,
    pending: &mut Vec<u8>,
) -> io::Result<Option<(Vec<u8>, Vec<u8>)>> {
    let end = loop {
        if let Some(at) = find(pending, b"\r\n\r\n") {
            break at + 4;
        }
        if !fill(stream, pending)? {
            return Ok(None);
        }
    };
    let head: Vec<u8> = pending.drain(..end).collect();
    let lower = String::from_utf8_lossy(&head).to_ascii_lowercase();
    let body = if lower.contains("\r\ntransfer-encoding: chunked") {
        read_chunks(stream, pending)?
    } else {
        let length = lower
            .lines()
            .find_map(|line| line.strip_prefix("content-length:"))
            .and_then(|value| value.trim().parse().ok())
            .unwrap_or(0);
        take(stream, pending, length)?
    };
    Ok(Some((head, body)))
}

fn read_chunks(stream: &mut TcpStream, pending: &mut Vec<u8>) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let line = loop {
            if let Some(at) = find(pending, b"\r\n") {
                break take(stream, pending, at + 2)?;
            }
            if !fill(stream, pending)? {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        };
        let size = usize::from_str_radix(String::from_utf8_lossy(&line).trim(), 16)
            .map_err(|_| io::ErrorKind::InvalidData)?;
        body.extend(take(stream, pending, size)?);
        take(stream, pending, 2)?;
        if size == 0 {
            return Ok(body);
        }
    }
}

fn take(stream: &mut TcpStream, pending: &mut Vec<u8>, length: usize) -> io::Result<Vec<u8>> {
    while pending.len() < length {
        if !fill(stream, pending)? {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(pending.drain(..length).collect())
}

/// Reads what there is; false at the end of the stream.
fn fill(stream: &mut TcpStream, pending: &mut Vec<u8>) -> io::Result<bool> {
    let mut buffer = [0; 16 * 1024];
    let length = stream.read(&mut buffer)?;
    pending.extend(&buffer[..length]);
    Ok(length > 0)
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack
        .windows(needle.len())
        .position(|window| window == needle)
}
