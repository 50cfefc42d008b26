//! Applies the `moved` blocks of a configuration to a state, as the next plan of Terraform would.

use std::collections::BTreeSet;

use super::address::{self, Key, ModuleStep, ResourceAddress};
use super::configuration::{Configuration, Module};
use super::state::{Object, ParsedState, Resource};

/// An address as its names with their keys.
type Parts = Vec<(String, Option<Key>)>;

/// A `moved` block of a module: the names of its modules, the previous and the current address.
struct Move {
    module: Vec<String>,
    from: Parts,
    to: Parts,
}

pub fn apply(state: &mut ParsedState, configuration: &Configuration) {
    let mut moves = Vec::new();
    collect(configuration.root(), &[], &mut moves);
    for one in &moves {
        move_objects(&mut state.resources, one);
    }
}

fn collect(module: &Module, path: &[String], found: &mut Vec<Move>) {
    for (from, to) in &module.moved {
        if let (Some(from), Some(to)) = (address::parts(from), address::parts(to)) {
            found.push(Move { module: path.to_vec(), from, to });
        }
    }
    for (name, call) in &module.calls {
        collect(&call.module, &[path, std::slice::from_ref(name)].concat(), found);
    }
}

fn move_objects(resources: &mut Vec<Resource>, one: &Move) {
    let taken: BTreeSet<String> = resources.iter().flat_map(addresses).collect();
    let mut moved: Vec<Resource> = Vec::new();
    for resource in resources.iter_mut() {
        for object in std::mem::take(&mut resource.objects) {
            let target = one.target(&resource.address, object.key.as_ref());
            let target = target.filter(|(address, key)| !taken.contains(&instance(address, key.as_ref())));
            match target {
                None => resource.objects.push(object),
                Some((address, key)) => {
                    let provider = resource.provider.clone();
                    moved.push(Resource { address, provider, objects: vec![Object { key, ..object }] });
                }
            }
        }
    }
    if moved.is_empty() {
        return;
    }
    resources.retain(|resource| !resource.objects.is_empty());
    for added in moved {
        match resources.iter_mut().find(|known| known.address == added.address) {
            Some(known) => known.objects.extend(added.objects),
            None => resources.push(added),
        }
    }
    // Dependencies have no keys.
    for object in resources.iter_mut().flat_map(|resource| &mut resource.objects) {
        for dependency in &mut object.dependencies {
            if let Some(target) = one.dependency(dependency) {
                *dependency = target;
            }
        }
    }
}

fn addresses(resource: &Resource) -> impl Iterator<Item = String> {
    resource.objects.iter().map(|object| instance(&resource.address, object.key.as_ref()))
}

fn instance(address: &ResourceAddress, key: Option<&Key>) -> String {
    format!("{address}{}", key.map(ToString::to_string).unwrap_or_default())
}

impl Move {
    /// The new address of an object, if it moves.
    fn target(&self, address: &ResourceAddress, key: Option<&Key>) -> Option<(ResourceAddress, Option<Key>)> {
        let (outer, inner) = address.module.split_at_checked(self.module.len())?;
        if address.is_data || !outer.iter().map(|(name, _)| name).eq(&self.module) {
            return None;
        }
        let steps = inner.iter().flat_map(|step| [("module".to_owned(), None), step.clone()]);
        let own = [(address.type_name.clone(), None), (address.name.clone(), key.cloned())];
        let parts = self.replaced(&steps.chain(own).collect::<Parts>())?;
        let (own, steps) = parts.split_at_checked(parts.len().checked_sub(2)?).map(|(steps, own)| (own, steps))?;
        let [(type_name, None), (name, key)] = own else { return None };
        let inner = steps.chunks(2).map(|pair| pair.get(1).cloned()).collect::<Option<Vec<ModuleStep>>>()?;
        let module = [outer, &inner].concat();
        let address = ResourceAddress { module, is_data: false, type_name: type_name.clone(), name: name.clone() };
        Some((address, key.clone()))
    }

    fn replaced(&self, parts: &[(String, Option<Key>)]) -> Option<Parts> {
        let (head, rest) = parts.split_at_checked(self.from.len())?;
        let ((last, before), (from, from_before)) = (head.split_last()?, self.from.split_last()?);
        let (to, to_before) = self.to.split_last()?;
        // Without keys, all instances move.
        let keeps_key = from.1.is_none() && to.1.is_none();
        if before != from_before || last.0 != from.0 || (last.1 != from.1 && !keeps_key) {
            return None;
        }
        let key = if keeps_key { last.1.clone() } else { to.1.clone() };
        Some([to_before, &[(to.0.clone(), key)], rest].concat())
    }

    fn dependency(&self, address: &str) -> Option<String> {
        let parts = address::parts(address)?;
        let plain = |parts: &Parts| parts.iter().map(|(name, _)| (name.clone(), None)).collect::<Parts>();
        let prefix: Parts =
            self.module.iter().flat_map(|name| ["module".to_owned(), name.clone()]).map(|name| (name, None)).collect();
        let rest = parts.strip_prefix(prefix.as_slice())?;
        let keyless = Self { module: Vec::new(), from: plain(&self.from), to: plain(&self.to) };
        let moved = keyless.replaced(rest)?;
        let names = prefix.into_iter().chain(moved).map(|(name, _)| name);
        Some(names.collect::<Vec<_>>().join("."))
    }
}
