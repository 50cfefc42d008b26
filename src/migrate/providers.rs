//! Maps the provider configurations of a state to `Provider` and `ProviderConfig` documents.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Map, Value as Json, json};

use super::Problem;
use super::arguments::escape_value;
use super::configuration::{Configuration, constants};
use super::names::{label_of, module_words};
use super::state::ProviderAddress;
use super::yaml;
use crate::api;
use crate::driver::terraform_data;
use crate::load::{self, Config};
use crate::model::{Provider, ProviderUse, Value};

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

/// Maps the provider configurations of a state. Documents in `given` are used; the others are created.
///
/// # Errors
/// A document cannot be created.
pub fn map_providers(
    mut all: BTreeSet<&ProviderAddress>,
    given: &Config,
    configuration: Option<&Configuration>,
) -> Result<ProviderMapping, Problem> {
    all.retain(|provider| provider.source != terraform_data::PROVIDER);
    let mut mapping = ProviderMapping::default();
    let named = provider_names(&all, given);
    let mut written = Vec::new();
    for (source, (name, is_given)) in &named {
        if !is_given {
            let version = all.iter().filter(|one| one.source == **source).find_map(|one| {
                configuration?.provider(one, name)?.get("version_constraint")?.as_str().map(str::to_owned)
            });
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
        let settings = configuration.and_then(|known| known.provider(address, provider_name)?.get("expressions"));
        let settings = settings.and_then(Json::as_object).cloned().unwrap_or_default();
        let needs = *name != **provider_name || !settings.is_empty();
        if needs && !given.provider_configs.contains_key(name.as_str()) {
            mapping.documents.push(provider_config(&name, provider_name, &settings, &mut mapping.notes));
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

fn provider_config(name: &str, provider: &str, expressions: &Map<String, Json>, notes: &mut Vec<String>) -> Json {
    let (constants, others) = constants(expressions);
    if !others.is_empty() {
        let what = format!(
            "the ProviderConfig `{name}` does not contain {}, because they are not constants",
            others.join(", ")
        );
        notes.push(format!("{what}; add them before the next plan"));
    } else if expressions.is_empty() {
        notes.push(format!(
            "the state does not contain the configuration of the ProviderConfig `{name}`; add it before the next plan"
        ));
    }
    document(
        "ProviderConfig",
        name,
        json!({"provider": {"name": provider}, "config": escape_value(&Json::Object(constants))}),
    )
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
