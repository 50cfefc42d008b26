//! Which changes of a plan wait for an approval, and the digests that identify them.
//!
//! The same change has the same digest whenever it is planned, in a preview and after the merge: random parts of names
//! and unknown values count as placeholders. A salt keeps the digests from revealing sensitive values.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use sha2::{Digest as _, Sha256};

use super::{ObjectBlock, Plan, PlanOptions};
use crate::api::{APPROVE_DESTROYS, ChangeDigest, RequiredApproval};
use crate::load::Config;
use crate::model::kube_names::generated_suffix;
use crate::model::text::hex;
use crate::model::{Action, Address, Change, Path, Reason, Recorded, RequiredApprovals, Segment, Stored, Value};

/// Replaces the random part of a name.
const GENERATED: &str = "\u{0}generated\u{0}";

/// What needs an approval in a namespace, and what has one.
#[derive(Clone, Debug, Default)]
pub struct Approvals {
    /// For all Resources of the namespace.
    pub required: RequiredApprovals,
    /// All destroys are approved, because the namespace is being deleted and its annotation says so.
    pub destroys_approved: bool,
    /// The approved changes, by object.
    pub changes: BTreeMap<Address, Vec<ApprovedChange>>,
    /// Approved digests of changes that are not known yet, each with the user who approved it, if known.
    pub digests: BTreeMap<String, Option<Arc<str>>>,
}

/// A change with an approval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApprovedChange {
    pub change: ChangeDigest,
    /// The user who approved it, if known.
    pub by: Option<Arc<str>>,
}

/// A planned change that needs an approval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuardedChange {
    pub digest: ChangeDigest,
    pub is_approved: bool,
    pub approved_by: Option<Arc<str>>,
}

/// The changes of one component that need an approval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guarded {
    pub changes: Vec<GuardedChange>,
    /// The digest of all of them.
    pub all: String,
    /// Those that no approval names, with their digest; `None` if each is named. A Plan with one of the two digests
    /// approves them.
    pub unnamed: Option<RequiredApproval>,
}

impl Approvals {
    /// Whether a change of these Resources can need an approval.
    pub fn concern(&self, config: &Config) -> bool {
        let resources = config.instances.values().chain(config.families.values().map(|family| &family.shared));
        !self.required.is_empty() || resources.into_iter().any(|resource| !resource.require_approval.is_empty())
    }

    /// The changes of a component that need an approval. `None` if there are none.
    pub fn guarded(
        &self,
        salt: &[u8],
        plan: &Plan,
        config: &Config,
        recorded: &Recorded,
        component: &BTreeSet<Arc<str>>,
    ) -> Option<Guarded> {
        let digester = Digester::new(salt, plan, config);
        let own = plan.changes.iter().filter(|change| component.contains(&change.address.name));
        let guarded = own.filter(|change| self.guards(change, config, recorded));
        let changes: Vec<GuardedChange> = guarded.map(|change| self.judge(&digester, change)).collect();
        if changes.is_empty() {
            return None;
        }
        let all = digest_of(changes.iter().map(|one| &one.digest));
        let mut guarded = Guarded { changes, all, unnamed: None };
        let unnamed: Vec<ChangeDigest> = guarded.waiting().cloned().collect();
        if !unnamed.is_empty() {
            guarded.unnamed = Some(RequiredApproval { digest: digest_of(&unnamed), changes: unnamed });
        }
        let by = self.digests.get(&guarded.all).or_else(|| self.digests.get(&guarded.unnamed.as_ref()?.digest));
        if let Some(by) = by {
            for one in guarded.changes.iter_mut().filter(|one| !one.is_approved) {
                (one.is_approved, one.approved_by) = (true, by.clone());
            }
        }
        Some(guarded)
    }

    /// Whether a change needs an approval. What completes a change that has begun needs none: the second half of a
    /// replacement, deposed objects, and running steps.
    fn guards(&self, change: &Change, config: &Config, recorded: &Recorded) -> bool {
        if change.deposed.is_some() || change.because.as_deref() == Some(super::RUNNING) {
            return false;
        }
        let is_pending = |stored: &Stored| stored.record.replacement_pending;
        if change.action == Action::Create && recorded.get(&change.address).is_some_and(is_pending) {
            return false;
        }
        if change.action == Action::Destroy && self.destroys_approved {
            return false;
        }
        let resource = config.instances.get(&change.address).or_else(|| config.resource(&change.address));
        self.required.concern(change) || resource.is_some_and(|resource| resource.require_approval.concern(change))
    }

    fn judge(&self, digester: &Digester<'_>, change: &Change) -> GuardedChange {
        let approved = self.changes.get(&change.address).into_iter().flatten();
        let same = |one: &&ApprovedChange| digester.digest(change, &one.change.unknown_paths) == one.change.digest;
        match approved.into_iter().find(same) {
            // As approved: what was unknown then may be known now.
            Some(ApprovedChange { change, by }) => {
                GuardedChange { digest: change.clone(), is_approved: true, approved_by: by.clone() }
            }
            None => GuardedChange { digest: digester.change(change), is_approved: false, approved_by: None },
        }
    }
}

