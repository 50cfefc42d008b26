//! The latest desired states. A step that destroys or replaces an object compares them right before its intent, because
//! the desired state may have changed during planning or while the step waited.

use std::fmt;
use std::sync::Arc;

/// Returns the digest of the latest known desired state of a Resource.
type Newest = dyn Fn(&str) -> u64 + Send + Sync;

/// The latest desired states of a namespace.
#[derive(Clone, Default)]
pub struct DesiredDigests(Option<Arc<Newest>>);

impl DesiredDigests {
    /// Desired states that can change while a plan is executed. `newest` is called for each step, so it must be cheap.
    pub fn live(latest: impl Fn(&str) -> u64 + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(latest)))
    }

    /// Whether the desired state of this Resource is still the planned one. Always true for plans that are executed
    /// without changes, as by `purlin apply`.
    pub fn is_latest(&self, name: &str, planned: Option<u64>) -> bool {
        self.0.as_ref().is_none_or(|newest| planned == Some(newest(name)))
    }
}

impl fmt::Debug for DesiredDigests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "DesiredDigests(live)" } else { "DesiredDigests(fixed)" })
    }
}
