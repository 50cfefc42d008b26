//! Reads the desired state from files. The only part of `load` that does I/O.
//!
//! The sources are directories with their subdirectories, files, or `-` for standard input. While
//! [`Config::incomplete`] is not empty, Purlin cannot decide which objects are no longer desired.

mod coverage;
mod files;
mod proposal;
mod proposed_files;

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use coverage::{Coverage, GivenSource};
pub use files::{STDIN, SourceFile, SourcePaths};
pub use proposal::{Listed, Proposal};
pub use proposed_files::ProposedFiles;

use sha2::{Digest as _, Sha256};

use super::document::{self, ClusterOrigin, Manifest, Origin};
use super::intern::Interner;
use super::{Config, DataLookup, Instance, decode, yaml};
use model::data::StringData;
use model::{DataRef, Diagnostic, Diagnostics, Namespace, Reason, Source, Value};

/// The content of a source.
#[derive(Clone, Debug, Default)]
pub struct LoadedSource {
    /// The desired state. Problems of a Resource are in its instance; everything that could not be read is in
    /// `incomplete`.
    pub config: Config,
    /// The value of `ns` in expressions: name, labels and annotations of the namespace.
    pub namespace: Value,
    /// Problems that belong to no Resource.
    pub diagnostics: Diagnostics,
    /// A digest of the files' names and content: equal for equal sources.
    pub digest: [u8; 32],
    pub given: Vec<GivenSource>,
    /// The data of ConfigMaps and Secrets.
    pub data: BTreeMap<DataRef, Arc<StringData>>,
}

/// The namespace if no document sets one.
const DEFAULT_NAMESPACE: &str = "default";

/// The content of a file or of standard input.
struct SourceText {
    name: Arc<str>,
    /// As a record stores it. `None` for strings.
    source: Option<Arc<str>>,
    text: String,
}

/// Reads all sources. A source that cannot be read makes the result incomplete.
pub fn read(given: &[PathBuf], paths: &SourcePaths) -> LoadedSource {
    let (files, errors) = paths.files(given);
    let mut missing = BTreeMap::new();
    let mut incomplete = Vec::new();
    for (path, error) in errors {
        let problem = unreadable(&path, &error);
        if error.kind() == std::io::ErrorKind::NotFound {
            missing.insert(path, problem.clone());
        }
        incomplete.push(problem);
    }
    let (texts, unreadable) = read_texts(files, paths);
    incomplete.extend(unreadable);
    let mut loaded = LoadedSource { digest: digest(&texts, &incomplete), ..decode(&texts, incomplete) };
    let config = &loaded.config;
    let resources = config.instances.values().chain(config.families.values().map(|family| &family.shared));
    let sources: BTreeSet<&str> = resources.filter_map(|resource| resource.source_file.as_deref()).collect();
    for path in given {
        let absolute = paths.absolute(path);
        let has_resource = sources.iter().any(|source| paths.covers(&absolute, source));
        loaded.given.push(GivenSource {
            name: path.to_string_lossy().into_owned(),
            missing: missing.get(path).cloned(),
            is_empty: !has_resource && config.incomplete.is_empty(),
            has_files: texts.iter().any(|text| {
                let is_covered = text.source.as_deref().is_some_and(|source| paths.covers(&absolute, source));
                is_covered && !text.text.trim().is_empty()
            }),
            absolute,
        });
    }
    loaded
}

/// The texts of files, and the errors of those that cannot be read.
fn read_texts(files: Vec<SourceFile>, paths: &SourcePaths) -> (Vec<SourceText>, Diagnostics) {
    let mut texts = Vec::with_capacity(files.len());
    let mut errors = Vec::new();
    for SourceFile { path, absolute } in files {
        match read_text(&path) {
            Ok(text) => {
                let source = Some(paths.source(&absolute));
                texts.push(SourceText { name: path.to_string_lossy().into(), source, text });
            }
            Err(error) => errors.push(unreadable(&path, &error)),
        }
    }
    (texts, errors)
}

fn digest(texts: &[SourceText], incomplete: &Diagnostics) -> [u8; 32] {
    let mut hasher = Sha256::new();
    for SourceText { source, text, .. } in texts {
        feed(&mut hasher, source.as_deref().unwrap_or_default());
        feed(&mut hasher, text);
    }
    incomplete.iter().for_each(|problem| feed(&mut hasher, &problem.to_string()));
    hasher.finalize().into()
}

fn feed(hasher: &mut Sha256, text: &str) {
    hasher.update((text.len() as u64).to_le_bytes());
    hasher.update(text);
}

/// Reads named strings instead of files.
pub fn read_strings(texts: &[(&str, &str)]) -> LoadedSource {
    let texts: Vec<SourceText> = texts
        .iter()
        .map(|(name, text)| SourceText { name: (*name).into(), source: None, text: (*text).to_owned() })
        .collect();
    decode(&texts, Vec::new())
}

