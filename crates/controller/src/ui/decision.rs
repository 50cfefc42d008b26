//! Approves or rejects the changes of a Plan with the permissions of a user: `purlin approve`, `purlin reject` and the page.

use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde::Deserialize;
use serde_json::json;

use api::{ApprovalState, PlanObject, RawObject};
use engine::plan::approval::shown::{Mismatch, coverage};
use engine::plan::published;

/// What a user decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Decision {
    Approve,
    Reject,
}

/// The decision of a user of the page.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Request {
    pub namespace: String,
    pub plan: String,
    /// The UID of the Plan that the user has seen.
    pub uid: String,
    pub decision: Decision,
}

impl Decision {
    pub fn verb(self) -> &'static str {
        match self {
            Self::Approve => "approve",
            Self::Reject => "reject",
        }
    }

    /// The field of the spec that records the decision.
    fn field(self) -> &'static str {
        match self {
            Self::Approve => "approved",
            Self::Reject => "rejected",
        }
    }

    /// What has been done, as a sentence without a period.
    pub fn done(self, plan: &str) -> String {
        match self {
            Self::Approve => format!("The changes of `{plan}` are approved"),
            Self::Reject => format!("The changes of `{plan}` are rejected; the objects stay as they are"),
        }
    }
}

/// Why there is nothing to decide.
pub fn undecidable(plan: &PlanObject, decision: Decision) -> Option<String> {
    let name = plan.metadata.name.clone().unwrap_or_default();
    match plan.status.as_ref().and_then(|status| status.approval) {
        Some(ApprovalState::Applied) => Some(format!("The changes of `{name}` were made.")),
        Some(ApprovalState::Superseded) => {
            Some(format!("`{name}` is superseded: other changes are planned, or none at all."))
        }
        // That is an error: see `unseen`.
        Some(ApprovalState::Invalid) => None,
        Some(ApprovalState::Expired) => Some(format!("The approval of `{name}` has expired.")),
        _ if plan.spec.approved => Some(format!("`{name}` is already approved.")),
        _ if plan.spec.rejected && decision == Decision::Reject => Some(format!("`{name}` is already rejected.")),
        _ if plan.spec.rejected => Some(format!("`{name}` is rejected; delete it to get a new Plan.")),
        _ => None,
    }
}

/// Why a Plan is not what its user sees, and what to do. `None` if its digests cover what it shows.
pub fn forged(plan: &PlanObject, namespace: &str) -> Option<(String, String)> {
    let status = published::unpack(plan.status.clone().unwrap_or_default());
    let mismatch = coverage(&plan.spec, &status).err()?;
    let name = plan.metadata.name.as_deref().unwrap_or_default();
    let again = replaced(name, namespace);
    let (why, hint) = match mismatch {
        Mismatch::List => {
            let why = format!("the Plan `{name}` is invalid: it does not list the changes of its digest");
            let printed = "print it again with `purlin plan -o approval`".to_owned();
            (why, if plan.spec.changes.is_empty() { again } else { printed })
        }
        Mismatch::Change(address) => {
            let why = format!(
                "the Plan `{name}` is invalid: it shows a change of `{address}` that is not the one of its digest, so \
                 someone other than the controller has written its status"
            );
            (why, format!("{again}; only the controller needs the right to update `plans/status`"))
        }
    };
    Some((why, hint))
}

/// How the user gets a Plan that is true.
fn replaced(name: &str, namespace: &str) -> String {
    format!("delete it, and Purlin creates a true one within a minute: `kubectl -n {namespace} delete pplan {name}`")
}

/// Why a user cannot know what would be approved, and what to do. `None` if the Plan shows it.
pub fn unseen(plan: &PlanObject, decision: Decision, namespace: &str) -> Option<(String, String)> {
    if let Some(forged) = forged(plan, namespace) {
        return Some(forged);
    }
    let is_shown = plan.status.as_ref().is_some_and(|status| status.result.is_some());
    if decision == Decision::Reject || is_shown {
        return None;
    }
    let name = plan.metadata.name.as_deref().unwrap_or_default();
    if plan.status.is_none() {
        let why = format!("the Plan `{name}` does not show its changes yet");
        let hint = format!(
            "try again when the controller has written its status; if it does not, someone else has written one that cannot \
             be read: {}",
            replaced(name, namespace)
        );
        return Some((why, hint));
    }
    let why = format!("the Plan `{name}` does not show what it would approve: its changes are not those that wait now");
    let hint = format!(
        "approve the Plan that Purlin creates when changes wait (`kubectl -n {namespace} get pplan`), or approve your own \
         preview with the output of `purlin plan -o approval`"
    );
    Some((why, hint))
}

/// The name of the user, as the API server knows it.
///
/// # Errors
/// When the API server does not accept the credentials, or does not answer.
pub async fn user(client: Client) -> Result<String, kube::Error> {
    let reviews: Api<SelfSubjectReview> = Api::all(client);
    let review = reviews.create(&PostParams::default(), &SelfSubjectReview::default()).await?;
    Ok(review.status.and_then(|status| status.user_info).and_then(|user| user.username).unwrap_or_default())
}

