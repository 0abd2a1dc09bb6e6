//! The fields of the kinds that `deploy/kubernetes` uses. A cluster drops a field that it doesn't know, and what it
//! should have done is then not done: here a misspelt one is an error.
//!
//! From the references of Kubernetes (<https://kubernetes.io/docs/reference/kubernetes-api/>), Kustomize
//! (<https://kubectl.docs.kubernetes.io/references/kustomize/>) and the Prometheus operator
//! (<https://prometheus-operator.dev/docs/api-reference/api/>), as far as they are needed here.

use serde_yaml::Value;

/// Kinds with their `apiVersion`.
const KINDS: &[(&str, &str)] = &[
    ("Kustomization", "kustomize.config.k8s.io/v1beta1"),
    ("Component", "kustomize.config.k8s.io/v1alpha1"),
    ("Namespace", "v1"),
    ("ServiceAccount", "v1"),
    ("Service", "v1"),
    ("Deployment", "apps/v1"),
    ("HorizontalPodAutoscaler", "autoscaling/v2"),
    ("PodDisruptionBudget", "policy/v1"),
    ("NetworkPolicy", "networking.k8s.io/v1"),
    ("ServiceMonitor", "monitoring.coreos.com/v1"),
    ("PrometheusRule", "monitoring.coreos.com/v1"),
    ("ConfigMap", "v1"),
];

/// Objects with their fields, `name:type`. A type is `text`, `number`, `flag`, `port` (a number or the name of one),
/// `quantity` (text or a number), `texts` (an object whose names are anybody's), `[type]` for a list,
/// `One|Other` for one of these texts, or an object of this table.
const OBJECTS: &[(&str, &str)] = &[
    (
        "Kustomization",
        "namespace:text resources:[text] components:[text] images:[Image] \
         configMapGenerator:[ConfigMapGenerator] patches:[Patch]",
    ),
    ("Component", "resources:[text] patches:[Patch]"),
    ("Image", "name:text newName:text newTag:text digest:text"),
    (
        "ConfigMapGenerator",
        "name:text behavior:create|replace|merge files:[text] options:GeneratorOptions",
    ),
    (
        "GeneratorOptions",
        "disableNameSuffixHash:flag labels:texts",
    ),
    ("Patch", "path:text patch:text target:PatchTarget"),
    ("PatchTarget", "kind:text name:text"),
    (
        "Meta",
        "name:text namespace:text labels:texts annotations:texts",
    ),
    ("Namespace", ""),
    ("ConfigMap", "data:texts immutable:flag"),
    ("ServiceAccount", "automountServiceAccountToken:flag"),
    ("Service", "spec:ServiceSpec"),
    (
        "ServiceSpec",
        "type:ClusterIP|NodePort|LoadBalancer clusterIP:text publishNotReadyAddresses:flag selector:texts \
         ports:[ServicePort] externalTrafficPolicy:Cluster|Local",
    ),
    (
        "ServicePort",
        "name:text protocol:TCP|UDP port:number targetPort:port",
    ),
    ("Deployment", "spec:DeploymentSpec"),
    (
        "DeploymentSpec",
        "replicas:number revisionHistoryLimit:number selector:Selector strategy:Strategy template:PodTemplate \
         minReadySeconds:number progressDeadlineSeconds:number",
    ),
    ("Selector", "matchLabels:texts"),
    (
        "Strategy",
        "type:RollingUpdate|Recreate rollingUpdate:RollingUpdate",
    ),
    ("RollingUpdate", "maxSurge:port maxUnavailable:port"),
    ("PodTemplate", "metadata:Meta spec:PodSpec"),
    (
        "PodSpec",
        "serviceAccountName:text automountServiceAccountToken:flag enableServiceLinks:flag \
         terminationGracePeriodSeconds:number topologySpreadConstraints:[Spread] securityContext:PodSecurity \
         containers:[Container] volumes:[Volume] nodeSelector:texts priorityClassName:text",
    ),
    (
        "Spread",
        "topologyKey:text maxSkew:number whenUnsatisfiable:ScheduleAnyway|DoNotSchedule labelSelector:Selector",
    ),
    (
        "PodSecurity",
        "runAsNonRoot:flag runAsUser:number runAsGroup:number fsGroup:number seccompProfile:Seccomp",
    ),
    ("Seccomp", "type:RuntimeDefault|Localhost|Unconfined"),
    (
        "Container",
        "name:text image:text imagePullPolicy:Always|IfNotPresent|Never args:[text] ports:[ContainerPort] env:[Env] \
         readinessProbe:Probe livenessProbe:Probe startupProbe:Probe resources:Resources \
         securityContext:ContainerSecurity volumeMounts:[VolumeMount]",
    ),
    (
        "ContainerPort",
        "name:text containerPort:number protocol:TCP|UDP",
    ),
    ("Env", "name:text value:text valueFrom:EnvSource"),
    ("EnvSource", "fieldRef:FieldRef"),
    ("FieldRef", "fieldPath:text"),
    (
        "Probe",
        "httpGet:HttpGet periodSeconds:number timeoutSeconds:number failureThreshold:number \
         successThreshold:number initialDelaySeconds:number",
    ),
    ("HttpGet", "path:text port:port scheme:HTTP|HTTPS"),
    ("Resources", "requests:Amounts limits:Amounts"),
    ("Amounts", "cpu:quantity memory:quantity"),
    (
        "ContainerSecurity",
        "allowPrivilegeEscalation:flag readOnlyRootFilesystem:flag capabilities:Capabilities",
    ),
    ("Capabilities", "drop:[text]"),
    ("VolumeMount", "name:text mountPath:text readOnly:flag"),
    (
        "Volume",
        "name:text configMap:ConfigMapVolume secret:SecretVolume emptyDir:EmptyDir",
    ),
    ("ConfigMapVolume", "name:text"),
    ("EmptyDir", "medium:text sizeLimit:text"),
    ("SecretVolume", "secretName:text defaultMode:number"),
    ("HorizontalPodAutoscaler", "spec:HpaSpec"),
    ("PodDisruptionBudget", "spec:PdbSpec"),
    ("NetworkPolicy", "spec:NetworkPolicySpec"),
    ("ServiceMonitor", "spec:ServiceMonitorSpec"),
    ("PrometheusRule", "spec:PrometheusRuleSpec"),
];

