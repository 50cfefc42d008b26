//! Converts a Terraform or OpenTofu state to manifests and records, and records to a state.
//!
//! The input is a state of version 4, optionally its configuration, and the objects as their providers read them. The
//! plan after a migration has no changes. This module does no I/O and calls no provider; `cli::commands::migrate` does.
//!
//! [`Migration::new`] reads the state, names its resources and maps their providers. [`Migration::gather`] takes the
//! objects of the providers, and [`Gathered::write`] creates the manifests and records, as often as the check of the plan
//! needs. [`export`] converts records to a state.
#![forbid(unsafe_code)]

mod address;
mod adjustments;
mod arguments;
mod configuration;
mod documents;
pub mod export;
mod gather;
mod moved;
mod names;
mod problem;
mod providers;
mod records;
mod references;
mod secrets;
mod state;
mod translate;
mod variables;
mod yaml;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub use adjustments::Adjustments;
pub use arguments::escape_value;
pub use configuration::{Configuration, Folder};
pub use gather::{AdoptedObject, without_provider};
pub use problem::Problem;
pub use state::{Object, Resource};

use configuration::Source;
use documents::{ResourceDocuments, Writer};
use drivers::provider::values::WrittenArguments;
use drivers::terraform_data;
use engine::load::Config;
use gather::MigratedResource;
use model::{Address, Provider, ProviderUse, Record, Value};
use providers::{ProviderMapping, ProviderSources};
use references::Index;
use state::{ParsedState, ProviderAddress};
use translate::{NamedResource, NamedResources, Place, Repetition, Translator};
use variables::Variables;

/// A parsed state.
#[derive(Debug)]
pub struct Migration {
    resources: Vec<Resource>,
    names: Vec<Arc<str>>,
    uses: BTreeMap<ProviderAddress, Arc<ProviderUse>>,
    configuration: Option<Configuration>,
    given: Config,
    notes: Vec<String>,
    outputs: Vec<String>,
}

/// One file of the directory of manifests.
#[derive(Debug)]
pub struct File {
    /// The file name.
    pub name: &'static str,
    pub text: String,
    /// The file holds sensitive values in plain text.
    pub is_secret: bool,
}

/// The name of the file with the Resources.
pub const RESOURCES: &str = "resources.yaml";

#[derive(Debug, Default)]
pub struct MigrationResult {
    pub files: Vec<File>,
    pub records: Vec<Record>,
    /// The number of migrated resources.
    pub resources: usize,
    /// The number of migrated data sources.
    pub data: usize,
    /// Notes for the user, one line each.
    pub notes: Vec<String>,
}

/// The objects of a state in the form of records, with their configuration.
#[derive(Debug)]
pub struct Gathered {
    resources: Vec<MigratedResource>,
    configuration: Option<Configuration>,
    given: Config,
    notes: Vec<String>,
    outputs: Vec<String>,
}

impl Migration {
    /// Reads a state. `given` holds existing provider documents; `names` maps addresses of resources to names that the
    /// user chose.
    ///
    /// # Errors
    /// All problems of the state and of the names.
    pub fn new(
        state: &str,
        configuration: Option<Configuration>,
        given: Config,
        names: &BTreeMap<String, String>,
    ) -> Result<Self, Vec<Problem>> {
        let mut state = state::parse(state).map_err(|problem| vec![problem])?;
        if let Some(configuration) = &configuration {
            moved::apply(&mut state, configuration);
        }
        let mut notes = configuration.as_ref().map(|known| differences(&state, known)).unwrap_or_default();
        notes.extend(select_data_sources(&mut state, configuration.as_ref()));
        let ParsedState { resources, outputs, .. } = state;
        let addresses: Vec<_> = resources.iter().map(|resource| &resource.address).collect();
        let names = names::names(&addresses, names)?;
        let used = resources.iter().map(|resource| &resource.provider).collect();
        let sources = ProviderSources {
            given: &given,
            configuration: configuration.as_ref(),
            translator: None,
            variables: &Variables::default(),
        };
        let chosen = providers::map_providers(used, sources);
        let uses = chosen.map_err(|problem| vec![problem])?.uses;
        Ok(Self { resources, names, uses, configuration, given, notes, outputs })
    }

    /// The resources and data sources to migrate. `gather` requires an [`AdoptedObject`] for each of their objects.
    pub fn resources(&self) -> &[Resource] {
        &self.resources
    }

    /// Returns the provider of a resource and the name of its configuration. `None`: the type is built in.
    pub fn provider(&self, resource: &Resource) -> Option<&Arc<ProviderUse>> {
        self.uses.get(&resource.provider)
    }

    /// Returns each provider that must be called once. `true`: managed objects need it.
    pub fn providers(&self) -> BTreeMap<&Arc<Provider>, bool> {
        let mut needed: BTreeMap<&Arc<Provider>, bool> = BTreeMap::new();
        for resource in &self.resources {
            if let Some(used) = self.provider(resource) {
                *needed.entry(&used.provider).or_default() |= !resource.address.is_data;
            }
        }
        needed
    }

