//! Watches: converts the streams of the API server to events of namespaces. Only compact forms are kept: objects are
//! decoded on arrival, and their JSON, managed fields and last-applied annotation are dropped.

mod records;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures::{Stream, StreamExt, stream};
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{ObjectMeta, PartialObjectMeta};
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Config, watcher};
use kube::{Api, Client, ResourceExt};
use serde::de::DeserializeOwned;
use tokio::sync::mpsc::UnboundedSender;

use super::leadership::Leadership;
use super::metrics::WatchMetrics;
use super::namespaces::Namespaces;
use api::{PlanObject, RawObject};
use engine::load::{self, Interner, ServiceAccounts};
use model::{Address, Value, Version};
use process::backoff::{LoggedErrors, Pauses};
use process::{Clock, Gate, Random, Readiness, watch_error};
use runtime::reconcile::index::{Event, ObservedProviderConfig, ObservedResource, PublishedStatus};
use runtime::store::ResourceMeta;

/// kubectl's copy of the applied manifest, which is no part of the desired state.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The interner of shared strings is reset at this size.
const MOST_TEXTS: usize = 10_000;

/// The dependencies of every watch.
#[derive(Clone)]
pub struct Watch {
    pub namespaces: Arc<Namespaces>,
    pub leadership: Leadership,
    pub metrics: WatchMetrics,
    pub random: Arc<dyn Random>,
    pub clock: Arc<dyn Clock>,
    pub readiness: Readiness,
}

/// The namespace and the name of a Plan.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PlanKey {
    pub namespace: Arc<str>,
    pub name: Arc<str>,
}

/// A change of a Plan.
#[derive(Clone, Debug)]
pub enum PlanEvent {
    Applied {
        key: PlanKey,
        uid: Arc<str>,
        generation: i64,
    },
    Deleted(PlanKey),
    /// A write of its status failed because another client has changed it.
    Conflict(PlanKey),
}

/// The state of the lists of one watch. While it is closed, the process is not ready. A shard leads only after all watches
/// have listed its namespaces.
pub struct ListGate {
    watch: Arc<str>,
    leadership: Leadership,
    gate: Gate,
}

impl ListGate {
    /// Adds a watch.
    pub fn new(watch: &str, leadership: &Leadership, readiness: &Readiness) -> Self {
        let watch: Arc<str> = watch.into();
        leadership.add_watch(&watch);
        Self { gate: readiness.gate(&*watch), watch, leadership: leadership.clone() }
    }

    /// A list is complete. `generation`: that of the shards when it began.
    fn listed(&self, generation: u64) {
        self.leadership.listed(&self.watch, generation);
        self.gate.open();
    }
}

impl Watch {
    pub fn new(
        namespaces: &Arc<Namespaces>,
        leadership: &Leadership,
        metrics: &WatchMetrics,
        random: &Arc<dyn Random>,
        clock: &Arc<dyn Clock>,
        readiness: &Readiness,
    ) -> Self {
        Self {
            namespaces: namespaces.clone(),
            leadership: leadership.clone(),
            metrics: metrics.clone(),
            random: random.clone(),
            clock: clock.clone(),
            readiness: readiness.clone(),
        }
    }

    pub async fn resources(self, client: Client, namespace: Option<String>, accounts: ServiceAccounts, gate: ListGate) {
        let kind = WatchedKind {
            plural: "resources",
            relisting: Event::ResourcesRelisting,
            listed: Event::ResourcesListed,
            address: |name| Address::single(name),
        };
        self.objects(client, namespace, gate, kind, |raw: &RawObject<api::Resource>, interner| {
            let decoded = load::from_raw(raw, &accounts, interner);
            observe(&raw.metadata, decoded, interner)
        })
        .await;
    }

