//! Converts the objects of a state to the form of records, with their possible configuration.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Problem;
use super::address::{ResourceAddress, instance_key};
use super::configuration::Configuration;
use super::state::{Object, ProviderAddress, Resource};
use cty::{Type, json};
use drivers::provider::ForeignObject;
use drivers::provider::values::to_unmarked_model;
use drivers::terraform_data;
use model::{Address, DeposedKey, Diagnostics, InstanceKey, ObjectStatus, RecordedObject, Segment, Value};

/// A resource of a state with its objects.
#[derive(Debug)]
pub struct MigratedResource {
    /// The address in the state.
    pub address: ResourceAddress,
    /// The name of the Resource or `DataSource`.
    pub name: Arc<str>,
    pub type_name: Arc<str>,
    /// The provider configuration.
    pub provider: ProviderAddress,
    pub instances: Vec<MigratedInstance>,
    /// Notes for the user.
    pub notes: Vec<String>,
}

#[derive(Debug, Default)]
pub struct MigratedInstance {
    pub key: InstanceKey,
    pub current: Option<MigratedObject>,
    /// Replaced objects that still exist.
    pub deposed: BTreeMap<DeposedKey, MigratedObject>,
}

#[derive(Clone, Debug, Default)]
pub struct MigratedObject {
    /// The recorded object, still without dependencies, provider and flags.
    pub object: RecordedObject,
    /// The possible configuration. Sensitive values are marked.
    pub config: Value,
    /// The configuration with every argument that has a value.
    pub full: Value,
    /// The dependencies, as addresses in the configuration.
    pub dependencies: Vec<String>,
    /// A replacement creates the new object before it destroys the old one.
    pub create_before_destroy: bool,
}

impl MigratedResource {
    /// Returns the instances with a current object whose kind of key equals that of the first one.
    pub fn current_objects(&self) -> impl Iterator<Item = (&MigratedInstance, &MigratedObject)> {
        let in_use = || self.instances.iter().filter_map(|one| Some((one, one.current.as_ref()?)));
        let kind = in_use().next().map(|(one, _)| std::mem::discriminant(&one.key));
        in_use().filter(move |(one, _)| Some(std::mem::discriminant(&one.key)) == kind)
    }

    /// Whether its instances have keys.
    pub fn is_family(&self) -> bool {
        self.current_objects().next().is_some_and(|(one, _)| one.key != InstanceKey::None)
    }

    /// The address by which other objects record a dependency on it.
    pub fn dependency(&self) -> Address {
        if self.is_family() { Address::family(self.name.clone()) } else { Address::single(self.name.clone()) }
    }
}

/// An object in its current schema version, from its provider or built in.
#[derive(Clone, Debug, Default)]
pub struct AdoptedObject {
    /// The value, private data, identity and schema version.
    pub object: RecordedObject,
    /// The possible configuration. Null for a deposed object, which has no manifest.
    pub config: Value,
    /// The configuration with every argument that has a value.
    pub full: Value,
    /// The provider's diagnostics for the configuration.
    pub problems: Diagnostics,
}

/// Converts resources to the form of records. Returns also a note for each data source that is skipped because of a
/// problem; it can be read again.
///
/// # Errors
/// One problem for each resource that cannot be converted.
pub fn gather(
    all: impl Iterator<Item = ((Resource, Arc<str>), Result<Vec<AdoptedObject>, Problem>)>,
    configuration: Option<&Configuration>,
) -> Result<(Vec<MigratedResource>, Vec<String>), Vec<Problem>> {
    let mut found = Vec::new();
    let mut left_out = Vec::new();
    let mut problems = Vec::new();
    for ((resource, name), answers) in all {
        let is_data = resource.address.is_data;
        match answers.and_then(|answers| migrate_resource(resource, name, answers, configuration)) {
            Ok(one) => found.push(one),
            Err(problem) if is_data => left_out.push(format!("{}; it is skipped", problem.message)),
            Err(problem) => problems.push(problem),
        }
    }
    if problems.is_empty() { Ok((found, left_out)) } else { Err(problems) }
}

/// Returns an object that needs no provider. `None`: its provider must be called.
///
/// # Errors
/// The built-in type is unknown, or the attributes are invalid.
pub fn without_provider(resource: &Resource, object: &Object) -> Option<Result<AdoptedObject, Problem>> {
    if resource.address.is_data || resource.provider.source != terraform_data::PROVIDER {
        return None;
    }
    let type_name = &resource.address.type_name;
    let address = resource.instance(object);
    if *type_name != *terraform_data::TYPE_NAME {
        let message = format!("`{address}`: the type `{type_name}` is not supported");
        return Some(Err(Problem::hinted(message, "remove it from a copy of the state: `terraform state rm`")));
    }
    let value = built_in(&object.content).map_err(|what| Problem::plain(format!("`{address}`: {what}")));
    Some(value.map(|value| AdoptedObject {
        config: built_in_config(&value),
        full: built_in_config(&value),
        object: RecordedObject { value, ..RecordedObject::default() },
        problems: Vec::new(),
    }))
}

