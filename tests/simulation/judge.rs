//! The judge knows which objects exist, what users configured and when each replica received it, and objects to
//! everything that must never happen. It shares no decision with the controller.

mod approvals;
mod moves;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use purlin::driver::{ApplyRequest, CallContext};
use purlin::model::{Address, InstanceKey, Namespace, ObjectStatus, Record, RecordedObject, Value as Plain};
use purlin::process::lock;
use purlin::store::Interner;
use purlin::store::secrets::{SecretContent, decode, record_name};
use serde_json::Value;
use testkit::scripted::{Effect, EffectKind};
use tokio::time::Instant;

use self::approvals::Approved;
pub(crate) use self::moves::{claimed_addresses, ids_in};

/// Namespace and name of a Resource.
pub(crate) type Place = (String, String);

/// Values, and since when each of them is valid. `None`: it did not exist.
type Timeline<T> = Vec<(Instant, Option<T>)>;

/// Looks up a record in the API server.
pub(crate) type Records = Box<dyn Fn(&str, &Address) -> Option<Record> + Send>;

/// A call of a driver.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    replica: Arc<str>,
    namespace: Namespace,
    address: Arc<str>,
    kind: EffectKind,
    /// The id of the object. `None` for a create.
    id: Option<String>,
    began: Instant,
}

impl Call {
    pub(crate) fn of(replica: &Arc<str>, context: &CallContext, request: &ApplyRequest) -> Self {
        let kind = match (&request.prior, &request.planned) {
            (None, _) => EffectKind::Created,
            (Some(_), Some(_)) => EffectKind::Updated,
            (Some(_), None) => EffectKind::Destroyed,
        };
        let id = request.prior.as_ref().and_then(|prior| prior.id().map(str::to_owned));
        let (namespace, address) = (context.namespace.clone(), context.address.clone());
        Self { replica: replica.clone(), namespace, address, kind, id, began: Instant::now() }
    }

    fn parsed(&self) -> Address {
        self.address.parse().unwrap()
    }
}

/// A running call. It ends when this is dropped, also by a crash.
pub(crate) struct Running {
    judge: Arc<Judge>,
    number: u64,
}

impl Drop for Running {
    fn drop(&mut self) {
        lock(&self.judge.inside).calls.remove(&self.number);
    }
}

pub(crate) struct Judge {
    began: Instant,
    inside: Mutex<Inside>,
}

struct Intent {
    replica: Arc<str>,
    issued: Instant,
    /// Without an answer, the write may or may not have been carried out.
    is_answered: bool,
}

#[derive(Default)]
struct Inside {
    records: Option<Records>,
    /// What each replica received about each Resource, and when.
    known: BTreeMap<Arc<str>, BTreeMap<Place, Timeline<Arc<Value>>>>,
    /// Which replica requested to write each record, and when, by the name of its Secret.
    intents: BTreeMap<String, Vec<Intent>>,
    /// The last status that each replica wrote for each Resource.
    statuses: BTreeMap<(Arc<str>, Place), StatusWrite>,
    /// The value of the object of an address over time.
    truth: BTreeMap<Place, Timeline<Plain>>,
    /// The value of each object over time, by its id.
    objects: BTreeMap<String, Timeline<Plain>>,
    /// The former addresses of objects that Resources have named.
    claims: BTreeMap<Place, BTreeSet<moves::Claim>>,
    calls: BTreeMap<u64, Call>,
    count: u64,
    /// Secrets that an administrator has deleted or damaged.
    spoiled: BTreeSet<String>,
    /// Secrets that an administrator has restored: they have the intent of an earlier write.
    restored: BTreeSet<String>,
    /// Objects whose records were removed by a user or by force. Purlin need not know them.
    given_up: BTreeSet<String>,
    approved: Approved,
    objections: Vec<String>,
    tape: Vec<String>,
    creates: u64,
    destroys: u64,
}

#[derive(Clone, Copy)]
struct StatusWrite {
    /// The earliest time at which the status may have been computed.
    worked_out: Instant,
    ended: Option<Instant>,
    failed: bool,
}

