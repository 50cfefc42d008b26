//! The kind `Plan`: what proposed manifests would change, or changes that wait for approval.

use std::sync::LazyLock;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{plan_name, schema};
use model::{Action, Address, DeposedKey, Operation, Path, Reason, ReplaceOrder, Severity};

/// The maximum size of the manifests in a `Plan`, in bytes: manifests and status together must fit into an object.
pub const MAX_MANIFESTS: usize = 900 * 1024;

/// A preview of proposed manifests, or the approval of changes.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "purlin.dev",
    version = "v1alpha1",
    kind = "Plan",
    root = "PlanObject",
    plural = "plans",
    shortname = "pplan",
    category = "purlin",
    namespaced,
    status = "PlanStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "A preview of what Purlin would change if the proposed manifests were applied, or changes that Purlin makes when \
           they are approved.",
    printcolumn = r#"{"name": "USE", "type": "string", "jsonPath": ".status.use",
        "description": "Preview, or Approval of changes that wait."}"#,
    printcolumn = r#"{"name": "COMPUTED", "type": "string",
        "jsonPath": ".status.conditions[?(@.type==\"Computed\")].status",
        "description": "Whether the status has the changes."}"#,
    printcolumn = r#"{"name": "APPROVAL", "type": "string", "jsonPath": ".status.approval",
        "description": "Waiting, Approved, Rejected, Applied, Superseded, Expired or Invalid. Empty for a preview."}"#,
    printcolumn = r#"{"name": "RESULT", "type": "string", "jsonPath": ".status.result",
        "description": "NoChanges, Changes or Errors."}"#,
    printcolumn = r#"{"name": "CREATE", "type": "integer", "jsonPath": ".status.summary.create",
        "description": "The number of objects to create."}"#,
    printcolumn = r#"{"name": "UPDATE", "type": "integer", "jsonPath": ".status.summary.update",
        "description": "The number of objects to update in place."}"#,
    printcolumn = r#"{"name": "REPLACE", "type": "integer", "jsonPath": ".status.summary.replace",
        "description": "The number of objects to replace."}"#,
    printcolumn = r#"{"name": "DESTROY", "type": "integer", "jsonPath": ".status.summary.destroy",
        "description": "The number of objects to destroy."}"#,
    printcolumn = r#"{"name": "AGE", "type": "date", "jsonPath": ".metadata.creationTimestamp",
        "description": "When the Plan was created."}"#,
    printcolumn = r#"{"name": "MESSAGE", "type": "string",
        "jsonPath": ".status.conditions[?(@.type==\"Computed\")].message",
        "description": "A summary of the changes, or why they could not be computed.", "priority": 1}"#
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {"rule": "has(self.preview) != has(self.digest)", "message": "exactly one of preview and digest must be set"},
    {"rule": "has(self.preview) == has(oldSelf.preview) && (!has(self.preview) || self.preview == oldSelf.preview)",
     "message": "a preview cannot be changed: create another Plan"},
    {"rule": "has(self.digest) == has(oldSelf.digest) && (!has(self.digest) || self.digest == oldSelf.digest)",
     "message": "a digest cannot be changed: create another Plan"},
    {"rule": "has(self.changes) == has(oldSelf.changes) && (!has(self.changes) || self.changes == oldSelf.changes)",
     "message": "the changes cannot be changed: create another Plan"},
    {"rule": "!(has(oldSelf.approved) && oldSelf.approved) || (has(self.approvalValidSeconds) == \
              has(oldSelf.approvalValidSeconds) && (!has(self.approvalValidSeconds) || \
              self.approvalValidSeconds == oldSelf.approvalValidSeconds))",
     "message": "how long an approval is valid cannot be changed: create another Plan"},
    {"rule": "has(self.digest) || !(has(self.changes) || has(self.approved) || has(self.rejected))",
     "message": "changes, approved and rejected need a digest"},
    {"rule": "!(has(self.approved) && self.approved && has(self.rejected) && self.rejected)",
     "message": "a Plan cannot be approved and rejected"},
    {"rule": "!(has(oldSelf.approved) && oldSelf.approved) || (has(self.approved) && self.approved)",
     "message": "an approval cannot be withdrawn: delete the Plan"},
    {"rule": "!(has(oldSelf.rejected) && oldSelf.rejected) || (has(self.rejected) && self.rejected)",
     "message": "a rejection cannot be withdrawn: delete the Plan"},
]))]
pub struct PlanSpec {
    /// The proposed manifests. They cannot be changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preview: Option<Preview>,

    /// The digest of the changes that wait for approval. A preview prints it, so that changes can be approved in Git before
    /// they are due.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 64, max = 64), regex(pattern = "^[0-9a-f]+$"))]
    pub digest: Option<String>,

