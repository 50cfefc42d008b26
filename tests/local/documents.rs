//! Documents that are made from code are current. `UPDATE_EXPECT=1` rewrites them.

use std::fmt::Write as _;

use expect_test::expect_file;
use purlin::model::Reason;

/// What a user can do about it, for the reasons that wait for a person.
fn way_out(reason: Reason) -> &'static str {
    match reason {
        Reason::InvalidManifest => "Correct the manifest where the message points.",
        Reason::UnknownType => "Correct `spec.type`; `terraform_data` and `kubernetes_object` are built in.",
        Reason::ProviderNotFound => "Create it, or correct the name; the object goes on by itself then.",
        Reason::ProviderNotReady => {
            "See to what the message names: the package, the settings, or whatever the provider needs to start."
        }
        Reason::InvalidExpression => {
            "Correct the expression at the field named; `docs/expressions.md` has the language."
        }
        Reason::InvalidRepetition => {
            "Correct `count`, `forEach` or `enabledWhen`: `docs/families.md` tells what they may be."
        }
        Reason::InvalidConfig => "Correct the field named; `docs/types/` has the attributes of built-in types.",
        Reason::SelfReference => "Remove the reference, or refer to what you meant.",
        Reason::DependencyCycle => "Remove one of the references that the message names; it says which one is enough.",
        Reason::InputNotFound => {
            "Create the ConfigMap or Secret with that key, or set `optional: true`. The object goes on by itself then."
        }
        Reason::DependencyNotFound => "Create the Resource, or correct the name. The object goes on by itself then.",
        Reason::PreconditionFailed | Reason::PostconditionFailed => {
            "See the message, which is the author's; `docs/conditions.md` tells what a condition does."
        }
        Reason::HookFailed => "Correct the hook, or what it needs; the message has the end of its output.",
        Reason::OperationRefused | Reason::CreateKeepsFailing | Reason::ReplacementFailed => {
            "Change the object so that it can be made; a change of its spec starts the count anew."
        }
        Reason::TooManyLeftovers => "See why the old objects cannot be destroyed: `status.deposed` lists them.",
        Reason::CreateOutcomeUnknown => {
            "Set `spec.import.id` to the id of the object that was made, or declare that none was: `purlin state rm --force`."
        }
        Reason::RecordMissing => "Set `spec.import.id` to adopt the object, or forget it: `purlin state rm`.",
        Reason::RecordOfOtherType => "Give the Resource another name, or delete it with its old type first.",
        Reason::RecordUnreadable => "Upgrade Purlin if a newer one wrote the record; else restore it from a backup.",
        Reason::IdentityConflict => "Delete one of the two Resources; `deletionPolicy: Orphan` leaves the object.",
        Reason::AlreadyExists => "Set `spec.import.id` to manage the object from now on, or choose another name.",
        Reason::PublishConflict => "Publish under another name, or delete the ConfigMap or Secret that is there.",
        Reason::ImportNotFound => "Correct `spec.import.id`, or remove it to create a new object.",
        Reason::Drifted => {
            "Nothing with `spec.drift.action: Correct`. Otherwise set that, or change what is wanted; `docs/drift.md`."
        }
        Reason::GoneAfterConfigChange => {
            "Go back to the configuration that made it; or have it made anew with `purlin.dev/replace-requested-at` \
             (locally `purlin apply --replace`), or forget it with `purlin state rm`."
        }
        Reason::MassDisappearance => {
            "See what became of them. To have one made anew, set the annotation `purlin.dev/replace-requested-at` on its \
             Resource (locally `purlin apply --replace`)."
        }
        Reason::Gone => "Set `spec.drift.action: Correct` to have it made anew, or delete the Resource.",
        Reason::PreventDestroy => "Set `spec.lifecycle.preventDestroy: false`; locally also `purlin state unprotect`.",
        Reason::MoveBlocked => {
            "Delete the Resource that the object comes from, or remove the annotation `purlin.dev/moved-from`."
        }
        Reason::StillUsed => "Delete the object that uses it, or remove its reference.",
        Reason::FixedIdentity => {
            "Let the name be generated (`metadata.generateName`), or switch createBeforeDestroy off where it is asked for."
        }
        Reason::NotSelected => "Nothing; plan and apply without `--target` to have everything done.",
        Reason::ActionNotAllowed => {
            "Add the policy that the message names to `spec.managementPolicies`, or correct the spec."
        }
        Reason::Suspended => "Set `spec.suspend: false` and remove the annotation `purlin.dev/paused`.",
        Reason::Forbidden => {
            "Give the service account that the message names a Role with the verbs it lacks. In a namespace that is being \
             deleted, see to what is left in it."
        }
        Reason::SourceIncomplete => "Correct the file that cannot be read; orphans are destroyed only then.",
        Reason::CustomResourceDefinitionDeleted => {
            "`purlin state release --all` lets the Resources go and keeps the objects; installing again adopts them."
        }
        Reason::CustomResourceDefinitionUnknown | Reason::RecordNotRead => {
            "See in the message what keeps the API server from answering; the object goes on by itself then."
        }
        Reason::NamespaceTerminating => "Nothing; the namespace goes.",
        Reason::RecordNotWritten => {
            "See in the message why: no space on the disk, no right to write, or an API server that refuses or does not answer."
        }
        Reason::TimeLimitExceeded => {
            "Wait, or see in the provider's log why it takes so long. `spec.timeouts` sets the limit."
        }
        Reason::NotConfined => {
            "Run the controller on nodes with Landlock, or give its Pod nothing that providers must not see."
        }
        Reason::ProviderWarning => {
            "Read it. Nothing is held up by it; the provider's documentation tells what it would rather see."
        }
        Reason::DriverFault => "Report it to the authors of the provider; another version of it may work.",
        Reason::InternalError => "Report it, with the message.",
        Reason::Abandoned => {
            "Create the Resource again: it adopts the object. Or forget the object: `purlin state rm`."
        }
        _ => "Nothing.",
    }
}

#[test]
fn every_reason_has_its_page() {
    let mut text = String::from(
        "# Reasons\n\nA condition's `reason`, and the `reason` of a blocked change, is one of these. They are part of the \
         API: a\nreason keeps its meaning. The message beside it names the object, the field and the next step.\n",
    );
    for reason in Reason::ALL {
        let meaning = reason.explanation().trim();
        let _ = write!(text, "\n## {reason}\n\n{meaning}\n\nWhat to do: {}\n", way_out(*reason));
    }
    expect_file!["../../docs/reasons.md"].assert_eq(&text);
}
