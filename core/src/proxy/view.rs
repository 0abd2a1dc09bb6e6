//! The script's view of Pingora's own request and response: nothing is copied to look at it.

use std::{
    borrow::Cow,
    net::{IpAddr, Ipv4Addr},
    time::Instant,
};

use bytes::Bytes;
use edgewright_script::{
    request::{
        Attempt, Facts, LONGEST_TARGET, MOST_SLOTS, Request, Target, TargetTooLong, Tls, Values,
    },
    response::Response,
    state::Slot,
};
use http::{HeaderName, HeaderValue, StatusCode, Version};
use pingora_http::{RequestHeader, ResponseHeader};
use pingora_proxy::Session;

use super::{client, context::State, hooks::Body, path};
use crate::{generation::Generation, pools::Picked};

/// A request while a hook runs.
pub(super) struct RequestView<'a> {
    pub(super) session: &'a mut Session,
    pub(super) generation: &'a Generation,
    pub(super) state: &'a mut State,
}

impl RequestView<'_> {
    fn header_of(&self) -> &RequestHeader {
        self.session.req_header()
    }

    /// The path that the captures point into.
    pub(super) fn matched_path(&self) -> &str {
        matched_path(self.state, self.path())
    }
}

/// The path that the captures point into: the one that the route matched, even when a hook has
/// set another one since.
pub(super) fn matched_path<'a>(state: &'a State, current: &'a str) -> &'a str {
    let kept = state
        .rare
        .as_ref()
        .and_then(|rare| rare.matched_path.as_deref());
    kept.unwrap_or(current)
}

impl Request for RequestView<'_> {
    fn method(&self) -> &str {
        self.header_of().method.as_str()
    }

    fn scheme(&self) -> &str {
        client::scheme(self.session)
    }

    fn host(&self) -> &str {
        client::host(self.header_of())
    }

    fn path(&self) -> &str {
        self.header_of().uri.path()
    }

    fn raw_path(&self) -> &str {
        let sent = self
            .state
            .rare
            .as_ref()
            .and_then(|rare| rare.raw_path.as_deref());
        sent.unwrap_or_else(|| self.matched_path())
    }

    fn query_string(&self) -> &str {
        self.header_of().uri.query().unwrap_or_default()
    }

    fn client_ip(&self) -> IpAddr {
        client::ip(self.session, &self.generation.config.trusted_proxies)
    }

    fn peer_ip(&self) -> IpAddr {
        client::peer_ip(self.session).unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED))
    }

    fn protocol(&self) -> &str {
        match self.header_of().version {
            Version::HTTP_10 => "HTTP/1.0",
            Version::HTTP_2 => "HTTP/2",
            _ => "HTTP/1.1",
        }
    }

    fn param(&self, name: &str) -> Option<&str> {
        let route = self.generation.route(self.state.route?);
        let index = route.pattern.names().position(|known| known == name)?;
        self.state.captures.get(self.matched_path(), index)
    }

    fn params(&self) -> Vec<(&str, &str)> {
        let Some(route) = self.state.route else {
            return Vec::new();
        };
        let names = self.generation.route(route).pattern.names();
        let path = self.matched_path();
        names
            .enumerate()
            .filter_map(|(index, name)| Some((name, self.state.captures.get(path, index)?)))
            .collect()
    }

    fn header(&self, name: &str) -> Option<&[u8]> {
        self.header_of()
            .headers
            .get(name)
            .map(HeaderValue::as_bytes)
    }

    fn field(&self, name: &HeaderName) -> Option<&[u8]> {
        let value = self.header_of().headers.get(name)?;
        Some(value.as_bytes())
    }

    fn headers(&self, name: &str) -> Vec<&[u8]> {
        let values = self.header_of().headers.get_all(name).into_iter();
        values.map(HeaderValue::as_bytes).collect()
    }

    fn set_header(&mut self, name: HeaderName, value: HeaderValue) {
        // A valid name and value can always be inserted.
        let _ = self.session.req_header_mut().insert_header(name, value);
    }

    fn add_header(&mut self, name: HeaderName, value: HeaderValue) {
        let _ = self.session.req_header_mut().append_header(name, value);
    }

    fn remove_header(&mut self, name: &HeaderName) {
        self.session.req_header_mut().remove_header(name);
    }

    fn set_path(&mut self, path: &str) {
        let matched = self.matched_path().to_owned();
        self.state.rare().matched_path.get_or_insert(matched);
        path::set(self.session.req_header_mut(), path);
    }

    fn facts(&self) -> Facts<'_> {
        facts(self.session, self.generation, self.state)
    }

    fn attempt(&self) -> Attempt<'_> {
        Attempt {
            number: u32::from(self.state.attempts) + 1,
            last_error: self.state.rare.as_ref().and_then(|rare| rare.last_error),
        }
    }

    fn targets(&self) -> Vec<Target> {
        let last = self.state.picked.as_ref().map(Picked::endpoint);
        let rare = self.state.rare.as_deref();
        let tried = rare.map_or(&[][..], |rare| &rare.tried);
        let pools = self.generation.pools();
        let targets = pools.flat_map(|pool| {
            let status = pool.snapshot();
            let name = status.name;
            status.endpoints.into_iter().map(move |endpoint| Target {
                pool: name.clone(),
                failed: last == Some(endpoint.id) || tried.contains(&endpoint.id),
                address: endpoint.address,
                active: endpoint.in_flight,
            })
        });
        targets.collect()
    }

    fn body(&self) -> Option<&Bytes> {
        let rare = self.state.rare.as_ref()?;
        rare.request_body.as_ref().map(|body| &body.bytes)
    }

    fn set_body(&mut self, bytes: Bytes) {
        let rare = self.state.rare.as_mut();
        if let Some(body) = rare.and_then(|rare| rare.request_body.as_mut()) {
            body.set(bytes);
        }
    }

    fn set_query_string(&mut self, query: &str) -> Result<(), TargetTooLong> {
        let path = self.path();
        let length = path.len() + 1 + query.len();
        if length > LONGEST_TARGET {
            return Err(TargetTooLong(length));
        }
        let mut target = String::with_capacity(length);
        target.push_str(path);
        if !query.is_empty() {
            target.push('?');
            target.push_str(query);
        }
        path::set_target(self.session.req_header_mut(), &target);
        Ok(())
    }

    fn tls(&self) -> Option<Tls<'_>> {
        let tls = self.session.digest()?.ssl_digest.as_ref()?;
        Some(Tls {
            version: &tls.version,
            cipher: &tls.cipher,
            // Where `server::agreed` puts it.
            sni: tls.organization.as_deref(),
        })
    }

    fn values(&self) -> Option<&Values> {
        self.state.rare.as_ref().map(|rare| &rare.values)
    }

    fn values_mut(&mut self) -> &mut Values {
        &mut self.state.rare().values
    }

    fn id(&mut self) -> String {
        let id = self
            .state
            .rare()
            .id
            .get_or_insert_with(|| uuid::Uuid::now_v7().to_string());
        id.clone()
    }

    fn hold(&mut self, slot: Slot) -> bool {
        let slots = &mut self.state.rare().slots;
        let has_room = slots.len() < MOST_SLOTS;
        if has_room {
            slots.push(slot);
        }
        has_room
    }
}

