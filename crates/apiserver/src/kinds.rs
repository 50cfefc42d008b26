//! The kinds of the server and their properties: a table of the built-in ones, and those that CRDs define.

use std::sync::Arc;

use serde_json::{Value, json};

/// A type of object: its group and its plural.
pub type Type = (Arc<str>, Arc<str>);

/// The format of the names of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Names {
    /// A DNS subdomain.
    Subdomain,
    /// A DNS label.
    Label,
    /// A DNS label that begins with a letter.
    Label1035,
    /// One segment of a path.
    Segment,
}

#[derive(Clone, Debug)]
pub struct Kind {
    pub group: Arc<str>,
    pub version: Arc<str>,
    pub name: Arc<str>,
    pub plural: Arc<str>,
    pub namespaced: bool,
    /// Whether it has the subresource `status`.
    pub status: bool,
    /// Whether it has a generation.
    pub generation: bool,
    /// Whether a CRD defines it.
    pub custom: bool,
    /// Whether an immediate DELETE returns the object.
    pub returns_deleted: bool,
    /// Whether a PUT needs no resourceVersion.
    pub unconditional: bool,
    /// Whether a PUT may create an object.
    pub put_creates: bool,
    pub names: Names,
    /// The schema of a custom kind.
    pub schema: Value,
}

impl Kind {
    pub fn id(&self) -> Type {
        (self.group.clone(), self.plural.clone())
    }

    /// Group, version and plural.
    pub fn key(&self) -> [Arc<str>; 3] {
        [self.group.clone(), self.version.clone(), self.plural.clone()]
    }

    /// `v1`, `apps/v1`.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.to_string() } else { format!("{}/{}", self.group, self.version) }
    }

    /// The resource in messages: `deployments.apps`.
    pub fn resource(&self) -> String {
        if self.group.is_empty() { self.plural.to_string() } else { format!("{}.{}", self.plural, self.group) }
    }

    /// The kind in messages: `Deployment.apps`.
    pub fn qualified(&self) -> String {
        if self.group.is_empty() { self.name.to_string() } else { format!("{}.{}", self.name, self.group) }
    }

    /// The kinds that a CRD defines: one for each served version.
    pub fn of_definition(definition: &Value) -> Vec<Kind> {
        let spec = &definition["spec"];
        let versions = spec["versions"].as_array().map(Vec::as_slice).unwrap_or_default();
        let served = versions.iter().filter(|version| version["served"] != json!(false));
        let kinds = served.map(|version| Kind {
            group: text(&spec["group"]),
            version: text(&version["name"]),
            name: text(&spec["names"]["kind"]),
            plural: text(&spec["names"]["plural"]),
            namespaced: spec["scope"] == "Namespaced",
            status: !version["subresources"]["status"].is_null(),
            generation: true,
            custom: true,
            returns_deleted: false,
            unconditional: false,
            put_creates: false,
            names: Names::Subdomain,
            schema: version["schema"]["openAPIV3Schema"].clone(),
        });
        kinds.collect()
    }
}

fn text(value: &Value) -> Arc<str> {
    value.as_str().unwrap_or_default().into()
}

/// Group, version, kind, plural, and letters: `n`amespaced, has a `s`tatus, counts `g`enerations, `r`eturns what it
/// deletes, a PUT may `c`reate, a PUT needs a `v`ersion, names are `l`abels, l`a`bels of RFC 1035, `p`ath segments.
const BUILT_IN: &[(&str, &str, &str, &str, &str)] = &[
    ("", "v1", "Namespace", "namespaces", "srl"),
    ("", "v1", "ConfigMap", "configmaps", "n"),
    ("", "v1", "Secret", "secrets", "n"),
    ("", "v1", "Service", "services", "nsrca"),
    ("", "v1", "ServiceAccount", "serviceaccounts", "nr"),
    ("", "v1", "Pod", "pods", "nsgr"),
    ("", "v1", "Event", "events", "nc"),
    ("", "v1", "Node", "nodes", "s"),
    ("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims", "nsr"),
    ("apps", "v1", "Deployment", "deployments", "nsg"),
    ("apps", "v1", "StatefulSet", "statefulsets", "nsg"),
    ("batch", "v1", "Job", "jobs", "nsg"),
    ("coordination.k8s.io", "v1", "Lease", "leases", "ncv"),
    ("events.k8s.io", "v1", "Event", "events", "nc"),
    ("networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies", "ng"),
    ("rbac.authorization.k8s.io", "v1", "Role", "roles", "np"),
    ("rbac.authorization.k8s.io", "v1", "RoleBinding", "rolebindings", "np"),
    ("rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles", "p"),
    ("rbac.authorization.k8s.io", "v1", "ClusterRoleBinding", "clusterrolebindings", "p"),
    ("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", "sgv"),
];

pub fn built_in() -> impl Iterator<Item = Kind> {
    BUILT_IN.iter().map(|(group, version, kind, plural, letters)| {
        let names = match () {
            () if letters.contains('l') => Names::Label,
            () if letters.contains('a') => Names::Label1035,
            () if letters.contains('p') => Names::Segment,
            () => Names::Subdomain,
        };
        Kind {
            group: (*group).into(),
            version: (*version).into(),
            name: (*kind).into(),
            plural: (*plural).into(),
            namespaced: letters.contains('n'),
            status: letters.contains('s'),
            generation: letters.contains('g'),
            custom: false,
            returns_deleted: letters.contains('r'),
            unconditional: !letters.contains('v'),
            put_creates: letters.contains('c'),
            names,
            schema: Value::Null,
        }
    })
}
