//! The kind `Resource`: one infrastructure object.
//!
//! The doc comments are the API's documentation: they become the descriptions that `kubectl explain` shows.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::schema;

/// What is wanted of the object.
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
    doc = "One infrastructure object that Purlin creates, updates and destroys in dependency order.",
    selectable = ".spec.type",
    printcolumn = r#"{"name": "READY", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].status",
        "description": "Whether the object is as its Resource describes it."}"#,
    printcolumn = r#"{"name": "SYNCED", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Synced\")].status",
        "description": "Whether the last plan of the object was carried out."}"#,
    printcolumn = r#"{"name": "TYPE", "type": "string", "jsonPath": ".spec.type",
        "description": "The provider's type of the object."}"#,
    printcolumn = r#"{"name": "ID", "type": "string", "jsonPath": ".status.id",
        "description": "What the provider knows the object by."}"#,
    printcolumn = r#"{"name": "ACTION", "type": "string", "jsonPath": ".status.pending.action",
        "description": "What will be done with the object."}"#,
    printcolumn = r#"{"name": "AGE", "type": "date", "jsonPath": ".metadata.creationTimestamp",
        "description": "When the Resource was created."}"#,
    printcolumn = r#"{"name": "MESSAGE", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].message",
        "description": "Why the object is, or is not, ready.", "priority": 1}"#
)]
#[serde(rename_all = "camelCase")]
pub struct ResourceSpec {
    /// The provider's own name of the type, such as `terraform_data` or `kubernetes_object`. It cannot be changed:
    /// create a Resource of another name instead.
    #[serde(rename = "type")]
    #[schemars(schema_with = "schema::type_name")]
    pub type_name: String,

    /// The ProviderConfig of this namespace under which the object is managed. The default is the one named like the
    /// prefix of the type (`random` of `random_pet`), and without that the Provider of that name, without settings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_config_ref: Option<NameRef>,

    /// The provider's own arguments, by their own names. Any text may hold expressions, `${name.attribute}`.
    #[serde(default, skip_serializing_if = "serde_json::Map::is_empty")]
    #[schemars(schema_with = "schema::free_map")]
    pub config: serde_json::Map<String, serde_json::Value>,

    /// So many objects instead of one, with the addresses `name[0]`, `name[1]` and so on: a whole number, or an
    /// expression that gives one. In `config` the number of each is `${count.index}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::count")]
    pub count: Option<serde_json::Value>,

    /// One object for each key of a map, or for each text of a list, with the addresses `name["key"]`: a map, a list of
    /// texts, or an expression that gives either. In `config` they are told apart by `${each.key}` and `${each.value}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::anything")]
    pub for_each: Option<serde_json::Value>,

    /// While it is false, it is as if the Resource were absent: its objects are destroyed, or never made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,

    /// The same, as an expression such as `${ns.labels.stage == 'live'}`, instead of `enabled`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 16384))]
    pub enabled_when: Option<String>,

    /// Resources of this namespace that must exist before this object and be destroyed after it, besides those
    /// that expressions refer to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 1000),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"])
    )]
    pub depends_on: Vec<Dependency>,

    /// Values from ConfigMaps and Secrets of this namespace, which expressions read as `${inputs.NAME}`. They are read
    /// as `serviceAccountName`, and a change of them changes the object. What comes from a Secret is sensitive.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 100),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"])
    )]
    pub inputs: Vec<Input>,

    /// Copies of outputs in ConfigMaps and Secrets of this namespace, for other programs. They are written as
    /// `serviceAccountName` once the object is ready, kept up to date, and removed with the object.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20), extend("x-kubernetes-list-type" = "atomic"))]
    pub publish: Vec<Publish>,

    /// How the object is replaced and whether it may be destroyed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lifecycle: Option<Lifecycle>,

    /// What is run after the object is created and before it is destroyed, one after another.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 20),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"])
    )]
    pub hooks: Vec<Hook>,

    /// What happens to the object when it is no longer wanted: `Delete` destroys it, `Orphan` leaves it alone and
    /// forgets it. The default is `Delete`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::deletion_policy")]
    pub deletion_policy: Option<DeletionPolicy>,

    /// What Purlin may do with the object; the default is everything. With `[Observe]` the object is only read, and
    /// `config` may be left out. Without `Delete` the object is left alone and forgotten when it is no longer wanted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::management_policies")]
    pub management_policies: Option<Vec<String>>,

    /// What happens when somebody else changes the object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drift: Option<Drift>,

    /// An object that exists already and is to be managed from now on, instead of creating one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub import: Option<Import>,

    /// The service account of this namespace as which Kubernetes objects are read and written. The default is set
    /// by the controller, usually `default`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub service_account_name: Option<String>,

    /// While it is true, nothing is done with the object: no reading, no changing, and a deletion waits. The
    /// annotation `purlin.dev/paused: "true"` is the same switch.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub suspend: bool,

    /// How long the provider may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeouts: Option<Timeouts>,
}