impl Judge {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { began: Instant::now(), inside: Mutex::default() })
    }

    pub(crate) fn look_up(&self, records: Records) {
        lock(&self.inside).records = Some(records);
    }

    /// The first objection.
    pub(crate) fn objection(&self) -> Option<String> {
        lock(&self.inside).objections.first().cloned()
    }

    pub(crate) fn object(&self, text: &str) {
        let line = format!("{} OBJECTION: {text}", self.time());
        let mut inside = lock(&self.inside);
        inside.tape.push(line.clone());
        inside.objections.push(line);
    }

    /// Writes a line on the tape.
    pub(crate) fn note(&self, line: &str) {
        let line = format!("{} {line}", self.time());
        lock(&self.inside).tape.push(line);
    }

    pub(crate) fn tape(&self) -> Vec<String> {
        lock(&self.inside).tape.clone()
    }

    /// The number of objects that were created and destroyed.
    pub(crate) fn counts(&self) -> (u64, u64) {
        let inside = lock(&self.inside);
        (inside.creates, inside.destroys)
    }

    fn time(&self) -> String {
        format!("{:>9.3}s", self.began.elapsed().as_secs_f64())
    }

    /// Purlin need not know these objects any more: a user gave them up.
    pub(crate) fn give_up(&self, ids: impl IntoIterator<Item = String>) {
        lock(&self.inside).given_up.extend(ids);
    }

    /// The ids of all objects that have existed for the address of a record, or may have been moved there.
    pub(crate) fn ids_of(&self, record: &Record) -> BTreeSet<String> {
        lock(&self.inside).ids_at(&record.namespace, &record.address)
    }

    /// The id of the object that was created last at the address of a record.
    pub(crate) fn last_created(&self, record: &Record) -> Option<String> {
        lock(&self.inside).created_at(&record.namespace, &record.address).next_back()
    }

    pub(crate) fn is_given_up(&self, id: &str) -> bool {
        lock(&self.inside).given_up.contains(id)
    }

    /// An administrator has deleted a record, or damaged it.
    pub(crate) fn spoiled(&self, secret: &str) {
        lock(&self.inside).spoiled.insert(secret.to_owned());
    }

    /// The record is restored.
    pub(crate) fn whole(&self, secret: &str) {
        let mut inside = lock(&self.inside);
        inside.spoiled.remove(secret);
        inside.restored.insert(secret.to_owned());
    }

    /// Whether an administrator has restored a Secret.
    pub(crate) fn is_restored(&self, secret: &str) -> bool {
        lock(&self.inside).restored.contains(secret)
    }

    /// A replica received a Resource, or its deletion.
    pub(crate) fn delivered(&self, replica: &Arc<str>, place: Place, resource: Option<Value>) {
        let now = Instant::now();
        let mut inside = lock(&self.inside);
        if let Some(resource) = &resource {
            inside.remember_claims(&place, resource);
        }
        let known = inside.known.entry(replica.clone()).or_default();
        known.entry(place).or_default().push((now, resource.map(Arc::new)));
    }

    /// A replica received a list of all Resources.
    pub(crate) fn listed(&self, replica: &Arc<str>, resources: Vec<(Place, Value)>) {
        let now = Instant::now();
        let mut inside = lock(&self.inside);
        resources.iter().for_each(|(place, resource)| inside.remember_claims(place, resource));
        let known = inside.known.entry(replica.clone()).or_default();
        let listed: BTreeSet<Place> = resources.iter().map(|(place, _)| place.clone()).collect();
        for (place, versions) in known.iter_mut().filter(|(place, _)| !listed.contains(place)) {
            let _ = place;
            versions.push((now, None));
        }
        for (place, resource) in resources {
            known.entry(place).or_default().push((now, Some(Arc::new(resource))));
        }
    }

    /// Whether this write of a record only changes the holder of its operation: a replica repeats what another one
    /// intended, and for the reasons of that one.
    pub(crate) fn is_taken_over(&self, secret: &[u8]) -> bool {
        let Ok(secret) = serde_json::from_slice(secret) else { return false };
        let Ok(SecretContent::Record(written)) = decode(&secret, &mut Interner::default()) else { return false };
        let inside = lock(&self.inside);
        let Some(look_up) = &inside.records else { return false };
        let before = look_up(&written.record.namespace, &written.record.address);
        match (before.and_then(|record| record.intent), &written.record.intent) {
            (Some(before), Some(now)) => before.operation_id == now.operation_id && before.holder != now.holder,
            _ => false,
        }
    }

    /// A replica sends a request to write a record.
    pub(crate) fn record_issued(&self, replica: &Arc<str>, secret: &str, issued: Instant) {
        let intent = Intent { replica: replica.clone(), issued, is_answered: false };
        lock(&self.inside).intents.entry(secret.to_owned()).or_default().push(intent);
    }

    /// The request that was issued at this time has ended. A refused one did not change the record.
    pub(crate) fn record_answered(&self, replica: &Arc<str>, secret: &str, issued: Instant, is_refused: bool) {
        let mut inside = lock(&self.inside);
        let Some(all) = inside.intents.get_mut(secret) else { return };
        let is_this = |intent: &Intent| intent.issued == issued && intent.replica == *replica && !intent.is_answered;
        let Some(position) = all.iter().position(is_this) else { return };
        if is_refused {
            all.remove(position);
        } else {
            all[position].is_answered = true;
        }
    }

    /// A driver is called.
    pub(crate) fn call_begins(self: &Arc<Self>, call: Call) -> Running {
        let target = call.id.as_deref().unwrap_or("a new object");
        self.note(&format!("{} call {:?} {}/{} {target}", call.replica, call.kind, call.namespace, call.address));
        let beside = {
            let inside = lock(&self.inside);
            let same = |other: &&Call| {
                let is_of_same = call.id.is_some() && other.id == call.id;
                is_of_same || (&other.namespace, &other.address) == (&call.namespace, &call.address)
            };
            inside.calls.values().find(same).cloned()
        };
        if let Some(other) = beside {
            self.object(&format!(
                "{} is called for {:?} by {} while a call for {:?} by {} is running",
                call.address, call.kind, call.replica, other.kind, other.replica
            ));
        }
        if call.kind == EffectKind::Destroyed
            && let Err(why) = self.may_destroy(&call)
        {
            self.object(&format!("{} destroys {target} of {}: {why}", call.replica, call.address));
        }
        self.check_approval(&call);
        let mut inside = lock(&self.inside);
        inside.count += 1;
        let number = inside.count;
        inside.calls.insert(number, call);
        Running { judge: self.clone(), number }
    }

    /// Whether a version of the Resource that may have been the newest for the replica when it wrote its intent permits
    /// a destroy. An administrator may have restored an earlier intent.
    fn may_destroy(&self, call: &Call) -> Result<(), String> {
        let address = call.parsed();
        let inside = lock(&self.inside);
        let Some(look_up) = &inside.records else { return Ok(()) };
        let secret = record_name(&call.namespace, &address);
        let Some(record) = look_up(&call.namespace, &address) else {
            let is_spoiled = inside.spoiled.contains(&secret);
            return if is_spoiled { Ok(()) } else { Err("there is no record of it".to_owned()) };
        };
        let is_restored = inside.restored.contains(&secret);
        let place = (call.namespace.to_string(), address.name().to_string());
        let permits = |intent: &Intent| {
            let known = inside.known.get(&intent.replica).and_then(|known| known.get(&place));
            let newest = known.and_then(|all| newest_at(all, intent.issued)).unwrap_or_default();
            let permits = newest.iter().map(|(_, resource)| match resource {
                Some(resource) => permits_destroy(resource, &record, &address, call.id.as_deref()),
                None => Ok(()),
            });
            permits.reduce(Result::or).unwrap_or(Ok(()))?;
            inside.claimant(intent, call, &address).map_or(Ok(()), |name| Err(format!("{name} claims it")))
        };
        let all = inside.intents.get(&secret).map(Vec::as_slice).unwrap_or_default();
        if is_restored && all.iter().any(|earlier| permits(earlier).is_ok()) {
            return Ok(());
        }
        let refusals: Option<Vec<String>> =
            inside.intents_of(call, &secret).into_iter().map(|intent| permits(intent).err()).collect();
        refusals.and_then(|mut all| all.pop()).map_or(Ok(()), Err)
    }

    /// An object of the service has changed.
    pub(crate) fn took_effect(&self, running: &Running, effect: &Effect) {
        let Some(call) = lock(&self.inside).calls.get(&running.number).cloned() else { return };
        self.check_effect(running, effect);
        self.note(&format!("{} {:?} {}/{} {}", call.replica, effect.kind, call.namespace, call.address, effect.id));
        let now = Instant::now();
        let value = (effect.kind != EffectKind::Destroyed).then(|| effect.value.clone());
        let address = call.parsed();
        let problem = {
            let mut inside = lock(&self.inside);
            match effect.kind {
                EffectKind::Created => inside.creates += 1,
                EffectKind::Destroyed => inside.destroys += 1,
                EffectKind::Updated | EffectKind::Removed => {}
            }
            let key = (call.namespace.to_string(), call.address.to_string());
            let record = inside.records.as_ref().and_then(|look_up| look_up(&call.namespace, &address));
            let is_current = |id: &str| {
                let current = record.as_ref().and_then(|record| record.current.as_ref());
                current.is_some_and(|object| object.id() == Some(id))
            };
            let before = inside.truth.get(&key).and_then(|all| all.last()?.1.clone());
            let is_latest = before.as_ref().is_some_and(|value| value.get("id") == effect.value.get("id"));
            inside.objects.entry(effect.id.clone()).or_default().push((now, value.clone()));
            // The destroy of a deposed object does not affect the current one.
            if effect.kind != EffectKind::Destroyed || is_latest || is_current(&effect.id) {
                inside.truth.entry(key).or_default().push((now, value));
            }
            match (effect.kind, record) {
                (EffectKind::Created, None) if inside.spoiled.contains(&record_name(&call.namespace, &address)) => None,
                (EffectKind::Created, None) => Some("it is created without a record".to_owned()),
                (EffectKind::Created, Some(record)) if record.intent.is_none() => {
                    Some("it is created without an intent".to_owned())
                }
                (EffectKind::Created, Some(record)) => {
                    let current = record.current.iter().find(|current| current.id() != Some(&effect.id));
                    let current =
                        current.map(|current| format!("it is created although {:?} is current", current.id()));
                    current.or_else(|| inside.created_beside(&call, effect))
                }
                _ => None,
            }
        };
        if let Some(problem) = problem {
            self.object(&format!("{} of {}: {problem}", effect.id, call.address));
        }
    }

    /// A replica requests to write a status. Returns the objection to it, unless the API server rejects it.
    pub(crate) fn status_issued(&self, replica: &Arc<str>, place: &Place, uid: &str, status: &Value) -> Option<String> {
        let now = Instant::now();
        let ready = condition(status, "Ready");
        let reason = |name| condition(status, name).map(|c| format!("{name}={}/{}", c.0, c.1)).unwrap_or_default();
        let generation = status["observedGeneration"].as_i64().unwrap_or(-1);
        self.note(&format!(
            "{replica} status of {} for generation {generation}: {} {}",
            place.1,
            reason("Ready"),
            reason("Synced")
        ));
        let mut inside = lock(&self.inside);
        let before = inside.statuses.get(&(replica.clone(), place.clone())).copied();
        let follows = |before: &StatusWrite| {
            before.failed || before.ended.is_none_or(|ended| ended + Duration::from_millis(1) >= now)
        };
        let worked_out = before.filter(follows).map_or(now, |before| before.worked_out);
        let write = StatusWrite { worked_out, ended: None, failed: false };
        inside.statuses.insert((replica.clone(), place.clone()), write);
        let versions = inside.known.get(replica).and_then(|known| known.get(place));
        // The server rejects the status of another Resource with this name.
        let newest = versions.and_then(|all| all.last()?.1.as_ref());
        if newest.is_none_or(|newest| newest["metadata"]["uid"] != uid) {
            return None;
        }
        let resource = versions.into_iter().flatten().rev().filter_map(|(_, resource)| resource.as_ref());
        let resource = resource
            .into_iter()
            .filter(|resource| resource["metadata"]["uid"] == uid)
            .find(|resource| resource["metadata"]["generation"].as_i64() == Some(generation))
            .cloned();
        let resource = resource.filter(|_| ready.is_some_and(|(status, _)| status == "True"))?;
        if resource["spec"]["suspend"].as_bool() == Some(true) && is_desired(&resource) {
            return Some(format!(
                "{replica} reports {} as Ready although generation {generation} is suspended",
                place.1
            ));
        }
        // This does not compare the instances of families, nor objects of the cluster, which `log` checks.
        let is_here = resource["spec"]["type"].as_str().is_some_and(|name| name.starts_with("scripted"));
        if !is_here || is_family(&resource) || !is_desired(&resource) {
            return None;
        }
        let values = inside.values_between(place, worked_out, now);
        let fits = |value: &Option<Plain>| value.as_ref().is_some_and(|value| matches_spec(value, &resource["spec"]));
        let is = || values.last().cloned().flatten();
        (!values.iter().any(fits)).then(|| {
            format!(
                "{replica} reports {} as Ready for generation {generation}, but it is {}",
                place.1,
                is().map_or("missing".to_owned(), |value| value.to_public_json().to_string())
            )
        })
    }

    /// The request to write a status has ended.
    pub(crate) fn status_ended(&self, replica: &Arc<str>, place: &Place, failed: bool) {
        if let Some(write) = lock(&self.inside).statuses.get_mut(&(replica.clone(), place.clone())) {
            (write.ended, write.failed) = (Some(Instant::now()), failed);
        }
    }
}

