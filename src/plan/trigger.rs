//! `lifecycle.replaceTriggeredBy`: what happens to another object replaces this one.
//!
//! A whole Resource, or an instance, triggers when it is created, updated or replaced; an attribute when its value
//! changes. What was seen of them last is recorded with the object, as fingerprints, so that a trigger that was missed
//! (the replacement failed, was held, or not selected) still fires. Of a whole object that is its revision, which a
//! change of the world outside or a record-only step leaves alone; of an attribute a salted digest of its value. What is
//! seen for the first time is recorded and does not fire, unless this very plan changes it.

use sha2::{Digest, Sha256};

use super::draft::Block;
use super::scene::{Id, Scene};
use super::seen::Seen;
use crate::load::expression::Scope;
use crate::load::lifecycle::replace_triggered_by_path;
use crate::load::{Instance, Own, Trigger};
use crate::model::{Address, Diagnostics, RecordedObject, Revision, SeenTrigger, Triggers, Value};

/// The objects that a reference means, with their revisions.
pub type Revisions<'a> = dyn Fn(&Address) -> Vec<(Address, Revision)> + 'a;

/// Whether the plan so far replaces an object that stands as `prior`, and because of what. The error is that of an
/// entry that cannot be evaluated.
pub(super) fn fired(seen: &Seen<'_, '_>, id: Id, prior: &RecordedObject) -> Result<Option<String>, Box<Block>> {
    let Some(instance) = seen.scene.subjects[id].instance else { return Ok(None) };
    for (index, trigger) in instance.triggers.iter().enumerate() {
        let Some(target) = target(instance, index) else { continue };
        let entry = Entry { seen, instance, index, trigger, target, prior };
        let fired = if is_whole(trigger, target) { entry.whole() } else { entry.attribute()? };
        if let Some(because) = fired {
            return Ok(Some(because));
        }
    }
    Ok(None)
}

/// Whether every attribute that an object is triggered by is there, for one that is new and that nothing replaces yet.
pub(super) fn readable(seen: &Seen<'_, '_>, id: Id) -> Result<(), Box<Block>> {
    let Some(instance) = seen.scene.subjects[id].instance else { return Ok(()) };
    for (index, trigger) in instance.triggers.iter().enumerate() {
        let Some(target) = target(instance, index) else { continue };
        if !is_whole(trigger, target) && !seen.scene.wanted_of(target).is_empty() {
            read(seen, instance, index)?;
        }
    }
    Ok(())
}

/// The objects that trigger this one and whose last operation is still to be settled. A new object would be made for what
/// they were, and be replaced once that is known.
pub(super) fn unsettled(seen: &Seen<'_, '_>, id: Id) -> Vec<Id> {
    let Some(instance) = seen.scene.subjects[id].instance else { return Vec::new() };
    targets(instance).flat_map(|target| seen.unsettled(target)).collect()
}

/// The value that an entry names, as it is planned. The error is told at the entry.
fn read(seen: &Seen<'_, '_>, instance: &Instance, index: usize) -> Result<Value, Box<Block>> {
    instance.triggers[index].path.evaluate(&Own { instance, others: seen }).map_err(|problems| {
        let mut diagnostics = problems;
        for problem in &mut diagnostics {
            problem.address = Some(instance.address.clone());
            problem.path = Some(replace_triggered_by_path(index));
            problem.source = problem.source.take().or_else(|| instance.source.clone());
        }
        Box::new(Block { diagnostics, waiting_for: Vec::new(), held: false, frozen: false })
    })
}

/// What is to be recorded as seen by an object whose dependencies are as `scope` and `revisions` tell.
pub(super) fn seen_now(instance: &Instance, scope: &dyn Scope, revisions: &Revisions<'_>, salt: u64) -> Triggers {
    let entries = instance.triggers.iter().enumerate().filter_map(|(index, trigger)| {
        let target = target(instance, index)?;
        let targets: Vec<(Address, u64)> = if is_whole(trigger, target) {
            let all = revisions(target).into_iter();
            all.map(|(address, revision)| (address, of_revision(salt, revision))).collect()
        } else {
            let value =
                trigger.path.evaluate(&Own { instance, others: scope }).ok().filter(|value| !value.has_unknown());
            value.map(|value| (target.clone(), of_value(salt, &value))).into_iter().collect()
        };
        Some(SeenTrigger { entry: trigger.text.clone(), targets })
    });
    Triggers { salt, seen: entries.collect() }
}

/// The same for a plan, where changes are still to come: of what changes, nothing is seen yet.
pub(super) fn seen_in_plan(seen: &Seen<'_, '_>, instance: &Instance, salt: u64) -> Triggers {
    seen_now(instance, seen, &|target| revisions(seen.scene, target), salt)
}

