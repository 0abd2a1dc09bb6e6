//! `deploy/kubernetes` fits together and fits the proxy: what can be told without a cluster.

mod fields;
mod folders;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use edgewright::config::{self, Config, Overrides};
use serde_yaml::Value;

use self::fields::wrong_in;
use self::folders::{Kustomization, documents, list, read, root, text};
use crate::support::command::{Folder, edgewright};

/// Those that can be applied: they have a configuration.
fn wholes() -> Vec<(Kustomization, Folder)> {
    let all = Kustomization::all().into_iter();
    let wholes: Vec<_> = all
        .filter(|one| one.value["kind"] == "Kustomization")
        .map(|one| {
            let folder = Folder::with(&[]);
            for (name, content) in one.configuration() {
                folder.write(&name, &content);
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

fn container() -> Value {
    let deployment = base("Deployment");
    let containers = list(&deployment["spec"]["template"]["spec"]["containers"]);
    assert_eq!(containers.len(), 1);
    containers[0].clone()
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

/// Ports of all containers of the pods, by name.
fn ports(one: &Kustomization) -> Vec<(String, u64)> {
    let mut ports = Vec::new();
    for deployment in one.of_kind("Deployment") {
        for container in list(&deployment["spec"]["template"]["spec"]["containers"]) {
            for port in list(&container["ports"]) {
                let number = port["containerPort"].as_u64().unwrap();
                ports.push((text(&port["name"]).to_owned(), number));
            }
        }
    }
    ports
}

#[test]
fn ports_and_probes_are_those_of_the_configuration() {
    for (one, folder) in wholes() {
        let place = one.folder.display();
        let config = settings(&folder);
        let ports = ports(&one);
        for listener in &config.listeners {
            let port = u64::from(listener.address.port());
            assert!(
                listener.address.ip().is_unspecified(),
                "{place}: {listener:?}"
            );
            assert!(
                ports.iter().any(|(_, known)| *known == port),
                "{place}: {port} is no port"
            );
        }
        let health = config.health.expect("the kubelet asks there");
        assert!(health.ip().is_unspecified(), "{place}: {health}");
        assert!(
            ports.contains(&("health".to_owned(), u64::from(health.port()))),
            "{place}"
        );
        assert!(
            config.admin.is_none_or(|admin| admin.ip().is_loopback()),
            "{place}"
        );
        for service in one.of_kind("Service") {
            for port in list(&service["spec"]["ports"]) {
                let target = text(&port["targetPort"]);
                assert!(
                    ports.iter().any(|(name, _)| name == target),
                    "{place}: {service:?}"
                );
            }
        }
    }
    let container = container();
    for (probe, path) in [("readinessProbe", "/readyz"), ("livenessProbe", "/healthz")] {
        let asked = &container[probe]["httpGet"];
        assert_eq!(asked["path"], *path);
        assert_eq!(asked["port"], *"health");
    }
}

/// All labels that the selector asks for are among those of the pods.
fn selects(selector: &Value, labels: &Value) -> bool {
    let asked = selector.as_mapping().expect("a selector of labels");
    !asked.is_empty() && asked.iter().all(|(name, value)| labels[name] == *value)
}

#[test]
fn selectors_find_the_pods() {
    let deployment = base("Deployment");
    let template = &deployment["spec"]["template"];
    let labels = &template["metadata"]["labels"];
    assert!(selects(
        &deployment["spec"]["selector"]["matchLabels"],
        labels
    ));
    for spread in list(&template["spec"]["topologySpreadConstraints"]) {
        assert!(
            selects(&spread["labelSelector"]["matchLabels"], labels),
            "{spread:?}"
        );
    }
    let budget = base("PodDisruptionBudget");
    assert!(selects(&budget["spec"]["selector"]["matchLabels"], labels));
    let autoscaler = base("HorizontalPodAutoscaler");
    let scaled = &autoscaler["spec"]["scaleTargetRef"];
    for field in ["apiVersion", "kind"] {
        assert_eq!(scaled[field], deployment[field]);
    }
    assert_eq!(scaled["name"], deployment["metadata"]["name"]);
    assert!(deployment["spec"]["replicas"].is_null(), "the autoscaler's");

    let monitoring = Kustomization::read(&root().join("components/monitoring"));
    for whole in [&Kustomization::read(&root().join("base")), &monitoring] {
        for service in whole.of_kind("Service") {
            assert!(selects(&service["spec"]["selector"], labels), "{service:?}");
        }
        for policy in whole.of_kind("NetworkPolicy") {
            assert!(
                selects(&policy["spec"]["podSelector"]["matchLabels"], labels),
                "{policy:?}"
            );
        }
    }
    let services = monitoring.of_kind("Service");
    for monitor in monitoring.of_kind("ServiceMonitor") {
        let selector = &monitor["spec"]["selector"]["matchLabels"];
        let service = services
            .iter()
            .find(|service| selects(selector, &service["metadata"]["labels"]))
            .expect("a Service to scrape");
        assert!(
            !selects(selector, &base("Service")["metadata"]["labels"]),
            "the traffic's Service has no port for it"
        );
        for endpoint in list(&monitor["spec"]["endpoints"]) {
            let known = list(&service["spec"]["ports"]);
            assert!(
                known.iter().any(|port| port["name"] == endpoint["port"]),
                "{endpoint:?}"
            );
        }
    }
}

#[test]
fn the_grace_period_is_longer_than_delay_and_drain() {
    let deployment = base("Deployment");
    let grace = &deployment["spec"]["template"]["spec"]["terminationGracePeriodSeconds"];
    for (one, folder) in wholes() {
        let shutdown = settings(&folder).server.shutdown;
        let needed = (shutdown.delay + shutdown.drain).as_secs();
        assert!(
            needed + 5 <= grace.as_u64().unwrap(),
            "{}",
            one.folder.display()
        );
        assert!(
            !shutdown.delay.is_zero(),
            "nobody else waits for the load balancers"
        );
    }
}

/// What the profile `restricted` of the Pod Security Standards asks for, and what else a proxy doesn't need.
#[test]
fn pods_have_no_more_rights_than_they_need() {
    let deployment = base("Deployment");
    let pod = &deployment["spec"]["template"]["spec"];
    assert_eq!(pod["automountServiceAccountToken"], false);
    assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
    assert_eq!(
        pod["securityContext"]["seccompProfile"]["type"],
        *"RuntimeDefault"
    );
    let account = base("ServiceAccount");
    assert_eq!(account["automountServiceAccountToken"], false);
    assert_eq!(account["metadata"]["name"], pod["serviceAccountName"]);
    let container = container();
    let security = &container["securityContext"];
    assert_eq!(security["allowPrivilegeEscalation"], false);
    assert_eq!(security["readOnlyRootFilesystem"], true);
    assert_eq!(
        list(&security["capabilities"]["drop"]),
        [Value::from("ALL")]
    );
    for amount in ["cpu", "memory"] {
        for bound in ["requests", "limits"] {
            assert!(
                !container["resources"][bound][amount].is_null(),
                "{bound} {amount}"
            );
        }
    }
    // What one doesn't get can't be given back under pressure.
    assert_eq!(
        container["resources"]["requests"]["memory"],
        container["resources"]["limits"]["memory"]
    );
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
