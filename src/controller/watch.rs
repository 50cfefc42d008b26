//! Watches: from the API server's streams to events of the world. Only compact forms are kept: an object is decoded as
//! it arrives, and its JSON, managed fields and last-applied annotation are dropped with it.

mod records;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures::{Stream, StreamExt};
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{ApiResource, DynamicObject, ObjectMeta, PartialObjectMeta};
use kube::runtime::WatchStreamExt;
use kube::runtime::utils::Backoff;
use kube::runtime::watcher::{self, Config, watcher};
use kube::{Api, Client, ResourceExt};

use super::metrics::Metrics;
use super::world::World;
use crate::api;
use crate::load::{self, Interner};
use crate::model::{Address, Diagnostic, Reason, Value, Version};
use crate::process::{Gate, Random};
use crate::reconcile::index::{Event, Observed, ObservedSettings, Published, SettingsMeta};
use crate::reconcile::retry;
use crate::store::ResourceMeta;

/// kubectl's copy of what was applied: no part of any desired state.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// At this many texts the table of those that Resources share begins anew.
const MOST_TEXTS: usize = 10_000;

/// What every watch has.
#[derive(Clone)]
pub struct Watch {
    /// Where events go.
    pub world: Arc<World>,
    /// Counts interruptions.
    pub metrics: Metrics,
    /// Randomness, for jitter.
    pub random: Arc<dyn Random>,
}

/// The pauses between attempts to watch. An API server that was away for a moment is back within a second or two; one
/// that stays away is asked every ten seconds at most, with jitter, so that replicas do not come all at once.
pub struct Pauses {
    failures: u32,
    random: Arc<dyn Random>,
}

impl Pauses {
    /// Pauses with jitter from `random`.
    pub fn new(random: Arc<dyn Random>) -> Self {
        Self { failures: 0, random }
    }
}

impl Iterator for Pauses {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        const LONGEST: Duration = Duration::from_secs(10);
        self.failures += 1;
        let pause = Duration::from_millis(100).saturating_mul(1 << self.failures.min(10)).min(LONGEST);
        Some(retry::spread(pause, self.random.number()))
    }
}

impl Backoff for Pauses {
    fn reset(&mut self) {
        self.failures = 0;
    }
}

impl Watch {
    /// Watches the Resources of one namespace, or of all.
    pub async fn resources(self, client: Client, namespace: Option<String>, service_account: Arc<str>, gate: Gate) {
        self.objects(client, namespace, service_account, gate, Kind::Resource).await;
    }

    /// Watches the `DataSources` of one namespace, or of all.
    pub async fn data_sources(self, client: Client, namespace: Option<String>, service_account: Arc<str>, gate: Gate) {
        self.objects(client, namespace, service_account, gate, Kind::DataSource).await;
    }

    async fn objects(
        self,
        client: Client,
        namespace: Option<String>,
        service_account: Arc<str>,
        gate: Gate,
        which: Kind,
    ) {
        // Dynamic objects, so that one that does not fit our types does not keep the others from being listed.
        let (kind, plural, relisting, listed) = match which {
            Kind::Resource => (
                ApiResource::erase::<api::Resource>(&()),
                "resources",
                Event::ResourcesRelisting,
                Event::ResourcesListed,
            ),
            Kind::DataSource => (
                ApiResource::erase::<api::DataSource>(&()),
                "datasources",
                Event::DataSourcesRelisting,
                Event::DataSourcesListed,
            ),
        };
        let api: Api<DynamicObject> = match &namespace {
            Some(namespace) => Api::namespaced_with(client, namespace, &kind),
            None => Api::all_with(client, &kind),
        };
        let mut stream = std::pin::pin!(self.events(plural, watcher(api, Config::default())));
        let only = namespace.as_deref();
        let mut interner = Interner::default();
        while let Some(event) = stream.next().await {
            // What repeats, repeats often; the rest is not worth holding on to.
            if interner.len() > MOST_TEXTS {
                interner = Interner::default();
            }
            match event {
                watcher::Event::Init => self.world.apply_to_all(only, &relisting),
                watcher::Event::InitApply(object) | watcher::Event::Apply(object) => {
                    let namespace: Arc<str> = object.namespace().unwrap_or_default().into();
                    let observed = observe(object, which, &service_account, &mut interner);
                    self.world.apply(&namespace, Event::ResourceApplied(observed));
                }
                watcher::Event::Delete(object) => {
                    let namespace: Arc<str> = object.namespace().unwrap_or_default().into();
                    self.world.apply(&namespace, Event::ResourceDeleted(which.address(&object.name_any()).name));
                }
                watcher::Event::InitDone => {
                    self.world.apply_to_all(only, &listed);
                    gate.open();
                }
            }
        }
    }

