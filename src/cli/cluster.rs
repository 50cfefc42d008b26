//! Access to a cluster: Resources with their status, and the controller's records.

mod editor;
pub mod selection;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use kube::api::{ListParams, ObjectMeta, Patch, PatchParams};
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::core::NamespaceResourceScope;
use kube::{Api, Client};
use serde_json::json;

use super::failure::Failure as CommandFailure;
use super::inputs::Inputs;
use super::options::Cluster;
use super::output::Console;
use super::view::{self, View};
use api::{DataSource, RawObject, Resource};
use drivers::Registry;
use drivers::kubernetes_object::{self, KubernetesObject, OwnerScope, kubeconfig_problem};
use engine::load::{self, Config, DataLookup, Instance};
use engine::plan::ObjectBlock;
use model::{Address, DataKind, DataRef, Reason, Value};
use process::{Shutdown, SystemClock, SystemRandom, request_error};
use runtime::execute::Limits;
use runtime::store::LoadedRecords;
use runtime::store::secrets::{RequestError, SecretContent, Secrets};

pub use editor::ClusterEditor;

/// How many Resources are listed with one request.
const PAGE_SIZE: u32 = 500;

/// The controller's default service account, unless its flag sets another.
pub const DEFAULT_SERVICE_ACCOUNT: &str = "default";

/// A client and a namespace.
struct Connection {
    client: Client,
    namespace: String,
    /// For messages.
    context: String,
}