impl Guarded {
    /// The form of the status.
    pub fn published(&self) -> RequiredApproval {
        RequiredApproval {
            digest: self.all.clone(),
            changes: self.changes.iter().map(|one| one.digest.clone()).collect(),
        }
    }

    /// The changes that a Plan with this digest covers; `None` if it covers none of them.
    pub fn covered_by(&self, digest: &str) -> Option<RequiredApproval> {
        let unnamed = self.unnamed.as_ref().filter(|unnamed| unnamed.digest == digest);
        unnamed.cloned().or_else(|| Some(self.published()).filter(|all| all.digest == digest))
    }

    /// The changes that are not approved, with their digest; `None` if all are approved.
    pub fn held(&self) -> Option<&RequiredApproval> {
        let is_held = self.waiting().next().is_some();
        self.unnamed.as_ref().filter(|_| is_held)
    }

    /// The changes that are not approved.
    pub fn waiting(&self) -> impl Iterator<Item = &ChangeDigest> {
        self.changes.iter().filter(|one| !one.is_approved).map(|one| &one.digest)
    }

    /// Why the objects of these changes must not be changed. `plan`: the name of the Plan to approve.
    pub fn blocks<'a>(
        &'a self,
        plan: &'a str,
        options: &'a PlanOptions,
    ) -> impl Iterator<Item = (Address, ObjectBlock)> + 'a {
        let namespace = options.namespace_value.get("name").and_then(Value::as_str).unwrap_or_default();
        let waits = if options.namespace_terminating {
            let hint = format!("`kubectl annotate namespace {namespace} {APPROVE_DESTROYS}=true`");
            format!("waits for an approval (hint: {hint} approves all destroys in the namespace)")
        } else {
            let hint = format!("`purlin approve {plan} -n {namespace}`");
            format!("waits for the approval of the Plan `{plan}` (hint: {hint})")
        };
        self.waiting().map(move |change| {
            let message = format!("{} {waits}", noun(change.action));
            (change.address.clone(), ObjectBlock { reason: Reason::ApprovalRequired, message })
        })
    }

    /// Why the changes of objects that depend on these changes must wait too: they were planned with their result.
    pub fn blocks_of_dependents(&self, plan: &Plan) -> Vec<(Address, ObjectBlock)> {
        let mut causes: BTreeMap<&Address, &Address> =
            self.waiting().map(|change| (&change.address, &change.address)).collect();
        let mut dependents: BTreeMap<&Address, Vec<&Address>> = BTreeMap::new();
        for (address, dependencies) in &plan.dependencies {
            dependencies.iter().for_each(|used| dependents.entry(used).or_default().push(address));
        }
        let mut open: Vec<&Address> = causes.keys().copied().collect();
        while let Some(address) = open.pop() {
            let cause = causes[address];
            for dependent in dependents.get(address).into_iter().flatten() {
                if !causes.contains_key(dependent) {
                    causes.insert(dependent, cause);
                    open.push(dependent);
                }
            }
        }
        let changes = plan.changes.iter().filter(|change| {
            change.deposed.is_none() && matches!(change.action, Action::Create | Action::Update | Action::Replace)
        });
        let waits = changes.filter_map(|change| Some((&change.address, *causes.get(&change.address)?)));
        let others = waits.filter(|(address, cause)| address != cause);
        let block = |(address, cause): (&Address, &Address)| {
            let message = format!("depends on `{cause}`, whose change waits for an approval");
            (address.clone(), ObjectBlock { reason: Reason::Waiting, message })
        };
        others.map(block).collect()
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
            Some(now) if now.digest == approved.digest => {}
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

/// The digest of changes, which does not depend on their order.
pub fn digest_of<'a>(changes: impl IntoIterator<Item = &'a ChangeDigest> + 'a) -> String {
    let all: BTreeSet<(&Address, &str)> =
        changes.into_iter().map(|change| (&change.address, change.digest.as_str())).collect();
    let mut hasher = Sha256::new();
    for (address, digest) in all {
        feed(&mut hasher, address.to_string().as_bytes());
        feed(&mut hasher, digest.as_bytes());
    }
    hex(&hasher.finalize())
}

/// Adds bytes so that two lists of them never look the same.
fn feed(hasher: &mut Sha256, bytes: &[u8]) {
    hasher.update((bytes.len() as u64).to_le_bytes());
    hasher.update(bytes);
}

struct Digester<'a> {
    salt: &'a [u8],
    config: &'a Config,
    /// The random parts of the names that this plan generates.
    suffixes: Vec<String>,
}

impl<'a> Digester<'a> {
    fn new(salt: &'a [u8], plan: &Plan, config: &'a Config) -> Self {
        let new = plan.prepared.values().filter(|prepared| prepared.prior.is_none() && !prepared.record_only);
        Self { salt, config, suffixes: new.map(|prepared| generated_suffix(prepared.entropy)).collect() }
    }

