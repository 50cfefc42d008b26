//! The Plans of a namespace that approve changes, or wait for an approval.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use crate::api::{ApprovalState, ChangeDigest, PlanStatus};
use crate::model::RequiredApprovals;
use crate::plan::approval::{Approvals, ApprovedChange};

/// A version of a Plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlanId {
    pub uid: Arc<str>,
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
    pub digest: String,
    /// The changes in its spec.
    pub proposed: Vec<ChangeDigest>,
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
        self.approved && !self.rejected && !self.is_final() && self.expires_at().is_none_or(|at| at > now)
    }

    /// The names of the objects that it covers.
    pub fn names(&self) -> impl Iterator<Item = &Arc<str>> {
        self.changes().iter().map(|change| &change.address.name)
    }
}

/// The Plans of a namespace, without those that are final: these approve nothing.
#[derive(Clone, Debug, Default)]
pub struct ApprovalCache {
    plans: BTreeMap<Arc<str>, Arc<ApprovalPlan>>,
    /// The Plans that cover a change of a name.
    by_name: BTreeMap<Arc<str>, BTreeSet<Arc<str>>>,
    /// Plans with nothing but a digest: any change can turn out to be theirs.
    digest_only: BTreeSet<Arc<str>>,
    /// Plans whose status may no longer be correct.
    touched: BTreeSet<Arc<str>>,
    /// How often an approval of changes of this name was withdrawn: a plan that relies on it is stale.
    withdrawn: BTreeMap<Arc<str>, u64>,
}

impl ApprovalCache {
    pub fn is_empty(&self) -> bool {
        self.plans.is_empty()
    }

    pub fn get(&self, name: &str) -> Option<&Arc<ApprovalPlan>> {
        self.plans.get(name)
    }

    /// Adds a Plan, and returns the names whose changes it may approve.
    pub fn applied(&mut self, name: Arc<str>, plan: ApprovalPlan) -> BTreeSet<Arc<str>> {
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
    pub fn deleted(&mut self, name: &str) -> BTreeSet<Arc<str>> {
        let Some(plan) = self.remove(name) else { return BTreeSet::new() };
        let names: BTreeSet<Arc<str>> = plan.names().cloned().collect();
        if plan.approved && !plan.is_final() {
            names.iter().for_each(|name| *self.withdrawn.entry(Arc::clone(name)).or_default() += 1);
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
            self.by_name.entry(Arc::clone(covered)).or_default().insert(Arc::clone(&name));
        }
        if plan.changes().is_empty() {
            self.digest_only.insert(Arc::clone(&name));
        }
        self.touched.insert(Arc::clone(&name));
        self.plans.insert(name, Arc::new(plan));
    }

    fn remove(&mut self, name: &str) -> Option<Arc<ApprovalPlan>> {
        let plan = self.plans.remove(name)?;
        for covered in plan.names() {
            if let Some(plans) = self.by_name.get_mut(covered) {
                plans.remove(name);
                if plans.is_empty() {
                    self.by_name.remove(covered);
                }
            }
        }
        self.digest_only.remove(name);
        self.touched.insert(name.into());
        Some(plan)
    }

    /// The status of this Plan may no longer be correct.
    pub fn touch(&mut self, plan: &Arc<str>) {
        self.touched.insert(Arc::clone(plan));
    }

    /// The objects of these names have changed.
    pub fn touch_names<'a>(&mut self, names: impl IntoIterator<Item = &'a Arc<str>> + 'a) {
        self.touched.extend(names.into_iter().filter_map(|name| self.by_name.get(name)).flatten().cloned());
    }

    /// Other changes need an approval.
    pub fn touch_digest_only(&mut self) {
        self.touched.extend(self.digest_only.iter().cloned());
    }

    pub fn touch_all(&mut self) {
        self.touched.extend(self.plans.keys().cloned());
    }

    /// Removes and returns the Plans whose status may no longer be correct.
    pub fn take_touched(&mut self) -> BTreeSet<Arc<str>> {
        std::mem::take(&mut self.touched)
    }

    pub fn withdrawals(&self, name: &str) -> u64 {
        self.withdrawn.get(name).copied().unwrap_or_default()
    }

    /// What is approved now.
    pub fn approvals(&self, required: RequiredApprovals, now: Timestamp) -> Approvals {
        let mut approvals = Approvals { required, ..Approvals::default() };
        for plan in self.plans.values().filter(|plan| plan.approves(now)) {
            let by: Option<Arc<str>> = plan.decided_by.as_deref().map(Arc::from);
            if plan.changes().is_empty() {
                approvals.digests.insert(plan.digest.clone(), by.clone());
            }
            for change in plan.changes().iter().filter(|change| !change.applied) {
                let approved = ApprovedChange { change: change.clone(), by: by.clone() };
                approvals.changes.entry(change.address.clone()).or_default().push(approved);
            }
        }
        approvals
    }
}
