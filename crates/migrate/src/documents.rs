//! Creates the manifests for the resources of a state.

mod settings;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Map, Value as Json, json};

use super::Problem;
use super::adjustments::{Adjusted, Adjustment, Adjustments};
use super::arguments::{self, ArgumentValue, Arguments, escape};
use super::configuration::{Configuration, ReferencedValue, ResourceBlock, Source};
use super::gather::{MigratedInstance, MigratedObject, MigratedResource};
use super::providers::ProviderMapping;
use super::references::{Candidate, Index, restore_expression};
use super::translate::{Cel, Place, Repetition, Translator, Untranslated};
use super::variables::{self, Variables, secret_document};
use super::yaml;
use drivers::terraform_data;
use engine::load;
use model::{Address, InstanceKey, Value};

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
    /// Names that they cannot have.
    reserved: BTreeSet<String>,
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
        let name =
            names.find(|name| !self.by_name.contains_key(name) && !self.reserved.contains(name)).unwrap_or_default();
        self.by_name.insert(name.clone(), text);
        self.declared.push(name.clone());
        ArgumentValue::Input(name, is_json)
    }
}

/// What manifests are made from.
pub struct Writer<'a> {
    pub index: &'a Index<'a>,
    pub configuration: Option<&'a Configuration>,
    /// `None`: the configuration contains no expressions.
    pub translator: Option<Translator<'a>>,
    pub mapping: &'a ProviderMapping,
    pub variables: &'a Variables,
    pub adjustments: &'a Adjustments,
}

/// One resource, with what is collected while its manifest is made.
struct Draft<'w, 'a> {
    writer: &'w Writer<'a>,
    one: &'a MigratedResource,
    place: Place,
    secrets: RefCell<Secrets>,
    /// The expressions without a counterpart: the argument and what is in the manifest instead, and why.
    untranslated: RefCell<BTreeSet<(String, String)>>,
}

impl<'a> Writer<'a> {
    /// Creates the manifest of a resource, without `dependsOn`. `None`: the resource has no current object.
    pub fn resource(&self, one: &'a MigratedResource) -> Option<ResourceDocuments> {
        let objects: Vec<(&MigratedInstance, &MigratedObject)> = one.current_objects().collect();
        if objects.is_empty() {
            return None;
        }
        let block = self.configuration.and_then(|known| known.resource(&one.address));
        let mut notes = one.notes.clone();
        let repetition = self.repetition(one, block, &mut notes);
        let place = match (one.is_family(), &repetition) {
            (false, _) => Repetition::None,
            (true, found) => Repetition::Family(found.as_ref().is_some_and(|(field, _)| *field == "forEach")),
        };
        let reserved = self.variables.names().into_iter().cloned().collect();
        let draft = Draft {
            writer: self,
            one,
            place: Place::new(&one.address.module, place),
            secrets: RefCell::new(Secrets { reserved, ..Secrets::default() }),
            untranslated: RefCell::default(),
        };
        let instances: Vec<(InstanceKey, Arguments)> = objects
            .iter()
            .map(|(instance, found)| (instance.key.clone(), draft.arguments(instance, found, block)))
            .collect();
        let literal = |position: usize, name: &str| {
            let (instance, found) = objects[position];
            draft.value(instance, found, None, name, &found.config.get(name).cloned().unwrap_or_default())
        };
        let shared = arguments::merge(&instances, repetition.is_none(), &literal);
        notes.extend(shared.without_references.iter().map(|name| {
            format!(
                "`{}`: `{name}` has the values of the state, because its references differ between the instances",
                one.address
            )
        }));
        let mut spec = Map::new();
        spec.insert("type".into(), json!(one.type_name));
        if let Some(name) = self.mapping.names.get(&one.provider).filter(|name| ***name != *prefix(one)) {
            spec.insert("providerConfigRef".into(), json!({ "name": name }));
        }
        match repetition {
            Some((field, value)) => drop(spec.insert(field.to_owned(), value)),
            None => set_repetition(one, &objects, &shared.each, &mut spec, &mut notes),
        }
        spec.insert("config".into(), Json::Object(shared.config));
        let untranslated = draft.untranslated.into_inner();
        notes.extend(untranslated.into_iter().map(|(name, why)| format!("`{}`: `{name}` {why}", one.address)));
        if let Some(block) = block {
            settings::add(self, one, block, &mut spec, &mut notes);
        }
        let secret = self.add_inputs(one, draft.secrets.into_inner(), &mut spec);
        add_policies(one, &objects, block, &mut spec);
        Some(ResourceDocuments { manifest: document(one, spec), secret, notes })
    }

