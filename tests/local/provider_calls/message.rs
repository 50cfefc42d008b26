//! Decodes requests to providers into JSON, so that they can be compared by value and shown.

use std::collections::BTreeMap;

use rmp::Marker;
use rmp::decode::{Bytes, RmpRead as _};
use serde_json::{Value as Json, json};

use Field::{Capabilities, Identity, Number, Private, State, Text, Value};

/// What a field of a request contains.
#[derive(Clone, Copy)]
enum Field {
    Text,
    Number,
    /// A value as msgpack or JSON.
    Value,
    /// Bytes of the provider.
    Private,
    /// A recorded state as JSON.
    State,
    Capabilities,
    Identity,
}

type Fields = &'static [(u64, &'static str, Field)];

/// The fields of the requests of a method, by its name in version 6 of the protocol.
fn fields(method: &str) -> Fields {
    match method {
        "ValidateProviderConfig" => &[(1, "config", Value)],
        "ConfigureProvider" => {
            &[(1, "terraform_version", Text), (2, "config", Value), (3, "client_capabilities", Capabilities)]
        }
        "ValidateResourceConfig" | "ValidateDataResourceConfig" => {
            &[(1, "type_name", Text), (2, "config", Value), (3, "client_capabilities", Capabilities)]
        }
        "UpgradeResourceState" => &[(1, "type_name", Text), (2, "version", Number), (3, "raw_state", State)],
        "UpgradeResourceIdentity" => &[(1, "type_name", Text), (2, "version", Number), (3, "raw_identity", State)],
        "ReadResource" => &[
            (1, "type_name", Text),
            (2, "current_state", Value),
            (3, "private", Private),
            (4, "provider_meta", Value),
            (5, "client_capabilities", Capabilities),
            (6, "current_identity", Identity),
        ],
        "PlanResourceChange" => &[
            (1, "type_name", Text),
            (2, "prior_state", Value),
            (3, "proposed_new_state", Value),
            (4, "config", Value),
            (5, "prior_private", Private),
            (6, "provider_meta", Value),
            (7, "client_capabilities", Capabilities),
            (8, "prior_identity", Identity),
        ],
        "ApplyResourceChange" => &[
            (1, "type_name", Text),
            (2, "prior_state", Value),
            (3, "planned_state", Value),
            (4, "config", Value),
            (5, "planned_private", Private),
            (6, "provider_meta", Value),
            (7, "planned_identity", Identity),
        ],
        "ImportResourceState" => &[
            (1, "type_name", Text),
            (2, "id", Text),
            (3, "client_capabilities", Capabilities),
            (4, "identity", Identity),
        ],
        "MoveResourceState" => &[
            (1, "source_provider_address", Text),
            (2, "source_type_name", Text),
            (3, "source_schema_version", Number),
            (4, "source_state", State),
            (5, "target_type_name", Text),
            (6, "source_private", Private),
            (7, "source_identity", State),
            (8, "source_identity_schema_version", Number),
        ],
        "ReadDataSource" => &[
            (1, "type_name", Text),
            (2, "config", Value),
            (3, "provider_meta", Value),
            (4, "client_capabilities", Capabilities),
        ],
        "GetProviderSchema" | "GetResourceIdentitySchemas" => &[],
        other => panic!("the fields of {other} are not listed"),
    }
}

/// The name of a method in version 6 of the protocol.
pub(super) fn current_name(method: &str) -> &str {
    match method {
        "GetSchema" => "GetProviderSchema",
        "PrepareProviderConfig" => "ValidateProviderConfig",
        "ValidateResourceTypeConfig" => "ValidateResourceConfig",
        "ValidateDataSourceConfig" => "ValidateDataResourceConfig",
        "Configure" => "ConfigureProvider",
        other => other,
    }
}

/// The fields of a request by name.
pub(super) fn decode(method: &str, request: &[u8]) -> Json {
    let known = fields(current_name(method));
    let mut decoded = serde_json::Map::new();
    for (number, raw) in raw_fields(request) {
        let (_, name, field) = known.iter().find(|known| known.0 == number).unwrap_or_else(|| {
            panic!("field {number} of {method} is not listed");
        });
        decoded.insert((*name).to_owned(), decode_field(*field, &raw));
    }
    Json::Object(decoded)
}

/// A field of a protobuf message.
enum Raw {
    Number(u64),
    Bytes(Vec<u8>),
}

fn raw_fields(mut message: &[u8]) -> BTreeMap<u64, Raw> {
    let mut all = BTreeMap::new();
    while !message.is_empty() {
        let key = prost::decode_length_delimiter(&mut message).unwrap() as u64;
        let number = prost::decode_length_delimiter(&mut message).unwrap();
        let raw = match key & 7 {
            0 => Raw::Number(number as u64),
            2 => Raw::Bytes(message.split_off(..number).unwrap().to_vec()),
            other => panic!("wire type {other} is not used"),
        };
        all.insert(key >> 3, raw);
    }
    all
}

