//! What drivers warn of while they are called. It goes beside the answers, since it counts whatever the answer is.

use std::sync::{Arc, Mutex};

use crate::model::{Diagnostic, Diagnostics, Secrets};
use crate::process::lock;

/// The warnings of one call, or of several that belong together: clones share them.
#[derive(Clone, Debug, Default)]
pub struct Warnings(Arc<Mutex<Diagnostics>>);

impl Warnings {
    /// Adds one, unless it is there: a call may be made once more, and providers repeat themselves.
    pub fn add(&self, warning: Diagnostic) {
        let mut all = lock(&self.0);
        if !all.contains(&warning) {
            all.push(warning);
        }
    }

    /// Takes sensitive texts out of those that are there. They are gathered only when there is something to tell.
    pub fn mask(&self, secrets: impl FnOnce() -> Secrets) {
        let mut all = lock(&self.0);
        if !all.is_empty() {
            let secrets = secrets();
            let masked = std::mem::take(&mut *all).into_iter().map(|warning| secrets.diagnostic(warning));
            *all = masked.collect();
        }
    }

    /// Takes them all.
    pub fn take(&self) -> Diagnostics {
        std::mem::take(&mut *lock(&self.0))
    }
}
