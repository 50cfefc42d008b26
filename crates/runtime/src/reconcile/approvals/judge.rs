//! The state of a Plan with a digest, as its status should show it.

use std::collections::BTreeSet;

use crate::reconcile::Reconciler;
use crate::reconcile::index::ApprovalPlan;
use crate::reconcile::objects::TrackedObject;
use api::conditions::{self, ConditionType, condition, merge};
use api::{ApprovalState, ChangeDigest, PlanStatus, RequiredApproval};
use engine::plan::approval::{Approver, differences};
use model::{Action, Address, ChangeKind, Name};

impl Reconciler {
    /// The status that a Plan should have.
    pub fn judge(&self, plan: &ApprovalPlan) -> PlanStatus {
        let mut status = PlanStatus { observed_generation: plan.generation, ..self.shown(plan) };
        if (plan.approved || plan.rejected) && status.decided_at.is_none() {
            status.decided_at = Some(self.now.wall.to_string());
            status.decided_by.clone_from(&plan.decided_by);
        }
        // A Plan of Purlin ends with its changes.
        let is_held = self.approvals.held.contains_key(&plan.digest);
        let is_obsolete = plan.is_own && !is_held && !self.is_uncertain(plan.changes());
        let (state, message) = match () {
            () if plan.is_invalid => {
                let message = "spec.changes are not the changes of spec.digest, so this Plan approves nothing (hint: print \
                               it again with `purlin plan -o approval`)";
                (ApprovalState::Invalid, message.to_owned())
            }
            () if plan.approved => self.judge_approved(plan, &mut status),
            () if is_obsolete => (ApprovalState::Superseded, "these changes are no longer planned".to_owned()),
            () if plan.rejected => {
                (ApprovalState::Rejected, "the changes were rejected; they wait until the Resources change".to_owned())
            }
            () if status.result.is_none() => {
                let message =
                    "the changes are not those that wait for an approval now, so this Plan does not show them";
                (ApprovalState::Waiting, message.to_owned())
            }
            () => (ApprovalState::Waiting, "the changes wait for an approval".to_owned()),
        };
        let truth = if matches!(state, ApprovalState::Approved | ApprovalState::Applied) { "True" } else { "False" };
        let approved = condition(ConditionType::Approved, truth, format!("{state:?}"), message, plan.generation);
        let computed = conditions::find(&status.conditions, ConditionType::Computed).cloned();
        status.conditions = merge(&plan.status.conditions, computed.into_iter().chain([approved]), self.now.wall);
        status.approval = Some(state);
        status
    }

    /// The status with what the Plan is about: its present status, unless its changes have just become due.
    fn shown(&self, plan: &ApprovalPlan) -> PlanStatus {
        if plan.was_due() || plan.is_invalid {
            return plan.status.clone();
        }
        let Some(due) = self.due(plan) else { return plan.status.clone() };
        let component = self.approvals.components.iter().find(|component| component.is_covered_by(&plan.digest));
        let computed = component.and_then(|component| component.held.as_ref()).map(|held| &*held.status);
        let PlanStatus { decided_at, decided_by, .. } = plan.status.clone();
        let computed = computed.unwrap_or(&plan.status).clone();
        PlanStatus { approvals: vec![due], decided_at, decided_by, ..computed }
    }

    /// Whether a Plan of Purlin does not say what it is about, and that can still turn out: another replica may have created
    /// it for changes that this one has not planned yet.
    pub(super) fn is_unknown(&self, plan: &ApprovalPlan) -> bool {
        plan.is_own && plan.changes().is_empty() && self.planning.has_unplanned() && self.due(plan).is_none()
    }

    /// The changes of a Plan, as soon as one of them is due.
    fn due(&self, plan: &ApprovalPlan) -> Option<RequiredApproval> {
        let components = &self.approvals.components;
        let covered = match plan.proposed.is_empty() {
            true => components.iter().find_map(|component| component.guarded.covered_by(&plan.digest))?,
            false => RequiredApproval { digest: plan.digest.to_string(), changes: plan.proposed.clone() },
        };
        let approver = plan.approver();
        let is_due = covered.changes.iter().any(|change| self.is_open(change) && !self.is_made(&approver, change));
        is_due.then_some(covered)
    }

    /// Whether the last plan has exactly this change, and something of it is left to do.
    fn is_open(&self, change: &ChangeDigest) -> bool {
        self.approvals.guarded.get(&change.address).is_some_and(|planned| is_same(planned, change))
            && !self.is_at_rest(&change.address)
    }

