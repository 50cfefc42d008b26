//! Collects the records and imports of other components. Components are planned separately, but a real object belongs
//! to one address only, so no other Resource may import or destroy it.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::Reconciler;
use super::index::Index;
use super::objects::TrackedObject;
use engine::load::Instance;
use engine::plan::{OtherComponents, PendingImport};
use model::{Address, Name, Stored, TypeName};

impl Reconciler {
    /// The records and imports of other components that a plan of these names must respect: the records of the types
    /// that the plan imports, and those that may have an object that the plan destroys. Usually there are none.
    pub fn other_components(
        &self,
        index: &Index,
        names: &BTreeSet<Name>,
        addresses: &BTreeSet<Address>,
    ) -> OtherComponents {
        let importing: BTreeSet<TypeName> = names
            .iter()
            .filter_map(|name| index.instance(name))
            .filter(|instance| instance.has_import() && self.may_import(instance))
            .map(|instance| instance.type_name.clone())
            .collect();
        let records = addresses.iter().filter_map(|address| self.index.records().get(address));
        let removed: Vec<&Stored> = records.filter(|stored| !index.is_desired(stored.record.address.name())).collect();
        let removing: BTreeSet<TypeName> = removed.iter().map(|stored| stored.record.type_name.clone()).collect();
        // Usually both are empty, and nothing looks at all objects of the namespace.
        let mut others = match importing.is_empty() {
            true => OtherComponents::default(),
            false => self.importable(index, names, &importing),
        };
        if !removing.is_empty() {
            let types = importing.union(&removing).cloned().collect();
            others.imports = self.pending_imports(index, names, &types);
            others.creates = self.new_instances(index, names, &removing);
        }
        let same = removed.into_iter().flat_map(|stored| self.index.records().others_of_object(&stored.record));
        let same = same.filter(|stored| {
            let record = &stored.record;
            !names.contains(record.address.name()) && !importing.contains(&record.type_name)
        });
        others.records.extend(same.map(|stored| (stored.clone(), index.is_desired(stored.record.address.name()))));
        others
    }

    /// The records and imports of other components that have one of these types.
    fn importable(&self, index: &Index, names: &BTreeSet<Name>, types: &BTreeSet<TypeName>) -> OtherComponents {
        let records =
            self.index.records().values().filter(|stored| {
                types.contains(&stored.record.type_name) && !names.contains(stored.record.address.name())
            });
        OtherComponents {
            records: records.map(|stored| (stored.clone(), index.is_desired(stored.record.address.name()))).collect(),
            imports: self.pending_imports(index, names, types),
            creates: Vec::new(),
        }
    }

    /// The imports of other components that have one of these types.
    fn pending_imports(&self, index: &Index, names: &BTreeSet<Name>, types: &BTreeSet<TypeName>) -> Vec<PendingImport> {
        let importing = index
            .importing()
            .filter(|instance| types.contains(&instance.type_name) && !names.contains(instance.address.name()));
        let pending = importing.flat_map(|instance| {
            let open = instance.imports().into_iter().filter(|(address, _)| self.is_to_be_imported(instance, address));
            open.map(|(address, request)| {
                let is_open = self.objects.get(&address).is_some_and(TrackedObject::is_open);
                let started = is_open || self.planning.in_progress.contains(address.name());
                PendingImport { address, type_name: instance.type_name.clone(), request, started }
            })
        });
        pending.collect()
    }

    /// The instances of other components that are to be created and have one of these types.
    fn new_instances(&self, index: &Index, names: &BTreeSet<Name>, types: &BTreeSet<TypeName>) -> Vec<Arc<Instance>> {
        let instances = index.instances().filter(|instance| {
            types.contains(&instance.type_name)
                && !names.contains(instance.address.name())
                && instance.is_desired()
                && !instance.is_family()
                && !instance.has_errors()
                && !self.index.records().has_objects(&instance.address)
        });
        instances.cloned().collect()
    }

    /// Whether a plan of the Resource may import an object. The instances of a family may not be known yet.
    fn may_import(&self, instance: &Arc<Instance>) -> bool {
        let imports = instance.imports();
        let is_unknown = imports.is_empty() && instance.is_family() && instance.is_desired();
        is_unknown || imports.iter().any(|(address, _)| self.is_to_be_imported(instance, address))
    }

    fn is_to_be_imported(&self, instance: &Instance, address: &Address) -> bool {
        instance.is_desired() && !self.index.records().has_objects(address)
    }
}
