//! `lifecycle.replaceTriggeredBy`: a change of another object replaces this one.
//!
//! A Resource or an instance triggers when it is created, updated or replaced, an attribute when its value changes. The
//! object's record holds fingerprints of the last state, so that a missed trigger (the replacement failed, or was
//! blocked or not selected) fires later. The fingerprint of an object is its revision, which drift and record-only
//! steps do not change. The fingerprint of an attribute is a salted digest of its value. A new entry does not fire,
//! unless this plan changes it.

use sha2::{Digest, Sha256};

use super::decision::Block;
use super::eval_scope::EvalScope;
use super::input::{Id, PlanInput};
use crate::load::expression::Scope;
use crate::load::lifecycle::replace_triggered_by_path;
use crate::load::{Instance, InstanceScope, Trigger};
use model::{Address, ChangeCause, Diagnostics, ObservedTrigger, RecordedObject, Revision, Triggers, Value};

/// Returns the objects of a reference with their revisions.
pub type Revisions<'a> = dyn Fn(&Address) -> Vec<(Address, Revision)> + 'a;

/// The cause if a trigger replaces the object `prior`. Fails if an entry cannot be evaluated.
pub(crate) fn fired(
    scope: &EvalScope<'_, '_>,
    id: Id,
    prior: &RecordedObject,
) -> Result<Option<ChangeCause>, Box<Block>> {
    let Some(instance) = scope.input.nodes[id].instance else { return Ok(None) };
    for (index, trigger) in instance.triggers.iter().enumerate() {
        let Some(target) = target(instance, index) else { continue };
        let entry = Entry { scope, instance, index, trigger, target, prior };
        let fired = if is_whole(trigger, target) { entry.whole() } else { entry.attribute()? };
        if let Some(because) = fired {
            return Ok(Some(because));
        }
    }
    Ok(None)
}

/// Checks that all attributes in the entries of a new object exist.
pub(crate) fn check_readable(scope: &EvalScope<'_, '_>, id: Id) -> Result<(), Box<Block>> {
    let Some(instance) = scope.input.nodes[id].instance else { return Ok(()) };
    for (index, trigger) in instance.triggers.iter().enumerate() {
        let Some(target) = target(instance, index) else { continue };
        if !is_whole(trigger, target) && !scope.input.desired_targets(target).is_empty() {
            read(scope, instance, index)?;
        }
    }
    Ok(())
}

/// The triggering objects that have not changed yet although they may have to: their last operation is unresolved or
/// failed. A new object must wait for them, or it might be replaced immediately.
pub(crate) fn unresolved(scope: &EvalScope<'_, '_>, id: Id) -> Vec<Id> {
    let Some(instance) = scope.input.nodes[id].instance else { return Vec::new() };
    targets(instance)
        .flat_map(|target| scope.input.desired_targets(target))
        .filter(|id| scope.is_unresolved(*id) || scope.input.options.blocked.contains_key(scope.input.address(*id)))
        .collect()
}

/// The planned value of an entry. Errors have the path of the entry.
fn read(scope: &EvalScope<'_, '_>, instance: &Instance, index: usize) -> Result<Value, Box<Block>> {
    instance.triggers[index].path.evaluate(&InstanceScope { instance, others: scope }).map_err(|problems| {
        let mut diagnostics = problems;
        for problem in &mut diagnostics {
            problem.address = Some(instance.address.clone());
            problem.path = Some(replace_triggered_by_path(index));
        }
        Box::new(Block { diagnostics, waiting_for: Vec::new(), held: false, frozen: false })
    })
}

/// The fingerprints to record, for dependencies with the given values and revisions.
pub(crate) fn fingerprints(instance: &Instance, scope: &dyn Scope, revisions: &Revisions<'_>, salt: u64) -> Triggers {
    let entries = instance.triggers.iter().enumerate().filter_map(|(index, trigger)| {
        let target = target(instance, index)?;
        let targets: Vec<(Address, u64)> = if is_whole(trigger, target) {
            revisions(target)
                .into_iter()
                .map(|(address, revision)| (address, revision_fingerprint(salt, revision)))
                .collect()
        } else {
            let value = trigger
                .path
                .evaluate(&InstanceScope { instance, others: scope })
                .ok()
                .filter(|value| !value.has_unknown());
            value.map(|value| (target.clone(), value_fingerprint(salt, &value))).into_iter().collect()
        };
        Some(ObservedTrigger { entry: trigger.text.clone(), targets })
    });
    Triggers { salt, entries: entries.collect() }
}

/// The fingerprints during planning. Unknown values have none.
pub(crate) fn planned_fingerprints(scope: &EvalScope<'_, '_>, instance: &Instance, salt: u64) -> Triggers {
    fingerprints(instance, scope, &|target| revisions(scope.input, target), salt)
}

fn revisions(input: &PlanInput<'_>, target: &Address) -> Vec<(Address, Revision)> {
    input
        .desired_targets(target)
        .into_iter()
        .filter_map(|id| Some((input.address(id).clone(), input.nodes[id].current()?.revision)))
        .collect()
}

