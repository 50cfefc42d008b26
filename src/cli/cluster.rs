//! A cluster as the command line sees it: Resources with their status, and the controller's records.

mod editor;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use kube::api::{ListParams, ObjectMeta, Patch, PatchParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client};
use serde_json::json;

use super::failure::Failure as CommandFailure;
use super::options::Cluster;
use super::output::Console;
use super::situation::Situation;
use super::view::{self, View};
use crate::api::{self, DataSource, Resource};
use crate::driver::Registry;
use crate::driver::kubernetes_object::{KubernetesObject, OwnerScope};
use crate::execute::Limits;
use crate::load::{self, Config, Data, Instance};
use crate::model::{Address, DataKind, DataRef, Reason, Value};
use crate::plan::Held;
use crate::process::{SystemClock, SystemRandom};
use crate::store::Loaded;
use crate::store::secrets::{Decoded, Failure, Secrets};

pub use editor::ClusterEditor;

/// How many Resources one answer of the API server holds.
const PAGE: u32 = 500;

/// As whom the controller acts for Resources that name nobody, unless a flag of it says otherwise.
const DEFAULT_SERVICE_ACCOUNT: &str = "default";

/// A client, and the namespace it works on.
struct Connection {
    client: Client,
    namespace: String,
    /// The context in use, for people.
    context: String,
}

impl Connection {
    async fn open(target: &Cluster) -> anyhow::Result<Self> {
        let unusable = |error: &dyn std::fmt::Display| {
            let hint = "to work on files: -f DIR; to work on a cluster: --kubeconfig or --context";
            CommandFailure::hinted(format!("there is no usable kubeconfig: {error}"), hint)
        };
        let kubeconfig = target.kubeconfig.as_ref().map_or_else(Kubeconfig::read, Kubeconfig::read_from);
        let kubeconfig = kubeconfig.map_err(|error| unusable(&error))?;
        let context = target.context.clone().or_else(|| kubeconfig.current_context.clone()).unwrap_or_default();
        let options = KubeConfigOptions { context: target.context.clone(), ..KubeConfigOptions::default() };
        let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options).await;
        let config = config.map_err(|error| unusable(&error))?;
        let namespace = target.namespace.clone().unwrap_or_else(|| config.default_namespace.clone());
        Ok(Self { client: Client::try_from(config)?, namespace, context })
    }

    async fn announced(target: &Cluster, console: Console) -> anyhow::Result<Self> {
        let connection = Self::open(target).await?;
        let Self { context, namespace, .. } = &connection;
        console.notice(&format!("Working on the cluster of context `{context}`, namespace `{namespace}`"));
        Ok(connection)
    }

    /// The channel of a stop that never comes has no sender, which counts as "go on".
    fn secrets(&self, target: &Cluster) -> Secrets {
        let stop = tokio::sync::watch::channel(false).1;
        Secrets::new(self.client.clone(), target.controller_namespace.as_str(), Arc::new(SystemRandom), stop)
            .of_a_user()
    }

    fn resources(&self) -> Api<Resource> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// `ns` of expressions. Without the right to read the Namespace its labels are not known here, which the
    /// expression that needs them will tell.
    async fn namespace_value(&self) -> Value {
        let found = Api::<Namespace>::all(self.client.clone()).get_opt(&self.namespace).await.ok().flatten();
        let metadata = found.map(|namespace| namespace.metadata).unwrap_or_default();
        let map = |entries: Option<BTreeMap<String, String>>| {
            Value::map(entries.unwrap_or_default().into_iter().map(|(key, text)| (key, Value::from(text.as_str()))))
        };
        let (labels, annotations) = (map(metadata.labels), map(metadata.annotations));
        Value::map([("name", Value::from(self.namespace.as_str())), ("labels", labels), ("annotations", annotations)])
    }

    /// What Resources want, as the controller sees it, but for the inputs: they are read as the user of this command.
    async fn config(&self, resources: &[Resource], data: &[DataSource]) -> Config {
        let mut wanted = instances(resources, data);
        self.resolve_inputs(&mut wanted).await;
        let mut config = Config { namespace: self.namespace.as_str().into(), ..Config::default() };
        wanted.into_iter().for_each(|instance| config.add(Arc::new(instance)));
        config.link();
        config
    }

    async fn resolve_inputs(&self, instances: &mut [Instance]) {
        let wanted: BTreeSet<DataRef> =
            instances.iter().flat_map(|instance| instance.inputs.objects()).cloned().collect();
        let mut found = BTreeMap::new();
        for object in wanted {
            let data = self.data(&object).await.unwrap_or_else(|error| unreadable(&error));
            found.insert(object, data);
        }
        let find = |object: &DataRef| found.get(object).cloned().unwrap_or(Data::Missing);
        for instance in instances.iter_mut().filter(|instance| !instance.inputs.declared.is_empty()) {
            instance.inputs = instance.inputs.resolve(&instance.address, &find);
        }
    }

    async fn data(&self, object: &DataRef) -> kube::Result<Data> {
        let texts = match object.kind {
            DataKind::ConfigMap => {
                let api: Api<ConfigMap> = Api::namespaced(self.client.clone(), &self.namespace);
                api.get_opt(&object.name).await?.as_ref().map(load::inputs::texts_of_config_map)
            }
            DataKind::Secret => {
                let api: Api<Secret> = Api::namespaced(self.client.clone(), &self.namespace);
                api.get_opt(&object.name).await?.as_ref().map(load::inputs::texts_of_secret)
            }
        };
        Ok(texts.map_or(Data::Missing, |texts| Data::Present(Arc::new(texts))))
    }

    fn data_sources(&self) -> Api<DataSource> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    async fn all_resources(&self) -> anyhow::Result<Vec<Resource>> {
        all(&self.resources()).await
    }

    /// A Resource, or a `DataSource` in the form of one, by its name as addresses have it.
    async fn found(&self, address: &Address) -> anyhow::Result<Resource> {
        let name = address.object_name();
        let found = match address.is_data() {
            false => self.resources().get_opt(name).await,
            true => self.data_sources().get_opt(name).await.map(|found| found.as_ref().map(as_shown)),
        };
        found.map_err(explained)?.ok_or_else(|| missing(address))
    }

    async fn all_data_sources(&self) -> anyhow::Result<Vec<DataSource>> {
        all(&self.data_sources()).await
    }
}

