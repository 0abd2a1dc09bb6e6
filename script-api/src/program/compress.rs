//! `.compress`: which responses of a route are compressed, and how.

/// A content coding that responses can get (RFC 9110 section 8.4.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContentCoding {
    /// RFC 8878.
    Zstd,
    /// RFC 7932.
    Brotli,
    /// RFC 1952.
    Gzip,
}

impl ContentCoding {
    /// All of them, those that make the least work for the most gain first.
    pub const ALL: [Self; 3] = [Self::Zstd, Self::Brotli, Self::Gzip];

    /// Its name in `Accept-Encoding` and `Content-Encoding`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Zstd => "zstd",
            Self::Brotli => "br",
            Self::Gzip => "gzip",
        }
    }

    /// The coding of this name.
    pub fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|coding| coding.name() == name)
    }
}

/// What `.compress` was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compress {
    /// Shorter bodies stay as they are, when their length is known; in bytes.
    pub min: u64,
    /// Media types in lower case, such as `application/json`, or `text/*` for all of one type.
    pub types: Vec<String>,
    /// The codings, the one that is preferred first where a client likes several the same.
    pub codings: Vec<ContentCoding>,
}

impl Default for Compress {
    fn default() -> Self {
        let types = [
            "text/*",
            "application/json",
            "application/javascript",
            "application/xml",
            "application/xhtml+xml",
            "application/manifest+json",
            "application/ld+json",
            "application/problem+json",
            "application/wasm",
            "image/svg+xml",
        ];
        Self {
            min: 1024,
            types: types.map(str::to_owned).to_vec(),
            codings: ContentCoding::ALL.to_vec(),
        }
    }
}

impl Compress {
    /// Whether a body of this type is one that is compressed; `content_type` as in the header.
    pub fn takes(&self, content_type: &str) -> bool {
        let essence = content_type.split(';').next().unwrap_or_default().trim();
        let main = essence.split('/').next().unwrap_or_default();
        self.types
            .iter()
            .any(|known| match known.strip_suffix("/*") {
                Some(all) => main.eq_ignore_ascii_case(all),
                None => essence.eq_ignore_ascii_case(known),
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_types_with_parameters_and_of_a_kind() {
        let compress = Compress::default();
        for taken in [
            "text/html; charset=utf-8",
            "Application/JSON",
            "image/svg+xml",
        ] {
            assert!(compress.takes(taken), "{taken}");
        }
        for left in ["image/png", "application/octet-stream", "", "textual/x"] {
            assert!(!compress.takes(left), "{left}");
        }
    }
}
