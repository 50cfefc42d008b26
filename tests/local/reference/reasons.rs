//! `docs/reasons.md`: every condition reason, with the next step of the user.

use std::fmt::Write as _;

use expect_test::expect_file;
use purlin::model::Reason;

/// Returns the next step of the user, or when Purlin continues automatically.
#[expect(clippy::too_many_lines, reason = "one entry for each reason")]
fn next_step(reason: Reason) -> &'static str {
    match reason {
        Reason::InvalidManifest => "Correct the manifest where the message points.",
        Reason::SourceFailed => {
            "Correct `spec.source`, or the file and line that the message names. If a server was not available, nothing: Purlin \
     tries again by itself."
        }
        Reason::UnknownType => "Correct `spec.type`; `terraform_data` and `kubernetes_object` are built in.",
        Reason::ProviderNotFound => "Create it, or correct the name. Purlin then continues automatically.",
        Reason::ProviderNotReady => {
            "Fix the problem in the message: the package, the configuration, or a requirement of the provider."
        }
        Reason::InvalidExpression => {
            "Correct the expression in the field that the message names. `docs/expressions.md` documents the language."
        }
        Reason::InvalidRepetition => {
            "Correct `count`, `forEach` or `enabled`. `docs/families.md` documents the allowed values."
        }
        Reason::InvalidConfig => {
            "Correct the field that the message names. `purlin explain-type TYPE` lists the attributes of a type."
        }
        Reason::SelfReference => "Remove the reference, or correct the name in it.",
        Reason::DependencyCycle => {
            "Remove one of the references in the message. The hint names one whose removal is sufficient."
        }
        Reason::InputNotFound => {
            "Create the ConfigMap or Secret with the key, or set `optional: true`. Purlin then continues automatically."
        }
        Reason::DependencyNotFound => "Create the Resource, or correct the name. Purlin then continues automatically.",
        Reason::PreconditionFailed | Reason::PostconditionFailed => {
            "Read the message, which is defined in the Resource. `docs/conditions.md` documents conditions."
        }
        Reason::HookFailed => "Correct the hook or its requirements. The message contains the end of its output.",
        Reason::OperationRejected => {
            "Correct the spec of the Resource. A change of the spec also resets the count of failures."
        }
        Reason::ReplacementFailed => {
            "Read the error. Purlin tries again until the create has failed three times in a row. If the error is permanent, \
             correct the spec."
        }
        Reason::RepeatedCreateFailures => {
            "Correct the cause. Then change the spec, or set the annotation `purlin.dev/replace-requested-at` to a new value. \
             A change of the spec resets the count."
        }
        Reason::TooManyDeposedObjects => {
            "Find out why the deposed objects cannot be destroyed. `status.deposed` lists them."
        }
        Reason::CreateOutcomeUnknown => {
            "Run `purlin state recover` (in a cluster with `-n NAMESPACE`), which lists such creates, and say which objects \
             exist. Or set `spec.import.id`."
        }
        Reason::RecordMissing => {
            "Restore the record from a backup, or set `spec.import.id` to adopt the object. Run `purlin state rm` (in a cluster \
             with `-n NAMESPACE`) only if you know that the object does not exist: Purlin then creates a new one."
        }
        Reason::RecordTypeMismatch => "Rename the Resource, or delete it with its old type first.",
        Reason::RecordUnreadable => {
            "Upgrade Purlin if a newer version wrote the record. Otherwise, restore the record from a backup."
        }
        Reason::IdentityConflict => {
            "Delete one of the two Resources. With `deletionPolicy: Orphan`, the object is not destroyed."
        }
        Reason::NameCycle => {
            "Give one of the objects a third name. When the others have their new names, give it its own new name."
        }
        Reason::FieldKept => {
            "Remove the field with the manager that the message names, or with `kubectl edit`, or set it in the manifest."
        }
        Reason::AlreadyExists => "Set `spec.import.id` to manage the object from now on, or choose another name.",
        Reason::PublishConflict => "Publish under another name, or delete the existing ConfigMap or Secret.",
        Reason::ImportNotFound => "Correct `spec.import.id`, or remove it to create a new object.",
        Reason::Drifted => {
            "With `spec.drift.action: Correct`, nothing. Otherwise, set it or adjust the spec. See `docs/drift.md`."
        }
        Reason::ObjectMissingAfterConfigChange => {
            "Restore the previous provider configuration. Or create the object again with the annotation \
             `purlin.dev/replace-requested-at` (on files, `purlin apply --replace`), or forget it with `purlin state rm` (in \
             a cluster with `-n NAMESPACE`)."
        }
        Reason::ManyObjectsMissing => {
            "Find out why the objects are missing. To create one again, set the annotation \
             `purlin.dev/replace-requested-at` on its Resource (on files, `purlin apply --replace`)."
        }
        Reason::ObjectMissing => "Set `spec.drift.action: Correct` to create the object again, or delete the Resource.",
        Reason::ApprovalRequired => {
            "Look at the Plan that the message names, and approve or reject it (`docs/approval.md`)."
        }
        Reason::Rejected => {
            "Change the Resource; or delete the Plan that the message names, and decide on the next one (`docs/approval.md`)."
        }
        Reason::PreventDestroy => "Set `spec.lifecycle.preventDestroy: false`; on files also `purlin state unprotect`.",
        Reason::MoveBlocked => {
            "Read the hint in the message. If the Resource of the old address still exists, delete it. If `spec.moved` or the \
             annotation `purlin.dev/moved-from` is wrong, correct it. Removing it can destroy the old object: see \
             `docs/moves.md`."
        }
        Reason::InUse => {
            "Delete the dependent object, or remove its reference. To keep an object whose Resource is being deleted, run \
             `purlin state release NAME` and apply its manifest again."
        }
        Reason::CreateBeforeDestroyImpossible => {
            "Let the name be generated (`metadata.generateName`), or disable `createBeforeDestroy` where it is set."
        }
        Reason::NotSelected => "Plan and apply without `--target`, and with all files (`-f`), to apply all changes.",
        Reason::ActionForbiddenByPolicy => {
            "Add the policy that the message names to `spec.managementPolicies`, or correct the spec."
        }
        Reason::QuotaExceeded => {
            "If the message says when the step starts, nothing. Otherwise, delete other objects. Or ask an administrator to set \
             the annotation of the Namespace that the message names. See `docs/operations.md`."
        }
        Reason::Suspended => "Set `spec.suspend: false`, or run `purlin resume NAME`.",
        Reason::Degraded => {
            "Look at the object with `kubectl describe`, and at its Pods. Correct the Resource if it is the cause. Otherwise, \
             nothing: Purlin continues when the object is ready."
        }
        Reason::Terminating => {
            "Find out who deletes the object. The controllers of the finalizers in the message must remove them. Purlin then \
             creates the object again."
        }
        Reason::Forbidden => {
            "Bind a Role with the missing verbs to the ServiceAccount in the message. In a namespace that is being \
             deleted, clean up the remaining objects."
        }
        Reason::SourceIncomplete => {
            "Correct the error that the message names. Purlin then destroys the object. `purlin destroy -f` destroys the \
             objects of a source that contains no Resource."
        }
        Reason::OtherEnvironment => {
            "Use a state file for each environment, and select it with `--state`: see `docs/environments.md`. If the objects \
             have moved to the new manifests, remove the old ones."
        }
        Reason::CustomResourceDefinitionTerminating => {
            "Save the Resources (`kubectl get resources.purlin.dev -A -o yaml`). Run `purlin state release --all -n NAMESPACE` in \
             each namespace, which keeps the objects and their records. When the CRD is deleted, install it again with the \
             chart, and apply the Resources, without their `uid` and `resourceVersion`: Purlin adopts the records."
        }
        Reason::CustomResourceDefinitionUnknown | Reason::RecordUnavailable => {
            "Fix the problem with the API server in the message. Purlin then continues automatically."
        }
        Reason::NamespaceTerminating => "Create the Resource in another namespace if you still need the object.",
        Reason::RecordNotWritten => {
            "Fix the problem in the message, such as a full disk, a missing permission or an unavailable API server."
        }
        Reason::TimeLimitExceeded => "Wait, or find the cause in the provider's log. `spec.timeouts` sets the limit.",
        Reason::SandboxUnavailable => {
            "Run the controller on nodes with Landlock, and without `--allow-unconfined-providers`."
        }
        Reason::ProviderWarning => "Read the warning and the provider's documentation. The warning blocks nothing.",
        Reason::DriverFault => "Report it to the authors of the provider. Another version of the provider can help.",
        Reason::InternalError => "Report the bug with the message.",
        Reason::Abandoned => {
            "Create the Resource again to adopt the object, or forget the object with `purlin state rm -n NAMESPACE`."
        }
        Reason::PlanComputed => {
            "Read the changes: `kubectl get pplan NAME -o yaml`. `docs/preview.md` documents Plans."
        }
        Reason::Available => "Nothing. The object is up to date.",
        Reason::Progressing => "Wait. The message names the running operation, and Purlin updates it while it runs.",
        Reason::Deleting => "Wait. If the deletion takes long, check the message for the dependents that block it.",
        Reason::Disabled => "To create the object, set `spec.enabled: true`, or change its expression.",
        Reason::NoInstances => "If you expect objects, check the value of `count` or `forEach`, and what it reads.",
        Reason::DependencyNotReady => {
            "Check the dependency that the message names. Purlin continues automatically when it is ready."
        }
        Reason::Waiting => {
            "Check the change or condition that the message names. Purlin continues automatically when it is resolved."
        }
        Reason::OperationFailed => {
            "Read the error in the message. The controller retries after 1 second, then with delays of up to 5 \
             minutes, and immediately after a change of the Resource. On files, run `purlin apply` again."
        }
        Reason::OperationInProgress => {
            "Wait. Purlin checks again automatically. The message names the latest time at which the operation counts as \
             interrupted. It counts earlier if the process has shut down, or if its Pod no longer exists, has ended, or \
             was restarted. If the Pod is on a node that is lost for good, delete the Pod."
        }
        Reason::CreateBeforeDestroyForced => {
            "Remove `createBeforeDestroy: false`, or disable create-before-destroy in the dependent that the message \
             names."
        }
        Reason::ReleaseOrderFallback => {
            "Wait. If a destroy fails because its object is still in use, Purlin retries it after the dependents \
             have changed."
        }
        Reason::RecordedCycle => {
            "Apply the configuration once. This rewrites the records of the objects that the message names."
        }
        Reason::OrphanDependsOnDestroyed => "Check whether the kept object still works. Purlin no longer manages it.",
    }
}

