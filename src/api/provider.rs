//! The kinds `Provider` and `ProviderConfig`: which program serves types, and with which settings.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::resource::{Input, NameRef};
use super::schema;

/// Which provider plugin it is. It names a program to run, so only administrators should be allowed to write it.
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
    doc = "A Terraform or OpenTofu provider whose types Resources can have.",
    printcolumn = r#"{"name": "READY", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].status",
        "description": "Whether the provider can be used."}"#,
    printcolumn = r#"{"name": "SOURCE", "type": "string", "jsonPath": ".spec.source",
        "description": "The address of the provider."}"#,
    printcolumn = r#"{"name": "VERSION", "type": "string", "jsonPath": ".status.version",
        "description": "The version that is installed."}"#,
    printcolumn = r#"{"name": "TYPES", "type": "integer", "jsonPath": ".status.resourceTypes",
        "description": "How many types of Resources it has."}"#,
    printcolumn = r#"{"name": "AGE", "type": "date", "jsonPath": ".metadata.creationTimestamp",
        "description": "When the Provider was created."}"#,
    printcolumn = r#"{"name": "MESSAGE", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].message",
        "description": "Why the provider can, or cannot, be used.", "priority": 1}"#
)]
#[serde(rename_all = "camelCase")]
pub struct ProviderSpec {
    /// The provider's address: `HOST/NAMESPACE/TYPE`, or a part of it from the right, such as `hashicorp/random`. The
    /// default is the name of the Provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub source: Option<String>,

    /// Which versions will do, as Terraform writes it: `~> 3.6`, `>= 1.2, < 2`. The default is the newest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub version: Option<String>,

    /// Where the program comes from. The default is the registry that the source names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub package: Option<ProviderPackage>,

    /// Checksums of which the package must have one: `zh:...` or `h1:...`, as in Terraform's lock file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), extend("x-kubernetes-list-type" = "set"))]
    pub checksums: Vec<String>,

    /// Variables of the provider's environment. It gets no others of the controller's, but those that every program
    /// needs and those of proxies.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 100),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"])
    )]
    pub environment: Vec<ProviderVariable>,

    /// What of the file system in the controller's Pod the provider can reach, besides what every program needs: nothing
    /// else, where the kernel has Landlock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<ProviderFiles>,

    /// What the provider may use at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<ProviderLimits>,
}

/// Files and folders in the controller's Pod, each with everything in it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProviderFiles {
    /// What the provider can read and execute.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), inner(regex(pattern = "^/")), extend("x-kubernetes-list-type" = "set"))]
    pub read: Vec<String>,
    /// What the provider can read and write.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), inner(regex(pattern = "^/")), extend("x-kubernetes-list-type" = "set"))]
    pub write: Vec<String>,
}

/// Where the program of a provider comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("maxProperties" = 1))]
pub struct ProviderPackage {
    /// A program or a folder in the controller's Pod, such as an image that is mounted as a volume.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// A folder in the controller's Pod, laid out as Terraform's filesystem mirror.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filesystem_mirror: Option<String>,
    /// A server that speaks Terraform's network mirror protocol.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network_mirror: Option<String>,
    /// A repository of an OCI registry, laid out as OpenTofu's OCI mirrors:
    /// `HOST/PATH/${hostname}/${namespace}/${type}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oci_mirror: Option<String>,
}

/// A variable of a provider's environment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProviderVariable {
    /// Its name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Its value; without one it has the value that it has for the controller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
}

/// What a provider may use at most.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProviderLimits {
    /// How many calls may run at once under one ProviderConfig. The default is 10.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<i32>", range(min = 1, max = 1000))]
    pub calls: Option<u32>,
    /// How much memory each of its processes is to use, such as `512Mi`. One that has more gets no new calls, and ends
    /// with the last that runs in it; at twice as much the kernel refuses it more, and it crashes. The default is 2Gi,
    /// of which the kernel knows nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 20), regex(pattern = "^[1-9][0-9]*(k|M|G|Ki|Mi|Gi)?$"))]
    pub memory: Option<String>,
}

/// What is known of a provider.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProviderStatus {
    /// The generation that the status is about.
    #[serde(default)]
    pub observed_generation: i64,
    /// `Ready`, and `Unconfined` while the kernel cannot keep the provider from the controller's files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
    /// The version that is installed. A program that was named by its path has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The version of the provider protocol that it speaks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<i32>,
    /// How many types of Resources it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_types: Option<i32>,
    /// What every later installation has to keep to, as long as the version fits `spec.version`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lock: Option<ProviderLock>,
}

/// Which package of a provider is in use, as in a lock file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProviderLock {
    /// The version.
    pub version: String,
    /// Which versions would have done when it was chosen.
    #[serde(default)]
    pub constraint: String,
    /// What its packages hash to, on all platforms that are known.
    #[serde(default)]
    pub hashes: Vec<String>,
}

/// With which settings and credentials a provider is used.
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
    doc = "The settings and credentials with which a provider serves the Resources of a namespace.",
    printcolumn = r#"{"name": "READY", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].status",
        "description": "Whether the provider accepts the settings."}"#,
    printcolumn = r#"{"name": "SYNCED", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Synced\")].status",
        "description": "Whether the settings are known."}"#,
    printcolumn = r#"{"name": "PROVIDER", "type": "string", "jsonPath": ".status.provider",
        "description": "The Provider."}"#,
    printcolumn = r#"{"name": "VERSION", "type": "string", "jsonPath": ".status.version",
        "description": "The version of the provider."}"#,
    printcolumn = r#"{"name": "USERS", "type": "integer", "jsonPath": ".status.users",
        "description": "How many Resources use it."}"#,
    printcolumn = r#"{"name": "AGE", "type": "date", "jsonPath": ".metadata.creationTimestamp",
        "description": "When the ProviderConfig was created."}"#,
    printcolumn = r#"{"name": "MESSAGE", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].message",
        "description": "Why the settings can, or cannot, be used.", "priority": 1}"#
)]
#[serde(rename_all = "camelCase")]
pub struct ProviderConfigSpec {
    /// The Provider. The default is the one named as the ProviderConfig.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<NameRef>,

    /// The provider's own settings, by their own names. Any text may hold expressions; what they refer to is made
    /// before the provider is configured.
    #[serde(default, skip_serializing_if = "serde_json::Map::is_empty")]
    #[schemars(schema_with = "schema::free_map")]
    pub config: serde_json::Map<String, serde_json::Value>,

    /// Values from ConfigMaps and Secrets of this namespace, which expressions read as `${inputs.NAME}`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 100),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"])
    )]
    pub inputs: Vec<Input>,

    /// The service account of this namespace as which the inputs are read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub service_account_name: Option<String>,
}

/// What is known of a `ProviderConfig`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProviderConfigStatus {
    /// The generation that the status is about.
    #[serde(default)]
    pub observed_generation: i64,
    /// `Ready` and `Synced` always, `DeletionBlocked` while it is true.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
    /// The name of the Provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// The version of the provider that has accepted the settings. A program that was named by its path has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// How many Resources use it, those included of which only a record is left.
    #[serde(default)]
    pub users: i32,
}
