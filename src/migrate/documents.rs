//! Creates the manifests for the resources of a state.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Map, Value as Json, json};

use super::Problem;
use super::arguments::{self, ArgumentValue, Arguments, escape};
use super::configuration::Configuration;
use super::gather::{MigratedInstance, MigratedObject, MigratedResource};
use super::providers::ProviderMapping;
use super::references::{Candidate, Index, restore_expression};
use super::yaml;
use crate::api;
use crate::driver::terraform_data;
use crate::load;
use crate::model::{Address, InstanceKey, Value};

const MAX_INPUT_NAME: usize = 50;

#[derive(Debug)]
pub struct ResourceDocuments {
    pub manifest: Json,
    /// The Secret with its sensitive values.
    pub secret: Option<Json>,
    /// Notes for the user.
    pub notes: Vec<String>,
}

/// The secrets of one Resource, by input name.
#[derive(Default)]
struct Secrets {
    by_name: BTreeMap<String, String>,
    declared: Vec<String>,
}

impl Secrets {
    /// Returns the input for a sensitive value.
    fn input(&mut self, at: &str, value: &Value) -> ArgumentValue {
        let (text, is_json) = match value {
            Value::String(text) => (text.to_string(), false),
            other => (other.to_json_text(), true),
        };
        // Equal strings share one secret. JSON and a plain string have different names.
        let known = self.by_name.iter().find(|(name, known)| **known == text && name.ends_with("_json") == is_json);
        if let Some((name, _)) = known {
            return ArgumentValue::Input(name.clone(), is_json);
        }
        let mut base: String = input_name(at).chars().take(MAX_INPUT_NAME).collect();
        if !base.starts_with(|first: char| first.is_ascii_alphabetic()) {
            base.insert(0, 'x');
        }
        let suffix = if is_json { "_json" } else { "" };
        let numbered = (1..).map(|number| if number == 1 { base.clone() } else { format!("{base}_{number}") });
        let mut names = numbered.map(|name| format!("{name}{suffix}"));
        let name = names.find(|name| !self.by_name.contains_key(name)).unwrap_or_default();
        self.by_name.insert(name.clone(), text);
        self.declared.push(name.clone());
        ArgumentValue::Input(name, is_json)
    }
}

/// Creates the manifest of a resource, without `dependsOn`. `None`: the resource has no current object.
pub fn resource_documents(
    one: &MigratedResource,
    index: &Index<'_>,
    configuration: Option<&Configuration>,
    mapping: &ProviderMapping,
) -> Option<ResourceDocuments> {
    let objects: Vec<(&MigratedInstance, &MigratedObject)> = one.current_objects().collect();
    if objects.is_empty() {
        return None;
    }
    let secrets = RefCell::new(Secrets::default());
    let argument =
        |instance: &MigratedInstance, found: &MigratedObject, name: &str, value: &Value, with_references: bool| {
            let mut candidates: Vec<Candidate> = Vec::new();
            if with_references {
                let targets = configuration.map(|known| known.references(&one.address, name)).unwrap_or_default();
                candidates.extend(index.candidates(one, &instance.key, &targets));
                candidates.extend(index.secret_candidates(one, &instance.key, &found.dependencies));
            }
            let known = |value: &Value| restore_expression(value, &candidates);
            arguments::argument_value(value, name, &known, &mut |at, secret| secrets.borrow_mut().input(at, secret))
        };
    let of_instance = |(instance, found): &(&MigratedInstance, &MigratedObject)| {
        let Value::Map(config) = &found.config else { return (instance.key.clone(), Arguments::new()) };
        let arguments = config.iter().map(|(name, value)| (name.clone(), argument(instance, found, name, value, true)));
        (instance.key.clone(), arguments.collect())
    };
    let instances: Vec<(InstanceKey, Arguments)> = objects.iter().map(of_instance).collect();
    let literal = |position: usize, name: &str| {
        let (instance, found) = objects[position];
        let value = found.config.get(name).cloned().unwrap_or_default();
        argument(instance, found, name, &value, false)
    };
    let shared = arguments::merge(&instances, &literal);
    let mut spec = Map::new();
    spec.insert("type".into(), json!(one.type_name));
    if let Some(name) = mapping.names.get(&one.provider).filter(|name| ***name != *prefix(one)) {
        spec.insert("providerConfigRef".into(), json!({ "name": name }));
    }
    let mut notes = one.notes.clone();
    set_repetition(one, &objects, &shared.each, &mut spec, &mut notes);
    spec.insert("config".into(), Json::Object(shared.config));
    let name = &one.name;
    let secrets = secrets.into_inner();
    let used = |input: &String| spec["config"].to_string().contains(&format!("inputs.{input}"));
    let declared: Vec<&String> = secrets.declared.iter().filter(|input| used(input)).collect();
    let secret_name = format!("{}-migrated", name.replace('.', "-"));
    let secret = (!declared.is_empty()).then(|| {
        spec.insert("inputs".into(), inputs(&secret_name, &declared));
        let data = declared.iter().map(|input| ((*input).clone(), secrets.by_name[*input].clone())).collect();
        secret_document(&secret_name, &data)
    });
    if !one.address.is_data && objects.iter().any(|(_, found)| found.create_before_destroy) {
        spec.insert("lifecycle".into(), json!({"createBeforeDestroy": true}));
    }
    if objects.iter().any(|(_, found)| found.object.skip_destroy) {
        spec.insert("deletionPolicy".into(), json!("Orphan"));
    }
    Some(ResourceDocuments { manifest: document(one, spec), secret, notes })
}

