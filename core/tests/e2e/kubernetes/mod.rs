//! `deploy/kubernetes` fits together and fits the proxy: what can be told without a cluster.

mod fields;
mod folders;
mod pods;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use ::edgewright::config::{self, Config, Overrides};
use serde_yaml::Value;

use self::fields::wrong_in;
use self::folders::{Kustomization, documents, list, read, root, text};
use self::pods::container;
use crate::support::certificates::Authority;
use crate::support::command::{Folder, edgewright};

/// Where the Secret of an overlay is mounted: in a test its files lie in the configuration's own folder.
const TLS_SECRET: &str = "/var/run/secrets/edgewright-tls";

/// Those that can be applied, with their configuration in a folder.
fn wholes() -> Vec<(Kustomization, Folder)> {
    let all = Kustomization::all().into_iter();
    let wholes: Vec<_> = all
        .filter(|one| one.value["kind"] == "Kustomization")
        .map(|one| {
            let folder = Folder::with(&[]);
            let certificate = Authority::new("of the test").issue(&["gateway.example.com"]);
            folder.write("tls.crt", &certificate.chain);
            folder.write("tls.key", &certificate.key);
            for (name, content) in one.configuration() {
                let here = folder.path().to_str().unwrap();
                folder.write(&name, &content.replace(TLS_SECRET, here));
            }
            (one, folder)
        })
        .collect();
    assert!(wholes.len() >= 2, "only {} can be applied", wholes.len());
    wholes
}

fn settings(folder: &Folder) -> Config {
    match config::load(folder.path(), &Overrides::default()) {
        Ok(loaded) => loaded.config,
        Err(errors) => panic!("{errors}"),
    }
}

/// The one manifest of this kind that isn't a patch: that of the base.
fn base(kind: &str) -> Value {
    let base = Kustomization::read(&root().join("base"));
    let mut found = base.of_kind(kind);
    assert_eq!(found.len(), 1, "{kind}");
    found.remove(0)
}

fn files_below(folder: &Path, files: &mut BTreeSet<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files_below(&path, files);
        } else {
            files.insert(path);
        }
    }
}

#[test]
fn every_file_that_is_named_is_there_and_every_file_is_named() {
    let all = Kustomization::all();
    let mut named: BTreeSet<PathBuf> = all
        .iter()
        .map(|one| one.folder.join("kustomization.yaml"))
        .collect();
    for one in &all {
        for path in one.named() {
            assert!(path.exists(), "{} is missing", path.display());
            named.insert(fs::canonicalize(path).unwrap());
        }
    }
    let mut there = BTreeSet::new();
    files_below(&fs::canonicalize(root()).unwrap(), &mut there);
    let forgotten: Vec<_> = there.difference(&named).collect();
    assert!(forgotten.is_empty(), "nothing names {forgotten:?}");
}

#[test]
fn every_field_is_one_that_the_cluster_knows() {
    let mut files = BTreeSet::new();
    files_below(&root(), &mut files);
    let manifests = files
        .iter()
        .filter(|path| path.extension().is_some_and(|ending| ending == "yaml"));
    let mut wrong = Vec::new();
    for path in manifests {
        for manifest in documents(path) {
            let found = wrong_in(&manifest).into_iter();
            wrong.extend(found.map(|what| format!("{}: {what}", path.display())));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn each_configuration_passes_the_check() {
    for (one, folder) in wholes() {
        let ended = edgewright(["check".as_ref(), folder.path()]);
        assert_eq!(ended.code, Some(0), "{}: {ended:?}", one.folder.display());
        let warned = ended.text().contains("warning");
        assert!(!warned, "{}: {ended:?}", one.folder.display());
    }
}

/// What has to be so for a changed ConfigMap to go live in running pods.
#[test]
fn the_configmap_is_mounted_so_that_changes_arrive() {
    for one in Kustomization::all() {
        for generator in list(&one.value["configMapGenerator"]) {
            assert_eq!(generator["name"], *"edgewright", "{}", one.folder.display());
            let options = &generator["options"];
            assert_eq!(
                options["disableNameSuffixHash"],
                true,
                "{}",
                one.folder.display()
            );
        }
    }
    let deployment = base("Deployment");
    let volumes = list(&deployment["spec"]["template"]["spec"]["volumes"]);
    let volume = volumes
        .iter()
        .find(|volume| volume["configMap"]["name"] == *"edgewright")
        .expect("no volume with the ConfigMap");
    let container = container();
    let mount = list(&container["volumeMounts"])
        .iter()
        .find(|mount| mount["name"] == volume["name"])
        .expect("the ConfigMap is not mounted");
    assert_eq!(mount["mountPath"], *"/etc/edgewright");
    assert!(mount["subPath"].is_null(), "a subPath never changes");
    // The folder that the image serves.
    let image = read(&root().join("../../Dockerfile"));
    assert!(image.contains(r#"CMD ["run", "/etc/edgewright"]"#));
}

#[test]
fn alerts_are_about_metrics_that_there_are() {
    let operations = read(&root().join("../../docs/operations.md"));
    let monitoring = Kustomization::read(&root().join("components/monitoring"));
    let mut asked = 0;
    for rule in monitoring.of_kind("PrometheusRule") {
        for group in list(&rule["spec"]["groups"]) {
            for alert in list(&group["rules"]) {
                let words = text(&alert["expr"])
                    .split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
                    .filter(|word| word.starts_with("edgewright_"));
                for metric in words {
                    assert!(operations.contains(&format!("| `{metric}`")), "{metric}");
                    asked += 1;
                }
            }
        }
    }
    assert!(asked >= 5, "{asked}");
}
