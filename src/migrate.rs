//! Converts a Terraform or OpenTofu state to manifests and records, and records to a state.
//!
//! The input is a state of version 4, optionally its configuration, and the objects as their providers read them. The
//! plan after a migration has no changes. This module does no I/O and calls no provider; `cli::commands::migrate` does.
//!
//! [`Migration::new`] reads the state, names its resources and maps their providers. [`Migration::finish`] creates the
//! manifests and records. [`export`] converts records to a state.

mod address;
mod arguments;
mod configuration;
mod documents;
pub mod export;
mod gather;
mod names;
mod problem;
mod providers;
mod records;
mod references;
mod secrets;
mod state;
mod yaml;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub use arguments::escape_value;
pub use configuration::Configuration;
pub use gather::{AdoptedObject, without_provider};
pub use problem::Problem;
pub use state::{Object, Resource};

use crate::driver::terraform_data;
use crate::load::Config;
use crate::model::{Provider, ProviderUse, Record, Value};
use documents::ResourceDocuments;
use gather::MigratedResource;
use providers::ProviderMapping;
use references::Index;
use state::{ParsedState, ProviderAddress};

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
        let notes = select_data_sources(&mut state, configuration.as_ref());
        let ParsedState { resources, outputs, .. } = state;
        let addresses: Vec<_> = resources.iter().map(|resource| &resource.address).collect();
        let names = names::names(&addresses, names)?;
        let used = resources.iter().map(|resource| &resource.provider).collect();
        let chosen = providers::map_providers(used, &given, configuration.as_ref());
        let uses = chosen.map_err(|problem| vec![problem])?.uses;
        Ok(Self { resources, names, uses, configuration, given, notes, outputs })
    }

    /// The resources and data sources to migrate. `finish` requires an [`AdoptedObject`] for each of their objects.
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
    pub fn configured_arguments(&self, resource: &Resource) -> Option<BTreeSet<Arc<str>>> {
        self.configuration.as_ref()?.configured_arguments(&resource.address)
    }

    /// Creates manifests and records. `answers` holds the objects of each resource, in order, or the problem of the
    /// resource. `marked` returns a provider configuration with its sensitive values marked, if the provider has a
    /// schema.
    ///
    /// # Errors
    /// One problem for each resource that cannot be migrated. A data source with a problem is skipped, because it can
    /// be read again.
    pub fn finish(
        self,
        answers: Vec<Result<Vec<AdoptedObject>, Problem>>,
        marked: impl Fn(&Provider, &Value) -> Option<Value>,
    ) -> Result<MigrationResult, Vec<Problem>> {
        let Self { resources, names, configuration, given, notes: skipped, outputs, .. } = self;
        let configuration = configuration.as_ref();
        let objects = resources.into_iter().zip(names).zip(answers);
        let (migrated, unreadable) = gather::gather(objects, configuration)?;
        let one = |problem| vec![problem];
        // Skipped data sources need no provider.
        let used = migrated.iter().map(|one| &one.provider).collect();
        let mut mapping = providers::map_providers(used, &given, configuration).map_err(one)?;
        let secrets = secrets::extract(&mut mapping, marked);
        let mut notes = std::mem::take(&mut mapping.notes);
        notes.extend(skipped.into_iter().chain(unreadable));
        notes.extend(outputs.iter().map(|name| format!("the output `{name}` is skipped; use `spec.publish` instead")));
        let written = manifests(&migrated, configuration, &mapping, &mut notes).map_err(one)?;
        let data = migrated.iter().filter(|one| one.address.is_data).count();
        let resources = migrated.len() - data;
        let files = files(&written, &mapping, secrets).map_err(one)?;
        notes.extend(written.into_iter().flat_map(|(_, written)| written.notes));
        let records = records::records(&migrated, &mapping, &files, &given).map_err(one)?;
        Ok(MigrationResult { files, records, resources, data, notes })
    }
}

/// Adds the data sources whose arguments the configuration contains. Returns a note for each other data source.
fn select_data_sources(state: &mut ParsedState, configuration: Option<&Configuration>) -> Vec<String> {
    let mut notes = Vec::new();
    for data in std::mem::take(&mut state.data) {
        let why = match configuration {
            None => "its arguments are only in the configuration: pass it with --config",
            Some(known) if known.configured_arguments(&data.address).is_none() => {
                "the configuration does not contain it"
            }
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
    configuration: Option<&Configuration>,
    mapping: &ProviderMapping,
    notes: &mut Vec<String>,
) -> Result<Vec<(&'g MigratedResource, ResourceDocuments)>, Problem> {
    let index = Index::new(resources);
    let mut written = Vec::new();
    for one in resources {
        match documents::resource_documents(one, &index, configuration, mapping) {
            Some(made) => written.push((one, made)),
            None => {
                notes.push(format!(
                    "`{}` has no current object: the next plan destroys its deposed objects",
                    one.address
                ));
            }
        }
    }
    documents::add_depends_on(&mut written, &index)?;
    Ok(written)
}

fn files(
    written: &[(&MigratedResource, ResourceDocuments)],
    mapping: &ProviderMapping,
    mut secrets: Vec<serde_json::Value>,
) -> Result<Vec<File>, Problem> {
    let mut resources = String::new();
    for (one, ResourceDocuments { manifest, secret, .. }) in written {
        let text = yaml::to_yaml(std::slice::from_ref(manifest))?;
        resources.push_str(&text.replacen("---\n", &format!("---\n# {}\n", one.address), 1));
        secrets.extend(secret.clone());
    }
    let mut files = vec![File { name: RESOURCES, text: resources, is_secret: false }];
    if !mapping.documents.is_empty() {
        files.insert(0, File { name: "providers.yaml", text: yaml::to_yaml(&mapping.documents)?, is_secret: false });
    }
    if !secrets.is_empty() {
        files.push(File { name: "secrets.yaml", text: yaml::to_yaml(&secrets)?, is_secret: true });
    }
    Ok(files)
}
