//! Exports records as a state for Terraform and OpenTofu.
//!
//! All resources are in the root module, because records have no modules, unless the state that they were migrated from is
//! given. Data that only Purlin has (hooks, protection, triggers) is not exported.

mod base;
mod sensitive;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Map, Value as Json, json};

use super::Problem;
use super::state::VERSION;
use cty::Type;
use drivers::provider::ForeignObject;
use drivers::{kubernetes_object, terraform_data};
use model::{
    Address, DeposedKey, InstanceKey, ObjectStatus, ProviderUse, Record, Recorded, RecordedObject, Value, in_family,
};

pub use base::Base;

/// The oldest version that can read the state.
const WRITTEN_BY: &str = "1.5.0";

/// The type of the objects of a type of a provider. `None`: its schema is unknown.
pub type ObjectTypes<'a> = dyn Fn(&ProviderUse, &str) -> Option<Type> + 'a;

/// What a state has in addition to its objects.
pub struct Export<'a> {
    pub lineage: &'a str,
    pub serial: u64,
    /// The state that the records were migrated from.
    pub base: Option<&'a Base>,
    pub types: &'a ObjectTypes<'a>,
}

/// Returns a state, and notes for the user. The records must have no open operations, because such records are
/// incomplete.
///
/// # Errors
/// A record is damaged, or the objects of a Resource use several providers.
pub fn state(recorded: &Recorded, export: &Export<'_>) -> Result<(String, Vec<String>), Problem> {
    let mut notes = Vec::new();
    let mut resources: BTreeMap<(String, String), Vec<&Record>> = BTreeMap::new();
    for stored in recorded.values().filter(|stored| stored.record.has_objects()) {
        let record = stored.record.as_ref();
        if *record.type_name == *kubernetes_object::TYPE_NAME {
            notes.push(format!("`{}` is skipped: no provider has the type `{}`", record.address, record.type_name));
            continue;
        }
        resources.entry((record.type_name.to_string(), name(&record.address.name))).or_default().push(record);
    }
    let exporter = Exporter { recorded, export };
    let mut written = Vec::new();
    for ((type_name, name), records) in &resources {
        written.extend(exporter.resources(type_name, name, records)?);
    }
    let base = export.base;
    written.extend(base.into_iter().flat_map(|base| base.data.iter().cloned()));
    let head = format!(
        "{{\n  \"version\": {VERSION},\n  \"terraform_version\": {},\n  \"serial\": {},\n  \"lineage\": {},\n  \"outputs\": {},\n  \"resources\": [",
        Json::from(base.map_or(WRITTEN_BY, |base| &base.written_by)),
        export.serial,
        Json::from(export.lineage),
        base.map_or("{}", |base| &base.outputs),
    );
    let body = written.iter().map(|resource| format!("\n    {resource}")).collect::<Vec<_>>().join(",");
    let tail = if written.is_empty() { "" } else { "\n  " };
    let checks = base.map_or("null", |base| &base.check_results);
    Ok((format!("{head}{body}{tail}],\n  \"check_results\": {checks}\n}}\n"), notes))
}

/// Converts a name to Terraform's form. Names of Purlin contain no `_`, so they stay unique.
fn name(name: &str) -> String {
    let name = name.replace('-', "_");
    if name.starts_with(|first: char| first.is_ascii_digit()) { format!("_{name}") } else { name }
}

/// Returns the address of a provider configuration.
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
    export: &'a Export<'a>,
}

