//! The lines of the fields of a manifest, for errors that are found after loading.

use std::sync::Arc;

use super::tree::{Node, Tree};
use model::{Path, Segment, Source};

/// The lines of a document: 8 bytes for each field that begins on another line than its parent.
#[derive(Clone, Debug, Default)]
pub struct Lines {
    /// The hash of the path and the line of each field. Two paths of one document with equal hashes would only cause
    /// a wrong line in an error.
    fields: Arc<[(u32, u32)]>,
}

impl Lines {
    pub(crate) fn of(tree: &Tree) -> Self {
        let mut fields = Vec::with_capacity(32);
        collect(tree, tree.line, ROOT, &mut fields);
        Self { fields: fields.into() }
    }

    /// Returns the position of a field of the document at `document`.
    pub(crate) fn source_of(&self, field: &Path, document: Option<&Source>) -> Option<Source> {
        document.map(|source| Source { file: source.file.clone(), line: self.line_of(field).unwrap_or(source.line) })
    }

    /// Returns the line of the deepest known field on `path`. `None`: no field on it is known.
    fn line_of(&self, path: &Path) -> Option<usize> {
        let mut hash = ROOT;
        let mut line = None;
        for segment in &path.0 {
            hash = match segment {
                Segment::Name(name) => below_key(hash, name),
                Segment::Index(index) => below_index(hash, *index),
            };
            let known = self.fields.iter().find(|(field, _)| *field == short(hash));
            line = known.map(|(_, line)| *line as usize).or(line);
        }
        line
    }
}

/// The hash of the empty path.
const ROOT: u64 = 0;

/// A multiplicative hash of eight bytes at a time, because it runs for every field of every manifest.
fn add(hash: u64, word: u64) -> u64 {
    (hash.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95)
}

fn below_key(hash: u64, key: &str) -> u64 {
    key.as_bytes().chunks(8).fold(add(hash, key.len() as u64), |hash, chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        add(hash, u64::from_le_bytes(word))
    })
}

fn below_index(hash: u64, index: usize) -> u64 {
    // No key is this long.
    add(add(hash, u64::MAX), index as u64)
}

/// The part of a hash that is kept.
fn short(hash: u64) -> u32 {
    (hash >> 32) as u32
}

fn collect(tree: &Tree, parent: usize, hash: u64, fields: &mut Vec<(u32, u32)>) {
    match &tree.node {
        Node::Map(entries) => {
            for entry in entries {
                let hash = below_key(hash, &entry.key);
                add_line(hash, entry.line, parent, fields);
                collect(&entry.value, entry.line, hash, fields);
            }
        }
        Node::List(items) => {
            for (index, item) in items.iter().enumerate() {
                let hash = below_index(hash, index);
                add_line(hash, item.line, parent, fields);
                collect(item, item.line, hash, fields);
            }
        }
        _ => {}
    }
}

fn add_line(hash: u64, line: usize, parent: usize, fields: &mut Vec<(u32, u32)>) {
    if line != parent {
        fields.push((short(hash), line as u32));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::intern::Interner;
    use crate::load::yaml;

    #[test]
    fn the_lines_are_those_of_the_tree() {
        let text = "metadata: {name: a}\nspec:\n  config:\n    list:\n    - 1\n    - x: 2\n      y: {z: [3]}\n";
        let tree = &yaml::read(text, 5, &mut Interner::default()).0[0].tree;
        let lines = Lines::of(tree);
        for path in ["metadata.name", "spec.config", "spec.config.list[1].y.z[0]", "spec.config.list[7]", "spec.type"] {
            let path: Path = path.parse().unwrap();
            assert_eq!(lines.line_of(&path).unwrap_or(tree.line), tree.line_of(&path), "{path}");
        }
        assert_eq!(lines.line_of(&"spec.config.list[1].y.z[0]".parse().unwrap()), Some(11));
    }
}
