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
use super::planning::PlanPart;
use super::summarize::Note;
use super::time::Time;
use super::{ApprovalWrite, Command, Reconciler, retry};
use api::{APPROVE_DESTROYS, ApprovalState, ChangeDigest, PlanStatus, REQUIRE_APPROVAL};
use engine::load::DriftAction;
use engine::plan::approval::{Approvals, Offer, OfferState, noun};
use model::{Address, Name, Reason, RequiredApprovals};

/// How long changes must be held before a Plan is created for them: the manifests of one change arrive one after another.
const HELD_BEFORE_PLAN: Duration = Duration::from_secs(1);
/// With more owners, the metadata would be larger than the changes, and tools that show the Plan below each would be slow.
const MAX_OWNERS: usize = 50;
/// How long the watch may take to deliver a new Plan. After this time, it was deleted before the watch could deliver it.
const UNSEEN: Duration = Duration::from_secs(30);
/// When a Plan that a user has deleted without a decision is created again: its changes still wait, and cannot be approved
/// without it.
const AGAIN: Duration = Duration::from_mins(1);

#[derive(Debug, Default)]
pub struct ApprovalTracker {
    /// The components with changes that need an approval, as of the last plans.
    components: Vec<GuardedComponent>,
    /// The changes of these components.
    guarded: BTreeMap<Address, ChangeDigest>,
    /// The Plans that must exist, by digest.
    held: BTreeMap<Arc<str>, Held>,
    /// Those that may not exist yet.
    missing: BTreeSet<Arc<str>>,
    /// Writes of Plans that run, or that failed and are tried again: by digest if the Plan is created, else by name.
    writes: BTreeMap<Arc<str>, PendingWrite>,
    /// The Plans of which it is not known yet what they are about. They get a status when everything is planned.
    unknown: BTreeSet<Arc<str>>,
    /// When approvals end, by Plan.
    expiries: BTreeMap<Arc<str>, Timestamp>,
}

/// What the plan of a part of the namespace has replaced.
struct Replaced {
    /// The digests of the Plans that have become necessary or unnecessary.
    plans: BTreeSet<Arc<str>>,
    /// Other names with changes in these Plans: the component has fallen apart, so they must be planned again.
    others: BTreeSet<Name>,
}

#[derive(Debug)]
struct Held {
    plan: Arc<HeldPlan>,
    since: Time,
    /// When it was created. The watch delivers it soon, unless it has been deleted.
    created: Option<Time>,
    /// When to create it again after a user has deleted it.
    again: Option<Time>,
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
        let due = self.created.map_or(self.since + HELD_BEFORE_PLAN, |created| created + UNSEEN);
        self.again.map_or(due, |again| again.max(due))
    }
}

impl ApprovalTracker {
    /// Replaces what is known of a part of the namespace.
    fn replace(&mut self, names: &BTreeSet<Name>, components: &[GuardedComponent], now: Time) -> Replaced {
        self.guarded.retain(|address, _| !names.contains(address.name()));
        let replaced: Vec<GuardedComponent> = self
            .components
            .extract_if(.., |component| component.changed_names().any(|name| names.contains(name)))
            .collect();
        let others = replaced.iter().flat_map(GuardedComponent::changed_names).filter(|name| !names.contains(*name));
        let others = others.cloned().collect();
        let plans = replaced.into_iter().filter_map(|component| component.held);
        let before: BTreeMap<_, _> = plans.filter_map(|plan| self.held.remove_entry(&plan.digest)).collect();
        let mut plans: BTreeSet<Arc<str>> = before.keys().cloned().collect();
        for component in components {
            let changes = component.guarded.changes.iter().map(|change| &change.digest);
            self.guarded.extend(changes.map(|change| (change.address.clone(), change.clone())));
            if let Some(plan) = &component.held {
                let new = Held { plan: Arc::clone(plan), since: now, created: None, again: None };
                let known = before.get(&plan.digest);
                let held = known.map_or(new, |held| Held { plan: Arc::clone(plan), ..*held });
                plans.insert(Arc::clone(&plan.digest));
                self.missing.insert(Arc::clone(&plan.digest));
                self.held.insert(Arc::clone(&plan.digest), held);
            }
        }
        self.missing.retain(|digest| self.held.contains_key(digest));
        self.components.extend(components.iter().cloned());
        Replaced { plans, others }
    }

    /// When a Plan may be written. `None`: a write is running, and its end is a signal.
    fn writable_at(&self, key: &str, now: Time) -> Option<Time> {
        match self.writes.get(key) {
            Some(pending) if pending.is_running => None,
            pending => Some(pending.and_then(|pending| pending.retry_at).unwrap_or(now)),
        }
    }
}