impl Exporter<'_> {
    /// Returns the entries of one resource, one for each provider configuration of its objects.
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
        // A state contains a resource only once, with one provider. Objects of another provider must be destroyed
        // first.
        if by_provider.len() > 1 {
            let message = format!("the objects of `{}` use several providers", records[0].address.name);
            return Err(Problem::hinted(message, "apply once, so that all objects use the desired provider"));
        }
        let known = self.known(type_name, &records[0].address.name);
        let module = known.map(base::KnownResource::module).filter(|module| !module.is_empty());
        let name = known.map_or(name, |known| &known.address.name);
        let entry = |(provider, instances): (String, Vec<String>)| {
            let provider = known.map_or(&provider, |known| &known.provider);
            let head = [("mode", "managed"), ("type", type_name), ("name", name), ("provider", provider)];
            let head = module.iter().map(|module| ("module", module.as_str())).chain(head);
            let head: Vec<String> = head.map(|(key, text)| format!("\"{key}\": {}", Json::from(text))).collect();
            let instances = instances.iter().map(|one| format!("\n      {one}")).collect::<Vec<_>>().join(",");
            format!("{{{}, \"instances\": [{instances}\n    ]}}", head.join(", "))
        };
        Ok(by_provider.into_iter().map(entry).collect())
    }

    /// The resource of the earlier state.
    fn known(&self, type_name: &str, name: &str) -> Option<&base::KnownResource> {
        self.export.base?.resource(type_name, name)
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
            true => ForeignObject { attributes: self.built_in(record, object), ..ForeignObject::default() },
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
        // Terraform does not know that the output of `terraform_data` equals its input.
        let marked = if built_in { object.value.with("output", Value::Null) } else { object.value.clone() };
        let ty = match &object.provider {
            Some(used) => (self.export.types)(used, &record.type_name),
            None => Some(type_of(&marked)),
        };
        let mut sensitive = sensitive::paths(&marked, ty.as_ref());
        let known = self.known(&record.type_name, &record.address.name).filter(|_| deposed.is_none());
        let earlier = known.and_then(|known| known.sensitive.get(key)).into_iter().flatten();
        let added: Vec<Json> = earlier.filter(|path| !sensitive.contains(*path)).cloned().collect();
        sensitive.extend(added);
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
        // OpenTofu 1.12 and later; other versions ignore it.
        if object.skip_destroy {
            tail.insert("skip_destroy".into(), json!(true));
        }
        // Attributes and identity keep all digits of their numbers.
        let identity = foreign.identity.map(|(identity, _)| format!(", \"identity\": {identity}")).unwrap_or_default();
        let inner = |map: Map<String, Json>| {
            let text = Json::Object(map).to_string();
            text.strip_prefix('{').and_then(|text| text.strip_suffix('}')).unwrap_or_default().to_owned()
        };
        Ok(format!("{{{}, \"attributes\": {}{identity}, {}}}", inner(head), foreign.attributes, inner(tail)))
    }

    /// Returns all direct and indirect dependencies of an object, as a state contains them.
    fn dependencies(&self, record: &Record, object: &RecordedObject) -> BTreeSet<String> {
        let mut open: Vec<Address> = object.dependencies.to_vec();
        let mut names: BTreeSet<Arc<str>> = BTreeSet::new();
        while let Some(address) = open.pop() {
            if !names.insert(address.name.clone()) {
                continue;
            }
            let current =
                in_family(self.recorded, &address.name).filter_map(|(_, stored)| stored.record.current.as_ref());
            open.extend(current.flat_map(|object| object.dependencies.iter().cloned()));
        }
        names.remove(&record.address.name);
        let known = names.iter().flat_map(|name| in_family(self.recorded, name)).map(|(_, stored)| &stored.record);
        let known = known.filter(|record| *record.type_name != *kubernetes_object::TYPE_NAME);
        let address = |record: &Record| match self.known(&record.type_name, &record.address.name) {
            Some(known) => known.address.in_configuration(),
            None => format!("{}.{}", record.type_name, name(&record.address.name)),
        };
        known.map(|record| address(record)).collect()
    }

    /// The attributes of a `terraform_data` object. If its values are those of the earlier state, so are their types.
    fn built_in(&self, record: &Record, object: &RecordedObject) -> String {
        let known = self.known(&record.type_name, &record.address.name);
        let same = known.and_then(|known| known.built_in(&record.address.key, &object.value));
        same.map_or_else(|| built_in_attributes(&object.value), str::to_owned)
    }
}

/// The attributes of a `terraform_data` object. All except `id` include their types.
fn built_in_attributes(value: &Value) -> String {
    let text = |name: &str| match value.get(name).map(Value::without_marks) {
        None | Some(Value::Null) => "null".to_owned(),
        Some(value) => format!("{{\"value\":{},\"type\":{}}}", value.to_json_text(), type_of(&value).to_json()),
    };
    let id = value.get("id").map(Value::to_json).unwrap_or_default();
    let parts = ["input", "output", "triggers_replace"].map(|name| format!("\"{name}\":{}", text(name)));
    format!("{{\"id\":{id},{}}}", parts.join(","))
}

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
