//! Recorded objects as `purlin state` shows them: a row for each current object and each leftover.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::Value as Json;

use super::super::json::{Diagnostics, FORMAT_VERSION};
use crate::model::{Address, DeposedKey, Diagnostic, Operation, Record, RecordedObject};
use crate::plan::options::status_word;

/// One object.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Row<'a> {
    /// Which instance it is of.
    pub address: &'a Address,
    /// The resource type.
    #[serde(rename = "type")]
    pub type_name: &'a str,
    /// Set for leftovers.
    pub deposed_key: Option<DeposedKey>,
    /// `creating`, `ready`, `tainted` or `interrupted`.
    pub status: &'static str,
    /// The effective flag.
    pub create_before_destroy: bool,
    /// Direct dependencies.
    pub dependencies: &'a [Address],
    /// What is known of it, sensitive values masked.
    pub values: Json,
}

/// The rows of a record. An object that is being made has no values yet.
pub fn rows(record: &Record) -> impl Iterator<Item = Row<'_>> {
    let row = |object: &RecordedObject, key| (status_word(object.status), object.value.to_public_json(), key);
    let current = record.current.iter().map(|object| (object.as_ref(), None));
    let deposed = record.deposed.iter().map(|(key, object)| (object.as_ref(), Some(*key)));
    let recorded = current.chain(deposed).map(move |(object, key)| {
        let (status, values, deposed_key) = row(object, key);
        make(record, object, status, values, deposed_key)
    });
    creating(record).into_iter().chain(recorded)
}

fn creating(record: &Record) -> Option<Row<'_>> {
    let intent = record.intent.as_deref().filter(|intent| intent.operation == Operation::Create)?;
    if record.current.is_some() {
        return None;
    }
    let empty = || Json::Object(serde_json::Map::new());
    Some(match &intent.planned {
        Some(planned) => make(record, &planned.recorded, "creating", empty(), None),
        None => Row {
            address: &record.address,
            type_name: &record.type_name,
            deposed_key: None,
            status: "creating",
            create_before_destroy: false,
            dependencies: &[],
            values: empty(),
        },
    })
}

fn make<'a>(
    record: &'a Record,
    object: &'a RecordedObject,
    status: &'static str,
    values: Json,
    deposed_key: Option<DeposedKey>,
) -> Row<'a> {
    Row {
        address: &record.address,
        type_name: &record.type_name,
        deposed_key,
        status,
        create_before_destroy: object.create_before_destroy,
        dependencies: &object.dependencies,
        values,
    }
}

/// Writes rows as JSON, one at a time: no tree of all of them is made.
pub fn write_json(
    out: &mut dyn Write,
    rows: &mut dyn Iterator<Item = Row<'_>>,
    diagnostics: &[Diagnostic],
) -> io::Result<()> {
    write!(out, "{{\"formatVersion\":\"{FORMAT_VERSION}\",\"objects\":[")?;
    for (position, row) in rows.enumerate() {
        out.write_all(if position == 0 { b"\n" } else { b",\n" })?;
        serde_json::to_writer(&mut *out, &row)?;
    }
    out.write_all(b"],\"diagnostics\":")?;
    serde_json::to_writer(&mut *out, &Diagnostics(diagnostics))?;
    out.write_all(b"}\n")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::cli::state::fixtures::{object, record, with_intent};

    #[test]
    fn an_object_that_is_being_made_has_a_row_and_so_has_the_one_it_replaces() {
        let mut record = with_intent(record("web"), Operation::Create);
        record.deposed.insert(DeposedKey(7), Arc::new(object()));
        let found: Vec<_> = rows(&record).map(|row| (row.status, row.deposed_key)).collect();
        assert_eq!(found, [("creating", None), ("ready", Some(DeposedKey(7)))]);
    }

    #[test]
    fn rows_are_written_in_the_documented_form() {
        let mut record = record("web");
        record.current = Some(Arc::new(object()));
        let mut out = Vec::new();
        write_json(&mut out, &mut rows(&record), &[]).unwrap();
        let json: Json = serde_json::from_slice(&out).unwrap();
        let expected = serde_json::json!({
            "formatVersion": "1",
            "objects": [{
                "address": "web", "type": "terraform_data", "deposedKey": null, "status": "ready",
                "createBeforeDestroy": false, "dependencies": ["db"], "values": {"id": "1"},
            }],
            "diagnostics": [],
        });
        assert_eq!(json, expected);
    }
}
