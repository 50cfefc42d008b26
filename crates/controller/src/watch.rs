//! Watches: converts the streams of the API server to events of namespaces. Only compact forms are kept: objects are
//! decoded on arrival, and their JSON, managed fields and last-applied annotation are dropped.
//!
//! [`Watch::follow`] is the loop of all of them, and a [`WatchedKind`] says what becomes of its objects. Three watches have
//! loops of their own, because their errors are none of the controller. `inputs::reader` and the driver of
//! `kubernetes_object` act as service accounts, and read what these may not watch from time to time.
//! `ui::cluster::watch` acts as a user, who sees the error.

mod records;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::marker::PhantomData;
use std::sync::Arc;

use futures::StreamExt as _;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1;
use kube::api::{ObjectMeta, PartialObjectMeta};
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Config, watcher};
use kube::{Api, Client, ResourceExt as _};
use serde::de::DeserializeOwned;
use tokio::sync::mpsc::UnboundedSender;

use super::leadership::Leadership;
use super::metrics::WatchMetrics;
use super::namespaces::Namespaces;
use super::providers::ObservedProvider;
use api::{PlanObject, RawObject};
use drivers::provider::requirement;
use engine::load::{self, Interner, ServiceAccounts};
use model::{Address, Namespace, Uid, Value, Version};
use process::backoff::{LoggedErrors, Pauses};
use process::{Clock, Gate, Random, Readiness, watch_error};
use runtime::reconcile::index::{Event, ListedKind, ObservedProviderConfig, ObservedResource, PublishedStatus};
use runtime::store::ResourceMeta;
use tfprovider::install::Installer;

pub use records::Records;

/// kubectl's copy of the applied manifest, which is no part of the desired state.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The interner of shared strings is reset at this size.
const MOST_TEXTS: usize = 10_000;

/// What becomes of the objects of one kind.
pub trait WatchedKind: Send + 'static {
    type Object: kube::Resource + Clone + Debug + DeserializeOwned + Send + 'static;

    /// The name in messages and metrics.
    const NAME: &'static str;
    /// Whether only objects in the shards that this replica holds matter.
    const IS_SHARDED: bool = true;
    /// Whether the process is not ready, and no shard leads, before the first list.
    const IS_REQUIRED: bool = true;

    fn api(&self, watch: &Watch) -> Api<Self::Object>;

    /// What is selected, also by the shards at the time when a watch begins.
    fn config(&self, _: &Watch) -> Config {
        Config::default()
    }

    /// The namespace in whose shard an object is, if it is in any.
    fn namespace(object: &Self::Object) -> Option<String> {
        object.namespace()
    }

    /// A new list of all objects starts.
    fn relisting(&mut self, _: &Watch) {}

    /// An object was listed, created or changed.
    fn applied(&mut self, watch: &Watch, object: Self::Object) -> impl Future<Output = ()> + Send;

    fn deleted(&mut self, watch: &Watch, object: &Self::Object);

    /// The list is complete.
    fn listed(&mut self, _: &Watch) {}
}

/// The dependencies of every watch.
#[derive(Clone)]
pub struct Watch {
    pub client: Client,
    /// The only namespace that is watched.
    pub only: Option<String>,
    pub namespaces: Arc<Namespaces>,
    pub leadership: Leadership,
    pub metrics: WatchMetrics,
    pub random: Arc<dyn Random>,
    pub clock: Arc<dyn Clock>,
    pub readiness: Readiness,
}

/// How a watch works.
#[derive(Default)]
struct Health {
    errors: LoggedErrors,
    /// The number of failures since it last worked.
    failures: u32,
}