/// The targets of the entries of an instance.
pub fn targets(instance: &Instance) -> impl Iterator<Item = &Address> {
    (0..instance.triggers.len()).filter_map(|index| target(instance, index))
}

fn target(instance: &Instance, index: usize) -> Option<&Address> {
    let at = replace_triggered_by_path(index);
    instance.references.iter().find(|reference| reference.at == at).map(|reference| &reference.target)
}

/// Whether the path ends at the object. The key of an instance is part of the address.
fn is_whole(trigger: &Trigger, target: &Address) -> bool {
    trigger.depth <= usize::from(target.is_instance())
}

/// One entry of an existing object.
struct Entry<'e, 's, 'a> {
    scope: &'e EvalScope<'s, 'a>,
    instance: &'e Instance,
    index: usize,
    trigger: &'e Trigger,
    target: &'e Address,
    prior: &'e RecordedObject,
}

impl Entry<'_, '_, '_> {
    fn evaluate(&self, scope: &dyn Scope) -> Result<Value, Diagnostics> {
        self.trigger.path.evaluate(&InstanceScope { instance: self.instance, others: scope })
    }

    /// The recorded salt and fingerprint. `None` for a new entry.
    fn recorded(&self) -> Option<(u64, &ObservedTrigger)> {
        let triggers = self.prior.triggers.as_deref()?;
        let entry = triggers.entries.iter().find(|seen| seen.entry == self.trigger.text)?;
        Some((triggers.salt, entry))
    }

    fn whole(&self) -> Option<ChangeCause> {
        let input = self.scope.input;
        input.desired_targets(self.target).into_iter().find_map(|id| {
            let address = input.address(id);
            if self.scope.decision(id).is_some_and(super::decision::Decision::changes_object) {
                return Some(ChangeCause::Triggered { by: address.to_string(), has_changed: false });
            }
            let (salt, recorded) = self.recorded()?;
            let now = revision_fingerprint(salt, input.nodes[id].current()?.revision);
            let last = recorded.targets.iter().find(|(known, _)| known == address).map(|(_, last)| *last);
            (last != Some(now)).then(|| ChangeCause::Triggered { by: address.to_string(), has_changed: true })
        })
    }

    fn attribute(&self) -> Result<Option<ChangeCause>, Box<Block>> {
        let input = self.scope.input;
        if input.desired_targets(self.target).is_empty() {
            return Ok(None);
        }
        let now = read(self.scope, self.instance, self.index)?;
        let changed = match self.recorded() {
            _ if now.has_unknown() => true,
            Some((salt, recorded)) => {
                recorded.targets.first().map(|(_, last)| *last) != Some(value_fingerprint(salt, &now))
            }
            None => {
                let before = self.evaluate(&RecordedScope(input)).ok();
                before.is_none_or(|before| !before.equals_unmarked(&now))
            }
        };
        Ok(changed.then(|| ChangeCause::Triggered { by: self.trigger.text.to_string(), has_changed: false }))
    }
}

/// A scope with the recorded values of other objects.
struct RecordedScope<'s, 'a>(&'s PlanInput<'a>);

impl Scope for RecordedScope<'_, '_> {
    fn object(&self, address: &Address) -> Option<Value> {
        let id = self.0.find(address)?;
        self.0.nodes[id].current().map(|object| object.value.clone())
    }

    fn namespace(&self) -> Value {
        self.0.options.namespace_value.clone()
    }
}

fn revision_fingerprint(salt: u64, revision: Revision) -> u64 {
    let mut hasher = Sha256::new();
    hasher.update(b"revision");
    hasher.update(salt.to_le_bytes());
    hasher.update(revision.epoch.to_le_bytes());
    hasher.update(revision.operation.to_le_bytes());
    first_bytes(hasher)
}

/// Salted, so that values cannot be guessed from it. Sensitive marks are ignored.
fn value_fingerprint(salt: u64, value: &Value) -> u64 {
    let mut hasher = Sha256::new();
    hasher.update(b"value");
    hasher.update(salt.to_le_bytes());
    hasher.update(value.to_json().to_string());
    first_bytes(hasher)
}

fn first_bytes(hasher: Sha256) -> u64 {
    let digest: [u8; 32] = hasher.finalize().into();
    let (first, _) = digest.split_first_chunk().expect("a digest has 32 bytes");
    u64::from_le_bytes(*first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fingerprint_depends_on_the_value_and_not_on_its_marks() {
        let (one, two) = (Value::from("one"), Value::from("two"));
        assert_ne!(value_fingerprint(1, &one), value_fingerprint(1, &two));
        assert_ne!(value_fingerprint(1, &one), value_fingerprint(2, &one), "another salt, another fingerprint");
        assert_eq!(value_fingerprint(1, &one), value_fingerprint(1, &one.clone().into_sensitive()));
        assert_ne!(value_fingerprint(1, &Value::from(1)), value_fingerprint(1, &Value::from("1")));
    }

    #[test]
    fn revisions_of_different_operations_have_different_fingerprints() {
        let [first, second] = ["a", "b"].map(|operation| revision_fingerprint(7, Revision::new(1, operation)));
        assert_ne!(first, second);
    }
}