    /// Watches the Providers of the cluster. `tell` is called with each that was read.
    pub async fn providers(self, client: Client, tell: impl Fn(&api::Provider, &Arc<load::ProviderSpec>), gate: Gate) {
        let stream = watcher(Api::<api::Provider>::all(client), Config::default());
        let mut stream = std::pin::pin!(self.events("providers", stream));
        let mut known: BTreeMap<Arc<str>, Arc<load::ProviderSpec>> = BTreeMap::new();
        let mut listing = None;
        while let Some(event) = stream.next().await {
            match event {
                watcher::Event::Init => listing = Some(BTreeMap::new()),
                watcher::Event::InitApply(provider) => {
                    let spec = Arc::new(load::provider_from_api(&provider));
                    tell(&provider, &spec);
                    listing.get_or_insert_default().insert(spec.provider.name.clone(), spec);
                }
                watcher::Event::Apply(provider) => {
                    let spec = Arc::new(load::provider_from_api(&provider));
                    tell(&provider, &spec);
                    // Our own status comes back as well.
                    let same = |old: &Arc<load::ProviderSpec>| old.provider == spec.provider;
                    if !known.get(&spec.provider.name).is_some_and(same) {
                        known.insert(spec.provider.name.clone(), spec);
                        self.world.provide(known.clone());
                    }
                }
                watcher::Event::Delete(provider) => {
                    known.remove(&*provider.name_any());
                    self.world.provide(known.clone());
                }
                watcher::Event::InitDone => {
                    known = listing.take().unwrap_or_default();
                    self.world.provide(known.clone());
                    gate.open();
                }
            }
        }
    }

    /// Watches the `ProviderConfigs` of one namespace, or of all.
    pub async fn provider_configs(
        self,
        client: Client,
        namespace: Option<String>,
        service_account: Arc<str>,
        gate: Gate,
    ) {
        let api: Api<api::ProviderConfig> = match &namespace {
            Some(namespace) => Api::namespaced(client, namespace),
            None => Api::all(client),
        };
        let mut stream = std::pin::pin!(self.events("providerconfigs", watcher(api, Config::default())));
        let mut interner = Interner::default();
        let place = |object: &api::ProviderConfig| -> (Arc<str>, Arc<str>) {
            (object.namespace().unwrap_or_default().into(), object.name_any().into())
        };
        let mut known = BTreeSet::new();
        let mut unlisted = BTreeSet::new();
        while let Some(event) = stream.next().await {
            match event {
                watcher::Event::Init => unlisted.clone_from(&known),
                watcher::Event::InitApply(object) | watcher::Event::Apply(object) => {
                    let place = place(&object);
                    unlisted.remove(&place);
                    let observed = observe_settings(&object, &service_account, &mut interner);
                    self.world.apply(&place.0, Event::ProviderConfigApplied(observed));
                    known.insert(place);
                }
                watcher::Event::Delete(object) => {
                    let place = place(&object);
                    known.remove(&place);
                    self.world.apply(&place.0, Event::ProviderConfigDeleted(place.1));
                }
                watcher::Event::InitDone => {
                    for (namespace, name) in std::mem::take(&mut unlisted) {
                        known.remove(&(namespace.clone(), name.clone()));
                        self.world.apply(&namespace, Event::ProviderConfigDeleted(name));
                    }
                    gate.open();
                }
            }
        }
    }

    /// Watches one Namespace, or all.
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
                    self.world.apply(&name, describe(&object));
                }
                // What lived in it has told its own end; Resources cannot outlive their namespace.
                watcher::Event::Delete(object) => self.world.forget_namespace(&object.name_any()),
                watcher::Event::Init => {}
                watcher::Event::InitDone => gate.open(),
            }
        }
    }

    /// The events of a watch, which begins anew after every error.
    fn events<K, S>(&self, name: &'static str, stream: S) -> impl Stream<Item = watcher::Event<K>> + Send + use<K, S>
    where
        K: Send + 'static,
        S: Stream<Item = watcher::Result<watcher::Event<K>>> + Send,
    {
        let metrics = self.metrics.clone();
        let pauses = Pauses::new(self.random.clone());
        stream.backoff(pauses).filter_map(move |event| {
            let event = event.inspect_err(|error| {
                metrics.watch_failed(name);
                tracing::warn!(watch = name, %error, "a watch was interrupted, it begins anew");
            });
            std::future::ready(event.ok())
        })
    }
}

/// What is watched in one way, and kept together.
#[derive(Clone, Copy)]
enum Kind {
    Resource,
    DataSource,
}

impl Kind {
    fn address(self, name: &str) -> Address {
        match self {
            Self::Resource => Address::single(name),
            Self::DataSource => Address::data(name),
        }
    }
}

