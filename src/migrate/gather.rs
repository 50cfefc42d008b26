//! The objects of a state in the form of records, and what they may have been configured with.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Problem;
use super::address::ResourceAddress;
use super::configuration::Configuration;
use super::state::{Object, ProviderAddress, Resource};
use crate::cty::{self, Type, json};
use crate::driver::provider::ForeignObject;
use crate::driver::terraform_data;
use crate::model::{Address, DeposedKey, Diagnostics, InstanceKey, ObjectStatus, RecordedObject, Segment, Value};

/// A resource of a state with its objects.
#[derive(Debug)]
pub struct Gathered {
    /// What it was called.
    pub address: ResourceAddress,
    /// What it is called here.
    pub name: Arc<str>,
    /// The resource type.
    pub type_name: Arc<str>,
    /// Which configuration of which provider manages it.
    pub provider: ProviderAddress,
    /// Its instances.
    pub instances: Vec<Instance>,
    /// What its providers had to say.
    pub notes: Vec<String>,
}

/// One instance.
#[derive(Debug, Default)]
pub struct Instance {
    /// Which one.
    pub key: InstanceKey,
    /// The object in use.
    pub current: Option<Found>,
    /// Objects that were replaced and are still there.
    pub deposed: BTreeMap<DeposedKey, Found>,
}

/// An object.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// As it is recorded; dependencies, providers and flags are still missing.
    pub object: RecordedObject,
    /// What it may have been configured with. Sensitive places are marked.
    pub config: Value,
    /// What it was made from, as configuration names it.
    pub dependencies: Vec<String>,
    /// It is replaced by creating its successor first.
    pub create_before_destroy: bool,
}

impl Gathered {
    /// Which kind of family its instances make: that of the first one that is in use.
    pub fn wanted(&self) -> impl Iterator<Item = (&Instance, &Found)> {
        let in_use = || self.instances.iter().filter_map(|one| Some((one, one.current.as_ref()?)));
        let kind = in_use().next().map(|(one, _)| std::mem::discriminant(&one.key));
        in_use().filter(move |(one, _)| Some(std::mem::discriminant(&one.key)) == kind)
    }

    /// Whether it stands for several objects.
    pub fn is_family(&self) -> bool {
        self.wanted().next().is_some_and(|(one, _)| one.key != InstanceKey::None)
    }

    /// How a dependency on it is recorded.
    pub fn dependency(&self) -> Address {
        if self.is_family() { Address::whole(self.name.clone()) } else { Address::single(self.name.clone()) }
    }
}

/// What is known of one object: as its provider gives it, or as it is built in.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    /// Value, private bytes, identity and version of the schema.
    pub object: RecordedObject,
    /// What it may have been configured with; null for a deposed object, which has no manifest.
    pub config: Value,
    /// What the provider does not accept in that.
    pub problems: Diagnostics,
}

/// Brings resources into the form of records, from what is known of their objects. A data source of which nothing is
/// known is left out, with a line that says so: nothing is lost by that, since it can be read again.
///
/// # Errors
/// Each resource that is wrong.
pub fn gather(
    all: impl Iterator<Item = ((Resource, Arc<str>), Result<Vec<Answer>, Problem>)>,
    configuration: Option<&Configuration>,
) -> Result<(Vec<Gathered>, Vec<String>), Vec<Problem>> {
    let mut found = Vec::new();
    let mut left_out = Vec::new();
    let mut problems = Vec::new();
    for ((resource, name), answers) in all {
        let is_data = resource.address.is_data;
        match answers.and_then(|answers| resource_of(resource, name, answers, configuration)) {
            Ok(one) => found.push(one),
            Err(problem) if is_data => left_out.push(format!("{}; it is left out", problem.message)),
            Err(problem) => problems.push(problem),
        }
    }
    if problems.is_empty() { Ok((found, left_out)) } else { Err(problems) }
}

/// What is known of an object without a provider; `None`: one is to be asked.
///
/// # Errors
/// When its type is none of the built-in ones, or its attributes are no such object.
pub fn without_provider(resource: &Resource, object: &Object) -> Option<Result<Answer, Problem>> {
    if resource.address.is_data || resource.provider.source != terraform_data::PROVIDER {
        return None;
    }
    let type_name = &resource.address.type_name;
    let address = resource.instance(object);
    if *type_name != *terraform_data::TYPE_NAME {
        let message = format!("`{address}`: the type `{type_name}` is not served");
        return Some(Err(Problem::hinted(message, "remove it from a copy of the state: `terraform state rm`")));
    }
    let value = built_in(&object.content).map_err(|what| Problem::plain(format!("`{address}`: {what}")));
    Some(value.map(|value| Answer {
        config: built_in_config(&value),
        object: RecordedObject { value, ..RecordedObject::default() },
        problems: Vec::new(),
    }))
}

