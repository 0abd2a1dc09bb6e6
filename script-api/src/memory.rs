//! A request and a response in memory: what tests, benchmarks and tools run a program against.

use std::{
    net::{IpAddr, Ipv4Addr},
    sync::Arc,
};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

use crate::{
    request::{
        Attempt, Facts, LONGEST_TARGET, MOST_SLOTS, Request, Target, TargetTooLong, Tls, Values,
    },
    response::Response,
    state::Slot,
};

/// A request without a socket.
#[derive(Debug, Clone)]
pub struct MemoryRequest {
    /// The method.
    pub method: String,
    /// The host, without a port.
    pub host: String,
    /// The path in normal form.
    pub path: String,
    /// The path as it was sent.
    pub raw_path: String,
    /// What stands behind the `?`.
    pub query: String,
    /// The header fields.
    pub headers: HeaderMap,
    /// The client's address.
    pub client_ip: IpAddr,
    /// Captures of the matched route.
    pub params: Vec<(String, String)>,
    /// The body, once it was read.
    pub body: Option<Bytes>,
    /// Slots that it holds.
    pub slots: Vec<Arc<Slot>>,
    /// What hooks have left for later ones.
    pub values: Values,
}

impl MemoryRequest {
    /// A request to `host` without header fields, from 127.0.0.1; `target` is a path in normal
    /// form with or without a query.
    pub fn new(method: &str, host: &str, target: &str) -> Self {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        Self {
            method: method.to_owned(),
            host: host.to_owned(),
            path: path.to_owned(),
            raw_path: path.to_owned(),
            query: query.to_owned(),
            headers: HeaderMap::new(),
            client_ip: IpAddr::V4(Ipv4Addr::LOCALHOST),
            params: Vec::new(),
            body: None,
            slots: Vec::new(),
            values: Values::default(),
        }
    }

    /// Adds a header field.
    #[must_use]
    pub fn with_header(mut self, name: &'static str, value: &'static str) -> Self {
        self.headers.append(
            HeaderName::from_static(name),
            HeaderValue::from_static(value),
        );
        self
    }
}

impl Request for MemoryRequest {
    fn method(&self) -> &str {
        &self.method
    }
    fn scheme(&self) -> &str {
        "http"
    }
    fn host(&self) -> &str {
        &self.host
    }
    fn path(&self) -> &str {
        &self.path
    }
    fn raw_path(&self) -> &str {
        &self.raw_path
    }
    fn query_string(&self) -> &str {
        &self.query
    }
    fn client_ip(&self) -> IpAddr {
        self.client_ip
    }
    fn peer_ip(&self) -> IpAddr {
        self.client_ip
    }
    fn protocol(&self) -> &str {
        "HTTP/1.1"
    }
    fn param(&self, name: &str) -> Option<&str> {
        self.params
            .iter()
            .find_map(|(key, value)| (key == name).then_some(value.as_str()))
    }
    fn params(&self) -> Vec<(&str, &str)> {
        self.params
            .iter()
            .map(|(key, value)| (key.as_str(), value.as_str()))
            .collect()
    }
    fn header(&self, name: &str) -> Option<&[u8]> {
        self.headers.get(name).map(HeaderValue::as_bytes)
    }
    fn field(&self, name: &HeaderName) -> Option<&[u8]> {
        self.headers.get(name).map(HeaderValue::as_bytes)
    }
    fn headers(&self, name: &str) -> Vec<&[u8]> {
        let values = self.headers.get_all(name).into_iter();
        values.map(HeaderValue::as_bytes).collect()
    }
    fn set_header(&mut self, name: HeaderName, value: HeaderValue) {
        self.headers.insert(name, value);
    }
    fn add_header(&mut self, name: HeaderName, value: HeaderValue) {
        self.headers.append(name, value);
    }
    fn remove_header(&mut self, name: &HeaderName) {
        self.headers.remove(name);
    }
    fn set_path(&mut self, path: &str) {
        path.clone_into(&mut self.path);
    }
    fn facts(&self) -> Facts<'_> {
        Facts::default()
    }
    fn attempt(&self) -> Attempt<'_> {
        Attempt {
            number: 1,
            last_error: None,
        }
    }
    fn targets(&self) -> Vec<Target> {
        Vec::new()
    }
    fn body(&self) -> Option<&Bytes> {
        self.body.as_ref()
    }
    fn set_body(&mut self, body: Bytes) {
        self.body = Some(body);
    }
    fn set_query_string(&mut self, query: &str) -> Result<(), TargetTooLong> {
        let length = self.path.len() + 1 + query.len();
        if length > LONGEST_TARGET {
            return Err(TargetTooLong(length));
        }
        query.clone_into(&mut self.query);
        Ok(())
    }
    fn tls(&self) -> Option<Tls<'_>> {
        None
    }
    fn values(&self) -> Option<&Values> {
        Some(&self.values)
    }
    fn values_mut(&mut self) -> &mut Values {
        &mut self.values
    }
    fn id(&mut self) -> String {
        "memory".to_owned()
    }
    fn hold(&mut self, slot: Slot) -> bool {
        let has_room = self.slots.len() < MOST_SLOTS;
        if has_room {
            self.slots.push(Arc::new(slot));
        }
        has_room
    }
}

/// A response header without a socket.
#[derive(Debug, Clone)]
pub struct MemoryResponse {
    /// The status.
    pub status: StatusCode,
    /// The header fields.
    pub headers: HeaderMap,
    /// Whether the proxy made it itself.
    pub is_local: bool,
    /// The body.
    pub body: Bytes,
}

impl Response for MemoryResponse {
    fn status(&self) -> StatusCode {
        self.status
    }
    fn set_status(&mut self, status: StatusCode) {
        self.status = status;
    }
    fn is_local(&self) -> bool {
        self.is_local
    }
    fn header(&self, name: &str) -> Option<&[u8]> {
        self.headers.get(name).map(HeaderValue::as_bytes)
    }
    fn field(&self, name: &HeaderName) -> Option<&[u8]> {
        self.headers.get(name).map(HeaderValue::as_bytes)
    }
    fn headers(&self, name: &str) -> Vec<&[u8]> {
        let values = self.headers.get_all(name).into_iter();
        values.map(HeaderValue::as_bytes).collect()
    }
    fn set_header(&mut self, name: HeaderName, value: HeaderValue) {
        self.headers.insert(name, value);
    }
    fn add_header(&mut self, name: HeaderName, value: HeaderValue) {
        self.headers.append(name, value);
    }
    fn remove_header(&mut self, name: &HeaderName) {
        self.headers.remove(name);
    }
    fn body(&self) -> Option<&Bytes> {
        Some(&self.body)
    }
    fn set_body(&mut self, body: Bytes) {
        self.body = body;
    }
    fn is_last(&self) -> bool {
        true
    }
}