impl Reconciler {
    /// What needs an approval, and what has one.
    pub fn approvals(&self) -> Approvals {
        // What cannot be read requires an approval of everything: a typo must not lower it.
        let required = self
            .index
            .namespace_annotation(REQUIRE_APPROVAL)
            .map(|text| text.parse().unwrap_or_else(|_| RequiredApprovals::all()))
            .unwrap_or_default();
        let mut approvals = self
            .index
            .approvals()
            .approvals(required, self.now.wall, |approver, change| self.is_made(approver, change));
        for digest in self.index.approvals().digests().chain(self.approvals.held.keys()) {
            approvals.offers.extend(self.offer(digest).map(|offer| (Arc::clone(digest), offer)));
        }
        let destroys_approved =
            self.index.is_terminating() && self.index.namespace_annotation(APPROVE_DESTROYS) == Some("true");
        Approvals { destroys_approved, ..approvals }
    }

    /// The Plan with this digest in which users decide.
    fn offer(&self, digest: &str) -> Option<Offer> {
        self.index.approvals().offer(digest).or_else(|| self.deleted_offer(digest))
    }

    /// The same for a Plan that a user has deleted, until it is created again.
    fn deleted_offer(&self, digest: &str) -> Option<Offer> {
        let held = self.approvals.held.get(digest)?;
        let is_deleted = held.again.is_some_and(|again| again > self.now.time);
        is_deleted.then(|| Offer { plan: Arc::clone(&held.plan.name), state: OfferState::Deleted })
    }

    /// Lets the next plan of these names read what no reading has compared with its record since the start, if a Plan is
    /// about it: the changes of the Plan may correct drift, which no record shows.
    pub fn read_for_plans(&mut self, names: &BTreeSet<Name>) {
        let unread: BTreeSet<Address> =
            self.index.approvals().covering(names).flat_map(|plan| self.unread(plan)).cloned().collect();
        for address in unread.iter().filter(|address| names.contains(address.name())) {
            let tracked = self.objects.entry(address);
            (tracked.known, tracked.unread) = (true, true);
        }
    }

    /// The objects of a Plan of Purlin whose drift is corrected, and that were neither read nor written since the start.
    fn unread<'a>(&'a self, plan: &'a ApprovalPlan) -> impl Iterator<Item = &'a Address> {
        let shown = plan.status.changes.iter().map(|change| &change.address);
        let covered = plan.changes().iter().map(|change| &change.address);
        shown.chain(covered).filter(move |address| {
            plan.is_own
                && plan.is_open()
                && self.index.records().has_current(address)
                && !self.objects.get(address).is_some_and(|tracked| tracked.known)
                && self.is_drift_corrected(address.name())
        })
    }

    /// Whether drift of the objects of a Resource is corrected. Nothing plans an object without a Resource.
    fn is_drift_corrected(&self, name: &str) -> bool {
        self.index
            .instance(name)
            .is_some_and(|resource| !resource.is_desired() || resource.drift.action == DriftAction::Correct)
    }

    /// Records which changes of an adopted plan need an approval.
    pub fn track_approvals(&mut self, part: &PlanPart) {
        let Replaced { plans: touched, others } = self.approvals.replace(&part.names, &part.guarded, self.now.time);
        others.iter().for_each(|name| self.touch(name));
        let plans = self.index.approvals_mut();
        touched.iter().for_each(|digest| plans.touch_digest(digest));
        // A Plan whose changes are no longer planned ends when it is known that they are not.
        plans.touch_names(&part.names);
        plans.touch_digest_only();
    }

    /// Plans components again whose Plan has come, gone, got another name, or was decided.
    pub fn review_offers(&mut self) {
        let now = self.now;
        for digest in self.index.approvals_mut().take_changed() {
            let is_dismissed = self.index.approvals_mut().take_dismissed(&digest);
            let known = self.index.approvals().offer(&digest);
            if let Some(held) = self.approvals.held.get_mut(&digest) {
                match &known {
                    Some(_) => (held.created, held.again) = (None, None),
                    None => drop(self.approvals.missing.insert(Arc::clone(&digest))),
                }
                if is_dismissed && known.is_none() {
                    held.again = Some(now.time + AGAIN);
                }
            }
            let is_withdrawn = self.index.approvals_mut().take_withdrawn(&digest);
            let is_approved = self.index.approvals().approves(&digest, now.wall);
            let covered = self.approvals.components.iter().filter(|component| component.is_covered_by(&digest));
            let outdated: BTreeSet<Name> = covered
                .filter(|GuardedComponent { guarded, offer, .. }| {
                    is_withdrawn
                        || (guarded.held().is_some()
                            && (is_approved || guarded.offer(|digest| self.offer(digest)) != *offer))
                })
                .flat_map(|component| component.names.clone())
                .collect();
            if is_withdrawn {
                self.index.approvals_mut().withdraw(&outdated);
            }
            outdated.iter().for_each(|name| self.touch(name));
        }
    }

