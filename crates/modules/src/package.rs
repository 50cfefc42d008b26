//! Fetches whole packages from their addresses, and copies those of this machine.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use fetch::{Credentials, Http, Links, UnpackRules};
use reqwest::Url;

use crate::archive;
use crate::error::ModuleError;
use crate::git::Git;
use crate::oci;

/// The largest repositories of modules have some thousand files.
pub const RULES: UnpackRules = UnpackRules { bytes: 2 << 30, entries: 100_000, links: Links::Inside };

/// What gets packages.
#[derive(Debug)]
pub struct Fetcher<'a> {
    pub http: &'a Http,
    pub credentials: &'a Credentials,
    pub git: Git,
    /// Whether packages can come from this machine.
    pub takes_local: bool,
}

impl Fetcher<'_> {
    /// Fetches a package into a directory that does not exist yet.
    pub async fn fetch(&self, package: &str, into: &Path) -> Result<(), ModuleError> {
        let (forced, address) = match package.split_once("::") {
            Some((forced, address)) => (Some(forced), address),
            None => (None, package),
        };
        let mut url =
            Url::parse(address).map_err(|error| ModuleError::new(format!("`{address}` is not a URL: {error}")))?;
        match (forced, url.scheme()) {
            (_, "file") if !self.takes_local => {
                let message = format!("`{address}` is a path of this machine, from which no module is read");
                return Err(ModuleError::new(message).hint("use a registry, a repository or an archive"));
            }
            (Some("git"), _) => self.git.clone(&url, into).await?,
            (Some("http" | "https") | None, "http" | "https") => archive::fetch(self, url, into).await?,
            (Some("oci") | None, "oci") => oci::fetch(self.http, self.credentials, &url, into).await?,
            (Some("file") | None, "file") => {
                let query = archive::Query::take(&mut url)?;
                let path = url.to_file_path().map_err(|()| ModuleError::new(format!("`{address}` is not a path")))?;
                local(&path, &query, into).await?;
            }
            (forced, scheme) => return Err(unsupported(forced.unwrap_or(scheme))),
        }
        let inspected = into.to_owned();
        blocking(move || Ok(fetch::inspect(&inspected, RULES)?)).await
    }
}

/// Copies a directory, or unpacks an archive, of this machine.
async fn local(path: &Path, query: &archive::Query, into: &Path) -> Result<(), ModuleError> {
    let (path, query, into) = (path.to_owned(), query.clone(), into.to_owned());
    blocking(move || {
        if path.is_dir() {
            return copy_directory(&path, &into);
        }
        if !path.exists() {
            let message = format!("{} does not exist", path.display());
            return Err(ModuleError::new(message).hint("correct the path in `source`"));
        }
        let name = path.display().to_string();
        let format = query.format(&name).ok_or_else(|| {
            ModuleError::new(format!("{name} is neither a directory nor an archive")).hint(archive::FORMATS)
        })?;
        query.check(&path, &name)?;
        archive::unpack(&path, format, &into)
    })
    .await
}

/// Copies a directory into another one, which must not exist and not be inside of it. Symbolic links stay links.
pub fn copy_directory(from: &Path, to: &Path) -> Result<(), ModuleError> {
    let from = from.canonicalize().map_err(|error| ModuleError::file(from, error))?;
    let parent = to.parent().unwrap_or(to);
    let parent = parent.canonicalize().map_err(|error| ModuleError::file(parent, error))?;
    if parent.starts_with(&from) {
        let message =
            format!("the directory {} contains the configuration that it would be copied into", from.display());
        return Err(
            ModuleError::new(message).hint("write a relative path, such as \"../network\", which is not copied")
        );
    }
    // The limits are checked first, because a directory of this machine can have any size.
    fetch::measure(&from, RULES)?;
    let mut open = vec![PathBuf::new()];
    while let Some(below) = open.pop() {
        let (source, target) = (from.join(&below), to.join(&below));
        fs::create_dir(&target).map_err(|error| ModuleError::file(&target, error))?;
        for entry in fs::read_dir(&source).map_err(|error| ModuleError::file(&source, error))? {
            let entry = entry.map_err(|error| ModuleError::file(&source, error))?;
            let kind = entry.file_type().map_err(|error| ModuleError::file(&source, error))?;
            let place = target.join(entry.file_name());
            let copied = if kind.is_dir() {
                open.push(below.join(entry.file_name()));
                Ok(())
            } else if kind.is_symlink() {
                fs::read_link(entry.path()).and_then(|leads_to| symlink(leads_to, &place))
            } else if kind.is_file() {
                fs::copy(entry.path(), &place).map(drop)
            } else {
                Ok(())
            };
            copied.map_err(|error| ModuleError::file(&entry.path(), error))?;
        }
    }
    Ok(fetch::inspect(to, RULES)?)
}

