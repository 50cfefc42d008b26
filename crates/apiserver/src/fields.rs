//! The owners of fields: sets of paths, and the differences between two states of an object.
//!
//! As in the real server, a path ends at a scalar, an atomic value, an empty map, and each item of a list with keys.
//! The names of fields decide which lists have keys, for all kinds.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value};

/// One step of a path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    Field(Arc<str>),
    /// An item of a list, by the values of its keys: `name="web"`.
    Item(Arc<str>),
}

/// A set of paths.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fields {
    /// Whether the set contains this path itself.
    pub own: bool,
    pub below: BTreeMap<Step, Fields>,
}

/// An entry of `managedFields`, without its fields.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Manager {
    pub name: String,
    pub applies: bool,
    pub api_version: String,
    pub subresource: String,
}

/// The fields of each manager.
pub type Owners = BTreeMap<Manager, Fields>;

/// The difference between two states of an object.
#[derive(Debug, Default)]
pub struct Difference {
    /// Fields that were added or have another value.
    pub set: Fields,
    pub removed: Fields,
}

impl Manager {
    /// The name in the message of a conflict.
    pub fn display_name(&self) -> String {
        let mut text = format!("\"{}\"", self.name);
        if !self.subresource.is_empty() {
            text.push_str(&format!(" with subresource \"{}\"", self.subresource));
        }
        if !self.applies {
            text.push_str(&format!(" using {}", self.api_version));
        }
        text
    }
}

impl Fields {
    pub fn is_empty(&self) -> bool {
        !self.own && self.below.is_empty()
    }

    pub fn all_of(value: &Value) -> Self {
        let mut fields = Self::default();
        collect(value, Shape::Object, &mut fields);
        fields
    }

    pub fn add(&mut self, other: &Self) {
        self.own |= other.own;
        for (step, fields) in &other.below {
            self.below.entry(step.clone()).or_default().add(fields);
        }
    }

    /// Removes the paths of `other` and everything below them.
    pub fn take_out(&mut self, other: &Self) {
        if other.own {
            *self = Self::default();
            return;
        }
        for (step, fields) in &other.below {
            if let Some(mine) = self.below.get_mut(step) {
                mine.take_out(fields);
                if mine.is_empty() {
                    self.below.remove(step);
                }
            }
        }
    }

    /// The paths in both sets, as text.
    pub fn shared(&self, other: &Self) -> Vec<String> {
        let mut found = Vec::new();
        self.shared_below(other, "", &mut found);
        found
    }

    fn shared_below(&self, other: &Self, path: &str, found: &mut Vec<String>) {
        if self.own && other.own {
            found.push(path.to_owned());
        }
        for (step, fields) in &self.below {
            if let Some(other) = other.below.get(step) {
                let path = match step {
                    Step::Field(name) => format!("{path}.{name}"),
                    Step::Item(keys) => format!("{path}[{keys}]"),
                };
                fields.shared_below(other, &path, found);
            }
        }
    }
}

/// How a part of an object is merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// The object as a whole.
    Object,
    Metadata,
    Map,
    Atomic,
    /// A list whose items have keys.
    Keyed(&'static [&'static str]),
    /// A list of unique values.
    Set,
}

/// How a field is merged, by its name and the name of its parent.
pub fn shape(above: Shape, parent: &str, name: &str) -> Shape {
    match (above, name) {
        (Shape::Object, "metadata") => Shape::Metadata,
        (Shape::Metadata, "finalizers") => Shape::Set,
        (Shape::Metadata, "ownerReferences") => Shape::Keyed(&["uid"]),
        (_, "containers" | "initContainers" | "volumes" | "env") => Shape::Keyed(&["name"]),
        // It is atomic in a ServiceAccount, but not in a Pod.
        (_, "imagePullSecrets") if above != Shape::Object => Shape::Keyed(&["name"]),
        (_, "secrets") if above == Shape::Object => Shape::Keyed(&["name"]),
        (_, "volumeMounts") => Shape::Keyed(&["mountPath"]),
        (_, "conditions") => Shape::Keyed(&["type"]),
        (_, "ports") if parent == "spec" => Shape::Keyed(&["port", "protocol"]),
        (_, "ports") => Shape::Keyed(&["containerPort", "protocol"]),
        (_, "selector" | "labelSelector" | "configMapRef" | "secretRef" | "configMapKeyRef" | "secretKeyRef") => {
            Shape::Atomic
        }
        (_, "roleRef" | "resourceFieldRef" | "fieldRef") => Shape::Atomic,
        _ => Shape::Map,
    }
}

/// Whether a field has owners.
fn is_owned(above: Shape, name: &str) -> bool {
    match above {
        Shape::Object => !matches!(name, "apiVersion" | "kind"),
        Shape::Metadata => !matches!(
            name,
            "name"
                | "namespace"
                | "uid"
                | "resourceVersion"
                | "generation"
                | "creationTimestamp"
                | "managedFields"
                | "selfLink"
                | "deletionTimestamp"
                | "deletionGracePeriodSeconds"
        ),
        _ => true,
    }
}

/// The step to an item of a list: its keys, or the item itself.
pub fn item_step(shape: Shape, item: &Value) -> Step {
    let Shape::Keyed(keys) = shape else { return Step::Item(format!("={item}").into()) };
    let parts = keys.iter().filter_map(|key| match item.get(*key) {
        Some(value) => Some(format!("{key}={value}")),
        // The default of the only optional key.
        None if *key == "protocol" => Some("protocol=\"TCP\"".to_owned()),
        None => None,
    });
    Step::Item(parts.collect::<Vec<_>>().join(",").into())
}