    /// The field of the instances and its value, as the configuration has it.
    fn repetition(
        &self,
        one: &MigratedResource,
        block: Option<&ResourceBlock>,
        notes: &mut Vec<String>,
    ) -> Option<(&'static str, Json)> {
        let (translator, block) = (self.translator.as_ref()?, block?);
        let (field, source) = match (&block.count, &block.for_each, &block.lifecycle.enabled) {
            (Some(count), ..) => ("count", count),
            (_, Some(for_each), _) => ("forEach", for_each),
            (.., Some(enabled)) => ("enabled", enabled),
            (None, None, None) => return None,
        };
        let place = Place::new(&one.address.module, Repetition::None);
        let translated = if self.adjustments.instances.contains(&one.name) {
            Err("with the expression, the next plan changes them".to_owned())
        } else if one.is_family() == (field == "enabled") {
            Err("they have other keys".to_owned())
        } else {
            translator.source(source, &place).and_then(|found| found.to_argument())
        };
        match translated {
            Ok(found) => Some((field, found.to_json())),
            Err(why) => {
                notes.push(format!("`{}`: its instances are those of the state: {why}", one.address));
                None
            }
        }
    }

    /// Declares the inputs that the expressions read. Returns the Secret of the Resource.
    fn add_inputs(&self, one: &MigratedResource, secrets: Secrets, spec: &mut Map<String, Json>) -> Option<Json> {
        let text = Json::Object(spec.clone()).to_string();
        let declared: Vec<&String> = secrets.declared.iter().filter(|input| variables::reads(&text, input)).collect();
        let secret_name = format!("{}-migrated", one.name.replace('.', "-"));
        let mut all = self.variables.inputs(&text);
        all.extend(inputs(&secret_name, &declared));
        if !all.is_empty() {
            spec.insert("inputs".into(), Json::Array(all));
        }
        let data: BTreeMap<String, String> =
            declared.iter().map(|input| ((*input).clone(), secrets.by_name[*input].clone())).collect();
        (!data.is_empty()).then(|| secret_document(&secret_name, &data))
    }
}

impl Draft<'_, '_> {
    fn arguments(
        &self,
        instance: &MigratedInstance,
        found: &MigratedObject,
        block: Option<&ResourceBlock>,
    ) -> Arguments {
        let empty = Value::map::<Arc<str>>([]);
        let config = if found.config == Value::Null { &empty } else { &found.config };
        let mut arguments = Arguments::new();
        let Value::Map(entries) = config else { return arguments };
        for (name, value) in entries.iter() {
            let source = block.and_then(|block| block.arguments.get(name));
            match self.adjusted(name).map(|adjusted| adjusted.how) {
                None => drop(arguments.insert(name.clone(), self.argument(instance, found, source, name, value))),
                Some(Adjustment::Value) => {
                    arguments.insert(name.clone(), self.value(instance, found, None, name, value));
                }
                Some(Adjustment::Whole) => {
                    let value = found.full.get(name).unwrap_or(value);
                    arguments.insert(name.clone(), self.value(instance, found, None, name, value));
                }
                Some(Adjustment::Omitted) => {}
            }
            if source.is_some()
                && let Some(adjusted) = self.adjusted(name)
            {
                let written = if adjusted.how == Adjustment::Omitted { &Value::Null } else { value };
                self.note(name, written, &adjusted.why);
            }
        }
        // Arguments that the configuration does not contain, but without which the plan has changes.
        let added = self.writer.adjustments.arguments.get(&self.one.name).into_iter().flatten();
        for (name, _) in added.filter(|(name, one)| one.how != Adjustment::Omitted && config.get(name).is_none()) {
            if let Some(value) = found.full.get(name) {
                arguments.insert(name.clone(), self.value(instance, found, None, name, value));
            }
        }
        arguments
    }

    fn note(&self, argument: &str, value: &Value, why: &str) {
        let instead = if *value == Value::Null { "is left out" } else { "has the value of the state" };
        self.untranslated.borrow_mut().insert((argument.to_owned(), format!("{instead}: {why}")));
    }

    fn adjusted(&self, argument: &str) -> Option<&Adjusted> {
        self.writer.adjustments.arguments.get(&self.one.name)?.get(argument)
    }

