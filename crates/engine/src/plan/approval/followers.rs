//! The changes that wait although they are approved or need no approval, because they belong to one that waits.
//!
//! What depends on a change that waits was planned with its result. An object that waits keeps what it uses, so that this
//! cannot be replaced before; and what depends on that waits too. Without the latter, it would be planned with an object
//! that is about to go, and its approval would seem to be used up.

use std::collections::BTreeMap;

use super::{Guarded, Offer, OfferState};
use crate::plan::{ObjectBlock, Plan};
use model::{Action, Address, Change, Reason, Recorded, ReplaceOrder, Stem};

/// Why a change waits for another one.
#[derive(Clone, Copy)]
struct Cause<'a> {
    /// The object whose change has no approval.
    first: &'a Address,
    relation: Relation<'a>,
}

/// How an object that waits is connected with the one whose change has no approval.
#[derive(Clone, Copy)]
enum Relation<'a> {
    /// It depends on it.
    Dependent,
    /// It must stay for this object, which uses it and waits.
    UsedBy(&'a Address),
    /// It depends on this object, which must stay.
    OnKept(&'a Address),
}

impl<'a> Cause<'a> {
    /// The cause of what depends on an object with this cause.
    fn of_dependent(self, address: &'a Address) -> Self {
        let relation = match self.relation {
            Relation::UsedBy(_) => Relation::OnKept(address),
            other => other,
        };
        Self { relation, ..self }
    }

    fn message(self, what: &str) -> String {
        let first = self.first;
        match self.relation {
            Relation::Dependent => format!("depends on `{first}`, whose change {what}"),
            Relation::UsedBy(user) if user == first => format!("must stay for `{first}`, whose change {what}"),
            Relation::UsedBy(user) => format!("must stay for `{user}`, which waits for `{first}`, whose change {what}"),
            Relation::OnKept(kept) => {
                format!("depends on `{kept}`, which must stay because of `{first}`, whose change {what}")
            }
        }
    }
}

/// The changes of current objects.
struct Changes<'a> {
    by_address: BTreeMap<&'a Address, &'a Change>,
    by_stem: BTreeMap<&'a Stem, Vec<&'a Address>>,
}

impl<'a> Changes<'a> {
    fn of(plan: &'a Plan) -> Self {
        let mut changes = Self { by_address: BTreeMap::new(), by_stem: BTreeMap::new() };
        for change in plan.current_changes() {
            changes.by_address.insert(&change.address, change);
            changes.by_stem.entry(&change.address.stem).or_default().push(&change.address);
        }
        changes
    }

    /// The objects of a dependency: one, or all instances of a family.
    fn targets(&self, used: &Address) -> Vec<&'a Address> {
        match self.by_address.get_key_value(used) {
            Some((address, _)) => vec![*address],
            None => self.by_stem.get(&used.stem).cloned().unwrap_or_default(),
        }
    }

    /// What an object uses, or will use, of what is destroyed before its successor exists.
    fn replaced_below(&self, plan: &Plan, recorded: &Recorded, address: &Address) -> Vec<&'a Address> {
        if !self.by_address.get(address).is_some_and(|change| change.is_change()) {
            return Vec::new();
        }
        let planned = plan.dependencies_of(address).iter();
        let current = recorded.get(address).and_then(|stored| stored.record.current.as_ref());
        let used = planned.chain(current.into_iter().flat_map(|object| object.dependencies.iter()));
        let targets = used.flat_map(|used| self.targets(used));
        targets.filter(|target| is_destroyed_first(self.by_address[target])).collect()
    }
}

fn is_destroyed_first(change: &Change) -> bool {
    change.action == Action::Replace && change.order != Some(ReplaceOrder::CreateFirst)
}

/// Why changes beside those that wait for an approval must wait.
pub fn blocks(guarded: &Guarded, plan: &Plan, recorded: &Recorded, offer: &Offer) -> Vec<(Address, ObjectBlock)> {
    let what = match offer.state {
        OfferState::Rejected(_) => "was rejected",
        OfferState::Open | OfferState::Deleted => "waits for an approval",
    };
    let changes = Changes::of(plan);
    let mut blocks = Vec::new();
    for (address, cause) in causes(guarded, plan, recorded, &changes) {
        let action = changes.by_address.get(address).map(|change| change.action);
        let is_held = matches!(action, Some(Action::Create | Action::Update | Action::Replace));
        if is_held && address != cause.first {
            blocks.push((address.clone(), ObjectBlock { reason: Reason::Waiting, message: cause.message(what) }));
        }
    }
    blocks
}

/// Every object that waits, and why.
fn causes<'a>(
    guarded: &'a Guarded,
    plan: &'a Plan,
    recorded: &Recorded,
    changes: &Changes<'a>,
) -> BTreeMap<&'a Address, Cause<'a>> {
    let mut dependents: BTreeMap<&Address, Vec<&Address>> = BTreeMap::new();
    for (address, dependencies) in plan.dependencies() {
        for used in dependencies.iter().flat_map(|used| changes.targets(used)) {
            dependents.entry(used).or_default().push(address);
        }
    }
    let first = guarded.waiting().map(|change| &change.address);
    let mut causes: BTreeMap<&Address, Cause<'_>> =
        first.map(|address| (address, Cause { first: address, relation: Relation::Dependent })).collect();
    let mut open: Vec<&Address> = causes.keys().copied().collect();
    while let Some(address) = open.pop() {
        let cause = causes[address];
        let dependent = cause.of_dependent(address);
        let used = Cause { relation: Relation::UsedBy(address), ..cause };
        let later = dependents.get(address).into_iter().flatten().map(|other| (*other, dependent));
        let below = changes.replaced_below(plan, recorded, address).into_iter().map(|other| (other, used));
        for (other, cause) in later.chain(below) {
            if !causes.contains_key(other) {
                causes.insert(other, cause);
                open.push(other);
            }
        }
    }
    causes
}