/// The default provider name of a type.
fn prefix(one: &MigratedResource) -> &str {
    if one.provider.source == terraform_data::PROVIDER {
        return &one.type_name;
    }
    one.type_name.split_once('_').map_or(&one.type_name, |(prefix, _)| prefix)
}

/// Sets `count` or `forEach`.
fn set_repetition(
    one: &MigratedResource,
    objects: &[(&MigratedInstance, &MigratedObject)],
    each: &BTreeMap<Arc<str>, Map<String, Json>>,
    spec: &mut Map<String, Json>,
    notes: &mut Vec<String>,
) {
    let keys: Vec<&InstanceKey> = objects.iter().map(|(instance, _)| &instance.key).collect();
    match keys.last() {
        Some(InstanceKey::Index(last)) => {
            let missing = (0..=*last).filter(|index| !keys.contains(&&InstanceKey::Index(*index)));
            notes.extend(missing.map(|index| {
                format!("the state does not contain `{}[{index}]`: the next plan creates it", one.address)
            }));
            spec.insert("count".into(), json!(last + 1));
        }
        Some(InstanceKey::Key(_)) if each.is_empty() => {
            let texts = keys.iter().filter_map(|key| match key {
                InstanceKey::Key(key) => Some(Json::from(escape(key))),
                _ => None,
            });
            spec.insert("forEach".into(), texts.collect());
        }
        Some(InstanceKey::Key(_)) => drop(spec.insert("forEach".into(), json!(each))),
        Some(InstanceKey::None | InstanceKey::All) | None => {}
    }
}

/// Adds `dependsOn` to each manifest for dependencies that its references do not cover, directly or indirectly.
///
/// # Errors
/// A manifest cannot be written as YAML.
pub fn add_depends_on(all: &mut [(&MigratedResource, ResourceDocuments)], index: &Index<'_>) -> Result<(), Problem> {
    let manifests: Vec<Json> = all.iter().map(|(_, written)| written.manifest.clone()).collect();
    let config = load::source::read_strings(&[("resources.yaml", &yaml::to_yaml(&manifests)?)]).config;
    let mut uses: BTreeMap<Arc<str>, BTreeSet<Arc<str>>> = BTreeMap::new();
    let shared = config.families.values().map(|family| &family.shared);
    for instance in config.instances.values().chain(shared) {
        let own = uses.entry(instance.address.name.clone()).or_default();
        own.extend(instance.references.iter().map(|reference| reference.target.name.clone()));
    }
    let mut missing: Vec<BTreeSet<Arc<str>>> = Vec::new();
    for (one, _) in all.iter() {
        let addresses: Vec<String> =
            one.current_objects().flat_map(|(_, found)| found.dependencies.iter().cloned()).collect();
        let direct = index.direct_dependencies(one, &addresses);
        let own = uses.entry(one.name.clone()).or_default();
        missing.push(direct.difference(own).cloned().collect());
        own.extend(direct);
    }
    for ((one, written), missing) in all.iter_mut().zip(missing) {
        let indirect = if missing.is_empty() { BTreeSet::new() } else { indirect_dependencies(&uses, &one.name) };
        let left: Vec<Json> = missing.difference(&indirect).map(|name| json!({ "name": name })).collect();
        if let Some(spec) = written.manifest["spec"].as_object_mut().filter(|_| !left.is_empty()) {
            spec.insert("dependsOn".into(), Json::Array(left));
        }
    }
    Ok(())
}

/// Returns the indirect dependencies of a resource.
fn indirect_dependencies(uses: &BTreeMap<Arc<str>, BTreeSet<Arc<str>>>, name: &Arc<str>) -> BTreeSet<Arc<str>> {
    let of = |name: &Arc<str>| uses.get(name).into_iter().flatten();
    let mut open: Vec<&Arc<str>> = of(name).flat_map(of).collect();
    let mut found = BTreeSet::new();
    while let Some(next) = open.pop() {
        if found.insert(next.clone()) {
            open.extend(of(next));
        }
    }
    found
}

pub fn secret_document(name: &str, data: &BTreeMap<String, String>) -> Json {
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": data})
}

/// Creates `spec.inputs` that read the keys of a Secret under the same names.
pub fn inputs(secret: &str, names: &[&String]) -> Json {
    names.iter().map(|name| json!({"name": name, "secretKeyRef": {"name": secret, "key": name}})).collect()
}

/// Converts the path of a value to the name of an input.
pub fn input_name(at: &str) -> String {
    at.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect()
}

fn document(one: &MigratedResource, spec: Map<String, Json>) -> Json {
    let address = Address::single(one.name.clone());
    let metadata = json!({"name": address.object_name()});
    json!({"apiVersion": api::API_VERSION, "kind": address.kind(), "metadata": metadata, "spec": spec})
}
