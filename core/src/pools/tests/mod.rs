//! Pools over a scripted DNS server.

#![allow(clippy::unwrap_used)]

mod health;
mod latency;
mod limits;
mod reload;
mod resolving;
mod select;
mod tiers;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::config::{Balance, PoolConfig};
use crate::dns::Resolver;
use crate::dns::tests::dns_server::{Answer, DnsServer};
use crate::dns::tests::{LIMIT, millis, resolver, settings, wait_until};

fn config(targets: &[&str]) -> PoolConfig {
    PoolConfig::new(
        targets
            .iter()
            .map(|target| target.parse().unwrap())
            .collect(),
    )
}

fn configs(pools: &[(&str, &[&str])]) -> BTreeMap<String, PoolConfig> {
    let entry = |(name, targets): &(&str, &[&str])| ((*name).to_owned(), config(targets));
    pools.iter().map(entry).collect()
}

/// One pool without names.
fn pool(config: PoolConfig) -> Arc<Pool> {
    let server = DnsServer::start();
    let configs = BTreeMap::from([("web".to_owned(), config)]);
    let pools = Pools::build(&configs, &resolver(&server), None);
    pools.get("web").unwrap().clone()
}

fn addresses(pool: &Pool) -> Vec<String> {
    let endpoints = pool.snapshot().endpoints;
    endpoints
        .into_iter()
        .map(|endpoint| endpoint.address)
        .collect()
}

#[track_caller]
fn wait_for(pool: &Pool, wanted: &[&str]) {
    wait_until(&format!("{} has {wanted:?}", pool.name()), || {
        addresses(pool) == wanted
    });
}
