//! The kind `DataSource`: something that is read, and not managed.
//!
//! The doc comments are the API's documentation: they become the descriptions that `kubectl explain` shows.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Dependency, Drift, Input, Instances, Lifecycle, NameRef, Pending, Requirement, Resource, ResourceSpec,
    ResourceStatus, Timeouts, schema,
};

/// What is read, and with what.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "purlin.dev",
    version = "v1alpha1",
    kind = "DataSource",
    plural = "datasources",
    shortname = "pds",
    category = "purlin",
    category = "managed",
    namespaced,
    status = "DataSourceStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "Something that Purlin reads and does not manage. Expressions read it as `${data.name.attribute}`.",
    selectable = ".spec.type",
    printcolumn = r#"{"name": "READY", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].status",
        "description": "Whether it was read."}"#,
    printcolumn = r#"{"name": "SYNCED", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Synced\")].status",
        "description": "Whether it was read as it is described now."}"#,
    printcolumn = r#"{"name": "TYPE", "type": "string", "jsonPath": ".spec.type",
        "description": "The provider's type of the data source."}"#,
    printcolumn = r#"{"name": "ACTION", "type": "string", "jsonPath": ".status.pending.action",
        "description": "Read, while it waits to be read."}"#,
    printcolumn = r#"{"name": "AGE", "type": "date", "jsonPath": ".metadata.creationTimestamp",
        "description": "When the DataSource was created."}"#,
    printcolumn = r#"{"name": "MESSAGE", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].message",
        "description": "Why it is, or is not, ready.", "priority": 1}"#
)]
#[serde(rename_all = "camelCase")]
pub struct DataSourceSpec {
    /// The provider's own name of the type of data source, or `kubernetes_object` for an object of the cluster. It cannot
    /// be changed: create a DataSource of another name instead.
    #[serde(rename = "type")]
    #[schemars(schema_with = "schema::type_name")]
    pub type_name: String,

    /// The ProviderConfig of this namespace under which it is read. The default is that of a Resource.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_config_ref: Option<NameRef>,

    /// The provider's own arguments, by their own names. Any text may hold expressions, `${name.attribute}`.
    #[serde(default, skip_serializing_if = "serde_json::Map::is_empty")]
    #[schemars(schema_with = "schema::free_map")]
    pub config: serde_json::Map<String, serde_json::Value>,

    /// So many readings instead of one, `data.name[0]`, `data.name[1]` and so on: a whole number, or an expression.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::count")]
    pub count: Option<serde_json::Value>,

    /// One reading for each key of a map, or for each text of a list, `data.name["key"]`: a map, a list of texts, or an
    /// expression that gives either.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::anything")]
    pub for_each: Option<serde_json::Value>,

    /// While it is false, it is as if the DataSource were absent: nothing is read, and it is null in expressions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,

    /// The same, as an expression such as `${ns.labels.stage == 'live'}`, instead of `enabled`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 16384))]
    pub enabled_when: Option<String>,

    /// What it is read after, besides what expressions refer to. While one of these is about to change, reading waits.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 1000),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"])
    )]
    pub depends_on: Vec<Dependency>,

    /// Values from ConfigMaps and Secrets of this namespace, which expressions read as `${inputs.NAME}`. They are read
    /// as `serviceAccountName`. What comes from a Secret is sensitive.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 100),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"])
    )]
    pub inputs: Vec<Input>,

    /// What must hold before and after it is read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lifecycle: Option<DataSourceLifecycle>,

    /// How often it is read anew.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drift: Option<DataSourceDrift>,

    /// The service account of this namespace as which Kubernetes objects and inputs are read. The default is set by the
    /// controller, usually `default`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub service_account_name: Option<String>,

    /// While it is true, it is not read; what was read last still counts. The annotation `purlin.dev/paused: "true"` is
    /// the same switch.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub suspend: bool,

    /// How long the provider may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeouts: Option<DataSourceTimeouts>,
}

/// What must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DataSourceLifecycle {
    /// What must hold before it is read. What they read are dependencies.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), extend("x-kubernetes-list-type" = "atomic"))]
    pub preconditions: Vec<Requirement>,
    /// What must hold of what was read; `self` is that. While one does not hold, what refers to it waits.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), extend("x-kubernetes-list-type" = "atomic"))]
    pub postconditions: Vec<Requirement>,
}

/// Reading anew.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DataSourceDrift {
    /// How often it is read, as `30m` or `1h30m`. The default is `30m`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::duration")]
    pub interval: Option<String>,
}

/// How long the provider's calls may take.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DataSourceTimeouts {
    /// Of a read. The default is `5m`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::duration")]
    pub read: Option<String>,
}

/// What was read. It never holds a sensitive value.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DataSourceStatus {
    /// The generation of the DataSource that this status is about; -1 before the first look.
    #[serde(default)]
    pub observed_generation: i64,

    /// `Ready` and `Synced` always; `Reconciling` and `Stalled` while they are true.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,

    /// What was read, without sensitive attributes and cut when it is large.
    #[serde(default, skip_serializing_if = "serde_json::Map::is_empty")]
    #[schemars(schema_with = "schema::free_atomic_map")]
    pub attributes: serde_json::Map<String, serde_json::Value>,

    /// What it depends on directly.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub dependencies: Vec<String>,

    /// How the instances of a family stand (`count`, `forEach`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instances: Option<Instances>,

    /// What will be done next, while something is to be done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pending: Option<Pending>,

    /// The value of the annotation `purlin.dev/reconcile-requested-at` that was last acted upon.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_handled_reconcile_at: Option<String>,
}

impl DataSource {
    /// The Resource that says the same, as far as a Resource can: all that is said of both kinds is read in one way.
    pub fn to_resource(&self) -> Resource {
        let spec = self.spec.clone();
        let lifecycle = spec.lifecycle.map(|DataSourceLifecycle { preconditions, postconditions }| Lifecycle {
            preconditions,
            postconditions,
            ..Lifecycle::default()
        });
        Resource {
            metadata: self.metadata.clone(),
            spec: ResourceSpec {
                type_name: spec.type_name,
                provider_config_ref: spec.provider_config_ref,
                config: spec.config,
                count: spec.count,
                for_each: spec.for_each,
                enabled: spec.enabled,
                enabled_when: spec.enabled_when,
                depends_on: spec.depends_on,
                inputs: spec.inputs,
                lifecycle,
                drift: spec.drift.map(|drift| Drift { interval: drift.interval, ..Drift::default() }),
                service_account_name: spec.service_account_name,
                suspend: spec.suspend,
                timeouts: spec.timeouts.map(|timeouts| Timeouts { read: timeouts.read, ..Timeouts::default() }),
                ..ResourceSpec::default()
            },
            status: self.status.clone().map(|status| ResourceStatus {
                observed_generation: status.observed_generation,
                conditions: status.conditions,
                attributes: status.attributes,
                dependencies: status.dependencies,
                instances: status.instances,
                pending: status.pending,
                last_handled_reconcile_at: status.last_handled_reconcile_at,
                ..ResourceStatus::default()
            }),
        }
    }
}

impl From<ResourceStatus> for DataSourceStatus {
    fn from(status: ResourceStatus) -> Self {
        Self {
            observed_generation: status.observed_generation,
            conditions: status.conditions,
            attributes: status.attributes,
            dependencies: status.dependencies,
            instances: status.instances,
            pending: status.pending,
            last_handled_reconcile_at: status.last_handled_reconcile_at,
        }
    }
}
