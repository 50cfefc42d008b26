//! Operations of this process that made no call: their intents could not be written for certain. The server may have
//! taken such an intent all the same, only the answer was lost. Whoever finds it in a record may ask here, so that
//! nothing has to be looked up, and no person asked, about a call that was never made.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use crate::model::{Address, Record};
use crate::process::lock;

/// Namespace and instance.
type Whose = (Arc<str>, Address);

/// The ids of operations, by the record that may hold one of them.
#[derive(Debug, Default)]
pub(crate) struct Uncalled(Mutex<BTreeMap<Whose, BTreeSet<Arc<str>>>>);

impl Uncalled {
    /// The intent of this record may be durable, and its call is not made.
    pub fn add(&self, record: &Record) {
        let Some(intent) = &record.intent else { return };
        lock(&self.0).entry(whose(record)).or_default().insert(Arc::clone(&intent.operation_id));
    }

    /// A later version of the record is durable, so none of the earlier intents is, nor can become so.
    pub fn forget(&self, record: &Record) {
        lock(&self.0).remove(&whose(record));
    }

    /// Whether the open intent of this record is one of an operation that made no call.
    pub fn contains(&self, record: &Record) -> bool {
        let Some(intent) = &record.intent else { return false };
        lock(&self.0).get(&whose(record)).is_some_and(|ids| ids.contains(&intent.operation_id))
    }
}

fn whose(record: &Record) -> Whose {
    (Arc::clone(&record.namespace), record.address.clone())
}