    pub async fn data_sources(
        self,
        client: Client,
        namespace: Option<String>,
        accounts: ServiceAccounts,
        gate: ListGate,
    ) {
        let kind = WatchedKind {
            plural: "datasources",
            relisting: Event::DataSourcesRelisting,
            listed: Event::DataSourcesListed,
            address: |name| Address::data(name),
        };
        self.objects(client, namespace, gate, kind, |raw: &RawObject<api::DataSource>, interner| {
            let decoded = load::data_from_raw(raw, &accounts, interner);
            observe(&raw.metadata, decoded, interner)
        })
        .await;
    }

    /// Watches Resources or DataSources.
    async fn objects<K>(
        self,
        client: Client,
        namespace: Option<String>,
        gate: ListGate,
        kind: WatchedKind,
        observe: impl Fn(&RawObject<K>, &mut Interner) -> ObservedResource,
    ) where
        K: kube::Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + 'static,
    {
        let api: Api<RawObject<K>> = scoped(client, namespace.as_deref());
        let stream = self.sharded_events(kind.plural, move || watcher(api.clone(), Config::default()));
        let mut stream = std::pin::pin!(stream);
        let only = namespace.as_deref();
        let mut interner = Interner::default();
        while let Some((generation, event)) = stream.next().await {
            // Frequent strings are interned again soon.
            if interner.len() > MOST_TEXTS {
                interner = Interner::default();
            }
            match event {
                watcher::Event::Init => self.namespaces.apply_to_all(only, &kind.relisting),
                watcher::Event::InitApply(object) | watcher::Event::Apply(object) => {
                    let namespace: Arc<str> = object.namespace().unwrap_or_default().into();
                    if !self.leadership.watches(&namespace) {
                        continue;
                    }
                    let observed = observe(&object, &mut interner);
                    self.namespaces.apply(&namespace, Event::ResourceApplied(observed));
                }
                watcher::Event::Delete(object) => {
                    let namespace: Arc<str> = object.namespace().unwrap_or_default().into();
                    let name = (kind.address)(&object.name_any()).name;
                    self.namespaces.apply(&namespace, Event::ResourceDeleted(name));
                }
                watcher::Event::InitDone => {
                    self.namespaces.apply_to_all(only, &kind.listed);
                    gate.listed(generation);
                }
            }
        }
    }

    /// Watches the Providers of the cluster. `report` is called for each event of a Provider.
    pub async fn providers(
        self,
        client: Client,
        report: impl Fn(&RawObject<api::Provider>, &Arc<load::ProviderSpec>),
        gate: Gate,
    ) {
        let stream = watcher(Api::<RawObject<api::Provider>>::all(client), Config::default());
        let mut stream = std::pin::pin!(self.events("providers", stream));
        let mut known: BTreeMap<Arc<str>, Arc<load::ProviderSpec>> = BTreeMap::new();
        let mut listing = None;
        while let Some(event) = stream.next().await {
            match event {
                watcher::Event::Init => listing = Some(BTreeMap::new()),
                watcher::Event::InitApply(provider) => {
                    let spec = Arc::new(load::provider_from_raw(&provider));
                    report(&provider, &spec);
                    listing.get_or_insert_default().insert(spec.provider.name.clone(), spec);
                }
                watcher::Event::Apply(provider) => {
                    let spec = Arc::new(load::provider_from_raw(&provider));
                    report(&provider, &spec);
                    // The watch also delivers own status writes.
                    let old = known.get(&spec.provider.name);
                    if old.is_none_or(|old| old.provider != spec.provider || old.runner != spec.runner) {
                        known.insert(spec.provider.name.clone(), spec);
                        self.namespaces.provide(known.clone());
                    }
                }
                watcher::Event::Delete(provider) => {
                    known.remove(&*provider.name_any());
                    self.namespaces.provide(known.clone());
                }
                watcher::Event::InitDone => {
                    known = listing.take().unwrap_or_default();
                    self.namespaces.provide(known.clone());
                    gate.open();
                }
            }
        }
    }

