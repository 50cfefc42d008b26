//! Maps the provider configurations of a state to `Provider` and `ProviderConfig` documents.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Map, Value as Json, json};

use super::Problem;
use super::arguments::escape_value;
use super::configuration::{Configuration, ProviderBlock, Source};
use super::names::{label_of, module_words};
use super::state::ProviderAddress;
use super::translate::{Place, Repetition, Translator};
use super::variables::Variables;
use super::yaml;
use drivers::terraform_data;
use engine::load::{self, Config};
use model::{Provider, ProviderUse, Value};

/// OpenTofu's registry has the same providers under the same names.
const TERRAFORM: &str = "registry.terraform.io/";
const OPENTOFU: &str = "registry.opentofu.org/";

/// The result of the mapping.
#[derive(Debug, Default)]
pub struct ProviderMapping {
    /// The name of the `ProviderConfig`, or of the `Provider` if there is no configuration.
    pub names: BTreeMap<ProviderAddress, Arc<str>>,
    pub uses: BTreeMap<ProviderAddress, Arc<ProviderUse>>,
    /// The new documents.
    pub documents: Vec<Json>,
    /// Notes for the user.
    pub notes: Vec<String>,
}

/// Replaces Terraform's registry by OpenTofu's.
fn mapped_source(source: &str) -> String {
    source.strip_prefix(TERRAFORM).map_or_else(|| source.to_owned(), |rest| format!("{OPENTOFU}{rest}"))
}

/// What the documents are made from.
#[derive(Clone, Copy)]
pub struct ProviderSources<'a> {
    pub given: &'a Config,
    pub configuration: Option<&'a Configuration>,
    pub translator: Option<&'a Translator<'a>>,
    pub variables: &'a Variables,
}

/// Maps the provider configurations of a state. Documents in `given` are used; the others are created.
///
/// # Errors
/// A document cannot be created.
pub fn map_providers(
    mut all: BTreeSet<&ProviderAddress>,
    sources: ProviderSources<'_>,
) -> Result<ProviderMapping, Problem> {
    let ProviderSources { given, configuration, .. } = sources;
    all.retain(|provider| provider.source != terraform_data::PROVIDER);
    let mut mapping = ProviderMapping::default();
    let named = provider_names(&all, given);
    let mut written = Vec::new();
    for (source, (name, is_given)) in &named {
        if !is_given {
            let version = configuration.and_then(|known| known.version(source));
            let mut spec = json!({ "source": mapped_source(source) });
            if let Some(version) = version {
                spec["version"] = json!(version);
            }
            written.push(document("Provider", name, spec));
            if source.starts_with(TERRAFORM) {
                mapping.notes.push(format!("`{source}` is installed from {}", OPENTOFU.trim_end_matches('/')));
            }
        }
    }
    let providers = parse_providers(&written)?;
    for address in all {
        let (provider_name, _) = &named[&address.source];
        let name = configuration_name(address, provider_name);
        let block = configuration.and_then(|known| known.provider(address, provider_name));
        let needs = *name != **provider_name || block.is_some_and(|block| !block.arguments.is_empty());
        if needs && !given.provider_configs.contains_key(name.as_str()) {
            let document = provider_config(address, (&name, provider_name), block, sources, &mut mapping.notes);
            mapping.documents.push(document);
        }
        let known = given.providers.get(provider_name.as_str()).map(|spec| &spec.provider);
        let provider = known
            .or_else(|| providers.get(provider_name.as_str()))
            .cloned()
            .ok_or_else(|| Problem::plain(format!("there is no Provider document for `{}`", address.source)))?;
        let used = ProviderUse::new(name.as_str().into(), provider, Value::map::<Arc<str>>([]));
        mapping.uses.insert(address.clone(), Arc::new(used));
        mapping.names.insert(address.clone(), name.into());
    }
    written.append(&mut mapping.documents);
    mapping.documents = written;
    Ok(mapping)
}

/// Returns the name of the `Provider` of each source, and whether it exists in `given`.
fn provider_names(all: &BTreeSet<&ProviderAddress>, given: &Config) -> BTreeMap<String, (String, bool)> {
    let sources: BTreeSet<&str> = all.iter().map(|one| one.source.as_str()).collect();
    let last = |source: &str| source.rsplit('/').next().unwrap_or_default().to_owned();
    let mut taken: BTreeSet<String> = given.providers.keys().map(ToString::to_string).collect();
    let mut named = BTreeMap::new();
    for source in sources {
        let same = |spec: &&Arc<load::ProviderSpec>| {
            *spec.provider.source == *source || *spec.provider.source == *mapped_source(source)
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

/// The name of a configuration: its modules, its provider and its alias.
fn configuration_name(address: &ProviderAddress, provider: &str) -> String {
    let mut words = module_words(&address.module);
    words.push(provider.to_owned());
    words.extend(address.alias.clone());
    label_of(&words)
}

fn document(kind: &str, name: &str, spec: Json) -> Json {
    json!({"apiVersion": api::API_VERSION, "kind": kind, "metadata": {"name": name}, "spec": spec})
}

fn provider_config(
    address: &ProviderAddress,
    (name, provider): (&str, &str),
    block: Option<&ProviderBlock>,
    sources: ProviderSources<'_>,
    notes: &mut Vec<String>,
) -> Json {
    let mut config = Map::new();
    let mut missing = Vec::new();
    let place = Place::new(&address.module, Repetition::None);
    for (argument, source) in block.into_iter().flat_map(|block| &block.arguments) {
        match written(source, &place, sources.translator) {
            Ok(value) => drop(config.insert(argument.to_string(), value)),
            Err(why) => missing.push(format!("`{argument}` ({why})")),
        }
    }
    if !missing.is_empty() {
        let what = format!("the ProviderConfig `{name}` does not contain {}", missing.join(", "));
        notes.push(format!("{what}; add it before the next plan"));
    } else if block.is_none() {
        notes.push(format!(
            "the state does not contain the configuration of the ProviderConfig `{name}`; add it before the next plan"
        ));
    }
    let mut spec = json!({"provider": {"name": provider}, "config": config});
    let inputs = sources.variables.inputs(&spec["config"].to_string());
    if !inputs.is_empty() {
        spec["inputs"] = Json::Array(inputs);
    }
    document("ProviderConfig", name, spec)
}

fn written(source: &Source, place: &Place, translator: Option<&Translator<'_>>) -> Result<Json, String> {
    match translator {
        Some(translator) => Ok(translator.source(source, place)?.to_argument()?.to_json()),
        None => {
            let constant = source.constant().ok_or("it is not a constant")?;
            Ok(escape_value(&constant))
        }
    }
}

fn parse_providers(documents: &[Json]) -> Result<BTreeMap<Arc<str>, Arc<Provider>>, Problem> {
    let text = yaml::to_yaml(documents)?;
    let loaded = load::source::read_strings(&[("providers.yaml", &text)]);
    let mut providers = BTreeMap::new();
    for (name, spec) in loaded.config.providers {
        if let Some(problem) = spec.problems.first() {
            let hint = "write a Provider document for it, and pass it with -f";
            return Err(Problem::hinted(format!("the provider `{name}` of the state: {problem}"), hint));
        }
        providers.insert(name, Arc::clone(&spec.provider));
    }
    Ok(providers)
}
