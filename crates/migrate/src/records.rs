//! Records of the objects of a state, at Terraform's addresses.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::Problem;
use super::state::{Object, Resource, State, in_configuration};
use configuration::ResourceAddress;
use engine::load::Config;
use engine::plan::DataDependencies;
use model::{Address, Name, ObjectStatus, Path, ProviderUse, Record, RecordedObject, Segment, Stem, Value};
use terraform::{NamedProvider, address};

/// Where the objects of a state belong to.
pub struct Place<'a> {
    /// The configuration, whose references are the direct dependencies of its objects.
    pub config: &'a Config,
    /// The source of its objects.
    pub source: &'a Arc<str>,
    /// The provider configurations of objects.
    pub providers: &'a dyn Fn(&NamedProvider) -> Option<Arc<ProviderUse>>,
}

/// Creates the records of a state. `objects` are those of each resource, in order, in their current schema versions.
///
/// # Errors
/// The state contains an object twice.
pub fn records(state: &State, objects: &[Vec<RecordedObject>], place: &Place<'_>) -> Result<Vec<Record>, Problem> {
    let dependencies = Dependencies::new(state, place.config);
    let mut records: BTreeMap<Address, Record> = BTreeMap::new();
    for (resource, adopted) in state.resources.iter().zip(objects) {
        for (object, adopted) in resource.objects.iter().zip(adopted) {
            let address = address(&Name::default(), &resource.instance(object));
            let provider = (place.providers)(&object.provider);
            let recorded = RecordedObject {
                dependencies: dependencies.of(resource, object, &address),
                // The state was read with the same configuration.
                provider_config: provider.as_ref().map(|used| used.digest.clone()).unwrap_or_default(),
                provider,
                ..with_state(object, adopted)
            };
            let of = records.entry(address.clone()).or_insert_with(|| {
                let namespace = place.config.namespace.clone();
                let empty =
                    Record::empty(namespace, address.clone(), "".into(), resource.address.resource.kind.clone().into());
                Record { source: Some(Arc::clone(place.source)), ..empty }
            });
            let before = match object.deposed {
                None => of.current.replace(Arc::new(recorded)),
                Some(key) => of.deposed.insert(key, Arc::new(recorded)),
            };
            if before.is_some() {
                let message = format!("`{address}`: the state contains a duplicate instance");
                return Err(Problem::hinted(message, "repair the state first"));
            }
        }
    }
    Ok(records.into_values().collect())
}

/// An object with what the state says of it.
fn with_state(object: &Object, adopted: &RecordedObject) -> RecordedObject {
    let value = marked(adopted.value.clone(), &object.sensitive);
    let value = if object.provider.source.is_built_in() { marked_output(value, &object.sensitive) } else { value };
    RecordedObject {
        value,
        status: if object.tainted { ObjectStatus::Tainted } else { ObjectStatus::Ready },
        create_before_destroy: object.create_before_destroy,
        skip_destroy: object.skip_destroy,
        ..adopted.clone()
    }
}

/// Marks the values at the paths of a state as sensitive.
fn marked(value: Value, paths: &[Path]) -> Value {
    paths.iter().fold(value, |value, path| mark(&value, &path.0))
}

/// The output of `terraform_data` equals its input, but Terraform marks only the input.
fn marked_output(value: Value, paths: &[Path]) -> Value {
    let input = Segment::Name("input".into());
    let below = paths.iter().filter_map(|path| path.0.strip_prefix(std::slice::from_ref(&input)));
    below.fold(value, |value, rest| mark(&value, &[&[Segment::Name("output".into())], rest].concat()))
}

/// Marks the value at a path as sensitive. A path that does not exist, or that is inside a marked value, is ignored.
fn mark(value: &Value, path: &[Segment]) -> Value {
    let Some((first, rest)) = path.split_first() else {
        return if *value == Value::Null { Value::Null } else { value.clone().into_sensitive() };
    };
    match (value, first) {
        (Value::Map(entries), Segment::Name(name)) if entries.contains_key(name) => {
            let inner = entries.get(name).unwrap_or(&Value::Null);
            value.with(name.clone(), mark(inner, rest))
        }
        (Value::List(items), Segment::Index(place)) if *place < items.len() => {
            let items = items.iter().enumerate();
            Value::list(items.map(|(at, item)| if at == *place { mark(item, rest) } else { item.clone() }))
        }
        _ => value.clone(),
    }
}

