//! Reads the desired state from files. The only file of `load` that does I/O.
//!
//! The sources are directories (without subdirectories, as in `kubectl`), files, or `-` for standard input. While
//! [`Config::incomplete`] is not empty, Purlin cannot decide which objects are no longer desired.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sha2::{Digest as _, Sha256};

use super::intern::Interner;
use super::manifest::{self, Manifest};
use super::{Config, DataLookup, Instance, yaml};
use crate::api;
use crate::model::data::StringData;
use crate::model::{self, Address, DataRef, Diagnostic, Diagnostics, Reason, Source, Value};

/// The content of a source.
#[derive(Clone, Debug, Default)]
pub struct LoadedSource {
    /// The desired state. Problems of a Resource are in its instance; everything that could not be read, including an
    /// empty source, is in `incomplete`.
    pub config: Config,
    /// The value of `ns` in expressions: name, labels and annotations of the namespace.
    pub namespace: Value,
    /// Problems that belong to no Resource.
    pub diagnostics: Diagnostics,
    /// A digest of the files' names and content: equal for equal sources.
    pub digest: [u8; 32],
    /// The data of ConfigMaps and Secrets.
    pub data: BTreeMap<DataRef, Arc<StringData>>,
}

/// The namespace if no document sets one.
const DEFAULT_NAMESPACE: &str = "default";

/// The content of a file or of standard input.
struct SourceText {
    name: Arc<str>,
    text: String,
}

/// Reads all sources. A source that cannot be read makes the result incomplete.
pub fn read(paths: &[PathBuf]) -> LoadedSource {
    let mut incomplete = Vec::new();
    let mut texts = Vec::new();
    for path in paths {
        match files(path) {
            Ok(files) => {
                for file in files {
                    match read_text(&file) {
                        Ok(text) => texts.push(SourceText { name: file.to_string_lossy().into(), text }),
                        Err(error) => incomplete.push(unreadable(&file, &error)),
                    }
                }
            }
            Err(error) => incomplete.push(unreadable(path, &error)),
        }
    }
    let pieces: Vec<Chunk<'_>> = texts.iter().flat_map(split_chunks).collect();
    LoadedSource { digest: digest(&texts, &incomplete), ..assemble(decode_all(&pieces), incomplete) }
}

/// The digest ignores the directory, because different paths can name the same files.
fn digest(texts: &[SourceText], incomplete: &Diagnostics) -> [u8; 32] {
    let mut hasher = Sha256::new();
    let mut part = |text: &str| {
        hasher.update((text.len() as u64).to_le_bytes());
        hasher.update(text);
    };
    for SourceText { name, text } in texts {
        part(Path::new(&**name).file_name().and_then(|name| name.to_str()).unwrap_or_default());
        part(text);
    }
    incomplete.iter().for_each(|problem| part(&problem.to_string()));
    hasher.finalize().into()
}

/// Reads named strings instead of files.
pub fn read_strings(texts: &[(&str, &str)]) -> LoadedSource {
    let texts: Vec<SourceText> =
        texts.iter().map(|(name, text)| SourceText { name: (*name).into(), text: (*text).to_owned() }).collect();
    let pieces: Vec<Chunk<'_>> = texts.iter().flat_map(split_chunks).collect();
    assemble(decode_all(&pieces), Vec::new())
}

fn unreadable(path: &Path, error: &std::io::Error) -> Diagnostic {
    Diagnostic::general(Reason::SourceIncomplete, format!("{} cannot be read", path.display()))
        .because(error.to_string())
}

/// Returns the manifest files of a path, sorted and without hidden files.
fn files(path: &Path) -> std::io::Result<Vec<PathBuf>> {
    if path.as_os_str() == "-" || !std::fs::metadata(path)?.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut files = Vec::new();
    for entry in std::fs::read_dir(path)? {
        let file = entry?.path();
        let hidden = file.file_name().is_none_or(|name| name.to_string_lossy().starts_with('.'));
        let manifest =
            file.extension().is_some_and(|extension| ["yaml", "yml", "json"].iter().any(|known| extension == *known));
        if manifest && !hidden && !std::fs::metadata(&file)?.is_dir() {
            files.push(file);
        }
    }
    files.sort();
    Ok(files)
}

fn read_text(file: &Path) -> std::io::Result<String> {
    let mut text = if file.as_os_str() == "-" {
        let mut text = String::new();
        std::io::stdin().lock().read_to_string(&mut text)?;
        text
    } else {
        std::fs::read_to_string(file)?
    };
    if text.starts_with('\u{feff}') {
        text.drain(..'\u{feff}'.len_utf8());
    }
    Ok(text)
}

/// A part of a file that can be parsed on its own.
struct Chunk<'a> {
    file: &'a Arc<str>,
    first_line: usize,
    text: &'a str,
}

