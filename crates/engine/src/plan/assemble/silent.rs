//! Record-only changes that plans do not show.
//!
//! A read often returns values that neither Purlin nor a user changed: a new `resource_version`, or `{}` where the create
//! returned null. They are recorded, because the next call needs them. Terraform hides such differences too, unless a
//! planned change depends on them.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::plan::input::PlanInput;
use crate::plan::{Mode, PlannedObject};
use model::{Action, Address, Change, ChangeCause, InstanceKey, Path, Value};

/// Marks the record-only changes that only record what a read returned, in values that no expression reads. Plans that
/// only refresh records show all of them.
pub fn mark(input: &PlanInput<'_>, objects: &mut BTreeMap<Address, Box<PlannedObject>>) {
    if input.options.mode == Mode::RefreshOnly {
        return;
    }
    let mut candidates: BTreeMap<Address, &mut Change> = objects
        .iter_mut()
        .filter_map(|(address, object)| Some((address.clone(), object.change.as_mut()?)))
        .filter(|(_, change)| {
            change.action == Action::Record && change.because.as_ref().is_some_and(ChangeCause::is_of_read)
        })
        .map(|(address, change)| (address, Arc::make_mut(change)))
        .collect();
    if candidates.is_empty() {
        return;
    }
    candidates.values_mut().for_each(|change| change.silent = true);
    let instances = input.nodes.iter().filter(|node| node.desired).filter_map(|node| node.instance);
    for instance in instances {
        let of_provider = instance.provider.iter().flat_map(|provider| provider.references());
        for reference in instance.references.iter().filter(|reference| !reference.explicit).chain(of_provider) {
            let path = Path(reference.segments.to_vec());
            match &reference.target.key {
                InstanceKey::None => {
                    candidates.get_mut(&reference.target).into_iter().for_each(|change| show_if_read(change, &path));
                }
                // The segments start with the key, so the expression counts as one that reads the whole object.
                _ => {
                    let first = reference.target.stem.clone().instance(InstanceKey::None);
                    let family =
                        candidates.range_mut(first..).take_while(|(address, _)| address.stem == reference.target.stem);
                    family.for_each(|(_, change)| change.silent = false);
                }
            }
        }
    }
}

fn show_if_read(change: &mut Change, read: &Path) {
    let null = Value::Null;
    let (before, after) = (change.before.as_ref().unwrap_or(&null), change.after.as_ref().unwrap_or(&null));
    let differences = before.differences(after);
    if differences.iter().any(|path| path.starts_with(read) || read.starts_with(path)) {
        change.silent = false;
    }
}