impl Inside {
    /// The intents that a call may carry out: the last one of its replica, and the last ones of the others, because a
    /// replica also repeats what another one intended before it ended.
    fn intents_of(&self, call: &Call, secret: &str) -> Vec<&Intent> {
        // A running call may be noted in the record, which is not another intent.
        let earlier = self.intents.get(secret).into_iter().flatten().filter(|intent| intent.issued <= call.began);
        let own = earlier.clone().rfind(|intent| intent.replica == call.replica);
        let mut may_be_last = true;
        let last = earlier.rev().take_while(|intent| std::mem::replace(&mut may_be_last, !intent.is_answered));
        own.into_iter().chain(last.filter(|intent| intent.replica != call.replica)).collect()
    }
}

/// The values of which each may have been the newest for a replica at this time: the last one before it, and those of
/// that very time, which the replica may or may not have processed. `None`: it may not have known any.
fn newest_at<T>(all: &[(Instant, T)], time: Instant) -> Option<&[(Instant, T)]> {
    let last = all.partition_point(|(at, _)| *at < time).checked_sub(1)?;
    Some(&all[last..all.partition_point(|(at, _)| *at <= time)])
}

/// Status and reason of a condition.
pub(crate) fn condition<'a>(status: &'a Value, name: &str) -> Option<(&'a str, &'a str)> {
    let all = status["conditions"].as_array()?;
    let one = all.iter().find(|condition| condition["type"] == name)?;
    Some((one["status"].as_str()?, one["reason"].as_str()?))
}