    /// Returns the arguments that the configuration sets. `None`: there is no configuration, or it does not contain the
    /// resource.
    pub fn written_arguments(&self, resource: &Resource) -> Option<WrittenArguments> {
        let configuration = self.configuration.as_ref()?;
        let block = configuration.resource(&resource.address)?;
        let translator = Translator { configuration, resources: None };
        let place = Place::new(&resource.address.module, Repetition::None);
        Some(configuration::written(&block.arguments, &|source: &Source| translator.constant(source, &place)))
    }

    /// Converts the objects to the form of records. `answers` holds the objects of each resource, in order, or the
    /// problem of the resource.
    ///
    /// # Errors
    /// One problem for each resource that cannot be migrated. A data source with a problem is skipped, because it can
    /// be read again.
    pub fn gather(self, answers: Vec<Result<Vec<AdoptedObject>, Problem>>) -> Result<Gathered, Vec<Problem>> {
        let Self { resources, names, configuration, given, mut notes, outputs, .. } = self;
        let objects = resources.into_iter().zip(names).zip(answers);
        let (resources, unreadable) = gather::gather(objects, configuration.as_ref())?;
        notes.extend(unreadable);
        Ok(Gathered { resources, configuration, given, notes, outputs })
    }
}

impl Gathered {
    /// Creates manifests and records. `marked` returns a provider configuration with its sensitive values marked, if
    /// the provider has a schema.
    ///
    /// # Errors
    /// A document cannot be created.
    pub fn write(
        &self,
        adjustments: &Adjustments,
        marked: impl Fn(&Provider, &Value) -> Option<Value>,
    ) -> Result<MigrationResult, Problem> {
        let configuration = self.configuration.as_ref();
        let named = named_resources(&self.resources);
        let variables = Variables::new(configuration);
        let translator = || {
            let configuration = configuration.filter(|configuration| configuration.has_expressions())?;
            Some(Translator { configuration, resources: Some(&named) })
        };
        let for_providers = translator();
        // Skipped data sources need no provider.
        let used = self.resources.iter().map(|one| &one.provider).collect();
        let (given, translated) = (&self.given, for_providers.as_ref());
        let sources = ProviderSources { given, configuration, translator: translated, variables: &variables };
        let mut mapping = providers::map_providers(used, sources)?;
        let mut secrets = secrets::extract(&mut mapping, marked);
        let mut notes = std::mem::take(&mut mapping.notes);
        notes.extend(self.notes.iter().cloned());
        notes.extend(configuration.map(Configuration::notes).unwrap_or_default());
        notes.extend(self.outputs.iter().map(|name| output_note(name, translated)));
        let index = Index::new(&self.resources);
        let (translator, mapped, variables_of) = (translator(), &mapping, &variables);
        let writer =
            Writer { index: &index, configuration, translator, mapping: mapped, variables: variables_of, adjustments };
        let written = manifests(&self.resources, &writer, &mut notes)?;
        let data = self.resources.iter().filter(|one| one.address.is_data).count();
        let resources = self.resources.len() - data;
        notes.extend(written.iter().flat_map(|(_, written)| written.notes.clone()));
        secrets.extend(written.iter().filter_map(|(_, written)| written.secret.clone()));
        let files = files(&written, &mapping, &variables, secrets)?;
        let records = records::records(&self.resources, &mapping, &files, &self.given)?;
        Ok(MigrationResult { files, records, resources, data, notes })
    }

    /// The address in the state of the Resource with that name.
    pub fn resource(&self, name: &str) -> Option<String> {
        Some(self.resources.iter().find(|one| *one.name == *name)?.address.to_string())
    }

    /// The arguments of an instance as the configuration has them, and all that can be set.
    pub fn arguments(&self, address: &Address) -> (BTreeSet<Arc<str>>, BTreeSet<Arc<str>>) {
        let names = |value: &Value| match value {
            Value::Map(entries) => entries.keys().cloned().collect(),
            _ => BTreeSet::new(),
        };
        let one = self.resources.iter().find(|one| one.name == address.name);
        let objects = one.into_iter().flat_map(MigratedResource::current_objects).map(|(_, found)| found);
        let (mut known, mut all) = (BTreeSet::new(), BTreeSet::new());
        for found in objects {
            known.extend(names(&found.config));
            all.extend(names(&found.full));
        }
        all.extend(known.iter().cloned());
        (known, all)
    }

