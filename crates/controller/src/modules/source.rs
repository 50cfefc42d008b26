//! The files of a module, from where its Module says that they are.

use std::fmt::Write as _;
use std::path::{Component, Path, PathBuf};

use configuration::ModuleSource;
use model::{Diagnostic, Diagnostics, Reason};
use modules::{Installer, ModuleError, Options, Progress};
use sha2::{Digest as _, Sha256};
use version::{Version, VersionConstraint};

/// All files of an inline module together are not larger than that.
const MAX_INLINE: usize = 256 << 10;

/// The name under which a package is unpacked.
const ROOT: &str = "root";

/// A module whose files are there.
pub struct Fetched {
    /// Where everything of it is.
    pub package: PathBuf,
    /// The directory of the root module.
    pub root: PathBuf,
    /// The version or the reference, if the source has one.
    pub name: Option<String>,
}

/// Follows nothing.
pub struct Silent;

impl Progress for Silent {
    fn fetching(&self, _: &str, _: &str, _: Option<&Version>) {}

    fn installed(&self, _: &str, _: &str) {}
}

/// Fetches a module into a directory, which is emptied before.
///
/// # Errors
/// Why its files are not there.
pub async fn fetch(source: &api::ModuleSource, into: &Path) -> Result<Fetched, Diagnostics> {
    let package = into.to_owned();
    let renewed = match std::fs::remove_dir_all(into) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
        _ => std::fs::create_dir_all(into),
    };
    renewed.map_err(|error| failed(format!("the directory {} cannot be written: {error}", into.display())))?;
    let Some(remote) = remote(source)? else {
        let root = into.join(ROOT);
        write_files(source, &root)?;
        return Ok(Fetched { package, root, name: None });
    };
    let options = Options { root: into.to_owned(), within: Some(into.to_owned()), ..Options::default() };
    let Remote { source, version, name } = remote;
    let installed = Installer::new(options).fetch(ROOT, source, version, &Silent).await.map_err(of_module)?;
    Ok(Fetched { package, root: into.join(&installed.directory), name: installed.version.or(name) })
}

/// A package of another machine.
struct Remote {
    source: ModuleSource,
    version: VersionConstraint,
    /// What is shown as its version.
    name: Option<String>,
}

fn remote(source: &api::ModuleSource) -> Result<Option<Remote>, Diagnostics> {
    let given = [source.registry.is_some(), source.git.is_some(), source.http.is_some(), source.oci.is_some()];
    let count = given.iter().filter(|given| **given).count() + usize::from(!source.inline.is_empty());
    if count != 1 {
        let problem = Diagnostic::general(Reason::InvalidManifest, "a module has exactly one source");
        let problem = problem.at(model::Path::of(&["spec", "source"]));
        return Err(vec![problem.hint("set one of `inline`, `registry`, `git`, `http` and `oci`")]);
    }
    let (text, version, name) = if let Some(registry) = &source.registry {
        (registry.module.clone(), registry.version.clone(), None)
    } else if let Some(git) = &source.git {
        let reference = git.r#ref.as_ref();
        let mut text = format!("git::{}", git.url);
        text.extend(git.path.iter().flat_map(|path| ["//", path]));
        text.extend(reference.map(|reference| format!("?ref={}", query(reference))));
        (text, None, git.r#ref.clone())
    } else if let Some(http) = &source.http {
        let mut text = http.url.clone();
        text.extend(http.path.iter().flat_map(|path| ["//", path]));
        let separator = if http.url.contains('?') { '&' } else { '?' };
        text.extend(http.sha256.iter().map(|digest| format!("{separator}checksum=sha256:{digest}")));
        (text, None, None)
    } else if let Some(oci) = &source.oci {
        let mut text = format!("oci://{}", oci.repository);
        text.extend(oci.path.iter().flat_map(|path| ["//", path]));
        text.extend(oci.tag.iter().map(|tag| format!("?tag={}", query(tag))));
        text.extend(oci.digest.iter().map(|digest| format!("?digest={}", query(digest))));
        (text, None, oci.tag.clone().or_else(|| oci.digest.clone()))
    } else {
        return Ok(None);
    };
    let source = ModuleSource::parse(&text).map_err(|error| {
        let problem = Diagnostic::general(Reason::SourceFailed, format!("`{text}` is no source: {}", error.detail));
        vec![problem.hint(error.hint)]
    })?;
    if source.as_local().is_some() {
        return Err(failed(format!("`{text}` is a path of this machine, from which no module is read")));
    }
    let version = version.as_deref().map(VersionConstraint::of_module).transpose();
    let version = version.map_err(|error| failed(error.to_string()))?.unwrap_or_default();
    Ok(Some(Remote { source, version, name }))
}

/// The text as a value in the query of a URL.
fn query(text: &str) -> String {
    form_urlencoded::byte_serialize(text.as_bytes()).collect()
}

fn write_files(source: &api::ModuleSource, root: &Path) -> Result<(), Diagnostics> {
    let size: usize = source.inline.values().map(String::len).sum();
    if size > MAX_INLINE {
        let what = format!("the files have {size} bytes, more than {MAX_INLINE}");
        return Err(failed(what));
    }
    for (name, content) in &source.inline {
        let relative = Path::new(name);
        let is_plain = relative.components().all(|part| matches!(part, Component::Normal(_)));
        if !is_plain || name.is_empty() || name.starts_with(".terraform") {
            return Err(failed(format!("`{name}` is not the name of a file of the module")));
        }
        let path = root.join(relative);
        let parent = path.parent().unwrap_or(root);
        let written = std::fs::create_dir_all(parent).and_then(|()| std::fs::write(&path, content));
        written.map_err(|error| failed(format!("{name} cannot be written: {error}")))?;
    }
    Ok(())
}

/// The digest of all files below a directory, as hexadecimal text.
///
/// # Errors
/// If a file cannot be read.
pub fn digest(directory: &Path) -> Result<String, Diagnostics> {
    let unreadable = |error: std::io::Error| failed(format!("the files of the module cannot be read: {error}"));
    let (mut open, mut files) = (vec![directory.to_owned()], Vec::new());
    while let Some(directory) = open.pop() {
        for entry in std::fs::read_dir(directory).map_err(unreadable)? {
            let entry = entry.map_err(unreadable)?;
            // What Git keeps of its history is no part of the module.
            if entry.file_name() == ".git" {
                continue;
            }
            match entry.file_type().map_err(unreadable)? {
                kind if kind.is_dir() => open.push(entry.path()),
                _ => files.push(entry.path()),
            }
        }
    }
    files.sort();
    let mut hasher = Sha256::new();
    for path in files {
        let name = path.strip_prefix(directory).unwrap_or(&path).to_string_lossy().into_owned();
        let content = std::fs::read(&path).unwrap_or_default();
        for part in [name.as_bytes(), &content] {
            hasher.update((part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
    }
    Ok(hasher.finalize().iter().fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    }))
}

fn failed(what: impl Into<String>) -> Diagnostics {
    vec![Diagnostic::general(Reason::SourceFailed, what)]
}

pub fn of_module(ModuleError { message, hint }: ModuleError) -> Diagnostics {
    vec![Diagnostic { hint, ..Diagnostic::general(Reason::SourceFailed, message) }]
}