impl Connection {
    async fn open(target: &Cluster) -> anyhow::Result<Self> {
        let kubeconfig = target.kubeconfig.as_ref().map_or_else(Kubeconfig::read, Kubeconfig::read_from);
        let kubeconfig = kubeconfig.map_err(|error| unusable(target, &error))?;
        let context = target.context.clone().or_else(|| kubeconfig.current_context.clone()).unwrap_or_default();
        let options = KubeConfigOptions { context: target.context.clone(), ..KubeConfigOptions::default() };
        let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options).await;
        let config = config.map_err(|error| unusable(target, &error))?;
        let namespace = target.namespace.clone().unwrap_or_else(|| config.default_namespace.clone());
        Ok(Self { client: kubernetes_object::client(config)?, namespace, context })
    }

    async fn open_and_announce(target: &Cluster, console: Console) -> anyhow::Result<Self> {
        let connection = Self::open(target).await?;
        connection.announce(target, false, console);
        Ok(connection)
    }

    fn announce(&self, target: &Cluster, all_namespaces: bool, console: Console) {
        let Self { context, namespace, .. } = self;
        let place = if all_namespaces { "all namespaces".to_owned() } else { format!("namespace `{namespace}`") };
        console.notice(&format!("Working on the cluster of context `{context}`, {place}"));
        if let Some(records) = target.records_above() {
            console.notice(&format!("hint: {records}"));
        }
    }

    fn secrets(&self, target: &Cluster) -> Secrets {
        let (client, namespace) = (self.client.clone(), target.controller_namespace.as_str());
        Secrets::new(client, namespace, Arc::new(SystemRandom), Shutdown::default()).for_user()
    }

    /// The objects of a kind in the namespace.
    fn api<K>(&self) -> Api<K>
    where
        K: kube::Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    async fn all<K>(&self) -> anyhow::Result<Vec<K>>
    where
        K: kube::Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
        K: Clone + std::fmt::Debug + serde::de::DeserializeOwned,
    {
        list_all(&self.api(), &ListParams::default()).await
    }

    /// The variable `ns` of expressions. Without permission to read the Namespace, its labels are unknown, and
    /// expressions that use them fail.
    async fn namespace_value(&self) -> Value {
        let namespace = Api::<Namespace>::all(self.client.clone()).get_opt(&self.namespace).await.ok().flatten();
        let metadata = namespace.map(|namespace| namespace.metadata).unwrap_or_default();
        Value::map([
            ("name", Value::from(self.namespace.as_str())),
            ("labels", map_of_strings(metadata.labels)),
            ("annotations", map_of_strings(metadata.annotations)),
        ])
    }

    /// The desired state as the controller loads it, except that inputs are read with the user's permissions.
    async fn config(&self) -> anyhow::Result<Config> {
        let (accounts, interner) = (DEFAULT_SERVICE_ACCOUNT.into(), &mut load::Interner::default());
        let (resources, data) = (self.all::<RawObject<Resource>>().await?, self.all::<RawObject<DataSource>>().await?);
        let resources = resources.iter().map(|resource| load::from_raw(resource, &accounts, interner));
        let mut instances: Vec<Instance> = resources.collect();
        instances.extend(data.iter().map(|data| load::data_from_raw(data, &accounts, interner)));
        self.resolve_inputs(&mut instances).await;
        let mut config = Config { namespace: self.namespace.as_str().into(), ..Config::default() };
        instances.into_iter().for_each(|instance| config.add(Arc::new(instance)));
        config.link();
        Ok(config)
    }

    async fn resolve_inputs(&self, instances: &mut [Instance]) {
        let references: BTreeSet<DataRef> =
            instances.iter().flat_map(|instance| instance.inputs.objects()).cloned().collect();
        let mut data = BTreeMap::new();
        for object in references {
            let lookup = self.data(&object).await.unwrap_or_else(|error| unreadable_input(&error));
            data.insert(object, lookup);
        }
        for instance in instances.iter_mut().filter(|instance| !instance.inputs.declared.is_empty()) {
            instance.inputs = instance.inputs.resolve(Some(&instance.address), &|object: &DataRef| {
                data.get(object).cloned().unwrap_or(DataLookup::Missing)
            });
        }
    }

    async fn data(&self, object: &DataRef) -> kube::Result<DataLookup> {
        let texts = match object.kind {
            DataKind::ConfigMap => {
                self.api::<ConfigMap>().get_opt(&object.name).await?.as_ref().map(load::inputs::config_map_data)
            }
            DataKind::Secret => {
                self.api::<Secret>().get_opt(&object.name).await?.as_ref().map(load::inputs::secret_data)
            }
        };
        Ok(texts.map_or(DataLookup::Missing, |texts| DataLookup::Present(Arc::new(texts))))
    }

    /// Reads a Resource, or a `DataSource` converted to one.
    async fn get(&self, address: &Address) -> anyhow::Result<Resource> {
        let name = address.object_name();
        let resource = match address.is_data() {
            false => self.api::<Resource>().get_opt(name).await,
            true => self.api::<DataSource>().get_opt(name).await.map(|data| data.as_ref().map(as_resource)),
        };
        resource.map_err(with_hint)?.ok_or_else(|| not_found(address))
    }
}

fn unusable(target: &Cluster, error: &KubeconfigError) -> anyhow::Error {
    let hint = target.records_above();
    let hint = hint.unwrap_or_else(|| "use -f DIR for files, or --kubeconfig or --context for a cluster".to_owned());
    CommandFailure::hinted(kubeconfig_problem(error), hint)
}

fn map_of_strings(entries: Option<BTreeMap<String, String>>) -> Value {
    Value::map(entries.unwrap_or_default().into_iter().map(|(key, text)| (key, Value::from(text.as_str()))))
}

async fn list_all<K>(api: &Api<K>, params: &ListParams) -> anyhow::Result<Vec<K>>
where
    K: Clone + std::fmt::Debug + serde::de::DeserializeOwned,
{
    let mut items = Vec::new();
    let mut page = params.clone().limit(PAGE_SIZE);
    loop {
        let list = api.list(&page).await.map_err(with_hint)?;
        items.extend(list.items);
        match list.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => page = page.continue_token(&token),
            None => return Ok(items),
        }
    }
}

/// Converts a `DataSource` to a Resource named as in addresses, so that commands show both in the same way.
fn as_resource(data: &DataSource) -> Resource {
    let mut shown = data.to_resource();
    shown.metadata.name = shown.metadata.name.map(|name| Address::data(&name).to_string());
    shown
}

