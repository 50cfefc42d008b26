//! The providers of a state: which document each of their configurations has here.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Map, Value as Json, json};

use super::Problem;
use super::arguments::escaped;
use super::configuration::{Configuration, constants};
use super::names::{label_of, module_words};
use super::state::ProviderAddress;
use super::yaml;
use crate::api;
use crate::driver::terraform_data;
use crate::load::{self, Config};
use crate::model::{Provider, ProviderUse, Value};

/// Where Terraform finds providers; OpenTofu has the same ones under the same names.
const TERRAFORM: &str = "registry.terraform.io/";
const OPENTOFU: &str = "registry.opentofu.org/";

/// The configurations of providers.
#[derive(Debug, Default)]
pub struct Chosen {
    /// What each is called here: the name of a `ProviderConfig`, or of a `Provider` without settings.
    pub names: BTreeMap<ProviderAddress, Arc<str>>,
    /// The provider of each.
    pub uses: BTreeMap<ProviderAddress, Arc<ProviderUse>>,
    /// Documents to be written.
    pub documents: Vec<Json>,
    /// What the user should know.
    pub notes: Vec<String>,
}

/// The source as it is written here.
fn mapped(source: &str) -> String {
    source.strip_prefix(TERRAFORM).map_or_else(|| source.to_owned(), |rest| format!("{OPENTOFU}{rest}"))
}

/// Chooses documents for the configurations of providers that the resources of a state have. Those that `given` has already
/// are used.
///
/// # Errors
/// When a document cannot be made.
pub fn choose(
    mut all: BTreeSet<&ProviderAddress>,
    given: &Config,
    configuration: Option<&Configuration>,
) -> Result<Chosen, Problem> {
    all.retain(|provider| provider.source != terraform_data::PROVIDER);
    let mut chosen = Chosen::default();
    let named = named(&all, given);
    let mut written = Vec::new();
    for (source, (name, is_given)) in &named {
        if !is_given {
            let version = all.iter().filter(|one| one.source == **source).find_map(|one| {
                configuration?.provider(one, name)?.get("version_constraint")?.as_str().map(str::to_owned)
            });
            let mut spec = json!({ "source": mapped(source) });
            if let Some(version) = version {
                spec["version"] = json!(version);
            }
            written.push(document("Provider", name, spec));
            if source.starts_with(TERRAFORM) {
                chosen.notes.push(format!("`{source}` is taken from {}", OPENTOFU.trim_end_matches('/')));
            }
        }
    }
    let providers = loaded(&written)?;
    for address in all {
        let (provider_name, _) = &named[&address.source];
        let name = config_name(address, provider_name);
        let settings = configuration.and_then(|known| known.provider(address, provider_name)?.get("expressions"));
        let settings = settings.and_then(Json::as_object).cloned().unwrap_or_default();
        let needs = *name != **provider_name || !settings.is_empty();
        if needs && !given.provider_configs.contains_key(name.as_str()) {
            chosen.documents.push(provider_config(&name, provider_name, &settings, &mut chosen.notes));
        }
        let known = given.providers.get(provider_name.as_str()).map(|spec| &spec.provider);
        let provider = known
            .or_else(|| providers.get(provider_name.as_str()))
            .cloned()
            .ok_or_else(|| Problem::plain(format!("the provider `{}` has no document", address.source)))?;
        let used = ProviderUse::new(name.as_str().into(), provider, Value::map::<Arc<str>>([]));
        chosen.uses.insert(address.clone(), Arc::new(used));
        chosen.names.insert(address.clone(), name.into());
    }
    written.append(&mut chosen.documents);
    chosen.documents = written;
    Ok(chosen)
}

/// The name of the `Provider` of each source, and whether there is one already.
fn named(all: &BTreeSet<&ProviderAddress>, given: &Config) -> BTreeMap<String, (String, bool)> {
    let sources: BTreeSet<&str> = all.iter().map(|one| one.source.as_str()).collect();
    let last = |source: &str| source.rsplit('/').next().unwrap_or_default().to_owned();
    let mut taken: BTreeSet<String> = given.providers.keys().map(ToString::to_string).collect();
    let mut named = BTreeMap::new();
    for source in sources {
        let same = |spec: &&Arc<load::ProviderSpec>| {
            *spec.provider.source == *source || *spec.provider.source == *mapped(source)
        };
        if let Some(spec) = given.providers.values().find(same) {
            named.insert(source.to_owned(), (spec.provider.name.to_string(), true));
            continue;
        }
        let parts: Vec<&str> = source.split('/').collect();
        let candidates =
            [label_of(&[&last(source)]), label_of(&parts[parts.len().saturating_sub(2)..]), label_of(&parts)];
        let free = candidates.iter().find(|name| !taken.contains(*name)).unwrap_or(&candidates[2]).clone();
        taken.insert(free.clone());
        named.insert(source.to_owned(), (free, false));
    }
    named
}

/// What a configuration is called: its modules, its provider and its alias.
fn config_name(address: &ProviderAddress, provider: &str) -> String {
    let mut words = module_words(&address.module);
    words.push(provider.to_owned());
    words.extend(address.alias.clone());
    label_of(&words)
}

fn document(kind: &str, name: &str, spec: Json) -> Json {
    json!({"apiVersion": api::API_VERSION, "kind": kind, "metadata": {"name": name}, "spec": spec})
}

fn provider_config(name: &str, provider: &str, settings: &Map<String, Json>, notes: &mut Vec<String>) -> Json {
    let (constants, others) = constants(settings);
    if !others.is_empty() {
        let what = format!("the ProviderConfig `{name}` lacks {}: they were no constants", others.join(", "));
        notes.push(format!("{what}; write them before the next plan"));
    } else if settings.is_empty() {
        notes.push(format!(
            "the settings of the ProviderConfig `{name}` are not in the state; write them before the next plan"
        ));
    }
    document(
        "ProviderConfig",
        name,
        json!({"provider": {"name": provider}, "config": escaped(&Json::Object(constants))}),
    )
}

/// The providers of documents, as they are read.
fn loaded(documents: &[Json]) -> Result<BTreeMap<Arc<str>, Arc<Provider>>, Problem> {
    let text = yaml::of(documents)?;
    let loaded = load::source::read_texts(&[("providers.yaml", &text)]);
    let mut providers = BTreeMap::new();
    for (name, spec) in loaded.config.providers {
        if let Some(problem) = spec.problems.first() {
            let hint = "write a document of kind Provider for it, and name it with -f";
            return Err(Problem::hinted(format!("the provider `{name}` of the state: {problem}"), hint));
        }
        providers.insert(name, Arc::clone(&spec.provider));
    }
    Ok(providers)
}
