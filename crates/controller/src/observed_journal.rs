//! A journal that logs and measures the writes of records. The log has no content of a record, and no message of the API
//! server, which may quote it.

use std::sync::Arc;

use futures::future::BoxFuture;
use tokio::time::Instant;

use super::metrics::RequestMetrics;
use model::{Record, Stored, Version};
use runtime::execute::{Journal, JournalError};

pub struct ObservedJournal {
    journal: Arc<dyn Journal>,
    metrics: RequestMetrics,
}

impl ObservedJournal {
    pub fn new(journal: Arc<dyn Journal>, metrics: RequestMetrics) -> Self {
        Self { journal, metrics }
    }

    async fn observe<T>(
        &self,
        write: &'static str,
        written: impl Future<Output = Result<T, JournalError>>,
    ) -> Result<T, JournalError> {
        let began = Instant::now();
        let result = written.await;
        let took = began.elapsed();
        let outcome = match &result {
            Ok(_) => "written",
            Err(JournalError::Conflict { .. }) => "conflict",
            Err(JournalError::Unavailable { .. }) => "failed",
            Err(JournalError::Missing(_)) => "missing",
        };
        tracing::debug!(write, outcome, seconds = took.as_secs_f64(), "record write ended");
        self.metrics.record_written(write, outcome, took);
        result
    }
}

impl Journal for ObservedJournal {
    fn intend(&self, record: Arc<Record>, base: Option<Version>) -> BoxFuture<'_, Result<Version, JournalError>> {
        Box::pin(self.observe("intent", self.journal.intend(record, base)))
    }

    fn take_over(&self, record: Arc<Record>, base: Version) -> BoxFuture<'_, Result<Version, JournalError>> {
        Box::pin(self.observe("intent", self.journal.take_over(record, base)))
    }

    fn record(&self, record: Arc<Record>, base: Stored) -> BoxFuture<'_, Result<Version, JournalError>> {
        Box::pin(self.observe("result", self.journal.record(record, base)))
    }

    fn pending_error(&self, record: &Record) -> Option<String> {
        self.journal.pending_error(record)
    }

    fn erase(&self, base: Stored) -> BoxFuture<'_, Result<(), JournalError>> {
        Box::pin(self.observe("erase", self.journal.erase(base)))
    }
}
