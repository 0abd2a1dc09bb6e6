//! Which metrics there are, and where their values come from.

mod clients;
mod dns;
mod failures;
mod host;
mod program;
mod reloads;
mod routes;
mod tls;
mod upstreams;

use super::family::{Families, Kind};
use super::sample::ScrapeInput;
use super::{Metrics, health, process, script};
use std::time::Instant;

/// Writes all metrics as text.
pub(super) fn render(metrics: &Metrics, input: &ScrapeInput) -> Vec<u8> {
    let mut families = Families::default();
    routes::describe(&metrics.scrape_routes(Instant::now()), &mut families);
    let pools = metrics.scrape_pools(Instant::now());
    upstreams::describe(&pools, input, &mut families);
    health::describe(&pools, input, &mut families);
    program::outbound(metrics, &mut families);
    program::auth(metrics, &mut families);
    program::suspended_hooks(input, &mut families);
    clients::describe(metrics, input.mirrors, &mut families);
    tls::describe(metrics, &input.certificates, &mut families);
    reloads::describe(&input.reload, &mut families);
    families
        .family(
            "edgewright_config_generations",
            "Configurations in memory: the one in force, and those that requests still use.",
            Kind::Gauge,
        )
        .add(&[], metrics.generations() as f64);
    dns::describe(&input.dns, &mut families);
    program::state(&input.state, &mut families);
    program::background(metrics, &mut families);
    script::describe(&input.script, &mut families);
    program::jwks(&input.jwks, &mut families);
    host::describe(input, &mut families);
    if let Some(sample) = process::read() {
        process::describe(&sample, &mut families);
    }
    families.finish()
}
