//! The approval of changes: which planned changes wait for one, the Plans in which users approve them, and the state of
//! these Plans.
//!
//! The planning thread finds the changes that need an approval and plans again without those that have none
//! ([`PlanRequest::hold_unapproved`](super::PlanRequest::hold_unapproved)). Here, one Plan for each component with held
//! changes is created, an approval is recorded, and a Plan ends when its changes are made or when others take their place.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::held_plan::{GuardedComponent, HeldPlan, PlanOwner};
use super::index::ApprovalPlan;
use super::plan_request::PlanPart;
use super::summarize::Note;
use super::time::Time;
use super::tracked::TrackedObject;
use super::{ApprovalWrite, Command, Reconciler, retry};
use crate::api::conditions::{ConditionType, condition, merge};
use crate::api::{APPROVE_DESTROYS, ApprovalState, ChangeDigest, PlanStatus, REQUIRE_APPROVAL, RequiredApproval};
use crate::model::{Action, Address, Reason, RequiredApprovals, Value};
use crate::plan::approval::{Approvals, differences, digest_of, noun};

/// How long changes must be held before a Plan is created for them: the manifests of one change arrive one after another.
const HELD_BEFORE_PLAN: Duration = Duration::from_secs(1);

#[derive(Debug, Default)]
pub(super) struct ApprovalTracker {
    /// The Plans that must exist.
    held: BTreeMap<Arc<str>, Held>,
    /// The changes of the last plans that need an approval.
    guarded: BTreeMap<Address, ChangeDigest>,
    /// Writes of Plans that run, or that failed and are tried again.
    writes: BTreeMap<Arc<str>, PendingWrite>,
}

#[derive(Debug)]
struct Held {
    plan: HeldPlan,
    /// The names of its component.
    names: BTreeSet<Arc<str>>,
    since: Time,
}

#[derive(Clone, Copy, Debug, Default)]
struct PendingWrite {
    is_running: bool,
    failures: u32,
    retry_at: Option<Time>,
}

impl ApprovalTracker {
    /// Replaces what is known of a part of the namespace.
    fn replace(&mut self, names: &BTreeSet<Arc<str>>, components: &[GuardedComponent], now: Time) {
        self.guarded.retain(|address, _| !names.contains(&address.name));
        let before: BTreeMap<_, _> = self.held.extract_if(.., |_, held| !held.names.is_disjoint(names)).collect();
        for component in components {
            let changes = component.guarded.changes.iter().map(|one| &one.digest);
            self.guarded.extend(changes.map(|change| (change.address.clone(), change.clone())));
            if let Some(plan) = &component.held {
                let since = before.get(&plan.name).map_or(now, |held| held.since);
                let held = Held { plan: plan.clone(), names: component.names.clone(), since };
                self.held.insert(Arc::clone(&plan.name), held);
            }
        }
    }

    fn may_write(&self, name: &str, now: Time) -> bool {
        let pending = self.writes.get(name);
        pending.is_none_or(|pending| !pending.is_running && pending.retry_at.is_none_or(|at| at <= now))
    }

    fn next_retry(&self) -> Option<Time> {
        self.writes.values().filter(|one| !one.is_running).filter_map(|one| one.retry_at).min()
    }
}

impl Reconciler {
    /// What needs an approval, and what has one.
    pub(super) fn approvals(&self) -> Approvals {
        let annotation = |name: &str| {
            let annotations = self.index.namespace_value().get("annotations")?;
            annotations.get(name).and_then(Value::as_str)
        };
        // What cannot be read requires an approval of everything: a typo must not lower it.
        let required =
            annotation(REQUIRE_APPROVAL).map(|text| text.parse().unwrap_or_else(|_| RequiredApprovals::all()));
        let approvals = self.index.approvals().approvals(required.unwrap_or_default(), self.now.wall);
        let destroys_approved = self.index.is_terminating() && annotation(APPROVE_DESTROYS) == Some("true");
        Approvals { destroys_approved, ..approvals }
    }

    /// Records which changes of an adopted plan need an approval.
    pub(super) fn track_approvals(&mut self, part: &PlanPart) {
        self.approvals.replace(&part.names, &part.guarded, self.now.time);
    }

