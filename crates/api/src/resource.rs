//! The kind `Resource`: an infrastructure object.
//!
//! The doc comments are the descriptions in the CRD, which `kubectl explain` shows.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::origins::{Import, Moved};
use super::schema;
use model::{ApprovalKind, Value, kubernetes_name};

/// The desired state of the object.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "purlin.dev",
    version = "v1alpha1",
    kind = "Resource",
    plural = "resources",
    shortname = "pres",
    category = "purlin",
    category = "managed",
    namespaced,
    status = "ResourceStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "An infrastructure object that Purlin creates, updates and destroys in dependency order.",
    selectable = ".spec.type",
    printcolumn = r#"{"name": "READY", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].status",
        "description": "Whether the object matches its Resource."}"#,
    printcolumn = r#"{"name": "SYNCED", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Synced\")].status",
        "description": "Whether the last plan of the object was applied."}"#,
    printcolumn = r#"{"name": "REASON", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].reason",
        "description": "The reason of the condition `Ready`."}"#,
    printcolumn = r#"{"name": "TYPE", "type": "string", "jsonPath": ".spec.type",
        "description": "The provider's type name of the object."}"#,
    printcolumn = r#"{"name": "ID", "type": "string", "jsonPath": ".status.displayId",
        "description": "The ID of the object at the provider; kind and name of a Kubernetes object."}"#,
    printcolumn = r#"{"name": "ACTION", "type": "string", "jsonPath": ".status.pending.action",
        "description": "The pending action."}"#,
    printcolumn = r#"{"name": "AGE", "type": "date", "jsonPath": ".metadata.creationTimestamp",
        "description": "When the Resource was created."}"#,
    printcolumn = r#"{"name": "MESSAGE", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].message",
        "description": "Why the object is or is not ready.", "priority": 1}"#
)]
#[serde(rename_all = "camelCase")]
pub struct ResourceSpec {
    /// The type of the object as the provider names it, such as `terraform_data` or `kubernetes_object`. The type is
    /// immutable: to change it, create a Resource with another name.
    #[serde(rename = "type")]
    #[schemars(schema_with = "schema::resource_type")]
    pub type_name: String,

    /// The ProviderConfig in this namespace with which Purlin manages the object. The default is the ProviderConfig
    /// whose name is the prefix of the type (`random` for `random_pet`). If it does not exist, Purlin uses the Provider
    /// with that name and an empty configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_config_ref: Option<NameRef>,

    /// The arguments of the object as the provider names them. Every string can contain expressions such as
    /// `${name.attribute}`.
    #[serde(default, skip_serializing_if = "serde_json::Map::is_empty")]
    #[schemars(schema_with = "schema::free_map")]
    pub config: serde_json::Map<String, serde_json::Value>,

    /// The number of objects, with the addresses `name[0]`, `name[1]` and so on. Either a whole number or an expression
    /// that evaluates to one. In `config`, `${count.index}` is the index of the object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::count")]
    pub count: Option<serde_json::Value>,

    /// One object for each key of a map or each string of a list, with addresses such as `name["key"]`. Either a map, a
    /// list of strings, or an expression that evaluates to one of them. In `config`, `${each.key}` and `${each.value}`
    /// are the key and the value of the object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::any_value")]
    pub for_each: Option<serde_json::Value>,

    /// True, false, or an expression such as `${ns.labels.stage == 'live'}`. If false, Purlin destroys existing objects
    /// of the Resource and creates no new ones. The default is true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::boolean_or_expression")]
    pub enabled: Option<serde_json::Value>,

