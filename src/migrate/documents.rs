//! Manifests for the resources of a state.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Map, Value as Json, json};

use super::Problem;
use super::arguments::{self, Arguments, Piece, escape};
use super::configuration::Configuration;
use super::gather::{Found, Gathered, Instance};
use super::providers::Chosen;
use super::references::{Index, Referable, restored};
use super::yaml;
use crate::api;
use crate::driver::terraform_data;
use crate::load;
use crate::model::{Address, InstanceKey, Value};

/// The longest name of an input.
const LONGEST_INPUT: usize = 50;

/// What is written of one resource.
#[derive(Debug)]
pub struct Written {
    /// The Resource.
    pub manifest: Json,
    /// The Secret with what must not stand in it.
    pub secret: Option<Json>,
    /// What the user should know.
    pub notes: Vec<String>,
}

/// Secrets of one Resource, by the names of the inputs that read them.
#[derive(Default)]
struct Secrets {
    by_name: BTreeMap<String, String>,
    declared: Vec<String>,
}

impl Secrets {
    /// The input that gives a sensitive value.
    fn input(&mut self, at: &str, value: &Value) -> Piece {
        let (text, is_json) = match value {
            Value::String(text) => (text.to_string(), false),
            other => (other.to_json_text(), true),
        };
        // Two texts that are equal are one secret; JSON and the same text have different names.
        let known = self.by_name.iter().find(|(name, known)| **known == text && name.ends_with("_json") == is_json);
        if let Some((name, _)) = known {
            return Piece::Input(name.clone(), is_json);
        }
        let mut base: String = input_name(at).chars().take(LONGEST_INPUT).collect();
        if !base.starts_with(|first: char| first.is_ascii_alphabetic()) {
            base.insert(0, 'x');
        }
        let suffix = if is_json { "_json" } else { "" };
        let numbered = (1..).map(|number| if number == 1 { base.clone() } else { format!("{base}_{number}") });
        let mut names = numbered.map(|name| format!("{name}{suffix}"));
        let name = names.find(|name| !self.by_name.contains_key(name)).unwrap_or_default();
        self.by_name.insert(name.clone(), text);
        self.declared.push(name.clone());
        Piece::Input(name, is_json)
    }
}

/// The manifest of a resource, without `dependsOn`; `None` when none of its objects is in use.
pub fn written(
    one: &Gathered,
    index: &Index<'_>,
    configuration: Option<&Configuration>,
    chosen: &Chosen,
) -> Option<Written> {
    let wanted: Vec<(&Instance, &Found)> = one.wanted().collect();
    if wanted.is_empty() {
        return None;
    }
    let secrets = RefCell::new(Secrets::default());
    let argument = |instance: &Instance, found: &Found, name: &str, value: &Value, with_references: bool| {
        let mut referables: Vec<Referable> = Vec::new();
        if with_references {
            let targets = configuration.map(|known| known.reads(&one.address, name)).unwrap_or_default();
            referables.extend(index.read(one, &instance.key, &targets));
            referables.extend(index.secrets(one, &instance.key, &found.dependencies));
        }
        let known = |value: &Value| restored(value, &referables);
        arguments::pieces(value, name, &known, &mut |at, secret| secrets.borrow_mut().input(at, secret))
    };
    let of_instance = |(instance, found): &(&Instance, &Found)| {
        let Value::Map(config) = &found.config else { return (instance.key.clone(), Arguments::new()) };
        let arguments = config.iter().map(|(name, value)| (name.clone(), argument(instance, found, name, value, true)));
        (instance.key.clone(), arguments.collect())
    };
    let instances: Vec<(InstanceKey, Arguments)> = wanted.iter().map(of_instance).collect();
    let literal = |position: usize, name: &str| {
        let (instance, found) = wanted[position];
        let value = found.config.get(name).cloned().unwrap_or_default();
        argument(instance, found, name, &value, false)
    };
    let shared = arguments::shared(&instances, &literal);
    let mut spec = Map::new();
    spec.insert("type".into(), json!(one.type_name));
    if let Some(name) = chosen.names.get(&one.provider).filter(|name| ***name != *prefix(one)) {
        spec.insert("providerConfigRef".into(), json!({ "name": name }));
    }
    let mut notes = one.notes.clone();
    repeat(one, &wanted, &shared.each, &mut spec, &mut notes);
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
    if !one.address.is_data && wanted.iter().any(|(_, found)| found.create_before_destroy) {
        spec.insert("lifecycle".into(), json!({"createBeforeDestroy": true}));
    }
    if wanted.iter().any(|(_, found)| found.object.skip_destroy) {
        spec.insert("deletionPolicy".into(), json!("Orphan"));
    }
    Some(Written { manifest: document(one, spec), secret, notes })
}

