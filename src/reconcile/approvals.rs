//! The approval of changes: which planned changes wait for one, the Plans in which users approve them, and the state of
//! these Plans.
//!
//! The planning thread finds the changes that need an approval and plans again without those that have none
//! ([`PlanRequest::hold_unapproved`](super::PlanRequest::hold_unapproved)). Here, one Plan for each component with held
//! changes is created, an approval is recorded, and a Plan ends when its changes are made or when others take their place.

mod judge;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::held_plan::{GuardedComponent, HeldPlan, PlanOwner};
use super::index::{ApprovalPlan, PlanId};
use super::plan_request::PlanPart;
use super::summarize::Note;
use super::time::Time;
use super::{ApprovalWrite, Command, Reconciler, retry};
use crate::api::{APPROVE_DESTROYS, ApprovalState, ChangeDigest, PlanStatus, REQUIRE_APPROVAL};
use crate::model::{Address, Reason, RequiredApprovals, Value};
use crate::plan::approval::{Approvals, noun};

/// How long changes must be held before a Plan is created for them: the manifests of one change arrive one after another.
const HELD_BEFORE_PLAN: Duration = Duration::from_secs(1);
/// With more owners, the metadata would be larger than the changes, and tools that show the Plan below each would be slow.
const MAX_OWNERS: usize = 50;
/// How long the watch may take to deliver a new Plan. After this time, it was deleted before the watch could deliver it.
const UNSEEN: Duration = Duration::from_secs(30);

#[derive(Debug, Default)]
pub(super) struct ApprovalTracker {
    /// The components with changes that need an approval, as of the last plans.
    components: Vec<GuardedComponent>,
    /// The changes of these components.
    guarded: BTreeMap<Address, ChangeDigest>,
    /// The Plans that must exist.
    held: BTreeMap<Arc<str>, Held>,
    /// Writes of Plans that run, or that failed and are tried again.
    writes: BTreeMap<Arc<str>, PendingWrite>,
    /// When approvals end, by Plan.
    expiries: BTreeMap<Arc<str>, Timestamp>,
}

/// What the plan of a part of the namespace has replaced.
struct Replaced {
    /// The Plans that have become necessary or unnecessary.
    plans: BTreeSet<Arc<str>>,
    /// Other names with changes in these Plans: the component has fallen apart, so they must be planned again.
    others: BTreeSet<Arc<str>>,
}

#[derive(Debug)]
struct Held {
    plan: Arc<HeldPlan>,
    since: Time,
    /// When it was created. The watch delivers it soon, unless it has been deleted.
    created: Option<Time>,
}

#[derive(Clone, Copy, Debug, Default)]
struct PendingWrite {
    is_running: bool,
    failures: u32,
    retry_at: Option<Time>,
}

impl Held {
    /// When to create it, unless it exists.
    fn due_at(&self) -> Time {
        self.created.map_or(self.since + HELD_BEFORE_PLAN, |created| created + UNSEEN)
    }
}

impl ApprovalTracker {
    /// Replaces what is known of a part of the namespace.
    fn replace(&mut self, names: &BTreeSet<Arc<str>>, components: &[GuardedComponent], now: Time) -> Replaced {
        self.guarded.retain(|address, _| !names.contains(&address.name));
        let concerns = |component: &mut GuardedComponent| component.changed_names().any(|name| names.contains(name));
        let replaced: Vec<GuardedComponent> = self.components.extract_if(.., concerns).collect();
        let others = replaced.iter().flat_map(GuardedComponent::changed_names).filter(|name| !names.contains(*name));
        let others = others.cloned().collect();
        let plans = replaced.into_iter().filter_map(|component| component.held);
        let before: BTreeMap<_, _> = plans.filter_map(|plan| self.held.remove_entry(&plan.name)).collect();
        let mut plans: BTreeSet<Arc<str>> = before.keys().cloned().collect();
        for component in components {
            let changes = component.guarded.changes.iter().map(|one| &one.digest);
            self.guarded.extend(changes.map(|change| (change.address.clone(), change.clone())));
            if let Some(plan) = &component.held {
                let known = before.get(&plan.name);
                let (since, created) = known.map_or((now, None), |held| (held.since, held.created));
                plans.insert(Arc::clone(&plan.name));
                self.held.insert(Arc::clone(&plan.name), Held { plan: Arc::clone(plan), since, created });
            }
        }
        self.components.extend(components.iter().cloned());
        Replaced { plans, others }
    }

    /// When a Plan may be written. `None`: a write is running, and its end is a signal.
    fn writable_at(&self, name: &str, now: Time) -> Option<Time> {
        match self.writes.get(name) {
            Some(pending) if pending.is_running => None,
            pending => Some(pending.and_then(|pending| pending.retry_at).unwrap_or(now)),
        }
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
        let Replaced { plans: touched, others } = self.approvals.replace(&part.names, &part.guarded, self.now.time);
        others.iter().for_each(|name| self.touch(name));
        let plans = self.index.approvals_mut();
        touched.iter().for_each(|plan| plans.touch(plan));
        if !part.guarded.is_empty() {
            plans.touch_digest_only();
        }
    }