    /// Resources in this namespace that must be created before this object and destroyed after it, in addition to those
    /// that expressions reference.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 1000),
        extend("x-kubernetes-list-type" = "atomic")
    )]
    pub depends_on: Vec<Dependency>,

    /// Values from ConfigMaps and Secrets in this namespace, available to expressions as `${inputs.NAME}`. Purlin reads
    /// them with the ServiceAccount `serviceAccountName` and updates the object when they change. Values from Secrets
    /// are sensitive.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 100),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"])
    )]
    pub inputs: Vec<Input>,

    /// Outputs to publish in ConfigMaps and Secrets in this namespace, for use by other programs. Purlin writes them
    /// with the ServiceAccount `serviceAccountName` when the object is ready, keeps them up to date, and deletes them
    /// with the object.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20), extend("x-kubernetes-list-type" = "atomic"))]
    pub publish: Vec<Publish>,

    /// How Purlin replaces the object, and whether Purlin may destroy it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lifecycle: Option<Lifecycle>,

    /// Commands and Jobs that Purlin runs, one after another, after it creates the object or before it destroys it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 20),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"])
    )]
    pub hooks: Vec<Hook>,

    /// What Purlin does with the object when it is removed from the desired state. `Delete` destroys the object.
    /// `Orphan` drops the record and leaves the object. The default is `Delete`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::deletion_policy")]
    pub deletion_policy: Option<DeletionPolicy>,

    /// The actions that Purlin is allowed to perform on the object. The default is all actions. With `[Observe]`,
    /// Purlin only reads the object, and `config` is optional. Without `Delete`, Purlin drops the record and leaves the
    /// object when it is removed from the desired state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::management_policies")]
    pub management_policies: Option<Vec<ManagementPolicy>>,

    /// The changes that wait until a Plan is approved. The annotation `purlin.dev/require-approval` of the Namespace can
    /// require more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<Approval>,

    /// How Purlin detects and handles changes made outside of Purlin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drift: Option<Drift>,

    /// An existing object that Purlin manages from now on instead of creating a new one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub import: Option<Import>,

    /// Former addresses of objects of this Resource: of an instance whose key changes, of a Resource that becomes an
    /// instance, or of another Resource. The recorded object gets the new address and stays unchanged. An entry can
    /// stay: it has no effect once the object is moved. An object that cannot be moved is not destroyed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 10000),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["from"])
    )]
    pub moved: Vec<Moved>,

    /// The ServiceAccount in this namespace with which Purlin reads and writes Kubernetes objects. The controller
    /// configures the default, usually `default`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub service_account_name: Option<String>,

    /// If true, Purlin neither reads nor changes the object, and a deletion waits. `purlin suspend` and `purlin resume` set
    /// it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub suspend: bool,

    /// Time limits of provider calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeouts: Option<Timeouts>,
}

/// An explicit dependency.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Dependency {
    /// The name of a Resource in this namespace, or `data.` and the name of a DataSource.
    #[schemars(schema_with = "schema::dependency_name")]
    pub name: String,
}

/// A value from a ConfigMap or Secret.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "has(self.configMapKeyRef) != has(self.secretKeyRef)",
    "message": "exactly one of configMapKeyRef and secretKeyRef must be set",
}]))]
pub struct Input {
    /// The name of the input in expressions: `${inputs.NAME}`.
    #[schemars(length(min = 1, max = 63), regex(pattern = "^[A-Za-z_][A-Za-z0-9_]*$"))]
    pub name: String,
    /// A key of a ConfigMap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_map_key_ref: Option<KeyRef>,
    /// A key of a Secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_key_ref: Option<KeyRef>,
}

/// A key of a ConfigMap or Secret in this namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KeyRef {
    /// The name of the ConfigMap or Secret.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// The key. A value that is not valid UTF-8 is available as base64.
    #[schemars(length(min = 1, max = 253))]
    pub key: String,
    /// If true, the value is null when the ConfigMap, Secret or key does not exist. By default, the object waits.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub optional: bool,
}

/// A ConfigMap or Secret to which Purlin writes outputs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "has(self.configMapRef) != has(self.secretRef)",
    "message": "exactly one of configMapRef and secretRef must be set",
}]))]
pub struct Publish {
    /// The ConfigMap to write. Purlin does not overwrite a ConfigMap that another client created. With `forEach` or
    /// `count`, use `${each.key}` or `${count.index}` in the name to write a separate ConfigMap for each instance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_map_ref: Option<NameRef>,
    /// The Secret to write. Sensitive values can only be published in a Secret. Purlin does not overwrite a Secret that
    /// another client created. With `forEach` or `count`, use `${each.key}` or `${count.index}` in the name to write a
    /// separate Secret for each instance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<NameRef>,
    /// The data to write. Every value can contain expressions, in which `self` is the object.
    #[schemars(extend("minProperties" = 1, "maxProperties" = 100))]
    pub data: BTreeMap<String, String>,
}

/// A reference to another object by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NameRef {
    /// The name of the object.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}