fn decode(texts: &[SourceText], incomplete: Diagnostics) -> LoadedSource {
    let pieces: Vec<Chunk<'_>> = texts.iter().flat_map(split_chunks).collect();
    let mut manifests = decode_all(&pieces);
    let sources: BTreeMap<&str, &Arc<str>> =
        texts.iter().filter_map(|text| Some((&*text.name, text.source.as_ref()?))).collect();
    for manifest in &mut manifests {
        if let Manifest::Resource(instance, _) = manifest {
            let file = instance.source.as_ref().map(|source| &*source.file);
            instance.source_file = file.and_then(|file| sources.get(file)).map(|source| Arc::clone(source));
        }
    }
    assemble(manifests, incomplete)
}

fn unreadable(path: &Path, error: &std::io::Error) -> Diagnostic {
    Diagnostic::general(Reason::SourceIncomplete, format!("{} cannot be read", path.display()))
        .because(error.to_string())
}

fn read_text(file: &Path) -> std::io::Result<String> {
    let mut text = if file.as_os_str() == STDIN {
        let mut text = String::new();
        std::io::stdin().lock().read_to_string(&mut text)?;
        text
    } else {
        String::from_utf8(std::fs::read(file)?).map_err(|error| {
            let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
            let line = valid.split(|byte| *byte == b'\n').count();
            std::io::Error::new(std::io::ErrorKind::InvalidData, format!("line {line} is not valid UTF-8"))
        })?
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
    if text.starts_with('%') || text.contains("\n%") {
        return vec![Chunk { file: &source.name, first_line: 1, text }];
    }
    let separators = text
        .match_indices("\n---")
        .map(|(line_break, _)| line_break + 1)
        .filter(|at| matches!(text.as_bytes().get(at + 3), None | Some(b'\n' | b'\r' | b' ' | b'\t')));
    let mut chunks = Vec::new();
    let (mut start, mut first_line) = (0, 1);
    for end in separators.chain([text.len()]) {
        let chunk = &text[start..end];
        chunks.push(Chunk { file: &source.name, first_line, text: chunk });
        first_line += chunk.bytes().filter(|byte| *byte == b'\n').count();
        start = end;
    }
    chunks
}

/// Parses and decodes the chunks, on several threads if there are many.
fn decode_all(pieces: &[Chunk<'_>]) -> Vec<Manifest> {
    // For fewer bytes, a thread costs more than it saves.
    const MIN_BYTES_PER_THREAD: usize = 64 * 1024;
    let bytes: usize = pieces.iter().map(|piece| piece.text.len()).sum();
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(1 + bytes / MIN_BYTES_PER_THREAD);
    if threads == 1 {
        return decode_chunks(pieces, None);
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
        let running: Vec<_> = shares.into_iter().map(|share| scope.spawn(|| decode_chunks(share, None))).collect();
        let joined =
            running.into_iter().map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        joined.flatten().collect()
    })
}

fn decode_chunks(pieces: &[Chunk<'_>], cluster: Option<ClusterOrigin<'_>>) -> Vec<Manifest> {
    let mut interner = Interner::default();
    let mut manifests = Vec::with_capacity(pieces.len());
    for piece in pieces {
        // The author of a Plan must not occupy the memory or the time of the controller.
        let read = if cluster.is_some() { yaml::read_strictly } else { yaml::read };
        let (documents, fault) = read(piece.text, piece.first_line, &mut interner);
        for document in &documents {
            let origin = Origin { file: piece.file, cluster };
            document::decode(document, origin, &mut interner, &mut manifests);
        }
        if let Some(fault) = fault {
            manifests.push(Manifest::Unreadable(document::diagnostic(&fault, piece.file, false)));
        }
    }
    manifests
}

/// Combines the manifests in source order.
fn assemble(manifests: Vec<Manifest>, incomplete: Diagnostics) -> LoadedSource {
    let mut loaded = LoadedSource::default();
    loaded.config.unreadable = incomplete.first().map(|problem| problem.to_string().into());
    loaded.config.incomplete = incomplete;
    let mut namespaces = BTreeMap::new();
    let (mut resources, mut configs) = (Vec::new(), Vec::new());
    let mut data: BTreeMap<DataRef, (Arc<StringData>, Source)> = BTreeMap::new();
    // The namespace of the first document that sets one. A Namespace document has only its own name.
    let mut namespace: Option<Namespace> = None;
    for manifest in manifests {
        match manifest {
            Manifest::Resource(mut instance, named) => {
                if let Some(problem) = namespace_mismatch(&mut namespace, named) {
                    instance.problems.push(Diagnostic { address: Some(instance.address.clone()), ..problem });
                }
                let unclear = instance.problems.iter().filter(|problem| decode::holds_destroys(problem));
                loaded.config.incomplete.extend(unclear.cloned());
                resources.push(*instance);
            }
            Manifest::Data { object, texts, namespace: named, source, problems } => {
                loaded.diagnostics.extend(namespace_mismatch(&mut namespace, named));
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
                loaded.diagnostics.extend(namespace_mismatch(&mut namespace, named));
                loaded.diagnostics.extend(config.problems.iter().cloned());
                configs.push(*config);
            }
            Manifest::Ignored(problems) => loaded.diagnostics.extend(problems),
            Manifest::Unreadable(problem) => {
                loaded.config.unreadable.get_or_insert_with(|| problem.to_string().into());
                loaded.config.incomplete.push(problem);
            }
        }
    }
    let lookup = |object: &DataRef| {
        data.get(object).map_or(DataLookup::Missing, |(texts, _)| DataLookup::Present(texts.clone()))
    };
    for mut config in configs {
        if !config.inputs.declared.is_empty() {
            config.inputs = config.inputs.resolve(None, &lookup);
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
            resource.inputs = resource.inputs.resolve(Some(&resource.address), &lookup);
        }
        add_resource(&mut loaded.config, resource);
    }
    loaded.data = data.into_iter().map(|(object, (texts, _))| (object, texts)).collect();
    loaded.config.link();
    set_namespace(&mut loaded, namespace, namespaces);
    loaded
}

/// `named`: the namespace that a document names. `namespaces`: the values of the Namespace documents.
fn set_namespace(loaded: &mut LoadedSource, named: Option<Namespace>, mut namespaces: BTreeMap<Namespace, Value>) {
    if named.is_none() && namespaces.len() > 1 {
        let names: Vec<String> = namespaces.keys().map(|name| format!("`{name}`")).collect();
        let what = format!("the files contain several Namespaces ({}), and no document names one", names.join(", "));
        let hint = "use a separate directory and state file for each namespace";
        loaded.diagnostics.push(Diagnostic::general(Reason::InvalidManifest, what).hint(hint));
    }
    let only = namespaces.keys().next().filter(|_| namespaces.len() == 1).cloned();
    let namespace = named.or(only).unwrap_or_else(|| DEFAULT_NAMESPACE.into());
    loaded.namespace = namespaces.remove(&namespace).unwrap_or_else(|| {
        document::namespace_value(&namespace, Value::map::<Arc<str>>([]), Value::map::<Arc<str>>([]))
    });
    loaded.config.namespace = namespace;
}

fn duplicate_definition(object: &str, first: Option<&Source>, second: Option<Source>) -> Diagnostic {
    let first = first.map(ToString::to_string).unwrap_or_default();
    let problem = Diagnostic::general(Reason::InvalidManifest, format!("{object} is already defined in {first}"));
    problem.from_source(second).hint("names must be unique in a namespace; Purlin uses the first definition")
}

/// Returns the problem of a document whose namespace differs from the earlier documents.
fn namespace_mismatch(first: &mut Option<Namespace>, named: Option<(Namespace, Source)>) -> Option<Diagnostic> {
    let (named, source) = named?;
    let first = first.get_or_insert_with(|| named.clone());
    if *first == named {
        return None;
    }
    let what = format!("the namespace is `{named}`, but `{first}` in earlier documents");
    let problem = Diagnostic::general(Reason::InvalidManifest, what).at(model::Path::of(&["metadata", "namespace"]));
    Some(problem.from_source(Some(source)).hint("use a separate directory and state file for each namespace"))
}

/// Adds a Resource. For a duplicate name it keeps the first Resource and reports both places. The objects in
/// `moved_from` of both are protected from destruction.
fn add_resource(config: &mut Config, resource: Instance) {
    let Some(existing) = config.resource(&resource.address) else { return config.add(Arc::new(resource)) };
    let at = model::Path::of(&["metadata", "name"]);
    let [first, second] = [&**existing, &resource]
        .map(|instance| instance.source_of(Some(&at)).map(|source| source.to_string()).unwrap_or_default());
    let what = format!("the name is used in {first} and in {second}");
    let mut merged = Instance::clone(existing);
    merged.moved_from = merged.moved_from.iter().chain(resource.moved_from.iter()).cloned().collect();
    merged.problems.push(
        Diagnostic::error(&resource.address, Reason::InvalidManifest, what)
            .at(at.clone())
            .from_source(resource.source_of(Some(&at)))
            .hint("names must be unique in a namespace; rename one of them"),
    );
    config.remove(&merged.address.stem);
    config.add(Arc::new(merged));
}

#[cfg(test)]
mod tests;
