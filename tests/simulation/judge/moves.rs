//! Judges moves: where the object of a Resource came from, and which Resources claim an object.

use std::collections::BTreeSet;
use std::sync::Arc;

use purlin::driver::scripted::Effect;
use purlin::model::{Address, Record, Value as Plain};
use purlin::store::secrets::record_name;
use serde_json::Value;
use tokio::time::Instant;

use super::{Call, Inside, Intent, Place, Timeline, has_instance, newest_at};

/// The names in the annotation `purlin.dev/moved-from`.
pub(crate) fn claimed_names(resource: &Value) -> impl Iterator<Item = &str> {
    let annotation = resource["metadata"]["annotations"]["purlin.dev/moved-from"].as_str();
    annotation.into_iter().flat_map(|names| names.split(',')).map(str::trim).filter(|name| !name.is_empty())
}

impl Inside {
    /// Remembers what a version of a Resource claims.
    pub(super) fn remember_claims(&mut self, place: &Place, resource: &Value) {
        for name in claimed_names(resource) {
            self.claims.entry(place.clone()).or_default().insert(name.to_owned());
        }
    }

    /// The names under which objects of this place may have existed before, without its own.
    fn earlier_places(&self, place: &Place) -> BTreeSet<Place> {
        let mut all = BTreeSet::from([place.clone()]);
        let mut open = vec![place.clone()];
        while let Some(next) = open.pop() {
            let named = self.claims.get(&next).into_iter().flatten();
            let named: Vec<Place> = named.map(|name| (next.0.clone(), name.clone())).collect();
            open.extend(named.into_iter().filter(|place| all.insert(place.clone())));
        }
        all.remove(place);
        all
    }

    /// The ids of all objects that have existed at an address, or may have been moved there.
    pub(super) fn ids_at(&self, place: &Place, address: &Address) -> BTreeSet<String> {
        let named = (place.0.clone(), address.name.to_string());
        let earlier = self
            .earlier_places(&named)
            .into_iter()
            .map(|(namespace, name)| (namespace, Address { name: name.into(), key: address.key.clone() }.to_string()));
        let places = earlier.chain([place.clone()]);
        places.flat_map(|place| self.ids_created_at(&place)).collect()
    }

    fn ids_created_at(&self, place: &Place) -> BTreeSet<String> {
        let values = self.truth.get(place).into_iter().flatten().filter_map(|(_, value)| value.as_ref());
        values.filter_map(|value| Some(value.get("id")?.as_str()?.to_owned())).collect()
    }

    /// The values that the object of a Resource without instances may have had between two times.
    pub(super) fn values_between(&self, place: &Place, from: Instant, to: Instant) -> Vec<Option<Plain>> {
        let mut values = between(self.truth.get(place), from, to);
        let ids: BTreeSet<String> =
            self.earlier_places(place).iter().flat_map(|earlier| self.ids_created_at(earlier)).collect();
        values.extend(ids.iter().flat_map(|id| between(self.objects.get(id), from, to)));
        values
    }

    /// The Resource that claims the object of an address, as a replica knew it when it wrote its intent. The object must
    /// not be destroyed then, unless its own Resource still has it.
    pub(super) fn claimant(&self, intent: &Intent, call: &Call, address: &Address) -> Option<String> {
        let known = self.known.get(&intent.replica)?;
        let own = (call.namespace.to_string(), address.name.to_string());
        let is_kept = |resource: &Value| has_instance(resource, &address.key);
        let newest_own = known.get(&own).and_then(|all| newest_at(all, intent.issued)).unwrap_or_default();
        if newest_own.iter().any(|(_, resource)| resource.as_deref().is_some_and(is_kept)) {
            return None;
        }
        let claims = |resource: &Value| {
            claimed_names(resource).any(|name| name == &*address.name) && has_instance(resource, &address.key)
        };
        let claimants = known.iter().filter(|((namespace, name), _)| *namespace == own.0 && *name != own.1);
        let mut claimants = claimants.filter(|(_, all)| {
            let newest = newest_at(all, intent.issued).unwrap_or_default();
            !newest.is_empty() && newest.iter().all(|(_, resource)| resource.as_deref().is_some_and(claims))
        });
        // After the move, the annotation has no effect.
        let has_moved = |name: &str| {
            let there = Address { name: name.into(), key: address.key.clone() };
            let record = self.records.as_ref().and_then(|look_up| look_up(&call.namespace, &there));
            record.is_some_and(|record| record.moved_from.iter().any(|from| from.name == address.name))
        };
        claimants.find(|((_, name), _)| !has_moved(name)).map(|((_, name), _)| name.clone())
    }

    /// The objection to an object that is created first at an address, although its Resource claims another one. The claim
    /// counts if the other object, or its Resource, was there when the replica learned of the claim.
    pub(super) fn created_beside(&self, call: &Call, effect: &Effect) -> Option<String> {
        let address = call.parsed();
        let record_at = |address: &Address| self.records.as_ref().and_then(|look_up| look_up(&call.namespace, address));
        let own = record_at(&address)?;
        let place = (call.namespace.to_string(), call.address.to_string());
        if self.ids_created_at(&place).iter().any(|id| *id != effect.id) {
            return None;
        }
        let intent = self.intents_of(call, &record_name(&call.namespace, &address)).into_iter().next()?;
        let known = self.known.get(&intent.replica)?;
        let versions = known.get(&(place.0.clone(), address.name.to_string()))?;
        let newest = newest_at(versions, intent.issued)?;
        let claims = |resource: &Option<Arc<Value>>, name: &str| {
            let resource = resource.as_deref();
            resource
                .is_some_and(|one| has_instance(one, &address.key) && claimed_names(one).any(|claimed| claimed == name))
        };
        let claimed = newest.iter().filter_map(|(_, resource)| resource.as_deref()).flat_map(claimed_names);
        let has_moved = |name: &str| own.moved_from.iter().any(|from| &*from.name == name);
        claimed.filter(|name| !has_moved(name)).find_map(|name| {
            if !newest.iter().all(|(_, resource)| claims(resource, name)) {
                return None;
            }
            let before = versions.iter().rev().skip_while(|(at, _)| *at > intent.issued);
            let (learned, _) = before.take_while(|(_, resource)| claims(resource, name)).last()?;
            let from = Address { name: name.into(), key: address.key.clone() };
            let secret = record_name(&call.namespace, &from);
            let is_touched = self.spoiled.contains(&secret) || self.restored.contains(&secret);
            let record = record_at(&from).filter(|_| !is_touched)?;
            let id = record.current.as_ref()?.id()?;
            let (began, _) = self.objects.get(id)?.first()?;
            let is_there = || {
                let all = known.get(&(place.0.clone(), name.to_owned()))?;
                let there = newest_at(all, *learned)?;
                let since = all.iter().filter(|(at, _)| at > learned && *at <= intent.issued);
                let is_kept = |(_, resource): &(Instant, Option<Arc<Value>>)| {
                    resource.as_deref().is_some_and(|resource| has_instance(resource, &address.key))
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
