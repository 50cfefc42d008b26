//! Replicas that are killed one after the other while users create, change and delete objects in all namespaces. At the
//! end, exactly one object must exist for each Resource, by the count outside.

use std::collections::BTreeMap;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

use kube::Api;
use kube::api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;

use crate::measure::namespaces_with_rights;
use crate::observer::{History, Key, Observer};
use crate::outside::{Copies, Count, Outside};
use crate::processes::Numbers;
use crate::replicas::{Processes, Replicas};
use crate::server::Server;
use crate::workload;

/// The objects that each user creates first.
const OBJECTS: usize = 30;

/// The time between two actions of a user.
const INTERVAL: Duration = Duration::from_millis(500);

/// How long the replicas may take after the last kill until every object is ready.
const LIMIT: Duration = Duration::from_mins(5);

/// How long the count outside must not change before it is final.
const STABLE: Duration = Duration::from_secs(10);

/// What a change of an object must do.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// The object stays the same.
    Update,
    /// The old object is destroyed first.
    Replace,
    /// The new object is created first.
    ReplaceCreateFirst,
}

impl Kind {
    fn of(number: usize) -> Self {
        [Self::Update, Self::Replace, Self::ReplaceCreateFirst][number % 3]
    }
}

/// A Resource that its user has not deleted.
struct Item {
    kind: Kind,
    /// The last revision; the first is 1.
    revision: usize,
}

/// What one user has done.
#[derive(Default)]
struct User {
    items: BTreeMap<String, Item>,
    deleted: BTreeMap<String, Item>,
    /// The changes, each with the generation and the time of the request.
    changes: Vec<(Key, i64, Instant)>,
}

pub(crate) struct Outcome {
    pub(crate) replicas: usize,
    pub(crate) namespaces: usize,
    pub(crate) time: Duration,
    pub(crate) interval: Duration,
    pub(crate) kills: usize,
    pub(crate) recoveries: u64,
    /// The Resources at the end, those that were deleted before, and the changes.
    pub(crate) resources: usize,
    pub(crate) deleted: usize,
    pub(crate) changes: usize,
    /// The ConfigMaps that existed at any time.
    pub(crate) created: usize,
    /// From each change until it was ready, sorted. A change that a user overtook counts until the later one was.
    pub(crate) times: Vec<Duration>,
    pub(crate) gaps: usize,
    pub(crate) problems: Vec<String>,
}

impl Outcome {
    /// Fails if an object was lost or doubled, or is not ready.
    pub(crate) fn verdict(&self) -> Result<(), String> {
        match self.problems.first() {
            None => Ok(()),
            Some(first) => {
                Err(format!("{} problems after {} kills, the first: {first}", self.problems.len(), self.kills))
            }
        }
    }
}

pub(crate) async fn run(
    server: &Server<'_>,
    replicas: &mut Replicas<'_>,
    namespaces: usize,
    interval: Duration,
    time: Duration,
) -> Outcome {
    let namespaces = namespaces_with_rights(server.plane, namespaces);
    let observer = Observer::start(server, &workload::resources()).await;
    let outside = Outside::start(&server.client).await;
    let end = Instant::now() + time;
    let mut users = JoinSet::new();
    for (number, namespace) in namespaces.iter().enumerate() {
        users.spawn(act(server.resources(namespace), namespace.clone(), Numbers::new(number as u64), end));
    }
    let mut kills = 0;
    while Instant::now() + interval < end {
        tokio::time::sleep(interval).await;
        let index = kills % replicas.all().len();
        replicas.kill(index);
        replicas.replace(index);
        kills += 1;
        println!("  kill {kills}: {} objects were ready so far", observer.history.count());
    }
    let users: BTreeMap<String, User> = users.join_all().await.into_iter().collect();
    let mut problems = Vec::new();
    let start = Instant::now();
    for (namespace, user) in &users {
        problems.extend(not_ready(server, namespace, user, LIMIT.saturating_sub(start.elapsed())).await);
    }
    stable(&outside).await;
    let (created, gaps) = {
        let count = outside.count.lock().unwrap_or_else(PoisonError::into_inner);
        problems.extend(users.iter().flat_map(|(namespace, user)| differences(&count, namespace, user)));
        (count.items.values().map(|copies| copies.ever.len()).sum(), count.gaps)
    };
    let recoveries = replicas.recoveries();
    problems.extend(delete_all(server, &namespaces, &outside).await);
    let mut times: Vec<Duration> = users.values().flat_map(|user| waits(&observer.history, user)).collect();
    times.sort();
    Outcome {
        replicas: replicas.all().len(),
        namespaces: namespaces.len(),
        time,
        interval,
        kills,
        recoveries,
        resources: users.values().map(|user| user.items.len()).sum(),
        deleted: users.values().map(|user| user.deleted.len()).sum(),
        changes: users.values().map(|user| user.changes.len()).sum(),
        created,
        times,
        gaps,
        problems,
    }
}

