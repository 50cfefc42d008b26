//! References between the resources of a state: dependencies, and expressions that return a value of the state.
//!
//! An expression replaces a value only if the configuration references it there, or if a secret of a dependency is the
//! same string; and only if it returns exactly the value of the state.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::address::{Key, ResourceAddress, instance_key};
use super::arguments::escape;
use super::configuration::ReferencedValue;
use super::gather::MigratedResource;
use engine::load::expression::path_expression;
use model::{InstanceKey, Path, Segment, Value};

/// Shorter strings occur by chance, so they do not indicate a reference when only the resource is known.
const MIN_MATCH_LENGTH: usize = 4;

/// Shorter secrets may be equal by chance.
const MIN_SECRET_LENGTH: usize = 8;

/// All resources of a state, by configuration address.
pub struct Index<'a> {
    all: &'a [MigratedResource],
    by_address: BTreeMap<String, Vec<usize>>,
    /// The dependencies by name.
    uses: BTreeMap<Arc<str>, BTreeSet<Arc<str>>>,
}

/// An expression and its value.
#[derive(Debug, PartialEq)]
pub struct Candidate {
    expression: String,
    value: Value,
    /// The expression can replace only sensitive values.
    only_secrets: bool,
}

impl<'a> Index<'a> {
    pub fn new(all: &'a [MigratedResource]) -> Self {
        let mut by_address: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (position, one) in all.iter().enumerate() {
            by_address.entry(one.address.in_configuration()).or_default().push(position);
        }
        let mut index = Self { all, by_address, uses: BTreeMap::new() };
        let uses = |one: &MigratedResource| {
            let found = one.instances.iter().flat_map(|instance| instance.current.iter());
            let used = found.flat_map(|found| index.dependencies(one, &found.dependencies));
            (one.name.clone(), used.map(|used| used.name.clone()).collect())
        };
        index.uses = all.iter().map(uses).collect();
        index
    }

    /// Resolves a configuration address that `from` references. If the module has several instances, it returns the
    /// resources in the nearest one.
    fn resolve(&self, from: &ResourceAddress, address: &str) -> impl Iterator<Item = &'a MigratedResource> {
        let found: Vec<&MigratedResource> =
            self.by_address.get(address).into_iter().flatten().map(|at| &self.all[*at]).collect();
        let nearest = found.iter().map(|one| one.address.shared_modules(from)).max();
        found.into_iter().filter(move |one| Some(one.address.shared_modules(from)) == nearest)
    }

    pub fn dependencies(&self, from: &MigratedResource, addresses: &[String]) -> Vec<&'a MigratedResource> {
        let all = addresses.iter().flat_map(|address| self.resolve(&from.address, address));
        let mut found: Vec<&MigratedResource> = all.filter(|one| one.name != from.name).collect();
        found.sort_by(|a, b| a.name.cmp(&b.name));
        found.dedup_by(|a, b| a.name == b.name);
        found
    }

    /// Returns the direct dependencies of a resource. A state also contains the indirect ones.
    pub fn direct_dependencies(&self, from: &MigratedResource, addresses: &[String]) -> BTreeSet<Arc<str>> {
        let all = self.dependencies(from, addresses);
        let uses = |user: &MigratedResource, used: &MigratedResource| self.uses[&user.name].contains(&used.name);
        let follows = |one: &&&MigratedResource| {
            all.iter().any(|other| other.name != one.name && uses(other, one) && !uses(one, other))
        };
        all.iter().filter(|one| !follows(one)).map(|one| one.name.clone()).collect()
    }

    /// Returns the possible expressions of an argument, from the references in the configuration.
    pub fn candidates(
        &self,
        from: &MigratedResource,
        key: &InstanceKey,
        targets: &[ReferencedValue],
    ) -> Vec<Candidate> {
        let mut found = Vec::new();
        for target in targets {
            // The configuration lists a resource in addition to each of its attributes.
            let better = |other: &ReferencedValue| other.resource == target.resource && !other.path.is_empty();
            if target.path.is_empty() && targets.iter().any(better) {
                continue;
            }
            for one in self.resolve(&from.address, &target.resource).filter(|one| one.name != from.name) {
                let Some((place, object)) = select_instance(one, key, target.key.as_ref()) else { continue };
                let mut add = |path: &[Segment], value: Value| {
                    let expression = attribute_expression(&path_expression(&one.name, &[]), &place, path);
                    found.push(Candidate { expression, value: value.without_marks(), only_secrets: false });
                };
                if target.path.is_empty() {
                    for (name, value) in string_attributes(object)
                        .filter(|(_, text)| text.as_str().is_some_and(|t| t.len() >= MIN_MATCH_LENGTH))
                    {
                        add(&[Segment::Name(name)], value);
                    }
                } else if let Some(value) = object.at(&Path(target.path.clone())) {
                    add(&target.path, value);
                }
            }
        }
        found
    }

    /// Whether one of the values is sensitive.
    pub fn reads_sensitive(&self, from: &MigratedResource, targets: &[ReferencedValue]) -> bool {
        let reads = |target: &ReferencedValue| {
            let values = self.resolve(&from.address, &target.resource).flat_map(MigratedResource::current_objects);
            let at = Path(target.path.clone());
            values.filter_map(|(_, found)| found.object.value.at(&at)).any(|value| value.has_sensitive())
        };
        targets.iter().any(reads)
    }

    /// Returns the possible expressions of a secret: strings of its dependencies.
    pub fn secret_candidates(
        &self,
        from: &MigratedResource,
        key: &InstanceKey,
        addresses: &[String],
    ) -> Vec<Candidate> {
        let mut found = Vec::new();
        for one in self.dependencies(from, addresses) {
            let Some((place, object)) = select_instance(one, key, None) else { continue };
            let long = string_attributes(object)
                .filter(|(_, text)| text.as_str().is_some_and(|text| text.len() >= MIN_SECRET_LENGTH));
            found.extend(long.map(|(name, value)| Candidate {
                expression: attribute_expression(&path_expression(&one.name, &[]), &place, &[Segment::Name(name)]),
                value: value.without_marks(),
                only_secrets: true,
            }));
        }
        found
    }
}