    pub async fn provider_configs(
        self,
        client: Client,
        namespace: Option<String>,
        accounts: ServiceAccounts,
        gate: ListGate,
    ) {
        let api: Api<RawObject<api::ProviderConfig>> = scoped(client, namespace.as_deref());
        let mut changes = std::pin::pin!(self.changes("providerconfigs", api));
        let mut interner = Interner::default();
        while let Some(change) = changes.next().await {
            match change {
                Change::Applied(namespace, object) => {
                    let observed = observe_provider_config(&object, &accounts, &mut interner);
                    self.namespaces.apply(&namespace, Event::ProviderConfigApplied(observed));
                }
                Change::Deleted(namespace, name) => {
                    self.namespaces.apply(&namespace, Event::ProviderConfigDeleted(name));
                }
                Change::Listed(generation) => gate.listed(generation),
            }
        }
    }

    /// Sends the changes of Plans in a namespace, or in all. It receives metadata only: the manifests of a Plan are
    /// requested when they are needed.
    pub async fn plans(self, client: Client, namespace: Option<String>, send: UnboundedSender<PlanEvent>) {
        let api: Api<PartialObjectMeta<PlanObject>> = scoped(client, namespace.as_deref());
        let mut changes = std::pin::pin!(self.changes("plans", api));
        while let Some(change) = changes.next().await {
            let event = match change {
                Change::Applied(namespace, plan) => PlanEvent::Applied {
                    key: PlanKey { namespace, name: plan.name_any().into() },
                    uid: plan.uid().unwrap_or_default().into(),
                    generation: plan.metadata.generation.unwrap_or_default(),
                },
                Change::Deleted(namespace, name) => PlanEvent::Deleted(PlanKey { namespace, name }),
                Change::Listed(_) => continue,
            };
            // The receiver is dropped during shutdown.
            if send.send(event).is_err() {
                return;
            }
        }
    }

    pub async fn namespaces(self, client: Client, only: Option<String>, gate: Gate) {
        let config = match &only {
            Some(name) => Config::default().fields(&format!("metadata.name={name}")),
            None => Config::default(),
        };
        let stream = watcher(Api::<PartialObjectMeta<Namespace>>::all(client), config);
        let mut stream = std::pin::pin!(self.events("namespaces", stream));
        while let Some(event) = stream.next().await {
            match event {
                watcher::Event::InitApply(object) | watcher::Event::Apply(object) => {
                    let name: Arc<str> = object.name_any().into();
                    self.namespaces.apply(&name, describe(&object));
                }
                // The watch of Resources has delivered their deletions; Resources cannot outlive their namespace.
                watcher::Event::Delete(object) => self.namespaces.forget_namespace(&object.name_any()),
                watcher::Event::Init => {}
                watcher::Event::InitDone => gate.open(),
            }
        }
    }

