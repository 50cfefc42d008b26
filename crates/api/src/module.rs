//! The kind `Module`: a Terraform module whose objects Purlin manages.
//!
//! The doc comments are the descriptions in the CRD, which `kubectl explain` shows.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::resource::{
    Approval, DeletionPolicy, Dependency, Drift, Input, NameRef, ResourceSpec, ResourceStatus, Timeouts,
    TroubledInstance,
};
use super::schema;

/// The source of the module, and the values of its variables.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "purlin.dev",
    version = "v1alpha1",
    kind = "Module",
    plural = "modules",
    shortname = "pmod",
    category = "purlin",
    category = "managed",
    namespaced,
    status = "ModuleStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "A Terraform module. Purlin manages each of its objects, with addresses such as `name/aws_vpc.main`.",
    printcolumn = r#"{"name": "READY", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].status",
        "description": "Whether all objects match the module."}"#,
    printcolumn = r#"{"name": "SYNCED", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Synced\")].status",
        "description": "Whether the last plan of all objects was applied."}"#,
    printcolumn = r#"{"name": "REASON", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].reason",
        "description": "The reason of the condition `Ready`."}"#,
    printcolumn = r#"{"name": "OBJECTS", "type": "string", "jsonPath": ".status.objects.summary",
        "description": "How many of the desired objects are ready."}"#,
    printcolumn = r#"{"name": "PENDING", "type": "string", "jsonPath": ".status.pending.summary",
        "description": "The pending changes."}"#,
    printcolumn = r#"{"name": "REVISION", "type": "string", "jsonPath": ".status.source.revision",
        "description": "The version or commit of the module."}"#,
    printcolumn = r#"{"name": "AGE", "type": "date", "jsonPath": ".metadata.creationTimestamp",
        "description": "When the Module was created."}"#,
    printcolumn = r#"{"name": "MESSAGE", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].message",
        "description": "Why the objects are or are not ready.", "priority": 1}"#
)]
#[serde(rename_all = "camelCase")]
pub struct ModuleSpec {
    /// Where the module comes from.
    pub source: ModuleSource,

    /// The values of the module's variables. Every string can contain expressions such as `${name.attribute}`.
    #[serde(default, skip_serializing_if = "serde_json::Map::is_empty")]
    #[schemars(schema_with = "schema::free_map")]
    pub variables: serde_json::Map<String, serde_json::Value>,

    /// Values from ConfigMaps and Secrets in this namespace, available to the expressions in `variables` as
    /// `${inputs.NAME}`. Purlin reads them with the ServiceAccount `serviceAccountName`. Values from Secrets are
    /// sensitive.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 100),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"])
    )]
    pub inputs: Vec<Input>,

    /// The ProviderConfigs in this namespace for the configurations of providers that the module leaves out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 100),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"])
    )]
    pub providers: Vec<ModuleProvider>,

    /// The value of `terraform.workspace` in the module. The default is `default`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 90))]
    pub workspace: Option<String>,

    /// Resources in this namespace that must be created before the objects of the module and destroyed after them, in
    /// addition to those that expressions reference.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 1000),
        extend("x-kubernetes-list-type" = "atomic")
    )]
    pub depends_on: Vec<Dependency>,

    /// What Purlin does with the objects when the Module is deleted. `Delete` destroys them. `Orphan` drops the records
    /// and leaves the objects. The default is `Delete`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::deletion_policy")]
    pub deletion_policy: Option<DeletionPolicy>,

    /// The changes that wait until a Plan is approved. The annotation `purlin.dev/require-approval` of the Namespace can
    /// require more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<Approval>,

    /// How Purlin detects and handles changes made outside of Purlin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drift: Option<Drift>,

    /// The ServiceAccount in this namespace with which Purlin reads `inputs`, and reads and writes Kubernetes objects of
    /// the module. The controller configures the default, usually `default`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub service_account_name: Option<String>,

    /// If true, Purlin neither reads nor changes the objects, and a deletion waits.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub suspend: bool,

    /// Time limits of provider calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeouts: Option<Timeouts>,
}

