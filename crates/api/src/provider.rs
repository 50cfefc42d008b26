//! The kinds `Provider` and `ProviderConfig`: a provider plugin, and the configuration that it is used with.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::resource::{Input, NameRef};
use super::runner::ProviderRunner;
use super::schema;

/// The provider plugin to run. It names a program, so only administrators should be allowed to write it.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "purlin.dev",
    version = "v1alpha1",
    kind = "Provider",
    plural = "providers",
    shortname = "pprov",
    category = "purlin",
    status = "ProviderStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "A Terraform or OpenTofu provider that serves types of Resources.",
    printcolumn = r#"{"name": "READY", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].status",
        "description": "Whether the provider can be used."}"#,
    printcolumn = r#"{"name": "REASON", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].reason",
        "description": "The reason of the condition `Ready`."}"#,
    printcolumn = r#"{"name": "SOURCE", "type": "string", "jsonPath": ".spec.source",
        "description": "The address of the provider."}"#,
    printcolumn = r#"{"name": "VERSION", "type": "string", "jsonPath": ".status.version",
        "description": "The installed version."}"#,
    printcolumn = r#"{"name": "TYPES", "type": "integer", "jsonPath": ".status.resourceTypes",
        "description": "The number of resource types."}"#,
    printcolumn = r#"{"name": "AGE", "type": "date", "jsonPath": ".metadata.creationTimestamp",
        "description": "When the Provider was created."}"#,
    printcolumn = r#"{"name": "MESSAGE", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].message",
        "description": "Why the provider can or cannot be used.", "priority": 1}"#
)]
#[serde(rename_all = "camelCase")]
pub struct ProviderSpec {
    /// The provider's address: `HOST/NAMESPACE/TYPE`, or a part of it from the right, such as `hashicorp/random`. The
    /// default is the name of the Provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub source: Option<String>,

    /// A version constraint in Terraform's syntax, such as `~> 3.6` or `>= 1.2, < 2`. The default selects the newest
    /// version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub version: Option<String>,

    /// The source of the provider's package. The default is the registry that `source` names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub package: Option<ProviderPackage>,

    /// Accepted checksums of the package: `zh:...` or `h1:...`, as in Terraform's lock file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), extend("x-kubernetes-list-type" = "set"))]
    pub checksums: Vec<String>,

    /// Environment variables of the provider's processes. Of the controller's own variables, a provider gets only the
    /// usual system variables and those that configure proxies.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 100),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"])
    )]
    pub environment: Vec<ProviderVariable>,

    /// Files and directories in the controller's Pod that the provider can access, besides those that every program
    /// needs. The provider can access no others, unless the controller allows unconfined providers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<ProviderFiles>,

    /// Limits of the provider's calls and memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<ProviderLimits>,

    /// Where the provider runs for ProviderConfigs without a `spec.runner`. The default is the Pod of the controller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runner: Option<ProviderRunner>,
}

/// Files and directories in the controller's Pod. A directory includes its content.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProviderFiles {
    /// Absolute paths that the provider can read and execute.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), inner(regex(pattern = "^/")), extend("x-kubernetes-list-type" = "set"))]
    pub read: Vec<String>,
    /// Absolute paths that the provider can read and write.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), inner(regex(pattern = "^/")), extend("x-kubernetes-list-type" = "set"))]
    pub write: Vec<String>,
}

/// The source of a provider's package. At most one field can be set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("maxProperties" = 1))]
pub struct ProviderPackage {
    /// An executable or a directory in the controller's Pod, such as an image that is mounted as a volume.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// A directory in the controller's Pod with the layout of Terraform's filesystem mirror.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filesystem_mirror: Option<String>,
    /// The URL of a server that implements Terraform's network mirror protocol.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network_mirror: Option<String>,
    /// A repository of an OCI registry with the layout of OpenTofu's OCI mirrors:
    /// `HOST/PATH/${hostname}/${namespace}/${type}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oci_mirror: Option<String>,
}

/// An environment variable of a provider.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProviderVariable {
    /// The name of the variable.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// The value of the variable. The default is its value in the controller's environment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
}