    /// The changes of the objects in the shards that this replica holds. What a list lacks is deleted.
    fn changes<K>(&self, name: &'static str, api: Api<K>) -> impl Stream<Item = Change<K>> + Send
    where
        K: kube::Resource + Clone + std::fmt::Debug + DeserializeOwned + Send + 'static,
    {
        let leadership = self.leadership.clone();
        let (mut known, mut unlisted) = (BTreeSet::new(), BTreeSet::new());
        let events = self.sharded_events(name, move || watcher(api.clone(), Config::default()));
        let changes = events.map(move |(generation, event)| match event {
            watcher::Event::Init => {
                unlisted.clone_from(&known);
                Vec::new()
            }
            watcher::Event::InitApply(object) | watcher::Event::Apply(object) => {
                let place = place(&object);
                if !leadership.watches(&place.0) {
                    return Vec::new();
                }
                unlisted.remove(&place);
                known.insert(place.clone());
                vec![Change::Applied(place.0, object)]
            }
            watcher::Event::Delete(object) => {
                let place = place(&object);
                known.remove(&place);
                vec![Change::Deleted(place.0, place.1)]
            }
            watcher::Event::InitDone => {
                let gone = std::mem::take(&mut unlisted);
                known.retain(|place| !gone.contains(place));
                let deleted = gone.into_iter().map(|(namespace, name)| Change::Deleted(namespace, name));
                deleted.chain([Change::Listed(generation)]).collect()
            }
        });
        changes.flat_map(stream::iter)
    }

    /// The events of a watch of all shards that this replica holds, with the generation of the shards for which its last
    /// list began. It begins after the first attempt to get shards, and begins again when shards are gained. `start` may
    /// select by the shards at that time. Other objects are left to the caller.
    fn sharded_events<K, S>(
        &self,
        name: &'static str,
        start: impl Fn() -> S + Send,
    ) -> impl Stream<Item = (u64, watcher::Event<K>)> + Send
    where
        K: Send + 'static,
        S: Stream<Item = watcher::Result<watcher::Event<K>>> + Send,
    {
        let (watch, leadership) = (self.clone(), self.leadership.clone());
        stream::repeat(()).then(move |()| leadership.clone().begun()).flat_map(move |generation| {
            let until = watch.leadership.clone().gained_after(generation);
            watch.events(name, start()).map(move |event| (generation, event)).take_until(until)
        })
    }

    /// The events of a watch, which restarts after every error.
    fn events<K, S>(&self, name: &'static str, stream: S) -> impl Stream<Item = watcher::Event<K>> + Send + use<K, S>
    where
        K: Send + 'static,
        S: Stream<Item = watcher::Result<watcher::Event<K>>> + Send,
    {
        let (metrics, clock, readiness) = (self.metrics.clone(), self.clock.clone(), self.readiness.clone());
        let pauses = Pauses::new(self.random.clone());
        let (mut errors, mut failures) = (LoggedErrors::default(), 0_u32);
        readiness.add_watch(name);
        stream.backoff(pauses).filter_map(move |event| {
            match &event {
                Ok(watcher::Event::Init) => metrics.listing(name),
                Ok(_) => {
                    metrics.delivered(name, clock.now());
                    if std::mem::take(&mut failures) > 0 {
                        readiness.watch(name, None);
                    }
                    if errors.succeeded() {
                        tracing::info!(watch = name, "the watch works again");
                    }
                }
                Err(error) => {
                    metrics.failed(name);
                    failures += 1;
                    let error = watch_error(error);
                    if errors.is_news(&error) {
                        tracing::warn!(watch = name, error, "watch interrupted; retrying");
                    }
                    // A single failure is no news: the API server ends watches.
                    if failures > 1 {
                        readiness.watch(name, Some(error));
                    }
                }
            }
            std::future::ready(event.ok())
        })
    }
}

/// A change of an object in a namespace.
enum Change<K> {
    Applied(Arc<str>, K),
    /// The namespace and the name.
    Deleted(Arc<str>, Arc<str>),
    /// A list is complete. It began with this generation of the shards.
    Listed(u64),
}

/// Resources or DataSources.
struct WatchedKind {
    plural: &'static str,
    relisting: Event,
    listed: Event,
    address: fn(&str) -> Address,
}

/// The namespace and the name of an object.
fn place(object: &impl kube::Resource) -> (Arc<str>, Arc<str>) {
    (object.namespace().unwrap_or_default().into(), object.name_any().into())
}

/// The objects in a namespace, or in all.
fn scoped<K>(client: Client, namespace: Option<&str>) -> Api<K>
where
    K: kube::Resource<DynamicType = (), Scope = NamespaceResourceScope>,
{
    match namespace {
        Some(namespace) => Api::namespaced(client, namespace),
        None => Api::all(client),
    }
}

fn observe(
    metadata: &ObjectMeta,
    (instance, status): (load::Instance, Option<api::ResourceStatus>),
    interner: &mut Interner,
) -> ObservedResource {
    ObservedResource {
        instance: Arc::new(instance),
        published: status.map_or_else(PublishedStatus::empty, |status| PublishedStatus::of(&status, interner)),
        version: version(metadata),
        meta: Arc::new(ResourceMeta::of(metadata, |text| interner.get(text))),
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

fn describe(namespace: &PartialObjectMeta<Namespace>) -> Event {
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
        let observed = observe(&raw.metadata, load::from_raw(&raw, &"default".into(), interner), interner);
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
