//! `secret(..)`: what only the process may know.

use std::{fmt, sync::Arc};

/// The most bytes of a secret. A key or password has some hundred at the most; a larger file is
/// another one than was meant.
pub const MOST_SECRET: usize = 64 * 1024;

/// A key, password or token from a file. It is no text, so that it can't end up in a header or in
/// the log by mistake: natives that need a key take it as it is.
#[derive(Clone)]
pub struct Secret(Arc<[u8]>);

impl Secret {
    /// The content of a file. One line end at its end is not part of it: editors and
    /// `kubectl create secret` put it there.
    ///
    /// # Errors
    /// When nothing is left, or it is larger than [`MOST_SECRET`].
    pub fn from_file(content: &[u8]) -> Result<Self, String> {
        let content = content.strip_suffix(b"\n").unwrap_or(content);
        let content = content.strip_suffix(b"\r").unwrap_or(content);
        if content.is_empty() {
            return Err("there is nothing in it: an empty secret is known to everybody".to_owned());
        }
        if content.len() > MOST_SECRET {
            return Err(format!(
                "a secret has {MOST_SECRET} bytes at the most, this one has {}",
                content.len()
            ));
        }
        Ok(Self(content.into()))
    }

    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

/// Says nothing of it, not even its length.
impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

impl PartialEq for Secret {
    fn eq(&self, other: &Self) -> bool {
        use subtle::ConstantTimeEq as _;
        self.0.ct_eq(&other.0).into()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn one_line_end_is_not_part_of_it() {
        for (content, bytes) in [
            ("s3cret", "s3cret"),
            ("s3cret\n", "s3cret"),
            ("s3cret\r\n", "s3cret"),
            ("s3cret\n\n", "s3cret\n"),
            (" s3cret ", " s3cret "),
        ] {
            let secret = Secret::from_file(content.as_bytes()).unwrap();
            assert_eq!(secret.bytes(), bytes.as_bytes(), "{content:?}");
        }
        for content in [&b""[..], b"\n", b"\r\n", &vec![b'a'; MOST_SECRET + 1]] {
            assert!(Secret::from_file(content).is_err());
        }
    }

    #[test]
    fn it_is_never_shown() {
        let secret = Secret::from_file(b"s3cret").unwrap();
        assert_eq!(format!("{secret:?}"), "Secret(..)");
    }
}
