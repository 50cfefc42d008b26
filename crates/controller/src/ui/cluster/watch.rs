//! The objects of one namespace, watched with the credentials of a user, for as long as the page is open.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::stream::{BoxStream, StreamExt as _, select_all};
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{Config, Event, watcher};
use kube::{Api, Client, ResourceExt as _};
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::rights::Rights;
use crate::ui::Current;
use crate::ui::observed::{self, ObservedObject, ObservedPlan};
use api::{DataSource, PlanObject, RawObject, Resource};
use process::backoff::Pauses;
use process::{Random as _, SystemRandom, lock, watch_error};

/// How many objects of one kind are kept. A graph of more is not readable, and each needs about a kilobyte.
const MAX_OBJECTS: usize = 10_000;
/// How many objects are listed at the same time: each can have more than a megabyte.
const PAGE: u32 = 50;
/// How many held Plans are kept.
const MAX_PLANS: usize = 200;
/// A watch that no page has used for this long ends. Longer than a page waits for one answer.
const IDLE: Duration = Duration::from_mins(1);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Resources,
    DataSources,
    Plans,
}

impl Kind {
    const ALL: [Self; 3] = [Self::Resources, Self::DataSources, Self::Plans];

    fn name(self) -> &'static str {
        match self {
            Self::Resources => "Resources",
            Self::DataSources => "DataSources",
            Self::Plans => "Plans",
        }
    }

    /// How many are kept.
    fn limit(self) -> usize {
        if self == Self::Plans { MAX_PLANS } else { MAX_OBJECTS }
    }

    fn is_visible(self, rights: Rights) -> bool {
        match self {
            Self::Resources => rights.resources,
            Self::DataSources => rights.data_sources,
            Self::Plans => rights.plans,
        }
    }
}

/// An object in the form that is kept.
enum Seen {
    Object(Box<ObservedObject>),
    /// `None`: a Plan that is not shown.
    Plan(Option<Box<ObservedPlan>>),
}

/// An event of one of the watches: the name of an object, and its content unless it was deleted.
enum Change {
    Begin,
    Applied(String, Seen),
    Deleted(String),
    /// All objects have been listed.
    Listed,
    Failed(String),
}

#[derive(Default)]
struct Watched {
    objects: BTreeMap<Kind, BTreeMap<String, ObservedObject>>,
    plans: BTreeMap<String, ObservedPlan>,
    /// The objects that a new list has not named yet.
    unlisted: BTreeMap<Kind, BTreeSet<String>>,
    /// The kinds that have been listed, or cannot be.
    known: BTreeSet<Kind>,
    /// The kinds of which not all objects are kept.
    cut: BTreeSet<Kind>,
    problems: BTreeMap<Kind, String>,
}

struct State {
    watched: Mutex<Watched>,
    /// Counts changes; 0 until everything is known that can be.
    version: watch::Sender<u64>,
    used: Mutex<Instant>,
}

/// The watch of a namespace. Dropping it ends it.
pub struct NamespaceWatch {
    /// Makes versions of different watches differ.
    id: u64,
    state: Arc<State>,
    _task: JoinSet<()>,
    _places: Vec<OwnedSemaphorePermit>,
}

impl NamespaceWatch {
    /// `places`: one for each limit of the watches that may exist at the same time.
    pub fn start(client: &Client, namespace: &str, places: Vec<OwnedSemaphorePermit>) -> Self {
        let used = Mutex::new(Instant::now());
        let state = Arc::new(State { watched: Mutex::default(), version: watch::Sender::new(0), used });
        let events = select_all([
            stream(Kind::Resources, Api::<RawObject<Resource>>::namespaced(client.clone(), namespace), |object| {
                Seen::Object(Box::new(observed::object(object, false)))
            }),
            stream(Kind::DataSources, Api::<RawObject<DataSource>>::namespaced(client.clone(), namespace), |object| {
                Seen::Object(Box::new(observed::object(object, true)))
            }),
            stream(Kind::Plans, Api::<RawObject<PlanObject>>::namespaced(client.clone(), namespace), |plan| {
                Seen::Plan(observed::plan(plan).map(Box::new))
            }),
        ]);
        let mut task = JoinSet::new();
        task.spawn(Arc::clone(&state).follow(events));
        Self { id: SystemRandom.number(), state, _task: task, _places: places }
    }

