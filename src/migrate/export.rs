//! What is recorded, as a state that Terraform and OpenTofu accept.
//!
//! A record has no place for a module and a state none for a namespace, so that everything is in the root module. What
//! only Purlin knows of an object (hooks, protection, triggers) stays behind.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Map, Value as Json, json};

use super::Problem;
use super::state::VERSION;
use crate::cty::Type;
use crate::driver::provider::ForeignObject;
use crate::driver::{kubernetes_object, terraform_data};
use crate::model::{
    Address, DeposedKey, InstanceKey, ObjectStatus, ProviderUse, Record, Recorded, RecordedObject, Value, of_name,
};

/// The oldest version that reads everything in here.
const WRITTEN_BY: &str = "1.5.0";

/// The text of a state with the given lineage and serial, and what the user should know. No operation may be open in the
/// records: what they say of their objects is only half of it.
///
/// # Errors
/// When a record is damaged, or the objects of a Resource have several providers.
pub fn state(recorded: &Recorded, lineage: &str, serial: u64) -> Result<(String, Vec<String>), Problem> {
    let mut notes = Vec::new();
    let mut resources: BTreeMap<(String, String), Vec<&Record>> = BTreeMap::new();
    for stored in recorded.values().filter(|stored| stored.record.has_objects()) {
        let record = stored.record.as_ref();
        if *record.type_name == *kubernetes_object::TYPE_NAME {
            notes.push(format!("`{}` is left out: no provider has the type `{}`", record.address, record.type_name));
            continue;
        }
        resources.entry((record.type_name.to_string(), name(&record.address.name))).or_default().push(record);
    }
    let exporter = Exporter { recorded };
    let mut written = Vec::new();
    for ((type_name, name), records) in &resources {
        written.extend(exporter.resources(type_name, name, records)?);
    }
    let head = format!(
        "{{\n  \"version\": {VERSION},\n  \"terraform_version\": \"{WRITTEN_BY}\",\n  \"serial\": {serial},\n  \"lineage\": {},\n  \"outputs\": {{}},\n  \"resources\": [",
        Json::from(lineage)
    );
    let body = written.iter().map(|resource| format!("\n    {resource}")).collect::<Vec<_>>().join(",");
    let tail = if written.is_empty() { "" } else { "\n  " };
    Ok((format!("{head}{body}{tail}],\n  \"check_results\": null\n}}\n"), notes))
}

/// A name as Terraform has them. No name of ours holds `_`, so that two never become one.
fn name(name: &str) -> String {
    let name = name.replace('-', "_");
    if name.starts_with(|first: char| first.is_ascii_digit()) { format!("_{name}") } else { name }
}

/// The address of a configuration of a provider.
fn provider(used: Option<&Arc<ProviderUse>>) -> String {
    let Some(used) = used else { return "provider[\"terraform.io/builtin/terraform\"]".to_owned() };
    let source = Json::from(&*used.provider.source);
    match used.name.strip_prefix(&*used.provider.name) {
        Some("") => format!("provider[{source}]"),
        Some(rest) if rest.starts_with('-') => format!("provider[{source}].{}", &rest[1..]),
        _ => format!("provider[{source}].{}", used.name),
    }
}

struct Exporter<'a> {
    recorded: &'a Recorded,
}

