//! Exports records as a state for Terraform and OpenTofu.
//!
//! Objects of a Terraform configuration keep their addresses; those of manifests are in the root module. Data that only Purlin
//! has (hooks, protection, triggers) is not exported.

mod base;
mod sensitive;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Map, Value as Json, json};

use super::Problem;
use super::state::{VERSION, in_configuration, named_provider, provider_text};
use configuration::{Mode, ModulePath, ProviderSource, ResourceAddress, ResourceName};
use cty::Type;
use drivers::provider::ForeignObject;
use drivers::{kubernetes_object, terraform_data};
use model::{
    Address, DeposedKey, InstanceKey, ObjectStatus, ProviderUse, Record, Recorded, RecordedObject, Stem, Value, in_stem,
};

use terraform::NamedProvider;

pub use base::Base;

/// The oldest version that can read the state.
const WRITTEN_BY: &str = "1.5.0";

/// The type of the objects of a type of a provider. `None`: its schema is unknown.
pub type ObjectTypes<'a> = dyn Fn(&ProviderUse, &str) -> Option<Type> + 'a;

/// What a state has in addition to its objects.
pub struct Export<'a> {
    pub lineage: &'a str,
    pub serial: u64,
    /// The outputs, as a state has them.
    pub outputs: &'a str,
    /// The state that the records were taken over from.
    pub base: Option<&'a Base>,
    pub types: &'a ObjectTypes<'a>,
    /// The configuration of an object of `terraform_data`, whose values have more types than those of records.
    pub configured: &'a dyn Fn(&Address) -> Option<cty::Value>,
}

/// Returns a state, and notes for the user. The records must have no open operations, because such records are
/// incomplete.
///
/// # Errors
/// A record is damaged, or the objects of a Resource use several providers.
pub fn state(recorded: &Recorded, export: &Export<'_>) -> Result<(String, Vec<String>), Problem> {
    let mut notes = Vec::new();
    let mut resources: BTreeMap<ResourceAddress, Vec<&Record>> = BTreeMap::new();
    for stored in recorded.values().filter(|stored| stored.record.has_objects()) {
        let record = stored.record.as_ref();
        if *record.type_name == *kubernetes_object::TYPE_NAME {
            notes.push(format!("`{}` is skipped: no provider has the type `{}`", record.address, record.type_name));
            continue;
        }
        resources.entry(resource(record)).or_default().push(record);
    }
    let exporter = Exporter { recorded, export };
    let written = resources.iter().map(|(address, records)| exporter.resource(address, records));
    let mut written = written.collect::<Result<Vec<_>, _>>()?;
    let base = export.base;
    written.extend(base.into_iter().flat_map(|base| base.data.iter().cloned()));
    let head = format!(
        "{{\n  \"version\": {VERSION},\n  \"terraform_version\": {},\n  \"serial\": {},\n  \"lineage\": {},\n  \"outputs\": {},\n  \"resources\": [",
        Json::from(base.map_or(WRITTEN_BY, |base| &base.written_by)),
        export.serial,
        Json::from(export.lineage),
        export.outputs,
    );
    let body = written.iter().map(|resource| format!("\n    {resource}")).collect::<Vec<_>>().join(",");
    let tail = if written.is_empty() { "" } else { "\n  " };
    let checks = base.map_or("null", |base| &base.check_results);
    Ok((format!("{head}{body}{tail}],\n  \"check_results\": {checks}\n}}\n"), notes))
}

/// The address of the resource that an object is of. Names of Purlin contain no `_`, so they stay unique.
fn resource(record: &Record) -> ResourceAddress {
    if let Some(instance) = terraform::instance(&record.address) {
        return instance.resource;
    }
    let name = record.address.name().replace('-', "_");
    let name = if name.starts_with(|first: char| first.is_ascii_digit()) { format!("_{name}") } else { name };
    let resource = ResourceName { mode: Mode::Managed, kind: record.type_name.text().clone(), name: name.into() };
    ResourceAddress { module: ModulePath::default(), resource }
}