    /// The changes that the digest covers, as a preview prints them. If they are other ones, the Plan is invalid. With them, Purlin can approve each change when it is
    /// due, and the status says what differs. Without them, all changes of the digest must be due at the same time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = Self::MAX_CHANGES))]
    pub changes: Vec<ChangeDigest>,

    /// Whether Purlin may make the changes. This needs the right `approve` on Plans.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub approved: bool,

    /// Whether the changes are rejected: they wait until the Resources change. This needs the right `approve` on Plans.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub rejected: bool,

    /// How long an approval is valid, in seconds. The default is seven days.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<i32>", range(min = 60, max = 31_536_000))]
    pub approval_valid_seconds: Option<u32>,

    /// How long a preview is kept after it was computed, and how long Purlin keeps a Plan of its own after its changes are
    /// applied or superseded, in seconds. The default is one hour for a preview, and seven days otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<i32>", range(min = 0, max = 2_592_000))]
    pub ttl_seconds_after_finished: Option<u32>,
}

impl PlanSpec {
    /// The maximum number of changes.
    pub const MAX_CHANGES: usize = 5000;
}

/// A change that needs an approval.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChangeDigest {
    /// The address of the object.
    #[schemars(with = "String", length(max = 1024))]
    pub address: Address,
    /// `Create`, `Update`, `Replace` or `Destroy`.
    #[schemars(with = "String", length(max = 16))]
    pub action: Action,
    /// The digest of the change: of its action, its order, its attributes before and after, and the configuration of those
    /// that are unknown. It is made of what `status.changes` shows of the change, and of its `proof`.
    #[schemars(length(min = 64, max = 64))]
    pub digest: String,
    /// The attributes that were known only after the apply, or the groups that contain them. When the change is made, they
    /// have the values that their configuration gives, which must be the same.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<String>", length(max = 1000), inner(length(max = 1024)))]
    pub unknown_paths: Vec<Path>,
    /// Whether the change was made. Only in the status.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub applied: bool,
}

/// Whether changes that need an approval can be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ApprovalState {
    /// They wait for an approval, or the approved changes are not due yet.
    Waiting,
    /// They are being made.
    Approved,
    Rejected,
    /// They were made.
    Applied,
    /// Other changes have taken their place, or they are no longer needed.
    Superseded,
    /// The approval was not used in time.
    Expired,
    /// Its changes are not those of its digest. It approves nothing.
    Invalid,
}

impl ApprovalState {
    /// Whether it never changes again.
    pub fn is_final(self) -> bool {
        matches!(self, Self::Applied | Self::Superseded | Self::Expired | Self::Invalid)
    }
}

/// Changes that one Plan approves: those of the objects that are connected with each other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RequiredApproval {
    /// The digest to approve.
    pub digest: String,
    /// The changes. Empty if there are very many: then `status.approvalsZstd` has them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<ChangeDigest>,
}

impl RequiredApproval {
    /// A name for the Plan that approves them.
    pub fn plan_name(&self) -> String {
        plan_name::first(self.changes.first().map(|change| change.address.object_name()), &self.digest)
    }

    /// Another name, if a Plan with other changes has that one.
    pub fn other_plan_name(&self, random: u64) -> String {
        plan_name::other(self.changes.first().map(|change| change.address.object_name()), &self.digest, random)
    }
}

/// Proposed manifests, and what happens to the Resources that they do not contain.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {"rule": "has(self.manifests) != has(self.manifestsZstd)",
     "message": "exactly one of manifests and manifestsZstd must be set"},
    {"rule": "has(self.selector) == (has(self.prune) && self.prune == 'Selector')",
     "message": "selector must be set if prune is Selector, and only then"},
]))]
pub struct Preview {
    /// Resources, DataSources and ConfigMaps as YAML documents. Other kinds are ignored: the preview uses the
    /// ProviderConfigs and Secrets of the namespace. Everyone who may read the Plan can read them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 921_600))]
    pub manifests: Option<String>,
    /// The same, compressed with zstd and encoded with Base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 921_600))]
    pub manifests_zstd: Option<String>,
    /// The Resources and DataSources of the namespace that the preview treats as deleted if the manifests do not contain
    /// them: None, those that `selector` selects (Selector), or All. The default is None.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::prune")]
    pub prune: Option<Prune>,
    /// A label selector in the syntax of `kubectl -l`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024))]
    pub selector: Option<String>,
    /// The recorded objects that are read before they are compared: those whose drift interval has passed (Due), All or
    /// None. The default is Due.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::refresh")]
    pub refresh: Option<PreviewRefresh>,
    /// The ServiceAccounts that the manifests name. A manifest that names another one is an error.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), inner(length(max = 253)), extend("x-kubernetes-list-type" = "set"))]
    pub service_account_names: Vec<String>,
    /// The types of the Resources and DataSources in the manifests. A manifest with another type is an error.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1000), inner(length(max = 128)), extend("x-kubernetes-list-type" = "set"))]
    pub types: Vec<String>,
}

