//! Reads the desired state from files. The only file of `load` that does I/O.
//!
//! Takes what `-f` names: folders (not their sub-folders, as `kubectl` has it), files, or `-` for standard input.
//! Gives everything that could be read, and says what could not: as long as [`Config::incomplete`] is not empty,
//! nobody can tell what is no longer wanted.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sha2::{Digest as _, Sha256};

use super::intern::Interner;
use super::manifest::{self, Manifest};
use super::{Config, Data, Instance, yaml};
use crate::api;
use crate::model::data::Texts;
use crate::model::{self, Address, DataRef, Diagnostic, Diagnostics, Reason, Source, Value};

/// What a source holds.
#[derive(Clone, Debug, Default)]
pub struct Loaded {
    /// The desired state. Problems that concern a Resource are in its instance; what could not be read at all is in
    /// `incomplete`, also that there is no Resource at all.
    pub config: Config,
    /// `ns` of expressions: name, labels and annotations of the namespace.
    pub namespace: Value,
    /// Warnings that concern no Resource.
    pub diagnostics: Diagnostics,
    /// Of all texts that were read, with the names of their files: equal for an equal source.
    pub digest: [u8; 32],
    /// What ConfigMaps and Secrets hold.
    pub data: BTreeMap<DataRef, Arc<Texts>>,
}

/// The namespace when no document names one.
const DEFAULT_NAMESPACE: &str = "default";

/// A file, or standard input, as text.
struct Text {
    name: Arc<str>,
    text: String,
}

/// Reads every source. It does not fail: a source that cannot be read makes the result incomplete.
pub fn read(paths: &[PathBuf]) -> Loaded {
    let mut incomplete = Vec::new();
    let mut texts = Vec::new();
    for path in paths {
        match files(path) {
            Ok(files) => {
                for file in files {
                    match text(&file) {
                        Ok(text) => texts.push(Text { name: file.to_string_lossy().into(), text }),
                        Err(error) => incomplete.push(unreadable(&file, &error)),
                    }
                }
            }
            Err(error) => incomplete.push(unreadable(path, &error)),
        }
    }
    let pieces: Vec<Piece<'_>> = texts.iter().flat_map(pieces).collect();
    Loaded { digest: digest(&texts, &incomplete), ..assemble(decode_all(&pieces), incomplete) }
}

/// The folder does not count: the same files may be named in another way.
fn digest(texts: &[Text], incomplete: &Diagnostics) -> [u8; 32] {
    let mut hasher = Sha256::new();
    let mut part = |text: &str| {
        hasher.update((text.len() as u64).to_le_bytes());
        hasher.update(text);
    };
    for Text { name, text } in texts {
        part(Path::new(&**name).file_name().and_then(|name| name.to_str()).unwrap_or_default());
        part(text);
    }
    incomplete.iter().for_each(|problem| part(&problem.to_string()));
    hasher.finalize().into()
}

/// Reads texts that are no files, by name: for tests and for callers that have read them themselves.
pub fn read_texts(texts: &[(&str, &str)]) -> Loaded {
    let texts: Vec<Text> =
        texts.iter().map(|(name, text)| Text { name: (*name).into(), text: (*text).to_owned() }).collect();
    let pieces: Vec<Piece<'_>> = texts.iter().flat_map(pieces).collect();
    assemble(decode_all(&pieces), Vec::new())
}

fn unreadable(path: &Path, error: &std::io::Error) -> Diagnostic {
    Diagnostic::general(Reason::SourceIncomplete, format!("{} cannot be read", path.display()))
        .because(error.to_string())
}

/// The manifests that a path stands for, sorted. Hidden files are skipped.
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

fn text(file: &Path) -> std::io::Result<String> {
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

/// A stretch of a text that can be parsed by itself.
struct Piece<'a> {
    file: &'a Arc<str>,
    first_line: usize,
    text: &'a str,
}

