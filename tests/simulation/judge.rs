//! The judge: knows what exists outside, what users wished and when each replica knew it, and objects to whatever must
//! never happen. It shares no decision with the controller.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use purlin::driver::scripted::{Effect, EffectKind};
use purlin::driver::{ApplyRequest, CallContext};
use purlin::model::{Address, InstanceKey, ObjectStatus, Record, RecordedObject, Value as Plain};
use purlin::process::lock;
use purlin::store::secrets::record_name;
use serde_json::Value;
use tokio::time::Instant;

/// Namespace and name of a Resource.
pub(crate) type Place = (String, String);

/// What something was from when on; `None`: it was not there.
type Timeline<T> = Vec<(Instant, Option<T>)>;

/// Looks a record up in the API server, as it is stored now.
pub(crate) type Records = Box<dyn Fn(&str, &Address) -> Option<Record> + Send>;

/// What a driver is asked to do.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    replica: Arc<str>,
    namespace: Arc<str>,
    address: Arc<str>,
    kind: EffectKind,
    /// The id of the object that is changed or destroyed.
    id: Option<String>,
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
        Self { replica: replica.clone(), namespace, address, kind, id }
    }

    fn parsed(&self) -> Address {
        self.address.parse().unwrap()
    }
}

/// A call under way. It is over when this is dropped, be it by a crash.
pub(crate) struct Running {
    judge: Arc<Judge>,
    number: u64,
}

impl Drop for Running {
    fn drop(&mut self) {
        lock(&self.judge.inside).calls.remove(&self.number);
    }
}

/// The judge.
pub(crate) struct Judge {
    began: Instant,
    inside: Mutex<Inside>,
}

#[derive(Default)]
struct Inside {
    records: Option<Records>,
    /// What each replica was told about each Resource, and when.
    known: BTreeMap<Arc<str>, BTreeMap<Place, Timeline<Arc<Value>>>>,
    /// When each replica last asked for a record to be written, by the name of its Secret.
    intents: BTreeMap<(Arc<str>, String), Instant>,
    /// The last request for the status of a Resource by each replica.
    statuses: BTreeMap<(Arc<str>, Place), StatusWrite>,
    /// What existed for an address since when: its object's value, or nothing.
    truth: BTreeMap<Place, Timeline<Plain>>,
    calls: BTreeMap<u64, Call>,
    count: u64,
    /// Secrets that an administrator has deleted or damaged.
    spoiled: BTreeSet<String>,
    /// Objects whose records somebody outside removed or forced away: nothing is known about them, and rightly so.
    given_up: BTreeSet<String>,
    objections: Vec<String>,
    tape: Vec<String>,
    creates: u64,
    destroys: u64,
}

#[derive(Clone, Copy)]
struct StatusWrite {
    /// From when on what it says may have been worked out.
    worked_out: Instant,
    ended: Option<Instant>,
    failed: bool,
}

