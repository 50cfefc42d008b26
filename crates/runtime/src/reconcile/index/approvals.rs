//! The Plans of a namespace that approve changes, or wait for an approval.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use api::{ApprovalState, ChangeDigest, PlanStatus};
use engine::plan::approval::{Approvals, ApprovedChange, Approver, Offer, OfferState};
use model::{Name, RequiredApprovals, Uid};

/// A version of a Plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlanId {
    pub uid: Uid,
    /// The resourceVersion. A status is written only to the version that it was computed from: another replica may have
    /// written one since.
    pub version: Arc<str>,
}

/// A Plan with a digest, as last read or written.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ApprovalPlan {
    pub id: PlanId,
    pub generation: i64,
    /// Purlin created it, and removes it when it is no longer needed.
    pub is_own: bool,
    pub digest: Arc<str>,
    /// The changes in its spec.
    pub proposed: Vec<ChangeDigest>,
    /// These are not the changes of its digest, so that it does not say what it approves.
    pub is_invalid: bool,
    pub approved: bool,
    pub rejected: bool,
    /// The user who decided, as the annotation says.
    pub decided_by: Option<String>,
    /// How long an approval is valid.
    pub valid: SignedDuration,
    pub status: PlanStatus,
}

impl ApprovalPlan {
    /// The changes that it covers: those that were due, or else those of its spec.
    pub fn changes(&self) -> &[ChangeDigest] {
        self.status.approvals.first().map_or(&self.proposed, |due| &due.changes)
    }

    pub fn approver(&self) -> Approver {
        Approver { plan: self.id.uid.clone(), user: self.decided_by.as_deref().map(Arc::from) }
    }

    /// Whether changes with its digest have been due.
    pub fn was_due(&self) -> bool {
        !self.status.approvals.is_empty()
    }

    pub fn is_final(&self) -> bool {
        self.status.approval.is_some_and(ApprovalState::is_final)
    }

    /// When its approval ends.
    pub fn expires_at(&self) -> Option<Timestamp> {
        let decided: Timestamp = self.status.decided_at.as_ref()?.parse().ok()?;
        self.approved.then(|| decided.saturating_add(self.valid).unwrap_or(Timestamp::MAX))
    }

    fn approves(&self, now: Timestamp) -> bool {
        self.is_open() && self.approved && !self.rejected && self.expires_at().is_none_or(|at| at > now)
    }

    /// Whether it says something about changes.
    pub fn is_open(&self) -> bool {
        !self.is_invalid && !self.is_final()
    }

    /// Where users decide, or have decided, on the changes of its digest.
    fn offer(&self, name: &Arc<str>) -> Offer {
        let state = if self.rejected {
            OfferState::Rejected(self.decided_by.as_deref().map(Arc::from))
        } else {
            OfferState::Open
        };
        Offer { plan: Arc::clone(name), state }
    }

    /// The names of the objects that it covers.
    pub fn names(&self) -> impl Iterator<Item = &Name> {
        self.changes().iter().map(|change| change.address.name())
    }
}

/// The Plans of a namespace, without those that are final: these approve nothing.
#[derive(Clone, Debug, Default)]
pub struct ApprovalCache {
    plans: BTreeMap<Arc<str>, Arc<ApprovalPlan>>,
    /// The Plans that cover a change of a name.
    by_name: BTreeMap<Name, BTreeSet<Arc<str>>>,
    /// Plans with nothing but a digest: any change can turn out to be theirs.
    digest_only: BTreeSet<Arc<str>>,
    by_digest: BTreeMap<Arc<str>, BTreeSet<Arc<str>>>,
    /// Plans whose status may no longer be correct.
    touched: BTreeSet<Arc<str>>,
    /// The digests of Plans that have come, gone or changed.
    changed: BTreeSet<Arc<str>>,
    /// The digests of Plans that were deleted before a user decided on their changes.
    dismissed: BTreeSet<Arc<str>>,
    /// The digests of approved Plans that were deleted before their changes were known.
    withdrawn_digests: BTreeSet<Arc<str>>,
    /// How often an approval of changes of this name was withdrawn: a plan that relies on it is stale.
    withdrawn: BTreeMap<Name, u64>,
}

