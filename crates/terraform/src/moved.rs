//! `moved` blocks: the former addresses of objects.

use std::collections::BTreeSet;

use configuration::{InstanceAddress, Key, ModulePath, ModuleStep, ResourceAddress, ResourceName, Target, Tree};
use engine::load::{MovedFrom, MovedPlace};
use model::{InstanceKey, Name};

use crate::address;

/// An object, or all objects of a block if the key is left open.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    module: Vec<ModuleStep>,
    resource: ResourceName,
    key: Which,
}

/// Which instances of a block.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Which {
    /// Every one, each with its own key.
    All,
    One(Option<Key>),
}

/// The former addresses of the objects of a block, the nearest first. `name` is that of the configuration. `keys` are those of its instances.
pub fn former(
    tree: &Tree,
    name: &Name,
    block: &ResourceAddress,
    has_keys: bool,
    keys: &[Option<Key>],
) -> Vec<MovedFrom> {
    if tree.nodes.iter().all(|node| node.module.moved.is_empty()) {
        return Vec::new();
    }
    let place = |key| Place { module: block.module.0.to_vec(), resource: block.resource.clone(), key };
    let whole = chain(tree, place(if has_keys { Which::All } else { Which::One(None) }));
    let mut found: Vec<MovedFrom> = whole.iter().map(|from| entry(name, from, None)).collect();
    if has_keys {
        for key in keys.iter().flatten() {
            let own = chain(tree, place(Which::One(Some(key.clone()))));
            // What is said of the whole block holds for each instance.
            let own = own.iter().filter(|from| {
                from.key != Which::One(Some(key.clone()))
                    || !whole.iter().any(|block| block.module == from.module && block.resource == from.resource)
            });
            found.extend(own.map(|from| entry(name, from, Some(address::key(key)))));
        }
    }
    found
}

fn entry(name: &Name, from: &Place, to: Option<InstanceKey>) -> MovedFrom {
    let key = match &from.key {
        Which::All => None,
        Which::One(key) => key.clone(),
    };
    let resource = ResourceAddress { module: ModulePath(from.module.clone().into()), resource: from.resource.clone() };
    MovedFrom { from: address::address(name, &InstanceAddress { resource, key }), to, place: MovedPlace::Block }
}

/// The places from which an object came, one block after the other.
fn chain(tree: &Tree, start: Place) -> Vec<Place> {
    let mut seen = BTreeSet::from([start.clone()]);
    let mut found = Vec::new();
    let mut open = vec![start];
    while let Some(place) = open.pop() {
        for before in befores(tree, &place) {
            if seen.insert(before.clone()) {
                found.push(before.clone());
                open.push(before);
            }
        }
    }
    found
}

fn befores(tree: &Tree, place: &Place) -> Vec<Place> {
    let mut found = Vec::new();
    for node in &tree.nodes {
        let depth = node.path.len();
        let is_around =
            depth <= place.module.len() && node.path.iter().zip(&place.module).all(|(name, step)| *name == step.name);
        if is_around {
            let moved = node.module.moved.iter();
            found.extend(moved.filter_map(|moved| before(place, depth, &moved.from, &moved.to)));
        }
    }
    found
}

/// Where an object was before a move of a module at a depth, if it is what the move names.
fn before(place: &Place, depth: usize, from: &Target, to: &Target) -> Option<Place> {
    let (around, inside) = place.module.split_at(depth);
    let steps = &to.module.0;
    let fits = inside.len() >= steps.len()
        && steps
            .iter()
            .zip(inside)
            .all(|(step, own)| step.name == own.name && (step.key.is_none() || step.key == own.key));
    if !fits {
        return None;
    }
    let rest = &inside[steps.len()..];
    let former = from.module.0.iter().enumerate().map(|(at, step)| {
        let key = match (&step.key, steps.get(at), inside.get(at)) {
            (Some(key), ..) => Some(key.clone()),
            (None, Some(ModuleStep { key: None, .. }), Some(own)) => own.key.clone(),
            _ => None,
        };
        ModuleStep { name: step.name.clone(), key }
    });
    let module: Vec<ModuleStep> = around.iter().cloned().chain(former).collect();
    match (&from.resource, &to.resource) {
        (None, None) => Some(Place {
            module: module.into_iter().chain(rest.iter().cloned()).collect(),
            resource: place.resource.clone(),
            key: place.key.clone(),
        }),
        (Some((old, old_key)), Some((new, new_key))) if rest.is_empty() && *new == place.resource => {
            let key = match (&place.key, new_key, old_key) {
                // A block as a whole, of which each instance keeps its key, or gets the one that the move names.
                (own, None, None) => own.clone(),
                (Which::One(None), None, Some(key)) => Which::One(Some(key.clone())),
                (Which::One(own), Some(key), old) if own.as_ref() == Some(key) => Which::One(old.clone()),
                _ => return None,
            };
            Some(Place { module, resource: old.clone(), key })
        }
        _ => None,
    }
}