    /// A page needs it.
    pub fn used(&self) {
        *lock(&self.state.used) = Instant::now();
    }

    pub fn has_ended(&self) -> bool {
        lock(&self.state.used).elapsed() >= IDLE
    }

    /// Waits until there is another version than this one.
    pub async fn changed_from(&self, seen: Option<&str>) {
        let seen = seen.and_then(|seen| self.number(seen));
        let mut version = self.state.version.subscribe();
        let waited = version.wait_for(|version| *version > 0 && seen != Some(*version)).await.map(drop);
        if waited.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// The number in a version of this watch.
    fn number(&self, version: &str) -> Option<u64> {
        let mut parts = version.split('-');
        (parts.next()? == self.id.to_string()).then_some(())?;
        parts.next()?.parse().ok()
    }

    fn version(&self, rights: Rights) -> String {
        format!("{}-{}-{}", self.id, *self.state.version.borrow(), rights.bits())
    }

    /// Whether a version is the current one for a user with these rights.
    pub fn is_version_for(&self, seen: Option<&str>, rights: Rights) -> bool {
        seen.is_some_and(|seen| seen == self.version(rights))
    }

    /// The names of the held Plans with a change of this object.
    pub fn plans_of(&self, object: &str) -> Vec<String> {
        let watched = lock(&self.state.watched);
        let plans = watched.plans.iter().filter(|(_, plan)| plan.concerns(object));
        plans.map(|(name, _)| name.clone()).collect()
    }

    /// The current graph, without what the rights exclude.
    pub fn current(&self, namespace: &str, rights: Rights) -> Current {
        // Before the content: at worst, the page asks once more.
        let version = self.version(rights);
        let watched = lock(&self.state.watched);
        let objects = watched
            .objects
            .iter()
            .filter(|(kind, _)| kind.is_visible(rights))
            .flat_map(|(_, objects)| objects.values())
            .map(|object| (object.shown.name.clone(), object.clone()))
            .collect();
        let none = BTreeMap::new();
        let plans = if rights.plans { &watched.plans } else { &none };
        let mut snapshot = observed::snapshot(namespace, &objects, plans);
        snapshot.may_decide = rights.decide;
        let notes = Kind::ALL.into_iter().filter_map(|kind| {
            let why = match kind.is_visible(rights) {
                true => watched.problems.get(&kind)?.as_str(),
                false => "you may not list them",
            };
            Some(format!("{} are not shown: {why}", kind.name()))
        });
        let cut = watched.cut.iter().filter(|kind| kind.is_visible(rights));
        let cut = cut.map(|kind| format!("Only {} {} are shown.", kind.limit(), kind.name()));
        snapshot.notes = notes.chain(cut).collect();
        Current::Changed { version, snapshot: Arc::new(snapshot) }
    }
}

fn stream<K>(kind: Kind, api: Api<K>, see: impl Fn(&K) -> Seen + Send + 'static) -> BoxStream<'static, (Kind, Change)>
where
    K: kube::Resource + Clone + std::fmt::Debug + Send + serde::de::DeserializeOwned + 'static,
{
    let events = watcher(api, Config::default().page_size(PAGE)).backoff(Pauses::new(Arc::new(SystemRandom)));
    let changes = events.map(move |event| {
        let change = match event {
            Ok(Event::Init) => Change::Begin,
            Ok(Event::InitApply(object) | Event::Apply(object)) => Change::Applied(object.name_any(), see(&object)),
            Ok(Event::Delete(object)) => Change::Deleted(object.name_any()),
            Ok(Event::InitDone) => Change::Listed,
            Err(error) => Change::Failed(watch_error(&error)),
        };
        (kind, change)
    });
    changes.boxed()
}

impl State {
    async fn follow(self: Arc<Self>, mut events: impl futures::Stream<Item = (Kind, Change)> + Unpin) {
        loop {
            let idle_at = *lock(&self.used) + IDLE;
            tokio::select! {
                event = events.next() => match event {
                    Some((kind, change)) => self.apply(kind, change),
                    None => return,
                },
                () = tokio::time::sleep_until(idle_at) => {
                    if lock(&self.used).elapsed() >= IDLE {
                        return;
                    }
                }
            }
        }
    }

    fn apply(&self, kind: Kind, change: Change) {
        let mut watched = lock(&self.watched);
        let is_change = !matches!(change, Change::Begin);
        watched.apply(kind, change);
        if is_change && watched.known.len() == Kind::ALL.len() {
            self.version.send_modify(|version| *version += 1);
        }
    }
}

impl Watched {
    fn apply(&mut self, kind: Kind, change: Change) {
        match change {
            Change::Begin => {
                let names: BTreeSet<String> = match kind {
                    Kind::Plans => self.plans.keys().cloned().collect(),
                    _ => self.objects.get(&kind).into_iter().flat_map(|objects| objects.keys().cloned()).collect(),
                };
                self.unlisted.insert(kind, names);
            }
            Change::Applied(name, seen) => {
                if let Some(unlisted) = self.unlisted.get_mut(&kind) {
                    unlisted.remove(&name);
                }
                match seen {
                    Seen::Object(_) | Seen::Plan(Some(_)) if self.is_full(kind, &name) => drop(self.cut.insert(kind)),
                    Seen::Object(object) => drop(self.objects.entry(kind).or_default().insert(name, *object)),
                    Seen::Plan(Some(plan)) => drop(self.plans.insert(name, *plan)),
                    Seen::Plan(None) => drop(self.plans.remove(&name)),
                }
            }
            Change::Deleted(name) => self.remove(kind, &name),
            Change::Listed => {
                let gone = self.unlisted.remove(&kind).unwrap_or_default();
                gone.iter().for_each(|name| self.remove(kind, name));
                self.problems.remove(&kind);
                self.known.insert(kind);
            }
            Change::Failed(problem) => {
                self.problems.insert(kind, problem);
                self.known.insert(kind);
            }
        }
    }

    fn is_full(&self, kind: Kind, name: &str) -> bool {
        let (count, is_kept) = match kind {
            Kind::Plans => (self.plans.len(), self.plans.contains_key(name)),
            _ => self.objects.get(&kind).map_or((0, false), |objects| (objects.len(), objects.contains_key(name))),
        };
        count >= kind.limit() && !is_kept
    }

    fn remove(&mut self, kind: Kind, name: &str) {
        match kind {
            Kind::Plans => drop(self.plans.remove(name)),
            _ => drop(self.objects.get_mut(&kind).and_then(|objects| objects.remove(name))),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_so_many_held_plans_are_kept() {
        let spec = json!({"digest": "0".repeat(64), "changes": []});
        let plan = |name: &str| -> RawObject<PlanObject> {
            serde_json::from_str(&json!({"metadata": {"name": name}, "spec": spec}).to_string()).unwrap()
        };
        let mut watched = Watched::default();
        let mut apply = |number: usize, is_held: bool| {
            let name = format!("plan-{number}");
            let seen = Seen::Plan(observed::plan(&plan(&name)).filter(|_| is_held).map(Box::new));
            watched.apply(Kind::Plans, Change::Applied(name, seen));
            (watched.plans.len(), watched.cut.contains(&Kind::Plans))
        };
        assert_eq!((0..MAX_PLANS).map(|number| apply(number, true)).last(), Some((MAX_PLANS, false)));
        assert_eq!(apply(0, true), (MAX_PLANS, false), "a change of a Plan that is kept");
        assert_eq!(apply(MAX_PLANS, true), (MAX_PLANS, true));
        assert_eq!(apply(0, false), (MAX_PLANS - 1, true));
    }
}