fn migrate_resource(
    resource: Resource,
    name: Arc<str>,
    answers: Vec<AdoptedObject>,
    configuration: Option<&Configuration>,
) -> Result<MigratedResource, Problem> {
    let Resource { address, provider, objects } = resource;
    let type_name: Arc<str> = address.type_name.as_str().into();
    let mut notes = Vec::new();
    let mut instances: BTreeMap<InstanceKey, MigratedInstance> = BTreeMap::new();
    for (object, answer) in objects.into_iter().zip(answers) {
        let key = instance_key(object.key.as_ref());
        let deposed = object.deposed;
        notes.extend(
            answer.problems.iter().map(|problem| format!("correct the arguments of `{name}` manually: {problem}")),
        );
        let mut found = migrate_object(object, answer, provider.source == terraform_data::PROVIDER);
        if deposed.is_none() {
            // A state contains no dependencies of data sources, and none on them.
            found.dependencies.extend(configuration.into_iter().flat_map(|known| known.depends_on(&address)));
        }
        let instance =
            instances.entry(key.clone()).or_insert_with(|| MigratedInstance { key, ..MigratedInstance::default() });
        let before = match deposed {
            None => instance.current.replace(found),
            Some(deposed) => instance.deposed.insert(deposed, found),
        };
        if before.is_some() {
            let message = format!("`{address}`: the state contains a duplicate instance");
            return Err(Problem::hinted(message, "repair the state first"));
        }
    }
    Ok(MigratedResource { address, name, type_name, provider, instances: instances.into_values().collect(), notes })
}

/// Adds the data of the state to an object: its status and sensitive paths.
fn migrate_object(from: Object, answer: AdoptedObject, is_built_in: bool) -> MigratedObject {
    let AdoptedObject { mut object, config, full, .. } = answer;
    object.skip_destroy = from.skip_destroy;
    object.status = if from.tainted { ObjectStatus::Tainted } else { ObjectStatus::Ready };
    object.value = from.sensitive.iter().fold(object.value, |value, path| mark_sensitive(&value, &path.0));
    if is_built_in {
        // The output equals the input, but Terraform marks only the input.
        let input = Segment::Name("input".into());
        let below = from.sensitive.iter().filter_map(|path| path.0.strip_prefix(std::slice::from_ref(&input)));
        let output = |rest: &[Segment]| [&[Segment::Name("output".into())], rest].concat();
        object.value = below.fold(object.value, |value, rest| mark_sensitive(&value, &output(rest)));
    }
    let marked = |value| from.sensitive.iter().fold(value, |value, path| mark_sensitive(&value, &path.0));
    MigratedObject {
        object,
        config: marked(config),
        full: marked(full),
        dependencies: from.dependencies,
        create_before_destroy: from.create_before_destroy,
    }
}

/// Marks the value at a path as sensitive. A path that does not exist, or that is inside a marked value, is ignored.
fn mark_sensitive(value: &Value, path: &[Segment]) -> Value {
    let Some((first, rest)) = path.split_first() else {
        return if *value == Value::Null { Value::Null } else { value.clone().into_sensitive() };
    };
    match (value, first) {
        (Value::Map(entries), Segment::Name(name)) if entries.contains_key(name) => {
            let inner = entries.get(name).unwrap_or(&Value::Null);
            value.with(name.clone(), mark_sensitive(inner, rest))
        }
        (Value::List(items), Segment::Index(place)) if *place < items.len() => {
            let one =
                |(at, item): (usize, &Value)| if at == *place { mark_sensitive(item, rest) } else { item.clone() };
            Value::list(items.iter().enumerate().map(one))
        }
        _ => value.clone(),
    }
}

/// Parses the value of a `terraform_data` object.
pub fn built_in(object: &ForeignObject) -> Result<Value, String> {
    let any = |name: &'static str| (name, Type::Dynamic);
    let ty = Type::object([("id", Type::String), any("input"), any("output"), any("triggers_replace")]);
    let value = json::decode(object.attributes.as_bytes(), &ty, json::UnsupportedAttributes::Ignore);
    Ok(to_unmarked_model(&value.map_err(|error| error.to_string())?))
}

fn built_in_config(value: &Value) -> Value {
    let arguments = ["input", "triggers_replace"];
    let set = arguments.iter().filter_map(|name| Some((*name, value.get(name)?.clone())));
    Value::map(set.filter(|(_, value)| *value != Value::Null))
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Path;

    #[test]
    fn existing_paths_are_marked() {
        let value = Value::map([("a", Value::list([Value::from("x"), Value::from("y")])), ("b", Value::Null)]);
        let all = Path::default();
        let made = [all.name("a").index(1), all.name("b"), all.name("c"), all.name("a").index(7)]
            .iter()
            .fold(value.clone(), |value, path| mark_sensitive(&value, &path.0));
        let expected = Value::list([Value::from("x"), Value::from("y").into_sensitive()]);
        assert_eq!(made, value.with("a", expected));
    }

    #[test]
    fn terraform_data_has_values_of_any_type() {
        let attributes =
            r#"{"id": "1", "input": {"value": ["a", 1], "type": ["tuple", ["string", "number"]]}, "output": null}"#;
        let object = ForeignObject { attributes: attributes.into(), ..ForeignObject::default() };
        let value = built_in(&object).unwrap();
        assert_eq!(built_in_config(&value), Value::from_json(serde_json::json!({"input": ["a", 1]})));
        assert_eq!(value.get("triggers_replace"), Some(&Value::Null));
    }
}
