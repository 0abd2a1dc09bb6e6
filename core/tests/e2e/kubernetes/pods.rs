//! Pods, what selects them, and what they may: the manifests of the base beside each other and beside the configuration.

use std::collections::BTreeSet;

use serde_yaml::Value;

use super::folders::{Kustomization, list, root, text};
use super::{base, settings, wholes};

/// The container of the base's Deployment.
pub(super) fn container() -> Value {
    let deployment = base("Deployment");
    let containers = list(&deployment["spec"]["template"]["spec"]["containers"]);
    assert_eq!(containers.len(), 1);
    containers[0].clone()
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

#[test]
fn folders_that_may_be_read_are_mounted() {
    let mut tried = 0;
    for (one, _) in wholes() {
        let settings: toml::Table = one.configuration()["edgewright.toml"].parse().unwrap();
        let allowed = settings
            .get("files")
            .and_then(|files| files["allow"].as_array());
        let mut mounted = BTreeSet::new();
        for deployment in one.of_kind("Deployment") {
            for container in list(&deployment["spec"]["template"]["spec"]["containers"]) {
                let mounts = list(&container["volumeMounts"]).iter();
                mounted.extend(mounts.map(|mount| text(&mount["mountPath"]).to_owned()));
            }
        }
        for folder in allowed.into_iter().flatten() {
            let folder = folder.as_str().unwrap();
            assert!(
                mounted.contains(folder),
                "{}: {folder}",
                one.folder.display()
            );
            tried += 1;
        }
    }
    assert!(tried >= 1, "no folder is allowed anywhere");
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