/// The configuration of a provider that an object was last changed with.
fn provider(record: &Record, used: Option<&Arc<ProviderUse>>) -> Result<NamedProvider, Problem> {
    let Some(used) = used else { return Ok(default_provider(ProviderSource::implied("terraform"))) };
    let source = ProviderSource::parse(&used.provider.source);
    let source = source.ok_or_else(|| no_provider(record, &used.provider.source))?;
    if record.address.is_qualified() {
        return named_provider(&used.name, source).ok_or_else(|| no_provider(record, &used.name));
    }
    let alias = match used.name.strip_prefix(&*used.provider.name) {
        Some("") => None,
        Some(rest) if rest.starts_with('-') => Some(Arc::from(&rest[1..])),
        _ => Some(used.name.clone()),
    };
    Ok(NamedProvider { alias, ..default_provider(source) })
}

fn default_provider(source: ProviderSource) -> NamedProvider {
    NamedProvider { source, module: ModulePath::default(), alias: None, key: None }
}

fn no_provider(record: &Record, what: &str) -> Problem {
    Problem::plain(format!("`{}` cannot be exported: `{what}` names no provider", record.address))
}

struct Exporter<'a> {
    recorded: &'a Recorded,
    export: &'a Export<'a>,
}

impl Exporter<'_> {
    /// Returns the entry of one resource.
    fn resource(&self, address: &ResourceAddress, records: &[&Record]) -> Result<String, Problem> {
        let mut instances = Vec::new();
        let mut providers = BTreeSet::new();
        for record in records {
            let objects = record.current.iter().map(|object| (None, object));
            for (deposed, object) in objects.chain(record.deposed.iter().map(|(key, object)| (Some(*key), object))) {
                let provider = provider(record, object.provider.as_ref())?;
                instances.push((*record, deposed, object, provider.clone()));
                providers.insert(provider);
            }
        }
        // Objects of a provider configuration with `for_each` name their own instance of it. Otherwise, a state contains a
        // resource only once, with one provider: objects of another provider must be destroyed first.
        let has_keys = providers.iter().any(|provider| provider.key.is_some());
        if providers.len() > 1 && !has_keys {
            let message = format!("the objects of `{address}` use several providers");
            return Err(Problem::hinted(message, "apply once, so that all objects use the desired provider"));
        }
        let instances: Result<Vec<String>, Problem> = instances
            .iter()
            .map(|(record, deposed, object, provider)| {
                let provider = has_keys.then(|| self.provider(provider));
                Ok(format!("\n      {}", self.instance(address, record, *deposed, object, provider)?))
            })
            .collect();
        let module = address.module.to_string();
        let provider = providers.first().filter(|_| !has_keys).map(|provider| self.provider(provider));
        let head = [
            ("module", Some(module).filter(|module| !module.is_empty())),
            ("mode", Some("managed".to_owned())),
            ("type", Some(address.resource.kind.to_string())),
            ("name", Some(address.resource.name.to_string())),
            ("provider", provider),
        ];
        let head = head.into_iter().filter_map(|(key, text)| Some(format!("\"{key}\": {}", Json::from(text?))));
        let head: Vec<String> = head.collect();
        Ok(format!("{{{}, \"instances\": [{}\n    ]}}", head.join(", "), instances?.join(",")))
    }

    /// The address of a provider, as the earlier state has it: Terraform and OpenTofu have different default registries.
    fn source(&self, source: &ProviderSource) -> String {
        let known = self.export.base.and_then(|base| base.sources.get(source));
        known.cloned().unwrap_or_else(|| source.full())
    }

    fn instance(
        &self,
        address: &ResourceAddress,
        record: &Record,
        deposed: Option<DeposedKey>,
        object: &RecordedObject,
        provider: Option<String>,
    ) -> Result<String, Problem> {
        let key = &record.address.key;
        let known = self.export.base.and_then(|base| base.objects.get(&(address.clone(), key.clone(), deposed)));
        let is_built_in = *record.type_name == *terraform_data::TYPE_NAME;
        let foreign = match is_built_in {
            true => ForeignObject { attributes: self.built_in(known, record, object), ..ForeignObject::default() },
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
        if let Some(provider) = provider {
            head.insert("provider".into(), json!(provider));
        }
        head.insert("schema_version".into(), json!(foreign.schema_version));
        let mut tail = Map::new();
        tail.insert("sensitive_attributes".into(), Json::Array(self.sensitive(known, record, object)));
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
        Ok(format!("{{{}, \"attributes\": {}{identity}, {}}}", members(head), foreign.attributes, members(tail)))
    }

    /// The paths of sensitive values, and those that the earlier state has.
    fn sensitive(&self, known: Option<&base::KnownObject>, record: &Record, object: &RecordedObject) -> Vec<Json> {
        let is_built_in = *record.type_name == *terraform_data::TYPE_NAME;
        // Terraform does not know that the output of `terraform_data` equals its input.
        let marked = if is_built_in { object.value.with("output", Value::Null) } else { object.value.clone() };
        let ty = match &object.provider {
            Some(used) => (self.export.types)(used, &record.type_name),
            None => Some(type_of(&marked)),
        };
        let mut sensitive = sensitive::paths(&marked, ty.as_ref());
        let earlier = known.into_iter().flat_map(|known| &known.sensitive);
        let added: Vec<Json> = earlier.filter(|path| !sensitive.contains(*path)).cloned().collect();
        sensitive.extend(added);
        sensitive
    }

    fn provider(&self, provider: &NamedProvider) -> String {
        provider_text(provider, &self.source(&provider.source))
    }

    /// Returns all direct and indirect dependencies of an object, as a state contains them.
    fn dependencies(&self, record: &Record, object: &RecordedObject) -> BTreeSet<String> {
        let mut open: Vec<Address> = object.dependencies.to_vec();
        let mut stems: BTreeSet<Stem> = BTreeSet::new();
        while let Some(address) = open.pop() {
            if !stems.insert(address.stem.clone()) {
                continue;
            }
            let current =
                in_stem(self.recorded, &address.stem).filter_map(|(_, stored)| stored.record.current.as_ref());
            open.extend(current.flat_map(|object| object.dependencies.iter().cloned()));
        }
        let known = stems.iter().flat_map(|stem| in_stem(self.recorded, stem)).map(|(_, stored)| &stored.record);
        let known = known.filter(|record| *record.type_name != *kubernetes_object::TYPE_NAME);
        let dependent = in_configuration(&resource(record));
        known.map(|record| in_configuration(&resource(record))).filter(|other| *other != dependent).collect()
    }

    /// The attributes of a `terraform_data` object. If its values are those of the earlier state or of the configuration, so are
    /// their types.
    fn built_in(&self, known: Option<&base::KnownObject>, record: &Record, object: &RecordedObject) -> String {
        if let Some(same) = known.and_then(|known| known.attributes_of(&object.value)) {
            return same.to_owned();
        }
        let configured = (self.export.configured)(&record.address);
        let configured = configured.as_ref().and_then(cty::Value::as_entries);
        let id = object.value.get("id").map(Value::to_json).unwrap_or_default();
        let parts = [("input", "input"), ("output", "input"), ("triggers_replace", "triggers_replace")];
        let parts = parts.map(|(name, argument)| {
            let configured = configured.and_then(|entries| entries.get(argument));
            format!("\"{name}\":{}", typed(object.value.get(name), configured))
        });
        format!("{{\"id\":{id},{}}}", parts.join(","))
    }
}

/// The members of an object, without its braces.
fn members(map: Map<String, Json>) -> String {
    let text = Json::Object(map).to_string();
    text.strip_prefix('{').and_then(|text| text.strip_suffix('}')).unwrap_or_default().to_owned()
}

/// A value with its type: that of the configuration, if it has the same value.
fn typed(value: Option<&Value>, configured: Option<&cty::Value>) -> String {
    match value.map(Value::without_marks) {
        None | Some(Value::Null) => "null".to_owned(),
        Some(value) => {
            let same = configured.filter(|known| terraform::to_model(known).equals_unmarked(&value));
            let ty = same.map_or_else(|| type_of(&value), |known| known.ty().clone());
            format!("{{\"value\":{},\"type\":{}}}", value.to_json_text(), ty.to_json())
        }
    }
}

/// The type that a value of a record has, if nothing else is known of it.
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