async fn all<K>(api: &Api<K>) -> anyhow::Result<Vec<K>>
where
    K: Clone + std::fmt::Debug + serde::de::DeserializeOwned,
{
    let mut all = Vec::new();
    let mut page = ListParams::default().limit(PAGE);
    loop {
        let list = api.list(&page).await.map_err(explained)?;
        all.extend(list.items);
        match list.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => page = page.continue_token(&token),
            None => return Ok(all),
        }
    }
}

/// A `DataSource` in the form of a Resource, named as addresses name it: commands show both in one way.
fn as_shown(data: &DataSource) -> Resource {
    let mut shown = data.to_resource();
    shown.metadata.name = shown.metadata.name.map(|name| Address::data(&name).name.to_string());
    shown
}

/// What Resources and `DataSources` want, by itself.
fn instances(resources: &[Resource], data: &[DataSource]) -> Vec<Instance> {
    let service_account = Arc::from(DEFAULT_SERVICE_ACCOUNT);
    let mut interner = load::Interner::default();
    let mut all: Vec<Instance> =
        resources.iter().map(|resource| load::from_api(resource, &service_account, &mut interner)).collect();
    all.extend(data.iter().map(|data| load::data_from_api(data, &service_account, &mut interner)));
    all
}

/// A client for the current context of a kubeconfig.
pub async fn client_of(kubeconfig: &std::path::Path) -> anyhow::Result<Client> {
    let options = KubeConfigOptions::default();
    let config = kube::Config::from_custom_kubeconfig(Kubeconfig::read_from(kubeconfig)?, &options).await?;
    Ok(Client::try_from(config)?)
}

/// The Resources of a namespace, in order, and then its `DataSources`.
pub async fn resources(target: &Cluster, console: Console) -> anyhow::Result<Vec<Resource>> {
    let connection = Connection::announced(target, console).await?;
    let mut all = connection.all_resources().await?;
    all.extend(connection.all_data_sources().await?.iter().map(as_shown));
    Ok(all)
}

