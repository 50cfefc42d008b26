//! Which changes of a plan wait for an approval, and what approves them.
//!
//! A change is approved by its digest alone: no name, label or text of a Plan counts. A salt keeps the digests from revealing
//! sensitive values.

mod digest;
pub mod followers;
pub mod shown;
mod sources;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use sha2::{Digest as _, Sha256};

pub use self::digest::Digester;
use super::{ObjectBlock, PlanOptions};
use crate::load::Config;
use api::{APPROVE_DESTROYS, ChangeDigest, ChangeProof, RequiredApproval};
use model::text::hex;
use model::{
    Action, Address, ApprovedObject, Change, ChangeApproval, ChangeCause, Name, Reason, Record, Recorded,
    RequiredApprovals, Uid, Value,
};

pub use self::digest::digest_of;

/// How many Plans that approve the same change it uses up. The history has a limited size.
const MAX_USES: usize = 4;

/// The maximum number of lines that say how changes differ from approved ones.
const MAX_DIFFERENCES: usize = 50;

/// What needs an approval in a namespace, and what has one.
#[derive(Clone, Debug, Default)]
pub struct Approvals {
    /// For all Resources of the namespace.
    pub required: RequiredApprovals,
    /// All destroys are approved, because the namespace is being deleted and its annotation says so.
    pub destroys_approved: bool,
    /// The approved changes, by object.
    pub changes: BTreeMap<Address, Vec<ApprovedChange>>,
    /// Approved digests of changes that are not known yet.
    pub digests: BTreeMap<Arc<str>, Approver>,
    /// The Plans in which users decide, by digest.
    pub offers: BTreeMap<Arc<str>, Offer>,
}

/// A change with an approval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApprovedChange {
    pub change: ChangeDigest,
    pub approver: Approver,
}

/// A Plan that approves changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Approver {
    /// The UID of the Plan.
    pub plan: Uid,
    /// The user who approved it, if known.
    pub user: Option<Arc<str>>,
}

/// Where users decide on changes that wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    /// The name of the Plan.
    pub plan: Arc<str>,
    pub state: OfferState,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OfferState {
    /// It is there, or it is about to be created.
    Open,
    /// It was rejected by this user, if known.
    Rejected(Option<Arc<str>>),
    /// A user has deleted it, and it is created again later.
    Deleted,
}

/// A planned change that needs an approval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuardedChange {
    pub digest: ChangeDigest,
    /// What proves that a Plan shows it as it is.
    pub proof: ChangeProof,
    pub approval: Option<ChangeApproval>,
}

/// The changes of one component that need an approval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guarded {
    pub changes: Vec<GuardedChange>,
    /// The digest of all of them.
    pub digest: String,
    /// Those that no approval names, with their digest; `None` if each is named. A Plan with one of the two digests
    /// approves them.
    pub unnamed: Option<RequiredApproval>,
}

impl Approver {
    /// What the history of an object says about a change that this Plan has approved.
    pub fn use_of(&self, change: &ChangeDigest) -> String {
        let mut text = hex(&Sha256::digest(format!("{} {}", self.plan, change.digest).as_bytes()));
        text.truncate(16);
        text
    }

    fn approval(&self, change: &ChangeDigest) -> ChangeApproval {
        let by = self.user.clone().unwrap_or_default();
        ChangeApproval { by, uses: self.use_of(change).into(), new_object: None }
    }
}

impl Approvals {
    /// Whether a change of these Resources can need an approval.
    pub fn concern(&self, config: &Config, recorded: &Recorded) -> bool {
        let resources = config.instances.values().chain(config.families.values().map(|family| &family.shared));
        let has_begun = recorded.values().any(|stored| stored.record.approved_object.is_some());
        has_begun
            || !self.required.is_empty()
            || resources.into_iter().any(|resource| !resource.require_approval.is_empty())
    }