impl Watch {
    /// Follows the objects of a kind for ever. The watch of a sharded kind begins after the first attempt to get shards,
    /// and begins again when shards are gained.
    pub fn follow<K: WatchedKind>(&self, kind: K) -> impl Future<Output = ()> + Send + use<K> {
        let gate = K::IS_REQUIRED.then(|| {
            let name: Arc<str> = match &self.only {
                Some(namespace) => format!("{} of {namespace}", K::NAME).into(),
                None => K::NAME.into(),
            };
            self.leadership.add_watch(&name);
            (self.readiness.gate(&*name), name)
        });
        self.clone().run(kind, gate)
    }

    async fn run<K: WatchedKind>(self, mut kind: K, gate: Option<(Gate, Arc<str>)>) {
        let mut health = Health::default();
        loop {
            // What is in no shard is listed once for all generations.
            let generation = if K::IS_SHARDED { self.leadership.clone().begun().await } else { u64::MAX };
            self.readiness.add_watch(K::NAME);
            let events = watcher(kind.api(&self), kind.config(&self))
                .backoff(Pauses::new(self.random.clone()))
                .take_until(self.leadership.clone().gained_after(generation));
            let mut events = std::pin::pin!(events);
            while let Some(event) = events.next().await {
                let event = match event {
                    Ok(event) => event,
                    Err(error) => {
                        self.failed(K::NAME, &mut health, watch_error(&error));
                        continue;
                    }
                };
                self.delivered(K::NAME, &mut health, &event);
                match event {
                    watcher::Event::Init => kind.relisting(&self),
                    watcher::Event::InitApply(object) | watcher::Event::Apply(object) => {
                        if K::namespace(&object).is_none_or(|namespace| self.leadership.watches(&namespace)) {
                            kind.applied(&self, object).await;
                        }
                    }
                    watcher::Event::Delete(object) => kind.deleted(&self, &object),
                    watcher::Event::InitDone => {
                        kind.listed(&self);
                        if let Some((gate, name)) = &gate {
                            self.leadership.listed(name, generation);
                            gate.open();
                        }
                    }
                }
            }
        }
    }

    /// The objects in the only namespace, or in all.
    pub(crate) fn scoped<K>(&self) -> Api<K>
    where
        K: kube::Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        match &self.only {
            Some(namespace) => Api::namespaced(self.client.clone(), namespace),
            None => Api::all(self.client.clone()),
        }
    }

    fn delivered<K>(&self, name: &'static str, health: &mut Health, event: &watcher::Event<K>) {
        // The beginning of a list says nothing: the list can fail.
        if matches!(event, watcher::Event::Init) {
            return self.metrics.listing(name);
        }
        self.metrics.delivered(name, self.clock.now());
        if std::mem::take(&mut health.failures) > 0 {
            self.readiness.watch(name, None);
        }
        if health.errors.succeeded() {
            tracing::info!(watch = name, "the watch works again");
        }
    }

    fn failed(&self, name: &'static str, health: &mut Health, error: String) {
        self.metrics.failed(name);
        health.failures += 1;
        if health.errors.is_news(&error) {
            tracing::warn!(watch = name, error, "watch interrupted; retrying");
        }
        // A single failure is no news: the API server ends watches.
        if health.failures > 1 {
            self.readiness.watch(name, Some(error));
        }
    }
}

/// A kind of objects that are desired in a namespace.
pub trait DesiredKind: kube::Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + 'static {
    /// The name in messages and metrics.
    const NAME: &'static str;
    const LISTED: ListedKind;

    fn observe(object: &RawObject<Self>, accounts: &ServiceAccounts, interner: &mut Interner) -> Event;

    fn deleted(name: &str) -> Event;
}

impl DesiredKind for api::Resource {
    const NAME: &'static str = "resources";
    const LISTED: ListedKind = ListedKind::Resources;

    fn observe(object: &RawObject<Self>, accounts: &ServiceAccounts, interner: &mut Interner) -> Event {
        let instance = load::from_raw(object, accounts, interner);
        Event::ResourceApplied(observe(object, instance, interner))
    }

    fn deleted(name: &str) -> Event {
        Event::ResourceDeleted(name.into())
    }
}