/// What the objects of a state depend on.
struct Dependencies<'a> {
    config: &'a Config,
    through: DataDependencies,
    /// The resources by their addresses in the configuration.
    resources: BTreeMap<String, Vec<&'a Resource>>,
}

impl<'a> Dependencies<'a> {
    fn new(state: &'a State, config: &'a Config) -> Self {
        let mut resources: BTreeMap<String, Vec<&Resource>> = BTreeMap::new();
        for resource in &state.resources {
            resources.entry(in_configuration(&resource.address)).or_default().push(resource);
        }
        Self { config, through: DataDependencies::new(config), resources }
    }

    /// The dependencies to record. A state has the indirect ones too, so that what the configuration says does not have to be
    /// repeated: only what it does not imply was a dependency of an earlier configuration, and is kept for the order of
    /// destroys.
    fn of(&self, resource: &Resource, object: &Object, address: &Address) -> Arc<[Address]> {
        let mut direct = match object.deposed {
            None => self.configured(address),
            Some(_) => BTreeSet::new(),
        };
        let implied = self.implied(&direct);
        let others = object.dependencies.iter().flat_map(|other| self.nearest(&resource.address, other));
        let others = others.filter(|other| other.stem != address.stem && !implied.contains(&other.stem));
        direct.extend(others.collect::<Vec<_>>());
        direct.into_iter().collect()
    }

    /// The direct dependencies of an object of the configuration.
    fn configured(&self, address: &Address) -> BTreeSet<Address> {
        let Some(instance) = self.config.instances.get(address) else { return BTreeSet::new() };
        let targets = self.through.targets(self.config, instance);
        targets.unwrap_or_else(|| instance.references.iter().map(|reference| reference.target.clone()).collect())
    }

    /// The stems of all that the configuration puts before the dependencies, and their own.
    fn implied(&self, direct: &BTreeSet<Address>) -> BTreeSet<Stem> {
        let mut open: Vec<Address> = direct.iter().cloned().collect();
        let mut found = BTreeSet::new();
        while let Some(next) = open.pop() {
            if found.insert(next.stem.clone()) {
                let members = self.config.instance_addresses(&next.stem);
                open.extend(members.flat_map(|member| self.configured(member)));
                let family = self.config.families.get(&next.stem).into_iter();
                open.extend(
                    family.flat_map(|family| family.shared.references.iter().map(|reference| reference.target.clone())),
                );
            }
        }
        found
    }

    /// The resources of an address in the configuration, in the nearest instances of its module.
    fn nearest(&self, from: &ResourceAddress, address: &str) -> impl Iterator<Item = Address> {
        let resources = self.resources.get(address).map(Vec::as_slice).unwrap_or_default();
        let nearest = resources.iter().map(|resource| shared_steps(&resource.address, from)).max();
        let resources = resources.iter().filter(move |resource| Some(shared_steps(&resource.address, from)) == nearest);
        resources.map(|resource| {
            let has_keys = resource.objects.iter().any(|object| object.key.is_some());
            let stem = Stem::in_configuration(Name::default(), resource.address.to_string());
            if has_keys { stem.family() } else { stem.single() }
        })
    }
}

fn shared_steps(a: &ResourceAddress, b: &ResourceAddress) -> usize {
    a.module.0.iter().zip(b.module.0.iter()).take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn existing_paths_are_marked() {
        let value = Value::map([("a", Value::list([Value::from("x"), Value::from("y")])), ("b", Value::Null)]);
        let all = Path::default();
        let made =
            marked(value.clone(), &[all.name("a").index(1), all.name("b"), all.name("c"), all.name("a").index(7)]);
        let expected = Value::list([Value::from("x"), Value::from("y").into_sensitive()]);
        assert_eq!(made, value.with("a", expected));
    }
}