pub(crate) fn is_family(resource: &Value) -> bool {
    !resource["spec"]["count"].is_null() || !resource["spec"]["forEach"].is_null()
}

/// Whether a Resource has any objects.
pub(crate) fn is_desired(resource: &Value) -> bool {
    resource["metadata"]["deletionTimestamp"].is_null() && resource["spec"]["enabled"].as_bool() != Some(false)
}

/// Whether a Resource has the instance with this key.
pub(crate) fn has_instance(resource: &Value, key: &InstanceKey) -> bool {
    let spec = &resource["spec"];
    if !is_desired(resource) {
        return false;
    }
    match key {
        InstanceKey::None | InstanceKey::All => !is_family(resource),
        InstanceKey::Index(index) => spec["count"].as_u64().is_some_and(|count| *index < count),
        InstanceKey::Key(key) => {
            spec["forEach"].as_array().is_some_and(|all| all.iter().any(|one| one.as_str() == Some(key)))
        }
    }
}

/// Whether an object matches the constants in the spec of its Resource.
pub(crate) fn matches_spec(object: &Plain, spec: &Value) -> bool {
    ["value", "force"].iter().all(|name| {
        let desired = &spec["config"][*name];
        let is_constant = desired.as_str().is_none_or(|text| !text.contains("${"));
        !is_constant || object.get(name).map(Plain::to_public_json).unwrap_or_default() == *desired
    })
}

