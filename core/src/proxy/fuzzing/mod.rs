//! Targets for a fuzzer behind the sockets; see [`crate::fuzzing`].

mod accept_encoding;
mod coded_body;
mod credentials;
mod forwarded;
mod hygiene;
mod pieces;

pub use accept_encoding::accept_encoding;
pub use coded_body::coded_body;
pub use credentials::credentials;
pub use forwarded::forwarded;
pub use hygiene::hygiene;
pub use pieces::pieces;

use http::{HeaderMap, HeaderName, HeaderValue};

/// Header fields, `name: value` on a line each; lines that are none are passed over.
fn fields(lines: &[u8]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for line in lines.split(|&byte| byte == b'\n') {
        let Some(colon) = line.iter().position(|&byte| byte == b':') else {
            continue;
        };
        let name = HeaderName::from_bytes(&line[..colon]);
        let value = HeaderValue::from_bytes(line[colon + 1..].trim_ascii());
        if let (Ok(name), Ok(value)) = (name, value) {
            headers.append(name, value);
        }
    }
    headers
}

/// The first line, as text, and what is behind it.
fn line(input: &[u8]) -> (&str, &[u8]) {
    let end = input.iter().position(|&byte| byte == b'\n');
    let (line, rest) = end.map_or((input, &[][..]), |end| (&input[..end], &input[end + 1..]));
    (std::str::from_utf8(line).unwrap_or_default(), rest)
}