/// Which missing Resources count as deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Prune {
    #[default]
    None,
    Selector,
    All,
}

/// Which recorded objects are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum PreviewRefresh {
    #[default]
    Due,
    All,
    None,
}

/// The result of a Plan.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlanStatus {
    /// The generation of the Plan for which the status was written.
    #[serde(default)]
    pub observed_generation: i64,
    /// `Preview` of proposed manifests, or `Approval` of changes.
    #[serde(rename = "use", default, skip_serializing_if = "Option::is_none")]
    pub used_for: Option<PlanUse>,
    /// `Computed`: whether the status has the changes. `Approved`: whether they may be made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
    /// `NoChanges`, `Changes`, or `Errors` if some objects cannot be planned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<PlanOutcome>,
    /// The number of objects by action.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<PlanSummary>,
    /// The changes, without sensitive values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<PlannedChange>,
    /// What was left out because the status would be too large.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub omitted: Option<Omitted>,
    /// The steps of the changes, in a possible order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub graph: Option<PlanGraph>,
    /// Errors and warnings.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub diagnostics: Vec<PlanDiagnostic>,
    /// The changes that need an approval.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub approvals: Vec<RequiredApproval>,
    /// `approvals` with all changes, as JSON that is compressed with zstd and encoded with Base64, if there are very many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approvals_zstd: Option<String>,
    /// Whether the changes can be made. Not for a preview.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<ApprovalState>,
    /// Who approved or rejected the changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided_by: Option<String>,
    /// When Purlin received the approval or the rejection, in RFC 3339 format.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided_at: Option<String>,
    /// How the changes that are due differ from those of the digest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub differences: Vec<String>,
}

impl PlanStatus {
    /// The status as a merge patch that keeps nothing of another one: the fields that it lacks are null.
    ///
    /// # Errors
    /// If a value cannot be JSON.
    pub fn replacement(&self) -> serde_json::Result<serde_json::Map<String, serde_json::Value>> {
        static FIELDS: LazyLock<Vec<String>> = LazyLock::new(|| {
            let schema = schemars::schema_for!(PlanStatus);
            let fields = schema.get("properties").and_then(serde_json::Value::as_object);
            fields.map(|fields| fields.keys().cloned().collect()).unwrap_or_default()
        });
        let empty = FIELDS.iter().map(|field| (field.clone(), serde_json::Value::Null));
        let mut patch: serde_json::Map<_, _> = empty.collect();
        if let serde_json::Value::Object(own) = serde_json::to_value(self)? {
            patch.extend(own);
        }
        Ok(patch)
    }
}

/// What a Plan is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum PlanUse {
    Preview,
    Approval,
}

impl PlanUse {
    /// The label that the Plans of Purlin have, with the name of their use.
    pub const LABEL: &str = "purlin.dev/plan-use";

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Preview => "Preview",
            Self::Approval => "Approval",
        }
    }
}

/// The result of a plan in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum PlanOutcome {
    NoChanges,
    Changes,
    Errors,
}

/// What a status does not contain because of its size. A digest covers it nevertheless.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Omitted {
    /// The number of changes in `changes` without all of their values.
    #[serde(default)]
    pub values: i32,
    /// The number of changes that are not in `changes`.
    #[serde(default)]
    pub changes: i32,
    /// The number of errors and warnings that are not in `diagnostics`.
    #[serde(default)]
    pub diagnostics: i32,
    /// Whether `graph` is left out.
    #[serde(default)]
    pub graph: bool,
    /// The number of changes that are neither in `approvals` nor in `approvalsZstd`: their digest approves them while all of
    /// them are due.
    #[serde(default)]
    pub approvals: i32,
}

impl Omitted {
    /// What is left out, such as `the values of 2 changes, and 30 changes`. `None`: nothing.
    pub fn what(self) -> Option<String> {
        let parts = [
            counted(self.values, "change").map(|changes| format!("the values of {changes}")),
            counted(self.changes, "change"),
            counted(self.diagnostics, "message"),
            self.graph.then(|| "the order of the steps".to_owned()),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        match parts.split_last() {
            None => None,
            Some((last, [])) => Some(last.clone()),
            Some((last, others)) => Some(format!("{}, and {last}", others.join(", "))),
        }
    }
}

fn counted(count: i32, what: &str) -> Option<String> {
    (count > 0).then(|| format!("{count} {what}{}", if count == 1 { "" } else { "s" }))
}

/// The number of objects by action.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlanSummary {
    /// Existing objects to manage from now on. They can also be updated or replaced.
    #[serde(default)]
    pub import: i32,
    /// Objects to create.
    #[serde(default)]
    pub create: i32,
    /// Objects to update in place.
    #[serde(default)]
    pub update: i32,
    /// Objects to replace.
    #[serde(default)]
    pub replace: i32,
    /// Objects to destroy, including deposed objects.
    #[serde(default)]
    pub destroy: i32,
    /// Objects whose record is dropped, and which remain.
    #[serde(default)]
    pub forget: i32,
    /// Data sources to read.
    #[serde(default)]
    pub read: i32,
    /// Objects that cannot be planned, or must wait.
    #[serde(default)]
    pub blocked: i32,
}