/// Where the module comes from. Exactly one field must be set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("minProperties" = 1, "maxProperties" = 1))]
pub struct ModuleSource {
    /// The files of the module, by name. They can call modules of other sources.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 100))]
    pub inline: BTreeMap<String, String>,
    /// A module of a registry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registry: Option<RegistrySource>,
    /// A directory of a Git repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git: Option<GitSource>,
    /// An archive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http: Option<HttpSource>,
    /// An artifact of an OCI registry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oci: Option<OciSource>,
}

/// A module of a registry.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RegistrySource {
    /// The address: `NAMESPACE/NAME/PROVIDER` with a host before it, unless it is that of the default registry, and with
    /// `//DIRECTORY` after it for a module inside of the package.
    #[schemars(length(min = 1, max = 1024))]
    pub module: String,
    /// A version constraint in Terraform's syntax, such as `~> 5.8`. The default selects the newest version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub version: Option<String>,
}

/// A directory of a Git repository.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GitSource {
    /// The URL of the repository: `https://...` or `ssh://...`.
    #[schemars(length(min = 1, max = 2048), regex(pattern = "^(https|http|ssh)://"))]
    pub url: String,
    /// A branch, a tag or a commit. The default is the default branch of the repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub r#ref: Option<String>,
    /// The directory of the module. The default is that of the repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024))]
    pub path: Option<String>,
}

/// An archive.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HttpSource {
    /// The URL of the archive.
    #[schemars(length(min = 1, max = 2048), regex(pattern = "^https?://"))]
    pub url: String,
    /// The SHA-256 checksum that the archive must have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 64, max = 64))]
    pub sha256: Option<String>,
    /// The directory of the module in the archive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024))]
    pub path: Option<String>,
}

/// An artifact of an OCI registry.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OciSource {
    /// The repository: `HOST/NAME`.
    #[schemars(length(min = 1, max = 1024))]
    pub repository: String,
    /// The tag. The default is `latest`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 128))]
    pub tag: Option<String>,
    /// The digest of the artifact, in the place of a tag.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 71, max = 71))]
    pub digest: Option<String>,
    /// The directory of the module in the artifact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024))]
    pub path: Option<String>,
}

/// A provider configuration of the module.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ModuleProvider {
    /// The name in the module: `aws`, or `aws.east` for one with an alias.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// The ProviderConfig in this namespace.
    pub provider_config_ref: NameRef,
}

/// The observed state of the module. It never contains sensitive values.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ModuleStatus {
    /// The generation of the Module for which the status was written; -1 before the first reconciliation.
    #[serde(default)]
    pub observed_generation: i64,

    /// Always `Ready` and `Synced`. `Reconciling`, `Stalled`, `Drifted`, `ApprovalRequired` and `DeletionBlocked` only
    /// while they are true.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,

    /// The module that is in force.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<ModuleRevision>,

    /// The outputs of the module, without sensitive values. Large values are truncated.
    #[serde(default, skip_serializing_if = "serde_json::Map::is_empty")]
    #[schemars(schema_with = "schema::free_atomic_map")]
    pub outputs: serde_json::Map<String, serde_json::Value>,

    /// The numbers of objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub objects: Option<ModuleObjects>,

    /// The first objects with a problem, in address order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub troubled: Vec<TroubledInstance>,

    /// The pending changes. It is absent when all objects are up to date.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pending: Option<ModulePending>,

    /// The Resources and Modules on which objects of the module depend.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub dependencies: Vec<String>,

    /// The last value of the annotation `purlin.dev/reconcile-requested-at` that Purlin has handled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_handled_reconcile_at: Option<String>,
}

/// The module that is in force.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ModuleRevision {
    /// The version of the registry, the commit of the repository, or the start of the digest.
    pub revision: String,
    /// The digest of all files of the module, and of the modules that it calls: `sha256:...`.
    pub digest: String,
}

