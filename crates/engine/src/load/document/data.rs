//! `ConfigMap` and Secret documents, which supply inputs.

use std::sync::Arc;

use super::{Document, Manifest, metadata};
use crate::load::tree::{Node, Tree};
use model::data::{StringData, decode_base64, string_from_bytes};
use model::{DataKind, DataRef, Diagnostic, Diagnostics, Path, Reason};

impl Document<'_> {
    /// Reads a `ConfigMap` or Secret. Errors are reported, and the valid part is used.
    pub fn data(&self, mut problems: Diagnostics, kind: DataKind) -> Manifest {
        let Some(name) = metadata(self.tree, "name") else {
            let what = format!("the {} has no name", kind.as_str());
            return Manifest::Ignored(vec![self.error(what).hint("set `metadata.name`")]);
        };
        let mut texts = StringData::new();
        for entry in self.tree.entries() {
            let at = Path::of(&[&entry.key]);
            let encoded = match (kind, entry.key.as_ref()) {
                (DataKind::ConfigMap, "data") | (DataKind::Secret, "stringData") => false,
                (DataKind::ConfigMap, "binaryData") | (DataKind::Secret, "data") => true,
                _ => continue,
            };
            if !matches!(entry.value.node, Node::Map(_) | Node::Null) {
                problems.push(expected("a map", &entry.value, at.clone()));
            }
            for item in entry.value.entries() {
                let place = at.name(item.key.clone());
                let text = match &item.value.node {
                    Node::Null => continue,
                    Node::String(text) => text,
                    _ => {
                        problems.push(expected("a string", &item.value, place));
                        continue;
                    }
                };
                let decoded = match encoded {
                    true => decode_base64(text).map(|bytes| string_from_bytes(&bytes)),
                    false => Some(text.clone()),
                };
                match decoded {
                    // `stringData` wins over `data`, as in a cluster.
                    Some(_) if encoded && texts.contains_key(&item.key) => {}
                    Some(text) => drop(texts.insert(item.key.clone(), text)),
                    None => problems.push(not_base64(kind, place)),
                }
            }
        }
        self.locate(&mut problems);
        Manifest::Data {
            object: DataRef { kind, name: name.into() },
            texts: Arc::new(texts),
            namespace: self.namespace(),
            source: self.source(self.tree.line),
            problems,
        }
    }
}

fn expected(expected: &str, tree: &Tree, at: Path) -> Diagnostic {
    let what = format!("expected {expected}, found {}", tree.describe());
    let problem = Diagnostic::general(Reason::InvalidManifest, what).at(at);
    if matches!(tree.node, Node::Bool(_) | Node::Number(_)) { problem.hint("quote it") } else { problem }
}

fn not_base64(kind: DataKind, at: Path) -> Diagnostic {
    let hint = match kind {
        DataKind::ConfigMap => "write plain text under `data`",
        DataKind::Secret => "write plain text under `stringData`",
    };
    Diagnostic::general(Reason::InvalidManifest, "the value is not valid base64").at(at).hint(hint)
}
