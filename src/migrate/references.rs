//! References between the resources of a state: what depends on what, and the expressions that give a value back.
//!
//! Nothing is guessed: an expression stands for a value only where the configuration says that the value was read there,
//! or where a secret of something that the object was made from is the very same text; and only when it gives exactly
//! what the state has.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::address::{Key, ResourceAddress};
use super::arguments::escape;
use super::configuration::Target;
use super::gather::Gathered;
use crate::load::expression::spelled;
use crate::model::{InstanceKey, Path, Segment, Value};

/// Shorter texts are found everywhere, so that they are no sign of a reference when only the resource is known.
const TELLING: usize = 4;

/// Shorter secrets may be equal by chance.
const SECRET: usize = 8;

/// All resources of a state, by what configuration calls them.
pub struct Index<'a> {
    all: &'a [Gathered],
    by_address: BTreeMap<String, Vec<usize>>,
    /// What each was made from, by name.
    uses: BTreeMap<Arc<str>, BTreeSet<Arc<str>>>,
}

/// An expression and the value that it has.
#[derive(Debug, PartialEq)]
pub struct Referable {
    expression: String,
    value: Value,
    /// It stands for secrets only.
    only_secrets: bool,
}

impl<'a> Index<'a> {
    /// Of the given resources.
    pub fn new(all: &'a [Gathered]) -> Self {
        let mut by_address: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (position, one) in all.iter().enumerate() {
            by_address.entry(one.address.in_configuration()).or_default().push(position);
        }
        let mut index = Self { all, by_address, uses: BTreeMap::new() };
        let uses = |one: &Gathered| {
            let found = one.instances.iter().flat_map(|instance| instance.current.iter());
            let used = found.flat_map(|found| index.dependencies(one, &found.dependencies));
            (one.name.clone(), used.map(|used| used.name.clone()).collect())
        };
        index.uses = all.iter().map(uses).collect();
        index
    }

