//! The rows of `purlin state`: one for each current and each deposed object.

use std::io::{self, Write};

use serde::{Serialize, Serializer};

use super::super::json::{Diagnostics, FORMAT_VERSION};
use engine::plan::options::state_word;
use engine::plan::render::json::Public;
use model::{Address, DeposedKey, Diagnostic, InstanceKey, Operation, Record, RecordedObject, Value};

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Row<'a> {
    pub address: &'a Address,
    #[serde(rename = "type")]
    pub type_name: &'a str,
    /// Set for deposed objects.
    pub deposed_key: Option<DeposedKey>,
    /// `creating`, `ready`, `tainted` or `interrupted`.
    pub status: &'static str,
    pub create_before_destroy: bool,
    /// The file of the manifest; `None` in a cluster.
    pub source: Option<&'a str>,
    /// The direct dependencies. A whole family is written `web[*]`, so that `web` is always an object without a key.
    pub dependencies: Vec<String>,
    /// Empty while the object is being created. Sensitive values are masked on serialization.
    pub values: Masked<'a>,
}

/// A value that is serialized without sensitive values; `None` is an empty map.
#[derive(Clone, Copy, Debug)]
pub struct Masked<'a>(pub Option<&'a Value>);

impl Serialize for Masked<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Some(value) => Public(value).serialize(serializer),
            None => serializer.collect_map::<&str, (), _>([]),
        }
    }
}

/// Returns the rows of a record, including an object that is being created.
pub fn rows(record: &Record) -> impl Iterator<Item = Row<'_>> {
    let current = record.current.iter().map(|object| (object.as_ref(), None));
    let deposed = record.deposed.iter().map(|(key, object)| (object.as_ref(), Some(*key)));
    let recorded = current
        .chain(deposed)
        .map(move |(object, key)| object_row(record, object, state_word(object), Some(&object.value), key));
    creating(record).into_iter().chain(recorded)
}

fn creating(record: &Record) -> Option<Row<'_>> {
    let intent = record.intent.as_deref().filter(|intent| intent.operation == Operation::Create)?;
    if record.current.is_some() {
        return None;
    }
    Some(match &intent.planned {
        Some(planned) => object_row(record, &planned.recorded, "creating", None, None),
        None => Row {
            address: &record.address,
            type_name: &record.type_name,
            deposed_key: None,
            status: "creating",
            create_before_destroy: false,
            source: record.source.as_deref(),
            dependencies: Vec::new(),
            values: Masked(None),
        },
    })
}

fn object_row<'a>(
    record: &'a Record,
    object: &'a RecordedObject,
    status: &'static str,
    values: Option<&'a Value>,
    deposed_key: Option<DeposedKey>,
) -> Row<'a> {
    Row {
        address: &record.address,
        type_name: &record.type_name,
        deposed_key,
        status,
        create_before_destroy: object.create_before_destroy,
        source: record.source.as_deref(),
        dependencies: object.dependencies.iter().map(dependency).collect(),
        values: Masked(values),
    }
}

fn dependency(address: &Address) -> String {
    if address.key == InstanceKey::All { format!("{address}[*]") } else { address.to_string() }
}

/// Writes rows as JSON one at a time, to save memory.
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

    use serde_json::Value as Json;

    use super::*;
    use crate::cli::state::fixtures::{object, record, with_intent};

    #[test]
    fn an_object_being_created_and_its_predecessor_have_rows() {
        let mut record = with_intent(record("web"), Operation::Create);
        record.deposed.insert(DeposedKey(7), Arc::new(object()));
        let found: Vec<_> = rows(&record).map(|row| (row.status, row.deposed_key)).collect();
        assert_eq!(found, [("creating", None), ("ready", Some(DeposedKey(7)))]);
    }

    #[test]
    fn families_are_distinct_from_objects_without_a_key() {
        let mut record = record("web");
        let dependencies = [Address::single("ocean"), Address::family("ocean")].into();
        record.current = Some(Arc::new(RecordedObject { dependencies, ..object() }));
        assert_eq!(rows(&record).next().unwrap().dependencies, ["ocean", "ocean[*]"]);
    }

    #[test]
    fn rows_have_the_documented_format() {
        let mut record = record("web");
        record.current = Some(Arc::new(object()));
        let mut out = Vec::new();
        write_json(&mut out, &mut rows(&record), &[]).unwrap();
        let json: Json = serde_json::from_slice(&out).unwrap();
        let expected = serde_json::json!({
            "formatVersion": "1",
            "objects": [{
                "address": "web", "type": "terraform_data", "deposedKey": null, "status": "ready",
                "createBeforeDestroy": false, "source": null, "dependencies": ["db"], "values": {"id": "1"},
            }],
            "diagnostics": [],
        });
        assert_eq!(json, expected);
    }
}