pub async fn client_of(kubeconfig: &std::path::Path) -> anyhow::Result<Client> {
    let config = config_of(kubeconfig).await.map_err(|error| anyhow::anyhow!(kubeconfig_problem(&error)))?;
    Ok(kubernetes_object::client(config)?)
}

async fn config_of(kubeconfig: &std::path::Path) -> Result<kube::Config, KubeconfigError> {
    kube::Config::from_custom_kubeconfig(Kubeconfig::read_from(kubeconfig)?, &KubeConfigOptions::default()).await
}

/// Lists the Resources of a namespace, then its `DataSources`.
pub async fn resources(target: &Cluster, console: Console) -> anyhow::Result<Vec<Resource>> {
    let connection = Connection::open_and_announce(target, console).await?;
    let mut resources = connection.all::<Resource>().await?;
    resources.extend(connection.all::<DataSource>().await?.iter().map(as_resource));
    if resources.is_empty() {
        require_namespace(&connection.client, &connection.namespace).await?;
    }
    Ok(resources)
}

/// The API server lists nothing in a namespace that does not exist, and no error. Nor does this, to a user who
/// may not read the Namespace.
async fn require_namespace(client: &Client, name: &str) -> anyhow::Result<()> {
    let found = Api::<Namespace>::all(client.clone()).get_metadata_opt(name).await;
    match found {
        Ok(None) => Err(CommandFailure::hinted(format!("there is no namespace `{name}`"), "name another with -n")),
        _ => Ok(()),
    }
}

/// Requires that a Resource exists, for a command that has announced the cluster. `name`: its name, or the address of one
/// of its instances.
pub async fn require(target: &Cluster, name: &str) -> anyhow::Result<()> {
    Connection::open(target).await?.get(&resource_address(name)).await.map(drop)
}

/// Reads a Resource by its name or the address of one of its instances, and the names of the Resources and `DataSources`
/// that use it.
pub async fn resource_and_users(
    target: &Cluster,
    name: &str,
    console: Console,
) -> anyhow::Result<(Resource, Vec<String>)> {
    let connection = Connection::open_and_announce(target, console).await?;
    let address = resource_address(name);
    let resource = connection.get(&address).await?;
    let mut users = connection.all::<Resource>().await?;
    users.extend(connection.all::<DataSource>().await?.iter().map(as_resource));
    users.retain(|user| {
        user.status.as_ref().is_some_and(|status| status.dependencies.iter().any(|used| **used == **address.name()))
    });
    Ok((resource, users.into_iter().filter_map(|user| user.metadata.name).collect()))
}

fn resource_address(name: &str) -> Address {
    let name = name.parse().map_or_else(|_| name.to_owned(), |address: Address| address.name().to_string());
    Address::single(name)
}

/// Reads Resources and records, and changes nothing. Objects with an open intent of the controller are held.
pub async fn inspect(target: &Cluster, limits: Limits, console: Console) -> anyhow::Result<View> {
    let connection = Connection::open_and_announce(target, console).await?;
    let config = connection.config().await?;
    let loaded = read_records(&connection, target).await?;
    let mut inputs = Inputs {
        config: Arc::new(config),
        recorded: loaded.records,
        indexed: loaded.indexed,
        rebuilt_indexes: loaded.rebuilt_indexes,
        namespace: connection.namespace_value().await,
        ..Inputs::default()
    };
    for found in loaded.unreadable {
        inputs.held.insert(found.address, ObjectBlock { reason: Reason::RecordUnreadable, message: found.message });
    }
    inputs.hold_open_intents("the controller resolves it");
    let kubernetes = KubernetesObject::as_client(connection.client, OwnerScope::Cluster, Arc::new(SystemClock));
    let engine = view::planning_engine(Registry::built_in(kubernetes), limits);
    Ok(View { engine, inputs })
}

