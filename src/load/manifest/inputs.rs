//! `spec.inputs` of a document, and the documents that serve it: ConfigMaps and Secrets.

use std::sync::Arc;

use super::{Manifest, Reading, named};
use crate::load::decode::{DraftInput, DraftKeyRef};
use crate::load::tree::{Entry, Node, Tree};
use crate::model::data::{StringData, decode_base64, string_from_bytes};
use crate::model::{DataKind, DataRef, Path};

impl Reading<'_> {
    pub(super) fn inputs(&mut self, tree: &Tree) -> Vec<DraftInput> {
        let at = Path::of(&["spec", "inputs"]);
        let items = self.items(tree, &at);
        items.iter().enumerate().map(|(position, item)| self.input(item, &at.index(position))).collect()
    }

    fn input(&mut self, tree: &Tree, at: &Path) -> DraftInput {
        let mut input = DraftInput::default();
        for entry in self.entries_at(tree, at) {
            match entry.key.as_ref() {
                "name" => input.name = self.text_at(&entry.value, at.name("name")).unwrap_or_default(),
                "configMapKeyRef" => input.config_map = Some(self.key_ref(entry, at)),
                "secretKeyRef" => input.secret = Some(self.key_ref(entry, at)),
                _ => self.unknown_at(entry, at, &["name", "configMapKeyRef", "secretKeyRef"]),
            }
        }
        input
    }

    fn key_ref(&mut self, entry: &Entry, at: &Path) -> DraftKeyRef {
        let at = at.name(entry.key.clone());
        let mut reference = DraftKeyRef::default();
        for entry in self.entries_at(&entry.value, &at) {
            let place = at.name(entry.key.clone());
            match (entry.key.as_ref(), &entry.value.node) {
                ("name", _) => reference.name = self.text_at(&entry.value, place).unwrap_or_default(),
                ("key", _) => reference.key = self.text_at(&entry.value, place).unwrap_or_default(),
                ("optional", Node::Bool(optional)) => reference.optional = *optional,
                ("optional", Node::Null) => {}
                ("optional", _) => self.wrong(&entry.value, place, "true or false"),
                _ => self.unknown_at(entry, &at, &["name", "key", "optional"]),
            }
        }
        reference
    }

    /// A `ConfigMap` or Secret. Problems are reported; the valid part is used.
    pub(super) fn data(mut self, tree: &Tree, kind: DataKind) -> Manifest {
        let Some(name) = named(tree, "name").filter(|name| !name.is_empty()) else {
            let what = format!("the {} has no name", kind.as_str());
            return Manifest::Ignored(vec![self.error(tree.line, what).hint("set `metadata.name`")]);
        };
        let mut texts = StringData::new();
        for entry in tree.entries() {
            let at = Path::of(&[&entry.key]);
            let encoded = match (kind, entry.key.as_ref()) {
                (DataKind::ConfigMap, "data") | (DataKind::Secret, "stringData") => false,
                (DataKind::ConfigMap, "binaryData") | (DataKind::Secret, "data") => true,
                _ => continue,
            };
            for item in self.entries_at(&entry.value, &at) {
                let place = at.name(item.key.clone());
                let Some(text) = self.text_at(&item.value, place.clone()) else { continue };
                let text =
                    if encoded { decode_base64(&text).map(|bytes| string_from_bytes(&bytes)) } else { Some(text) };
                match text {
                    // `stringData` wins over `data`, as in a cluster.
                    Some(_) if encoded && texts.contains_key(&item.key) => {}
                    Some(text) => drop(texts.insert(item.key.clone(), text)),
                    None => {
                        let hint = match kind {
                            DataKind::ConfigMap => "write plain text under `data`",
                            DataKind::Secret => "write plain text under `stringData`",
                        };
                        self.problem(item.line, place, "the value is not valid base64", Some(hint.to_owned()));
                    }
                }
            }
        }
        let source = self.source(tree.line);
        let object = DataRef { kind, name };
        Manifest::Data {
            object,
            texts: Arc::new(texts),
            namespace: named(tree, "namespace"),
            source,
            problems: self.problems,
        }
    }
}
