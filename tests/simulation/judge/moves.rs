//! Judges moves: where the object of a Resource came from, and which Resources claim an object.

use std::collections::BTreeSet;
use std::sync::Arc;

use purlin::model::{Address, InstanceKey, Record, Stem, Value as Plain};
use purlin::store::secrets::record_name;
use serde_json::Value;
use testkit::scripted::Effect;
use tokio::time::Instant;

use super::{Call, Inside, Intent, Place, Timeline, has_instance, is_desired, newest_at};

/// What a Resource says about a former address of an object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Claim {
    from: Address,
    /// The instance that has the object now, if the Resource says so.
    to: Option<InstanceKey>,
}

/// The addresses in the annotation `purlin.dev/moved-from`.
pub(crate) fn claimed_addresses(resource: &Value) -> impl Iterator<Item = Address> {
    let annotation = resource["metadata"]["annotations"]["purlin.dev/moved-from"].as_str();
    annotation.into_iter().flat_map(|all| all.split(',')).filter_map(|address| address.trim().parse().ok())
}

/// The claims in `spec.moved` and in the annotation. Users of this simulation write no chains.
fn claims_of(resource: &Value) -> impl Iterator<Item = Claim> {
    let entries = resource["spec"]["moved"].as_array().into_iter().flatten().filter_map(|entry| {
        let to = entry["to"].as_str().and_then(|key| format!("x{key}").parse::<Address>().ok());
        Some(Claim { from: entry["from"].as_str()?.parse().ok()?, to: to.map(|address| address.key) })
    });
    entries.chain(claimed_addresses(resource).map(|from| Claim { from, to: None }))
}

/// The addresses that a claim names for an instance with this key.
fn named(claim: &Claim, key: &InstanceKey) -> Vec<Address> {
    let at = |key: &InstanceKey| claim.from.stem.clone().instance(key.clone());
    match (&claim.to, &claim.from.key, key) {
        (Some(to), ..) if to == key => vec![claim.from.clone()],
        (None, InstanceKey::None, InstanceKey::Index(0)) => vec![at(key), at(&InstanceKey::None)],
        (None, InstanceKey::None, _) => vec![at(key)],
        (None, _, InstanceKey::None) => vec![claim.from.clone()],
        _ => Vec::new(),
    }
}

/// The key of the instance for which a Resource claims the object of an address. It may not exist, because the user made a
/// mistake.
fn claiming_key(resource: &Value, from: &Address) -> Option<InstanceKey> {
    let keys = [from.key.clone(), InstanceKey::None, InstanceKey::Index(0)];
    let said = || claims_of(resource).filter(|claim| claim.from == *from);
    let wanted = said().filter_map(|claim| claim.to);
    let gets = |key: &InstanceKey| {
        has_instance(resource, key) && claims_of(resource).any(|claim| named(&claim, key).contains(from))
    };
    let found = keys.into_iter().chain(wanted).find(gets);
    let mistaken = || said().find(|claim| claim.to.is_some() || claim.from.key != InstanceKey::None);
    found.or_else(|| mistaken().filter(|_| is_desired(resource)).map(|claim| claim.to.unwrap_or_default()))
}

impl Inside {
    /// Remembers what a version of a Resource claims.
    pub(super) fn remember_claims(&mut self, place: &Place, resource: &Value) {
        self.claims.entry(place.clone()).or_default().extend(claims_of(resource));
    }

    /// The addresses from which the object of an address may have come. It may be one of them, if it was moved there and back.
    fn earlier_addresses(&self, namespace: &str, address: &Address) -> BTreeSet<Address> {
        let mut all = BTreeSet::new();
        let mut open = vec![address.clone()];
        while let Some(next) = open.pop() {
            let entries = self.claims.get(&(namespace.to_owned(), next.name().to_string())).into_iter().flatten();
            let found: Vec<Address> = entries.flat_map(|claim| named(claim, &next.key)).collect();
            open.extend(found.into_iter().filter(|from| all.insert(from.clone())));
        }
        all
    }

    /// The ids of all objects that have existed at an address, or may have been moved there.
    pub(super) fn ids_at(&self, namespace: &str, address: &Address) -> BTreeSet<String> {
        let mut all = self.ids_moved_to(namespace, address);
        all.extend(self.ids_created_at(namespace, address));
        all
    }

    fn ids_moved_to(&self, namespace: &str, address: &Address) -> BTreeSet<String> {
        let earlier = self.earlier_addresses(namespace, address);
        earlier.iter().flat_map(|from| self.ids_created_at(namespace, from)).collect()
    }

    fn ids_created_at(&self, namespace: &str, address: &Address) -> BTreeSet<String> {
        self.created_at(namespace, address).collect()
    }

    /// The id in each state of the objects that were created at an address, in the order of the states.
    pub(super) fn created_at(&self, namespace: &str, address: &Address) -> impl DoubleEndedIterator<Item = String> {
        let timeline = self.truth.get(&(namespace.to_owned(), address.to_string()));
        let values = timeline.into_iter().flatten().filter_map(|(_, value)| value.as_ref());
        values.filter_map(|value| Some(value.get("id")?.as_str()?.to_owned()))
    }

