//! Operations of this process whose calls were not sent because the write of their intent failed. The store may have
//! accepted such an intent although the response was lost. Recovery checks this list, so that it needs neither a lookup
//! nor a decision of the user for a call that was never sent.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use crate::model::{Address, Record};
use crate::process::lock;

type RecordKey = (Arc<str>, Address);

/// Operation ids by record. Each id may be in the intent of its record.
#[derive(Debug, Default)]
pub(crate) struct UnsentCalls(Mutex<BTreeMap<RecordKey, BTreeSet<Arc<str>>>>);

impl UnsentCalls {
    /// Adds the operation of the record's intent: the intent may be durable, but its call was not sent.
    pub fn add(&self, record: &Record) {
        let Some(intent) = &record.intent else { return };
        lock(&self.0).entry(record_key(record)).or_default().insert(Arc::clone(&intent.operation_id));
    }

    /// Drops the operations of a record. A later version of the record is durable, so none of the earlier intents can
    /// become durable.
    pub fn forget(&self, record: &Record) {
        lock(&self.0).remove(&record_key(record));
    }

    /// Whether the call of the record's open intent was not sent.
    pub fn contains(&self, record: &Record) -> bool {
        let Some(intent) = &record.intent else { return false };
        lock(&self.0).get(&record_key(record)).is_some_and(|ids| ids.contains(&intent.operation_id))
    }
}

fn record_key(record: &Record) -> RecordKey {
    (Arc::clone(&record.namespace), record.address.clone())
}
