//! A user who creates, changes and deletes Resources in one namespace, and remembers what must exist.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use kube::Api;
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use tokio::time::MissedTickBehavior;

use crate::observer::Key;
use crate::processes::Numbers;
use crate::workload;

/// The objects that each user creates first.
const OBJECTS: usize = 30;

/// The time between two actions of a user.
const INTERVAL: Duration = Duration::from_millis(500);

/// What a change of an object must do.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
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
pub(crate) struct Item {
    pub(crate) kind: Kind,
    /// The last revision; the first is 1.
    pub(crate) revision: usize,
}

/// What one user has done.
#[derive(Default)]
pub(crate) struct User {
    pub(crate) items: BTreeMap<String, Item>,
    pub(crate) deleted: BTreeMap<String, Item>,
    /// The changes, each with the generation and the time of the request.
    pub(crate) changes: Vec<(Key, i64, Instant)>,
}

/// Creates, changes and deletes Resources in a namespace until the time is over.
pub(crate) async fn act(
    resources: Api<DynamicObject>,
    namespace: String,
    mut numbers: Numbers,
    end: Instant,
) -> (String, User) {
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