    /// Writes what has changed in the Plans. Returns when to call it again.
    pub fn reconcile_approvals(&mut self) -> Option<Time> {
        let now = self.now;
        let expired = self.approvals.expiries.iter().filter(|(_, at)| **at <= now.wall).map(|(name, _)| name);
        let plans = self.index.approvals_mut();
        expired.for_each(|name| plans.touch(name));
        if !self.planning.has_unplanned() {
            std::mem::take(&mut self.approvals.unknown).iter().for_each(|name| plans.touch(name));
        }
        let mut next = None;
        for name in plans.take_touched() {
            let Some(plan) = self.index.approvals().get(&name).cloned() else {
                self.approvals.expiries.remove(&name);
                continue;
            };
            let due = self.update_plan(&name, &plan);
            if due.is_some_and(|at| at > now.time) {
                self.index.approvals_mut().touch(&name);
                next = next.into_iter().chain(due).min();
            }
        }
        for digest in std::mem::take(&mut self.approvals.missing) {
            let due = self.create_plan(&digest);
            if due.is_some_and(|at| at > now.time) {
                self.approvals.missing.insert(digest);
                next = next.into_iter().chain(due).min();
            }
        }
        let expires = self.approvals.expiries.values().min().map(|at| {
            let left = Duration::try_from(at.duration_since(now.wall)).unwrap_or_default();
            now.time + left.max(Duration::from_secs(1))
        });
        next.into_iter().chain(expires).min()
    }

    /// Creates a Plan if changes have been held for long enough and none has their digest. Returns when it is due.
    fn create_plan(&mut self, digest: &Arc<str>) -> Option<Time> {
        // No object can be created in a namespace that is being deleted.
        let held = self.approvals.held.get(digest).filter(|_| !self.index.is_terminating())?;
        if self.index.approvals().offer(digest).is_some() {
            return None;
        }
        let due = held.due_at().max(self.approvals.writable_at(digest, self.now.time)?);
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
        let due = self.approvals.writable_at(name, self.now.time)?;
        // After a restart, whether its changes are still planned is unknown until they are planned again.
        if plan.names().any(|name| self.index.instance(name).is_some() && self.resources.get(name).is_none()) {
            return None;
        }
        if self.is_unknown(plan) {
            self.approvals.unknown.insert(Arc::clone(name));
            return None;
        }
        if due <= self.now.time {
            // It has come after the first plan. The next one decides about it.
            let unread: BTreeSet<Address> = self.unread(plan).cloned().collect();
            unread.iter().for_each(|address| self.objects.entry(address).known = true);
            self.read_now(unread);
            let status = self.judge(plan);
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
        let names: BTreeSet<&Name> = changes.map(|change| change.address.name()).collect();
        let owners: Vec<PlanOwner> = names
            .into_iter()
            .filter_map(|name| self.index.instance(name))
            .filter(|resource| !resource.deleting && !resource.address.is_data())
            .map(|resource| PlanOwner { name: resource.address.name().clone(), uid: resource.uid.clone() })
            .collect();
        if owners.len() > MAX_OWNERS { Vec::new() } else { owners }
    }

    fn write(&mut self, write: ApprovalWrite) {
        let pending = self.approvals.writes.entry(Arc::clone(write.key())).or_default();
        (pending.is_running, pending.retry_at) = (true, None);
        self.commands.push(Command::WriteApproval(Box::new(write)));
    }

    /// A [`Command::WriteApproval`] has ended. `written`: the Plan; `None` if the write failed.
    pub fn approval_written(&mut self, write: ApprovalWrite, written: Option<PlanId>) {
        let key = Arc::clone(write.key());
        match &write {
            ApprovalWrite::Create { .. } => drop(self.approvals.missing.insert(Arc::clone(&key))),
            ApprovalWrite::Status { name, .. } => self.index.approvals_mut().touch(name),
        }
        let Some(id) = written else {
            let random = self.random.number();
            let Some(pending) = self.approvals.writes.get_mut(&key) else { return };
            (pending.is_running, pending.failures) = (false, pending.failures + 1);
            pending.retry_at = Some(self.now.time + retry::delay(pending.failures, random));
            return;
        };
        self.approvals.writes.remove(&key);
        match write {
            ApprovalWrite::Create { plan, .. } => {
                if let Some(held) = self.approvals.held.get_mut(&key) {
                    (held.created, held.again) = (Some(self.now.time), None);
                }
                self.announce_held(&plan);
            }
            ApprovalWrite::Status { name, status, .. } => {
                if let Some(before) = self.index.approvals().get(&name).cloned() {
                    self.announce(&before, &status);
                }
                self.index.approvals_mut().written(&name, id, *status);
            }
        }
    }

    /// Reports a decision as events of the Resources.
    fn announce(&mut self, plan: &ApprovalPlan, status: &PlanStatus) {
        let (reason, what) = match status.approval {
            known if known == plan.status.approval => return,
            Some(ApprovalState::Approved) => ("Approved", "approved"),
            Some(ApprovalState::Rejected) => ("Rejected", "rejected"),
            _ => return,
        };
        let by = status.decided_by.as_ref().map_or_else(String::new, |user| format!(" by {user}"));
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
