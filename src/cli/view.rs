//! What a command that only looks works with: a situation, and an engine that can plan but not write.

use std::sync::Arc;

use futures::future::{BoxFuture, FutureExt as _};

use super::situation::Situation;
use crate::driver::Registry;
use crate::execute::{Engine, Journal, JournalError, Limits};
use crate::model::{Holder, Record, Stored, Version};
use crate::process::{SystemClock, SystemRandom};

/// A situation, and an engine that can plan but not write.
pub struct View {
    /// Drivers, clock, randomness.
    pub engine: Engine,
    /// What was found.
    pub situation: Situation,
}

/// An engine for planning only.
pub fn planning_engine(drivers: Registry, limits: Limits) -> Engine {
    let holder = Holder { pod: "".into(), process: "".into() };
    Engine::new(drivers, Arc::new(ReadOnly), Arc::new(SystemClock), Arc::new(SystemRandom), limits, holder)
}

/// The journal of a command that only looks: it refuses every write, so that a mistake here cannot become one.
struct ReadOnly;

impl ReadOnly {
    fn refuse<T: Send + 'static>(record: &Record) -> BoxFuture<'static, Result<T, JournalError>> {
        let message = "this command writes nothing".to_owned();
        let error = JournalError::Unavailable { address: record.address.clone(), message };
        async move { Err(error) }.boxed()
    }
}

impl Journal for ReadOnly {
    fn intend(&self, record: Arc<Record>, _: Option<Version>) -> BoxFuture<'_, Result<Version, JournalError>> {
        Self::refuse(&record)
    }

    fn record(&self, record: Arc<Record>, _: Stored) -> BoxFuture<'_, Result<Version, JournalError>> {
        Self::refuse(&record)
    }

    fn erase(&self, base: Stored) -> BoxFuture<'_, Result<(), JournalError>> {
        Self::refuse(&base.record)
    }
}