/// What must be there first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Dependency {
    /// The name of a Resource of this namespace, or `data.` and the name of a DataSource.
    #[schemars(schema_with = "schema::dependency_name")]
    pub name: String,
}

/// A value from outside.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "has(self.configMapKeyRef) != has(self.secretKeyRef)",
    "message": "give either configMapKeyRef or secretKeyRef",
}]))]
pub struct Input {
    /// What expressions call it: `${inputs.NAME}`.
    #[schemars(length(min = 1, max = 63), regex(pattern = "^[A-Za-z_][A-Za-z0-9_]*$"))]
    pub name: String,
    /// A key of a ConfigMap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_map_key_ref: Option<KeyRef>,
    /// A key of a Secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_key_ref: Option<KeyRef>,
}

/// One key of a ConfigMap or Secret of this namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KeyRef {
    /// The name of the ConfigMap or Secret.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// The key. Bytes that are no UTF-8 are given in base64.
    #[schemars(length(min = 1, max = 253))]
    pub key: String,
    /// When it does not exist, the value is null, and the object does not wait for it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub optional: bool,
}

/// A copy of outputs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "has(self.configMapRef) != has(self.secretRef)",
    "message": "give either configMapRef or secretRef",
}]))]
pub struct Publish {
    /// The ConfigMap to write. It must not exist, or be one that this Resource has written. In the name,
    /// `${each.key}` or `${count.index}` give each instance of a family a copy of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_map_ref: Option<NameRef>,
    /// The Secret to write, the only place for sensitive values. It must not exist, or be one that this Resource has
    /// written. In the name, `${each.key}` or `${count.index}` give each instance of a family a copy of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<NameRef>,
    /// What it holds: texts that may hold expressions, in which `self` is the object.
    #[schemars(extend("minProperties" = 1, "maxProperties" = 100))]
    pub data: BTreeMap<String, String>,
}

/// The name of another object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NameRef {
    /// The name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}

/// Terraform's `lifecycle` block.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Lifecycle {
    /// On replacement, create the new object before the old one is destroyed. What this object depends on is
    /// replaced the same way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub create_before_destroy: Option<bool>,
    /// Refuse every plan that would destroy the object, also while the Resource is being deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prevent_destroy: Option<bool>,
    /// The same, as an expression such as `${ns.labels.stage == 'live'}`, instead of `preventDestroy`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 16384))]
    pub prevent_destroy_when: Option<String>,
    /// Other objects that replace this one when they change: a Resource (`app_key`), an instance (`web[0]`,
    /// `web[each.key]`) or an attribute (`app_key.id`), written as in expressions. What changed while this object could
    /// not be replaced counts later.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::set_of_texts")]
    pub replace_triggered_by: Vec<String>,
    /// Attributes whose differences are not corrected once the object exists, such as `tags`, `tags["Owner"]` or
    /// `rule[0].port`; `all` stands for every attribute. A new object, also that of a replacement, gets them as
    /// configured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::set_of_texts")]
    pub ignore_changes: Vec<String>,
    /// What must hold before the object is created, updated or replaced. What they read are dependencies.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), extend("x-kubernetes-list-type" = "atomic"))]
    pub preconditions: Vec<Requirement>,
    /// What must hold of the object afterwards, and whenever it is looked at; `self` is the object. While one does
    /// not hold, what depends on the object waits, and the old object of a create-first replacement is kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), extend("x-kubernetes-list-type" = "atomic"))]
    pub postconditions: Vec<Requirement>,
}

/// Something that must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Requirement {
    /// An expression, `${...}`, that gives true or false.
    #[schemars(length(min = 1, max = 16384))]
    pub condition: String,
    /// What is told when it gives false. It may hold expressions.
    #[schemars(length(min = 1, max = 4096))]
    pub error_message: String,
}

/// Something that is run besides the provider's calls.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "has(self.exec) != has(self.job)",
    "message": "a hook has either exec or job",
}]))]
pub struct Hook {
    /// The name of the hook, of its own among those of the Resource.
    #[schemars(schema_with = "schema::hook_name")]
    pub name: String,
    /// When it runs: `AfterCreate`, before anything that depends on the object goes on, or `BeforeDestroy`, for every
    /// object of the Resource that is destroyed, also when the Resource is gone by then.
    #[schemars(schema_with = "schema::hook_when")]
    pub when: String,
    /// What its failure means. `Fail`: after a create the object is replaced, before a destroy it stays. `Continue`: a
    /// warning is told. The default is `Fail`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::hook_on_failure")]
    pub on_failure: Option<String>,
    /// A program to run. Only for files: in a cluster use `job`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exec: Option<Exec>,
    /// A Job to run, as the service account of the Resource. Only in a cluster: for files use `exec`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<Job>,
}

/// A program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Exec {
    /// The program and its arguments. Each may hold expressions; `self` is the object.
    #[schemars(length(min = 1, max = 100))]
    pub command: Vec<String>,
}

/// A Job.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Job {
    /// The template of its Pod. Any text may hold expressions; `self` is the object.
    #[schemars(schema_with = "schema::free_map")]
    pub template: serde_json::Map<String, serde_json::Value>,
}