fn unsupported(kind: &str) -> ModuleError {
    let hint = match kind {
        "s3" | "gcs" => "use the HTTPS address of the archive, or a Git repository",
        "hg" => "use a Git repository",
        _ => "write `git::` before the address of a Git repository",
    };
    ModuleError::new(format!("packages of the kind `{kind}` are not supported")).hint(hint)
}

/// Runs file operations on a thread that may wait.
pub async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ModuleError> + Send + 'static,
) -> Result<T, ModuleError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => Err(ModuleError::new("Purlin is shutting down")),
        },
    }
}

/// Finds a directory of a package. Each part can have `*` in it, which stands for anything, and then has to name exactly one
/// directory.
pub fn subdirectory(package: &Path, subdir: &str) -> Result<PathBuf, ModuleError> {
    let mut found = PathBuf::new();
    for part in subdir.split('/') {
        if !part.contains('*') {
            found.push(part);
            continue;
        }
        let folder = package.join(&found);
        let entries = fs::read_dir(&folder).map_err(|error| ModuleError::file(&folder, error))?;
        let names = entries.filter_map(|entry| {
            Some(entry.ok()?).filter(|entry| entry.path().is_dir())?.file_name().into_string().ok()
        });
        let mut matching: Vec<String> = names.filter(|name| matches(part, name)).collect();
        if matching.len() != 1 {
            let count = matching.len();
            return Err(ModuleError::new(format!("{count} directories of the package match `{subdir}`, and not one")));
        }
        found.extend(matching.pop());
    }
    if package.join(&found).is_dir() {
        return Ok(found);
    }
    Err(ModuleError::new(format!("the package has no directory `{subdir}`"))
        .hint("correct what stands after `//` in `source`"))
}

/// Whether a name has the parts between the stars, in their order.
fn matches(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((head, rest)) => name.strip_prefix(head).is_some_and(|name| {
            let ends = name.char_indices().map(|(at, _)| at).chain([name.len()]);
            ends.into_iter().any(|at| matches(rest, &name[at..]))
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_one_directory() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["acme-network-0123/modules/a", "acme-network-0123/modules/b"] {
            std::fs::create_dir_all(folder.path().join(name)).unwrap();
        }
        std::fs::write(folder.path().join("pax_global_header"), "").unwrap();
        let found = |subdir: &str| {
            subdirectory(folder.path(), subdir).map(|path| path.display().to_string()).map_err(|error| error.message)
        };
        assert_eq!(found("*").unwrap(), "acme-network-0123");
        assert_eq!(found("acme-*-0*3/modules/b").unwrap(), "acme-network-0123/modules/b");
        assert_eq!(found("*/modules/*").unwrap_err(), "2 directories of the package match `*/modules/*`, and not one");
        assert_eq!(found("other").unwrap_err(), "the package has no directory `other`");
    }

    #[test]
    fn stars_match_any_text() {
        for (pattern, name, expected) in
            [("*", "", true), ("a*c", "abc", true), ("a*c", "abcd", false), ("*b*", "abc", true), ("a", "ab", false)]
        {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
    }
}