// --- Users ----------------------------------------------------------------------------------------------------------

/// Creates, changes and deletes Resources in a namespace until the time is over.
async fn act(resources: Api<DynamicObject>, namespace: String, mut numbers: Numbers, end: Instant) -> (String, User) {
    let mut user = User::default();
    for number in 0..OBJECTS {
        user.create(&resources, number).await;
    }
    let mut tick = tokio::time::interval(INTERVAL);
    tick.set_missed_tick_behavior(MissedTickBehavior::Skip);
    while Instant::now() < end {
        tick.tick().await;
        match numbers.below(10) {
            0 => user.create(&resources, user.items.len() + user.deleted.len()).await,
            1 if user.items.len() > OBJECTS / 2 => user.delete(&resources, &mut numbers).await,
            _ => user.change(&resources, &namespace, &mut numbers).await,
        }
    }
    (namespace, user)
}

impl User {
    async fn create(&mut self, resources: &Api<DynamicObject>, number: usize) {
        let (name, kind) = (format!("item-{number}"), Kind::of(number));
        let manifest = serde_json::from_value(manifest(&name, kind)).expect("an object");
        resources.create(&PostParams::default(), &manifest).await.expect("a new Resource");
        self.items.insert(name, Item { kind, revision: 1 });
    }

    async fn change(&mut self, resources: &Api<DynamicObject>, namespace: &str, numbers: &mut Numbers) {
        let index = numbers.below(self.items.len());
        let (name, item) = self.items.iter_mut().nth(index).expect("an item");
        item.revision += 1;
        let revision = item.revision.to_string();
        let change = json!({"spec": {"config": {"manifest": {"data": {"revision": revision}}}}});
        let sent = Instant::now();
        let changed = resources.patch(name, &PatchParams::default(), &Patch::Merge(&change)).await;
        let generation = changed.expect("a changed Resource").metadata.generation.unwrap_or_default();
        self.changes.push(((namespace.to_owned(), name.clone()), generation, sent));
    }

    async fn delete(&mut self, resources: &Api<DynamicObject>, numbers: &mut Numbers) {
        let name = self.items.keys().nth(numbers.below(self.items.len())).expect("an item").clone();
        resources.delete(&name, &DeleteParams::default()).await.expect("a deleted Resource");
        let item = self.items.remove(&name).expect("a known item");
        self.deleted.insert(name, item);
    }
}

fn manifest(name: &str, kind: Kind) -> Value {
    // With a generated name, an object that is created twice exists twice.
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": format!("{name}-")},
                        "immutable": kind != Kind::Update, "data": {"item": name, "revision": "1"}});
    let mut resource = workload::resource(name, "kubernetes_object", &json!({ "manifest": object }));
    if kind == Kind::ReplaceCreateFirst {
        resource["spec"]["lifecycle"] = json!({"createBeforeDestroy": true});
    }
    resource
}

/// How long the changes of objects that still exist took.
fn waits(history: &History, user: &User) -> Vec<Duration> {
    let existing = user.changes.iter().filter(|((_, name), ..)| user.items.contains_key(name));
    let wait = |(key, generation, sent): &(Key, i64, Instant)| Some(history.ready_at(key, *generation)? - *sent);
    existing.filter_map(wait).collect()
}

// --- The count ------------------------------------------------------------------------------------------------------