fn attribute_expression(root: &str, place: &str, path: &[Segment]) -> String {
    // The path after a name does not depend on the name.
    let name = "x";
    let below = path_expression(name, path);
    format!("{root}{place}{}", &below[name.len()..])
}

/// Returns the top-level string attributes of an object, `id` first.
fn string_attributes(object: &Value) -> impl Iterator<Item = (Arc<str>, Value)> {
    let Value::Map(entries) = object.unmarked() else { return Vec::new().into_iter() };
    let mut found: Vec<(Arc<str>, Value)> = entries
        .iter()
        .filter(|(_, value)| value.as_str().is_some())
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    found.sort_by_key(|(name, _)| **name != *"id");
    found.into_iter()
}

/// Returns the referenced object, and the expression that selects it in its family.
fn select_instance<'g>(
    one: &'g MigratedResource,
    own: &InstanceKey,
    named: Option<&Key>,
) -> Option<(String, &'g Value)> {
    let object = |key: &InstanceKey| {
        one.current_objects().find(|(instance, _)| instance.key == *key).map(|(_, found)| &found.object.value)
    };
    match named {
        Some(_) => {
            let key = instance_key(named);
            Some((key.to_string(), object(&key)?))
        }
        None if !one.is_family() => Some((String::new(), object(&InstanceKey::None)?)),
        None => {
            let place = match own {
                InstanceKey::Index(_) => "[count.index]",
                InstanceKey::Key(_) => "[each.key]",
                InstanceKey::None | InstanceKey::All => return None,
            };
            Some((place.to_owned(), object(own)?))
        }
    }
}

/// Returns the manifest string that evaluates to a value, if one exists.
pub fn restore_expression(value: &Value, candidates: &[Candidate]) -> Option<String> {
    let sensitive = matches!(value, Value::Sensitive(_));
    let plain = value.without_marks();
    let set = match &plain {
        Value::Null | Value::Unknown | Value::Bool(_) => false,
        Value::String(text) => !text.is_empty(),
        Value::List(items) => !items.is_empty(),
        Value::Map(entries) => !entries.is_empty(),
        Value::Number(_) | Value::Sensitive(_) => true,
    };
    let usable = candidates.iter().filter(|one| sensitive || !one.only_secrets);
    if let Some(whole) = usable.clone().find(|one| set && one.value == plain) {
        return Some(format!("${{{}}}", whole.expression));
    }
    // The rest of a secret may also be secret.
    let Value::String(text) = &plain else { return None };
    if sensitive {
        return None;
    }
    let parts: Vec<&Candidate> = usable.collect();
    let replaced = replace_parts(text, &parts);
    (replaced != escape(text)).then_some(replaced)
}

/// Replaces the known values in a string by expressions.
fn replace_parts(text: &str, candidates: &[&Candidate]) -> String {
    let found = candidates.iter().enumerate().find_map(|(at, one)| {
        let part = one.value.as_str().filter(|part| part.len() >= MIN_MATCH_LENGTH && text.contains(part))?;
        Some((at, part, one))
    });
    let Some((at, part, one)) = found else { return escape(text) };
    let pieces: Vec<String> = text.split(part).map(|piece| replace_parts(piece, &candidates[at + 1..])).collect();
    pieces.join(&format!("${{{}}}", one.expression))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn referable(expression: &str, value: &str, only_secrets: bool) -> Candidate {
        Candidate { expression: expression.into(), value: Value::from(value), only_secrets }
    }

    #[test]
    fn referenced_values_become_expressions() {
        let all = [referable("pet.id", "calm-cat", false), referable("key.pem", "s3cret-text", true)];
        let restored = |value: Value| super::restore_expression(&value, &all);
        assert_eq!(restored("calm-cat".into()).as_deref(), Some("${pet.id}"));
        assert_eq!(restored("a/calm-cat/${b}/calm-cat".into()).as_deref(), Some("a/${pet.id}/$${b}/${pet.id}"));
        assert_eq!(restored("s3cret-text".into()), None);
        assert_eq!(restored(Value::from("s3cret-text").into_sensitive()).as_deref(), Some("${key.pem}"));
        assert_eq!(restored(Value::from("user:s3cret-text").into_sensitive()), None);
        assert_eq!(restored("other".into()), None);
        assert_eq!(
            attribute_expression("web", "[each.key]", &[Segment::Name("a-b".into()), Segment::Index(1)]),
            "web[each.key][\"a-b\"][1]"
        );
    }
}