    /// The values of the data sources in the state, by address.
    pub fn readings(&self) -> BTreeMap<String, Value> {
        let data = self.resources.iter().filter(|one| one.address.is_data);
        let reading = |one: &MigratedResource| {
            let objects = one.current_objects().map(|(instance, found)| {
                let address = Address { name: Arc::clone(&one.name), key: instance.key.clone() };
                (address.to_string(), found.object.value.clone())
            });
            objects.collect::<Vec<_>>()
        };
        data.flat_map(reading).collect()
    }
}

fn named_resources(resources: &[MigratedResource]) -> NamedResources {
    let mut named = NamedResources::default();
    for one in resources {
        let keys = one.is_family().then(|| one.current_objects().map(|(instance, _)| instance.key.clone()).collect());
        let resource = NamedResource { name: Arc::clone(&one.name), keys };
        if one.current_objects().next().is_some() {
            named.by_address.insert(one.address.to_string(), resource);
        }
        let module = &one.address.module;
        named.modules.extend((1..=module.len()).map(|length| module[..length].to_vec()));
    }
    named
}

fn output_note(name: &str, translator: Option<&Translator<'_>>) -> String {
    let written = translator.and_then(|translator| {
        let output = translator.configuration.root().outputs.get(name)?;
        let place = Place::default();
        translator.source(&output.value, &place).ok()?.to_code().ok()
    });
    match written {
        Some(code) => format!("the output `{name}` is skipped; use `spec.publish` instead: `${{{code}}}`"),
        None => format!("the output `{name}` is skipped; use `spec.publish` instead"),
    }
}

/// Returns a note for each resource that only the state or only the configuration contains.
fn differences(state: &ParsedState, configuration: &Configuration) -> Vec<String> {
    let is_unknown = |one: &&Resource| configuration.resource(&one.address).is_none();
    let only_there = state
        .resources
        .iter()
        .filter(is_unknown)
        .map(|one| format!("`{}` has the values of the state: the configuration does not contain it", one.address));
    let known: BTreeSet<String> =
        state.resources.iter().chain(&state.data).map(|one| one.address.in_configuration()).collect();
    let only_here = configuration.resource_addresses().into_iter().filter(|address| !known.contains(address));
    let only_here = only_here.map(|address| format!("`{address}` is skipped: the state does not contain it"));
    only_there.chain(only_here).collect()
}

/// Adds the data sources whose arguments the configuration contains. Returns a note for each other data source.
fn select_data_sources(state: &mut ParsedState, configuration: Option<&Configuration>) -> Vec<String> {
    let mut notes = Vec::new();
    for data in std::mem::take(&mut state.data) {
        let why = match configuration {
            None => "its arguments are only in the configuration: pass it with --config",
            Some(known) if known.resource(&data.address).is_none() => "the configuration does not contain it",
            _ if data.provider.source == terraform_data::PROVIDER => "Purlin has no such data source",
            _ if data.objects.is_empty() => "the state does not contain its result",
            Some(_) => {
                state.resources.push(data);
                continue;
            }
        };
        notes.push(format!("`{}` is skipped: {why}", data.address));
    }
    notes
}

/// Creates the manifest of each resource with a current object. `notes` gets a line for each other resource.
fn manifests<'g>(
    resources: &'g [MigratedResource],
    writer: &Writer<'g>,
    notes: &mut Vec<String>,
) -> Result<Vec<(&'g MigratedResource, ResourceDocuments)>, Problem> {
    let mut written = Vec::new();
    for one in resources {
        match writer.resource(one) {
            Some(made) => written.push((one, made)),
            None => {
                notes.push(format!(
                    "`{}` has no current object: the next plan destroys its deposed objects",
                    one.address
                ));
            }
        }
    }
    documents::add_depends_on(&mut written, writer.index)?;
    Ok(written)
}

fn files(
    written: &[(&MigratedResource, ResourceDocuments)],
    mapping: &ProviderMapping,
    variables: &Variables,
    mut secrets: Vec<serde_json::Value>,
) -> Result<Vec<File>, Problem> {
    let mut resources = String::new();
    for (one, ResourceDocuments { manifest, .. }) in written {
        let text = yaml::to_yaml(std::slice::from_ref(manifest))?;
        resources.push_str(&text.replacen("---\n", &format!("---\n# {}\n", one.address), 1));
    }
    let mut files = Vec::new();
    if !mapping.documents.is_empty() {
        files.push(File { name: "providers.yaml", text: yaml::to_yaml(&mapping.documents)?, is_secret: false });
    }
    let all = files.iter().fold(resources.clone(), |all, file| all + &file.text);
    files.push(File { name: RESOURCES, text: resources, is_secret: false });
    if let Some(document) = variables.config_map(&all) {
        files.push(File { name: "variables.yaml", text: yaml::to_yaml(&[document])?, is_secret: false });
    }
    secrets.extend(variables.secret(&all));
    if !secrets.is_empty() {
        files.push(File { name: "secrets.yaml", text: yaml::to_yaml(&secrets)?, is_secret: true });
    }
    Ok(files)
}
