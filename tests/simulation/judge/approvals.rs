//! Judges whether each change that needs an approval has one.

use std::collections::{BTreeMap, BTreeSet};

use purlin::model::{Record, RecordedObject};
use purlin::process::lock;
use purlin::store::secrets::record_name;
use serde_json::Value;
use testkit::scripted::{Effect, EffectKind};
use tokio::time::Instant;

use super::{Call, Inside, Intent, Judge, Place, Running, has_instance};

/// What users have approved, and what needs an approval, as the judge knows it.
#[derive(Default)]
pub(super) struct Approved {
    /// Namespace, address and action of each approved change, and the values that it shows.
    changes: BTreeMap<(Place, String), Vec<Value>>,
    /// The kinds of changes that need an approval in a whole namespace.
    of_namespace: BTreeMap<String, Vec<&'static str>>,
    /// The namespaces in which all destroys are approved.
    destroys: BTreeSet<String>,
    /// Values that an author has put into other objects after an approval.
    unseen: BTreeSet<String>,
}

impl Approved {
    /// Adds the changes that a Plan covers, as it shows them.
    fn add(&mut self, plan: &Value) {
        let status = &plan["status"];
        let shown = status["changes"].as_array().map(Vec::as_slice).unwrap_or_default();
        let covered = status["approvals"][0]["changes"].as_array().map(Vec::as_slice).unwrap_or_default();
        for change in covered {
            let key = |name: &str| change[name].as_str().unwrap_or_default().to_owned();
            let same = |one: &&Value| one["address"] == change["address"] && one["deposedKey"].is_null();
            let after = shown.iter().find(same).map(|one| one["after"].clone()).unwrap_or_default();
            let namespace = plan["metadata"]["namespace"].as_str().unwrap_or_default().to_owned();
            self.changes.entry(((namespace, key("address")), key("action"))).or_default().push(after);
        }
    }

    /// The values of the approved changes of an object with one of these actions.
    fn values(&self, place: &Place, actions: &[&str]) -> Vec<Value> {
        let of_action = |action: &&str| self.changes.get(&(place.clone(), (*action).to_owned()));
        actions.iter().filter_map(of_action).flatten().cloned().collect()
    }

    /// Whether an object has the values that a Plan shows. One that was unknown can be no literal of its Resource, and not what
    /// an author has put into another object since: that would be another change.
    fn is_as_shown(&self, object: &Value, shown: &Value, resources: &[(&Instant, &Value)]) -> bool {
        let is_literal = |name: &str| resources.iter().any(|(_, one)| one["spec"]["config"][name] == object[name]);
        let is_unseen = |name: &str| object[name].as_str().is_some_and(|value| self.unseen.contains(value));
        ["value", "force"].iter().all(|name| match shown[*name] == "(known after apply)" {
            true => !is_literal(name) && !is_unseen(name),
            false => object[*name] == shown[*name],
        })
    }
}

impl Judge {
    /// All changes of these kinds need an approval in a namespace.
    pub(crate) fn namespace_requires(&self, namespace: &str, kinds: &[&'static str]) {
        lock(&self.inside).approved.of_namespace.insert(namespace.to_owned(), kinds.to_vec());
    }

    pub(crate) fn approve_destroys(&self, namespace: &str) {
        lock(&self.inside).approved.destroys.insert(namespace.to_owned());
    }

    /// An author uses a value that no Plan has shown yet.
    pub(crate) fn unseen(&self, value: &str) {
        lock(&self.inside).approved.unseen.insert(value.to_owned());
    }

    /// A user approves what a Plan shows.
    pub(crate) fn approved(&self, plan: &Value) {
        lock(&self.inside).approved.add(plan);
    }

    /// Objects to a call that needs an approval and has none.
    pub(super) fn check_approval(&self, call: &Call) {
        let missing = lock(&self.inside).missing_approval(call, None);
        if let Some(why) = missing {
            self.object(&format!("{} calls {:?} of {}: {why}", call.replica, call.kind, call.address));
        }
    }

    /// Objects to an effect that is not what was approved.
    pub(super) fn check_effect(&self, running: &Running, effect: &Effect) {
        let missing = {
            let inside = lock(&self.inside);
            let value = effect.value.to_public_json();
            inside.calls.get(&running.number).and_then(|call| inside.missing_approval(call, Some(&value)))
        };
        if let Some(why) = missing {
            self.object(&format!("{} {:?}: {why}", effect.id, effect.kind));
        }
    }
}

impl Inside {
    /// Why a change must not be made. `value`: what the object has become, if known.
    fn missing_approval(&self, call: &Call, value: Option<&Value>) -> Option<String> {
        let address = call.parsed();
        let record = self.records.as_ref()?(&call.namespace, &address)?;
        let secret = record_name(&call.namespace, &address);
        if self.spoiled.contains(&secret) || self.restored.contains(&secret) {
            return None;
        }
        let intents = self.intents_of(call, &secret).into_iter();
        let missing: Option<Vec<String>> =
            intents.map(|intent| self.missing_for(intent, call, &record, value)).collect();
        missing?.pop()
    }

