//! `spec.runner` of a `Provider` and of a `ProviderConfig`: where the processes of a provider run.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::schema;

/// Where the processes of a provider run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProviderRunner {
    /// `InProcess`: in the Pod of the controller. `Pod`: in a Pod of the namespace of the ProviderConfig, one for each
    /// configuration. The other fields are for `Pod`.
    #[schemars(schema_with = "schema::runner_kind")]
    pub kind: RunnerKind,
    /// The ServiceAccount of the Pod, for the workload identity of a cloud. The provider gets its token. The default is the
    /// ServiceAccount that creates the Pod (`spec.serviceAccountName` of the ProviderConfig), without its token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub service_account_name: Option<String>,
    /// The requests and limits of the container.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<RunnerResources>,
    /// The labels of the nodes that the Pod can run on.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub node_selector: BTreeMap<String, String>,
    /// The taints of nodes that the Pod tolerates.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100))]
    pub tolerations: Vec<RunnerToleration>,
    /// Environment variables of the provider. They are visible in the Pod, so secrets belong into the inputs of the
    /// ProviderConfig.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 100),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"])
    )]
    pub env: Vec<RunnerVariable>,
    /// How long the Pod runs without calls, such as `30m`. The default is `5m`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::duration")]
    pub idle_timeout: Option<String>,
}

/// The kind of a runner.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum RunnerKind {
    #[default]
    InProcess,
    Pod,
}

/// Quantities of resources, as in a Pod.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunnerResources {
    /// What the node must have free, such as `cpu: 100m` and `memory: 256Mi`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub requests: BTreeMap<String, String>,
    /// What the container can use at most.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub limits: BTreeMap<String, String>,
}

/// A toleration, as in a Pod.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunnerToleration {
    /// The key of the taint. The default tolerates all keys, with the operator `Exists`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 317))]
    pub key: Option<String>,
    /// `Equal` or `Exists`. The default is `Equal`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub operator: Option<String>,
    /// The value of the taint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub value: Option<String>,
    /// The effect of the taint. The default tolerates all effects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub effect: Option<String>,
    /// How many seconds a Pod that runs tolerates a taint with the effect `NoExecute`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<i64>", range(min = 0))]
    pub toleration_seconds: Option<u64>,
}

/// An environment variable.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunnerVariable {
    /// The name of the variable.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// The value of the variable.
    #[serde(default)]
    pub value: String,
}
