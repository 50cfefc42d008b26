//! The objects of a state in the form of records, and what they may have been configured with.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures::StreamExt as _;
use futures::stream;
use jiff::SignedDuration;

use super::address::{Key, ResourceAddress};
use super::configuration::Configuration;
use super::providers::Chosen;
use super::state::{Object, ProviderAddress, Resource, State};
use crate::cli::failure::Failure;
use crate::cty::{self, Type, json};
use crate::driver::provider::ForeignObject;
use crate::driver::{CallContext, Driver as _, Preparation, Providers, Warnings, terraform_data};
use crate::model::{Address, DeposedKey, DriverError, InstanceKey, ObjectStatus, Path, RecordedObject, Segment, Value};
use crate::process::{Clock as _, SystemClock};

/// How many resources are looked at at once.
const AT_ONCE: usize = 16;

/// How long a provider may take over one object: it reads nothing.
const LIMIT: SignedDuration = SignedDuration::from_mins(5);

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

/// Asks providers about all resources of a state, in its order. A data source of which its provider makes nothing is left
/// out, with a line that tells it: nothing is lost by that, since it can be read.
///
/// # Errors
/// Each line that is wrong.
pub async fn gather(
    state: State,
    names: Vec<Arc<str>>,
    chosen: &Chosen,
    providers: &Providers,
    configuration: Option<&Configuration>,
) -> Result<(Vec<Gathered>, Vec<String>), Vec<anyhow::Error>> {
    prepare(&state, chosen, providers).await?;
    let gatherer = Gatherer { chosen, providers, configuration };
    let all = state.resources.into_iter().zip(names);
    let gather = async |(resource, name): (Resource, Arc<str>)| {
        (resource.address.is_data, gatherer.resource(resource, name).await)
    };
    let gathered: Vec<_> = stream::iter(all).map(gather).buffered(AT_ONCE).collect().await;
    let mut found = Vec::new();
    let mut left_out = Vec::new();
    let mut problems = Vec::new();
    for (is_data, one) in gathered {
        match one {
            Ok(one) => found.push(one),
            Err(error) if is_data => left_out.push(format!("{error}; it is left out")),
            Err(error) => problems.push(error),
        }
    }
    if problems.is_empty() { Ok((found, left_out)) } else { Err(problems) }
}

/// Installs and asks each provider once, so that what is wrong with it is told once. One that only has data sources may
/// be missing.
async fn prepare(state: &State, chosen: &Chosen, providers: &Providers) -> Result<(), Vec<anyhow::Error>> {
    let mut needed: Vec<_> = chosen.uses.values().map(|used| used.provider.clone()).collect();
    needed.sort();
    needed.dedup();
    providers.prepare(Preparation { namespace: None, version: 0, needed: &needed, current: &[], settled: &[] }).await;
    let managed = state.resources.iter().filter(|resource| !resource.address.is_data);
    let managed: Vec<_> = managed.filter_map(|one| Some(&chosen.uses.get(&one.provider)?.provider)).collect();
    let faults = needed.iter().filter(|provider| managed.contains(provider));
    let faults = faults.filter_map(|provider| Some((provider, providers.fault(provider)?)));
    let problems: Vec<_> = faults.map(|(provider, fault)| failure(&provider.source, fault)).collect();
    if problems.is_empty() { Ok(()) } else { Err(problems) }
}

fn failure(what: &dyn std::fmt::Display, error: DriverError) -> anyhow::Error {
    let place = error.path.map_or_else(String::new, |path| format!("{path}: "));
    Failure { message: format!("`{what}`: {place}{}", error.message), hint: error.hint }.into()
}

struct Gatherer<'a> {
    chosen: &'a Chosen,
    providers: &'a Providers,
    configuration: Option<&'a Configuration>,
}

