//! Name resolution.

use crate::metrics::{
    family::{Families, Kind},
    sample::{DnsHostSample, DnsSample},
};

pub(super) fn describe(sample: &DnsSample, families: &mut Families) {
    {
        let mut family = families.family(
            "edgewright_dns_lookups_total",
            "Lookups by name, record type and result.",
            Kind::Counter,
        );
        for lookup in &sample.lookups {
            let labels = [
                ("name", lookup.name.as_str()),
                ("type", lookup.record_type),
                ("result", lookup.result),
            ];
            family.add(&labels, lookup.total as f64);
        }
    }
    families
        .family(
            "edgewright_dns_refused_addresses_total",
            "Addresses in answers that are not used: link-local, metadata services, impossible ones.",
            Kind::Counter,
        )
        .add(&[], sample.refused as f64);
    if let Some(duration) = &sample.duration {
        families
            .histograms(
                "edgewright_dns_lookup_duration_seconds",
                "How long lookups took.",
            )
            .add_histogram(&[], duration);
    }
    let mut hosts = |name, help, value: &dyn Fn(&DnsHostSample) -> Option<f64>| {
        let mut family = families.family(name, help, Kind::Gauge);
        for host in &sample.hosts {
            if let Some(value) = value(host) {
                family.add(&[("name", &host.name)], value);
            }
        }
    };
    hosts(
        "edgewright_dns_hosts",
        "Addresses in use for the name, or servers of the service.",
        &|host| Some(host.addresses as f64),
    );
    hosts(
        "edgewright_dns_stale",
        "1 when the addresses are kept although the last lookup failed.",
        &|host| Some(f64::from(u8::from(host.stale))),
    );
    hosts(
        "edgewright_dns_ttl_seconds",
        "The smallest TTL of the answers in use.",
        &|host| host.ttl_seconds.map(|ttl| ttl as f64),
    );
    hosts(
        "edgewright_dns_last_success_timestamp_seconds",
        "When the name was last answered with addresses.",
        &|host| host.last_success,
    );
}