    /// The changes of a component that need an approval. `None` if there are none.
    pub fn guarded(&self, digester: &Digester<'_>, recorded: &Recorded, component: &BTreeSet<Name>) -> Option<Guarded> {
        let mut changes: Vec<(&Change, GuardedChange)> = digester
            .plan
            .changes()
            .filter(|change| component.contains(change.address.name()))
            .filter(|change| self.guards(digester, change, recorded))
            .map(|change| (change, self.judge(digester, change)))
            .collect();
        if changes.is_empty() {
            return None;
        }
        let digest = digest_of(changes.iter().map(|(_, guarded)| &guarded.digest));
        let unnamed: Vec<ChangeDigest> = changes
            .iter()
            .filter(|(_, guarded)| guarded.approval.is_none())
            .map(|(_, guarded)| guarded.digest.clone())
            .collect();
        let unnamed = (!unnamed.is_empty()).then(|| RequiredApproval { digest: digest_of(&unnamed), changes: unnamed });
        let by_digest = self.digests.get(digest.as_str());
        let by_digest = by_digest.or_else(|| self.digests.get(unnamed.as_ref()?.digest.as_str()));
        for (change, guarded) in &mut changes {
            if guarded.approval.is_none() {
                guarded.approval = by_digest.map(|approver| approver.approval(&guarded.digest));
            }
            if let Some(approval) = guarded.approval.as_mut().filter(|_| change.action == Action::Replace) {
                let unknown_paths = guarded.digest.unknown_paths.clone();
                let digest = digester.second_half(change, &unknown_paths).into();
                let (by, uses) = (approval.by.clone(), approval.uses.clone());
                approval.new_object = Some(Box::new(ApprovedObject { digest, unknown_paths, by, uses }));
            }
        }
        Some(Guarded { changes: changes.into_iter().map(|(_, guarded)| guarded).collect(), digest, unnamed })
    }

    /// The approvals of creates that complete an approved replacement.
    pub fn second_halves(&self, digester: &Digester<'_>, recorded: &Recorded) -> BTreeMap<Address, ChangeApproval> {
        digester
            .plan
            .changes()
            .filter_map(|change| {
                let object = begun(change, recorded)?.approved_object.as_ref()?;
                let approval = ChangeApproval { by: object.by.clone(), uses: object.uses.clone(), new_object: None };
                is_approved_object(digester, change, object).then(|| (change.address.clone(), approval))
            })
            .collect()
    }

    /// Whether a change needs an approval. What completes a change that has begun needs none: the second half of an
    /// approved replacement, deposed objects, and running steps.
    fn guards(&self, digester: &Digester<'_>, change: &Change, recorded: &Recorded) -> bool {
        let config = digester.config;
        if change.deposed.is_some() || change.because == Some(ChangeCause::Running) {
            return false;
        }
        if change.action == Action::Destroy && self.destroys_approved {
            return false;
        }
        let Some(record) = begun(change, recorded) else { return self.requires(change, config) };
        match &record.approved_object {
            Some(object) => !is_approved_object(digester, change, object),
            // It began when it needed no approval.
            None => self.requires(&Change { action: Action::Replace, ..change.clone() }, config),
        }
    }

    /// Whether the namespace or the Resource requires an approval of a change.
    fn requires(&self, change: &Change, config: &Config) -> bool {
        let resource = config.instances.get(&change.address).or_else(|| config.resource(&change.address));
        self.required.concern(change) || resource.is_some_and(|resource| resource.require_approval.concern(change))
    }

    fn judge(&self, digester: &Digester<'_>, change: &Change) -> GuardedChange {
        let approved = self.changes.get(&change.address).into_iter().flatten();
        let same: Vec<(&ApprovedChange, ChangeProof)> = approved
            .filter_map(|approved| {
                let (digest, proof) = digester.digest(change, &approved.change.unknown_paths);
                let is_same = approved.change.action == change.action && digest == approved.change.digest;
                is_same.then_some((approved, proof))
            })
            .collect();
        let Some((first, proof)) = same.first() else {
            let (digest, proof) = digester.change(change);
            return GuardedChange { digest, proof, approval: None };
        };
        let uses = same
            .iter()
            .take(MAX_USES)
            .map(|(approved, _)| approved.approver.use_of(&approved.change))
            .collect::<String>();
        let approval = ChangeApproval { uses: uses.into(), ..first.approver.approval(&first.change) };
        // As approved: what was unknown then may be known now.
        let digest = ChangeDigest { applied: false, ..first.change.clone() };
        GuardedChange { digest, proof: proof.clone(), approval: Some(approval) }
    }
}

/// The record of a replacement that has destroyed its old object, if the change creates the new one.
fn begun<'a>(change: &Change, recorded: &'a Recorded) -> Option<&'a Record> {
    let record = &recorded.get(&change.address)?.record;
    let is_second_half = change.action == Action::Create && change.deposed.is_none() && record.replacement_pending;
    is_second_half.then_some(record)
}

fn is_approved_object(digester: &Digester<'_>, change: &Change, object: &ApprovedObject) -> bool {
    digester.second_half(change, &object.unknown_paths) == *object.digest
}

impl Guarded {
    /// The form of the status.
    pub fn published(&self) -> RequiredApproval {
        RequiredApproval {
            digest: self.digest.clone(),
            changes: self.changes.iter().map(|change| change.digest.clone()).collect(),
        }
    }

    /// What proves that a Plan shows these changes as they are.
    pub fn proofs(&self) -> impl Iterator<Item = (&Address, &ChangeProof)> {
        self.changes.iter().map(|change| (&change.digest.address, &change.proof))
    }