fn resource_of(
    resource: Resource,
    name: Arc<str>,
    answers: Vec<Answer>,
    configuration: Option<&Configuration>,
) -> Result<Gathered, Problem> {
    let Resource { address, provider, objects } = resource;
    let type_name: Arc<str> = address.type_name.as_str().into();
    let mut notes = Vec::new();
    let mut instances: BTreeMap<InstanceKey, Instance> = BTreeMap::new();
    for (object, answer) in objects.into_iter().zip(answers) {
        let key = InstanceKey::from(object.key.as_ref());
        let deposed = object.deposed;
        notes.extend(
            answer
                .problems
                .iter()
                .map(|problem| format!("the arguments of `{name}` have to be corrected by hand: {problem}")),
        );
        let mut found = found(object, answer, provider.source == terraform_data::PROVIDER);
        if address.is_data {
            // A state does not say after what something was read.
            found.dependencies.extend(configuration.into_iter().flat_map(|known| known.depends_on(&address)));
        }
        let instance = instances.entry(key.clone()).or_insert_with(|| Instance { key, ..Instance::default() });
        let before = match deposed {
            None => instance.current.replace(found),
            Some(deposed) => instance.deposed.insert(deposed, found),
        };
        if before.is_some() {
            let message = format!("`{address}`: the state has one of its instances twice");
            return Err(Problem::hinted(message, "repair the state first"));
        }
    }
    Ok(Gathered { address, name, type_name, provider, instances: instances.into_values().collect(), notes })
}

/// What is known of an object, with what the state says of it: its status, and which places are sensitive.
fn found(from: Object, answer: Answer, is_built_in: bool) -> Found {
    let Answer { mut object, config, .. } = answer;
    object.skip_destroy = from.skip_destroy;
    object.status = if from.tainted { ObjectStatus::Tainted } else { ObjectStatus::Ready };
    object.value = from.sensitive.iter().fold(object.value, |value, path| marked(&value, &path.0));
    if is_built_in {
        // Its output is what was put in, and Terraform marks only that.
        let input = Segment::Name("input".into());
        let below = from.sensitive.iter().filter_map(|path| path.0.strip_prefix(std::slice::from_ref(&input)));
        let output = |rest: &[Segment]| [&[Segment::Name("output".into())], rest].concat();
        object.value = below.fold(object.value, |value, rest| marked(&value, &output(rest)));
    }
    let config = from.sensitive.iter().fold(config, |value, path| marked(&value, &path.0));
    Found { object, config, dependencies: from.dependencies, create_before_destroy: from.create_before_destroy }
}

/// The value with a place of it marked. A place that is not there, or inside of something marked, needs none.
fn marked(value: &Value, path: &[Segment]) -> Value {
    let Some((first, rest)) = path.split_first() else {
        return if *value == Value::Null { Value::Null } else { value.clone().into_sensitive() };
    };
    match (value, first) {
        (Value::Map(entries), Segment::Name(name)) if entries.contains_key(name) => {
            let inner = entries.get(name).unwrap_or(&Value::Null);
            value.with(name.clone(), marked(inner, rest))
        }
        (Value::List(items), Segment::Index(place)) if *place < items.len() => {
            let one = |(at, item): (usize, &Value)| if at == *place { marked(item, rest) } else { item.clone() };
            Value::list(items.iter().enumerate().map(one))
        }
        _ => value.clone(),
    }
}

/// The value of a `terraform_data`.
fn built_in(object: &ForeignObject) -> Result<Value, String> {
    let any = |name: &'static str| (name, Type::Dynamic);
    let ty = Type::object([("id", Type::String), any("input"), any("output"), any("triggers_replace")]);
    let value = json::decode(object.attributes.as_bytes(), &ty, json::Unsupported::LeaveOut);
    Ok(cty::plain(&value.map_err(|error| error.to_string())?))
}

fn built_in_config(value: &Value) -> Value {
    let arguments = ["input", "triggers_replace"];
    let set = arguments.iter().filter_map(|name| Some((*name, value.get(name)?.clone())));
    Value::map(set.filter(|(_, value)| *value != Value::Null))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Path;

    #[test]
    fn marks_reach_places_that_are_there() {
        let value = Value::map([("a", Value::list([Value::from("x"), Value::from("y")])), ("b", Value::Null)]);
        let all = Path::default();
        let made = [all.name("a").index(1), all.name("b"), all.name("c"), all.name("a").index(7)]
            .iter()
            .fold(value.clone(), |value, path| marked(&value, &path.0));
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
