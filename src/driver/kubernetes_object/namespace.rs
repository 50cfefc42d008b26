//! Objects in a namespace that is being deleted.
//!
//! Roles and RoleBindings go with everything else, in any order. So it may be forbidden to look for an object that is long
//! gone, and will be for ever. The Namespace itself may still be read: its conditions say of which kinds anything is left.
//! What is gone cannot come back, since such a namespace takes in nothing new.

use serde_json::Value as Json;

use crate::driver::CallContext;
use crate::model::{DriverError, ErrorKind};

use super::discovery::ApiKind;
use super::follow::Place;
use super::refusal::{self, Failure};
use super::server::Who;
use super::target::{Target, group_of};
use super::{KubernetesObject, attempt};

/// Conditions that are true when not everything could be deleted and counted.
const FAILURES: [&str; 3] = [
    "NamespaceDeletionDiscoveryFailure",
    "NamespaceDeletionGroupVersionParsingFailure",
    "NamespaceDeletionContentFailure",
];

/// The condition that tells what is left, and how its message begins.
const REMAINING: (&str, &str) = ("NamespaceContentRemaining", "Some resources are remaining: ");

/// What a namespace says of its objects of one kind.
#[derive(Debug, PartialEq, Eq)]
enum Left {
    Nothing,
    /// There may be some, for this reason.
    Perhaps(String),
    /// It is not being deleted.
    NotGoing,
}

impl KubernetesObject {
    /// Judges a request that failed: `Ok` when it was forbidden to look for the object, and it has gone with the namespace of
    /// its Resource. The error is otherwise for the user.
    pub(super) async fn gone_with_namespace(
        &self,
        context: &CallContext,
        (kind, target): (&ApiKind, &Target),
        verb: &'static str,
        failure: &Failure,
    ) -> Result<(), DriverError> {
        let refused = refusal::error(failure, &attempt(context, verb, &kind.resource(), target));
        let goes_along = self.impersonates && kind.namespaced && *target.namespace == *context.namespace;
        if !goes_along || refused.kind != ErrorKind::Forbidden {
            return Err(refused);
        }
        let place = Place { who: Who::Process, collection: "/api/v1/namespaces", name: &target.namespace };
        let Ok(namespace) = self.server.look(&place, context.deadline).await else { return Err(refused) };
        match left(namespace.as_ref(), kind) {
            Left::Nothing => Ok(()),
            Left::NotGoing => Err(refused),
            Left::Perhaps(why) => Err(DriverError {
                message: format!(
                    "cannot {verb} {target}: the namespace is being deleted, and the service account `{}` has lost its \
                     rights with it. {target} counts as gone once the namespace says that none of its kind is left: {why}",
                    context.service_account
                ),
                hint: Some(format!(
                    "`kubectl describe namespace {}` shows what is left, and which finalizers hold it",
                    target.namespace
                )),
                ..refused
            }),
        }
    }
}

