//! Test records.

use std::sync::Arc;

use jiff::Timestamp;

use model::{Holder, Intent, Operation, Record, RecordedObject, Value};

/// A record without objects.
pub fn record(name: &str) -> Record {
    Record::empty("default".into(), name.parse().unwrap(), "".into(), "terraform_data".into())
}

/// A ready object that depends on `db`.
pub fn object() -> RecordedObject {
    RecordedObject {
        value: Value::map([("id", Value::from("1"))]),
        dependencies: Arc::from(["db".parse().unwrap()]),
        prevent_destroy: true,
        ..RecordedObject::default()
    }
}

/// Adds an open operation to the record.
pub fn with_intent(mut record: Record, operation: Operation) -> Record {
    record.intent = Some(Box::new(Intent {
        operation,
        operation_id: "op".into(),
        holder: Holder { pod: "".into(), process: "p".into() },
        epoch: 1,
        started: Timestamp::UNIX_EPOCH,
        deadline: Timestamp::UNIX_EPOCH,
        deposed: None,
        planned: None,
        import: None,
        cause: model::Cause::default(),
    }));
    record
}