impl DesiredKind for api::DataSource {
    const NAME: &'static str = "datasources";
    const LISTED: ListedKind = ListedKind::DataSources;

    fn observe(object: &RawObject<Self>, accounts: &ServiceAccounts, interner: &mut Interner) -> Event {
        let instance = load::data_from_raw(object, accounts, interner);
        Event::ResourceApplied(observe(object, instance, interner))
    }

    fn deleted(name: &str) -> Event {
        Event::ResourceDeleted(Address::data(name).stem.name)
    }
}

impl DesiredKind for api::ProviderConfig {
    const NAME: &'static str = "providerconfigs";
    const LISTED: ListedKind = ListedKind::ProviderConfigs;

    fn observe(object: &RawObject<Self>, accounts: &ServiceAccounts, interner: &mut Interner) -> Event {
        Event::ProviderConfigApplied(observe_provider_config(object, accounts, interner))
    }

    fn deleted(name: &str) -> Event {
        Event::ProviderConfigDeleted(name.into())
    }
}

/// The objects of a kind that are desired in namespaces.
pub struct DesiredObjects<K> {
    accounts: ServiceAccounts,
    interner: Interner,
    kind: PhantomData<fn() -> K>,
}

impl<K> DesiredObjects<K> {
    pub fn new(accounts: ServiceAccounts) -> Self {
        Self { accounts, interner: Interner::default(), kind: PhantomData }
    }
}

impl<K: DesiredKind> WatchedKind for DesiredObjects<K> {
    type Object = RawObject<K>;

    const NAME: &'static str = K::NAME;

    fn api(&self, watch: &Watch) -> Api<Self::Object> {
        watch.scoped()
    }

    fn relisting(&mut self, watch: &Watch) {
        watch.namespaces.apply_to_all(watch.only.as_deref(), &Event::Relisting(K::LISTED));
    }

    async fn applied(&mut self, watch: &Watch, object: Self::Object) {
        // Frequent strings are interned again soon.
        if self.interner.len() > MOST_TEXTS {
            self.interner = Interner::default();
        }
        watch.namespaces.apply(&namespace_of(&object), K::observe(&object, &self.accounts, &mut self.interner));
    }

    fn deleted(&mut self, watch: &Watch, object: &Self::Object) {
        watch.namespaces.apply(&namespace_of(object), K::deleted(&object.name_any()));
    }

    fn listed(&mut self, watch: &Watch) {
        watch.namespaces.apply_to_all(watch.only.as_deref(), &Event::Listed(K::LISTED));
    }
}

/// The Providers of the cluster.
pub struct Providers {
    installer: Arc<Installer>,
    observed: UnboundedSender<ObservedProvider>,
    known: BTreeMap<Arc<str>, Arc<load::ProviderSpec>>,
    /// During a list: those that it contains.
    listing: Option<BTreeMap<Arc<str>, Arc<load::ProviderSpec>>>,
}

impl Providers {
    /// `observed` receives what the status of each is written from.
    pub fn new(installer: Arc<Installer>, observed: UnboundedSender<ObservedProvider>) -> Self {
        Self { installer, observed, known: BTreeMap::new(), listing: None }
    }
}

impl WatchedKind for Providers {
    type Object = RawObject<api::Provider>;

    const NAME: &'static str = "providers";
    const IS_SHARDED: bool = false;

    fn api(&self, watch: &Watch) -> Api<Self::Object> {
        Api::all(watch.client.clone())
    }

    fn relisting(&mut self, _: &Watch) {
        self.listing = Some(BTreeMap::new());
    }

