//! TLS towards clients. Nothing without a listener that speaks it.

use super::super::Metrics;
use super::super::family::{Families, Kind};
use crate::tls::CertificateSample;

pub(super) fn describe(
    metrics: &Metrics,
    certificates: &[CertificateSample],
    families: &mut Families,
) {
    if certificates.is_empty() {
        return;
    }
    {
        let mut family = families.family(
            "edgewright_tls_handshakes_total",
            "TLS handshakes with clients, by result.",
            Kind::Counter,
        );
        for (result, done) in [("done", true), ("failed", false)] {
            family.add(&[("result", result)], metrics.tls_handshakes(done) as f64);
        }
    }
    {
        let mut family = families.family(
            "edgewright_tls_certificate_not_after_timestamp_seconds",
            "When the certificate that is shown expires.",
            Kind::Gauge,
        );
        for sample in certificates {
            if let Some(until) = sample.not_after {
                family.add(&[("name", &sample.name)], until);
            }
        }
    }
    let mut family = families.family(
        "edgewright_tls_certificate_failed",
        "1 while what the certificate's files hold can't be used, and an earlier one or none is shown.",
        Kind::Gauge,
    );
    for sample in certificates {
        let failed = u8::from(sample.failed);
        family.add(&[("name", &sample.name)], failed.into());
    }
}
