//! What is told of the certificates of listeners: in the log, in metrics and in `/status`.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::SocketAddr,
    time::{SystemTime, UNIX_EPOCH},
};

use edgewright_script::diagnostic::Diagnostic;
use serde::Serialize;

use super::{Place, TlsListeners};

/// A certificate in `/status`.
#[derive(Debug, Serialize)]
pub struct CertificateStatus {
    /// The listener.
    listener: String,
    /// The file, as the settings name it.
    file: String,
    /// The host names and addresses that it is for; none when nothing is shown.
    pub(super) names: Vec<String>,
    /// The kind of its key.
    key: Option<&'static str>,
    /// When it begins to count, in seconds since the epoch.
    not_before: Option<f64>,
    /// When it ends to count, in seconds since the epoch.
    not_after: Option<f64>,
    /// Why what the file holds now is not what is shown.
    error: Option<String>,
}

/// A certificate file at a scrape.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CertificateSample {
    /// The file, as the settings name it.
    pub name: String,
    /// When what is shown ends to count, in seconds since the epoch; `None` when nothing is shown.
    pub not_after: Option<f64>,
    /// Whether what the file holds now can't be shown.
    pub failed: bool,
}

impl TlsListeners {
    /// One line for each certificate that can't be used.
    pub fn problems(&self) -> Vec<String> {
        let told = self.unused_places().map(|(address, place, problem)| {
            let (file, instead) = (&place.cert, place.instead());
            format!(
                "certificate not used listener={address} file={file}: {instead}: {}",
                problem.summary()
            )
        });
        told.collect()
    }

    /// The same in short, without the reasons: the file, and what is shown in its place. Each once.
    pub fn unused(&self) -> Vec<String> {
        let told = self.unused_places().map(|(_, place, _)| {
            // A name may hold what would end a line.
            format!("{}: {}", place.cert.escape_debug(), place.instead())
        });
        let told: BTreeSet<_> = told.collect();
        told.into_iter().collect()
    }

    fn unused_places(&self) -> impl Iterator<Item = (SocketAddr, &Place, &Diagnostic)> {
        self.places()
            .filter_map(|(address, place)| Some((address, place, place.problem.as_ref()?)))
    }

    /// For `/status`.
    pub fn status(&self) -> Vec<CertificateStatus> {
        let all = self.places().map(|(address, place)| {
            let shown = place.shown.as_ref();
            CertificateStatus {
                listener: address.to_string(),
                file: place.cert.clone(),
                names: names(place),
                key: shown.map(|shown| shown.kind()),
                not_before: shown.map(|shown| seconds(shown.validity().from)),
                not_after: shown.map(|shown| seconds(shown.validity().until)),
                error: place.problem.as_ref().map(|problem| problem.summary()),
            }
        });
        all.collect()
    }

    /// For a scrape: one for each file, which several listeners may show.
    pub fn samples(&self) -> Vec<CertificateSample> {
        let mut samples = BTreeMap::new();
        for (_, place) in self.places() {
            let name = &place.cert;
            let sample = samples.entry(name).or_insert_with(|| CertificateSample {
                name: name.clone(),
                ..CertificateSample::default()
            });
            let until = place
                .shown
                .as_ref()
                .map(|one| seconds(one.validity().until));
            sample.not_after = sample.not_after.or(until);
            sample.failed |= place.problem.is_some();
        }
        samples.into_values().collect()
    }
}

impl Place {
    /// What is shown when what the files hold can't be.
    fn instead(&self) -> &'static str {
        match self.shown {
            Some(_) => "the one before goes on",
            None => "it is left out",
        }
    }
}

fn names(place: &Place) -> Vec<String> {
    let Some(shown) = &place.shown else {
        return Vec::new();
    };
    let hosts = shown.names().iter().map(ToString::to_string);
    let addresses = shown.addresses().iter().map(ToString::to_string);
    hosts.chain(addresses).collect()
}

fn seconds(time: SystemTime) -> f64 {
    time.duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_secs_f64()
}
