//! From Terraform and OpenTofu to Purlin and back: a state as manifests and records, and records as a state.
//!
//! Takes the text of a state of version 4, the configuration it belongs to, and what providers answered about its
//! objects; gives files and records such that the next plan says that there is nothing to do. It reads and writes no
//! files and calls no provider: `cli::commands::migrate` does.
//!
//! [`Migration::new`] reads a state (`state`, `address`, `configuration`), names its resources (`names`) and chooses
//! documents for their providers (`providers`). [`Migration::finish`] brings the objects into the form of records
//! (`gather`), finds what refers to what (`references`, `arguments`), and makes manifests (`documents`, `secrets`) and
//! records (`records`) of it. The way back is [`export`].

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

pub use arguments::escaped;
pub use configuration::Configuration;
pub use gather::{Answer, without_provider};
pub use problem::Problem;
pub use state::{Object, Resource};

use crate::driver::terraform_data;
use crate::load::Config;
use crate::model::{Provider, ProviderUse, Record, Value};
use documents::Written;
use gather::Gathered;
use providers::Chosen;
use references::Index;
use state::{ProviderAddress, State};

/// A state that was read, with what is to be asked about its objects.
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

/// One file of the folder of manifests.
#[derive(Debug)]
pub struct File {
    /// What it is called.
    pub name: &'static str,
    /// What is in it.
    pub text: String,
    /// It holds sensitive values in clear.
    pub is_secret: bool,
}

/// What a state has become.
#[derive(Debug, Default)]
pub struct Migrated {
    /// The manifests.
    pub files: Vec<File>,
    /// The records of all instances.
    pub records: Vec<Record>,
    /// How many resources have manifests or records.
    pub resources: usize,
    /// How many data sources do.
    pub data: usize,
    /// What the user should know, a line each.
    pub notes: Vec<String>,
}

impl Migration {
    /// Reads a state. `given` holds the documents of providers that there are already; `names` what resources are to be
    /// called, by their addresses.
    ///
    /// # Errors
    /// All that is wrong with the state and the names.
    pub fn new(
        state: &str,
        configuration: Option<Configuration>,
        given: Config,
        names: &BTreeMap<String, String>,
    ) -> Result<Self, Vec<Problem>> {
        let mut state = state::parse(state).map_err(|problem| vec![problem])?;
        let notes = take_data(&mut state, configuration.as_ref());
        let State { resources, outputs, .. } = state;
        let addresses: Vec<_> = resources.iter().map(|resource| &resource.address).collect();
        let names = names::names(&addresses, names)?;
        let used = resources.iter().map(|resource| &resource.provider).collect();
        let chosen = providers::choose(used, &given, configuration.as_ref());
        let uses = chosen.map_err(|problem| vec![problem])?.uses;
        Ok(Self { resources, names, uses, configuration, given, notes, outputs })
    }

    /// The resources and data sources that are migrated. `finish` wants an [`Answer`] for each object of each of them.
    pub fn resources(&self) -> &[Resource] {
        &self.resources
    }

    /// The provider of a resource, with the name of its configuration; `None` for a type that is built in.
    pub fn provider(&self, resource: &Resource) -> Option<&Arc<ProviderUse>> {
        self.uses.get(&resource.provider)
    }

    /// The providers that are to be asked, each once; `true`: managed objects need it.
    pub fn providers(&self) -> BTreeMap<&Arc<Provider>, bool> {
        let mut needed: BTreeMap<&Arc<Provider>, bool> = BTreeMap::new();
        for resource in &self.resources {
            if let Some(used) = self.provider(resource) {
                *needed.entry(&used.provider).or_default() |= !resource.address.is_data;
            }
        }
        needed
    }

    /// The arguments of a resource that were written; `None` when that is not known.
    pub fn written(&self, resource: &Resource) -> Option<BTreeSet<Arc<str>>> {
        self.configuration.as_ref()?.written(&resource.address)
    }

