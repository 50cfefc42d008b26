//! The state of a Plan with a digest, as its status should show it.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::ApprovalTracker;
use crate::api::conditions::{ConditionType, condition, merge};
use crate::api::{ApprovalState, ChangeDigest, PlanStatus, RequiredApproval};
use crate::model::{Action, Address};
use crate::plan::approval::differences;
use crate::reconcile::Reconciler;
use crate::reconcile::index::ApprovalPlan;
use crate::reconcile::tracked::TrackedObject;

impl Reconciler {
    /// The status that a Plan should have.
    pub(super) fn judge(&self, name: &Arc<str>, plan: &ApprovalPlan) -> PlanStatus {
        let is_held = self.approvals.held.get(name);
        let is_new = plan.is_own && !plan.was_due();
        let written = is_held.filter(|_| is_new).map_or(&plan.status, |held| &held.plan.status);
        let mut status = PlanStatus { observed_generation: plan.generation, ..written.clone() };
        if status.approvals.is_empty() {
            self.note_due(plan, &mut status);
        }
        if (plan.approved || plan.rejected) && status.decided_at.is_none() {
            status.decided_at = Some(self.now.wall.to_string());
            status.decided_by.clone_from(&plan.decided_by);
        }
        // A Plan of Purlin ends with its changes.
        let is_obsolete = plan.is_own && is_held.is_none() && !self.is_uncertain(plan.changes());
        let (state, message) = match () {
            () if plan.approved => self.judge_approved(plan, &mut status),
            () if is_obsolete => (ApprovalState::Superseded, "these changes are no longer planned".to_owned()),
            () if plan.rejected => {
                (ApprovalState::Rejected, "the changes were rejected; they wait until the Resources change".to_owned())
            }
            () => (ApprovalState::Waiting, "the changes wait for an approval".to_owned()),
        };
        let truth = if matches!(state, ApprovalState::Approved | ApprovalState::Applied) { "True" } else { "False" };
        let approved = condition(ConditionType::Approved, truth, format!("{state:?}"), message, plan.generation);
        let computed = status.conditions.iter().filter(|one| one.type_ == ConditionType::Computed.as_str()).cloned();
        status.conditions =
            merge(&plan.status.conditions, computed.chain([approved]).collect::<Vec<_>>(), self.now.wall);
        status.approval = Some(state);
        status
    }

    /// Adds the changes of a Plan that a user created, as soon as one of them is due.
    fn note_due(&self, plan: &ApprovalPlan, status: &mut PlanStatus) {
        let ApprovalTracker { guarded, components, .. } = &self.approvals;
        let is_due = |change: &ChangeDigest| {
            guarded.get(&change.address).is_some_and(|due| due.digest == change.digest) && !self.is_made(change)
        };
        let due = if plan.proposed.is_empty() {
            let covered = components.iter().find_map(|component| component.guarded.covered_by(&plan.digest));
            covered.filter(|due| due.changes.iter().any(is_due))
        } else {
            let due = RequiredApproval { digest: plan.digest.clone(), changes: plan.proposed.clone() };
            plan.proposed.iter().any(is_due).then_some(due)
        };
        status.approvals = due.into_iter().collect();
    }

    /// The state of an approved Plan: which of its changes were made, and how others differ.
    fn judge_approved(&self, plan: &ApprovalPlan, status: &mut PlanStatus) -> (ApprovalState, String) {
        let guarded = &self.approvals.guarded;
        let was_due = !status.approvals.is_empty();
        let mut own = status.approvals.first().map_or_else(|| plan.proposed.clone(), |due| due.changes.clone());
        let is_running = own.iter().any(|change| self.is_running(&change.address));
        // One write when they have ended, not one for each.
        if was_due && !is_running {
            own.iter_mut().for_each(|change| change.applied |= self.is_made(change));
            status.approvals[0].changes.clone_from(&own);
        }
        let names: BTreeSet<&Arc<str>> = own.iter().map(|change| &change.address.name).collect();
        let due = guarded.values().filter(|change| names.contains(&change.address.name) && !self.is_made(change));
        status.differences = differences(&own, &due.collect::<Vec<_>>());
        let any_open = own.iter().any(|change| self.is_due(change));
        if was_due && own.iter().all(|change| change.applied) {
            return (ApprovalState::Applied, "the approved changes were made".to_owned());
        }
        if plan.expires_at().is_some_and(|at| at <= self.now.wall) && !is_running {
            return (ApprovalState::Expired, "the approval was not used in time".to_owned());
        }
        if was_due && !is_running && !any_open && plan.is_own && !self.is_uncertain(&own) {
            return (ApprovalState::Superseded, "other changes have taken the place of the approved ones".to_owned());
        }
        match (was_due, status.differences.is_empty()) {
            (true, _) => (ApprovalState::Approved, "the changes are approved".to_owned()),
            (false, true) => (ApprovalState::Waiting, "approved; the changes are not due yet".to_owned()),
            (false, false) => (
                ApprovalState::Waiting,
                "approved, but the changes that are due differ: see status.differences".to_owned(),
            ),
        }
    }

    /// Whether one of the objects cannot be planned now, so that its change is unknown.
    fn is_uncertain(&self, changes: &[ChangeDigest]) -> bool {
        let is_blocked = |address: &Address| {
            let change = self.objects.get(address).and_then(|tracked| tracked.change.as_ref());
            change.is_some_and(|change| change.action == Action::Blocked)
        };
        let is_guarded = |address| self.approvals.guarded.contains_key(address);
        changes.iter().any(|change| is_blocked(&change.address) && !is_guarded(&change.address))
    }

    /// Whether a change of an object runs, is about to run, or was interrupted by a crash.
    fn is_running(&self, address: &Address) -> bool {
        let record = self.schedule.records().get(address);
        let is_interrupted = record.is_some_and(|stored| stored.record.intent.is_some());
        is_interrupted || self.objects.get(address).is_some_and(TrackedObject::is_open)
    }

    /// Whether an approved change was made. A plan with a change that has not been made resets `up_to_date`.
    fn is_made(&self, change: &ChangeDigest) -> bool {
        match self.objects.get(&change.address) {
            Some(tracked) => tracked.up_to_date.is_some() && !tracked.has_trouble() && tracked.held_for().is_none(),
            None => change.action == Action::Destroy && !self.schedule.records().contains_key(&change.address),
        }
    }

    /// Whether an approved change is still to be made, or has begun.
    fn is_due(&self, change: &ChangeDigest) -> bool {
        let same = |due: &ChangeDigest| due.digest == change.digest;
        let record = self.schedule.records().get(&change.address);
        let has_begun = record.is_some_and(|stored| stored.record.replacement_pending);
        !change.applied && (has_begun || self.approvals.guarded.get(&change.address).is_some_and(same))
    }
}