/// Objects of kinds that are no pods.
const MORE: &[(&str, &str)] = &[
    (
        "HpaSpec",
        "scaleTargetRef:Reference minReplicas:number maxReplicas:number metrics:[HpaMetric] behavior:HpaBehavior",
    ),
    ("Reference", "apiVersion:text kind:text name:text"),
    (
        "HpaMetric",
        "type:Resource|ContainerResource|Pods|Object|External resource:HpaResource",
    ),
    ("HpaResource", "name:cpu|memory target:HpaTarget"),
    (
        "HpaTarget",
        "type:Utilization|AverageValue|Value averageUtilization:number",
    ),
    ("HpaBehavior", "scaleUp:HpaScaling scaleDown:HpaScaling"),
    (
        "HpaScaling",
        "stabilizationWindowSeconds:number policies:[HpaPolicy]",
    ),
    (
        "HpaPolicy",
        "type:Pods|Percent value:number periodSeconds:number",
    ),
    (
        "PdbSpec",
        "maxUnavailable:port minAvailable:port selector:Selector \
         unhealthyPodEvictionPolicy:AlwaysAllow|IfHealthyBudget",
    ),
    (
        "NetworkPolicySpec",
        "podSelector:Selector policyTypes:[Ingress|Egress] ingress:[IngressRule] egress:[EgressRule]",
    ),
    ("IngressRule", "from:[NetworkPeer] ports:[NetworkPort]"),
    ("EgressRule", "to:[NetworkPeer] ports:[NetworkPort]"),
    (
        "NetworkPeer",
        "namespaceSelector:Selector podSelector:Selector ipBlock:IpBlock",
    ),
    ("NetworkPort", "protocol:TCP|UDP port:port"),
    ("IpBlock", "cidr:text except:[text]"),
    (
        "ServiceMonitorSpec",
        "selector:Selector endpoints:[ScrapePoint]",
    ),
    ("ScrapePoint", "port:text path:text interval:text"),
    ("PrometheusRuleSpec", "groups:[RuleGroup]"),
    ("RuleGroup", "name:text rules:[Rule]"),
    (
        "Rule",
        "alert:text expr:text for:text labels:texts annotations:texts",
    ),
];

