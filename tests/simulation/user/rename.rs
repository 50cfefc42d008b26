//! Users who rename Resources, and move instances into and out of families.

use purlin::model::{Address, InstanceKey, Record, Stem};
use serde_json::{Value, json};

use super::references::{SAME_INDEX, references, renamed};
use super::rekey::keys;
use super::{Kubectl, NAMES, User, delete, index, is_family, name};
use crate::judge::{Judge, claimed_addresses, has_instance, is_desired};

const MOVED_FROM: &str = "purlin.dev/moved-from";

/// What remains to be done for another name of an object.
pub(super) enum Unfinished {
    /// Create the new Resource, whose old one was deleted before.
    Claim(Rename),
    /// Delete the old Resource, or its instance.
    Leave(Rename),
}

pub(super) struct Rename {
    from: Address,
    to: String,
    spec: Value,
}

impl User {
    /// Gives an object another name: creates a Resource that claims it, and removes its old one before that, after it, or
    /// later. What referenced it references the new one, if that is possible.
    pub(super) fn rename(&mut self, kubectl: &mut dyn Kubectl, judge: &Judge) {
        let old = self.name();
        let Some(rename) = kubectl.get(&old).and_then(|resource| self.some_rename(kubectl, &old, &resource["spec"]))
        else {
            return self.change_one(kubectl, judge);
        };
        match self.random.below(4) {
            0 => {
                rename.leave(self, kubectl, judge);
                rename.claim(self, kubectl, judge);
            }
            1 => {
                rename.leave(self, kubectl, judge);
                self.unfinished.push(Unfinished::Claim(rename));
            }
            2 => {
                rename.claim(self, kubectl, judge);
                self.unfinished.push(Unfinished::Leave(rename));
            }
            _ => {
                rename.claim(self, kubectl, judge);
                rename.leave(self, kubectl, judge);
            }
        }
    }

    /// A new name for the object of a Resource. `None` if there is no free one.
    fn some_rename(&mut self, kubectl: &dyn Kubectl, old: &str, spec: &Value) -> Option<Rename> {
        let was_family = is_family(old);
        let changes_kind = self.random.chance(250);
        let last = spec["count"].as_u64().and_then(|count| count.checked_sub(1));
        let key = match last.filter(|_| was_family && changes_kind) {
            Some(last) => InstanceKey::Index(last),
            None if was_family && changes_kind => return None,
            None => InstanceKey::None,
        };
        let becomes_family = was_family != changes_kind;
        let above = references(spec).iter().map(|name| index(name) + 1).max().unwrap_or_default();
        let fits = |name: &String| is_family(name) == becomes_family && index(name) >= above;
        let free: Vec<String> = (0..NAMES).map(name).filter(|name| fits(name) && kubectl.get(name).is_none()).collect();
        if free.is_empty() {
            return None;
        }
        let to = self.random.pick(&free).clone();
        let mut spec = spec.clone();
        spec.as_object_mut().expect("a spec").remove("moved");
        if changes_kind {
            spec["count"] = if was_family { Value::Null } else { json!(1 + self.random.below(2)) };
            if let (Some(last), Some(value)) = (last, spec["config"]["value"].as_str()) {
                spec["config"]["value"] = json!(value.replace(SAME_INDEX, &last.to_string()));
            }
        }
        if self.random.chance(200) {
            self.alter(&to, &mut spec);
        }
        Some(Rename { from: Stem::from(old).instance(key), to, spec })
    }

    /// Does what remains to be done for one rename.
    pub(super) fn finish_rename(&mut self, kubectl: &mut dyn Kubectl, judge: &Judge) {
        match self.unfinished.pop() {
            Some(Unfinished::Claim(rename)) if kubectl.get(&rename.to).is_none() => rename.claim(self, kubectl, judge),
            Some(Unfinished::Leave(rename)) => rename.leave(self, kubectl, judge),
            Some(Unfinished::Claim(_)) | None => {}
        }
    }
}

impl Rename {
    fn claim(&self, user: &mut User, kubectl: &mut dyn Kubectl, judge: &Judge) {
        let (old, new) = (&**self.from.name(), &self.to);
        user.apply(kubectl, judge, new, &self.spec, &json!({ MOVED_FROM: self.from.to_string() }));
        for name in kubectl.names() {
            let Some(other) = kubectl.get(&name).filter(|other| references(&other["spec"]).contains(old)) else {
                continue;
            };
            if index(&name) > index(new) && user.random.chance(800) {
                user.apply(kubectl, judge, &name, &renamed(&other["spec"], &self.from, new), &claim_of(&other));
            }
        }
    }

    fn leave(&self, user: &mut User, kubectl: &mut dyn Kubectl, judge: &Judge) {
        let name = &**self.from.name();
        let InstanceKey::Index(count) = self.from.key else { return delete(kubectl, judge, name) };
        // The instances may have other keys by now.
        if let Some(old) = kubectl.get(name).filter(|old| old["spec"]["forEach"].is_null()) {
            let mut spec = old["spec"].clone();
            spec["count"] = json!(count);
            user.apply(kubectl, judge, name, &spec, &claim_of(&old));
        }
    }
}

/// The annotations with which a Resource keeps its claim.
pub(super) fn claim_of(resource: &Value) -> Value {
    match &resource["metadata"]["annotations"][MOVED_FROM] {
        Value::Null => json!({}),
        claim => json!({ MOVED_FROM: claim }),
    }
}

/// The claim of a Resource, unless it cannot be fulfilled: the other Resource stays, a third one claims the same, or the
/// Resource has an object that did not come from there. A user who reads that a move is blocked removes the claim, as the hint
/// says. `all` are the Resources of the namespace.
pub(super) fn healed_claim(
    kubectl: &dyn Kubectl,
    all: &[(String, Value)],
    (name, resource): &(String, Value),
) -> Value {
    let stays = |claimed: &Address| {
        let is_kept = |resource: &Value| {
            has_instance(resource, &claimed.key) || (claimed.key == InstanceKey::None && is_desired(resource))
        };
        all.iter().any(|(other, resource)| **other == **claimed.name() && is_kept(resource))
    };
    let is_claimed_twice = |claimed: &Address| {
        let claims = |resource: &Value| claimed_addresses(resource).any(|other| other.name() == claimed.name());
        all.iter().filter(|(_, other)| claims(other)).count() > 1
    };
    let is_blocked = |claimed: &Address| {
        let concerned = all.iter().filter(|(other, _)| other == name || **other == **claimed.name());
        concerned.map(|(_, resource)| resource).any(is_move_blocked)
    };
    let own = kubectl.records(name);
    let size = if is_family(name) { keys(&resource["spec"]).len() } else { 1 };
    let is_complete = !own.is_empty() && size <= own.len();
    let can_move = |claimed: Address| {
        let came_from_there = |record: &Record| record.moved_from.iter().any(|from| from.name() == claimed.name());
        own.iter().all(came_from_there)
            && (is_complete || (!stays(&claimed) && !is_claimed_twice(&claimed) && !is_blocked(&claimed)))
    };
    if claimed_addresses(resource).all(can_move) { claim_of(resource) } else { json!({}) }
}

pub(super) fn is_move_blocked(resource: &Value) -> bool {
    let conditions = resource["status"]["conditions"].as_array();
    conditions.is_some_and(|all| all.iter().any(|condition| condition["reason"] == "MoveBlocked"))
}