/// The planned change of an object.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlannedChange {
    /// The address of the object.
    #[schemars(with = "String")]
    pub address: Address,
    /// The type of the object.
    #[serde(rename = "type")]
    pub type_name: String,
    /// `Create`, `Update`, `Replace`, `Destroy`, `Forget`, `Read`, `Record`, `Wait` or `Blocked`.
    #[schemars(with = "String")]
    pub action: Action,
    /// The order of a replacement: `DestroyFirst` or `CreateFirst`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub order: Option<ReplaceOrder>,
    /// The key of a deposed object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub deposed_key: Option<DeposedKey>,
    /// Whether the old object is forgotten instead of destroyed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub forget: bool,
    /// Whether the object existed before Purlin managed it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub imported: bool,
    /// The cause of the change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub because: Option<String>,
    /// Why the object is blocked, or why its destroy waits: a condition reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub reason: Option<Reason>,
    /// The message of a blocked object.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The objects that a blocked object waits for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<String>")]
    pub waiting_for: Vec<Address>,
    /// The attributes that force a replacement.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<String>")]
    pub replace_paths: Vec<Path>,
    /// The attributes that another client has changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<String>")]
    pub drifted_paths: Vec<Path>,
    /// The recorded attributes that are not null. A sensitive value is `(sensitive value)`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::any_value")]
    pub before: Option<serde_json::Value>,
    /// The planned attributes that are not null. A value that is known only after the apply is `(known after apply)`, and
    /// a sensitive one `(sensitive value)`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::any_value")]
    pub after: Option<serde_json::Value>,
    /// Whether `before` and `after` are not complete, because the status would be too large.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub values_omitted: bool,
    /// The attributes that are known only after the apply.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<String>")]
    pub unknown_paths: Vec<Path>,
    /// The sensitive attributes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<String>")]
    pub sensitive_paths: Vec<Path>,
    /// Those of the sensitive attributes that change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<String>")]
    pub changed_sensitive_paths: Vec<Path>,
    /// What the digest of the change is made of, besides what is shown here. Only of a change that needs an approval:
    /// `purlin approve` and the live view check with it that the digest covers what is shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<ChangeProof>,
}

/// What the digest of a change is made of, besides what is shown of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChangeProof {
    /// The digest of the whole change with a secret salt: it also covers what is not shown.
    pub sealed: String,
    /// The digest of `before` and `after`, if they are left out because of their size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub values: Option<String>,
    /// The random parts of names, which count as placeholders.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub generated: Vec<String>,
}

/// The order of the steps.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlanGraph {
    /// The steps, each after the steps that it waits for.
    #[serde(default)]
    pub nodes: Vec<PlanStep>,
    /// Which step waits for which, without those that others imply.
    #[serde(default)]
    pub edges: Vec<PlanEdge>,
}

/// A step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlanStep {
    /// The name of the step.
    pub id: String,
    /// The address of the object.
    #[schemars(with = "String")]
    pub address: Address,
    /// `create`, `update`, `destroy`, `forget`, `record`, `wait` or `read`.
    #[schemars(with = "String")]
    pub operation: Operation,
    /// The key of a deposed object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub deposed_key: Option<DeposedKey>,
    /// Whether the step is part of a replacement.
    #[serde(default)]
    pub replaces: bool,
}

/// A step that waits for another.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlanEdge {
    /// The step that waits.
    pub from: String,
    /// The step that it waits for.
    pub to: String,
    /// Why it waits.
    pub because: String,
}

/// An error or a warning.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlanDiagnostic {
    /// `error` or `warning`.
    #[schemars(with = "String")]
    pub severity: Severity,
    /// A condition reason.
    #[schemars(with = "String")]
    pub reason: Reason,
    /// The object, if the problem is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub address: Option<Address>,
    /// The field of the object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub path: Option<Path>,
    /// The line in the manifests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<i32>,
    /// The problem.
    pub summary: String,
    /// Its cause.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub detail: String,
    /// The next step for the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}