/// What is known of the way that a request took.
fn facts<'a>(session: &Session, generation: &'a Generation, state: &'a State) -> Facts<'a> {
    let rare = state.rare.as_deref();
    let answered = rare.and_then(|rare| rare.upstream_answered);
    let since = |time: Instant| time.saturating_duration_since(state.started);
    Facts {
        pool: state.pool.map(|pool| generation.pool(pool).0.name()),
        upstream: state.picked.as_ref().map(Picked::address),
        attempts: state.attempts,
        duration: state.started.elapsed(),
        upstream_duration: answered.map(since),
        bytes_sent: session.body_bytes_sent() as u64,
        error: rare
            .and_then(|rare| rare.failure.as_deref())
            .map(Cow::Borrowed),
    }
}

/// A response while a hook has it.
pub(super) struct ResponseView<'a> {
    pub(super) header: &'a mut ResponseHeader,
    pub(super) is_local: bool,
    /// The body or a piece of it, for a hook that has it.
    pub(super) body: Option<&'a mut Body>,
}

impl Response for ResponseView<'_> {
    fn status(&self) -> StatusCode {
        self.header.status
    }

    fn set_status(&mut self, status: StatusCode) {
        // A `StatusCode` is always a valid one.
        let _ = self.header.set_status(status);
    }

    fn is_local(&self) -> bool {
        self.is_local
    }

    fn header(&self, name: &str) -> Option<&[u8]> {
        self.header.headers.get(name).map(HeaderValue::as_bytes)
    }

    fn field(&self, name: &HeaderName) -> Option<&[u8]> {
        self.header.headers.get(name).map(HeaderValue::as_bytes)
    }

    fn headers(&self, name: &str) -> Vec<&[u8]> {
        let values = self.header.headers.get_all(name).into_iter();
        values.map(HeaderValue::as_bytes).collect()
    }

    fn set_header(&mut self, name: HeaderName, value: HeaderValue) {
        let _ = self.header.insert_header(name, value);
    }

    fn add_header(&mut self, name: HeaderName, value: HeaderValue) {
        let _ = self.header.append_header(name, value);
    }

    fn remove_header(&mut self, name: &HeaderName) {
        self.header.remove_header(name);
    }

    fn body(&self) -> Option<&Bytes> {
        self.body.as_ref().map(|body| &body.bytes)
    }

    fn set_body(&mut self, bytes: Bytes) {
        if let Some(body) = &mut self.body {
            body.bytes = bytes;
        }
    }

    fn is_last(&self) -> bool {
        self.body.as_ref().is_none_or(|body| body.is_last)
    }
}
