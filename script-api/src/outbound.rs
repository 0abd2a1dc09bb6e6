//! Calls that a hook makes to other services: what it asks for and what it gets.
//!
//! The program only says what it wants; whoever runs it makes the call, while the hook is suspended
//! (see [`crate::engine`]).

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};

use crate::{engine::Arriving, program::PoolId};

/// Who is called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Recipient {
    /// A pool of the program.
    Pool(PoolId),
    /// The server that a URL names.
    Server {
        /// Whether it is spoken to over TLS.
        tls: bool,
        /// A name or an address (IPv6 without brackets), in lower case.
        host: String,
        /// The port, 80 or 443 when the URL names none.
        port: u16,
    },
}

/// One call, checked: everything in it can be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outgoing {
    /// Who is called.
    pub recipient: Recipient,
    /// The method, `GET` unless the program says otherwise.
    pub method: Method,
    /// Path and query, beginning with `/`.
    pub target: String,
    /// The header fields that the program gives. `Host` may be among them; what frames the message
    /// (`Content-Length`, `Transfer-Encoding`) or belongs to the connection is not.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// The body, empty when there is none.
    pub body: Bytes,
    /// Time until the whole answer is there, further attempts included.
    pub timeout: Duration,
    /// How often it is made again when there is no answer, or one of a gateway that got none (502, 503,
    /// 504). Only a call with an idempotent method is (RFC 9110 section 9.2.2).
    pub retries: u8,
}

impl Outgoing {
    /// About the bytes that it holds.
    pub(crate) fn size(&self) -> usize {
        let fields = self.headers.iter();
        let fields: usize = fields
            .map(|(name, value)| name.as_str().len() + value.len() + FIELD)
            .sum();
        self.target.len() + fields + self.body.len()
    }
}

impl Incoming {
    /// About the bytes that it holds.
    pub fn size(&self) -> usize {
        fields_size(&self.headers) + self.body.len()
    }
}

/// About the bytes that header fields hold.
pub fn fields_size(headers: &HeaderMap) -> usize {
    let fields = headers.iter();
    fields
        .map(|(name, value)| name.as_str().len() + value.len() + FIELD)
        .sum()
}

/// What a header field takes beside its text.
const FIELD: usize = 100;

/// The whole answer to a call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Incoming {
    /// The status.
    pub status: StatusCode,
    /// The header fields.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
    /// Counts it until the hook has it.
    pub arriving: Arriving,
}

/// Why there is no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CallFailureKind {
    /// No address: the pool is empty, or the name is not resolved.
    Unavailable,
    /// No connection could be made.
    Connect,
    /// The answer was not there in time.
    Timeout,
    /// The answer is larger than allowed.
    TooLarge,
    /// The connection broke, or what came is no answer.
    Broken,
}

impl CallFailureKind {
    /// All of them, in the order of their discriminants.
    pub const ALL: [Self; 5] = [
        Self::Unavailable,
        Self::Connect,
        Self::Timeout,
        Self::TooLarge,
        Self::Broken,
    ];

    /// Its name in metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unavailable => "unavailable",
            Self::Connect => "connect",
            Self::Timeout => "timeout",
            Self::TooLarge => "too_large",
            Self::Broken => "broken",
        }
    }

    /// The status that a program sees, as a gateway would answer (RFC 9110 section 15.6): a
    /// check of the status alone must not take a failed call for a good one.
    pub const fn status(self) -> StatusCode {
        match self {
            Self::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
            Self::Timeout => StatusCode::GATEWAY_TIMEOUT,
            Self::Connect | Self::TooLarge | Self::Broken => StatusCode::BAD_GATEWAY,
        }
    }
}

/// Why there is no answer, in words too.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct CallFailure {
    /// What kind.
    pub kind: CallFailureKind,
    /// One line for the program and logs; names the recipient.
    pub message: String,
}

/// What a call gives.
pub type Reply = Result<Incoming, CallFailure>;