impl Judge {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { began: Instant::now(), inside: Mutex::default() })
    }

    /// From here the judge looks records up.
    pub(crate) fn look_up(&self, records: Records) {
        lock(&self.inside).records = Some(records);
    }

    /// The first thing that must never happen and did.
    pub(crate) fn objection(&self) -> Option<String> {
        lock(&self.inside).objections.first().cloned()
    }

    /// Objects.
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

    /// How many objects were made and destroyed.
    pub(crate) fn counts(&self) -> (u64, u64) {
        let inside = lock(&self.inside);
        (inside.creates, inside.destroys)
    }

    fn time(&self) -> String {
        format!("{:>9.3}s", self.began.elapsed().as_secs_f64())
    }

    /// Nothing needs to be known about these objects any more: a user gave them up by force.
    pub(crate) fn give_up(&self, ids: impl IntoIterator<Item = String>) {
        lock(&self.inside).given_up.extend(ids);
    }

    pub(crate) fn is_given_up(&self, id: &str) -> bool {
        lock(&self.inside).given_up.contains(id)
    }

    /// An administrator has deleted a record, or damaged it.
    pub(crate) fn spoiled(&self, secret: &str) {
        lock(&self.inside).spoiled.insert(secret.to_owned());
    }

    /// It is as it was.
    pub(crate) fn whole(&self, secret: &str) {
        lock(&self.inside).spoiled.remove(secret);
    }

    /// A replica was told that a Resource is like this now, or is gone.
    pub(crate) fn delivered(&self, replica: &Arc<str>, place: Place, resource: Option<Value>) {
        let now = Instant::now();
        let mut inside = lock(&self.inside);
        let known = inside.known.entry(replica.clone()).or_default();
        known.entry(place).or_default().push((now, resource.map(Arc::new)));
    }

    /// A replica was told all Resources that there are.
    pub(crate) fn listed(&self, replica: &Arc<str>, resources: Vec<(Place, Value)>) {
        let now = Instant::now();
        let mut inside = lock(&self.inside);
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

    /// A replica asks for a record to be written.
    pub(crate) fn record_issued(&self, replica: &Arc<str>, secret: &str) {
        let now = Instant::now();
        lock(&self.inside).intents.insert((replica.clone(), secret.to_owned()), now);
    }

    /// A driver is called.
    pub(crate) fn call_begins(self: &Arc<Self>, call: Call) -> Running {
        let target = call.id.as_deref().unwrap_or("a new object");
        self.note(&format!("{} call {:?} {}/{} {target}", call.replica, call.kind, call.namespace, call.address));
        let beside = {
            let inside = lock(&self.inside);
            let same = |other: &&Call| (&other.namespace, &other.address) == (&call.namespace, &call.address);
            inside.calls.values().find(same).cloned()
        };
        if let Some(other) = beside {
            self.object(&format!(
                "{} is called for {:?} by {} while a call for {:?} by {} is under way",
                call.address, call.kind, call.replica, other.kind, other.replica
            ));
        }
        if call.kind == EffectKind::Destroyed
            && let Err(why) = self.may_destroy(&call)
        {
            self.object(&format!("{} destroys {target} of {}: {why}", call.replica, call.address));
        }
        let mut inside = lock(&self.inside);
        inside.count += 1;
        let number = inside.count;
        inside.calls.insert(number, call);
        Running { judge: self.clone(), number }
    }

    /// Whether a destroy was asked for by the newest wish that the replica knew when it wrote its intent.
    fn may_destroy(&self, call: &Call) -> Result<(), String> {
        let address = call.parsed();
        let inside = lock(&self.inside);
        let Some(look_up) = &inside.records else { return Ok(()) };
        let secret = record_name(&call.namespace, &address);
        let Some(record) = look_up(&call.namespace, &address) else {
            let is_spoiled = inside.spoiled.contains(&secret);
            return if is_spoiled { Ok(()) } else { Err("there is no record of it".to_owned()) };
        };
        let Some(intended) = inside.intents.get(&(call.replica.clone(), secret)) else { return Ok(()) };
        let place = (call.namespace.to_string(), address.name.to_string());
        let versions = inside.known.get(&call.replica).and_then(|known| known.get(&place));
        // What came in the very moment of the intent may not have been looked at.
        let newest = versions.and_then(|all| all.iter().rev().find(|(at, _)| at < intended));
        let Some((_, Some(wish))) = newest else { return Ok(()) };
        asks_for_destroy(wish, &record, &address, call.id.as_deref())
    }

    /// Something has changed outside.
    pub(crate) fn took_effect(&self, running: &Running, effect: &Effect) {
        let Some(call) = lock(&self.inside).calls.get(&running.number).cloned() else { return };
        self.note(&format!("{} {:?} {}/{} {}", call.replica, effect.kind, call.namespace, call.address, effect.id));
        let now = Instant::now();
        let value = (effect.kind != EffectKind::Destroyed).then(|| effect.value.clone());
        let address = call.parsed();
        let problem = {
            let mut inside = lock(&self.inside);
            match effect.kind {
                EffectKind::Created => inside.creates += 1,
                EffectKind::Destroyed => inside.destroys += 1,
                EffectKind::Updated | EffectKind::Lost => {}
            }
            let key = (call.namespace.to_string(), call.address.to_string());
            let record = inside.records.as_ref().and_then(|look_up| look_up(&call.namespace, &address));
            let is_current = |id: &str| {
                let current = record.as_ref().and_then(|record| record.current.as_ref());
                current.is_some_and(|object| object.id() == Some(id))
            };
            let before = inside.truth.get(&key).and_then(|all| all.last()?.1.clone());
            let is_latest = before.as_ref().is_some_and(|value| value.get("id") == effect.value.get("id"));
            // The end of a deposed object says nothing about the object in use.
            if effect.kind != EffectKind::Destroyed || is_latest || is_current(&effect.id) {
                inside.truth.entry(key).or_default().push((now, value));
            }
            match (effect.kind, record) {
                (EffectKind::Created, None) if inside.spoiled.contains(&record_name(&call.namespace, &address)) => None,
                (EffectKind::Created, None) => Some("it is made without a record".to_owned()),
                (EffectKind::Created, Some(record)) if record.intent.is_none() => {
                    Some("it is made without an intent".to_owned())
                }
                (EffectKind::Created, Some(record)) => {
                    let current = record.current.iter().find(|current| current.id() != Some(&effect.id));
                    current.map(|current| format!("it is made beside {:?}, which is in use", current.id()))
                }
                _ => None,
            }
        };
        if let Some(problem) = problem {
            self.object(&format!("{} of {}: {problem}", effect.id, call.address));
        }
    }

    /// A replica asks for a status to be written.
    pub(crate) fn status_issued(&self, replica: &Arc<str>, place: &Place, uid: &str, status: &Value) {
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
        // One of another Resource of that name is refused by the server.
        let newest = versions.and_then(|all| all.last()?.1.as_ref());
        if newest.is_none_or(|newest| newest["metadata"]["uid"] != uid) {
            return;
        }
        let wish = versions.into_iter().flatten().rev().filter_map(|(_, wish)| wish.as_ref());
        let wish = wish.into_iter().find(|wish| wish["metadata"]["generation"].as_i64() == Some(generation)).cloned();
        let Some(wish) = wish.filter(|_| ready.is_some_and(|(status, _)| status == "True")) else { return };
        // Of a family the instances are counted, and not compared here; objects of the cluster by its own log.
        let is_here = wish["spec"]["type"].as_str().is_some_and(|name| name.starts_with("scripted"));
        if !is_here || is_family(&wish) || wish["spec"]["suspend"].as_bool() == Some(true) || !is_wanted(&wish) {
            return;
        }
        // An object that moved was made under its old name.
        let moved_from = wish["metadata"]["annotations"]["purlin.dev/moved-from"].as_str();
        let old_place = moved_from.map(|name| (place.0.clone(), name.to_owned()));
        let mut told = Vec::new();
        for key in [Some(place.clone()), old_place].into_iter().flatten() {
            let history = inside.truth.get(&key).map(Vec::as_slice).unwrap_or_default();
            let mut of_key = vec![None];
            for (at, value) in history {
                if *at < worked_out {
                    of_key.clear();
                }
                if *at <= now {
                    of_key.push(value.clone());
                }
            }
            told.extend(of_key);
        }
        let fits = |value: &Option<Plain>| value.as_ref().is_some_and(|value| is_as_wished(value, &wish["spec"]));
        let lies = !told.iter().any(fits);
        drop(inside);
        if lies {
            let is = told.last().cloned().flatten();
            self.object(&format!(
                "{replica} says that {} is Ready for generation {generation}, and it is {}",
                place.1,
                is.map_or("not there".to_owned(), |value| value.to_public_json().to_string())
            ));
        }
    }

    /// The request of a status has ended.
    pub(crate) fn status_ended(&self, replica: &Arc<str>, place: &Place, failed: bool) {
        if let Some(write) = lock(&self.inside).statuses.get_mut(&(replica.clone(), place.clone())) {
            (write.ended, write.failed) = (Some(Instant::now()), failed);
        }
    }
}