/// Terraform's `lifecycle` block.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Lifecycle {
    /// If true, a replacement creates the new object before it destroys the old one. This also applies to the objects
    /// that this object depends on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub create_before_destroy: Option<bool>,
    /// True, false, or an expression such as `${ns.labels.stage == 'live'}`. If true, Purlin does not destroy the
    /// object, also when the Resource is deleted. It reports the destroy or the replacement as blocked, keeps the
    /// dependencies of the object, and applies the rest of the plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::boolean_or_expression")]
    pub prevent_destroy: Option<serde_json::Value>,
    /// Objects whose changes replace this object: a Resource (`app_key`), an instance (`web[0]`, `web[each.key]`) or an
    /// attribute (`app_key.id`), written as in expressions. If this object cannot be replaced at the time of a change,
    /// Purlin replaces it later.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::set_of_strings")]
    pub replace_triggered_by: Vec<String>,
    /// Attributes that Purlin does not update on an existing object, such as `tags`, `tags["Owner"]` or `rule[0].port`.
    /// `all` selects every attribute. A new object is created with the configured values, also in a replacement.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::set_of_strings")]
    pub ignore_changes: Vec<String>,
    /// Conditions that Purlin checks before it creates, updates or replaces the object. Objects that they reference are
    /// dependencies.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), extend("x-kubernetes-list-type" = "atomic"))]
    pub preconditions: Vec<Requirement>,
    /// Conditions that Purlin checks after each change and each refresh of the object, which is available as `self`.
    /// While a condition is false, dependents wait, and a create-before-destroy replacement keeps the old object.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), extend("x-kubernetes-list-type" = "atomic"))]
    pub postconditions: Vec<Requirement>,
}

/// A precondition or postcondition.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Requirement {
    /// An expression, `${...}`, that evaluates to true or false.
    #[schemars(length(min = 1, max = 16384))]
    pub condition: String,
    /// The message to show when the condition is false. It can contain expressions.
    #[schemars(length(min = 1, max = 4096))]
    pub error_message: String,
}

/// A command or Job that runs after a create or before a destroy.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "has(self.exec) != has(self.job)",
    "message": "exactly one of exec and job must be set",
}]))]
pub struct Hook {
    /// The name of the hook, unique in the Resource.
    #[schemars(schema_with = "schema::hook_name")]
    pub name: String,
    /// When the hook runs. `AfterCreate` runs before the steps of dependents start. `BeforeDestroy` runs for every
    /// object of the Resource that is destroyed, even if the Resource has already been deleted.
    #[schemars(schema_with = "schema::hook_when")]
    pub when: HookPhase,
    /// How Purlin handles a failure of the hook. `Fail` replaces the object after a create, and keeps it before a
    /// destroy. `Continue` only reports a warning. The default is `Fail`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::hook_on_failure")]
    pub on_failure: Option<HookFailure>,
    /// A program to run. Only supported for Resources in local files; in a cluster, use `job`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exec: Option<Exec>,
    /// A Job to run with the ServiceAccount of the Resource. Only supported in a cluster; for local files, use
    /// `exec`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<Job>,
}

/// When a hook runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum HookPhase {
    #[default]
    AfterCreate,
    BeforeDestroy,
}

/// How Purlin handles a failure of a hook.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum HookFailure {
    #[default]
    Fail,
    Continue,
}

/// A program to run as a hook.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Exec {
    /// The program and its arguments. Each can contain expressions, in which `self` is the object.
    #[schemars(length(min = 1, max = 100))]
    pub command: Vec<String>,
}

/// A Job to run as a hook.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Job {
    /// The Pod template of the Job. Every string can contain expressions, in which `self` is the object.
    #[schemars(schema_with = "schema::free_map")]
    pub template: serde_json::Map<String, serde_json::Value>,
}

/// An action that Purlin is allowed to perform on an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ManagementPolicy {
    Observe,
    Create,
    Update,
    Replace,
    Delete,
}

/// What Purlin does with an object that is removed from the desired state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum DeletionPolicy {
    #[default]
    Delete,
    /// Drop the record and leave the object.
    Orphan,
}

/// The changes that wait until a Plan is approved.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Approval {
    /// `Create`, `Update`, `Replace`, `Destroy` (also by a replacement), and `Drift` (the correction of a change that was
    /// made outside of Purlin).
    #[schemars(schema_with = "schema::approval_kinds")]
    pub require_for: Vec<ApprovalKind>,
}

/// How Purlin detects and handles changes made outside of Purlin.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Drift {
    /// The interval between refreshes of the object, such as `1h30m`. The default is `30m`. Purlin detects changes of
    /// Kubernetes objects immediately if the ServiceAccount is allowed to watch them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::duration")]
    pub interval: Option<String>,
    /// `Correct` reverts the change, and creates a missing object again. `Report` only sets the condition `Drifted`.
    /// `Ignore` does not refresh the object, unless `spec.publish` needs its current values. The default is `Correct`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::drift_action")]
    pub action: Option<DriftAction>,
}

/// What Purlin does when an object was changed outside of Purlin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum DriftAction {
    /// Revert the change, or create the missing object again.
    #[default]
    Correct,
    /// Set the condition `Drifted`.
    Report,
    /// Do not refresh the object.
    Ignore,
}