/// What the provider of a type is called by default.
fn prefix(one: &Gathered) -> &str {
    if one.provider.source == terraform_data::PROVIDER {
        return &one.type_name;
    }
    one.type_name.split_once('_').map_or(&one.type_name, |(prefix, _)| prefix)
}

/// `count` or `forEach`.
fn repeat(
    one: &Gathered,
    wanted: &[(&Instance, &Found)],
    each: &BTreeMap<Arc<str>, Map<String, Json>>,
    spec: &mut Map<String, Json>,
    notes: &mut Vec<String>,
) {
    let keys: Vec<&InstanceKey> = wanted.iter().map(|(instance, _)| &instance.key).collect();
    match keys.last() {
        Some(InstanceKey::Index(last)) => {
            let missing = (0..=*last).filter(|index| !keys.contains(&&InstanceKey::Index(*index)));
            notes.extend(
                missing.map(|index| format!("the state has no `{}[{index}]`: the next plan creates it", one.address)),
            );
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

/// Adds to each manifest what the resource was made from and does not refer to, be it through others.
///
/// # Errors
/// When a manifest cannot be written as YAML.
pub fn depend(all: &mut [(&Gathered, Written)], index: &Index<'_>) -> Result<(), Problem> {
    let manifests: Vec<Json> = all.iter().map(|(_, written)| written.manifest.clone()).collect();
    let config = load::source::read_texts(&[("resources.yaml", &yaml::of(&manifests)?)]).config;
    let mut uses: BTreeMap<Arc<str>, BTreeSet<Arc<str>>> = BTreeMap::new();
    let shared = config.families.values().map(|family| &family.shared);
    for instance in config.instances.values().chain(shared) {
        let own = uses.entry(instance.address.name.clone()).or_default();
        own.extend(instance.references.iter().map(|reference| reference.target.name.clone()));
    }
    let mut missing: Vec<BTreeSet<Arc<str>>> = Vec::new();
    for (one, _) in all.iter() {
        let addresses: Vec<String> = one.wanted().flat_map(|(_, found)| found.dependencies.iter().cloned()).collect();
        let direct = index.direct(one, &addresses);
        let own = uses.entry(one.name.clone()).or_default();
        missing.push(direct.difference(own).cloned().collect());
        own.extend(direct);
    }
    for ((one, written), missing) in all.iter_mut().zip(missing) {
        let behind = if missing.is_empty() { BTreeSet::new() } else { behind(&uses, &one.name) };
        let left: Vec<Json> = missing.difference(&behind).map(|name| json!({ "name": name })).collect();
        if let Some(spec) = written.manifest["spec"].as_object_mut().filter(|_| !left.is_empty()) {
            spec.insert("dependsOn".into(), Json::Array(left));
        }
    }
    Ok(())
}

/// What a resource uses through something else that it uses.
fn behind(uses: &BTreeMap<Arc<str>, BTreeSet<Arc<str>>>, name: &Arc<str>) -> BTreeSet<Arc<str>> {
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

/// A Secret.
pub fn secret_document(name: &str, data: &BTreeMap<String, String>) -> Json {
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": data})
}

/// `spec.inputs` that reads keys of a Secret under their own names.
pub fn inputs(secret: &str, names: &[&String]) -> Json {
    names.iter().map(|name| json!({"name": name, "secretKeyRef": {"name": secret, "key": name}})).collect()
}

/// The place of a value as the name of an input.
pub fn input_name(at: &str) -> String {
    at.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect()
}

fn document(one: &Gathered, spec: Map<String, Json>) -> Json {
    let address = Address::single(one.name.clone());
    let metadata = json!({"name": address.object_name()});
    json!({"apiVersion": api::API_VERSION, "kind": address.kind(), "metadata": metadata, "spec": spec})
}