/// One Resource. An address stands for the Resource it is an instance of.
pub async fn resource(target: &Cluster, name: &str, console: Console) -> anyhow::Result<Resource> {
    let connection = Connection::announced(target, console).await?;
    let name = name.parse().map_or_else(|_| name.to_owned(), |address: Address| address.name.to_string());
    connection.found(&Address::single(name)).await
}

/// Reads Resources and records, and changes nothing. What the controller has under way is held.
pub async fn look(target: &Cluster, limits: Limits, console: Console) -> anyhow::Result<View> {
    let connection = Connection::announced(target, console).await?;
    let (resources, data) = (connection.all_resources().await?, connection.all_data_sources().await?);
    let loaded = read_records(&connection, target).await?;
    let mut situation = Situation {
        config: Arc::new(connection.config(&resources, &data).await),
        recorded: loaded.records,
        indexed: loaded.indexed,
        namespace: connection.namespace_value().await,
        ..Situation::default()
    };
    for found in loaded.unreadable {
        situation.held.insert(found.address, Held { reason: Reason::RecordUnreadable, message: found.message });
    }
    situation.hold_open_intents("the controller settles it");
    let kubernetes = KubernetesObject::as_client(connection.client, OwnerScope::Cluster, Arc::new(SystemClock));
    let engine = view::planning_engine(Registry::built_in(kubernetes), limits);
    Ok(View { engine, situation })
}

/// The records of a namespace.
pub async fn records(target: &Cluster, console: Console) -> anyhow::Result<Loaded> {
    let connection = Connection::announced(target, console).await?;
    read_records(&connection, target).await
}

/// The records of a namespace, and what edits them.
pub async fn open_records(target: &Cluster, console: Console) -> anyhow::Result<(Loaded, ClusterEditor)> {
    let connection = Connection::announced(target, console).await?;
    let loaded = read_records(&connection, target).await?;
    let editor = ClusterEditor {
        namespace: connection.namespace.as_str().into(),
        secrets: connection.secrets(target),
        resources: connection.resources(),
        recorded: loaded.records.keys().cloned().collect(),
        indexed: loaded.indexed.clone(),
    };
    Ok((loaded, editor))
}

async fn read_records(connection: &Connection, target: &Cluster) -> anyhow::Result<Loaded> {
    let found =
        connection.secrets(target).load_all(Some(&connection.namespace)).await.map_err(|failure| refused(&failure))?;
    let mut loaded = Loaded::default();
    for found in found {
        match found {
            Ok(Decoded::Record(stored)) => drop(loaded.records.insert(stored.record.address.clone(), stored)),
            Ok(Decoded::Family(family)) => loaded.indexed.extend(family.instances),
            Ok(Decoded::Parted(_)) => {}
            Err(unreadable) => loaded.unreadable.push(unreadable),
        }
    }
    Ok(loaded)
}

/// An input that the user may not read says nothing about what the service account may read.
fn unreadable(error: &kube::Error) -> Data {
    let forbidden = matches!(error, kube::Error::Api(status) if status.is_forbidden());
    let reason = if forbidden { Reason::Forbidden } else { Reason::OperationFailed };
    let hint = "a plan of a cluster reads inputs as its user; the controller reads them as the service account";
    Data::Unreadable { reason, why: error.to_string(), hint: Some(hint.to_owned()) }
}

fn refused(failure: &Failure) -> anyhow::Error {
    let hint = match failure {
        Failure::Conflict => "nothing was written; look again, then try again",
        _ => "records are Secrets in the controller's namespace (--controller-namespace) and need rights on those",
    };
    CommandFailure::hinted(format!("the records cannot be used: {failure}"), hint)
}

fn missing(address: &Address) -> anyhow::Error {
    let what = format!("there is no {} `{}`", address.kind(), address.object_name());
    CommandFailure::hinted(what, "`purlin get` lists all of them")
}