    async fn applied(&mut self, watch: &Watch, object: Self::Object) {
        let spec = Arc::new(load::provider_from_raw(&object, &mut Interner::default()));
        let observed = ObservedProvider::of(&object, &spec);
        // Before the Provider is used: the locked version is installed again.
        self.installer.set_locked(&requirement(&spec.provider), observed.locked());
        // The receiver may be dropped during shutdown.
        let _ = self.observed.send(observed);
        let name = spec.provider.name.clone();
        if let Some(listing) = &mut self.listing {
            listing.insert(name, spec);
            return;
        }
        // The watch also delivers own status writes.
        let old = self.known.get(&name);
        if old.is_none_or(|old| old.provider != spec.provider || old.runner != spec.runner) {
            self.known.insert(name, spec);
            watch.namespaces.provide(self.known.clone());
        }
    }

    fn deleted(&mut self, watch: &Watch, object: &Self::Object) {
        self.known.remove(&*object.name_any());
        watch.namespaces.provide(self.known.clone());
    }

    fn listed(&mut self, watch: &Watch) {
        self.known = self.listing.take().unwrap_or_default();
        watch.namespaces.provide(self.known.clone());
    }
}

/// Plans. Only their metadata is received: the manifests of a Plan are requested when they are needed.
pub struct Plans {
    changes: UnboundedSender<PlanEvent>,
    known: BTreeSet<PlanKey>,
    /// During a list: those that it does not contain yet.
    unlisted: BTreeSet<PlanKey>,
}

impl Plans {
    pub fn new(changes: UnboundedSender<PlanEvent>) -> Self {
        Self { changes, known: BTreeSet::new(), unlisted: BTreeSet::new() }
    }

    fn send(&self, event: PlanEvent) {
        // The receiver is dropped during shutdown.
        let _ = self.changes.send(event);
    }
}

impl WatchedKind for Plans {
    type Object = PartialObjectMeta<PlanObject>;

    const NAME: &'static str = "plans";
    // Until their CRD is installed, there are none.
    const IS_REQUIRED: bool = false;

    fn api(&self, watch: &Watch) -> Api<Self::Object> {
        watch.scoped()
    }

    fn relisting(&mut self, _: &Watch) {
        self.unlisted.clone_from(&self.known);
    }

    async fn applied(&mut self, _: &Watch, plan: Self::Object) {
        let key = PlanKey::of(&plan);
        self.unlisted.remove(&key);
        self.known.insert(key.clone());
        let uid = plan.uid().unwrap_or_default().into();
        self.send(PlanEvent::Applied { key, uid, generation: plan.metadata.generation.unwrap_or_default() });
    }

    fn deleted(&mut self, _: &Watch, plan: &Self::Object) {
        let key = PlanKey::of(plan);
        self.known.remove(&key);
        self.send(PlanEvent::Deleted(key));
    }

    fn listed(&mut self, _: &Watch) {
        for key in std::mem::take(&mut self.unlisted) {
            self.known.remove(&key);
            self.send(PlanEvent::Deleted(key));
        }
    }
}

/// The Namespaces themselves.
pub struct NamespaceObjects;

impl WatchedKind for NamespaceObjects {
    type Object = PartialObjectMeta<v1::Namespace>;

    const NAME: &'static str = "namespaces";
    const IS_SHARDED: bool = false;

    fn api(&self, watch: &Watch) -> Api<Self::Object> {
        Api::all(watch.client.clone())
    }

    fn config(&self, watch: &Watch) -> Config {
        match &watch.only {
            Some(name) => Config::default().fields(&format!("metadata.name={name}")),
            None => Config::default(),
        }
    }

    async fn applied(&mut self, watch: &Watch, object: Self::Object) {
        watch.namespaces.apply(&object.name_any().into(), describe(&object));
    }

    // The watch of Resources has delivered their deletions; Resources cannot outlive their namespace.
    fn deleted(&mut self, watch: &Watch, object: &Self::Object) {
        watch.namespaces.forget_namespace(&object.name_any());
    }
}

pub(crate) fn namespace_of(object: &impl kube::Resource) -> Namespace {
    object.namespace().unwrap_or_default().into()
}