/// Splits a file at its `---` lines. So a document with a syntax error does not affect other documents, and documents
/// can be parsed in parallel. A file with directives is not split, because they precede the `---` line.
fn split_chunks(source: &SourceText) -> Vec<Chunk<'_>> {
    let text = source.text.as_str();
    let mut pieces = Vec::new();
    if text.starts_with('%') || text.contains("\n%") {
        return vec![Chunk { file: &source.name, first_line: 1, text }];
    }
    let (mut start, mut first_line) = (0, 1);
    let mut push = |from: usize, to: usize| {
        let piece = &text[from..to];
        pieces.push(Chunk { file: &source.name, first_line, text: piece });
        first_line += piece.bytes().filter(|byte| *byte == b'\n').count();
    };
    for (found, _) in text.match_indices("\n---") {
        let at = found + 1;
        if matches!(text.as_bytes().get(at + 3), None | Some(b'\n' | b'\r' | b' ' | b'\t')) {
            push(start, at);
            start = at;
        }
    }
    push(start, text.len());
    pieces
}

/// Parses and decodes the chunks, on several threads if there are many.
fn decode_all(pieces: &[Chunk<'_>]) -> Vec<Manifest> {
    // For fewer bytes, a thread costs more than it saves.
    const MIN_BYTES_PER_THREAD: usize = 64 * 1024;
    let bytes: usize = pieces.iter().map(|piece| piece.text.len()).sum();
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(1 + bytes / MIN_BYTES_PER_THREAD);
    if threads == 1 {
        return decode_chunks(pieces);
    }
    let mut shares = Vec::with_capacity(threads);
    let (mut start, mut size) = (0, 0);
    for (index, piece) in pieces.iter().enumerate() {
        size += piece.text.len();
        if size >= bytes.div_ceil(threads) || index + 1 == pieces.len() {
            shares.push(&pieces[start..=index]);
            (start, size) = (index + 1, 0);
        }
    }
    std::thread::scope(|scope| {
        let running: Vec<_> = shares.into_iter().map(|share| scope.spawn(|| decode_chunks(share))).collect();
        let joined =
            running.into_iter().map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        joined.flatten().collect()
    })
}

fn decode_chunks(pieces: &[Chunk<'_>]) -> Vec<Manifest> {
    let mut interner = Interner::default();
    let mut found = Vec::with_capacity(pieces.len());
    for piece in pieces {
        let (documents, fault) = yaml::read(piece.text, piece.first_line, &mut interner);
        for document in &documents {
            manifest::decode(document, piece.file, &mut interner, &mut found);
        }
        if let Some(fault) = fault {
            found.push(Manifest::Unreadable(manifest::diagnostic(&fault, piece.file, false)));
        }
    }
    found
}

/// Combines the manifests in source order.
fn assemble(manifests: Vec<Manifest>, incomplete: Diagnostics) -> LoadedSource {
    let mut loaded = LoadedSource::default();
    loaded.config.incomplete = incomplete;
    let mut namespaces = BTreeMap::new();
    let (mut resources, mut configs) = (Vec::new(), Vec::new());
    let mut data: BTreeMap<DataRef, (Arc<StringData>, Source)> = BTreeMap::new();
    // The namespace of the first document that sets one. A Namespace document has only its own name.
    let mut namespace: Option<Arc<str>> = None;
    for manifest in manifests {
        match manifest {
            Manifest::Resource(mut instance, named) => {
                if let Some(problem) = namespace_mismatch(&mut namespace, named, instance.source.clone()) {
                    instance.problems.push(Diagnostic { address: Some(instance.address.clone()), ..problem });
                }
                // The object of an invalid `moved-from` annotation or an invalid name must not be treated as an orphan.
                let which = [["metadata", "annotations", api::MOVED_FROM].as_slice(), &["metadata", "name"]];
                let which = which.map(model::Path::of);
                let is_unclear = |problem: &&Diagnostic| problem.path.as_ref().is_some_and(|at| which.contains(at));
                let unclear = instance.problems.iter().filter(is_unclear);
                loaded.config.incomplete.extend(unclear.cloned());
                resources.push(*instance);
            }
            Manifest::Data { object, texts, namespace: named, source, problems } => {
                loaded.diagnostics.extend(namespace_mismatch(&mut namespace, named, Some(source.clone())));
                loaded.diagnostics.extend(problems);
                match data.entry(object) {
                    Entry::Vacant(entry) => drop(entry.insert((texts, source))),
                    Entry::Occupied(entry) => {
                        let what = entry.key().to_string();
                        loaded.diagnostics.push(duplicate_definition(&what, Some(&entry.get().1), Some(source)));
                    }
                }
            }
            Manifest::Namespace(name, value) => {
                namespaces.insert(name, value);
            }
            Manifest::Provider(spec) => {
                loaded.diagnostics.extend(spec.problems.iter().cloned());
                let name = spec.provider.name.clone();
                match loaded.config.providers.entry(name) {
                    Entry::Vacant(entry) => drop(entry.insert(Arc::new(*spec))),
                    Entry::Occupied(entry) => {
                        let what = format!("the Provider `{}`", entry.key());
                        loaded.diagnostics.push(duplicate_definition(&what, entry.get().source.as_ref(), spec.source));
                    }
                }
            }
            Manifest::ProviderConfig(config, named) => {
                loaded.diagnostics.extend(namespace_mismatch(&mut namespace, named, config.source.clone()));
                loaded.diagnostics.extend(config.problems.iter().cloned());
                configs.push(*config);
            }
            Manifest::Ignored(problems) => loaded.diagnostics.extend(problems),
            Manifest::Unreadable(problem) => loaded.config.incomplete.push(problem),
        }
    }
    let find = |object: &DataRef| {
        data.get(object).map_or(DataLookup::Missing, |(texts, _)| DataLookup::Present(texts.clone()))
    };
    for mut config in configs {
        if !config.inputs.declared.is_empty() {
            config.inputs = config.inputs.resolve(&Address::single(config.name.clone()), &find);
        }
        match loaded.config.provider_configs.entry(config.name.clone()) {
            Entry::Vacant(entry) => drop(entry.insert(Arc::new(config))),
            Entry::Occupied(entry) => {
                let what = format!("the ProviderConfig `{}`", entry.key());
                loaded.diagnostics.push(duplicate_definition(&what, entry.get().source.as_ref(), config.source));
            }
        }
    }
    for mut resource in resources {
        if !resource.inputs.declared.is_empty() {
            resource.inputs = resource.inputs.resolve(&resource.address, &find);
        }
        add_resource(&mut loaded.config, resource);
    }
    loaded.data = data.into_iter().map(|(object, (texts, _))| (object, texts)).collect();
    loaded.config.link();
    // A read error explains the empty config; one error is enough.
    if loaded.config.is_empty() && loaded.config.incomplete.is_empty() {
        let problem = Diagnostic::general(Reason::SourceIncomplete, "the source contains no Resource");
        loaded.config.incomplete.push(problem.hint("use `purlin destroy` to destroy everything"));
    }
    let only = || (namespaces.len() == 1).then(|| namespaces.keys().next().cloned()).flatten();
    let namespace = namespace.or_else(only).unwrap_or_else(|| DEFAULT_NAMESPACE.into());
    let empty = || manifest::namespace_value(&namespace, Value::map::<Arc<str>>([]), Value::map::<Arc<str>>([]));
    loaded.namespace = namespaces.remove(&namespace).unwrap_or_else(empty);
    loaded.config.namespace = namespace;
    loaded
}

fn duplicate_definition(object: &str, first: Option<&Source>, second: Option<Source>) -> Diagnostic {
    let first = first.map(ToString::to_string).unwrap_or_default();
    let problem = Diagnostic::general(Reason::InvalidManifest, format!("{object} is already defined in {first}"));
    problem.from_source(second).hint("names must be unique in a namespace; Purlin uses the first definition")
}

/// Returns the problem of a document whose namespace differs from the earlier documents.
fn namespace_mismatch(
    first: &mut Option<Arc<str>>,
    named: Option<Arc<str>>,
    source: Option<Source>,
) -> Option<Diagnostic> {
    let named = named?;
    let first = first.get_or_insert_with(|| named.clone());
    if *first == named {
        return None;
    }
    let what = format!("the namespace is `{named}`, but `{first}` in earlier documents");
    let problem = Diagnostic::general(Reason::InvalidManifest, what).at(model::Path::of(&["metadata", "namespace"]));
    Some(problem.from_source(source).hint("use a separate directory and state file for each namespace"))
}

/// Adds a Resource. For a duplicate name it keeps the first Resource and reports both places. The objects in
/// `moved_from` of both are protected from destruction.
fn add_resource(config: &mut Config, resource: Instance) {
    let Some(existing) = config.resource(&resource.address) else { return config.add(Arc::new(resource)) };
    let place = |source: &Option<Source>| source.as_ref().map(ToString::to_string).unwrap_or_default();
    let what = format!("the name is used in {} and in {}", place(&existing.source), place(&resource.source));
    let mut merged = Instance::clone(existing);
    merged.moved_from = merged.moved_from.iter().chain(resource.moved_from.iter()).cloned().collect();
    merged.problems.push(
        Diagnostic::error(&resource.address, Reason::InvalidManifest, what)
            .at(model::Path::of(&["metadata", "name"]))
            .from_source(resource.source)
            .hint("names must be unique in a namespace; rename one of them"),
    );
    config.remove(&merged.address.name);
    config.add(Arc::new(merged));
}

#[cfg(test)]
mod tests;