/// Changes a Resource, or the `DataSource` of a name `data.NAME`, as its user would. `patch` gives a merge patch, or nothing when it is so already.
pub async fn change(
    target: &Cluster,
    name: &str,
    console: Console,
    patch: impl Fn(&Resource) -> Option<serde_json::Value>,
) -> anyhow::Result<bool> {
    let connection = Connection::announced(target, console).await?;
    let address = Address::single(name);
    let found = connection.found(&address).await?;
    let Some(patch) = patch(&found).map(Patch::Merge) else { return Ok(false) };
    let params = PatchParams { field_manager: Some("purlin-cli".to_owned()), ..PatchParams::default() };
    let name = address.object_name();
    match address.is_data() {
        false => connection.resources().patch(name, &params, &patch).await.map(drop),
        true => connection.data_sources().patch(name, &params, &patch).await.map(drop),
    }
    .map_err(explained)?;
    Ok(true)
}

/// Removes finalizer and annotation from one Resource or all of them, so that they can go while objects and records
/// stay; with all of them the finalizers of ProviderConfigs, which have no users then. Gives how many had any.
pub async fn release(target: &Cluster, wanted: Option<&Address>) -> anyhow::Result<usize> {
    let connection = Connection::open(target).await?;
    let resources = connection.resources();
    let chosen = match wanted {
        None => connection.all_resources().await?,
        Some(address) => resources.get_opt(&address.name).await.map_err(explained)?.into_iter().collect(),
    };
    let mut released = 0;
    for resource in chosen {
        let Some(patch) = release_patch(&resource) else { continue };
        let name = resource.metadata.name.clone().unwrap_or_default();
        resources.patch(&name, &PatchParams::default(), &Patch::Merge(patch)).await.map_err(explained)?;
        released += 1;
    }
    if wanted.is_none() {
        let configs: Api<api::ProviderConfig> = Api::namespaced(connection.client.clone(), &connection.namespace);
        for config in configs.list(&ListParams::default()).await.map_err(explained)? {
            let Some(patch) = without_finalizer(&config.metadata, api::IN_USE) else { continue };
            let name = config.metadata.name.as_deref().unwrap_or_default();
            configs.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.map_err(explained)?;
        }
    }
    Ok(released)
}

/// `None`: it does not have the finalizer.
fn without_finalizer(metadata: &ObjectMeta, ours: &str) -> Option<serde_json::Value> {
    let finalizers = metadata.finalizers.as_deref().unwrap_or_default();
    let others: Vec<&String> = finalizers.iter().filter(|finalizer| *finalizer != ours).collect();
    let marks = json!({"resourceVersion": metadata.resource_version, "finalizers": others});
    (others.len() < finalizers.len()).then(|| json!({ "metadata": marks }))
}

/// The patch carries the resourceVersion: a Resource that changed meanwhile is not touched.
fn release_patch(resource: &Resource) -> Option<serde_json::Value> {
    let marked = !resource.annotation(api::RECORD).is_empty();
    let nothing = || json!({"metadata": {"resourceVersion": resource.metadata.resource_version}});
    let mut patch = without_finalizer(&resource.metadata, api::FINALIZER).or_else(|| marked.then(nothing))?;
    patch["metadata"]["annotations"] = json!({api::RECORD: null});
    Some(patch)
}

fn explained(error: kube::Error) -> anyhow::Error {
    let hint = match &error {
        kube::Error::Api(status) if status.is_not_found() => {
            "install the definitions: `purlin crds | kubectl apply -f -`"
        }
        kube::Error::Api(status) if status.is_forbidden() => {
            "`get` and `explain` need `get` and `list` on resources.purlin.dev and datasources.purlin.dev"
        }
        kube::Error::Api(status) if status.is_conflict() => {
            "somebody else changed it meanwhile; look again, then try again"
        }
        _ => return error.into(),
    };
    CommandFailure::hinted(error.to_string(), hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_leaves_what_others_have_put_there() {
        let mut resource = Resource::default();
        assert_eq!(release_patch(&resource), None);
        resource.metadata.finalizers = Some(vec!["other".to_owned(), api::FINALIZER.to_owned()]);
        let patch = release_patch(&resource).unwrap();
        assert_eq!(patch["metadata"]["finalizers"], json!(["other"]));
        let mut settings = ObjectMeta::default();
        assert_eq!(without_finalizer(&settings, api::IN_USE), None);
        settings.finalizers = Some(vec![api::IN_USE.to_owned(), "other".to_owned()]);
        let patch = without_finalizer(&settings, api::IN_USE).unwrap();
        assert_eq!(patch["metadata"]["finalizers"], json!(["other"]));
    }
}