impl Raw {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Number(_) => panic!("a number where bytes are expected"),
        }
    }
}

fn decode_field(field: Field, raw: &Raw) -> Json {
    match (field, raw) {
        (_, Raw::Number(number)) => json!(number),
        (Text, _) => Json::String(text(raw.bytes())),
        (Value, _) => value(raw.bytes()),
        (Private, _) => private(raw.bytes()),
        (State, _) => state(raw.bytes()),
        (Capabilities, _) => raw_fields(raw.bytes())
            .keys()
            .map(|number| json!(["", "deferral", "write_only"][*number as usize]))
            .collect(),
        (Identity, _) => raw_fields(raw.bytes()).get(&1).map_or(Json::Null, |inner| value(inner.bytes())),
        (Number, _) => panic!("bytes where a number is expected"),
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Private data are usually JSON, whose order and spaces are irrelevant to the provider.
fn private(bytes: &[u8]) -> Json {
    serde_json::from_slice(bytes).unwrap_or_else(|_| json!(bytes))
}

fn state(message: &[u8]) -> Json {
    match raw_fields(message).get(&1) {
        Some(json) => serde_json::from_slice(json.bytes()).unwrap(),
        None => json!("absent"),
    }
}

fn value(message: &[u8]) -> Json {
    let fields = raw_fields(message);
    match (fields.get(&1), fields.get(&2)) {
        (Some(msgpack), None) => {
            let mut rest = Bytes::new(msgpack.bytes());
            let value = read(&mut rest);
            assert!(rest.remaining_slice().is_empty(), "bytes after a value");
            value
        }
        (None, Some(json)) => json!({ "json": serde_json::from_slice::<Json>(json.bytes()).unwrap() }),
        _ => json!("absent"),
    }
}

/// Reads a value without its type. Unknown values become `{"unknown": []}`, with or without refinements.
fn read(from: &mut Bytes<'_>) -> Json {
    let marker = rmp::decode::read_marker(from).unwrap();
    let length = length(marker, from);
    match marker {
        Marker::Null => Json::Null,
        Marker::True => Json::Bool(true),
        Marker::False => Json::Bool(false),
        Marker::FixPos(number) => json!(number),
        Marker::FixNeg(number) => json!(number),
        Marker::U8 => json!(from.read_data_u8().unwrap()),
        Marker::U16 => json!(from.read_data_u16().unwrap()),
        Marker::U32 => json!(from.read_data_u32().unwrap()),
        Marker::U64 => json!(from.read_data_u64().unwrap()),
        Marker::I8 => json!(from.read_data_i8().unwrap()),
        Marker::I16 => json!(from.read_data_i16().unwrap()),
        Marker::I32 => json!(from.read_data_i32().unwrap()),
        Marker::I64 => json!(from.read_data_i64().unwrap()),
        Marker::F32 => json!(from.read_data_f32().unwrap()),
        Marker::F64 => json!(from.read_data_f64().unwrap()),
        Marker::FixStr(_) | Marker::Str8 | Marker::Str16 | Marker::Str32 => Json::String(text(&take(from, length))),
        Marker::Bin8 | Marker::Bin16 | Marker::Bin32 => json!({ "type": private(&take(from, length)) }),
        Marker::FixArray(_) | Marker::Array16 | Marker::Array32 => (0..length).map(|_| read(from)).collect(),
        Marker::FixMap(_) | Marker::Map16 | Marker::Map32 => {
            let entry = |_| (read(from).as_str().unwrap().to_owned(), read(from));
            Json::Object((0..length).map(entry).collect())
        }
        Marker::FixExt1 | Marker::FixExt2 | Marker::FixExt4 | Marker::FixExt8 | Marker::FixExt16 | Marker::Ext8 => {
            take(from, length + 1);
            json!({ "unknown": [] })
        }
        other => panic!("{other:?} is not used"),
    }
}

fn length(marker: Marker, from: &mut Bytes<'_>) -> usize {
    match marker {
        Marker::FixStr(length) | Marker::FixArray(length) | Marker::FixMap(length) => length.into(),
        Marker::Str8 | Marker::Bin8 | Marker::Ext8 => from.read_data_u8().unwrap().into(),
        Marker::Str16 | Marker::Bin16 | Marker::Array16 | Marker::Map16 => from.read_data_u16().unwrap().into(),
        Marker::Str32 | Marker::Bin32 | Marker::Array32 | Marker::Map32 => from.read_data_u32().unwrap() as usize,
        Marker::FixExt1 => 1,
        Marker::FixExt2 => 2,
        Marker::FixExt4 => 4,
        Marker::FixExt8 => 8,
        Marker::FixExt16 => 16,
        _ => 0,
    }
}

fn take(from: &mut Bytes<'_>, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    from.read_exact_buf(&mut bytes).unwrap();
    bytes
}