impl ApprovalCache {
    pub fn is_empty(&self) -> bool {
        self.plans.is_empty()
    }

    pub fn get(&self, name: &str) -> Option<&Arc<ApprovalPlan>> {
        self.plans.get(name)
    }

    /// Adds a Plan, and returns the names whose changes it may approve.
    pub fn applied(&mut self, name: Arc<str>, plan: ApprovalPlan) -> BTreeSet<Name> {
        if plan.is_final() {
            return self.deleted(&name);
        }
        if self.plans.get(&name).is_some_and(|before| **before == plan) {
            return BTreeSet::new();
        }
        let names = plan.names().cloned().collect();
        self.insert(name, plan);
        names
    }

    /// Removes a Plan, and returns the names whose changes it approved.
    pub fn deleted(&mut self, name: &str) -> BTreeSet<Name> {
        let Some(plan) = self.remove(name) else { return BTreeSet::new() };
        if plan.is_open() && !plan.approved && !plan.rejected {
            self.dismissed.insert(Arc::clone(&plan.digest));
        }
        if plan.approved && plan.changes().is_empty() {
            self.withdrawn_digests.insert(Arc::clone(&plan.digest));
        }
        let names: BTreeSet<Name> = plan.names().cloned().collect();
        if plan.approved && !plan.is_final() {
            self.withdraw(&names);
        }
        names
    }

    /// Replaces the status of a Plan that was written, as this version of the Plan.
    pub fn written(&mut self, name: &Arc<str>, id: PlanId, status: PlanStatus) {
        let Some(plan) = self.remove(name) else { return };
        let plan = match plan.id.uid == id.uid {
            true => ApprovalPlan { id, status, ..Arc::unwrap_or_clone(plan) },
            false => Arc::unwrap_or_clone(plan),
        };
        if !plan.is_final() {
            self.insert(Arc::clone(name), plan);
        }
    }

    fn insert(&mut self, name: Arc<str>, plan: ApprovalPlan) {
        self.remove(&name);
        for covered in plan.names() {
            self.by_name.entry(covered.clone()).or_default().insert(Arc::clone(&name));
        }
        if plan.changes().is_empty() {
            self.digest_only.insert(Arc::clone(&name));
        }
        self.by_digest.entry(Arc::clone(&plan.digest)).or_default().insert(Arc::clone(&name));
        self.changed.insert(Arc::clone(&plan.digest));
        self.touched.insert(Arc::clone(&name));
        self.plans.insert(name, Arc::new(plan));
    }

    fn remove(&mut self, name: &str) -> Option<Arc<ApprovalPlan>> {
        let plan = self.plans.remove(name)?;
        for covered in plan.names() {
            remove_from(&mut self.by_name, covered, name);
        }
        remove_from(&mut self.by_digest, &plan.digest, name);
        self.changed.insert(Arc::clone(&plan.digest));
        self.digest_only.remove(name);
        self.touched.insert(name.into());
        Some(plan)
    }

    /// The status of this Plan may no longer be correct.
    pub fn touch(&mut self, plan: &Arc<str>) {
        self.touched.insert(Arc::clone(plan));
    }