const BEGIN: &str = "# Reasons

The status of a Resource, and of the other kinds, has these conditions:

| Condition | Meaning |
|---|---|
| `Ready` | The object exists and matches its Resource. |
| `Synced` | Nothing is left to do, including deposed objects and removed instances. |
| `Reconciling` | A change runs, waits, or is retried. You need not act. |
| `Stalled` | Purlin waits until you act. |
| `Drifted` | The object was changed outside of Purlin. |
| `ApprovalRequired` | A change waits for the approval of a Plan. |
| `DeletionBlocked` | The Resource is being deleted, and its object (or a user of a ProviderConfig) prevents this. |
| `Unconfined` (Provider) | The provider runs without a sandbox. |
| `Computed`, `Approved` (Plan) | The changes are computed; the changes may be made. |

`Ready` and `Synced` are always present; the others of a Resource only while they are true. In scripts, use the short names
`pres`, `pds`, `ppc`, `pprov` and `pplan` with kubectl: other projects have kinds with the same names.

A condition's `reason`, and the `reason` of a blocked change, is one of those below. The message names the object, the field
and the next step. Until version 1.0, reasons can change; the [changelog](../CHANGELOG.md) names each change. The condition
`Approved` of a Plan is an exception: its reason is `status.approval` ([Approve changes](approval.md)).
";

#[test]
fn every_reason_is_documented() {
    let mut text = BEGIN.to_owned();
    for reason in Reason::ALL {
        let meaning = reason.explanation().trim();
        let _ = write!(text, "\n## {reason}\n\n{meaning}\n\nWhat to do: {}\n", next_step(*reason));
    }
    expect_file!["../../../docs/reasons.md"].assert_eq(&text);
}
