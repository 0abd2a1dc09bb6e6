//! The job that every contestant does: what is asked, with which headers, and what comes back.

/// The host of the measured requests.
pub(crate) const HOST: &str = "bench.test";
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

/// What a browser sends besides, where header fields are to be as many as in service.
pub(crate) const BROWSER_FIELDS: [(&str, &str); 5] = [
    (
        "user-agent",
        "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
    ),
    ("accept", "application/json, text/plain, */*"),
    ("accept-language", "en-US,en;q=0.8,de;q=0.5"),
    ("accept-encoding", "gzip, deflate, br, zstd"),
    ("cookie", "session=3f0d6b1c9a5e4f27; theme=dark"),
];

/// First segments of paths, for the job that routes by them. At `/{prefix}/check` the backend tells what
/// it received.
pub(crate) const PREFIXES: [&str; 16] = [
    "users", "orders", "products", "cart", "search", "login", "images", "assets", "admin",
    "reports", "billing", "payments", "webhooks", "events", "metrics", "docs",
];

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

/// The API key with this number.
pub(crate) fn key(number: usize) -> String {
    format!("key-{number:04}-6f1d0c2b9a")
}

/// Whose key [`key`] is.
pub(crate) fn client(number: usize) -> String {
    format!("client-{number:04}")
}

/// A request that is sent again and again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Request {
    /// The method.
    pub(crate) method: &'static str,
    /// The host.
    pub(crate) host: &'static str,
    /// The path.
    pub(crate) path: String,
    /// The header fields but for host and length.
    pub(crate) headers: Vec<(&'static str, String)>,
    /// The body; with an empty one there is no `content-length`.
    pub(crate) body: String,
}

impl Request {
    /// As HTTP/1.1 writes it.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut text = format!(
            "{} {} HTTP/1.1\r\nHost: {}\r\n",
            self.method, self.path, self.host
        );
        for (name, value) in &self.headers {
            text += &format!("{name}: {value}\r\n");
        }
        if !self.body.is_empty() {
            text += &format!("content-length: {}\r\n", self.body.len());
        }
        text += "\r\n";
        text += &self.body;
        text.into_bytes()
    }
}

/// A request that every contestant of the common comparison understands.
fn ordinary(path: &str, key: &str, variant: &str) -> Request {
    Request {
        method: "GET",
        host: HOST,
        path: path.to_owned(),
        headers: vec![
            (KEY_HEADER, key.to_owned()),
            (VARIANT_HEADER, variant.to_owned()),
        ],
        body: String::new(),
    }
}

/// A whole GET request.
pub(crate) fn request(path: &str, key: &str, variant: &str) -> Vec<u8> {
    ordinary(path, key, variant).bytes()
}

/// The measured request.
pub(crate) fn measured() -> Request {
    ordinary(PATH, &good_key(), BLUE)
}

/// The measured request as bytes.
pub(crate) fn measured_request() -> Vec<u8> {
    measured().bytes()
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

    #[test]
    fn a_body_has_its_length() {
        let request = Request {
            method: "POST",
            headers: Vec::new(),
            body: "{}".to_owned(),
            ..measured()
        };
        let text = String::from_utf8(request.bytes()).unwrap();
        assert_eq!(
            text,
            "POST /api/items HTTP/1.1\r\nHost: bench.test\r\ncontent-length: 2\r\n\r\n{}"
        );
    }
}