    /// The objects of these names have changed.
    pub fn touch_names<'a>(&mut self, names: impl IntoIterator<Item = &'a Name> + 'a) {
        self.touched.extend(names.into_iter().filter_map(|name| self.by_name.get(name)).flatten().cloned());
    }

    /// Other changes may need an approval.
    pub fn touch_digest_only(&mut self) {
        self.touched.extend(self.digest_only.iter().cloned());
    }

    /// The Plans with this digest may no longer be correct.
    pub fn touch_digest(&mut self, digest: &str) {
        self.touched.extend(self.by_digest.get(digest).into_iter().flatten().cloned());
    }

    pub fn touch_all(&mut self) {
        self.touched.extend(self.plans.keys().cloned());
    }

    /// Removes and returns the digests of Plans that have come, gone or changed.
    pub fn take_changed(&mut self) -> BTreeSet<Arc<str>> {
        std::mem::take(&mut self.changed)
    }

    /// Whether a Plan with this digest was deleted before a user decided on its changes, since the last call.
    pub fn take_dismissed(&mut self, digest: &str) -> bool {
        self.dismissed.remove(digest)
    }

    /// Whether an approval of this digest was withdrawn since the last call. If its changes were known, it is not counted
    /// here, but by their names.
    pub fn take_withdrawn(&mut self, digest: &str) -> bool {
        self.withdrawn_digests.remove(digest)
    }

    /// The Plans that cover a change of these names.
    pub fn covering(&self, names: &BTreeSet<Name>) -> impl Iterator<Item = &Arc<ApprovalPlan>> {
        let plans: BTreeSet<&Arc<str>> = names.iter().filter_map(|name| self.by_name.get(name)).flatten().collect();
        plans.into_iter().filter_map(|plan| self.plans.get(plan))
    }

    /// The digests of all Plans.
    pub fn digests(&self) -> impl Iterator<Item = &Arc<str>> {
        self.by_digest.keys()
    }

    /// Plans that rely on an approval of changes of these names are stale.
    pub fn withdraw(&mut self, names: &BTreeSet<Name>) {
        names.iter().for_each(|name| *self.withdrawn.entry(name.clone()).or_default() += 1);
    }

    /// The Plan with this digest in which users decide; one that was rejected, if there is any. Its name and its labels do
    /// not matter.
    pub fn offer(&self, digest: &str) -> Option<Offer> {
        let names = self.by_digest.get(digest)?;
        let plans = names.iter().filter_map(|name| Some((name, self.plans.get(name)?)));
        let offers: Vec<Offer> =
            plans.filter(|(_, plan)| plan.is_open()).map(|(name, plan)| plan.offer(name)).collect();
        let rejected = offers.iter().find(|offer| offer.state != OfferState::Open);
        rejected.or(offers.first()).cloned()
    }

    /// Whether a Plan approves the changes of this digest now.
    pub fn approves(&self, digest: &str, now: Timestamp) -> bool {
        let mut plans = self.by_digest.get(digest).into_iter().flatten().filter_map(|name| self.plans.get(name));
        plans.any(|plan| plan.approves(now))
    }

    /// Removes and returns the Plans whose status may no longer be correct.
    pub fn take_touched(&mut self) -> BTreeSet<Arc<str>> {
        std::mem::take(&mut self.touched)
    }

    pub fn withdrawals(&self, name: &str) -> u64 {
        self.withdrawn.get(name).copied().unwrap_or_default()
    }

    /// What is approved now. `is_made`: whether an approved change was made, which uses up its approval.
    pub fn approvals(
        &self,
        required: RequiredApprovals,
        now: Timestamp,
        is_made: impl Fn(&Approver, &ChangeDigest) -> bool,
    ) -> Approvals {
        let mut approvals = Approvals { required, ..Approvals::default() };
        for plan in self.plans.values().filter(|plan| plan.approves(now)) {
            let approver = plan.approver();
            if plan.changes().is_empty() {
                approvals.digests.insert(Arc::clone(&plan.digest), approver.clone());
            }
            let open = plan.changes().iter().filter(|change| !change.applied && !is_made(&approver, change));
            for change in open {
                let approved = ApprovedChange { change: change.clone(), approver: approver.clone() };
                approvals.changes.entry(change.address.clone()).or_default().push(approved);
            }
        }
        approvals
    }
}

fn remove_from<K: Ord>(plans: &mut BTreeMap<K, BTreeSet<Arc<str>>>, key: &K, name: &str) {
    if let Some(names) = plans.get_mut(key) {
        names.remove(name);
        if names.is_empty() {
            plans.remove(key);
        }
    }
}
