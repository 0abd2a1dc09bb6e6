//! The response as a program sees it.

use bytes::Bytes;
use http::{HeaderName, HeaderValue, StatusCode};

/// A response that a program can look at, and change in `on_response` and `on_response_body`.
pub trait Response {
    /// The status.
    fn status(&self) -> StatusCode;
    /// Changes the status; framing stays right (204 and 304 have no body, so a change between
    /// those and others is refused by the caller).
    fn set_status(&mut self, status: StatusCode);
    /// Whether the proxy made the response itself.
    fn is_local(&self) -> bool;
    /// The first value of a header field.
    fn header(&self, name: &str) -> Option<&[u8]>;
    /// The same, of a field whose name is parsed already.
    fn field(&self, name: &HeaderName) -> Option<&[u8]>;
    /// All values of a header field, in order.
    fn headers(&self, name: &str) -> Vec<&[u8]>;
    /// Replaces all values of a header field.
    fn set_header(&mut self, name: HeaderName, value: HeaderValue);
    /// Adds a value to a header field.
    fn add_header(&mut self, name: HeaderName, value: HeaderValue);
    /// Removes a header field.
    fn remove_header(&mut self, name: &HeaderName);
    /// The body, or the piece of it that is looked at; `None` when it is not at hand.
    fn body(&self) -> Option<&Bytes>;
    /// Replaces the body, or the piece.
    fn set_body(&mut self, body: Bytes);
    /// Whether nothing comes behind the piece that is looked at.
    fn is_last(&self) -> bool;
}