    /// The state of an approved Plan: which of its changes were made, and how others differ.
    fn judge_approved(&self, plan: &ApprovalPlan, status: &mut PlanStatus) -> (ApprovalState, String) {
        let approver = plan.approver();
        let was_due = !status.approvals.is_empty();
        let mut changes = status.approvals.first().map_or_else(|| plan.proposed.clone(), |due| due.changes.clone());
        let is_running = changes.iter().any(|change| self.is_running(&change.address));
        // One write when they have ended, not one for each.
        if was_due && !is_running {
            changes.iter_mut().for_each(|change| change.applied |= self.is_made(&approver, change));
            status.approvals[0].changes.clone_from(&changes);
        }
        if was_due && changes.is_empty() {
            // There are too many to be listed.
            return match self.approvals.components.iter().any(|component| component.is_covered_by(&plan.digest)) {
                true => (ApprovalState::Approved, "the changes are approved".to_owned()),
                false => (ApprovalState::Superseded, "these changes are no longer due together".to_owned()),
            };
        }
        let names: BTreeSet<&Name> = changes.iter().map(|change| change.address.name()).collect();
        let due = self
            .approvals
            .guarded
            .values()
            .filter(|change| names.contains(change.address.name()) && !self.is_at_rest(&change.address));
        status.differences = differences(&changes, &due.collect::<Vec<_>>());
        let any_open = changes.iter().any(|change| self.is_due(&approver, change));
        if was_due && changes.iter().all(|change| change.applied) {
            return (ApprovalState::Applied, "the approved changes were made".to_owned());
        }
        if plan.expires_at().is_some_and(|at| at <= self.now.wall) && !is_running {
            return (ApprovalState::Expired, "the approval was not used in time".to_owned());
        }
        if was_due && !is_running && !any_open && plan.is_own && !self.is_uncertain(&changes) {
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
        changes.iter().any(|change| {
            self.objects.get(&change.address).is_some_and(TrackedObject::is_blocked)
                && !self.approvals.guarded.contains_key(&change.address)
        }) || self.is_undecided(changes)
    }

    /// Whether connected objects are still to be planned, or an interrupted operation of one is not resolved yet. Until
    /// then, the objects that depend on that object are planned without its change.
    fn is_undecided(&self, changes: &[ChangeDigest]) -> bool {
        let connected = self.index.component(changes.iter().map(|change| change.address.name().clone()));
        connected.iter().any(|name| self.planning.is_unplanned(name) || self.has_interrupted_operation(name))
    }

    fn has_interrupted_operation(&self, name: &Name) -> bool {
        self.recorded(name).any(|(address, stored)| {
            stored.record.intent.is_some() && !self.objects.get(address).is_some_and(TrackedObject::is_open)
        })
    }

    /// Whether a change of an object runs, is about to run, or was interrupted by a crash.
    fn is_running(&self, address: &Address) -> bool {
        let record = self.index.records().get(address);
        let is_interrupted = record.is_some_and(|stored| stored.record.intent.is_some());
        is_interrupted || self.objects.get(address).is_some_and(TrackedObject::is_open)
    }

    /// Whether a change was made with this approval, which uses it up. That nothing is left to change does not count: the
    /// change may only be prevented for now.
    pub fn is_made(&self, approver: &Approver, change: &ChangeDigest) -> bool {
        let record = self.index.records().get(&change.address).map(|stored| &stored.record);
        let kind = match change.action {
            Action::Destroy => return record.is_none(),
            Action::Update => ChangeKind::Update,
            _ => ChangeKind::Create,
        };
        let (text, is_complete) = (approver.use_of(change), self.is_at_rest(&change.address));
        record.is_some_and(|record| record.history.entries().iter().any(|entry| entry.uses(&text, kind, is_complete)))
    }

    /// Whether nothing is left to do for an object since it was planned last. A plan with a change resets `up_to_date`.
    fn is_at_rest(&self, address: &Address) -> bool {
        match self.objects.get(address) {
            Some(tracked) => tracked.up_to_date.is_some() && !tracked.has_trouble() && tracked.held_for().is_none(),
            None => !self.index.records().contains_key(address),
        }
    }

    /// Whether an approved change is still to be made, or has begun.
    fn is_due(&self, approver: &Approver, change: &ChangeDigest) -> bool {
        let record = self.index.records().get(&change.address).map(|stored| &stored.record);
        let begun =
            record.filter(|record| record.replacement_pending).and_then(|record| record.approved_object.as_ref());
        let has_begun = begun.is_some_and(|object| object.uses.contains(&approver.use_of(change)));
        !change.applied && (has_begun || self.is_open(change))
    }
}

fn is_same(one: &ChangeDigest, other: &ChangeDigest) -> bool {
    one.digest == other.digest && one.action == other.action && one.unknown_paths == other.unknown_paths
}
