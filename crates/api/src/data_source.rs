//! The kind `DataSource`: an external object that Purlin reads but does not manage.
//!
//! The doc comments are the descriptions in the CRD, which `kubectl explain` shows.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Dependency, Drift, Input, Instances, Lifecycle, NameRef, Pending, Requirement, Resource, ResourceSpec,
    ResourceStatus, Timeouts, schema,
};

/// The type, the configuration and the dependencies of the data source.
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
    doc = "An object that Purlin reads but does not manage. Expressions reference it as `${data.name.attribute}`.",
    selectable = ".spec.type",
    printcolumn = r#"{"name": "READY", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].status",
        "description": "Whether the data source was read."}"#,
    printcolumn = r#"{"name": "SYNCED", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Synced\")].status",
        "description": "Whether the data source was read with its current spec."}"#,
    printcolumn = r#"{"name": "REASON", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].reason",
        "description": "The reason of the condition `Ready`."}"#,
    printcolumn = r#"{"name": "TYPE", "type": "string", "jsonPath": ".spec.type",
        "description": "The provider's type name of the data source."}"#,
    printcolumn = r#"{"name": "ACTION", "type": "string", "jsonPath": ".status.pending.action",
        "description": "`Read` while a read is pending."}"#,
    printcolumn = r#"{"name": "AGE", "type": "date", "jsonPath": ".metadata.creationTimestamp",
        "description": "When the DataSource was created."}"#,
    printcolumn = r#"{"name": "MESSAGE", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].message",
        "description": "Why the data source is or is not ready.", "priority": 1}"#
)]
#[serde(rename_all = "camelCase")]
pub struct DataSourceSpec {
    /// The type of the data source as the provider names it, or `kubernetes_object` for an object in the cluster. The
    /// type is immutable: to change it, create a DataSource with another name.
    #[serde(rename = "type")]
    #[schemars(schema_with = "schema::data_source_type")]
    pub type_name: String,

    /// The ProviderConfig in this namespace with which Purlin reads the data source. The default is the same as for a
    /// Resource.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_config_ref: Option<NameRef>,

    /// The arguments of the data source as the provider names them. Every string can contain expressions such as
    /// `${name.attribute}`.
    #[serde(default, skip_serializing_if = "serde_json::Map::is_empty")]
    #[schemars(schema_with = "schema::free_map")]
    pub config: serde_json::Map<String, serde_json::Value>,

    /// The number of instances, with the addresses `data.name[0]`, `data.name[1]` and so on. Either a whole number or
    /// an expression that evaluates to one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::count")]
    pub count: Option<serde_json::Value>,

    /// One instance for each key of a map or each string of a list, with addresses such as `data.name["key"]`. Either a
    /// map, a list of strings, or an expression that evaluates to one of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::any_value")]
    pub for_each: Option<serde_json::Value>,

    /// True, false, or an expression such as `${ns.labels.stage == 'live'}`. If false, Purlin does not read the data
    /// source, and its value in expressions is null. The default is true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::boolean_or_expression")]
    pub enabled: Option<serde_json::Value>,

    /// Objects that must be up to date before Purlin reads the data source, in addition to the objects that expressions
    /// reference. While a change of one of them is pending, the read waits.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 1000),
        extend("x-kubernetes-list-type" = "atomic")
    )]
    pub depends_on: Vec<Dependency>,

    /// Values from ConfigMaps and Secrets in this namespace, available to expressions as `${inputs.NAME}`. Purlin reads
    /// them with the ServiceAccount `serviceAccountName`. Values from Secrets are sensitive.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 100),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"])
    )]
    pub inputs: Vec<Input>,

    /// Preconditions and postconditions of the data source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lifecycle: Option<DataSourceLifecycle>,

    /// How often Purlin reads the data source again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drift: Option<DataSourceDrift>,

    /// The ServiceAccount in this namespace with which Purlin reads Kubernetes objects and inputs. The controller
    /// configures the default, usually `default`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub service_account_name: Option<String>,

    /// If true, Purlin does not read the data source, and expressions use the last result that the controller has read.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub suspend: bool,

    /// Time limits of provider calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeouts: Option<DataSourceTimeouts>,
}

/// The `lifecycle` block of a Terraform data source.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DataSourceLifecycle {
    /// Conditions that Purlin checks before it reads the data source. Objects that they reference are dependencies.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), extend("x-kubernetes-list-type" = "atomic"))]
    pub preconditions: Vec<Requirement>,
    /// Conditions that Purlin checks on the result of the read, which is available as `self`. While a condition is
    /// false, objects that reference the data source wait.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), extend("x-kubernetes-list-type" = "atomic"))]
    pub postconditions: Vec<Requirement>,
}

/// The refresh of a data source.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DataSourceDrift {
    /// The interval between reads, such as `30m` or `1h30m`. The default is `30m`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::duration")]
    pub interval: Option<String>,
}

/// Time limits of provider calls, such as `30m` or `1h30m`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DataSourceTimeouts {
    /// The time limit of a read. The default is `5m`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::duration")]
    pub read: Option<String>,
}

/// The observed state of the data source. It never contains sensitive values.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DataSourceStatus {
    /// The generation of the DataSource for which the status was written; -1 before the first reconciliation.
    #[serde(default)]
    pub observed_generation: i64,

    /// Always `Ready` and `Synced`. `Reconciling` and `Stalled` only while they are true.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,

    /// The attributes of the result, without sensitive values. Large values are truncated.
    #[serde(default, skip_serializing_if = "serde_json::Map::is_empty")]
    #[schemars(schema_with = "schema::free_atomic_map")]
    pub attributes: serde_json::Map<String, serde_json::Value>,

    /// The direct dependencies of the DataSource.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub dependencies: Vec<String>,

    /// A summary of the instances of a DataSource with `count` or `forEach`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instances: Option<Instances>,

    /// The pending change. It is absent when the data source is up to date.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pending: Option<Pending>,

    /// The last value of the annotation `purlin.dev/reconcile-requested-at` that Purlin has handled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_handled_reconcile_at: Option<String>,
}

impl DataSource {
    /// Returns a Resource with the same fields, so that commands show both kinds in the same way.
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
