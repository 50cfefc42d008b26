//! `Provider` and `ProviderConfig` documents.

use std::path::Path as FilePath;
use std::sync::Arc;

use super::{METADATA, Manifest, Reading, named};
use crate::load::decode::{DraftProvider, DraftProviderConfig};
use crate::load::intern::Interner;
use crate::load::tree::{Entry, Node, Tree};
use crate::model::{Diagnostic, Diagnostics, Package, Path};

impl Reading<'_> {
    /// A `Provider`. Its problems are reported for the objects that need it.
    pub(super) fn provider(mut self, tree: &Tree, interner: &mut Interner) -> Manifest {
        let mut draft = DraftProvider { name: named(tree, "name").unwrap_or_default(), ..DraftProvider::default() };
        for entry in self.document(tree) {
            let at = Path::of(&["spec", &entry.key]);
            let value = &entry.value;
            match entry.key.as_ref() {
                "source" => draft.source = self.text_at(value, at).unwrap_or_default(),
                "version" => draft.version = self.text_at(value, at).unwrap_or_default(),
                "package" => draft.package = self.package(value, &at),
                "checksums" => draft.checksums = self.texts(value, &["spec", "checksums"], interner),
                "environment" => draft.environment = self.environment(value, &at).into_iter().collect(),
                "files" => {
                    for entry in self.entries_at(value, &at) {
                        match entry.key.as_ref() {
                            "read" => draft.files.read = self.texts(&entry.value, &["spec", "files", "read"], interner),
                            "write" => {
                                draft.files.write = self.texts(&entry.value, &["spec", "files", "write"], interner);
                            }
                            _ => self.unknown_at(entry, &at, &["read", "write"]),
                        }
                    }
                }
                "limits" => {
                    for entry in self.entries_at(value, &at) {
                        let place = at.name(entry.key.clone());
                        match (entry.key.as_ref(), &entry.value.node) {
                            ("calls", Node::Number(number)) if number.to_string().parse::<u32>().is_ok() => {
                                draft.max_calls = number.to_string().parse().ok();
                            }
                            ("calls", _) => self.wrong(&entry.value, place, "a whole number"),
                            ("memory", Node::Number(number)) => draft.max_memory = Some(number.to_string().into()),
                            ("memory", _) => draft.max_memory = self.text_at(&entry.value, place),
                            _ => self.unknown_at(entry, &at, &["calls", "memory"]),
                        }
                    }
                }
                _ => self.unknown(
                    entry,
                    &["spec"],
                    &["source", "version", "package", "checksums", "environment", "files", "limits"],
                ),
            }
        }
        draft.problems = std::mem::take(&mut self.problems);
        let mut spec = draft.finish();
        self.locate(tree, &mut spec.problems);
        spec.source = Some(self.source(tree.line));
        Manifest::Provider(Box::new(spec))
    }

    /// A `ProviderConfig`.
    pub(super) fn provider_config(mut self, tree: &Tree, interner: &mut Interner) -> Manifest {
        let name = named(tree, "name").unwrap_or_default();
        let mut draft = DraftProviderConfig { name, ..DraftProviderConfig::default() };
        let mut config = None;
        for entry in self.document(tree) {
            let at = Path::of(&["spec", &entry.key]);
            let value = &entry.value;
            match entry.key.as_ref() {
                "provider" => {
                    for entry in self.entries_at(value, &at) {
                        match entry.key.as_ref() {
                            "name" => draft.provider = self.text_at(&entry.value, at.name("name")),
                            _ => self.unknown_at(entry, &at, &["name"]),
                        }
                    }
                }
                "config" => {
                    self.entries_at(value, &at);
                    config = Some(value);
                }
                "inputs" => draft.inputs = self.inputs(value),
                // Locally everything is done as the user who runs it.
                "serviceAccountName" => drop(self.text_at(value, at)),
                _ => self.unknown(entry, &["spec"], &["provider", "config", "inputs", "serviceAccountName"]),
            }
        }
        draft.problems = std::mem::take(&mut self.problems);
        let mut config = draft.finish(config, interner);
        self.locate(tree, &mut config.problems);
        config.source = Some(self.source(tree.line));
        Manifest::ProviderConfig(Box::new(config), named(tree, "namespace"))
    }

    /// The entries of `spec`, with the rest of the document checked.
    fn document<'t>(&mut self, tree: &'t Tree) -> &'t [Entry] {
        for entry in self.entries(tree, &[]) {
            match entry.key.as_ref() {
                "apiVersion" | "kind" | "spec" | "status" => {}
                "metadata" => {
                    for entry in self.entries(&entry.value, &["metadata"]) {
                        if !METADATA.contains(&entry.key.as_ref()) {
                            self.unknown(entry, &["metadata"], METADATA);
                        }
                    }
                }
                _ => self.unknown(entry, &[], &["apiVersion", "kind", "metadata", "spec", "status"]),
            }
        }
        tree.get("spec").map_or(&[], |spec| self.entries(spec, &["spec"]))
    }

    fn package(&mut self, tree: &Tree, at: &Path) -> Package {
        let mut package = Package::Registry;
        let entries = self.entries_at(tree, at);
        for entry in entries {
            let place = at.name(entry.key.clone());
            let Some(text) = self.text_at(&entry.value, place) else { continue };
            match entry.key.as_ref() {
                "path" => package = Package::Path(self.beside(&text)),
                "filesystemMirror" => package = Package::FilesystemMirror(self.beside(&text)),
                "networkMirror" => package = Package::NetworkMirror(text),
                "ociMirror" => package = Package::OciMirror(text),
                _ => self.unknown_at(entry, at, &["path", "filesystemMirror", "networkMirror", "ociMirror"]),
            }
        }
        if entries.len() > 1 {
            let hint = "keep one of them".to_owned();
            self.problem(tree.line, at.clone(), "the package has more than one location", Some(hint));
        }
        package
    }

    /// A path beside the file that names it.
    fn beside(&self, path: &str) -> Arc<str> {
        let folder = FilePath::new(&**self.file).parent().unwrap_or(FilePath::new(""));
        folder.join(path).to_string_lossy().into()
    }

    fn environment(&mut self, tree: &Tree, at: &Path) -> Vec<(Arc<str>, Option<Arc<str>>)> {
        let mut variables = Vec::new();
        for (index, item) in self.items(tree, at).iter().enumerate() {
            let at = at.index(index);
            let (mut name, mut value) = (None, None);
            for entry in self.entries_at(item, &at) {
                match entry.key.as_ref() {
                    "name" => name = self.text_at(&entry.value, at.name("name")),
                    "value" => value = self.text_at(&entry.value, at.name("value")),
                    _ => self.unknown_at(entry, &at, &["name", "value"]),
                }
            }
            match name.filter(|name| !name.is_empty() && !name.contains('=')) {
                Some(name) => variables.push((name, value)),
                None => self.problem(
                    item.line,
                    at.name("name"),
                    "the name of an environment variable is missing or invalid",
                    None,
                ),
            }
        }
        variables
    }

    /// Says of problems where in the file they are.
    fn locate(&self, tree: &Tree, problems: &mut Diagnostics) {
        for problem in problems.iter_mut() {
            let line = |problem: &Diagnostic| problem.path.as_ref().map_or(tree.line, |path| tree.line_of(path));
            problem.source = problem.source.take().or_else(|| Some(self.source(line(problem))));
        }
    }
}
