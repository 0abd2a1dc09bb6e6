//! A job as it stands in its folder.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;

/// The folder that all jobs are in.
fn jobs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/oracle/jobs")
}

/// The names of all jobs.
pub fn names() -> BTreeSet<String> {
    fs::read_dir(jobs())
        .unwrap()
        .map(Result::unwrap)
        .filter(|entry| entry.path().is_dir())
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect()
}

/// A folder below `jobs`.
pub struct Job {
    pub spec: Spec,
    /// All files but `requests.toml`: name and text.
    pub files: Vec<(String, String)>,
}

/// `requests.toml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// What the job is, for readers.
    #[serde(rename = "about")]
    _about: String,
    /// Fields of responses that must be the same.
    #[serde(default)]
    pub response_headers: Vec<String>,
    /// Fields of requests at the upstreams that must be the same.
    #[serde(default)]
    pub upstream_headers: Vec<String>,
    #[serde(default)]
    pub upstreams: BTreeMap<String, UpstreamSpec>,
    /// Differences of whichever requests have them; each must be one of at least one.
    #[serde(default)]
    pub differences: Vec<Difference>,
    pub requests: Vec<RequestSpec>,
}

impl Spec {
    fn all_differences(&self) -> impl Iterator<Item = &Difference> {
        let of_requests = self
            .requests
            .iter()
            .flat_map(|request| &request.differences);
        self.differences.iter().chain(of_requests)
    }
}

/// How an upstream answers: 200 and its own name, unless one of `answers` fits.
#[derive(Deserialize, Clone)]
#[serde(deny_unknown_fields)]
pub struct UpstreamSpec {
    #[serde(default)]
    pub answers: Vec<Answer>,
}

#[derive(Deserialize, Clone)]
#[serde(deny_unknown_fields)]
pub struct Answer {
    /// Fits when this stands in the request's head or body; always when it is not given.
    pub when: Option<String>,
    #[serde(default = "ok")]
    pub status: u16,
    #[serde(default)]
    pub headers: Vec<String>,
    #[serde(default)]
    pub body: String,
}

fn ok() -> u16 {
    200
}

/// One request, and what is known of it beforehand.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RequestSpec {
    /// What it shows.
    pub about: String,
    /// Method and target.
    pub send: String,
    pub host: Option<String>,
    #[serde(default)]
    pub headers: Vec<String>,
    pub body: Option<String>,
    /// Facts that must hold on both sides. `~ PATTERN` is a regular expression, as nginx writes it; a
    /// fact that has one need not be the same text on both sides.
    #[serde(default)]
    pub expect: BTreeMap<String, toml::Value>,
    /// Pairs of facts that must be equal on each side.
    #[serde(default)]
    pub equal: Vec<[String; 2]>,
    #[serde(default)]
    pub differences: Vec<Difference>,
}

/// A fact in which the two differ, and why.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Difference {
    pub of: String,
    pub nginx: toml::Value,
    pub edgewright: toml::Value,
    pub because: String,
}

impl Job {
    pub fn read(name: &str) -> Self {
        let mut files = Vec::new();
        let mut spec = None;
        for entry in fs::read_dir(jobs().join(name)).unwrap() {
            let path = entry.unwrap().path();
            let text = fs::read_to_string(&path).unwrap();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            if name == "requests.toml" {
                spec = Some(toml::from_str(&text).unwrap_or_else(|e| panic!("{name}: {e}")));
            } else {
                files.push((name, text));
            }
        }
        let spec: Spec = spec.unwrap_or_else(|| panic!("{name} has no requests.toml"));
        for difference in spec.all_differences() {
            let because = &difference.because;
            assert!(because.len() > 5, "{name}: `{because}` explains nothing");
        }
        Self { spec, files }
    }

    /// The text of one of its files.
    pub fn file(&self, name: &str) -> Option<&str> {
        let found = self.files.iter().find(|(file, _)| file == name)?;
        Some(&found.1)
    }
}