/// `namespace`: `None` when it is gone.
fn left(namespace: Option<&Json>, kind: &ApiKind) -> Left {
    let Some(namespace) = namespace else { return Left::Nothing };
    if namespace["metadata"]["deletionTimestamp"].is_null() {
        return Left::NotGoing;
    }
    let conditions = namespace["status"]["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let find = |name: &str| {
        let one = conditions.iter().find(|condition| condition["type"] == name)?;
        Some((one["status"].as_str()?, one["message"].as_str().unwrap_or_default()))
    };
    let not_known = || Left::Perhaps("it does not say yet what is left".to_owned());
    for name in FAILURES {
        match find(name) {
            Some(("False", _)) => {}
            Some((_, why)) => return Left::Perhaps(why.to_owned()),
            None => return not_known(),
        }
    }
    // "Nothing is left" is said as well while Pods are waited for and nothing else was looked at. A look at everything
    // finds the Resource, which Purlin holds; after that the namespace is gone.
    let Some(("True", message)) = find(REMAINING.0) else { return not_known() };
    let Some(all) = message.strip_prefix(REMAINING.1) else { return not_known() };
    let counted: Option<Vec<&str>> = all.split(", ").map(|part| Some(part.split_once(" has ")?.0)).collect();
    let counted_as = format!("{}.{}", kind.plural, group_of(&kind.api_version));
    match counted {
        None => not_known(),
        Some(counted) if counted.contains(&&*counted_as) => Left::Perhaps(message.to_owned()),
        Some(_) => Left::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A namespace that is being deleted, with what its conditions say: `(condition, status, message)`.
    fn going(told: &[(&str, &str, &str)]) -> Json {
        let conditions: Vec<Json> =
            told.iter().map(|(name, status, text)| json!({"type": name, "status": status, "message": text})).collect();
        json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}, "status": {"conditions": conditions}})
    }

    #[track_caller]
    fn check(failure: Option<&str>, remaining: (&str, &str), expected: &Left) {
        let mut told = FAILURES.map(|name| (name, "False", "well"));
        if let Some(failure) = failure {
            told[0] = (FAILURES[0], "True", failure);
        }
        let told = [&told[..], &[(REMAINING.0, remaining.0, remaining.1)]].concat();
        let kind = |api_version: &str, plural: &str| ApiKind {
            api_version: api_version.to_owned(),
            plural: plural.to_owned(),
            namespaced: true,
        };
        assert_eq!(left(Some(&going(&told)), &kind("v1", "configmaps")), *expected);
        let of_group = remaining.1.replace("configmaps.", "deployments.apps");
        let told = [&told[..3], &[(REMAINING.0, remaining.0, &*of_group)]].concat();
        let other = match expected {
            Left::Perhaps(why) => Left::Perhaps(why.replace("configmaps.", "deployments.apps")),
            Left::Nothing => Left::Nothing,
            Left::NotGoing => Left::NotGoing,
        };
        assert_eq!(left(Some(&going(&told)), &kind("apps/v1", "deployments")), other);
    }

    fn perhaps(why: &str) -> Left {
        Left::Perhaps(why.to_owned())
    }

    #[test]
    fn a_kind_that_is_not_counted_is_gone() {
        let ours = "Some resources are remaining: resources.purlin.dev has 2 resource instances";
        check(None, ("True", ours), &Left::Nothing);
        let both = "Some resources are remaining: configmaps. has 1 resource instances, resources.purlin.dev has 2 \
                    resource instances";
        check(None, ("True", both), &perhaps(both));
        let other =
            "Some resources are remaining: myconfigmaps.x.dev has 1 resource instances, pods. has 1 resource instances";
        check(None, ("True", other), &Left::Nothing);
    }

    #[test]
    fn nothing_is_believed_before_everything_was_looked_at() {
        let ours = "Some resources are remaining: resources.purlin.dev has 2 resource instances";
        let why = "Discovery failed for some groups, 1 failing: metrics.k8s.io/v1beta1";
        check(Some(why), ("True", ours), &perhaps(why));
        // As it says while there are Pods.
        check(None, ("False", "All content successfully removed"), &perhaps("it does not say yet what is left"));
        check(None, ("True", "in other words"), &perhaps("it does not say yet what is left"));
        check(None, ("True", "Some resources are remaining: some"), &perhaps("it does not say yet what is left"));
    }

    #[test]
    fn a_namespace_that_stays_says_nothing_and_one_that_is_gone_has_nothing() {
        let kind = ApiKind { api_version: "v1".to_owned(), plural: "configmaps".to_owned(), namespaced: true };
        assert_eq!(left(Some(&json!({"metadata": {}})), &kind), Left::NotGoing);
        assert_eq!(left(Some(&going(&[])), &kind), perhaps("it does not say yet what is left"));
        assert_eq!(left(None, &kind), Left::Nothing);
    }
}