/// Time limits of provider calls, such as `30m` or `1h30m`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Timeouts {
    /// The time limit of a create. The default is `30m`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::duration")]
    pub create: Option<String>,
    /// The time limit of an update. The default is `30m`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::duration")]
    pub update: Option<String>,
    /// The time limit of a destroy. The default is `30m`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::duration")]
    pub delete: Option<String>,
    /// The time limit of a read. The default is `5m`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::duration")]
    pub read: Option<String>,
}

/// The observed state of the object. It never contains sensitive values.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResourceStatus {
    /// The generation of the Resource for which the status was written; -1 before the first reconciliation.
    #[serde(default)]
    pub observed_generation: i64,

    /// Always `Ready` and `Synced`. `Reconciling`, `Stalled`, `Drifted`, `ApprovalRequired` and `DeletionBlocked` only
    /// while they are true.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,

    /// The ID of the object at the provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,

    /// The ID as lists show it: `KIND/NAME` of a Kubernetes object, whose ID is a UID, and otherwise the ID.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub display_id: Option<String>,

    /// Identifies the creates and updates that resulted in the current object, or in the objects of a family. It
    /// changes with every create or update.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,

    /// The attributes of the object, without sensitive values. Large values are truncated.
    #[serde(default, skip_serializing_if = "serde_json::Map::is_empty")]
    #[schemars(schema_with = "schema::free_atomic_map")]
    pub attributes: serde_json::Map<String, serde_json::Value>,

    /// The effective lifecycle, which also depends on other objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lifecycle: Option<EffectiveLifecycle>,

    /// The direct dependencies of the Resource.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub dependencies: Vec<String>,

    /// A summary of the objects of a Resource with `count` or `forEach`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instances: Option<Instances>,

    /// Deposed objects: old objects that were replaced and are not destroyed yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub deposed: Vec<Deposed>,

    /// The pending change. It is absent when the object is up to date.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pending: Option<Pending>,

    /// The last value of the annotation `purlin.dev/reconcile-requested-at` that Purlin has handled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_handled_reconcile_at: Option<String>,
}

/// The effective lifecycle.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EffectiveLifecycle {
    /// Whether a replacement creates the new object before it destroys the old one.
    pub create_before_destroy: bool,
    /// The reason, if the Resource itself does not configure create-before-destroy.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub because: String,
}

/// A summary of the instances.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Instances {
    /// The desired number of instances. It is absent while the number is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::counter")]
    pub desired: Option<u64>,
    /// The number of ready instances.
    #[schemars(schema_with = "schema::counter")]
    pub ready: u64,
    /// The number of deposed objects.
    #[schemars(schema_with = "schema::counter")]
    pub deposed: u64,
    /// The first instances with a problem, in address order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub troubled: Vec<TroubledInstance>,
}

/// An instance with a problem.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TroubledInstance {
    /// The address of the instance, such as `web[0]` or `web["blue"]`.
    pub address: String,
    /// The reason, as one CamelCase word.
    pub reason: String,
    /// What is wrong, and what to do next.
    pub message: String,
}

/// A deposed object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Deposed {
    /// The key of the instance. It is empty without `count` and `forEach`.
    #[serde(default)]
    pub instance: String,
    /// The key of the deposed object: eight hexadecimal digits.
    pub key: String,
    /// The ID of the deposed object at the provider.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub id: String,
    /// The objects whose steps must finish first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub waiting_for: Vec<String>,
}

/// A pending change.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Pending {
    /// `Create`, `Update`, `Replace`, `Destroy`, `Forget` or `Record`.
    pub action: String,
    /// The attributes that change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub paths: Vec<String>,
    /// The steps of other objects that must finish first, such as `app-key update`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub waiting_for: Vec<String>,
}

impl ResourceStatus {
    /// `KIND/NAME` of a Kubernetes object, as it is or as `spec.config` names it. `None` for other types.
    pub fn kubernetes_name(&self, config: &serde_json::Value) -> Option<String> {
        let planned = kubernetes_name(&Value::from_json(config.clone()))?;
        let is_known = !planned.contains("${");
        self.display_id.clone().or(is_known.then_some(planned))
    }
}

impl Resource {
    /// Returns the value of an annotation, or an empty string.
    pub fn annotation(&self, name: &str) -> &str {
        self.metadata.annotations.as_ref().and_then(|all: &BTreeMap<_, _>| all.get(name)).map_or("", String::as_str)
    }
}
