//! Operations of this process whose calls were not sent because the write of their intent failed. The store may have
//! accepted such an intent although the response was lost, and may accept it long after: also when a later operation of the
//! object has ended and its record was removed. Recovery checks this list, so that it needs neither a lookup nor a
//! decision of the user for a call that was never sent.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex};

use model::Record;
use process::lock;

/// How many operations are kept: about 10 MB. Without the earlier ones, recovery handles their calls as possibly sent.
const KEPT: usize = 100_000;

/// The ids of these operations.
#[derive(Debug, Default)]
pub(crate) struct UnsentCalls(Mutex<Ids>);

#[derive(Debug, Default)]
struct Ids {
    all: BTreeSet<Arc<str>>,
    /// The earliest first.
    order: VecDeque<Arc<str>>,
}

impl UnsentCalls {
    /// Adds the operation of the record's intent: the intent may be durable, but its call was not sent.
    pub fn add(&self, record: &Record) {
        let Some(intent) = &record.intent else { return };
        let mut ids = lock(&self.0);
        if ids.all.insert(Arc::clone(&intent.operation_id)) {
            ids.order.push_back(Arc::clone(&intent.operation_id));
        }
        if ids.order.len() > KEPT
            && let Some(earliest) = ids.order.pop_front()
        {
            ids.all.remove(&earliest);
        }
    }

    /// Whether the call of the record's open intent was not sent.
    pub fn contains(&self, record: &Record) -> bool {
        record.intent.as_ref().is_some_and(|intent| lock(&self.0).all.contains(&intent.operation_id))
    }
}
