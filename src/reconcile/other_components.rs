//! Collects the records and imports of other components. Components are planned separately, but a real object belongs
//! to one address only, so no other Resource may import or destroy it.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::Reconciler;
use super::index::Index;
use super::tracked::TrackedObject;
use crate::load::Instance;
use crate::model::{Address, Stored};
use crate::plan::{OtherComponents, PendingImport};

impl Reconciler {
    /// The records and imports of other components that a plan of these names must respect: the records of the types
    /// that the plan imports, and those that may have an object that the plan destroys. Usually there are none.
    pub(super) fn other_components(
        &self,
        index: &Index,
        names: &BTreeSet<Arc<str>>,
        addresses: &BTreeSet<Address>,
    ) -> OtherComponents {
        let is_wanted = |name: &str| index.instance(name).is_some_and(|instance| instance.is_desired());
        let own = names.iter().filter_map(|name| index.instance(name));
        let own = own.filter(|instance| instance.import.is_some() && self.is_to_be_imported(instance));
        let importing: BTreeSet<Arc<str>> = own.map(|instance| instance.type_name.clone()).collect();
        let is_importable = |stored: &&Stored| importing.contains(&stored.record.type_name);
        let records = addresses.iter().filter_map(|address| self.schedule.records().get(address));
        let removed = records.filter(|stored| !is_wanted(&stored.record.address.name));
        let others = removed.flat_map(|stored| self.schedule.others_of_object(&stored.record));
        let importable = self.schedule.records().values().take_while(|_| !importing.is_empty()).filter(is_importable);
        let others = importable.chain(others.filter(|stored| !is_importable(stored)));
        let others = others.filter(|stored| !names.contains(&stored.record.address.name));
        let others = others.map(|stored| (stored.clone(), is_wanted(&stored.record.address.name)));
        let imports = index.importing().filter(|instance| {
            importing.contains(&instance.type_name)
                && !names.contains(&instance.address.name)
                && self.is_to_be_imported(instance)
        });
        let imports = imports.filter_map(|instance| {
            let address = instance.address.clone();
            let is_open = self.objects.get(&address).is_some_and(TrackedObject::is_open);
            let started = is_open || self.planning.in_progress.contains(&address.name);
            let (type_name, request) = (instance.type_name.clone(), instance.import.clone()?);
            Some(PendingImport { address, type_name, request, started })
        });
        OtherComponents { records: others.collect(), imports: imports.collect() }
    }

    fn is_to_be_imported(&self, instance: &Instance) -> bool {
        let record = self.schedule.records().get(&instance.address);
        instance.is_desired() && record.is_none_or(|stored| !stored.record.has_objects())
    }
}
