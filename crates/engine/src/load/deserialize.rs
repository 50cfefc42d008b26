//! Deserializes a document into a type of `api`, under the guidance of its schema.
//!
//! What `check` reports as unreadable counts as absent, so the rest of a faulty document is still read. Fields with
//! free content, such as `spec.config`, become empty maps: their users take the `Tree`, which has the lines and every
//! digit of numbers.

use serde::de::value::{Error, StrDeserializer};
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, IntoDeserializer as _, MapAccess, SeqAccess, Visitor,
};
use serde::forward_to_deserialize_any;

use super::check::Findings;
use super::shape::{Fields, Shape};
use super::tree::{Entry, Node, Tree};
use model::{Diagnostic, Number, Path, Reason};

/// Reads the `spec` of a document as far as it is readable.
pub fn spec<T: DeserializeOwned + Default>(document: &Tree, shape: &Shape, findings: &mut Findings) -> T {
    read(document.get("spec"), shape.spec()).unwrap_or_else(|error| {
        let problem = Diagnostic::general(Reason::InternalError, format!("the spec cannot be read: {error}"));
        findings.unreadable.push(problem.at(Path::of(&["spec"])));
        T::default()
    })
}

/// Reads a value of the shape. `None`: it is absent, and required fields are empty.
///
/// # Errors
/// The type and its schema do not agree, which a test rules out.
pub fn read<T: DeserializeOwned>(tree: Option<&Tree>, shape: &Shape) -> Result<T, Error> {
    T::deserialize(Shaped { tree, shape })
}

/// A value with its shape. A value of another shape counts as absent.
#[derive(Clone, Copy)]
struct Shaped<'a> {
    tree: Option<&'a Tree>,
    shape: &'a Shape,
}

impl<'a> Shaped<'a> {
    fn node(self) -> Option<&'a Node> {
        self.tree.filter(|tree| self.shape.fits(tree)).map(|tree| &tree.node)
    }

    fn entries(self) -> std::slice::Iter<'a, Entry> {
        match self.node() {
            Some(Node::Map(entries)) => entries.iter(),
            _ => [].iter(),
        }
    }
}

impl<'de> Deserializer<'de> for Shaped<'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.shape {
            Shape::Free { .. } => visitor.visit_map(NoEntries),
            Shape::Map(fields) => {
                visitor.visit_map(FieldAccess { of: self, fields, entries: self.entries(), required: 0, value: None })
            }
            Shape::Strings { .. } => visitor.visit_map(StringAccess { entries: self.entries(), value: None }),
            Shape::List(list) => {
                let items = match self.node() {
                    Some(Node::List(items)) => items.iter(),
                    _ => [].iter(),
                };
                visitor.visit_seq(ItemAccess { items, shape: &list.shape })
            }
            Shape::String { values, .. } => match self.node() {
                Some(Node::String(text)) => visitor.visit_str(text),
                // The error is reported, and any value is as good.
                _ => visitor.visit_str(values.first().map_or("", AsRef::as_ref)),
            },
            Shape::Boolean => visitor.visit_bool(matches!(self.node(), Some(Node::Bool(true)))),
            Shape::Integer { .. } => match self.node() {
                Some(Node::Number(Number::Int(number))) => visitor.visit_i64(*number),
                _ => visitor.visit_i64(0),
            },
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_some(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        let text = match (self.node(), self.shape) {
            (Some(Node::String(text)), _) => text,
            (_, Shape::String { values, .. }) => values.first().map_or("", AsRef::as_ref),
            _ => "",
        };
        let text: StrDeserializer<'_, Error> = text.into_deserializer();
        text.deserialize_enum(name, variants, visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map struct identifier ignored_any
    }
}

/// The fields of a map that can be read, and then the required fields that cannot.
struct FieldAccess<'a> {
    of: Shaped<'a>,
    fields: &'a Fields,
    entries: std::slice::Iter<'a, Entry>,
    /// The position of the next required field.
    required: usize,
    value: Option<Shaped<'a>>,
}

impl<'a> FieldAccess<'a> {
    fn readable(&self, entry: &'a Entry) -> Option<Shaped<'a>> {
        let shape = self.fields.get(&entry.key)?;
        let is_scalar = matches!(shape, Shape::String { .. } | Shape::Boolean | Shape::Integer { .. });
        let is_absent = entry.value.node == Node::Null || (is_scalar && !shape.fits(&entry.value));
        (!is_absent).then_some(Shaped { tree: Some(&entry.value), shape })
    }
}

impl<'de> MapAccess<'de> for FieldAccess<'de> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Error> {
        while let Some(entry) = self.entries.next() {
            if let Some(value) = self.readable(entry) {
                self.value = Some(value);
                return seed.deserialize(str_deserializer(&entry.key)).map(Some);
            }
        }
        while let Some(name) = self.fields.required.get(self.required) {
            self.required += 1;
            let mut given = self.of.entries().filter(|entry| entry.key == *name);
            if let Some(shape) = self.fields.get(name)
                && !given.any(|entry| self.readable(entry).is_some())
            {
                self.value = Some(Shaped { tree: None, shape });
                return seed.deserialize(str_deserializer(name)).map(Some);
            }
        }
        Ok(None)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        let value = self.value.take().expect("a key comes before its value");
        seed.deserialize(value)
    }
}

fn str_deserializer(text: &str) -> StrDeserializer<'_, Error> {
    text.into_deserializer()
}

/// The entries of a map of strings.
struct StringAccess<'a> {
    entries: std::slice::Iter<'a, Entry>,
    value: Option<&'a str>,
}

impl<'de> MapAccess<'de> for StringAccess<'de> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Error> {
        let Some((key, value)) = self.entries.find_map(|entry| Some((&entry.key, entry.value.as_str()?))) else {
            return Ok(None);
        };
        self.value = Some(value);
        seed.deserialize(str_deserializer(key)).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        seed.deserialize(str_deserializer(self.value.take().unwrap_or_default()))
    }
}

struct ItemAccess<'a> {
    items: std::slice::Iter<'a, Tree>,
    shape: &'a Shape,
}

impl<'de> SeqAccess<'de> for ItemAccess<'de> {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Error> {
        // An item that cannot be read keeps its position, because errors name positions.
        self.items.next().map(|item| seed.deserialize(Shaped { tree: Some(item), shape: self.shape })).transpose()
    }
}

/// The content of a free field.
struct NoEntries;

impl<'de> MapAccess<'de> for NoEntries {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, _: K) -> Result<Option<K::Value>, Error> {
        Ok(None)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, _: V) -> Result<V::Value, Error> {
        unreachable!("there is no key")
    }
}