    /// An argument as the configuration has it, as far as possible.
    fn argument(
        &self,
        instance: &MigratedInstance,
        found: &MigratedObject,
        source: Option<&Source>,
        at: &str,
        value: &Value,
    ) -> ArgumentValue {
        let below = |key: &str| format!("{at}.{key}");
        let argument = |source: &Source, key: &str, value: &Value| {
            self.argument(instance, found, Some(source), &below(key), value)
        };
        match (source, value) {
            (Some(source), value) if source.is_expression() => match self.translated(source, value) {
                Ok(argument) => argument,
                Err(why) => {
                    // A plan as JSON has no expressions. The value of a write-only argument is missing in any case.
                    if *value == Value::Null || !matches!(source, Source::References(_)) {
                        self.note(at, value, &why);
                    }
                    self.value(instance, found, Some(source), at, value)
                }
            },
            (Some(Source::Constant(constant)), value) if !value.has_sensitive() => {
                ArgumentValue::Literal(constant.clone())
            }
            (Some(Source::Object(sources)), Value::Map(entries)) => {
                let entry = |(key, value): (&Arc<str>, &Value)| {
                    let argument = match sources.get(key) {
                        Some(source) => argument(source, key, value),
                        None => self.value(instance, found, None, &below(key), value),
                    };
                    (key.clone(), argument)
                };
                ArgumentValue::Map(entries.iter().map(entry).collect()).simplified()
            }
            (Some(Source::List(sources)), Value::List(items)) if sources.len() == items.len() => {
                let items = sources.iter().zip(items.iter()).enumerate();
                let items = items.map(|(place, (source, value))| argument(source, &place.to_string(), value));
                ArgumentValue::List(items.collect()).simplified()
            }
            (Some(Source::List(sources)), Value::Map(_)) if sources.len() == 1 => argument(&sources[0], "0", value),
            (Some(Source::Object(_) | Source::List(_)), Value::Sensitive(inner)) if is_collection(inner) => {
                self.argument(instance, found, source, at, &of_sensitive_values(inner))
            }
            (source, value) => {
                if source.is_some_and(|source| source.constant().is_none()) {
                    self.note(at, value, "the state has another structure");
                }
                self.value(instance, found, source, at, value)
            }
        }
    }

    /// The values of resources that the configuration reads.
    fn references(&self, source: &Source) -> Vec<ReferencedValue> {
        let known = self.writer.configuration;
        known.map(|known| known.references(&self.one.address.modules(), source)).unwrap_or_default()
    }

    fn translated(&self, source: &Source, value: &Value) -> Result<ArgumentValue, Untranslated> {
        let translator = self.writer.translator.as_ref().ok_or("its expression is not known")?;
        let found = translator.source(source, &self.place)?;
        // A secret must not become a part of a manifest. The literals of a template are none if it reads the secret.
        let reads_secret = || self.writer.index.reads_sensitive(self.one, &self.references(source));
        if value.has_sensitive() && !matches!(found, Cel::Code(..)) && !reads_secret() {
            return Err("it is sensitive".to_owned());
        }
        found.to_argument()
    }

    /// An argument with the value of the state, and with references where they have exactly its value.
    fn value(
        &self,
        instance: &MigratedInstance,
        found: &MigratedObject,
        source: Option<&Source>,
        at: &str,
        value: &Value,
    ) -> ArgumentValue {
        let (index, key) = (self.writer.index, &instance.key);
        let mut candidates: Vec<Candidate> = Vec::new();
        if let Some(source) = source {
            candidates.extend(index.candidates(self.one, key, &self.references(source)));
        }
        candidates.extend(index.secret_candidates(self.one, key, &found.dependencies));
        let known = |value: &Value| restore_expression(value, &candidates);
        arguments::argument_value(value, at, &known, &mut |at, secret| self.secrets.borrow_mut().input(at, secret))
    }
}

fn is_collection(value: &Value) -> bool {
    matches!(value, Value::Map(_) | Value::List(_))
}

/// Marks each value of a sensitive collection instead of the whole, so that each can have its own expression.
fn of_sensitive_values(collection: &Value) -> Value {
    let marked = |value: &Value| if *value == Value::Null { Value::Null } else { value.clone().into_sensitive() };
    match collection {
        Value::Map(entries) => Value::map(entries.iter().map(|(key, value)| (key.clone(), marked(value)))),
        Value::List(items) => Value::list(items.iter().map(marked)),
        other => marked(other),
    }
}

fn add_policies(
    one: &MigratedResource,
    objects: &[(&MigratedInstance, &MigratedObject)],
    block: Option<&ResourceBlock>,
    spec: &mut Map<String, Json>,
) {
    // A state also has the flag for the dependencies, which inherit it.
    let of_state = objects.iter().any(|(_, found)| found.create_before_destroy);
    let creates_first = match block.filter(|block| block.has_lifecycle) {
        Some(block) => block.lifecycle.create_before_destroy,
        None => of_state,
    };
    if !one.address.is_data && creates_first {
        let lifecycle = spec.entry("lifecycle").or_insert_with(|| json!({}));
        lifecycle["createBeforeDestroy"] = json!(true);
    }
    let keeps = block.is_some_and(|block| block.lifecycle.destroy == Some(false));
    if keeps || objects.iter().any(|(_, found)| found.object.skip_destroy) {
        spec.insert("deletionPolicy".into(), json!("Orphan"));
    }
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

/// Creates `spec.inputs` that read the keys of a Secret under the same names.
pub fn inputs(secret: &str, names: &[&String]) -> Vec<Json> {
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
