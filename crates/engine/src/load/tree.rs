//! A parsed document: plain values with their line numbers.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::intern::Interner;
use model::unicode::to_nfc;
use model::{Number, Path, Segment};

/// A value with its line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tree {
    /// The line, from 1. 0: the value comes from the API server.
    pub line: usize,
    pub node: Node,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Node {
    Null,
    Bool(bool),
    Number(Number),
    String(Arc<str>),
    List(Vec<Tree>),
    /// In source order, without duplicate keys.
    Map(Vec<Entry>),
}

/// One entry of a map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub key: Arc<str>,
    /// The line of the key.
    pub line: usize,
    pub value: Tree,
}

impl Tree {
    pub fn string(text: &str) -> Self {
        Self { line: 0, node: Node::String(to_nfc(text)) }
    }

    pub fn list(texts: &[String]) -> Self {
        Self { line: 0, node: Node::List(texts.iter().map(|text| Self::string(text)).collect()) }
    }

    pub fn strings(texts: &BTreeMap<String, String>, interner: &mut Interner) -> Self {
        let entries = texts.iter().map(|(key, text)| Entry {
            key: interner.get(&to_nfc(key)),
            line: 0,
            value: Self::string(text),
        });
        Self { line: 0, node: Node::Map(entries.collect()) }
    }

    pub fn from_json_map(map: &serde_json::Map<String, serde_json::Value>, interner: &mut Interner) -> Self {
        let entries = map
            .iter()
            .map(|(key, value)| Entry {
                key: interner.get(&to_nfc(key)),
                line: 0,
                value: Self::from_json(value, interner),
            })
            .collect();
        Self { line: 0, node: Node::Map(entries) }
    }

    pub fn from_json(json: &serde_json::Value, interner: &mut Interner) -> Self {
        use serde_json::Value as Json;
        let node = match json {
            Json::Null => Node::Null,
            Json::Bool(bool) => Node::Bool(*bool),
            Json::Number(number) => number
                .as_i64()
                .map(Number::Int)
                .or_else(|| Number::parse(&number.to_string()))
                .map_or(Node::Null, Node::Number),
            Json::String(text) => Node::String(to_nfc(text)),
            Json::Array(items) => Node::List(items.iter().map(|item| Self::from_json(item, interner)).collect()),
            Json::Object(map) => return Self::from_json_map(map, interner),
        };
        Self { line: 0, node }
    }

    /// A hash of the content without its lines. On files it replaces `metadata.generation`.
    pub fn fingerprint(&self) -> i64 {
        let mut hasher = crc32fast::Hasher::new();
        self.feed(&mut hasher);
        i64::from(hasher.finalize())
    }

    fn feed(&self, hasher: &mut crc32fast::Hasher) {
        // Each kind starts with its own byte, so that `1` and `"1"` differ.
        match &self.node {
            Node::Null => hasher.update(b"n"),
            Node::Bool(bool) => hasher.update(if *bool { b"t" } else { b"f" }),
            Node::Number(number) => {
                hasher.update(b"d");
                hasher.update(number.to_string().as_bytes());
            }
            Node::String(text) => {
                hasher.update(b"s");
                hasher.update(text.as_bytes());
            }
            Node::List(items) => {
                hasher.update(b"[");
                items.iter().for_each(|item| item.feed(hasher));
                hasher.update(b"]");
            }
            Node::Map(entries) => {
                hasher.update(b"{");
                for entry in entries {
                    hasher.update(entry.key.as_bytes());
                    hasher.update(b":");
                    entry.value.feed(hasher);
                }
                hasher.update(b"}");
            }
        }
    }

    /// Returns the value of a key. `None`: this is not a map, or has no such key.
    pub fn get(&self, key: &str) -> Option<&Self> {
        match &self.node {
            Node::Map(entries) => entries.iter().find(|entry| entry.key.as_ref() == key).map(|entry| &entry.value),
            _ => None,
        }
    }

    /// Returns the entries of a map, and none for other values.
    pub fn entries(&self) -> &[Entry] {
        match &self.node {
            Node::Map(entries) => entries,
            _ => &[],
        }
    }

    pub fn as_str(&self) -> Option<&str> {
        match &self.node {
            Node::String(text) => Some(text),
            _ => None,
        }
    }

    /// The type in words, such as `a list`.
    pub fn describe(&self) -> &'static str {
        match self.node {
            Node::Null => "null",
            Node::Bool(_) => "a boolean",
            Node::Number(_) => "a number",
            Node::String(_) => "a string",
            Node::List(_) => "a list",
            Node::Map(_) => "a map",
        }
    }

    /// Returns the line of the deepest existing place on `path`: the line of its key if it has one.
    pub fn line_of(&self, path: &Path) -> usize {
        let mut here = self;
        let mut line = self.line;
        for segment in &path.0 {
            let next = match (&here.node, segment) {
                (Node::Map(entries), Segment::Name(name)) => {
                    entries.iter().find(|entry| entry.key == *name).map(|entry| (entry.line, &entry.value))
                }
                (Node::List(items), Segment::Index(index)) => items.get(*index).map(|item| (item.line, item)),
                _ => None,
            };
            let Some((at, value)) = next else { break };
            (line, here) = (at, value);
        }
        line
    }
}
