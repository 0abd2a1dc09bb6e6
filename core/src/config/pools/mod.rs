//! `[pools.NAME]`: upstreams. Each table of a pool has a file here: its shape in the text, its checks, and
//! what it becomes.

mod balance;
mod connections;
mod ejection;
mod health;
mod limits;
mod retries;
mod target;
mod targets;
mod timeouts;
pub(super) mod tls;

use std::sync::Arc;
use std::time::Duration;

use edgewright_script::program::HashOn;
use serde::Deserialize;
use toml::Spanned;

use super::check::Checks;
use super::units::Time;

pub use balance::{Balance, LoadBound};
pub use connections::{Connections, Protocol, ProxyProtocol};
pub use ejection::{Ejection, Thousandths};
pub use health::{HealthCheck, Initial, Probe};
pub use limits::PoolLimits;
pub use retries::{BUDGET_WHOLE, Retries};
pub use target::{Target, TargetError};
pub use targets::{PoolTarget, TargetTraits, check_zone};
pub use timeouts::Timeouts;
pub use tls::Tls;

/// `[pools.NAME]`. An equal one after a reload keeps its connections and statistics.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolConfig {
    /// `targets`: where requests go; at least one, each once.
    pub targets: Vec<PoolTarget>,
    /// `balance`: which target a request gets.
    pub balance: Balance,
    /// `hash_on`: what a hash is of; `None` when only scripts give keys, and when `balance` is no hash.
    pub hash_on: Option<HashOn>,
    /// `load_bound`: how much of all requests in flight a target of a hash may have. Default: any number.
    pub load_bound: Option<LoadBound>,
    /// `slow_start`: how long the share of a target grows that joins others, or comes back. Default: not at all.
    pub slow_start: Option<Duration>,
    /// `[pools.NAME.timeouts]`.
    pub timeouts: Timeouts,
    /// `[pools.NAME.retries]`.
    pub retries: Retries,
    /// `[pools.NAME.limits]`.
    pub limits: PoolLimits,
    /// `protocol`: what is spoken to the targets.
    pub protocol: Protocol,
    /// `proxy_protocol`: how the targets are told the client's address. Default not at all.
    pub proxy_protocol: Option<ProxyProtocol>,
    /// `[pools.NAME.connections]`.
    pub connections: Connections,
    /// `[pools.NAME.tls]`: none without the table.
    pub tls: Option<Arc<Tls>>,
    /// `[server] zone`: where the proxy itself stands. Targets of the same zone come first.
    pub own_zone: Option<Arc<str>>,
    /// `[pools.NAME.health]`; `None`, the default: targets aren't asked.
    pub health: Option<HealthCheck>,
    /// `[pools.NAME.ejection]`.
    pub ejection: Ejection,
}

impl PoolConfig {
    /// A pool of these targets with defaults for the rest.
    #[must_use]
    pub fn new(targets: Vec<Target>) -> Self {
        Self {
            targets: targets.into_iter().map(Into::into).collect(),
            balance: Balance::default(),
            hash_on: None,
            load_bound: None,
            slow_start: None,
            own_zone: None,
            timeouts: Timeouts::default(),
            retries: Retries::default(),
            limits: PoolLimits::default(),
            protocol: Protocol::default(),
            proxy_protocol: None,
            connections: Connections::default(),
            tls: None,
            health: None,
            ejection: Ejection::default(),
        }
    }

    /// How late targets of this kind are used: only when all with a lower rank are unusable.
    pub(crate) fn rank(&self, traits: &TargetTraits) -> u8 {
        let elsewhere = self.own_zone.is_some() && traits.zone != self.own_zone;
        u8::from(traits.backup) * 2 + u8::from(elsewhere)
    }
}

/// Checks a pool's name, which stands in metrics, logs and scripts.
///
/// # Errors
/// The text says why it can't be one: names are made of ASCII letters, digits, `_`, `-` and `.`,
/// and are not empty.
pub fn check_pool_name(name: &str) -> Result<(), String> {
    if name.is_empty() {
        return Err("a pool's name can't be empty".to_string());
    }
    let fits = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    match name.chars().find(|c| !fits(*c)) {
        None => Ok(()),
        Some(c) => Err(format!(
            "{c:?} can't stand in a pool's name, which is made of letters, digits, `_`, `-` and `.`"
        )),
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
pub(super) struct Table {
    targets: Option<Spanned<Vec<Spanned<targets::Entry>>>>,
    balance: Option<Balance>,
    hash_on: Option<Spanned<String>>,
    load_bound: Option<Spanned<f64>>,
    slow_start: Option<Spanned<Time>>,
    timeouts: timeouts::Table,
    retries: retries::Table,
    limits: limits::Table,
    protocol: Option<Spanned<Protocol>>,
    proxy_protocol: Option<ProxyProtocol>,
    connections: connections::Table,
    tls: Option<Spanned<tls::Table>>,
    health: Option<health::Table>,
    ejection: ejection::Table,
}

/// A pool, and what its TLS needs that is still to be read.
pub(super) struct Taken {
    pub(super) pool: PoolConfig,
    pub(super) tls: Option<tls::Unread>,
}

/// Takes the table of the pool `name`.
pub(super) fn take(checks: &mut Checks<'_>, name: &Spanned<String>, table: Table) -> Taken {
    if let Err(message) = check_pool_name(name.get_ref()) {
        checks.error(&name.span(), message);
    }
    let prefix = format!("pools.{}", name.get_ref());
    let targets = targets::take(checks, name, table.targets);
    let balancing = balance::Given {
        balance: table.balance,
        hash_on: table.hash_on,
        load_bound: table.load_bound,
        slow_start: table.slow_start,
    };
    let balancing = balance::take(checks, name, balancing);
    let has_tls = table.tls.is_some();
    let tls = table.tls;
    Taken {
        tls: tls.and_then(|table| tls::take(checks, &prefix, table, &targets)),
        pool: PoolConfig {
            targets,
            balance: balancing.balance,
            hash_on: balancing.hash_on,
            load_bound: balancing.load_bound,
            slow_start: balancing.slow_start,
            own_zone: None,
            timeouts: timeouts::take(checks, &prefix, table.timeouts),
            retries: retries::take(checks, &prefix, table.retries),
            limits: limits::take(checks, &prefix, table.limits),
            protocol: connections::check_protocol(checks, &prefix, table.protocol, has_tls),
            proxy_protocol: table.proxy_protocol,
            connections: connections::take(checks, &prefix, table.connections),
            tls: None,
            health: table
                .health
                .map(|table| health::take(checks, &prefix, table)),
            ejection: ejection::take(checks, &prefix, table.ejection),
        },
    }
}