/// A Resource or a `DataSource` in compact form.
fn observe(mut object: DynamicObject, kind: Kind, service_account: &Arc<str>, interner: &mut Interner) -> Observed {
    // Who owns which field is half of what arrives, and nobody here reads it.
    object.metadata.managed_fields = None;
    let meta = Arc::new(ResourceMeta::of(&object.metadata, |text| interner.get(text)));
    let version = version(&object.metadata);
    let parsed = match kind {
        Kind::Resource => object
            .clone()
            .try_parse::<api::Resource>()
            .map(|resource| (load::from_api(&resource, service_account, interner), resource.status)),
        Kind::DataSource => object
            .clone()
            .try_parse::<api::DataSource>()
            .map(|data| (load::data_from_api(&data, service_account, interner), data.to_resource().status)),
    };
    match parsed {
        Ok((instance, status)) => Observed {
            instance: Arc::new(instance),
            published: status.map_or_else(Published::nothing, |status| Published::of(&status, interner)),
            version,
            meta,
        },
        Err(error) => Observed {
            instance: Arc::new(undecodable(object, kind, service_account, interner, &error.to_string())),
            published: Published::nothing(),
            version,
            meta,
        },
    }
}

/// A `ProviderConfig` in compact form.
pub fn observe_settings(
    object: &api::ProviderConfig,
    service_account: &Arc<str>,
    interner: &mut Interner,
) -> ObservedSettings {
    let config = Arc::new(load::provider_config_from_api(object, service_account, interner));
    let metadata = &object.metadata;
    let meta = SettingsMeta {
        uid: metadata.uid.as_deref().unwrap_or_default().into(),
        version: version(metadata),
        generation: metadata.generation.unwrap_or_default(),
        deleting: metadata.deletion_timestamp.is_some(),
        finalizers: metadata.finalizers.clone().unwrap_or_default(),
        status: object.status.clone().unwrap_or_default(),
    };
    ObservedSettings { config, meta: Arc::new(meta) }
}

/// A Resource that does not fit our types. It counts as present with an error, so that nothing of it is destroyed.
fn undecodable(
    object: DynamicObject,
    kind: Kind,
    service_account: &Arc<str>,
    interner: &mut Interner,
    error: &str,
) -> load::Instance {
    let type_name = object.data.pointer("/spec/type").and_then(|value| value.as_str()).unwrap_or_default().to_owned();
    let mut instance = match kind {
        Kind::Resource => {
            let spec = api::ResourceSpec { type_name, ..api::ResourceSpec::default() };
            let resource = api::Resource { metadata: object.metadata, spec, status: None };
            load::from_api(&resource, service_account, interner)
        }
        Kind::DataSource => {
            let spec = api::DataSourceSpec { type_name, ..api::DataSourceSpec::default() };
            let data = api::DataSource { metadata: object.metadata, spec, status: None };
            load::data_from_api(&data, service_account, interner)
        }
    };
    let what = format!("the {} cannot be read", instance.address.kind());
    let problem = Diagnostic::error(&instance.address, Reason::InvalidManifest, what);
    instance.problems.push(problem.because(error));
    instance
}

fn version(metadata: &ObjectMeta) -> Version {
    // The API promises a growing decimal. Without one the deletion counts as newer than anything known.
    let number = metadata.resource_version.as_deref().and_then(|text| text.parse().ok());
    Version(number.unwrap_or(u64::MAX))
}

fn describe(namespace: &PartialObjectMeta<Namespace>) -> Event {
    let texts = |map: &std::collections::BTreeMap<String, String>| {
        let kept = map.iter().filter(|(key, _)| *key != LAST_APPLIED);
        Value::map(kept.map(|(key, value)| (key.as_str(), Value::from(value.as_str()))))
    };
    let value = Value::map([
        ("name", Value::from(namespace.name_any().as_str())),
        ("labels", texts(namespace.labels())),
        ("annotations", texts(namespace.annotations())),
    ]);
    let metadata = &namespace.metadata;
    Event::Namespace { value, terminating: metadata.deletion_timestamp.as_ref().map(|_| version(metadata)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(json: serde_json::Value) -> DynamicObject {
        serde_json::from_value(json).unwrap()
    }

    #[test]
    fn a_resource_that_does_not_fit_counts_as_present_with_an_error() {
        let observed = observe(
            object(serde_json::json!({
                "apiVersion": "purlin.dev/v1alpha1", "kind": "Resource",
                "metadata": {"name": "a", "namespace": "shop", "uid": "u", "generation": 2},
                "spec": {"type": "terraform_data", "dependsOn": "not a list"},
            })),
            Kind::Resource,
            &"default".into(),
            &mut Interner::default(),
        );
        assert_eq!(&*observed.instance.type_name, "terraform_data");
        assert!(observed.instance.problems.iter().any(|problem| problem.reason == Reason::InvalidManifest));
        assert_eq!(observed.published.observed_generation, -1);
    }
}