/// A client for the cluster, and the namespace.
pub async fn client(target: &Cluster, console: Console) -> anyhow::Result<(Client, String)> {
    let connection = Connection::open_and_announce(target, console).await?;
    Ok((connection.client, connection.namespace))
}

pub async fn records(target: &Cluster, console: Console) -> anyhow::Result<LoadedRecords> {
    let connection = Connection::open_and_announce(target, console).await?;
    read_records(&connection, target).await
}

/// Reads the records of a namespace for editing.
pub async fn open_records(target: &Cluster, console: Console) -> anyhow::Result<(LoadedRecords, ClusterEditor)> {
    let connection = Connection::open_and_announce(target, console).await?;
    edited_records(&connection, target).await
}

async fn edited_records(connection: &Connection, target: &Cluster) -> anyhow::Result<(LoadedRecords, ClusterEditor)> {
    let loaded = read_records(connection, target).await?;
    let unreadable = loaded.unreadable.iter().map(|found| &found.address);
    let editor = ClusterEditor {
        namespace: connection.namespace.as_str().into(),
        secrets: connection.secrets(target),
        resources: connection.api(),
        recorded: loaded.records.keys().cloned().collect(),
        unreadable: unreadable.filter(|address| address.is_instance()).cloned().collect(),
        indexed: loaded.indexed.clone(),
    };
    Ok((loaded, editor))
}

async fn read_records(connection: &Connection, target: &Cluster) -> anyhow::Result<LoadedRecords> {
    let contents = connection
        .secrets(target)
        .load_all(Some(&connection.namespace))
        .await
        .map_err(|failure| record_error(&failure))?;
    let mut loaded = LoadedRecords::default();
    for contents in contents {
        match contents {
            Ok(SecretContent::Record(stored)) => drop(loaded.records.insert(stored.record.address.clone(), stored)),
            Ok(SecretContent::Family(family)) => {
                loaded.rebuilt_indexes.extend(family.rebuilt.then_some(family.name));
                loaded.indexed.extend(family.instances);
            }
            Ok(SecretContent::Split(_)) => {}
            Err(unreadable) => loaded.unreadable.push(unreadable),
        }
    }
    Ok(loaded)
}

// The service account may be allowed to read an input that the user cannot read; the hint says so.
fn unreadable_input(error: &kube::Error) -> DataLookup {
    let forbidden = matches!(error, kube::Error::Api(status) if status.is_forbidden());
    let reason = if forbidden { Reason::Forbidden } else { Reason::OperationFailed };
    let hint = "this command reads inputs with your permissions; the controller reads them as the service account";
    DataLookup::Unreadable { reason, why: request_error(error), hint: Some(hint.to_owned()) }
}

fn record_error(failure: &RequestError) -> anyhow::Error {
    let hint = match failure {
        RequestError::Conflict => "nothing was written; check the record and try again",
        _ => {
            "records are Secrets in the controller's namespace (--controller-namespace); you need permissions for them"
        }
    };
    CommandFailure::hinted(format!("the records cannot be accessed: {failure}"), hint)
}

fn not_found(address: &Address) -> anyhow::Error {
    let what = format!("there is no {} `{}`", address.kind(), address.object_name());
    CommandFailure::hinted(what, "`purlin get` lists all objects")
}

