//! Collects warnings of drivers separately from results, since failed calls return warnings too.

use std::sync::{Arc, Mutex};

use model::{Diagnostic, Diagnostics, Secrets};
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

    /// Masks secrets in the collected warnings. `secrets` is called only if there are any.
    pub fn mask(&self, secrets: impl FnOnce() -> Secrets) {
        let mut all = lock(&self.0);
        if !all.is_empty() {
            let secrets = secrets();
            let masked = std::mem::take(&mut *all).into_iter().map(|warning| secrets.redact_diagnostic(warning));
            *all = masked.collect();
        }
    }

    pub fn take(&self) -> Diagnostics {
        std::mem::take(&mut *lock(&self.0))
    }
}