impl Gatherer<'_> {
    async fn resource(&self, resource: Resource, name: Arc<str>) -> anyhow::Result<Gathered> {
        let Resource { address, provider, objects } = resource;
        let written = self.configuration.and_then(|known| known.written(&address));
        let type_name: Arc<str> = address.type_name.as_str().into();
        let mut gathered = Gathered { address, name, type_name, provider, instances: Vec::new(), notes: Vec::new() };
        let mut instances: BTreeMap<InstanceKey, Instance> = BTreeMap::new();
        for object in objects {
            let key = match &object.key {
                None => InstanceKey::None,
                Some(Key::Index(index)) => InstanceKey::Index(*index),
                Some(Key::Key(key)) => InstanceKey::Key(key.as_str().into()),
            };
            let deposed = object.deposed;
            let found = self.object(&mut gathered, &key, object, written.as_ref()).await?;
            let instance = instances.entry(key.clone()).or_insert_with(|| Instance { key, ..Instance::default() });
            let before = match deposed {
                None => instance.current.replace(found),
                Some(deposed) => instance.deposed.insert(deposed, found),
            };
            if before.is_some() {
                let message = format!("`{}`: the state has one of its instances twice", gathered.address);
                return Err(Failure::hinted(message, "repair the state first"));
            }
        }
        gathered.instances = instances.into_values().collect();
        Ok(gathered)
    }

    async fn object(
        &self,
        gathered: &mut Gathered,
        key: &InstanceKey,
        from: Object,
        written: Option<&BTreeSet<Arc<str>>>,
    ) -> anyhow::Result<Found> {
        let told = format!("{}{key}", gathered.address);
        let mut object = RecordedObject {
            status: if from.tainted { ObjectStatus::Tainted } else { ObjectStatus::Ready },
            ..RecordedObject::default()
        };
        let config = if gathered.address.is_data {
            let context = self.context(gathered, &told);
            let none = BTreeSet::new();
            let adopted = self.providers.adopt_data(&context, &from.content, written.unwrap_or(&none)).await;
            let (value, config) = adopted.map_err(|error| failure(&told, error))?;
            object.value = value;
            config
        } else if gathered.provider.source == terraform_data::PROVIDER {
            if *gathered.type_name != *terraform_data::TYPE_NAME {
                let message = format!("`{told}`: the type `{}` is not served", gathered.type_name);
                return Err(Failure::hinted(message, "remove it from a copy of the state: `terraform state rm`"));
            }
            object.value = built_in(&from.content).map_err(|what| anyhow::anyhow!("`{told}`: {what}"))?;
            built_in_config(&object.value)
        } else {
            let context = self.context(gathered, &told);
            let fail = |error| failure(&told, error);
            let adopted = self.providers.adopt(&context, &from.content).await.map_err(fail)?;
            object.value = adopted.state.value;
            object.private = adopted.state.private;
            object.identity = adopted.state.identity;
            object.schema_version = adopted.schema_version;
            if from.deposed.is_none() {
                let made =
                    self.providers.reconstruct_as_written(&context, &object.value, written).await.map_err(fail)?;
                gathered.notes.extend(made.problems.iter().map(|problem| {
                    format!("the arguments of `{}` have to be corrected by hand: {problem}", gathered.name)
                }));
                made.config
            } else {
                Value::Null
            }
        };
        object.value = from.sensitive.iter().fold(object.value, |value, path| marked(&value, &path.0));
        if gathered.provider.source == terraform_data::PROVIDER {
            // Its output is what was put in, which Terraform does not tell.
            let input = Segment::Name("input".into());
            let below = from.sensitive.iter().filter_map(|path| path.0.strip_prefix(std::slice::from_ref(&input)));
            let output = |rest: &[Segment]| [&[Segment::Name("output".into())], rest].concat();
            object.value = below.fold(object.value, |value, rest| marked(&value, &output(rest)));
        }
        let config = from.sensitive.iter().fold(config, |value, path| marked(&value, &path.0));
        let mut dependencies = from.dependencies;
        if gathered.address.is_data {
            // A state does not say after what something was read.
            dependencies.extend(self.configuration.into_iter().flat_map(|known| known.depends_on(&gathered.address)));
        }
        Ok(Found { object, config, dependencies, create_before_destroy: from.create_before_destroy })
    }

    fn context(&self, gathered: &Gathered, address: &str) -> CallContext {
        let now = SystemClock.now();
        CallContext {
            type_name: gathered.type_name.clone(),
            namespace: "".into(),
            address: address.into(),
            provider: self.chosen.uses.get(&gathered.provider).cloned(),
            service_account: "".into(),
            deadline: now.checked_add(LIMIT).unwrap_or(now),
            operation_id: "".into(),
            warnings: Warnings::default(),
        }
    }
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

/// The place of a value as paths name it.
pub fn at(value: &Value, path: &[Segment]) -> Option<Value> {
    Path(path.to_vec()).get(value)
}

#[cfg(test)]
mod tests {
    use super::*;

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
