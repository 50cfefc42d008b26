//! What a document of the kind `DataSource` may hold.

use super::{LIFECYCLE, Reading, SPEC, TIMEOUTS};
use crate::load::tree::Entry;
use crate::model::Path;

/// The fields of a Resource that a `DataSource` has as well.
pub(super) const DATA_SPEC: &[&str] = &[
    "config",
    "count",
    "dependsOn",
    "drift",
    "enabled",
    "enabledWhen",
    "forEach",
    "inputs",
    "lifecycle",
    "providerConfigRef",
    "serviceAccountName",
    "suspend",
    "timeouts",
    "type",
];

pub(super) const DATA_LIFECYCLE: &[&str] = &["postconditions", "preconditions"];

impl Reading<'_> {
    /// A field that a `DataSource` does not have.
    pub(super) fn only_managed(&mut self, entry: &Entry, at: &[&str]) {
        let (all, own): (&[&str], &[&str]) = match at {
            ["spec"] => (SPEC, DATA_SPEC),
            ["spec", "lifecycle"] => (LIFECYCLE, DATA_LIFECYCLE),
            ["spec", "drift"] => (&["action", "interval"], &["interval"]),
            _ => (TIMEOUTS, &["read"]),
        };
        if !all.contains(&entry.key.as_ref()) {
            return self.unknown(entry, at, own);
        }
        let place = Path::of(at).name(entry.key.clone());
        let hint = format!("a DataSource has the fields {}", own.join(", "));
        self.problem(entry.line, place, "this field does not apply to a DataSource", Some(hint));
    }
}
