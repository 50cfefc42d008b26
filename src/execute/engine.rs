//! What every step needs: drivers, journal, clock, randomness, limits.

use std::sync::Arc;
use std::time::Duration;

use crate::driver::Registry;
use crate::execute::Journal;
use crate::model::Holder;
use crate::process::{Clock, Random};

/// How much may happen at once.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Steps and questions at once, in the whole process.
    pub total: usize,
    /// Steps at once in one namespace.
    pub per_namespace: usize,
    /// Calls at once for one provider configuration whose driver has a limit of its own kind.
    pub per_provider_configuration: usize,
    /// How long running calls are awaited after a stop.
    pub grace: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { total: 256, per_namespace: 128, per_provider_configuration: 10, grace: Duration::from_secs(600) }
    }
}

/// The surroundings of planning and executing. One for the whole process.
pub struct Engine {
    /// The drivers.
    pub drivers: Registry,
    /// Where records are kept.
    pub journal: Arc<dyn Journal>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// Randomness.
    pub random: Arc<dyn Random>,
    /// The limits.
    pub limits: Limits,
    /// Who we are, for intents.
    pub holder: Holder,
}
