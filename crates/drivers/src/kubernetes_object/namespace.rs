//! Objects in a namespace that is being deleted.
//!
//! Roles and RoleBindings are deleted with all other objects, in any order, so the service account may lose access
//! before Purlin can check that an object is deleted. The conditions of the Namespace report which kinds remain. A
//! deleted object cannot reappear, since a terminating namespace accepts no new objects.

use serde_json::Value as Json;

use crate::CallContext;
use model::{DriverError, ErrorKind};

use super::api_error::{self, RequestError};
use super::discovery::ApiKind;
use super::server::Caller;
use super::target::{Target, group_of};
use super::wait::ObjectRef;
use super::{KubernetesObject, error_context};

const NOT_REPORTED: &str = "it does not report the remaining objects yet";

/// Conditions that are true if the namespace controller could not delete or list all objects.
const FAILURES: [&str; 3] = [
    "NamespaceDeletionDiscoveryFailure",
    "NamespaceDeletionGroupVersionParsingFailure",
    "NamespaceDeletionContentFailure",
];

/// The condition that lists the remaining kinds, and the prefix of its message.
const REMAINING: (&str, &str) = ("NamespaceContentRemaining", "Some resources are remaining: ");

/// The condition that lists the remaining finalizers, and the prefix of its message.
const FINALIZERS: (&str, &str) =
    ("NamespaceFinalizersRemaining", "Some content in the namespace has finalizers remaining: ");

/// How the finalizers of Purlin begin.
const OURS: &str = "purlin.dev/";

/// Whether a namespace has remaining objects of a kind.
#[derive(Debug, PartialEq, Eq)]
enum RemainingContent {
    Nothing,
    /// Objects may remain, for this reason. `is_stuck`: they will remain until a user acts.
    Possible {
        why: String,
        is_stuck: bool,
    },
    /// The namespace is not being deleted.
    NotTerminating,
}

impl KubernetesObject {
    /// Handles a failed request: returns `Ok` if reading the object is forbidden and the object was deleted with the
    /// namespace of its Resource, and the error for the user otherwise.
    pub(crate) async fn deleted_with_namespace(
        &self,
        context: &CallContext,
        (kind, target): (&ApiKind, &Target),
        verb: &'static str,
        failure: &RequestError,
    ) -> Result<(), DriverError> {
        let error = api_error::to_driver_error(failure, &error_context(context, verb, &kind.resource(), target));
        let goes_along = self.impersonates && kind.namespaced && *target.namespace == *context.namespace;
        if !goes_along || error.kind != ErrorKind::Forbidden {
            return Err(error);
        }
        let place = ObjectRef { caller: Caller::Process, collection: "/api/v1/namespaces", name: &target.namespace };
        let Ok(namespace) = self.server.get(&place, context.deadline).await else { return Err(error) };
        match remaining_content(namespace.as_ref(), kind) {
            RemainingContent::Nothing => Ok(()),
            RemainingContent::NotTerminating => Err(error),
            RemainingContent::Possible { why, is_stuck: false } => Err(DriverError {
                kind: ErrorKind::Waiting,
                message: format!("waits until the namespace that is being deleted has no {}: {why}", kind.plural),
                hint: None,
                ..error
            }),
            RemainingContent::Possible { why, is_stuck: true } => Err(DriverError {
                message: format!(
                    "cannot {verb} {target}: the namespace is being deleted, and the service account `{}` has lost its \
                     rights with it. {target} counts as deleted when the status of the namespace reports no more \
                     objects of its kind: {why}",
                    context.service_account
                ),
                hint: Some(format!(
                    "run `kubectl describe namespace {}` to see the remaining objects and their finalizers",
                    target.namespace
                )),
                ..error
            }),
        }
    }
}

/// `namespace` is `None` if it does not exist.
fn remaining_content(namespace: Option<&Json>, kind: &ApiKind) -> RemainingContent {
    let Some(namespace) = namespace else { return RemainingContent::Nothing };
    if namespace["metadata"]["deletionTimestamp"].is_null() {
        return RemainingContent::NotTerminating;
    }
    let conditions = namespace["status"]["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let is_stuck = condition(conditions, FINALIZERS.0)
        .is_some_and(|(status, message)| status == "True" && has_foreign_finalizers(message));
    for name in FAILURES {
        match condition(conditions, name) {
            Some(("False", _)) => {}
            Some((_, why)) => return possible(why, true),
            None => return possible(NOT_REPORTED, is_stuck),
        }
    }
    // "False" does not prove that no objects remain: the namespace controller also reports it while it waits for Pods
    // and has not listed other kinds. A complete list always contains the Resource, which Purlin's finalizer keeps.
    let Some(("True", message)) = condition(conditions, REMAINING.0) else { return possible(NOT_REPORTED, is_stuck) };
    let Some(counts) = message.strip_prefix(REMAINING.1) else { return possible(NOT_REPORTED, is_stuck) };
    let counted: Option<Vec<&str>> = counts.split(", ").map(|count| Some(count.split_once(" has ")?.0)).collect();
    let counted_as = format!("{}.{}", kind.plural, group_of(&kind.api_version));
    match counted {
        None => possible(NOT_REPORTED, is_stuck),
        Some(counted) if counted.contains(&&*counted_as) => possible(message, is_stuck),
        Some(_) => RemainingContent::Nothing,
    }
}

/// The status and the message of a condition.
fn condition<'a>(conditions: &'a [Json], kind: &str) -> Option<(&'a str, &'a str)> {
    let condition = conditions.iter().find(|condition| condition["type"] == kind)?;
    Some((condition["status"].as_str()?, condition["message"].as_str().unwrap_or_default()))
}