/// Whether a Resource permits that this object is destroyed. The error is the reason why not.
fn permits_destroy(resource: &Value, record: &Record, address: &Address, id: Option<&str>) -> Result<(), String> {
    let spec = &resource["spec"];
    let generation = &resource["metadata"]["generation"];
    if spec["suspend"].as_bool() == Some(true) {
        return Err(format!("it is suspended (generation {generation})"));
    }
    if spec["lifecycle"]["preventDestroy"].as_bool() == Some(true) {
        return Err(format!("it is protected (generation {generation})"));
    }
    if !has_instance(resource, &address.key) {
        return Ok(());
    }
    let is = |object: &Arc<RecordedObject>| object.id() == id;
    if record.deposed.values().any(is) {
        return Ok(());
    }
    let Some(current) = record.current.as_ref().filter(|current| is(current)) else { return Ok(()) };
    if current.status == ObjectStatus::Tainted {
        return Ok(());
    }
    let asked = &resource["metadata"]["annotations"]["purlin.dev/replace-requested-at"];
    if asked.as_str().is_some_and(|asked| *asked != *record.handled_replace_request) {
        return Ok(());
    }
    // The judge does not evaluate triggers.
    if spec["lifecycle"]["replaceTriggeredBy"].as_array().is_some_and(|all| !all.is_empty()) {
        return Ok(());
    }
    let force = current.value.get("force").map(Plain::to_public_json).unwrap_or_default();
    if force != spec["config"]["force"] {
        return Ok(());
    }
    Err(format!("generation {generation} does not replace it"))
}