/// What happens to an object that is no longer wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum DeletionPolicy {
    /// Destroy it.
    #[default]
    Delete,
    /// Leave it alone and forget it.
    Orphan,
}

/// How changes by somebody else are found, and what becomes of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Drift {
    /// How often the object is read, as `30m`, which is the default. Kubernetes objects that may be watched are seen
    /// at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::duration")]
    pub interval: Option<String>,
    /// `Correct` changes the object back, and makes it anew when it is gone. `Report` only tells it, in the condition
    /// `Drifted`. `Ignore` does not look. The default is `Correct`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::drift_action")]
    pub action: Option<DriftAction>,
}

/// What happens when somebody else changes an object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum DriftAction {
    /// It is changed back.
    #[default]
    Correct,
    /// It is told.
    Report,
    /// Nobody looks.
    Ignore,
}

/// An existing object to manage from now on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "has(self.id) != has(self.identity)",
    "message": "give either id or identity",
}]))]
pub struct Import {
    /// The provider's id of the object, as its documentation says for `terraform import`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 4096))]
    pub id: Option<String>,
    /// What the provider identifies the object by, for types that have an identity: its attributes by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::free_atomic_map")]
    pub identity: Option<serde_json::Value>,
}

/// How long the provider's calls may take, as `30m` or `1h30m`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Timeouts {
    /// Of a create. The default is `30m`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::duration")]
    pub create: Option<String>,
    /// Of an update. The default is `30m`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::duration")]
    pub update: Option<String>,
    /// Of a destroy. The default is `30m`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::duration")]
    pub delete: Option<String>,
    /// Of a read. The default is `5m`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::duration")]
    pub read: Option<String>,
}

/// What is known of the object. It never holds a sensitive value.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResourceStatus {
    /// The generation of the Resource that this status is about; -1 before the first look.
    #[serde(default)]
    pub observed_generation: i64,

    /// `Ready` and `Synced` always; `Reconciling`, `Stalled`, `Drifted` and `DeletionBlocked` while they are true.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,

    /// What the provider knows the object by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,

    /// Which creates and updates have made the object, or the objects of a family, what they are. Another value says
    /// that a step has changed them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,

    /// The object's attributes, without sensitive ones and cut when they are large.
    #[serde(default, skip_serializing_if = "serde_json::Map::is_empty")]
    #[schemars(schema_with = "schema::free_atomic_map")]
    pub attributes: serde_json::Map<String, serde_json::Value>,

    /// The lifecycle that is in effect, which other objects can force.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lifecycle: Option<EffectiveLifecycle>,

    /// The Resources that this one depends on directly.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub dependencies: Vec<String>,

    /// How the objects of a family stand (`count`, `forEach`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instances: Option<Instances>,

    /// Old objects that were replaced and are not destroyed yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub deposed: Vec<Deposed>,

    /// What will be done next, while something is to be done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pending: Option<Pending>,

    /// The value of the annotation `purlin.dev/reconcile-requested-at` that was last acted upon.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_handled_reconcile_at: Option<String>,
}

/// The lifecycle in effect.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EffectiveLifecycle {
    /// Whether a replacement creates the new object before it destroys the old one.
    pub create_before_destroy: bool,
    /// Because of whom, when it is not the Resource itself that asks for it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub because: String,
}

/// How many objects a family has, and which of them need somebody's attention.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Instances {
    /// How many there are to be. It is absent while that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::counter")]
    pub desired: Option<u64>,
    /// How many of them are as the Resource describes them.
    #[schemars(schema_with = "schema::counter")]
    pub ready: u64,
    /// How many old objects were replaced and are not destroyed yet.
    #[schemars(schema_with = "schema::counter")]
    pub deposed: u64,
    /// The first of those in trouble, in address order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub troubled: Vec<TroubledInstance>,
}

/// An instance in trouble.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TroubledInstance {
    /// Its address, as `web[0]` or `web["blue"]`.
    pub address: String,
    /// Why, in one CamelCase word.
    pub reason: String,
    /// Why, and what to do next, for people.
    pub message: String,
}

/// An old object that waits for its destruction.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Deposed {
    /// Which instance it was; empty for an object that is no family.
    #[serde(default)]
    pub instance: String,
    /// Its key, eight hexadecimal digits.
    pub key: String,
    /// What the provider knows it by.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub id: String,
    /// The objects whose steps come first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub waiting_for: Vec<String>,
}

/// What will be done next.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Pending {
    /// `Create`, `Update`, `Replace`, `Destroy`, `Forget` or `Record`.
    pub action: String,
    /// The attributes that it is about.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub paths: Vec<String>,
    /// The steps of other objects that come first, as `app-key: update`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub waiting_for: Vec<String>,
}

impl Resource {
    /// The value of an annotation; empty when it is absent.
    pub fn annotation(&self, name: &str) -> &str {
        self.metadata.annotations.as_ref().and_then(|all: &BTreeMap<_, _>| all.get(name)).map_or("", String::as_str)
    }
}