    /// The values that the object of a Resource without instances may have had between two times.
    pub(super) fn values_between(&self, place: &Place, from: Instant, to: Instant) -> Vec<Option<Plain>> {
        let mut values = between(self.truth.get(place), from, to);
        let ids = self.ids_moved_to(&place.0, &Address::single(&*place.1));
        values.extend(ids.iter().flat_map(|id| between(self.objects.get(id), from, to)));
        values
    }

    /// The Resource that claims the object of an address, as a replica knew it when it wrote its intent. The object must
    /// not be destroyed then, unless its own Resource still has it.
    pub(super) fn claimant(&self, intent: &Intent, call: &Call, address: &Address) -> Option<String> {
        let known = self.known.get(&intent.replica)?;
        let own = (call.namespace.to_string(), address.name().to_string());
        let is_kept = |resource: &Value| has_instance(resource, &address.key);
        let newest_own = known.get(&own).and_then(|all| newest_at(all, intent.issued)).unwrap_or_default();
        if newest_own.iter().any(|(_, resource)| resource.as_deref().is_some_and(is_kept)) {
            return None;
        }
        let key = |resource: &Option<Arc<Value>>| claiming_key(resource.as_deref()?, address);
        // After the move, the claim has no effect.
        let has_moved = |name: &str, key: &InstanceKey| {
            let there = Stem::from(name).instance(key.clone());
            let record = self.records.as_ref().and_then(|look_up| look_up(&call.namespace, &there));
            let is_same =
                |from: &Address| from == address || (from.name() == address.name() && *name != **address.name());
            record.is_some_and(|record| record.moved_from.iter().any(is_same))
        };
        let claims = |(namespace, name): &Place, all: &Timeline<Arc<Value>>| {
            let newest = newest_at(all, intent.issued).unwrap_or_default();
            let keys: Option<Vec<InstanceKey>> = newest.iter().map(|(_, resource)| key(resource)).collect();
            let keys = keys.filter(|keys| !keys.is_empty() && *namespace == own.0);
            keys.is_some_and(|keys| !keys.iter().any(|key| has_moved(name, key)))
        };
        known.iter().find(|(place, all)| claims(place, all)).map(|((_, name), _)| name.clone())
    }

    /// The objection to an object that is created first at an address, although its Resource claims another one. The claim
    /// counts if the other object, or its Resource, was there when the replica learned of the claim.
    pub(super) fn created_beside(&self, call: &Call, effect: &Effect) -> Option<String> {
        let address = call.parsed();
        let record_at = |address: &Address| self.records.as_ref().and_then(|look_up| look_up(&call.namespace, address));
        // Otherwise an object that was moved to the address is being replaced.
        record_at(&address).filter(|own| own.moved_from.is_empty())?;
        if self.ids_created_at(&call.namespace, &address).iter().any(|id| *id != effect.id) {
            return None;
        }
        let intent = self.intents_of(call, &record_name(&call.namespace, &address)).into_iter().next()?;
        let known = self.known.get(&intent.replica)?;
        let place = |name: &str| (call.namespace.to_string(), name.to_owned());
        let versions = known.get(&place(address.name()))?;
        let newest = newest_at(versions, intent.issued)?;
        let claims = |resource: &Option<Arc<Value>>, from: &Address| {
            resource.as_deref().is_some_and(|one| claiming_key(one, from).as_ref() == Some(&address.key))
        };
        let entries = newest.iter().filter_map(|(_, resource)| resource.as_deref()).flat_map(claims_of);
        let mut claimed = entries.flat_map(|claim| named(&claim, &address.key));
        claimed.find_map(|from| {
            if !newest.iter().all(|(_, resource)| claims(resource, &from)) {
                return None;
            }
            let before = versions.iter().rev().skip_while(|(at, _)| *at > intent.issued);
            let (learned, _) = before.take_while(|(_, resource)| claims(resource, &from)).last()?;
            let secret = record_name(&call.namespace, &from);
            let is_touched = self.spoiled.contains(&secret) || self.restored.contains(&secret);
            // An object that was moved there may have arrived after the create began.
            let record = record_at(&from).filter(|record| !is_touched && record.moved_from.is_empty())?;
            let id = record.current.as_ref()?.id()?;
            let (began, _) = self.objects.get(id)?.first()?;
            let is_there = || {
                let all = known.get(&place(from.name()))?;
                let there = newest_at(all, *learned)?;
                let since = all.iter().filter(|(at, _)| at > learned && *at <= intent.issued);
                let is_kept = |(_, resource): &(Instant, Option<Arc<Value>>)| {
                    resource.as_deref().is_some_and(|resource| has_instance(resource, &from.key))
                };
                (there.iter().all(is_kept) && since.into_iter().all(|(_, resource)| resource.is_some())).then_some(())
            };
            let counts = began < learned || (*began < intent.issued && is_there().is_some());
            counts.then(|| format!("it is created although its Resource claims {id} of {from}"))
        })
    }
}

/// The values between two times, and that there may have been none.
fn between(timeline: Option<&Timeline<Plain>>, from: Instant, to: Instant) -> Vec<Option<Plain>> {
    let mut values = vec![None];
    for (at, value) in timeline.into_iter().flatten() {
        if *at < from {
            values.clear();
        }
        if *at <= to {
            values.push(value.clone());
        }
    }
    values
}

/// The ids of the objects in a record.
pub(crate) fn ids_in(record: &Record) -> BTreeSet<String> {
    let objects = record.current.iter().chain(record.deposed.values());
    objects.filter_map(|object| object.id().map(str::to_owned)).collect()
}