impl Exporter<'_> {
    /// The entries of one resource: one for each configuration of a provider that its objects have.
    fn resources(&self, type_name: &str, name: &str, records: &[&Record]) -> Result<Vec<String>, Problem> {
        let mut by_provider: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for record in records {
            let key = &record.address.key;
            let objects = record.current.iter().map(|object| (None, object));
            for (deposed, object) in objects.chain(record.deposed.iter().map(|(key, object)| (Some(*key), object))) {
                let instance = self.instance(record, key, deposed, object)?;
                by_provider.entry(provider(object.provider.as_ref())).or_default().push(instance);
            }
        }
        // A state has a resource once, under one provider; what is left under another one is destroyed there first.
        if by_provider.len() > 1 {
            let message = format!("the objects of `{}` have several providers", records[0].address.name);
            return Err(Problem::hinted(message, "apply once, so that all of them have the one that is wanted"));
        }
        let entry = |(provider, instances): (String, Vec<String>)| {
            let head = [("mode", "managed"), ("type", type_name), ("name", name), ("provider", &provider)];
            let head: Vec<String> =
                head.iter().map(|(key, text)| format!("\"{key}\": {}", Json::from(*text))).collect();
            let instances = instances.iter().map(|one| format!("\n      {one}")).collect::<Vec<_>>().join(",");
            format!("{{{}, \"instances\": [{instances}\n    ]}}", head.join(", "))
        };
        Ok(by_provider.into_iter().map(entry).collect())
    }

    fn instance(
        &self,
        record: &Record,
        key: &InstanceKey,
        deposed: Option<DeposedKey>,
        object: &RecordedObject,
    ) -> Result<String, Problem> {
        let built_in = *record.type_name == *terraform_data::TYPE_NAME;
        let foreign = match built_in {
            true => ForeignObject { attributes: built_in_attributes(&object.value), ..ForeignObject::default() },
            false => ForeignObject::of(object)
                .map_err(|error| Problem::plain(format!("`{}` cannot be exported: {error}", record.address)))?,
        };
        let mut head = Map::new();
        match key {
            InstanceKey::Index(index) => drop(head.insert("index_key".into(), json!(index))),
            InstanceKey::Key(text) => drop(head.insert("index_key".into(), json!(text))),
            InstanceKey::None | InstanceKey::All => {}
        }
        if object.status != ObjectStatus::Ready {
            head.insert("status".into(), json!("tainted"));
        }
        if let Some(deposed) = deposed {
            head.insert("deposed".into(), json!(deposed));
        }
        head.insert("schema_version".into(), json!(foreign.schema_version));
        let mut tail = Map::new();
        let mut sensitive = Vec::new();
        // Terraform does not know that the output of its own type is what was put in.
        let marked = if built_in { object.value.with("output", Value::Null) } else { object.value.clone() };
        marked_places(&marked, &mut Vec::new(), &mut sensitive);
        tail.insert("sensitive_attributes".into(), Json::Array(sensitive));
        if let Some((_, version)) = &foreign.identity {
            tail.insert("identity_schema_version".into(), json!(version));
        }
        if !foreign.private.is_empty() {
            tail.insert("private".into(), json!(BASE64_STANDARD.encode(&foreign.private)));
        }
        let dependencies = self.dependencies(record, object);
        if !dependencies.is_empty() {
            tail.insert("dependencies".into(), json!(dependencies));
        }
        if object.create_before_destroy {
            tail.insert("create_before_destroy".into(), json!(true));
        }
        // OpenTofu from 1.12 on; others pass over it.
        if object.skip_destroy {
            tail.insert("skip_destroy".into(), json!(true));
        }
        // Attributes and identity keep every digit of their numbers.
        let identity = foreign.identity.map(|(identity, _)| format!(", \"identity\": {identity}")).unwrap_or_default();
        let inner = |map: Map<String, Json>| {
            let text = Json::Object(map).to_string();
            text.strip_prefix('{').and_then(|text| text.strip_suffix('}')).unwrap_or_default().to_owned()
        };
        Ok(format!("{{{}, \"attributes\": {}{identity}, {}}}", inner(head), foreign.attributes, inner(tail)))
    }

    /// What an object was made from, to the last one: that is what states have.
    fn dependencies(&self, record: &Record, object: &RecordedObject) -> BTreeSet<String> {
        let mut open: Vec<Address> = object.dependencies.to_vec();
        let mut names: BTreeSet<Arc<str>> = BTreeSet::new();
        while let Some(address) = open.pop() {
            if !names.insert(address.name.clone()) {
                continue;
            }
            let current =
                of_name(self.recorded, &address.name).filter_map(|(_, stored)| stored.record.current.as_ref());
            open.extend(current.flat_map(|object| object.dependencies.iter().cloned()));
        }
        names.remove(&record.address.name);
        let known = names.iter().flat_map(|name| of_name(self.recorded, name)).map(|(_, stored)| &stored.record);
        let known = known.filter(|record| *record.type_name != *kubernetes_object::TYPE_NAME);
        known.map(|record| format!("{}.{}", record.type_name, name(&record.address.name))).collect()
    }
}

/// The paths of what must not be shown. A record has the same form for a map and an object, whose steps have different names:
/// both are written, and Terraform and OpenTofu pass over the one that leads nowhere.
fn marked_places(value: &Value, at: &mut Vec<Json>, found: &mut Vec<Json>) {
    match value {
        Value::Sensitive(_) => found.push(Json::Array(at.clone())),
        Value::Map(entries) => {
            for (key, item) in entries.iter() {
                let attribute = json!({"type": "get_attr", "value": key});
                let index =
                    (!at.is_empty()).then(|| json!({"type": "index", "value": {"value": key, "type": "string"}}));
                for step in std::iter::once(attribute).chain(index) {
                    at.push(step);
                    marked_places(item, at, found);
                    at.pop();
                }
            }
        }
        Value::List(items) => {
            for (place, item) in items.iter().enumerate() {
                at.push(json!({"type": "index", "value": {"value": place, "type": "number"}}));
                marked_places(item, at, found);
                at.pop();
            }
        }
        _ => {}
    }
}

/// The attributes of a `terraform_data`: all but the id carry their types.
fn built_in_attributes(value: &Value) -> String {
    let text = |name: &str| match value.get(name).map(Value::without_marks) {
        None | Some(Value::Null) => "null".to_owned(),
        Some(value) => format!("{{\"value\":{},\"type\":{}}}", value.to_json_text(), type_of(&value).to_json()),
    };
    let id = value.get("id").map(Value::to_json).unwrap_or_default();
    let parts = ["input", "output", "triggers_replace"].map(|name| format!("\"{name}\":{}", text(name)));
    format!("{{\"id\":{id},{}}}", parts.join(","))
}

/// The type of a value as it was written.
fn type_of(value: &Value) -> Type {
    match value {
        Value::Null | Value::Unknown => Type::Dynamic,
        Value::Bool(_) => Type::Bool,
        Value::Number(_) => Type::Number,
        Value::String(_) => Type::String,
        Value::List(items) => Type::Tuple(items.iter().map(type_of).collect()),
        Value::Map(entries) => Type::object(entries.iter().map(|(key, item)| (key.clone(), type_of(item)))),
        Value::Sensitive(inner) => type_of(inner),
    }
}