/// Status and reason of a condition.
pub(crate) fn condition<'a>(status: &'a Value, name: &str) -> Option<(&'a str, &'a str)> {
    let all = status["conditions"].as_array()?;
    let one = all.iter().find(|condition| condition["type"] == name)?;
    Some((one["status"].as_str()?, one["reason"].as_str()?))
}

pub(crate) fn is_family(wish: &Value) -> bool {
    !wish["spec"]["count"].is_null() || !wish["spec"]["forEach"].is_null()
}

/// Whether a wish asks for objects at all.
pub(crate) fn is_wanted(wish: &Value) -> bool {
    wish["metadata"]["deletionTimestamp"].is_null() && wish["spec"]["enabled"].as_bool() != Some(false)
}

/// Whether a wish asks for this very instance.
pub(crate) fn wants(wish: &Value, key: &InstanceKey) -> bool {
    let spec = &wish["spec"];
    if !is_wanted(wish) {
        return false;
    }
    match key {
        InstanceKey::None | InstanceKey::All => !is_family(wish),
        InstanceKey::Index(index) => spec["count"].as_u64().is_some_and(|count| *index < count),
        InstanceKey::Key(key) => {
            spec["forEach"].as_array().is_some_and(|all| all.iter().any(|one| one.as_str() == Some(key)))
        }
    }
}

/// Whether an object is what a wish asks for, as far as that is written down as constants.
pub(crate) fn is_as_wished(object: &Plain, spec: &Value) -> bool {
    ["value", "force"].iter().all(|name| {
        let wished = &spec["config"][*name];
        let is_constant = wished.as_str().is_none_or(|text| !text.contains("${"));
        !is_constant || object.get(name).map(Plain::to_public_json).unwrap_or_default() == *wished
    })
}

/// Whether the newest wish that was known asks for the end of this object.
fn asks_for_destroy(wish: &Value, record: &Record, address: &Address, id: Option<&str>) -> Result<(), String> {
    let spec = &wish["spec"];
    let generation = &wish["metadata"]["generation"];
    let paused = wish["metadata"]["annotations"]["purlin.dev/paused"].as_str() == Some("true");
    if spec["suspend"].as_bool() == Some(true) || paused {
        return Err(format!("it is suspended (generation {generation})"));
    }
    if spec["lifecycle"]["preventDestroy"].as_bool() == Some(true) {
        return Err(format!("it is protected (generation {generation})"));
    }
    if !wants(wish, &address.key) {
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
    let asked = &wish["metadata"]["annotations"]["purlin.dev/replace-requested-at"];
    if asked.as_str().is_some_and(|asked| *asked != *record.handled_replace_request) {
        return Ok(());
    }
    // What the triggers look at is not judged here.
    if spec["lifecycle"]["replaceTriggeredBy"].as_array().is_some_and(|all| !all.is_empty()) {
        return Ok(());
    }
    let force = current.value.get("force").map(Plain::to_public_json).unwrap_or_default();
    if force != spec["config"]["force"] {
        return Ok(());
    }
    Err(format!("generation {generation} keeps it as it is"))
}
