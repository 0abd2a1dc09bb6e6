//! The configuration of the process: one internal model, filled from `edgewright.toml`.
//!
//! All durations are [`Duration`](std::time::Duration), all sizes are bytes. What is not written
//! in the file has the default that stands on its field.

mod check;
mod convert;
mod dns;
mod endpoints;
mod error;
mod file;
mod limits;
mod listener_tls;
mod load;
mod log;
mod pools;
mod server;
mod units;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use edgewright_script::path::PathPolicy;
use ipnet::IpNet;

pub use dns::Dns;
pub use limits::{Limits, ScriptLimits};
pub use listener_tls::{ListenerTls, Slot, TlsVersion};
pub use load::{LoadError, Loaded, Overrides, attempt, load};
pub use log::{Format, Level, Log};
pub use pools::{
    BUDGET_WHOLE, Balance, Connections, Ejection, HealthCheck, Initial, LoadBound, PoolConfig,
    PoolLimits, PoolTarget, Probe, Protocol, ProxyProtocol, Retries, Target, TargetError,
    TargetTraits, Thousandths, Timeouts, Tls, check_pool_name, check_zone,
};
pub use server::{Listener, Server, Shutdown, Threads};

/// The name of the configuration file in its folder.
pub const CONFIG_FILE: &str = "edgewright.toml";

/// The name of the program when the configuration names no other.
pub const ROUTES_FILE: &str = "routes.rhai";

/// Everything that `edgewright.toml` can say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// The file it comes from, as the user names it. Absent when there is none.
    pub file: Option<PathBuf>,
    /// `routes`: the program's file, relative to the configuration's folder. Default
    /// `routes.rhai`.
    pub routes: String,
    /// `[server]`: the process itself.
    pub server: Server,
    /// `[[listeners]]`: where clients connect; at least one, no two in each other's way. Default
    /// 127.0.0.1:8080: a try-out must not be open to the network.
    pub listeners: Vec<Listener>,
    /// `[pools.NAME]`: upstreams by name. Default none: a program may bring its own.
    pub pools: BTreeMap<String, PoolConfig>,
    /// `[dns]`: name resolution.
    pub dns: Dns,
    /// `[limits]`: bounds on what a client may send, hold or wait for.
    pub limits: Limits,
    /// `[script]`: bounds on one call of a hook.
    pub script: ScriptLimits,
    /// `[path]`: which ambiguous spellings of a path are kept. Default: each is rejected.
    pub path: PathPolicy,
    /// `[admin] address`: status, reload and metrics. Default 127.0.0.1:9180, since whoever
    /// reaches it can reload; `None` is "off". Port 0 lets the system choose.
    pub admin: Option<SocketAddr>,
    /// `[health] address`: health, readiness and metrics only. Default 127.0.0.1:9181; `None` is
    /// "off". Port 0 lets the system choose.
    pub health: Option<SocketAddr>,
    /// `[files]`: reading outside the configuration's folder.
    pub files: FilesConfig,
    /// `[log]`: the log on standard error.
    pub log: Log,
    /// `[trusted_proxies] cidrs`: networks whose forwarding headers are believed. Default none:
    /// anyone can write such a header.
    pub trusted_proxies: Vec<IpNet>,
}

/// `[files]`: reading outside the configuration's folder.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FilesConfig {
    /// `allow`: absolute folders that may be read besides the configuration's own, such as a
    /// mounted Secret. Default none.
    pub allow: Vec<PathBuf>,
}

impl Default for Config {
    fn default() -> Self {
        let local = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        Self {
            file: None,
            routes: ROUTES_FILE.to_string(),
            server: Server::default(),
            listeners: vec![Listener::plain(local(8080))],
            pools: BTreeMap::new(),
            dns: Dns::default(),
            limits: Limits::default(),
            script: ScriptLimits::default(),
            path: PathPolicy::default(),
            admin: Some(local(9180)),
            health: Some(local(9181)),
            files: FilesConfig::default(),
            log: Log::default(),
            trusted_proxies: Vec::new(),
        }
    }
}