/// The namespace and the name of a Plan.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PlanKey {
    pub namespace: Namespace,
    pub name: Arc<str>,
}

/// A change of a Plan.
#[derive(Clone, Debug)]
pub enum PlanEvent {
    Applied {
        key: PlanKey,
        uid: Uid,
        generation: i64,
    },
    Deleted(PlanKey),
    /// A write of its status failed because another client has changed it.
    Conflict(PlanKey),
}

impl PlanKey {
    fn of(plan: &PartialObjectMeta<PlanObject>) -> Self {
        Self { namespace: namespace_of(plan), name: plan.name_any().into() }
    }
}

fn observe<K>(object: &RawObject<K>, instance: load::Instance, interner: &mut Interner) -> ObservedResource {
    // That of a `DataSource` has some of the fields.
    let status: Option<api::ResourceStatus> = object.status();
    observed(object, instance, status.map(Into::into), interner)
}

pub(crate) fn observed<K>(
    object: &RawObject<K>,
    instance: load::Instance,
    status: Option<api::Status>,
    interner: &mut Interner,
) -> ObservedResource {
    ObservedResource {
        instance: Arc::new(instance),
        published: status.map_or_else(PublishedStatus::empty, |status| PublishedStatus::of(&status, interner)),
        version: version(&object.metadata),
        meta: Arc::new(ResourceMeta::of(&object.metadata, |text| interner.get(text))),
    }
}

pub fn observe_provider_config(
    object: &RawObject<api::ProviderConfig>,
    accounts: &ServiceAccounts,
    interner: &mut Interner,
) -> ObservedProviderConfig {
    let config = load::provider_config_from_raw(object, accounts, interner);
    ObservedProviderConfig::of(config, object, version(&object.metadata))
}

fn version(metadata: &ObjectMeta) -> Version {
    // The API guarantees an increasing decimal number. Without one, a deletion counts as newer than anything known.
    let number = metadata.resource_version.as_deref().and_then(|text| text.parse().ok());
    Version(number.unwrap_or(u64::MAX))
}

fn describe(namespace: &PartialObjectMeta<v1::Namespace>) -> Event {
    let value = Value::map([
        ("name", Value::from(namespace.name_any().as_str())),
        ("labels", texts(namespace.labels())),
        ("annotations", texts(namespace.annotations())),
    ]);
    let metadata = &namespace.metadata;
    Event::Namespace { value, terminating: metadata.deletion_timestamp.as_ref().map(|_| version(metadata)) }
}

/// Labels or annotations.
fn texts(map: &BTreeMap<String, String>) -> Value {
    let shown = map.iter().filter(|(key, _)| *key != LAST_APPLIED);
    Value::map(shown.map(|(key, value)| (key.as_str(), Value::from(value.as_str()))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resource_that_cannot_be_decoded_exists_with_an_error() {
        let raw: RawObject<api::Resource> = serde_json::from_str(
            &serde_json::json!({
                "apiVersion": "purlin.dev/v1alpha1", "kind": "Resource",
                "metadata": {"name": "a", "namespace": "shop", "uid": "u", "generation": 2},
                "spec": {
                    "type": "terraform_data", "dependsOn": "not a list", "lifecycle": {"preventDestroy": true},
                },
            })
            .to_string(),
        )
        .unwrap();
        let interner = &mut Interner::default();
        let observed = observe(&raw, load::from_raw(&raw, &"default".into(), interner), interner);
        assert_eq!(&*observed.instance.type_name, "terraform_data");
        assert!(observed.instance.prevent_destroy, "what can be read counts");
        let problems: Vec<String> = observed.instance.problems.iter().map(ToString::to_string).collect();
        assert_eq!(
            problems,
            ["a: spec.dependsOn: expected a list, found a string (hint: write `[{ name: not a list }]`)"]
        );
        assert_eq!(observed.published.observed_generation, -1);
    }
}