    /// Writes what has changed in the Plans. Returns when to call it again.
    pub(super) fn reconcile_approvals(&mut self) -> Option<Time> {
        if self.approvals.held.is_empty() && self.index.approvals().is_empty() {
            return None;
        }
        let now = self.now.time;
        let next_plan = self.create_held_plans();
        let plans: Vec<(Arc<str>, ApprovalPlan)> =
            self.index.approvals().plans().map(|(name, plan)| (Arc::clone(name), plan.clone())).collect();
        let mut expiry: Option<Timestamp> = None;
        for (name, plan) in plans {
            if !self.approvals.may_write(&name, now) {
                continue;
            }
            expiry = expiry.into_iter().chain(plan.expires_at()).min();
            let status = self.judge(&name, &plan);
            if status != plan.status {
                self.announce(&plan, &status);
                self.write(ApprovalWrite::Status { name, uid: Arc::clone(&plan.uid), status: Box::new(status) });
            }
        }
        let expires = expiry.map(|at| {
            let left = Duration::try_from(at.duration_since(self.now.wall)).unwrap_or_default();
            now + left.max(Duration::from_secs(1))
        });
        [next_plan, expires, self.approvals.next_retry()].into_iter().flatten().min()
    }

    /// Creates the Plans of changes that have been held long enough. Returns when the next one is due.
    fn create_held_plans(&mut self) -> Option<Time> {
        // No object can be created in a namespace that is being deleted.
        if self.index.is_terminating() {
            return None;
        }
        let now = self.now.time;
        let missing = |(name, _): &(&Arc<str>, _)| self.index.approvals().get(name).is_none();
        let missing: Vec<(HeldPlan, Time)> =
            self.approvals.held.iter().filter(missing).map(|(_, held)| (held.plan.clone(), held.since)).collect();
        let mut next = None;
        for (held, since) in missing {
            let at = since + HELD_BEFORE_PLAN;
            if at > now {
                next = next.into_iter().chain([at]).min();
            } else if self.approvals.may_write(&held.name, now) {
                let owners = self.owners(&held);
                self.write(ApprovalWrite::Create(Box::new(HeldPlan { owners, ..held })));
            }
        }
        next
    }

    /// The Resources whose changes wait. Not those that are being deleted: the Plan is deleted with its last owner, and
    /// it must remain to say who has approved a destroy.
    fn owners(&self, held: &HeldPlan) -> Vec<PlanOwner> {
        let changes = held.status.approvals.iter().flat_map(|approval| &approval.changes);
        let names: BTreeSet<&Arc<str>> = changes.map(|change| &change.address.name).collect();
        let resources = names.into_iter().filter_map(|name| self.index.instance(name));
        let desired = resources.filter(|resource| !resource.deleting && !resource.address.is_data());
        let owner = |name: &str, uid: &Arc<str>| PlanOwner { name: name.into(), uid: Arc::clone(uid) };
        desired.map(|resource| owner(resource.address.object_name(), &resource.uid)).collect()
    }

    fn write(&mut self, write: ApprovalWrite) {
        let pending = self.approvals.writes.entry(Arc::clone(write.name())).or_default();
        (pending.is_running, pending.retry_at) = (true, None);
        self.commands.push(Command::WriteApproval(Box::new(write)));
    }

    /// A [`Command::WriteApproval`] has ended. `written`: the UID of the Plan; `None` if the write failed.
    pub(super) fn approval_written(&mut self, write: ApprovalWrite, written: Option<Arc<str>>) {
        let name = Arc::clone(write.name());
        let Some(uid) = written else {
            let random = self.random.number();
            let Some(pending) = self.approvals.writes.get_mut(&name) else { return };
            (pending.is_running, pending.failures) = (false, pending.failures + 1);
            pending.retry_at = Some(self.now.time + retry::delay(pending.failures, random));
            return;
        };
        self.approvals.writes.remove(&name);
        match write {
            // The watch delivers the Plan. Until then, it counts as created.
            ApprovalWrite::Create(held) => self.announce_held(&held),
            ApprovalWrite::Status { status, .. } => self.index.approval_written(&name, &uid, *status),
        }
    }

