//! The configuration in force, and attempts to replace it.

use crate::metrics::{
    family::{Families, Kind},
    sample::ReloadSample,
};

pub(super) fn describe(sample: &ReloadSample, families: &mut Families) {
    {
        let mut family = families.family(
            "edgewright_config_reloads_total",
            "Attempts to load the configuration by result.",
            Kind::Counter,
        );
        let results = [
            ("loaded", sample.loaded),
            ("unchanged", sample.unchanged),
            ("failed", sample.failed),
        ];
        for (result, total) in results {
            family.add(&[("result", result)], total as f64);
        }
    }
    families
        .family(
            "edgewright_config_last_reload_successful",
            "1 when the last attempt to load the configuration did not fail.",
            Kind::Gauge,
        )
        .add(&[], f64::from(u8::from(sample.last_successful)));
    families
        .family(
            "edgewright_config_watch_errors_total",
            "Failures to watch the configuration's files.",
            Kind::Counter,
        )
        .add(&[], sample.watch_errors as f64);
    if let Some(time) = sample.last_success {
        families
            .family(
                "edgewright_config_last_reload_success_timestamp_seconds",
                "When the configuration in force was loaded.",
                Kind::Gauge,
            )
            .add(&[], time);
    }
    if let Some(duration) = sample.last_duration {
        families
            .family(
                "edgewright_config_last_reload_duration_seconds",
                "How long the last attempt to load the configuration took.",
                Kind::Gauge,
            )
            .add(&[], duration);
    }
    families
        .family(
            "edgewright_config_degraded",
            "1 while the copy of the last good files serves, since the files were refused at the start.",
            Kind::Gauge,
        )
        .add(&[], f64::from(u8::from(sample.degraded)));
    if let Some(failures) = sample.keep_failures {
        families
            .family(
                "edgewright_last_good_failures_total",
                "How often the copy of good files could not be kept.",
                Kind::Counter,
            )
            .add(&[], failures as f64);
    }
    if !sample.revision.is_empty() {
        families
            .family(
                "edgewright_config_info",
                "The revision of the configuration in force.",
                Kind::Gauge,
            )
            .add(&[("revision", &sample.revision)], 1.0);
    }
}
