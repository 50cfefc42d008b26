//! Whether what a plan was made for is still what is wished. A step that destroys or replaces something asks right before
//! its intent: the wish may have been taken back while the plan was computed, or while the step waited for its turn.

use std::fmt;
use std::sync::Arc;

/// Says of a Resource, by name, whether the newest wish that is known is the one that the plan was made for.
type Stands = dyn Fn(&str) -> bool + Send + Sync;

/// The wishes behind a plan.
#[derive(Clone, Default)]
pub struct Wishes(Option<Arc<Stands>>);

impl Wishes {
    /// Wishes that can change while the plan is carried out. `stands` must be cheap: it is asked for each step.
    pub fn that_change(stands: impl Fn(&str) -> bool + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(stands)))
    }

    /// Whether the wish of this name stands. That of a plan that is carried out as it is, as by `purlin apply`, always
    /// does.
    pub fn stands(&self, name: &str) -> bool {
        self.0.as_ref().is_none_or(|stands| stands(name))
    }
}

impl fmt::Debug for Wishes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Wishes(that change)" } else { "Wishes(fixed)" })
    }
}
