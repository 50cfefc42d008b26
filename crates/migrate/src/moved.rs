//! Applies the `moved` blocks of a configuration to a state, as the next plan of Terraform would.

use std::collections::BTreeSet;

use super::address::{self, Key, ModuleStep, ResourceAddress};
use super::configuration::{Configuration, Module};
use super::state::{Object, ParsedState, Resource};

/// A name of an address with its key.
type Part = (String, Option<Key>);

/// An address as its names with their keys.
type Parts = Vec<Part>;

/// A `moved` block of a module: the names of its modules, the previous and the current address.
struct Move {
    module: Vec<String>,
    from: Parts,
    to: Parts,
}

pub fn apply(state: &mut ParsedState, configuration: &Configuration) {
    let mut moves = Vec::new();
    collect(configuration.root(), &[], &mut moves);
    for one in &ordered(moves) {
        move_objects(&mut state.resources, one);
    }
}

/// Orders the statements as the moves happened, so that an object goes through a chain in whatever order it is written.
fn ordered(mut open: Vec<Move>) -> Vec<Move> {
    let mut found = Vec::new();
    while !open.is_empty() {
        let is_next = |at: &usize| {
            let mut others = open.iter().enumerate().filter(|(other, _)| other != at);
            !others.any(|(_, other)| other.precedes(&open[*at]))
        };
        // Statements in a cycle, which Terraform rejects, keep their order.
        let next = (0..open.len()).find(is_next).unwrap_or(0);
        found.push(open.remove(next));
    }
    found
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

/// Whether an address is another one, or is inside of it. A name without a key includes all its instances.
fn is_inside(inner: &[Part], outer: &[Part]) -> bool {
    let includes = |((name, key), (inner, own)): (&Part, &Part)| name == inner && (key.is_none() || key == own);
    outer.len() <= inner.len() && outer.iter().zip(inner).all(includes)
}

impl Move {
    /// Whether it is applied before another statement: the other one moves what this one has moved, or moves all of the
    /// module or resource of which this one moves a part.
    fn precedes(&self, other: &Self) -> bool {
        let [from, to, next] = [self.absolute(&self.from), self.absolute(&self.to), other.absolute(&other.from)];
        is_inside(&next, &to) || is_inside(&to, &next) || (is_inside(&from, &next) && from != next)
    }

    /// An address of the statement, from the root module.
    fn absolute(&self, parts: &[Part]) -> Parts {
        let modules = self.module.iter().flat_map(|name| ["module", name.as_str()]);
        modules.map(|name| (name.to_owned(), None)).chain(parts.iter().cloned()).collect()
    }

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

    fn replaced(&self, parts: &[Part]) -> Option<Parts> {
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
        let prefix = self.absolute(&[]);
        let rest = parts.strip_prefix(prefix.as_slice())?;
        let keyless = Self { module: Vec::new(), from: plain(&self.from), to: plain(&self.to) };
        let moved = keyless.replaced(rest)?;
        let names = prefix.into_iter().chain(moved).map(|(name, _)| name);
        Some(names.collect::<Vec<_>>().join("."))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value as Json, json};

    use super::*;
    use crate::configuration::Folder;
    use crate::state;

    /// Applies `moved` blocks, each as its previous and its current address, to a state with these resources.
    fn moved(statements: &[(&str, &str)], resources: &[Json]) -> ParsedState {
        let block = |(from, to): &(&str, &str)| format!("moved {{\n  from = {from}\n  to = {to}\n}}\n");
        let main: String = statements.iter().map(block).collect();
        let read = |_: &str| Ok(Folder::from([("main.tf".to_owned(), main.clone())]));
        let configuration = Configuration::read(&read, &[]).unwrap();
        let mut state = state::parse(&json!({"version": 4, "resources": resources}).to_string()).unwrap();
        apply(&mut state, &configuration);
        state
    }

    fn pet(module: &str, name: &str, dependencies: &[&str]) -> Json {
        json!({
            "module": module, "mode": "managed", "type": "random_pet", "name": name,
            "provider": "provider[\"registry.opentofu.org/hashicorp/random\"]",
            "instances": [{"attributes": {}, "dependencies": dependencies}],
        })
    }

    fn addresses_after(statements: &[(&str, &str)], resources: &[Json]) -> Vec<String> {
        let mut found: Vec<String> = moved(statements, resources).resources.iter().flat_map(addresses).collect();
        found.sort();
        found
    }

    #[test]
    fn a_chain_is_followed_in_any_order() {
        let (first, second) = (("random_pet.a", "random_pet.b"), ("random_pet.b", "random_pet.c"));
        for statements in [[first, second], [second, first]] {
            let state = moved(&statements, &[pet("", "a", &[]), pet("", "user", &["random_pet.a"])]);
            let found: Vec<String> = state.resources.iter().flat_map(addresses).collect();
            assert_eq!(found, ["random_pet.user", "random_pet.c"]);
            assert_eq!(state.resources[0].objects[0].dependencies, ["random_pet.c"]);
        }
    }

    #[test]
    fn moves_inside_of_a_moved_module_are_applied_before_or_after_it() {
        let module = ("module.old", "module.new");
        let resources = || [pet("module.old", "x", &[]), pet("module.old", "y", &[])];
        for (other, expected) in [
            // The other statement names the module as it was, or as it is.
            (("module.old.random_pet.x", "module.old.random_pet.z"), "module.new.random_pet.z"),
            (("module.new.random_pet.x", "module.new.random_pet.z"), "module.new.random_pet.z"),
            (("module.old.random_pet.x", "random_pet.z"), "random_pet.z"),
        ] {
            for statements in [[module, other], [other, module]] {
                let found = addresses_after(&statements, &resources());
                assert_eq!(found, ["module.new.random_pet.y", expected], "{statements:?}");
            }
        }
        let into = ("random_pet.a", "module.old.random_pet.a");
        for statements in [[module, into], [into, module]] {
            assert_eq!(addresses_after(&statements, &[pet("", "a", &[])]), ["module.new.random_pet.a"]);
        }
    }

    #[test]
    fn statements_in_a_cycle_keep_their_order() {
        let statements = [("random_pet.a", "random_pet.b"), ("random_pet.b", "random_pet.a")];
        assert_eq!(addresses_after(&statements, &[pet("", "a", &[])]), ["random_pet.a"]);
        assert_eq!(addresses_after(&statements, &[pet("", "b", &[])]), ["random_pet.a"]);
    }
}