/// Numbers of objects.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ModuleObjects {
    /// The ready and the desired objects, as `kubectl get` shows them: `30/31`.
    pub summary: String,
    /// The desired number of objects. It is absent while the number is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::counter")]
    pub desired: Option<u64>,
    /// The number of ready objects.
    #[schemars(schema_with = "schema::counter")]
    pub ready: u64,
    /// The number of deposed objects.
    #[schemars(schema_with = "schema::counter")]
    pub deposed: u64,
}

/// The pending changes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ModulePending {
    /// The changes, as `kubectl get` shows them: `1 create, 2 destroy`.
    pub summary: String,
    /// The number of objects to create.
    #[schemars(schema_with = "schema::counter")]
    pub create: u64,
    /// The number of objects to update.
    #[schemars(schema_with = "schema::counter")]
    pub update: u64,
    /// The number of objects to replace.
    #[schemars(schema_with = "schema::counter")]
    pub replace: u64,
    /// The number of objects to destroy or to forget.
    #[schemars(schema_with = "schema::counter")]
    pub destroy: u64,
    /// The steps of objects outside of the module that must finish first, such as `app-key update`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub waiting_for: Vec<String>,
}

/// What the status of a Module says besides that of a Resource.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModuleDetails {
    pub source: Option<ModuleRevision>,
    pub outputs: serde_json::Map<String, serde_json::Value>,
    pub pending: Option<ModulePending>,
}

impl ModuleStatus {
    /// The status of a Module, from that of all its objects.
    pub fn new(objects: ResourceStatus, details: ModuleDetails) -> Self {
        let ResourceStatus {
            observed_generation, conditions, instances, dependencies, last_handled_reconcile_at, ..
        } = objects;
        let (objects, troubled) = instances.map_or_else(Default::default, |instances| {
            let desired = instances.desired.map_or_else(|| "?".to_owned(), |desired| desired.to_string());
            let objects = ModuleObjects {
                summary: format!("{}/{desired}", instances.ready),
                desired: instances.desired,
                ready: instances.ready,
                deposed: instances.deposed,
            };
            (Some(objects), instances.troubled)
        });
        let ModuleDetails { source, outputs, pending } = details;
        Self {
            observed_generation,
            conditions,
            source,
            outputs,
            objects,
            troubled,
            pending,
            dependencies,
            last_handled_reconcile_at,
        }
    }
}

/// The status of an object of any kind that has a desired state. A `DataSource` has that of a Resource.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Status {
    Resource(Box<ResourceStatus>),
    Module(Box<ModuleStatus>),
}

impl Status {
    pub fn observed_generation(&self) -> i64 {
        match self {
            Self::Resource(status) => status.observed_generation,
            Self::Module(status) => status.observed_generation,
        }
    }

    pub fn conditions(&self) -> &[Condition] {
        match self {
            Self::Resource(status) => &status.conditions,
            Self::Module(status) => &status.conditions,
        }
    }

    /// Identifies the creates and updates that resulted in the object of a Resource.
    pub fn revision(&self) -> Option<&str> {
        match self {
            Self::Resource(status) => status.revision.as_deref(),
            Self::Module(_) => None,
        }
    }

    pub fn last_handled_reconcile_at(&self) -> Option<&str> {
        match self {
            Self::Resource(status) => status.last_handled_reconcile_at.as_deref(),
            Self::Module(status) => status.last_handled_reconcile_at.as_deref(),
        }
    }
}

impl From<ResourceStatus> for Status {
    fn from(status: ResourceStatus) -> Self {
        Self::Resource(Box::new(status))
    }
}

impl From<ModuleStatus> for Status {
    fn from(status: ModuleStatus) -> Self {
        Self::Module(Box::new(status))
    }
}

impl ModuleSpec {
    /// The settings that a Module has in common with a Resource.
    pub fn to_resource(&self) -> ResourceSpec {
        ResourceSpec {
            config: self.variables.clone(),
            depends_on: self.depends_on.clone(),
            inputs: self.inputs.clone(),
            deletion_policy: self.deletion_policy,
            approval: self.approval.clone(),
            drift: self.drift.clone(),
            service_account_name: self.service_account_name.clone(),
            suspend: self.suspend,
            timeouts: self.timeouts.clone(),
            ..ResourceSpec::default()
        }
    }
}
