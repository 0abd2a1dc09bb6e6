//! The job that every contestant does: what is asked, with which headers, and what comes back.

/// Path of the measured requests.
pub(crate) const PATH: &str = "/api/items";
/// Path at which the backend also tells what it received; only for checks.
pub(crate) const CHECK_PATH: &str = "/check/items";
/// Header with the API key.
pub(crate) const KEY_HEADER: &str = "x-api-key";
/// Header that chooses the pool: [`GREEN`] the pool of that name, anything else [`BLUE`].
pub(crate) const VARIANT_HEADER: &str = "x-variant";
/// Header in which the auth job tells the backend whose key it was.
pub(crate) const CLIENT_HEADER: &str = "x-client";
/// The pool that the measured requests go to.
pub(crate) const BLUE: &str = "blue";
/// The other pool.
pub(crate) const GREEN: &str = "green";
/// Bytes of every answer's body.
pub(crate) const BODY_LENGTH: usize = 1000;

const KEYS: usize = 1000;
const USED_KEY: usize = KEYS / 2;

/// The answer's body: [`BODY_LENGTH`] bytes that need no quoting anywhere.
pub(crate) fn body() -> String {
    (0..BODY_LENGTH)
        .map(|position| char::from(b'a' + (position % 26) as u8))
        .collect()
}

/// All API keys with their clients.
pub(crate) fn keys() -> impl Iterator<Item = (String, String)> {
    (0..KEYS).map(|number| (key(number), client(number)))
}

/// The key that the measured requests carry.
pub(crate) fn good_key() -> String {
    key(USED_KEY)
}

/// Whose key [`good_key`] is.
pub(crate) fn good_client() -> String {
    client(USED_KEY)
}

fn key(number: usize) -> String {
    format!("key-{number:04}-6f1d0c2b9a")
}

fn client(number: usize) -> String {
    format!("client-{number:04}")
}

/// The header lines of a request, the same for every contestant whatever it makes of them.
pub(crate) fn headers(key: &str, variant: &str) -> [(&'static str, String); 3] {
    [
        ("Host", "bench.test".to_owned()),
        (KEY_HEADER, key.to_owned()),
        (VARIANT_HEADER, variant.to_owned()),
    ]
}

/// A whole GET request.
pub(crate) fn request(path: &str, key: &str, variant: &str) -> Vec<u8> {
    let mut text = format!("GET {path} HTTP/1.1\r\n");
    for (name, value) in headers(key, variant) {
        text += &format!("{name}: {value}\r\n");
    }
    text += "\r\n";
    text.into_bytes()
}

/// The measured request.
pub(crate) fn measured_request() -> Vec<u8> {
    request(PATH, &good_key(), BLUE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_used_key_is_in_the_table() {
        assert!(keys().any(|entry| entry == (good_key(), good_client())));
        assert_eq!(body().len(), BODY_LENGTH);
    }

    #[test]
    fn a_request_is_complete() {
        let text = String::from_utf8(measured_request()).unwrap();
        assert!(text.starts_with("GET /api/items HTTP/1.1\r\nHost: bench.test\r\n"));
        assert!(text.ends_with("x-variant: blue\r\n\r\n"));
    }
}