    fn change(&self, change: &Change) -> ChangeDigest {
        let mut unknown_paths = Vec::new();
        if let Some(after) = &change.after {
            collect_unknown(after, &Path::default(), &mut unknown_paths);
        }
        let digest = self.digest(change, &unknown_paths);
        ChangeDigest { address: change.address.clone(), action: change.action, digest, unknown_paths, applied: false }
    }

    /// The digest of a change whose attributes at `unknown` have any value.
    fn digest(&self, change: &Change, unknown: &[Path]) -> String {
        let null = Value::Null;
        let before = change.before.as_ref().unwrap_or(&null);
        let mut after = change.after.as_ref().unwrap_or(&null).clone();
        for path in unknown {
            after = with_unknown(&after, path.0.as_slice());
        }
        let mut hasher = Sha256::new();
        feed(&mut hasher, b"purlin change 2");
        feed(&mut hasher, self.salt);
        let what = format!("{:?} {:?} {}", change.action, change.order, change.forget);
        for part in [change.address.to_string().as_str(), &change.type_name, &what] {
            feed(&mut hasher, part.as_bytes());
        }
        for part in self.credentials(change) {
            feed(&mut hasher, part.as_bytes());
        }
        let mut paths = before.differences(&after);
        paths.sort();
        for path in paths {
            feed(&mut hasher, path.to_string().as_bytes());
            let (old, new) = (before.at(&path).unwrap_or_default(), after.at(&path).unwrap_or_default());
            // The old value of an attribute that the service sets, such as a version, may differ at each time.
            if *new.unmarked() != Value::Unknown {
                self.value(&mut hasher, &old);
            }
            self.value(&mut hasher, &new);
        }
        hex(&hasher.finalize())
    }

    /// With whose rights the change is made: the names of the ProviderConfig and of the ServiceAccount. Not those of a
    /// destroy, whose digest is the same with and without the Resource.
    fn credentials(&self, change: &Change) -> [&str; 2] {
        let resource = self.config.instances.get(&change.address);
        let resource = resource.filter(|_| change.action != Action::Destroy);
        let provider_config = resource.and_then(|resource| resource.provider_config.as_deref());
        [provider_config.unwrap_or_default(), resource.map_or("", |resource| &resource.service_account)]
    }

    fn value(&self, hasher: &mut Sha256, value: &Value) {
        match value.unmarked() {
            Value::Null => feed(hasher, b"null"),
            Value::Unknown => feed(hasher, b"unknown"),
            Value::String(text) => {
                feed(hasher, b"string");
                let random = self.suffixes.iter().filter(|suffix| text.contains(suffix.as_str()));
                let fixed = random.fold(text.to_string(), |text, suffix| text.replace(suffix.as_str(), GENERATED));
                feed(hasher, fixed.as_bytes());
            }
            Value::List(items) => {
                feed(hasher, b"list");
                hasher.update((items.len() as u64).to_le_bytes());
                items.iter().for_each(|item| self.value(hasher, item));
            }
            Value::Map(map) => {
                let set = map.iter().filter(|(_, item)| *item.unmarked() != Value::Null);
                let set: Vec<_> = set.collect();
                feed(hasher, b"map");
                hasher.update((set.len() as u64).to_le_bytes());
                for (name, item) in set {
                    feed(hasher, name.as_bytes());
                    self.value(hasher, item);
                }
            }
            other => {
                feed(hasher, b"scalar");
                feed(hasher, other.to_json_text().as_bytes());
            }
        }
    }
}

fn collect_unknown(value: &Value, at: &Path, found: &mut Vec<Path>) {
    match value.unmarked() {
        Value::Unknown => found.push(at.clone()),
        Value::Map(map) => map.iter().for_each(|(name, item)| collect_unknown(item, &at.name(Arc::clone(name)), found)),
        Value::List(items) => {
            items.iter().enumerate().for_each(|(position, item)| collect_unknown(item, &at.index(position), found));
        }
        _ => {}
    }
}

/// The value with an unknown value at a path, if it has a value there.
fn with_unknown(value: &Value, path: &[Segment]) -> Value {
    let Some((first, rest)) = path.split_first() else { return Value::Unknown };
    match (value.unmarked(), first) {
        (Value::Map(map), Segment::Name(name)) if map.contains_key(name) => {
            let entry = |(key, item): (&Arc<str>, &Value)| {
                (Arc::clone(key), if key == name { with_unknown(item, rest) } else { item.clone() })
            };
            Value::map(map.iter().map(entry))
        }
        (Value::List(items), Segment::Index(index)) => {
            let item = |(position, item): (usize, &Value)| {
                if position == *index { with_unknown(item, rest) } else { item.clone() }
            };
            Value::list(items.iter().enumerate().map(item))
        }
        _ => value.clone(),
    }
}

#[cfg(test)]
mod tests;
