//! Collects warnings of drivers separately from results, since failed calls return warnings too.

use std::sync::{Arc, Mutex};

use super::masked::redacted;
use model::{Diagnostic, Diagnostics, Reason, Secrets};
use process::lock;

/// The warnings of one call or of several related calls. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Warnings(Arc<Mutex<Diagnostics>>);

impl Warnings {
    /// Adds a warning unless it is a duplicate: calls may be repeated, and providers repeat warnings.
    pub fn add(&self, warning: Diagnostic) {
        let mut all = lock(&self.0);
        if !all.contains(&warning) {
            all.push(warning);
        }
    }

    /// Masks secrets in the collected warnings.
    pub(crate) fn mask(&self, secrets: &Secrets) {
        self.take().into_iter().for_each(|warning| self.add(redacted(secrets, warning)));
    }

    pub(crate) fn is_empty(&self) -> bool {
        lock(&self.0).is_empty()
    }

    /// Removes the warnings with this reason. Returns whether there were any.
    pub fn remove(&self, reason: Reason) -> bool {
        let mut all = lock(&self.0);
        let before = all.len();
        all.retain(|warning| warning.reason != reason);
        all.len() < before
    }

    pub fn take(&self) -> Diagnostics {
        std::mem::take(&mut *lock(&self.0))
    }
}