/// Limits of a provider.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProviderLimits {
    /// The maximum number of concurrent calls for each ProviderConfig. The default is 10.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<i32>", range(min = 1, max = 1000))]
    pub calls: Option<u32>,
    /// The memory limit of each process of the provider, such as `512Mi`. A process above the limit gets no new calls
    /// and exits when its running calls have finished. At twice the limit, the kernel denies further memory and the
    /// process crashes. The default is `controller.providerMemory` of the chart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 20), regex(pattern = "^[1-9][0-9]*(k|M|G|Ki|Mi|Gi)?$"))]
    pub memory: Option<String>,
}

/// The observed state of a Provider.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProviderStatus {
    /// The generation of the Provider for which the status was written.
    #[serde(default)]
    pub observed_generation: i64,
    /// Always `Ready`. `Unconfined` while the provider runs without a sandbox, which an administrator has allowed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
    /// The installed version. A provider that is given by the path of its executable has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The version of the plugin protocol that the provider uses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<i32>,
    /// The number of resource types that the provider serves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_types: Option<i32>,
    /// The version and checksums that later installations must match, as long as the version satisfies `spec.version`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lock: Option<ProviderLock>,
}

/// The selected package of a provider, like an entry of Terraform's lock file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProviderLock {
    /// The selected version.
    pub version: String,
    /// The version constraint when the version was selected.
    #[serde(default)]
    pub constraint: String,
    /// The checksums of the version's packages for all known platforms.
    #[serde(default)]
    pub hashes: Vec<String>,
}

/// The provider configuration.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "purlin.dev",
    version = "v1alpha1",
    kind = "ProviderConfig",
    plural = "providerconfigs",
    shortname = "ppc",
    category = "purlin",
    namespaced,
    status = "ProviderConfigStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "The configuration and credentials with which a provider manages the Resources of a namespace.",
    printcolumn = r#"{"name": "READY", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].status",
        "description": "Whether the provider accepted the configuration."}"#,
    printcolumn = r#"{"name": "SYNCED", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Synced\")].status",
        "description": "Whether the current configuration was evaluated."}"#,
    printcolumn = r#"{"name": "REASON", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].reason",
        "description": "The reason of the condition `Ready`."}"#,
    printcolumn = r#"{"name": "PROVIDER", "type": "string", "jsonPath": ".status.provider",
        "description": "The name of the Provider."}"#,
    printcolumn = r#"{"name": "VERSION", "type": "string", "jsonPath": ".status.version",
        "description": "The version of the provider."}"#,
    printcolumn = r#"{"name": "USERS", "type": "integer", "jsonPath": ".status.users",
        "description": "The number of Resources that use the ProviderConfig."}"#,
    printcolumn = r#"{"name": "AGE", "type": "date", "jsonPath": ".metadata.creationTimestamp",
        "description": "When the ProviderConfig was created."}"#,
    printcolumn = r#"{"name": "MESSAGE", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].message",
        "description": "Why the configuration can or cannot be used.", "priority": 1}"#
)]
#[serde(rename_all = "camelCase")]
pub struct ProviderConfigSpec {
    /// The Provider. The default is the Provider with the name of the ProviderConfig.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<NameRef>,

    /// The arguments of the provider's configuration, as in a Terraform `provider` block. Every string can contain
    /// expressions. Purlin creates the objects that they reference before it configures the provider.
    #[serde(default, skip_serializing_if = "serde_json::Map::is_empty")]
    #[schemars(schema_with = "schema::free_map")]
    pub config: serde_json::Map<String, serde_json::Value>,

    /// Values from ConfigMaps and Secrets in this namespace, available to expressions as `${inputs.NAME}`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 100),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"])
    )]
    pub inputs: Vec<Input>,

    /// The ServiceAccount in this namespace with which Purlin reads the inputs, and creates the Pod of `runner`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub service_account_name: Option<String>,

    /// Where the provider runs with this configuration. It replaces the whole `spec.runner` of the Provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runner: Option<ProviderRunner>,
}

/// The observed state of a ProviderConfig.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProviderConfigStatus {
    /// The generation of the ProviderConfig for which the status was written.
    #[serde(default)]
    pub observed_generation: i64,
    /// Always `Ready` and `Synced`. `DeletionBlocked` only while it is true.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
    /// The name of the Provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// The version of the provider that accepted the configuration. A provider that is given by the path of its
    /// executable has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The number of Resources that use the ProviderConfig, including deleted Resources that still have a record.
    #[serde(default)]
    pub users: i32,
}
