//! `[pools.NAME]`: upstreams. Each table of a pool has a file here: its shape in the text, its checks, and
//! what it becomes.

mod balance;
mod connections;
mod ejection;
mod health;
mod limits;
mod retries;
mod target;
mod timeouts;
pub(super) mod tls;

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::Deserialize;
use toml::Spanned;

use super::check::Checks;

pub use balance::Balance;
pub use connections::{Connections, Protocol, ProxyProtocol};
pub use ejection::{Ejection, Thousandths};
pub use health::{HealthCheck, Initial, Probe};
pub use limits::PoolLimits;
pub use retries::{BUDGET_WHOLE, Retries};
pub use target::{Target, TargetError};
pub use timeouts::Timeouts;
pub use tls::Tls;

/// `[pools.NAME]`. An equal one after a reload keeps its connections and statistics.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolConfig {
    /// `targets`: where requests go; at least one, each once.
    pub targets: Vec<Target>,
    /// `balance`: which target a request gets.
    pub balance: Balance,
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
            targets,
            balance: Balance::default(),
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
    targets: Option<Spanned<Vec<Spanned<String>>>>,
    balance: Option<Balance>,
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
    let targets = targets(checks, name, table.targets);
    let has_tls = table.tls.is_some();
    let tls = table.tls;
    Taken {
        tls: tls.and_then(|table| tls::take(checks, &prefix, table, &targets)),
        pool: PoolConfig {
            targets,
            balance: table.balance.unwrap_or_default(),
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

fn targets(
    checks: &mut Checks<'_>,
    name: &Spanned<String>,
    given: Option<Spanned<Vec<Spanned<String>>>>,
) -> Vec<Target> {
    let (given, span) = match given {
        Some(given) => (given.get_ref().clone(), given.span()),
        None => (Vec::new(), name.span()),
    };
    if given.is_empty() {
        checks.error_with_help(
            &span,
            format!("pool `{}` has no targets", name.get_ref()),
            "write targets = [\"host:port\"]",
        );
    }
    let mut seen = BTreeSet::new();
    let mut targets = Vec::new();
    for text in &given {
        match text.get_ref().parse::<Target>() {
            Err(error) => checks.error(&text.span(), error.to_string()),
            Ok(target) if !seen.insert(target.clone()) => {
                checks.error(&text.span(), format!("`{target}` is listed twice"));
            }
            Ok(target) => targets.push(target),
        }
    }
    targets
}