    /// Why a change must not be made for an intent.
    fn missing_for(&self, intent: &Intent, call: &Call, record: &Record, value: Option<&Value>) -> Option<String> {
        let place = (call.namespace.to_string(), call.parsed().name().to_string());
        let versions = self.known.get(&intent.replica)?.get(&place)?;
        // The replica may or may not have processed what it received at the time of the intent.
        let known = versions.iter().filter(|(at, _)| *at <= intent.issued);
        let known: Vec<(&Instant, &Value)> =
            known.filter_map(|(at, resource)| Some((at, resource.as_deref()?))).collect();
        let latest = known.iter().rposition(|(at, _)| **at < intent.issued)?;
        let newest = known[latest].1;
        let actions = actions(call, record, newest)?;
        let is_second_half = call.kind == EffectKind::Created && record.replacement_pending;
        // It needs the approval of the replacement, or one of its own if it is another object.
        let kinds_of = if is_second_half { &["Replace"][..] } else { actions };
        let requires = |resource: &Value| {
            let kinds = resource["spec"]["approval"]["requireFor"].as_array().map(Vec::as_slice).unwrap_or_default();
            need_approval(kinds_of, &|kind| kinds.iter().any(|own| own == kind))
        };
        // A destructive step starts only for the newest desired state; another one may have been planned before it.
        let is_required = match call.kind {
            EffectKind::Destroyed if self.approved.destroys.contains(&*call.namespace) => false,
            EffectKind::Destroyed => known[latest..].iter().all(|(_, resource)| requires(resource)),
            _ => known.iter().all(|(_, resource)| requires(resource)),
        };
        let kinds = self.approved.of_namespace.get(&*call.namespace).map(Vec::as_slice).unwrap_or_default();
        let of_namespace = need_approval(kinds_of, &|kind| kinds.contains(&kind));
        if !is_required && !of_namespace {
            return None;
        }
        let approved = self.approved.values(&(call.namespace.to_string(), call.address.to_string()), actions);
        match value {
            _ if approved.is_empty() => Some(format!("no user has approved {}", actions[0])),
            Some(value)
                if call.kind != EffectKind::Destroyed
                    && !approved.iter().any(|one| self.approved.is_as_shown(value, one, &known)) =>
            {
                Some(format!("no user has approved this {}: {value}", actions[0]))
            }
            _ => None,
        }
    }
}

/// Whether each of these actions needs an approval. `requires`: whether an approval is required for a kind of change. A
/// replacement needs that of destroys too.
fn need_approval(actions: &[&str], requires: &dyn Fn(&str) -> bool) -> bool {
    actions.iter().all(|action| requires(action) || (*action == "Replace" && requires("Destroy")))
}

/// The actions that a call can belong to. `None` if it needs no approval: it completes a change that has begun.
fn actions(call: &Call, record: &Record, resource: &Value) -> Option<&'static [&'static str]> {
    let is = |object: &RecordedObject| object.id() == call.id.as_deref();
    match call.kind {
        EffectKind::Created if record.deposed.is_empty() && !record.replacement_pending => Some(&["Create"]),
        EffectKind::Created => Some(&["Replace", "Create"]),
        EffectKind::Destroyed if record.deposed.values().any(|object| is(object)) => None,
        EffectKind::Destroyed if has_instance(resource, &call.parsed().key) => Some(&["Replace"]),
        EffectKind::Destroyed => Some(&["Destroy"]),
        EffectKind::Updated => Some(&["Update"]),
        EffectKind::Removed => None,
    }
}
