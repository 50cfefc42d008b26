//! Whether what a plan was made for is still what is wished. A step that destroys or replaces something asks right before
//! its intent: the wish may have been taken back while the plan was computed, or while the step waited for its turn.

use std::fmt;
use std::sync::Arc;

/// The digest of the newest wish that is known of a Resource, by name.
type Newest = dyn Fn(&str) -> u64 + Send + Sync;

/// The newest wishes of a namespace.
#[derive(Clone, Default)]
pub struct Wishes(Option<Arc<Newest>>);

impl Wishes {
    /// Wishes that can change while a plan is carried out. `newest` must be cheap: it is asked for each step.
    pub fn that_change(newest: impl Fn(&str) -> u64 + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(newest)))
    }

    /// Whether the wish of this name is still the one that was planned for. That of a plan that is carried out as it is,
    /// as by `purlin apply`, always is.
    pub fn stands(&self, name: &str, planned: Option<u64>) -> bool {
        self.0.as_ref().is_none_or(|newest| planned == Some(newest(name)))
    }
}

impl fmt::Debug for Wishes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Wishes(that change)" } else { "Wishes(fixed)" })
    }
}