    /// The resources that `from` means by an address: of those in several instances of a module the ones in its own.
    fn meant(&self, from: &ResourceAddress, address: &str) -> impl Iterator<Item = &'a Gathered> {
        let found: Vec<&Gathered> =
            self.by_address.get(address).into_iter().flatten().map(|at| &self.all[*at]).collect();
        let nearest = found.iter().map(|one| one.address.shared_modules(from)).max();
        found.into_iter().filter(move |one| Some(one.address.shared_modules(from)) == nearest)
    }

    /// The resources that others were made from.
    pub fn dependencies(&self, from: &Gathered, addresses: &[String]) -> Vec<&'a Gathered> {
        let all = addresses.iter().flat_map(|address| self.meant(&from.address, address));
        let mut found: Vec<&Gathered> = all.filter(|one| one.name != from.name).collect();
        found.sort_by(|a, b| a.name.cmp(&b.name));
        found.dedup_by(|a, b| a.name == b.name);
        found
    }

    /// Of what something was made from, what does not follow from the rest: states have all of it, to the last one.
    pub fn direct(&self, from: &Gathered, addresses: &[String]) -> BTreeSet<Arc<str>> {
        let all = self.dependencies(from, addresses);
        let uses = |user: &Gathered, used: &Gathered| self.uses[&user.name].contains(&used.name);
        let follows =
            |one: &&&Gathered| all.iter().any(|other| other.name != one.name && uses(other, one) && !uses(one, other));
        all.iter().filter(|one| !follows(one)).map(|one| one.name.clone()).collect()
    }

    /// The expressions that an argument of an instance may have, by what its configuration reads.
    pub fn read(&self, from: &Gathered, key: &InstanceKey, targets: &[Target]) -> Vec<Referable> {
        let mut found = Vec::new();
        for target in targets {
            // The resource alone is named beside each of its attributes.
            let better = |other: &Target| other.resource == target.resource && !other.path.is_empty();
            if target.path.is_empty() && targets.iter().any(better) {
                continue;
            }
            for one in self.meant(&from.address, &target.resource).filter(|one| one.name != from.name) {
                let Some((place, object)) = chosen(one, key, target.key.as_ref()) else { continue };
                let mut add = |path: &[Segment], value: Value| {
                    let expression = spelled_below(&spelled(&one.name, &[]), &place, path);
                    found.push(Referable { expression, value: value.without_marks(), only_secrets: false });
                };
                if target.path.is_empty() {
                    for (name, value) in
                        texts(object).filter(|(_, text)| text.as_str().is_some_and(|t| t.len() >= TELLING))
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

    /// The expressions that a secret of an object may have: texts of what it was made from.
    pub fn secrets(&self, from: &Gathered, key: &InstanceKey, addresses: &[String]) -> Vec<Referable> {
        let mut found = Vec::new();
        for one in self.dependencies(from, addresses) {
            let Some((place, object)) = chosen(one, key, None) else { continue };
            let long = texts(object).filter(|(_, text)| text.as_str().is_some_and(|text| text.len() >= SECRET));
            found.extend(long.map(|(name, value)| Referable {
                expression: spelled_below(&spelled(&one.name, &[]), &place, &[Segment::Name(name)]),
                value: value.without_marks(),
                only_secrets: true,
            }));
        }
        found
    }
}

fn spelled_below(root: &str, place: &str, path: &[Segment]) -> String {
    // The path of an attribute is spelled as behind any name.
    let name = "x";
    let below = spelled(name, path);
    format!("{root}{place}{}", &below[name.len()..])
}

/// Texts at the top of an object, its id first.
fn texts(object: &Value) -> impl Iterator<Item = (Arc<str>, Value)> {
    let Value::Map(entries) = object.unmarked() else { return Vec::new().into_iter() };
    let mut found: Vec<(Arc<str>, Value)> = entries
        .iter()
        .filter(|(_, value)| value.as_str().is_some())
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    found.sort_by_key(|(name, _)| **name != *"id");
    found.into_iter()
}

/// The object that a reference means, and how it is chosen among its family.
fn chosen<'g>(one: &'g Gathered, own: &InstanceKey, named: Option<&Key>) -> Option<(String, &'g Value)> {
    let object = |key: &InstanceKey| {
        one.wanted().find(|(instance, _)| instance.key == *key).map(|(_, found)| &found.object.value)
    };
    match named {
        Some(_) => {
            let key = InstanceKey::from(named);
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

/// The text of a manifest that gives a value, if one does.
pub fn restored(value: &Value, referables: &[Referable]) -> Option<String> {
    let sensitive = matches!(value, Value::Sensitive(_));
    let plain = value.without_marks();
    let set = match &plain {
        Value::Null | Value::Unknown | Value::Bool(_) => false,
        Value::String(text) => !text.is_empty(),
        Value::List(items) => !items.is_empty(),
        Value::Map(entries) => !entries.is_empty(),
        Value::Number(_) | Value::Sensitive(_) => true,
    };
    let usable = referables.iter().filter(|one| sensitive || !one.only_secrets);
    if let Some(whole) = usable.clone().find(|one| set && one.value == plain) {
        return Some(format!("${{{}}}", whole.expression));
    }
    // The rest of a secret may be one as well.
    let Value::String(text) = &plain else { return None };
    if sensitive {
        return None;
    }
    let parts: Vec<&Referable> = usable.collect();
    let made = inside(text, &parts);
    (made != escape(text)).then_some(made)
}

/// A piece of a text, with what is in it replaced.
fn inside(text: &str, referables: &[&Referable]) -> String {
    let found = referables.iter().enumerate().find_map(|(at, one)| {
        let part = one.value.as_str().filter(|part| part.len() >= TELLING && text.contains(part))?;
        Some((at, part, one))
    });
    let Some((at, part, one)) = found else { return escape(text) };
    let pieces: Vec<String> = text.split(part).map(|piece| inside(piece, &referables[at + 1..])).collect();
    pieces.join(&format!("${{{}}}", one.expression))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn referable(expression: &str, value: &str, only_secrets: bool) -> Referable {
        Referable { expression: expression.into(), value: Value::from(value), only_secrets }
    }

    #[test]
    fn values_become_expressions_where_they_were_read() {
        let all = [referable("pet.id", "calm-cat", false), referable("key.pem", "s3cret-text", true)];
        let restored = |value: Value| super::restored(&value, &all);
        assert_eq!(restored("calm-cat".into()).as_deref(), Some("${pet.id}"));
        assert_eq!(restored("a/calm-cat/${b}/calm-cat".into()).as_deref(), Some("a/${pet.id}/$${b}/${pet.id}"));
        assert_eq!(restored("s3cret-text".into()), None);
        assert_eq!(restored(Value::from("s3cret-text").into_sensitive()).as_deref(), Some("${key.pem}"));
        assert_eq!(restored(Value::from("user:s3cret-text").into_sensitive()), None);
        assert_eq!(restored("other".into()), None);
        assert_eq!(
            spelled_below("web", "[each.key]", &[Segment::Name("a-b".into()), Segment::Index(1)]),
            "web[each.key][\"a-b\"][1]"
        );
    }
}
