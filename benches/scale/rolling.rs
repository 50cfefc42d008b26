//! Replicas that are killed one after the other while users create, change and delete objects in all namespaces. At the
//! end, exactly one object must exist for each Resource, by the count outside.

use std::collections::BTreeMap;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

use kube::api::{DeleteParams, DynamicObject, ListParams};
use tokio::task::JoinSet;

use crate::measure::namespaces_with_rights;
use crate::observer::{History, Key, Observer, ready_generation};
use crate::outside::{Copies, Count, Outside};
use crate::processes::Numbers;
use crate::replicas::{Processes, Replicas};
use crate::server::Server;
use crate::user::{Item, Kind, User, act};
use crate::workload;

/// How long the replicas may take after the last kill until every object is ready.
const LIMIT: Duration = Duration::from_mins(5);

/// How long the count outside must not change before it is final.
const STABLE: Duration = Duration::from_secs(10);

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
                Some(object) if ready_generation(object).is_none() => {
                    problems.push(format!("{namespace}/{name}: not ready: {}", why_not_ready(object)));
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

/// The message of the condition Ready, and since when.
fn why_not_ready(object: &DynamicObject) -> String {
    let conditions = object.data["status"]["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let Some(ready) = conditions.iter().find(|condition| condition["type"] == "Ready") else {
        return "no status".to_owned();
    };
    let text = |field: &str| ready[field].as_str().unwrap_or_default();
    let (observed, generation) = (&ready["observedGeneration"], object.metadata.generation.unwrap_or_default());
    format!("{} (generation {observed} of {generation}, since {})", text("message"), text("lastTransitionTime"))
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