/// Removes the finalizer from one or all Resources, so that they can be deleted without deleting objects and records, and
/// the record annotation from those that are being deleted. For all Resources, it also removes the finalizers of
/// ProviderConfigs, which are then not in use. Returns the number of changed Resources.
///
/// # Errors
/// When the Resource does not exist, or the API server refuses a request.
pub async fn release(target: &Cluster, address: Option<&Address>) -> anyhow::Result<usize> {
    let connection = Connection::open(target).await?;
    let resources = connection.api::<Resource>();
    let chosen = match address {
        None => connection.all::<Resource>().await?,
        Some(address) => match resources.get_opt(address.name()).await.map_err(with_hint)? {
            Some(resource) => vec![resource],
            None => return Err(not_found(address)),
        },
    };
    let mut released = 0;
    for resource in chosen {
        let Some(patch) = release_patch(&resource) else { continue };
        let name = resource.metadata.name.clone().unwrap_or_default();
        resources.patch(&name, &PatchParams::default(), &Patch::Merge(patch)).await.map_err(with_hint)?;
        released += 1;
    }
    if address.is_none() {
        let configs = connection.api::<api::ProviderConfig>();
        for config in configs.list(&ListParams::default()).await.map_err(with_hint)? {
            let Some(patch) = without_finalizer(&config.metadata, api::IN_USE) else { continue };
            let name = config.metadata.name.as_deref().unwrap_or_default();
            configs.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.map_err(with_hint)?;
        }
    }
    Ok(released)
}

/// Returns `None` if the object does not have the finalizer.
fn without_finalizer(metadata: &ObjectMeta, ours: &str) -> Option<serde_json::Value> {
    let finalizers = metadata.finalizers.as_deref().unwrap_or_default();
    let others: Vec<&String> = finalizers.iter().filter(|finalizer| *finalizer != ours).collect();
    let marks = json!({"resourceVersion": metadata.resource_version, "finalizers": others});
    (others.len() < finalizers.len()).then(|| json!({ "metadata": marks }))
}

/// The patch contains the resourceVersion, so that it fails for a Resource that has changed in the meantime. Without its
/// annotation, a Resource whose record is lost would create its object a second time, so one that is not being deleted
/// keeps it.
fn release_patch(resource: &Resource) -> Option<serde_json::Value> {
    let without_finalizer = without_finalizer(&resource.metadata, api::FINALIZER);
    if resource.metadata.deletion_timestamp.is_none() {
        return without_finalizer;
    }
    let marked = !resource.annotation(api::RECORD).is_empty();
    let mut patch = match without_finalizer {
        Some(patch) => patch,
        None if marked => json!({"metadata": {"resourceVersion": resource.metadata.resource_version}}),
        None => return None,
    };
    patch["metadata"]["annotations"] = json!({api::RECORD: null});
    Some(patch)
}

fn with_hint(error: kube::Error) -> anyhow::Error {
    let hint = match &error {
        kube::Error::Api(status) if status.is_not_found() => {
            "install the custom resource definitions: `purlin crds | kubectl apply -f -`"
        }
        kube::Error::Api(status) if status.is_forbidden() => {
            "`get` and `explain` need `get` and `list` on resources.purlin.dev and datasources.purlin.dev"
        }
        kube::Error::Api(status) if status.is_conflict() => "another client changed the object; try again",
        _ => return error.into(),
    };
    CommandFailure::hinted(request_error(&error), hint)
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

    use super::*;

    #[test]
    fn a_release_keeps_other_finalizers() {
        let mut resource = Resource::default();
        assert_eq!(release_patch(&resource), None);
        resource.metadata.finalizers = Some(vec!["other".to_owned(), api::FINALIZER.to_owned()]);
        let patch = release_patch(&resource).unwrap();
        assert_eq!(patch["metadata"]["finalizers"], json!(["other"]));
        assert_eq!(patch["metadata"]["annotations"], json!(null), "its record may be lost");
        resource.metadata.deletion_timestamp = Some(Time(jiff::Timestamp::UNIX_EPOCH));
        let patch = release_patch(&resource).unwrap();
        assert_eq!(patch["metadata"]["annotations"], json!({api::RECORD: null}));
        let mut metadata = ObjectMeta::default();
        assert_eq!(without_finalizer(&metadata, api::IN_USE), None);
        metadata.finalizers = Some(vec![api::IN_USE.to_owned(), "other".to_owned()]);
        let patch = without_finalizer(&metadata, api::IN_USE).unwrap();
        assert_eq!(patch["metadata"]["finalizers"], json!(["other"]));
    }
}