    /// The changes that a Plan with this digest covers; `None` if it covers none of them.
    pub fn covered_by(&self, digest: &str) -> Option<RequiredApproval> {
        let unnamed = self.unnamed.as_ref().filter(|unnamed| unnamed.digest == digest);
        unnamed.cloned().or_else(|| (self.digest == digest).then(|| self.published()))
    }

    /// The changes that are not approved, with their digest; `None` if all are approved.
    pub fn held(&self) -> Option<&RequiredApproval> {
        let is_held = self.waiting().next().is_some();
        self.unnamed.as_ref().filter(|_| is_held)
    }

    /// Where users decide on changes that are not approved. `find`: the Plan with a digest.
    pub fn offer(&self, find: impl Fn(&str) -> Option<Offer>) -> Option<Offer> {
        let held = self.held()?;
        let known = find(&held.digest).or_else(|| find(&self.digest));
        Some(known.unwrap_or_else(|| Offer { plan: held.plan_name().into(), state: OfferState::Open }))
    }

    /// The changes that are not approved.
    pub fn waiting(&self) -> impl Iterator<Item = &ChangeDigest> {
        self.changes.iter().filter(|change| change.approval.is_none()).map(|change| &change.digest)
    }

    /// Why the objects of these changes must not be changed.
    pub fn blocks<'a>(
        &'a self,
        offer: &'a Offer,
        options: &'a PlanOptions,
    ) -> impl Iterator<Item = (Address, ObjectBlock)> + 'a {
        let namespace = options.namespace_value.get("name").and_then(Value::as_str).unwrap_or_default();
        let plan = &offer.plan;
        let (reason, why) = match &offer.state {
            _ if options.namespace_terminating => {
                let hint = format!("`kubectl annotate namespace {namespace} {APPROVE_DESTROYS}=true`");
                let why = format!("waits for an approval (hint: {hint} approves all destroys in the namespace)");
                (Reason::ApprovalRequired, why)
            }
            OfferState::Open => {
                let hint = format!("`purlin approve {plan} -n {namespace}`");
                (Reason::ApprovalRequired, format!("waits for the approval of the Plan `{plan}` (hint: {hint})"))
            }
            OfferState::Deleted => {
                let why = "waits for an approval; its Plan was deleted, and Purlin creates it again within a minute \
                           (hint: `purlin reject` refuses the changes of a Plan)";
                (Reason::ApprovalRequired, why.to_owned())
            }
            OfferState::Rejected(user) => {
                let by = user.as_ref().map_or_else(String::new, |user| format!(" by {user}"));
                let hint =
                    format!("change the Resource, or delete the Plan to decide again: `kubectl delete plan {plan}");
                let why = format!("was rejected{by}, so the object stays as it is (hint: {hint} -n {namespace}`)");
                (Reason::Rejected, why)
            }
        };
        self.waiting().map(move |change| {
            let message = format!("{} {why}", noun(change.action));
            (change.address.clone(), ObjectBlock { reason, message })
        })
    }
}

/// How changes that are due differ from approved ones, as lines.
pub fn differences(approved: &[ChangeDigest], due: &[&ChangeDigest]) -> Vec<String> {
    let due: BTreeMap<&Address, &ChangeDigest> = due.iter().copied().map(|change| (&change.address, change)).collect();
    let known: BTreeMap<&Address, &ChangeDigest> = approved.iter().map(|change| (&change.address, change)).collect();
    let mut lines = Vec::new();
    for (address, approved) in &known {
        match due.get(address) {
            None => {}
            Some(now) if now.digest == approved.digest && now.action == approved.action => {}
            Some(now) if now.action == approved.action => {
                lines.push(format!("{address}: other attributes change than were approved"));
            }
            Some(now) => {
                let (now, before) = (verb(now.action), verb(approved.action));
                lines.push(format!("{address}: to be {now}, but the approval is for it to be {before}"));
            }
        }
    }
    for (address, now) in due.iter().filter(|(address, _)| !known.contains_key(*address)) {
        lines.push(format!("{address}: to be {}, which the approval does not contain", verb(now.action)));
    }
    if lines.len() > MAX_DIFFERENCES {
        let more = lines.len() - MAX_DIFFERENCES;
        lines.truncate(MAX_DIFFERENCES);
        lines.push(format!("{more} more"));
    }
    lines
}

/// A change in a sentence.
pub fn noun(action: Action) -> &'static str {
    match action {
        Action::Create => "the create",
        Action::Update => "the update",
        Action::Replace => "the replacement",
        _ => "the destroy",
    }
}

fn verb(action: Action) -> &'static str {
    match action {
        Action::Create => "created",
        Action::Update => "updated",
        Action::Replace => "replaced",
        _ => "destroyed",
    }
}

#[cfg(test)]
mod tests;