/// What is wrong with a manifest, each with the path to it: an unknown kind or field, a value of another type.
pub(super) fn wrong_in(manifest: &Value) -> Vec<String> {
    let kind = manifest["kind"].as_str().unwrap_or_default();
    let Some((_, version)) = KINDS.iter().find(|(known, _)| *known == kind) else {
        return vec![format!("`{kind}` is no kind that is known here")];
    };
    let mut wrong = Vec::new();
    if manifest["apiVersion"] != **version {
        wrong.push(format!("the apiVersion of a {kind} is {version}"));
    }
    let fields = fields(kind).unwrap();
    let fields = format!("apiVersion:text kind:text metadata:Meta {fields}");
    check_object(manifest, &fields, kind, &mut wrong);
    wrong
}

fn fields(object: &str) -> Option<&'static str> {
    let mut all = OBJECTS.iter().chain(MORE);
    all.find(|(name, _)| *name == object)
        .map(|(_, fields)| *fields)
}

fn check_object(value: &Value, fields: &str, path: &str, wrong: &mut Vec<String>) {
    let Some(object) = value.as_mapping() else {
        wrong.push(format!("{path} is no object"));
        return;
    };
    for (name, value) in object {
        let name = name.as_str().unwrap_or_default();
        let mut known = fields
            .split_whitespace()
            .filter_map(|field| field.split_once(':'));
        match known.find(|(field, _)| *field == name) {
            Some((_, kind)) => check_value(value, kind, &format!("{path}.{name}"), wrong),
            None => wrong.push(format!("{path} has no field `{name}`")),
        }
    }
}

fn check_value(value: &Value, kind: &str, path: &str, wrong: &mut Vec<String>) {
    if let Some(kind) = kind
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'))
    {
        match value.as_sequence() {
            Some(list) => {
                for (index, value) in list.iter().enumerate() {
                    check_value(value, kind, &format!("{path}[{index}]"), wrong);
                }
            }
            None => wrong.push(format!("{path} is no list")),
        }
        return;
    }
    let fits = match kind {
        "text" => value.is_string(),
        "number" => value.is_u64(),
        "flag" => value.is_bool(),
        "port" | "quantity" => value.is_u64() || value.is_string(),
        "texts" => value.as_mapping().is_some_and(|all| {
            all.iter()
                .all(|(name, text)| name.is_string() && text.is_string())
        }),
        _ if kind.contains('|') => kind.split('|').any(|one| value == one),
        object => {
            let fields =
                fields(object).unwrap_or_else(|| panic!("no object `{object}` for {path}"));
            check_object(value, fields, path, wrong);
            return;
        }
    };
    if !fits {
        wrong.push(format!("{path} is no `{kind}`"));
    }
}

#[test]
fn what_a_cluster_would_drop_or_refuse_is_found() {
    let found = |text: &str| wrong_in(&serde_yaml::from_str(text).unwrap()).join("; ");
    let deployment = |spec: &str| {
        format!("{{apiVersion: apps/v1, kind: Deployment, metadata: {{name: a}}, spec: {spec}}}")
    };
    for (text, expected) in [
        (
            "{kind: Deplyoment}".to_owned(),
            "`Deplyoment` is no kind that is known here",
        ),
        (
            "{apiVersion: v2, kind: Namespace}".to_owned(),
            "the apiVersion of a Namespace is v1",
        ),
        (
            deployment("{replicsa: 2}"),
            "Deployment.spec has no field `replicsa`",
        ),
        (
            deployment("{template: {spec: {containers: [{livenesProbe: {}}]}}}"),
            "Deployment.spec.template.spec.containers[0] has no field `livenesProbe`",
        ),
        (
            deployment("{strategy: {type: Rolling}}"),
            "Deployment.spec.strategy.type is no `RollingUpdate|Recreate`",
        ),
        (
            deployment("{selector: {matchLabels: {version: 1}}}"),
            "Deployment.spec.selector.matchLabels is no `texts`",
        ),
        (
            deployment("{template: []}"),
            "Deployment.spec.template is no object",
        ),
        (deployment("{replicas: 2}"), ""),
    ] {
        assert_eq!(found(&text), expected, "{text}");
    }
}

#[test]
fn every_type_is_there() {
    for (object, fields) in OBJECTS.iter().chain(MORE) {
        for field in fields.split_whitespace() {
            let (name, kind) = field.split_once(':').unwrap();
            let kind = kind.trim_matches(['[', ']']);
            let plain = ["text", "number", "flag", "port", "quantity", "texts"];
            let known = plain.contains(&kind) || kind.contains('|') || self::fields(kind).is_some();
            assert!(known, "{object}.{name} is a `{kind}`");
        }
    }
}