/// Waits until exactly the Resources of the user exist and are ready. Returns those that are not.
async fn not_ready(server: &Server<'_>, namespace: &str, user: &User, limit: Duration) -> Vec<String> {
    let start = Instant::now();
    loop {
        let all = server.resources(namespace).list(&ListParams::default()).await.expect("the Resources");
        let existing: BTreeMap<String, DynamicObject> =
            all.items.into_iter().map(|object| (object.metadata.name.clone().unwrap_or_default(), object)).collect();
        let mut problems = Vec::new();
        for name in user.items.keys() {
            match existing.get(name) {
                None => problems.push(format!("{namespace}/{name}: the Resource does not exist")),
                Some(object) if crate::observer::ready_generation(object).is_none() => {
                    problems.push(format!("{namespace}/{name}: not ready: {}", object.data["status"]["conditions"]));
                }
                Some(_) => {}
            }
        }
        let deleted = existing.keys().filter(|name| !user.items.contains_key(*name));
        problems.extend(deleted.map(|name| format!("{namespace}/{name}: deleted, and still exists")));
        if problems.is_empty() || start.elapsed() > limit {
            return problems;
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

/// Waits until the count outside has not changed for [`STABLE`].
async fn stable(outside: &Outside) {
    let state = || {
        let count = outside.count.lock().unwrap_or_else(PoisonError::into_inner);
        count.items.values().map(|copies| (copies.ever.len(), copies.alive.clone())).collect::<Vec<_>>()
    };
    let (mut before, mut since) = (state(), Instant::now());
    while since.elapsed() < STABLE {
        tokio::time::sleep(Duration::from_millis(500)).await;
        let now = state();
        if now != before {
            (before, since) = (now, Instant::now());
        }
    }
}

/// What the count outside shows that must not be.
fn differences(count: &Count, namespace: &str, user: &User) -> Vec<String> {
    let none = Copies::default();
    let mut problems = Vec::new();
    for (name, item, is_deleted) in items(user) {
        let copies = count.items.get(&(namespace.to_owned(), name.clone())).unwrap_or(&none);
        let mut problem = |what: String| problems.push(format!("{namespace}/{name}: {what}"));
        let wanted = usize::from(!is_deleted);
        if copies.alive.len() != wanted {
            problem(format!("{} ConfigMaps exist instead of {wanted}", copies.alive.len()));
        }
        let revision = item.revision.to_string();
        if copies.alive.values().any(|has| *has != revision) {
            problem(format!("the ConfigMap has revision {:?} instead of {revision}", copies.alive.values()));
        }
        // One that never changes its object was destroyed or doubled; the others are replaced once for each change.
        let most = if item.kind == Kind::Update { 1 } else { item.revision };
        if copies.ever.len() > most {
            problem(format!("{} ConfigMaps were created, more than {most}", copies.ever.len()));
        }
        if copies.most > 1 && item.kind != Kind::ReplaceCreateFirst {
            problem(format!("{} ConfigMaps existed at the same time", copies.most));
        }
    }
    let known = |name: &String| user.items.contains_key(name) || user.deleted.contains_key(name);
    let foreign = count.items.keys().filter(|(of, name)| of == namespace && !known(name));
    problems.extend(foreign.map(|(_, name)| format!("{namespace}/{name}: a ConfigMap of an unknown Resource")));
    problems
}

/// The Resources of a user, with whether they were deleted.
fn items(user: &User) -> impl Iterator<Item = (&String, &Item, bool)> {
    let existing = user.items.iter().map(|(name, item)| (name, item, false));
    existing.chain(user.deleted.iter().map(|(name, item)| (name, item, true)))
}

/// Deletes all Resources. Returns what still exists after that.
async fn delete_all(server: &Server<'_>, namespaces: &[String], outside: &Outside) -> Vec<String> {
    let start = Instant::now();
    for namespace in namespaces {
        let resources = server.resources(namespace);
        let deleted = resources.delete_collection(&DeleteParams::default(), &ListParams::default()).await;
        deleted.expect("deleted Resources");
    }
    for namespace in namespaces {
        while start.elapsed() < LIMIT {
            let left = server.resources(namespace).list_metadata(&ListParams::default().limit(1)).await;
            if left.expect("a list").items.is_empty() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    }
    stable(outside).await;
    let count = outside.count.lock().unwrap_or_else(PoisonError::into_inner);
    let left = count.items.iter().filter(|(_, copies)| !copies.alive.is_empty());
    left.map(|((namespace, name), _)| format!("{namespace}/{name}: a ConfigMap exists after everything was deleted"))
        .collect()
}