/// Splits a text at its `---` lines, which end a document wherever they stand. So a document that cannot be read
/// spoils no other one, and documents can be parsed in parallel. A text with directives stays in one piece, since
/// these stand before the line.
fn pieces(source: &Text) -> Vec<Piece<'_>> {
    let text = source.text.as_str();
    let mut pieces = Vec::new();
    if text.starts_with('%') || text.contains("\n%") {
        return vec![Piece { file: &source.name, first_line: 1, text }];
    }
    let (mut start, mut first_line) = (0, 1);
    let mut push = |from: usize, to: usize| {
        let piece = &text[from..to];
        pieces.push(Piece { file: &source.name, first_line, text: piece });
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

/// Parses and decodes, on as many threads as there are processors when there is much to do.
fn decode_all(pieces: &[Piece<'_>]) -> Vec<Manifest> {
    // Below this many bytes a thread costs more than it saves.
    const WORTH_A_THREAD: usize = 64 * 1024;
    let bytes: usize = pieces.iter().map(|piece| piece.text.len()).sum();
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(1 + bytes / WORTH_A_THREAD);
    if threads == 1 {
        return decode_some(pieces);
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
        let running: Vec<_> = shares.into_iter().map(|share| scope.spawn(|| decode_some(share))).collect();
        let joined =
            running.into_iter().map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        joined.flatten().collect()
    })
}

fn decode_some(pieces: &[Piece<'_>]) -> Vec<Manifest> {
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

/// Puts the manifests together in the order in which they were read.
fn assemble(manifests: Vec<Manifest>, incomplete: Diagnostics) -> Loaded {
    let mut loaded = Loaded::default();
    loaded.config.incomplete = incomplete;
    let mut namespaces = BTreeMap::new();
    let (mut resources, mut configs) = (Vec::new(), Vec::new());
    let mut data: BTreeMap<DataRef, (Arc<Texts>, Source)> = BTreeMap::new();
    // The namespace that the first document names; a Namespace document names its own.
    let mut namespace: Option<Arc<str>> = None;
    for manifest in manifests {
        match manifest {
            Manifest::Resource(mut instance, named) => {
                if let Some(problem) = other_namespace(&mut namespace, named, instance.source.clone()) {
                    instance.problems.push(Diagnostic { address: Some(instance.address.clone()), ..problem });
                }
                // An object that was to be moved here, or is meant by a name that is none, must not be taken for one
                // that nobody wants.
                let which = [["metadata", "annotations", api::MOVED_FROM].as_slice(), &["metadata", "name"]];
                let which = which.map(model::Path::of);
                let is_unclear = |problem: &&Diagnostic| problem.path.as_ref().is_some_and(|at| which.contains(at));
                let unclear = instance.problems.iter().filter(is_unclear);
                loaded.config.incomplete.extend(unclear.cloned());
                resources.push(*instance);
            }
            Manifest::Data { object, texts, namespace: named, source, told } => {
                loaded.diagnostics.extend(other_namespace(&mut namespace, named, Some(source.clone())));
                loaded.diagnostics.extend(told);
                match data.entry(object) {
                    Entry::Vacant(entry) => drop(entry.insert((texts, source))),
                    Entry::Occupied(entry) => {
                        let what = entry.key().to_string();
                        loaded.diagnostics.push(given_twice(&what, Some(&entry.get().1), Some(source)));
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
                        loaded.diagnostics.push(given_twice(&what, entry.get().source.as_ref(), spec.source));
                    }
                }
            }
            Manifest::ProviderConfig(config, named) => {
                loaded.diagnostics.extend(other_namespace(&mut namespace, named, config.source.clone()));
                loaded.diagnostics.extend(config.problems.iter().cloned());
                configs.push(*config);
            }
            Manifest::Ignored(problems) => loaded.diagnostics.extend(problems),
            Manifest::Unreadable(problem) => loaded.config.incomplete.push(problem),
        }
    }
    let find = |object: &DataRef| data.get(object).map_or(Data::Missing, |(texts, _)| Data::Present(texts.clone()));
    for mut config in configs {
        if !config.inputs.declared.is_empty() {
            config.inputs = config.inputs.resolve(&Address::single(config.name.clone()), &find);
        }
        match loaded.config.provider_configs.entry(config.name.clone()) {
            Entry::Vacant(entry) => drop(entry.insert(Arc::new(config))),
            Entry::Occupied(entry) => {
                let what = format!("the ProviderConfig `{}`", entry.key());
                loaded.diagnostics.push(given_twice(&what, entry.get().source.as_ref(), config.source));
            }
        }
    }
    for mut resource in resources {
        if !resource.inputs.declared.is_empty() {
            resource.inputs = resource.inputs.resolve(&resource.address, &find);
        }
        insert(&mut loaded.config, resource);
    }
    loaded.data = data.into_iter().map(|(object, (texts, _))| (object, texts)).collect();
    loaded.config.link();
    // Where something could not be read, that is the reason; one error is enough.
    if loaded.config.is_empty() && loaded.config.incomplete.is_empty() {
        let problem = Diagnostic::general(Reason::SourceIncomplete, "there is no Resource in the source");
        loaded.config.incomplete.push(problem.hint("`purlin destroy` destroys everything on purpose"));
    }
    let only = || (namespaces.len() == 1).then(|| namespaces.keys().next().cloned()).flatten();
    let namespace = namespace.or_else(only).unwrap_or_else(|| DEFAULT_NAMESPACE.into());
    let empty = || manifest::namespace_value(&namespace, Value::map::<Arc<str>>([]), Value::map::<Arc<str>>([]));
    loaded.namespace = namespaces.remove(&namespace).unwrap_or_else(empty);
    loaded.config.namespace = namespace;
    loaded
}

fn given_twice(object: &str, first: Option<&Source>, second: Option<Source>) -> Diagnostic {
    let first = first.map(ToString::to_string).unwrap_or_default();
    let problem = Diagnostic::general(Reason::InvalidManifest, format!("{object} stands in {first} already"));
    problem.from_source(second).hint("names are unique in a namespace; the first one counts")
}

/// The problem of a document that names another namespace than those before it.
fn other_namespace(
    first: &mut Option<Arc<str>>,
    named: Option<Arc<str>>,
    source: Option<Source>,
) -> Option<Diagnostic> {
    let named = named?;
    let first = first.get_or_insert_with(|| named.clone());
    if *first == named {
        return None;
    }
    let what = format!("the namespace is `{named}`, and `{first}` in documents before it");
    let problem = Diagnostic::general(Reason::InvalidManifest, what).at(model::Path::of(&["metadata", "namespace"]));
    Some(problem.from_source(source).hint("keep one folder and one state file for each namespace"))
}

/// Adds a Resource. Of two with one name the first stays, with an error that names both places. What either of them says
/// that it was is not destroyed meanwhile.
fn insert(config: &mut Config, resource: Instance) {
    let Some(kept) = config.resource(&resource.address) else { return config.add(Arc::new(resource)) };
    let place = |source: &Option<Source>| source.as_ref().map(ToString::to_string).unwrap_or_default();
    let what = format!("the name stands in {} and in {}", place(&kept.source), place(&resource.source));
    let mut kept = Instance::clone(kept);
    kept.moved_from = kept.moved_from.iter().chain(resource.moved_from.iter()).cloned().collect();
    kept.problems.push(
        Diagnostic::error(&resource.address, Reason::InvalidManifest, what)
            .at(model::Path::of(&["metadata", "name"]))
            .from_source(resource.source)
            .hint("names are unique in a namespace; rename one of them"),
    );
    config.remove(&kept.address.name);
    config.add(Arc::new(kept));
}

#[cfg(test)]
mod tests;