    /// Writes what has changed in the Plans. Returns when to call it again.
    pub(super) fn reconcile_approvals(&mut self) -> Option<Time> {
        let now = self.now;
        let expired = self.approvals.expiries.iter().filter(|(_, at)| **at <= now.wall).map(|(name, _)| name);
        let plans = self.index.approvals_mut();
        expired.for_each(|name| plans.touch(name));
        let mut next = None;
        for name in plans.take_touched() {
            let due = match self.index.approvals().get(&name).cloned() {
                Some(plan) => self.update_plan(&name, &plan),
                None => self.create_plan(&name),
            };
            if due.is_some_and(|at| at > now.time) {
                self.index.approvals_mut().touch(&name);
                next = next.into_iter().chain(due).min();
            }
        }
        let expires = self.approvals.expiries.values().min().map(|at| {
            let left = Duration::try_from(at.duration_since(now.wall)).unwrap_or_default();
            now.time + left.max(Duration::from_secs(1))
        });
        next.into_iter().chain(expires).min()
    }

    /// Creates a Plan if changes have been held for long enough. Returns when it is due.
    fn create_plan(&mut self, name: &Arc<str>) -> Option<Time> {
        self.approvals.expiries.remove(name);
        // No object can be created in a namespace that is being deleted.
        let held = self.approvals.held.get(name).filter(|_| !self.index.is_terminating())?;
        let due = held.due_at().max(self.approvals.writable_at(name, self.now.time)?);
        if due <= self.now.time {
            let plan = Arc::clone(&held.plan);
            let owners = self.owners(&plan);
            self.write(ApprovalWrite::Create { plan, owners });
        }
        Some(due)
    }

    /// Writes the status of a Plan if it is not correct. Returns when it is due.
    fn update_plan(&mut self, name: &Arc<str>, plan: &ApprovalPlan) -> Option<Time> {
        match plan.expires_at() {
            Some(at) => drop(self.approvals.expiries.insert(Arc::clone(name), at)),
            None => drop(self.approvals.expiries.remove(name)),
        }
        // After a restart, whether its changes are still planned is unknown until they are planned again.
        let is_planned = |one: &Arc<str>| self.index.instance(one).is_none() || self.resources.get(one).is_some();
        let due = self.approvals.writable_at(name, self.now.time).filter(|_| plan.names().all(is_planned))?;
        if due <= self.now.time {
            let status = self.judge(name, plan);
            if status != plan.status {
                let (name, id) = (Arc::clone(name), plan.id.clone());
                self.write(ApprovalWrite::Status { name, id, status: Box::new(status) });
            }
        }
        Some(due)
    }

    /// The Resources whose changes wait, unless there are too many. Not those that are being deleted: the Plan is deleted
    /// with its last owner, and it must remain to say who has approved a destroy.
    fn owners(&self, held: &HeldPlan) -> Vec<PlanOwner> {
        let changes = held.status.approvals.iter().flat_map(|approval| &approval.changes);
        let names: BTreeSet<&Arc<str>> = changes.map(|change| &change.address.name).collect();
        let resources = names.into_iter().filter_map(|name| self.index.instance(name));
        let desired = resources.filter(|resource| !resource.deleting && !resource.address.is_data());
        let owner = |name: &str, uid: &Arc<str>| PlanOwner { name: name.into(), uid: Arc::clone(uid) };
        let owners: Vec<PlanOwner> =
            desired.map(|resource| owner(resource.address.object_name(), &resource.uid)).collect();
        if owners.len() > MAX_OWNERS { Vec::new() } else { owners }
    }

    fn write(&mut self, write: ApprovalWrite) {
        let pending = self.approvals.writes.entry(Arc::clone(write.name())).or_default();
        (pending.is_running, pending.retry_at) = (true, None);
        self.commands.push(Command::WriteApproval(Box::new(write)));
    }

    /// A [`Command::WriteApproval`] has ended. `written`: the Plan; `None` if the write failed.
    pub(super) fn approval_written(&mut self, write: ApprovalWrite, written: Option<PlanId>) {
        let name = Arc::clone(write.name());
        self.index.approvals_mut().touch(&name);
        let Some(id) = written else {
            let random = self.random.number();
            let Some(pending) = self.approvals.writes.get_mut(&name) else { return };
            (pending.is_running, pending.failures) = (false, pending.failures + 1);
            pending.retry_at = Some(self.now.time + retry::delay(pending.failures, random));
            return;
        };
        self.approvals.writes.remove(&name);
        match write {
            ApprovalWrite::Create { plan, .. } => {
                if let Some(held) = self.approvals.held.get_mut(&name) {
                    held.created = Some(self.now.time);
                }
                self.announce_held(&plan);
            }
            ApprovalWrite::Status { status, .. } => {
                if let Some(before) = self.index.approvals().get(&name).cloned() {
                    self.announce(&before, &status);
                }
                self.index.approvals_mut().written(&name, id, *status);
            }
        }
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
