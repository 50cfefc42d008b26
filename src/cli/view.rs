//! Read-only access for commands that only plan or show: the inputs, and an engine that can plan but not write.

use std::sync::Arc;

use futures::future::{BoxFuture, FutureExt as _};

use super::inputs::Inputs;
use super::options::Target;
use super::output::Console;
use super::{cluster, local};
use drivers::Registry;
use model::{Holder, Record, Stored, Version};
use process::{SystemClock, SystemRandom};
use runtime::execute::{Engine, Journal, JournalError, Limits};

pub struct View {
    pub engine: Engine,
    pub inputs: Inputs,
}

impl View {
    pub async fn open(target: Target, limits: Limits, console: Console) -> anyhow::Result<Self> {
        match target {
            Target::Files(files) => local::inspect(&files, limits, console).await,
            Target::Cluster(cluster) => cluster::inspect(&cluster, limits, console).await,
        }
    }

    /// Rejects a state file without manifests.
    pub async fn with_sources(target: Target, limits: Limits, console: Console, command: &str) -> anyhow::Result<Self> {
        if let Target::Files(files) = &target {
            files.require_sources(command)?;
        }
        Self::open(target, limits, console).await
    }
}

/// Creates an engine that can plan but not write.
pub fn planning_engine(drivers: Registry, limits: Limits) -> Engine {
    let holder = Holder { pod: "".into(), process: "".into() };
    Engine::new(drivers, Arc::new(ReadOnlyJournal), Arc::new(SystemClock), Arc::new(SystemRandom), limits, holder)
}

/// A journal that rejects every write, as a safeguard against mistakes in read-only commands.
struct ReadOnlyJournal;

impl ReadOnlyJournal {
    fn reject<T: Send + 'static>(record: &Record) -> BoxFuture<'static, Result<T, JournalError>> {
        let message = "this command is read-only".to_owned();
        let error = JournalError::Unavailable { address: record.address.clone(), message };
        async move { Err(error) }.boxed()
    }
}

impl Journal for ReadOnlyJournal {
    fn intend(&self, record: Arc<Record>, _: Option<Version>) -> BoxFuture<'_, Result<Version, JournalError>> {
        Self::reject(&record)
    }

    fn record(&self, record: Arc<Record>, _: Stored) -> BoxFuture<'_, Result<Version, JournalError>> {
        Self::reject(&record)
    }

    fn erase(&self, base: Stored) -> BoxFuture<'_, Result<(), JournalError>> {
        Self::reject(&base.record)
    }
}
