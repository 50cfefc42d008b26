//! Objects whose record is missing: they may exist, so they are not created.

use super::input::{Node, PlanInput};
use crate::load::Instance;
use model::{Address, Diagnostic, InstanceKey, Reason};

/// Why an object without a record may have had one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// The index of the family lists it.
    Record,
    /// The index of the family was lost, so nothing shows which instances had a record.
    Index,
    /// The Resource is marked as recorded, and neither a record nor an index exists.
    Everything,
}

impl Loss {
    /// The error `RecordMissing` for an object, with the next step.
    ///
    /// `unwanted`: the object is not desired, so it is not imported.
    pub fn diagnostic(self, address: &Address, unwanted: bool) -> Diagnostic {
        let forget = format!("run `purlin state rm {}`", address.shell_word());
        let what = match self {
            Self::Record => "the record is missing although the index of the family lists it: an object may exist",
            Self::Index => "the index of the family was lost, so it is unknown whether an object exists",
            Self::Everything => {
                "the record is missing although the Resource is marked as recorded: an object may exist"
            }
        };
        let hint = match (&address.key, self) {
            (_, Self::Index) => format!(
                "restore the index from a backup, or destroy the objects of `{}` that have no record manually, and \
                 then {forget}",
                address.stem
            ),
            (InstanceKey::None, _) if unwanted => {
                format!("if the object exists, destroy it manually; then {forget}")
            }
            (InstanceKey::None, _) => {
                format!("set `spec.import.id` to import the object, or {forget} if it does not exist")
            }
            _ if unwanted => format!("find the object and destroy it manually, then {forget}"),
            _ => format!(
                "to import the object, let `spec.import.id` return its id for this instance, and null for the others; \
                 or find it and destroy it manually, then {forget}"
            ),
        };
        Diagnostic::error(address, Reason::RecordMissing, what).hint(hint)
    }
}

/// The error for a Resource that is being deleted, and that has only instances whose records are lost: its index lists them, or
/// is lost too.
pub fn lost_instances(input: &PlanInput<'_>, resource: &Instance) -> Option<Diagnostic> {
    let address = &resource.address;
    if !resource.deleting || !resource.has_record_annotation() || input.has_records(address.name()) {
        return None;
    }
    let lost = match input.listed_instance(address.name()) {
        Some(listed) => Loss::Record.diagnostic(listed, true),
        None => Loss::Everything.diagnostic(address, true),
    };
    Some(Diagnostic { address: Some(address.clone()), ..lost })
}

/// The error for a missing record: the marks of the Resource say that an instance has a record, and the index of a
/// family lists the instances with records.
pub fn missing_record(input: &PlanInput<'_>, node: Node<'_>) -> Option<Diagnostic> {
    let (address, instance) = (node.address, node.instance?);
    let loss = if input.options.indexed.contains(address) {
        Loss::Record
    } else if !instance.has_record_annotation() {
        return None;
    } else if input.options.rebuilt_indexes.contains(address.name()) {
        Loss::Index
    } else if !input.has_traces(address.name()) {
        Loss::Everything
    } else {
        return None;
    };
    Some(loss.diagnostic(address, instance.deleting))
}