/// The position of each item of a list.
fn positions(shape: Shape, items: &[Value]) -> BTreeMap<Step, usize> {
    items.iter().enumerate().map(|(at, item)| (item_step(shape, item), at)).collect()
}

/// The fields of a map that have owners.
pub fn granular(map: &Map<String, Value>, shape: Shape) -> impl Iterator<Item = (&String, &Value)> {
    map.iter().filter(move |(name, _)| is_owned(shape, name))
}

/// Whether a value is a leaf of its shape.
fn is_leaf(value: &Value, shape: Shape) -> bool {
    match (value, shape) {
        (Value::Object(_), Shape::Object | Shape::Metadata) | (Value::Array(_), Shape::Keyed(_) | Shape::Set) => false,
        (Value::Object(map), shape) => map.is_empty() || shape == Shape::Atomic,
        _ => true,
    }
}

fn collect(value: &Value, here: Shape, fields: &mut Fields) {
    collect_in(value, here, "", fields);
}

fn collect_in(value: &Value, here: Shape, name: &str, fields: &mut Fields) {
    if is_leaf(value, here) {
        fields.own = true;
        return;
    }
    match value {
        Value::Object(map) => {
            for (field, value) in granular(map, here) {
                let mut below = Fields::default();
                collect_in(value, shape(here, name, field), field, &mut below);
                if !below.is_empty() {
                    fields.below.insert(Step::Field(field.as_str().into()), below);
                }
            }
        }
        Value::Array(items) => {
            for item in items {
                let mut below = Fields { own: true, ..Fields::default() };
                if matches!(here, Shape::Keyed(_)) {
                    collect_in(item, Shape::Map, "", &mut below);
                    below.own = true;
                }
                fields.below.insert(item_step(here, item), below);
            }
        }
        _ => {}
    }
}

/// How `new` differs from `old`.
pub fn compare(old: &Value, new: &Value) -> Difference {
    let mut difference = Difference::default();
    compare_in(Some(old), Some(new), Shape::Object, "", &mut difference.set, &mut difference.removed);
    difference
}

fn compare_in(
    old: Option<&Value>,
    new: Option<&Value>,
    here: Shape,
    name: &str,
    set: &mut Fields,
    removed: &mut Fields,
) {
    match (old, new) {
        (Some(old), Some(new)) if old == new => {}
        (Some(Value::Object(old)), Some(Value::Object(new)))
            if here != Shape::Atomic
                && (matches!(here, Shape::Object | Shape::Metadata) || !old.is_empty() && !new.is_empty()) =>
        {
            let names = old.keys().chain(new.keys().filter(|name| !old.contains_key(*name)));
            for field in names.filter(|name| is_owned(here, name)) {
                let step = Step::Field(field.as_str().into());
                let shape = shape(here, name, field);
                compare_below(old.get(field), new.get(field), shape, field, step, set, removed);
            }
        }
        (Some(Value::Array(old)), Some(Value::Array(new))) if matches!(here, Shape::Keyed(_) | Shape::Set) => {
            let (before, after) = (positions(here, old), positions(here, new));
            for step in before.keys().chain(after.keys().filter(|step| !before.contains_key(*step))) {
                let (old, new) = (before.get(step).map(|at| &old[*at]), after.get(step).map(|at| &new[*at]));
                compare_below(old, new, Shape::Map, "", step.clone(), set, removed);
            }
        }
        (None, Some(new)) => {
            collect_in(new, here, name, set);
        }
        (Some(old), None) => {
            // A removed value is removed with all its fields.
            collect_in(old, here, name, removed);
        }
        (Some(old), Some(new)) => {
            let mut before = Fields::default();
            collect_in(old, here, name, &mut before);
            let mut after = Fields::default();
            collect_in(new, here, name, &mut after);
            removed.add(&before);
            removed.take_out_exact(&after);
            set.add(&after);
        }
        (None, None) => {}
    }
}

fn compare_below(
    old: Option<&Value>,
    new: Option<&Value>,
    here: Shape,
    name: &str,
    step: Step,
    set: &mut Fields,
    removed: &mut Fields,
) {
    let (mut set_below, mut removed_below) = (Fields::default(), Fields::default());
    if matches!(step, Step::Item(_)) {
        // An item that was added or removed is a path itself.
        set_below.own = old.is_none();
        removed_below.own = new.is_none();
    }
    compare_in(old, new, here, name, &mut set_below, &mut removed_below);
    if !set_below.is_empty() {
        set.below.insert(step.clone(), set_below);
    }
    if !removed_below.is_empty() {
        removed.below.insert(step, removed_below);
    }
}

impl Fields {
    /// Removes the paths of `other`, but not the paths below them.
    pub fn take_out_exact(&mut self, other: &Self) {
        self.own &= !other.own;
        for (step, fields) in &other.below {
            if let Some(mine) = self.below.get_mut(step) {
                mine.take_out_exact(fields);
                if mine.is_empty() {
                    self.below.remove(step);
                }
            }
        }
    }
}

/// The owners after `manager` has changed `old` to `new` without server-side apply.
pub fn after_update(owners: &Arc<Owners>, manager: &Manager, old: &Value, new: &Value) -> Arc<Owners> {
    let difference = compare(old, new);
    if difference.set.is_empty() && difference.removed.is_empty() {
        return owners.clone();
    }
    let mut owners = Owners::clone(owners);
    for fields in owners.values_mut() {
        fields.take_out_exact(&difference.set);
        fields.take_out_exact(&difference.removed);
    }
    if !difference.set.is_empty() {
        owners.entry(manager.clone()).or_default().add(&difference.set);
    }
    owners.retain(|_, fields| !fields.is_empty());
    Arc::new(owners)
}