fn possible(why: &str, is_stuck: bool) -> RemainingContent {
    RemainingContent::Possible { why: why.to_owned(), is_stuck }
}

/// Whether the condition names finalizers other than those of Purlin, which hold the objects until a user or another
/// controller removes them: `Some content in the namespace has finalizers remaining: a/b in 2 resource instances`.
fn has_foreign_finalizers(message: &str) -> bool {
    let finalizers = message.strip_prefix(FINALIZERS.1).unwrap_or(message);
    finalizers.split(", ").any(|finalizer| !finalizer.starts_with(OURS))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A namespace that is being deleted, with conditions as `(type, status, message)`.
    fn terminating(conditions: &[(&str, &str, &str)]) -> Json {
        let conditions: Vec<Json> = conditions
            .iter()
            .map(|(name, status, text)| json!({"type": name, "status": status, "message": text}))
            .collect();
        json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}, "status": {"conditions": conditions}})
    }

    fn kind(api_version: &str, plural: &str) -> ApiKind {
        ApiKind { api_version: api_version.to_owned(), plural: plural.to_owned(), namespaced: true }
    }

    #[track_caller]
    fn check(failure: Option<&str>, remaining: (&str, &str), expected: &RemainingContent) {
        let mut conditions = FAILURES.map(|name| (name, "False", "well"));
        if let Some(failure) = failure {
            conditions[0] = (FAILURES[0], "True", failure);
        }
        let conditions = [&conditions[..], &[(REMAINING.0, remaining.0, remaining.1)]].concat();
        assert_eq!(remaining_content(Some(&terminating(&conditions)), &kind("v1", "configmaps")), *expected);
        let of_group = remaining.1.replace("configmaps.", "deployments.apps");
        let conditions = [&conditions[..3], &[(REMAINING.0, remaining.0, &*of_group)]].concat();
        let other = match expected {
            RemainingContent::Possible { why, is_stuck } => {
                RemainingContent::Possible { why: why.replace("configmaps.", "deployments.apps"), is_stuck: *is_stuck }
            }
            RemainingContent::Nothing => RemainingContent::Nothing,
            RemainingContent::NotTerminating => RemainingContent::NotTerminating,
        };
        assert_eq!(remaining_content(Some(&terminating(&conditions)), &kind("apps/v1", "deployments")), other);
    }

    fn perhaps(why: &str) -> RemainingContent {
        RemainingContent::Possible { why: why.to_owned(), is_stuck: false }
    }

    #[test]
    fn a_kind_without_remaining_objects_is_deleted() {
        let ours = "Some resources are remaining: resources.purlin.dev has 2 resource instances";
        check(None, ("True", ours), &RemainingContent::Nothing);
        let both = "Some resources are remaining: configmaps. has 1 resource instances, resources.purlin.dev has 2 \
                    resource instances";
        check(None, ("True", both), &perhaps(both));
        let other =
            "Some resources are remaining: myconfigmaps.x.dev has 1 resource instances, pods. has 1 resource instances";
        check(None, ("True", other), &RemainingContent::Nothing);
    }

    #[test]
    fn objects_may_remain_until_all_kinds_are_listed() {
        let ours = "Some resources are remaining: resources.purlin.dev has 2 resource instances";
        let why = "Discovery failed for some groups, 1 failing: metrics.k8s.io/v1beta1";
        check(Some(why), ("True", ours), &RemainingContent::Possible { why: why.to_owned(), is_stuck: true });
        // The status while Pods remain.
        let unreported = perhaps("it does not report the remaining objects yet");
        check(None, ("False", "All content successfully removed"), &unreported);
        check(None, ("True", "in other words"), &unreported);
        check(None, ("True", "Some resources are remaining: some"), &unreported);
    }

    fn message(list: &str) -> String {
        format!("{}{list}", FINALIZERS.1)
    }

    #[test]
    fn only_the_finalizers_of_others_need_a_user() {
        let ours = "purlin.dev/destroy in 7 resource instances";
        assert!(!has_foreign_finalizers(&message(ours)));
        assert!(has_foreign_finalizers(&message("example.com/hold in 1 resource instances")));
        assert!(has_foreign_finalizers(&message(&format!("example.com/hold in 1 resource instances, {ours}"))));
        assert!(has_foreign_finalizers("in other words"));
    }

    #[test]
    fn an_active_namespace_and_a_deleted_namespace_are_distinguished() {
        let kind = ApiKind { api_version: "v1".to_owned(), plural: "configmaps".to_owned(), namespaced: true };
        assert_eq!(remaining_content(Some(&json!({"metadata": {}})), &kind), RemainingContent::NotTerminating);
        assert_eq!(
            remaining_content(Some(&terminating(&[])), &kind),
            perhaps("it does not report the remaining objects yet")
        );
        assert_eq!(remaining_content(None, &kind), RemainingContent::Nothing);
    }
}
