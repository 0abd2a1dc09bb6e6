//! The shape of `edgewright.toml`: one struct a table, every key optional, nothing unknown
//! accepted. Values keep their place in the text, so that later checks can point at them.

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::Spanned;

use super::listener_tls::TlsVersion;
use super::log::{Format, Level};
use super::pools;
use super::units::{AutoOrCount, Count, NoneOrSize, Size, Time};

type Value<T> = Option<Spanned<T>>;

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
pub(super) struct File {
    pub routes: Value<String>,
    pub server: Server,
    pub listeners: Vec<Spanned<Listener>>,
    pub pools: BTreeMap<Spanned<String>, pools::Table>,
    pub dns: Dns,
    pub limits: Limits,
    pub script: Script,
    pub path: Path,
    pub admin: Endpoint,
    pub health: Endpoint,
    pub files: Files,
    pub log: Log,
    pub trusted_proxies: TrustedProxies,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
pub(super) struct Server {
    pub threads: Value<AutoOrCount>,
    pub shutdown: Shutdown,
    pub upstream_keepalive: Value<AutoOrCount>,
    pub forwarded_headers: Option<bool>,
    pub zone: Value<String>,
    pub upgrade_socket: Value<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
pub(super) struct Shutdown {
    pub delay: Value<Time>,
    pub drain: Value<Time>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
pub(super) struct Listener {
    pub address: Value<String>,
    pub http2: Option<bool>,
    pub proxy_protocol: Value<bool>,
    pub tls: Value<ListenerTls>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct ListenerTls {
    #[serde(default)]
    pub certificates: Vec<Spanned<CertificateFiles>>,
    pub min_version: Option<TlsVersion>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct CertificateFiles {
    pub cert: Value<String>,
    pub key: Value<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
pub(super) struct Dns {
    pub servers: Vec<Spanned<String>>,
    pub timeout: Value<Time>,
    pub attempts: Value<Count>,
    pub min_ttl: Value<Time>,
    pub max_ttl: Value<Time>,
    pub hold_empty: Value<Time>,
    pub startup_timeout: Value<Time>,
    pub allow: Vec<Spanned<String>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
pub(super) struct Limits {
    pub request_header: Value<Size>,
    pub request_headers: Value<Count>,
    pub uri: Value<Size>,
    pub request_body: Option<NoneOrSize>,
    pub keepalive_requests: Value<Count>,
    pub keepalive_timeout: Value<Time>,
    pub request_read_timeout: Value<Time>,
    pub response_write_timeout: Value<Time>,
    pub connections: Value<AutoOrCount>,
    pub tls_handshake_timeout: Value<Time>,
    pub password_checks: Value<Count>,
    pub mirrors: Value<Count>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
pub(super) struct Script {
    pub operations: Value<Count>,
    pub time: Value<Time>,
    pub memory: Value<Size>,
    pub call_depth: Value<Count>,
    pub string: Value<Size>,
    pub items: Value<Count>,
    pub body: Value<Size>,
    pub bodies: Value<Size>,
    pub fetches: Value<Count>,
    pub fetch_timeout: Value<Time>,
    pub fetch_body: Value<Size>,
    pub waiting: Value<Count>,
    pub waiting_memory: Value<Size>,
    pub compile: Option<bool>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
pub(super) struct Path {
    pub empty_segment: Option<Handling>,
    pub encoded_slash: Option<Handling>,
    pub encoded_backslash: Option<Handling>,
    pub encoded_nul: Option<Handling>,
    pub backslash: Option<Handling>,
    pub double_encoding: Option<Handling>,
    pub semicolon: Option<Handling>,
}

/// The script crate's `Handling`, which knows nothing of serde.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Handling {
    Reject,
    Keep,
}

/// `[admin]` and `[health]`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
pub(super) struct Endpoint {
    pub address: Value<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
pub(super) struct Files {
    pub allow: Vec<Spanned<String>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
pub(super) struct Log {
    pub level: Option<Level>,
    pub format: Option<Format>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
pub(super) struct TrustedProxies {
    pub cidrs: Vec<Spanned<String>>,
}