    /// Makes manifests and records. `answers` has those for the objects of each resource, in order, or what is wrong with
    /// the resource; `marked` gives the settings of a provider with what it calls sensitive marked, if it says that.
    ///
    /// # Errors
    /// Each resource that cannot be migrated. A data source is left out instead: it can be read again.
    pub fn finish(
        self,
        answers: Vec<Result<Vec<Answer>, Problem>>,
        marked: impl Fn(&Provider, &Value) -> Option<Value>,
    ) -> Result<Migrated, Vec<Problem>> {
        let Self { resources, names, configuration, given, notes: left_out, outputs, .. } = self;
        let configuration = configuration.as_ref();
        let asked = resources.into_iter().zip(names).zip(answers);
        let (gathered, unreadable) = gather::gather(asked, configuration)?;
        let one = |problem| vec![problem];
        // What is left out needs no provider.
        let used = gathered.iter().map(|one| &one.provider).collect();
        let mut chosen = providers::choose(used, &given, configuration).map_err(one)?;
        let secrets = secrets::take(&mut chosen, marked);
        let mut notes = std::mem::take(&mut chosen.notes);
        notes.extend(left_out.into_iter().chain(unreadable));
        notes.extend(
            outputs.iter().map(|name| format!("the output `{name}` is left out; `spec.publish` has its place")),
        );
        let written = manifests(&gathered, configuration, &chosen, &mut notes).map_err(one)?;
        let data = gathered.iter().filter(|one| one.address.is_data).count();
        let resources = gathered.len() - data;
        let files = files(&written, &chosen, secrets).map_err(one)?;
        notes.extend(written.into_iter().flat_map(|(_, written)| written.notes));
        let records = records::records(&gathered, &chosen, &files, &given).map_err(one)?;
        Ok(Migrated { files, records, resources, data, notes })
    }
}

/// Has those data sources migrated whose arguments the configuration knows; gives a line for each other one.
fn take_data(state: &mut State, configuration: Option<&Configuration>) -> Vec<String> {
    let mut notes = Vec::new();
    for data in std::mem::take(&mut state.data) {
        let why = match configuration {
            None => "what it is read with is told by a configuration: name it with --config",
            Some(known) if known.written(&data.address).is_none() => "the configuration does not have it",
            _ if data.provider.source == terraform_data::PROVIDER => "there is no such data source here",
            _ if data.objects.is_empty() => "the state does not have what it gave",
            Some(_) => {
                state.resources.push(data);
                continue;
            }
        };
        notes.push(format!("`{}` is left out: {why}", data.address));
    }
    notes
}

/// The manifest of each resource that is in use; `notes` gets a line for each other one.
fn manifests<'g>(
    gathered: &'g [Gathered],
    configuration: Option<&Configuration>,
    chosen: &Chosen,
    notes: &mut Vec<String>,
) -> Result<Vec<(&'g Gathered, Written)>, Problem> {
    let index = Index::new(gathered);
    let mut written = Vec::new();
    for one in gathered {
        match documents::written(one, &index, configuration, chosen) {
            Some(made) => written.push((one, made)),
            None => {
                notes
                    .push(format!("nothing of `{}` is in use: the next plan destroys what is left of it", one.address));
            }
        }
    }
    documents::depend(&mut written, &index)?;
    Ok(written)
}

/// The files of the folder.
fn files(
    written: &[(&Gathered, Written)],
    chosen: &Chosen,
    mut secrets: Vec<serde_json::Value>,
) -> Result<Vec<File>, Problem> {
    let mut resources = String::new();
    for (one, Written { manifest, secret, .. }) in written {
        let text = yaml::of(std::slice::from_ref(manifest))?;
        resources.push_str(&text.replacen("---\n", &format!("---\n# {}\n", one.address), 1));
        secrets.extend(secret.clone());
    }
    let mut files = vec![File { name: "resources.yaml", text: resources, is_secret: false }];
    if !chosen.documents.is_empty() {
        files.insert(0, File { name: "providers.yaml", text: yaml::of(&chosen.documents)?, is_secret: false });
    }
    if !secrets.is_empty() {
        files.push(File { name: "secrets.yaml", text: yaml::of(&secrets)?, is_secret: true });
    }
    Ok(files)
}
