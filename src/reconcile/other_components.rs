//! What objects of other components have. They are planned apart, since nothing connects them; but one object in the world
//! belongs to one address, so no other may import or destroy it.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::Reconciler;
use super::tracked::Tracked;
use crate::load::Instance;
use crate::model::Address;
use crate::plan::{Elsewhere, PendingImport};

impl Reconciler {
    /// What matters to a plan of these names, whose objects are `addresses`: records of the types of which something is
    /// to be imported, or leaves, and imports of these types. Mostly there is nothing of either kind.
    pub(super) fn elsewhere(&self, names: &BTreeSet<Arc<str>>, addresses: &BTreeSet<Address>) -> Elsewhere {
        let index = &self.index;
        let is_wanted = |name: &str| index.instance(name).is_some_and(|instance| instance.is_wanted());
        let own = names.iter().filter_map(|name| index.instance(name));
        let own = own.filter(|instance| instance.import.is_some() && self.is_to_be_imported(instance));
        let importing: BTreeSet<Arc<str>> = own.map(|instance| instance.type_name.clone()).collect();
        let records = || addresses.iter().filter_map(|address| self.schedule.records().get(address));
        let leaving = records().filter(|stored| !is_wanted(&stored.record.address.name));
        let mut types: BTreeSet<Arc<str>> = leaving.map(|stored| stored.record.type_name.clone()).collect();
        types.extend(importing.iter().cloned());
        if types.is_empty() {
            return Elsewhere::default();
        }
        let others =
            self.schedule.records().values().filter(|stored| {
                types.contains(&stored.record.type_name) && !names.contains(&stored.record.address.name)
            });
        let others = others.map(|stored| (stored.clone(), is_wanted(&stored.record.address.name)));
        let imports = index.importing().filter(|instance| {
            importing.contains(&instance.type_name)
                && !names.contains(&instance.address.name)
                && self.is_to_be_imported(instance)
        });
        let imports = imports.filter_map(|instance| {
            let address = instance.address.clone();
            let is_open = self.objects.get(&address).is_some_and(Tracked::is_open);
            let begun = is_open || self.planning.under_way.contains(&address.name);
            let (type_name, request) = (instance.type_name.clone(), instance.import.clone()?);
            Some(PendingImport { address, type_name, request, begun })
        });
        Elsewhere { records: others.collect(), imports: imports.collect() }
    }

    fn is_to_be_imported(&self, instance: &Instance) -> bool {
        let record = self.schedule.records().get(&instance.address);
        instance.is_wanted() && record.is_none_or(|stored| !stored.record.has_objects())
    }
}