/// Records the decision. `user`: its name, if known. `manager`: the field manager.
///
/// # Errors
/// When the API server refuses it, or another Plan has taken this name.
pub async fn write(
    plans: &Api<RawObject<PlanObject>>,
    plan: &PlanObject,
    decision: Decision,
    user: Option<String>,
    manager: &str,
) -> Result<(), kube::Error> {
    // Another Plan of this name is not the one that was shown; its digest cannot change.
    let metadata = json!({
        "uid": plan.metadata.uid,
        "annotations": { api::DECIDED_BY: user },
    });
    let patch = Patch::Merge(json!({ "metadata": metadata, "spec": { decision.field(): true } }));
    let params = PatchParams { field_manager: Some(manager.to_owned()), ..PatchParams::default() };
    plans.patch(plan.metadata.name.as_deref().unwrap_or_default(), &params, &patch).await.map(drop)
}

/// What a user without the right to decide can do. `None` if the error says so, or is another one.
pub fn hint(error: &kube::Error, namespace: &str) -> Option<String> {
    let kube::Error::Api(status) = error else { return None };
    (status.is_forbidden() && !status.message.contains("(hint: "))
        .then(|| format!("ask for a RoleBinding to the ClusterRole `purlin-approver` in the namespace `{namespace}`"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::{PlanSpec, PlanStatus};

    fn plan(state: Option<ApprovalState>, approved: bool, rejected: bool) -> PlanObject {
        let spec = PlanSpec { digest: Some("d".to_owned()), approved, rejected, ..PlanSpec::default() };
        let status = Some(PlanStatus { approval: state, ..PlanStatus::default() });
        PlanObject { spec, status, ..PlanObject::default() }
    }

    #[test]
    fn a_decision_is_made_once() {
        let (approve, reject) = (Decision::Approve, Decision::Reject);
        assert_eq!(undecidable(&plan(Some(ApprovalState::Waiting), false, false), approve), None);
        assert!(undecidable(&plan(Some(ApprovalState::Approved), true, false), reject).is_some());
        assert!(undecidable(&plan(Some(ApprovalState::Rejected), false, true), approve).is_some());
        for state in [ApprovalState::Applied, ApprovalState::Superseded, ApprovalState::Expired] {
            assert!(undecidable(&plan(Some(state), true, false), approve).is_some());
        }
    }

    /// An author can write a Plan with the digests of changes that were never shown.
    #[test]
    fn what_a_plan_does_not_show_can_only_be_rejected() {
        let mut plan = plan(Some(ApprovalState::Waiting), false, false);
        let (why, _) = unseen(&plan, Decision::Approve, "shop").unwrap();
        assert!(why.contains("does not show what it would approve"), "{why}");
        assert_eq!(unseen(&plan, Decision::Reject, "shop"), None);
        let status = plan.status.as_mut().unwrap();
        status.result = Some(api::PlanOutcome::Changes);
        // There were too many changes.
        status.omitted = Some(api::Omitted { approvals: 20_000, ..api::Omitted::default() });
        assert_eq!(unseen(&plan, Decision::Approve, "shop"), None);
        plan.status.as_mut().unwrap().omitted = None;
        let (why, _) = unseen(&plan, Decision::Approve, "shop").unwrap();
        assert!(why.contains("does not list the changes of its digest"), "{why}");
    }

    #[test]
    fn what_is_not_covered_by_the_digest_cannot_be_approved() {
        let change = serde_json::json!({ "address": "a", "action": "Update", "digest": "0".repeat(64) });
        let change: api::ChangeDigest = serde_json::from_value(change).unwrap();
        let digest = engine::plan::approval::digest_of([&change]);
        let mut honest = plan(None, false, false);
        (honest.spec.digest, honest.spec.changes) = (Some(digest), vec![change]);
        assert_eq!(forged(&honest, "shop"), None);
        honest.spec.changes[0].action = model::Action::Replace;
        for decision in [Decision::Approve, Decision::Reject] {
            let (why, _) = unseen(&honest, decision, "shop").unwrap();
            assert!(why.contains("does not list the changes of its digest"), "{why}");
        }
    }

    /// Someone who may write the status shows another change beside the true digest.
    #[test]
    fn what_shows_another_change_than_its_digest_cannot_be_decided_on() {
        let change = serde_json::json!({ "address": "a", "action": "Update", "digest": "0".repeat(64) });
        let change: api::ChangeDigest = serde_json::from_value(change).unwrap();
        let shown = serde_json::json!({ "address": "a", "type": "thing", "action": "Update", "after": { "size": 1 } });
        let digest = engine::plan::approval::digest_of([&change]);
        let mut lying = plan(Some(ApprovalState::Waiting), false, false);
        lying.spec.digest = Some(digest.clone());
        lying.status = Some(PlanStatus {
            result: Some(api::PlanOutcome::Changes),
            approvals: vec![api::RequiredApproval { digest, changes: vec![change] }],
            changes: vec![serde_json::from_value(shown).unwrap()],
            ..PlanStatus::default()
        });
        let (why, hint) = unseen(&lying, Decision::Approve, "shop").unwrap();
        assert!(why.contains("shows a change of `a` that is not the one of its digest"), "{why}");
        assert!(hint.contains("kubectl -n shop delete pplan"), "{hint}");
    }
}