/// The recorded objects that a reference means.
fn revisions(scene: &Scene<'_>, target: &Address) -> Vec<(Address, Revision)> {
    let recorded = |id: Id| Some((scene.address(id).clone(), scene.subjects[id].current()?.revision));
    scene.wanted_of(target).into_iter().filter_map(recorded).collect()
}

/// What the entries of an instance refer to.
pub fn targets(instance: &Instance) -> impl Iterator<Item = &Address> {
    (0..instance.triggers.len()).filter_map(|index| target(instance, index))
}

/// What the entry of that position refers to.
fn target(instance: &Instance, index: usize) -> Option<&Address> {
    let at = replace_triggered_by_path(index);
    instance.references.iter().find(|reference| reference.at == at).map(|reference| &reference.target)
}

/// Whether nothing of the path is left behind the object: a key of a family belongs to the address.
fn is_whole(trigger: &Trigger, target: &Address) -> bool {
    trigger.depth <= usize::from(target.is_instance())
}

/// One entry of an object that exists.
struct Entry<'e, 's, 'a> {
    seen: &'e Seen<'s, 'a>,
    instance: &'e Instance,
    index: usize,
    trigger: &'e Trigger,
    target: &'e Address,
    prior: &'e RecordedObject,
}

impl Entry<'_, '_, '_> {
    fn evaluate(&self, scope: &dyn Scope) -> Result<Value, Diagnostics> {
        self.trigger.path.evaluate(&Own { instance: self.instance, others: scope })
    }

    /// What was seen last, if the entry is not new.
    fn recorded(&self) -> Option<(u64, &SeenTrigger)> {
        let triggers = self.prior.triggers.as_deref()?;
        let seen = triggers.seen.iter().find(|seen| seen.entry == self.trigger.text)?;
        Some((triggers.salt, seen))
    }

    fn whole(&self) -> Option<String> {
        let scene = self.seen.scene;
        scene.wanted_of(self.target).into_iter().find_map(|id| {
            let address = scene.address(id);
            if self.seen.draft(id).is_some_and(super::draft::Draft::makes) {
                return Some(format!("triggered by `{address}`"));
            }
            let (salt, recorded) = self.recorded()?;
            let now = of_revision(salt, scene.subjects[id].current()?.revision);
            let last = recorded.targets.iter().find(|(known, _)| known == address).map(|(_, last)| *last);
            (last != Some(now)).then(|| format!("triggered by `{address}`, which has changed"))
        })
    }

    fn attribute(&self) -> Result<Option<String>, Box<Block>> {
        let scene = self.seen.scene;
        if scene.wanted_of(self.target).is_empty() {
            return Ok(None);
        }
        let now = read(self.seen, self.instance, self.index)?;
        let changed = match self.recorded() {
            _ if now.has_unknown() => true,
            Some((salt, recorded)) => recorded.targets.first().map(|(_, last)| *last) != Some(of_value(salt, &now)),
            None => {
                let before = self.evaluate(&Remembered(scene)).ok();
                before.is_none_or(|before| !before.same(&now))
            }
        };
        let because = || format!("triggered by `{}`", self.trigger.text);
        Ok(changed.then(because))
    }
}

/// Other objects as they are recorded.
struct Remembered<'s, 'a>(&'s Scene<'a>);

impl Scope for Remembered<'_, '_> {
    fn object(&self, address: &Address) -> Option<Value> {
        let id = self.0.find(address)?;
        self.0.subjects[id].current().map(|object| object.value.clone())
    }

    fn namespace(&self) -> Value {
        self.0.options.namespace_value.clone()
    }
}

fn of_revision(salt: u64, revision: Revision) -> u64 {
    let mut hasher = Sha256::new();
    hasher.update(b"revision");
    hasher.update(salt.to_le_bytes());
    hasher.update(revision.epoch.to_le_bytes());
    hasher.update(revision.operation.to_le_bytes());
    first_bytes(hasher)
}

/// Salted, so that nobody who sees it can try values; a value and its sensitive form have the same.
fn of_value(salt: u64, value: &Value) -> u64 {
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
    fn a_fingerprint_tells_values_apart_and_not_their_marks() {
        let (one, two) = (Value::from("one"), Value::from("two"));
        assert_ne!(of_value(1, &one), of_value(1, &two));
        assert_ne!(of_value(1, &one), of_value(2, &one), "another salt, another fingerprint");
        assert_eq!(of_value(1, &one), of_value(1, &one.clone().into_sensitive()));
        assert_ne!(of_value(1, &Value::from(1)), of_value(1, &Value::from("1")));
    }

    #[test]
    fn a_revision_of_another_record_is_another_one() {
        let revision = |operation: &str| of_revision(7, Revision::new(1, operation));
        assert_ne!(revision("a"), revision("b"));
    }
}
