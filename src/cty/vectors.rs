//! What another implementation makes of thousands of random values and schemas: `tests/vectors` wrote it down.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::json::Unsupported;
use super::schema::{Attribute, Block, NestedBlock, NestedType, Nesting, Shape};
use super::{Type, Value, convert, json, msgpack, plan_faults, proposed, unread};
use crate::model::{self, Segment};

/// A line of the file.
#[derive(Deserialize)]
#[serde(untagged)]
enum Vector {
    Value(ValueVector),
    Schema(SchemaVector),
    Conversion(ConversionVector),
}

#[derive(Deserialize)]
struct ValueVector {
    #[serde(rename = "type")]
    ty: serde_json::Value,
    msgpack: String,
    plain: Option<String>,
    json: Option<String>,
}

#[derive(Deserialize)]
struct SchemaVector {
    schema: BlockVector,
    implied: serde_json::Value,
    empty: String,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct ConversionVector {
    wanted: serde_json::Value,
    literal: serde_json::Value,
    result: Option<String>,
}

#[derive(Deserialize)]
struct BlockVector {
    attributes: BTreeMap<String, AttributeVector>,
    blocks: Option<BTreeMap<String, NestedVector>>,
}

#[derive(Deserialize)]
struct AttributeVector {
    #[serde(rename = "type")]
    ty: Option<serde_json::Value>,
    nested: Option<NestedVector>,
    flags: String,
}

#[derive(Deserialize)]
struct NestedVector {
    nesting: String,
    block: BlockVector,
}

#[derive(Deserialize)]
struct Case {
    prior: String,
    config: String,
    proposed: String,
    unread: Option<String>,
    planned: String,
    faults: Vec<String>,
}

impl BlockVector {
    fn block(&self) -> Block {
        let blocks = self.blocks.iter().flatten().map(|(name, nested)| {
            let block =
                NestedBlock { nesting: nested.nesting(), block: nested.block.block(), min_items: 0, max_items: 0 };
            (name.as_str().into(), block)
        });
        Block::new(self.attributes().collect(), blocks.collect())
    }

    fn attributes(&self) -> impl Iterator<Item = (std::sync::Arc<str>, Attribute)> {
        self.attributes.iter().map(|(name, attribute)| (name.as_str().into(), attribute.attribute()))
    }
}

impl AttributeVector {
    fn attribute(&self) -> Attribute {
        let shape = match (&self.ty, &self.nested) {
            (Some(json), None) => Shape::Plain(ty(json)),
            (None, Some(nested)) => {
                Shape::Nested(NestedType::new(nested.nesting(), nested.block.attributes().collect()))
            }
            _ => panic!("an attribute has either a type or nested attributes"),
        };
        Attribute {
            required: self.flags.contains('r'),
            optional: self.flags.contains('o'),
            computed: self.flags.contains('c'),
            sensitive: self.flags.contains('s'),
            write_only: self.flags.contains('w'),
            ..Attribute::new(shape)
        }
    }
}

impl NestedVector {
    fn nesting(&self) -> Nesting {
        match self.nesting.as_str() {
            "single" => Nesting::Single,
            "group" => Nesting::Group,
            "list" => Nesting::List,
            "set" => Nesting::Set,
            "map" => Nesting::Map,
            other => panic!("no nesting is named {other}"),
        }
    }
}

fn ty(json: &serde_json::Value) -> Type {
    Type::from_json(json.to_string().as_bytes()).unwrap()
}

fn unhex(text: &str) -> Vec<u8> {
    (0..text.len() / 2).map(|at| u8::from_str_radix(&text[2 * at..2 * at + 2], 16).unwrap()).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn vectors() -> Vec<Vector> {
    let compressed = include_bytes!("../../tests/vectors/vectors.jsonl.zst");
    let text = String::from_utf8(zstd::decode_all(&compressed[..]).unwrap()).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn values_have_the_bytes_of_go_cty() {
    let mut checked = 0;
    for vector in vectors() {
        let Vector::Value(vector) = vector else { continue };
        let ty = ty(&vector.ty);
        let value = msgpack::decode(&unhex(&vector.msgpack), &ty).unwrap();
        let expected = vector.plain.as_ref().unwrap_or(&vector.msgpack);
        assert_eq!(&hex(&msgpack::encode(&value, &ty).unwrap()), expected, "{value:?}");
        if let Some(json) = &vector.json {
            assert_eq!(&json::encode(&value, &ty).unwrap(), json);
            assert_eq!(json::decode(json.as_bytes(), &ty, Unsupported::Refuse).unwrap(), value);
        }
        checked += 1;
    }
    assert_eq!(checked, 3000);
}

#[test]
fn proposals_and_faults_are_those_of_opentofu() {
    let mut checked = 0;
    for vector in vectors() {
        let Vector::Schema(vector) = vector else { continue };
        let block = vector.schema.block();
        assert_eq!(*block.ty(), ty(&vector.implied));
        let read = |hex: &str| msgpack::decode(&unhex(hex), block.ty()).unwrap();
        let write = |value: &Value| hex(&msgpack::encode(value, block.ty()).unwrap());
        assert_eq!(write(&block.empty()), vector.empty);
        for case in &vector.cases {
            let [prior, config, planned] = [&case.prior, &case.config, &case.planned].map(|hex| read(hex));
            let context = format!("{block:#?}\nprior {prior:?}\nconfig {config:?}\nplanned {planned:?}");
            assert_eq!(write(&proposed(&block, &prior, &config)), case.proposed, "{context}");
            if let Some(expected) = &case.unread {
                assert_eq!(&write(&unread(&block, &config)), expected, "{context}");
            }
            let found = plan_faults(&block, &prior, &config, &planned);
            let mut faults: Vec<String> = found.iter().map(|fault| path(&fault.path.0)).collect();
            faults.sort();
            assert_eq!(faults, case.faults, "{found:?}\n{context}");
            checked += 1;
        }
    }
    assert_eq!(checked, 6000);
}

#[test]
fn literals_are_converted_as_cty_does() {
    let (mut checked, mut stricter) = (0, 0);
    for vector in vectors() {
        let Vector::Conversion(vector) = vector else { continue };
        let ty = ty(&vector.wanted);
        let (value, found) = convert(&ty, &model::Value::from_json(vector.literal.clone()));
        let context = format!("{} for {ty:?}: {found:?}", vector.literal);
        checked += 1;
        match &vector.result {
            // cty drops attributes that it does not know, whatever was meant by them.
            Some(_) if found.iter().any(|problem| problem.summary == "there is no such argument") => stricter += 1,
            Some(expected) => {
                assert!(found.is_empty(), "{context}");
                assert_eq!(&hex(&msgpack::encode(&value, &ty).unwrap()), expected, "{context}");
            }
            None => assert!(!found.is_empty(), "{context}"),
        }
    }
    assert_eq!(checked, 3000);
    assert!(stricter < 100, "{stricter}");
}

fn path(segments: &[Segment]) -> String {
    let parts = segments.iter().map(|segment| match segment {
        Segment::Name(name) => format!("/{name}"),
        Segment::Index(place) => format!("/{place}"),
    });
    parts.collect()
}