    /// The status that a Plan should have.
    fn judge(&self, name: &Arc<str>, plan: &ApprovalPlan) -> PlanStatus {
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
        let (state, message) = if plan.rejected {
            (ApprovalState::Rejected, "the changes were rejected; they wait until the Resources change".to_owned())
        } else if plan.approved {
            self.judge_approved(plan, &mut status)
        } else if is_held.is_some() || !plan.is_own {
            (ApprovalState::Waiting, "the changes wait for an approval".to_owned())
        } else {
            (ApprovalState::Superseded, "these changes are no longer planned".to_owned())
        };
        // A rejected Plan of Purlin ends with its changes.
        let is_obsolete = plan.rejected && plan.is_own && is_held.is_none();
        let state = if is_obsolete { ApprovalState::Superseded } else { state };
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
        let guarded = &self.approvals.guarded;
        let changes: Vec<ChangeDigest> = if plan.proposed.is_empty() {
            let of_digest = |component: &BTreeSet<&Arc<str>>| -> Vec<ChangeDigest> {
                let own = guarded.values().filter(|change| component.contains(&change.address.name));
                own.cloned().collect()
            };
            let names = guarded.keys().map(|address| &address.name);
            let components = names.map(|name| self.index.component([Arc::clone(name)]));
            let mut due = components.map(|component| of_digest(&component.iter().collect()));
            let same = |changes: &Vec<ChangeDigest>| digest_of(changes) == plan.digest;
            due.find(same).unwrap_or_default()
        } else {
            let is_due =
                |change: &ChangeDigest| guarded.get(&change.address).is_some_and(|due| due.digest == change.digest);
            if plan.proposed.iter().any(is_due) { plan.proposed.clone() } else { Vec::new() }
        };
        if !changes.is_empty() {
            status.approvals = vec![RequiredApproval { digest: plan.digest.clone(), changes }];
        }
    }

    /// The state of an approved Plan: which of its changes were made, and how others differ.
    fn judge_approved(&self, plan: &ApprovalPlan, status: &mut PlanStatus) -> (ApprovalState, String) {
        let guarded = &self.approvals.guarded;
        let was_due = !status.approvals.is_empty();
        let mut own = status.approvals.first().map_or_else(|| plan.proposed.clone(), |due| due.changes.clone());
        let runs = |change: &ChangeDigest| self.objects.get(&change.address).is_some_and(TrackedObject::is_open);
        let is_running = own.iter().any(runs);
        // One write when they have ended, not one for each.
        if was_due && !is_running {
            own.iter_mut().for_each(|change| change.applied |= self.is_made(change));
            status.approvals[0].changes.clone_from(&own);
        }
        let names: BTreeSet<&Arc<str>> = own.iter().map(|change| &change.address.name).collect();
        let due = guarded.values().filter(|change| names.contains(&change.address.name));
        status.differences = differences(&own, &due.collect::<Vec<_>>());
        let any_open = own.iter().any(|change| self.is_due(change));
        if was_due && own.iter().all(|change| change.applied) {
            return (ApprovalState::Applied, "the approved changes were made".to_owned());
        }
        if plan.expires_at().is_some_and(|at| at <= self.now.wall) && !is_running {
            return (ApprovalState::Expired, "the approval was not used in time".to_owned());
        }
        if was_due && !is_running && !any_open && plan.is_own {
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

    /// Reports a decision as events of the Resources.
    fn announce(&mut self, plan: &ApprovalPlan, status: &PlanStatus) {
        let is_new = |state| status.approval == Some(state) && plan.status.approval != Some(state);
        let by = status.decided_by.as_ref().map_or_else(String::new, |user| format!(" by {user}"));
        let (reason, what) = match () {
            () if is_new(ApprovalState::Approved) => ("Approved", "approved"),
            () if is_new(ApprovalState::Rejected) => ("Rejected", "rejected"),
            () => return,
        };
        let changes: Vec<ChangeDigest> = status.approvals.iter().flat_map(|due| due.changes.clone()).collect();
        for change in changes {
            let note = format!("{} {what}{by}", noun(change.action));
            self.report_object(&change.address, Note { warning: false, reason, action: "Approve", note });
        }
    }

    fn announce_held(&mut self, held: &HeldPlan) {
        let changes: Vec<ChangeDigest> = held.status.approvals.iter().flat_map(|due| due.changes.clone()).collect();
        for change in changes {
            let note = format!("{} waits for the approval of the Plan `{}`", noun(change.action), held.name);
            let reason = Reason::ApprovalRequired.as_str();
            self.report_object(&change.address, Note { warning: false, reason, action: "Approve", note });
        }
    }
}

/// The default validity of an approval.
pub const VALID: SignedDuration = SignedDuration::from_hours(7 * 24);
