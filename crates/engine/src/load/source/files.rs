//! The files of a source, and the names that records store for them.
//!
//! A record names a file by its path relative to the directory of the state file, so that both can be moved together. A
//! file outside of that directory has its absolute path, and standard input is `-`.

use std::collections::BTreeSet;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// The path of standard input.
pub const STDIN: &str = "-";

/// The extensions of manifests.
const EXTENSIONS: [&str; 3] = ["yaml", "yml", "json"];

/// Converts between paths as the user gives them and sources as records store them.
#[derive(Clone, Debug, Default)]
pub struct SourcePaths {
    /// The directory of the state file, without symbolic links.
    base: PathBuf,
    state: PathBuf,
    /// Where Purlin publishes outputs.
    published: PathBuf,
}

/// A file of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceFile {
    /// The path as the user gave it, with the path below that directory.
    pub path: PathBuf,
    /// The absolute path, which is equal for all ways to give the same file.
    pub absolute: PathBuf,
}

impl SourcePaths {
    /// The paths for a state file, which may not exist yet. `published` is the directory of published outputs.
    pub fn new(state: &Path, published: &Path) -> Self {
        let directory = state.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let base = resolve(directory);
        let [state, published] =
            [state, published].map(|path| path.file_name().map(|name| base.join(name)).unwrap_or_default());
        Self { base, state, published }
    }

    /// Returns the path that identifies what the user gave. Symbolic links above the directory of the state file are
    /// resolved, and those below it are kept: they have the same names when the directory is moved.
    pub fn absolute(&self, given: &Path) -> PathBuf {
        if given.as_os_str() == STDIN {
            return given.to_owned();
        }
        let path = without_parents(&std::path::absolute(given).unwrap_or_else(|_| given.to_owned()));
        let below = path.ancestors().find_map(|ancestor| {
            let is_base = ancestor.canonicalize().is_ok_and(|real| real == self.base);
            is_base.then(|| path.strip_prefix(ancestor).ok()).flatten()
        });
        below.map_or_else(|| resolve(&path), |below| self.base.join(below))
    }

    /// Returns the source that a record stores for a file.
    pub fn source(&self, absolute: &Path) -> Arc<str> {
        absolute.strip_prefix(&self.base).unwrap_or(absolute).to_string_lossy().into()
    }

    /// Returns the file of a recorded source. An absolute source replaces the base.
    pub fn file(&self, source: &str) -> PathBuf {
        self.base.join(source)
    }

    /// Whether the recorded source is the path, or a file at any depth below it. The path may no longer exist.
    pub fn covers(&self, absolute: &Path, source: &str) -> bool {
        match source {
            STDIN => absolute.as_os_str() == STDIN,
            file => self.file(file).starts_with(absolute),
        }
    }

    /// Returns the manifests of the given paths, each file once, and the paths that cannot be read. The manifests of a
    /// directory are those at any depth, in the order of their paths. Hidden files, hidden directories and the output
    /// of Purlin are omitted.
    pub fn files(&self, given: &[PathBuf]) -> (Vec<SourceFile>, Vec<(PathBuf, io::Error)>) {
        let (mut files, mut errors) = (Vec::new(), Vec::new());
        for path in given {
            if let Err(error) = self.files_of(path, &mut files) {
                errors.push((path.clone(), error));
            }
        }
        if given.len() > 1 {
            let mut known = BTreeSet::new();
            files.retain(|file| known.insert(file.absolute.clone()));
        }
        (files, errors)
    }

    fn files_of(&self, given: &Path, files: &mut Vec<SourceFile>) -> io::Result<()> {
        let absolute = self.absolute(given);
        if given.as_os_str() == STDIN || !std::fs::metadata(given)?.is_dir() {
            files.push(SourceFile { path: given.to_owned(), absolute });
            return Ok(());
        }
        let mut tree =
            Tree { paths: self, root: given, absolute: &absolute, found: Vec::new(), links: BTreeSet::new() };
        tree.read()?;
        tree.found.sort();
        for below in tree.found {
            files.push(SourceFile { path: given.join(&below), absolute: absolute.join(&below) });
        }
        Ok(())
    }
}

/// The search for manifests below a directory. All paths are relative to it.
struct Tree<'a> {
    paths: &'a SourcePaths,
    root: &'a Path,
    absolute: &'a Path,
    found: Vec<PathBuf>,
    /// Directories behind symbolic links.
    links: BTreeSet<PathBuf>,
}

impl Tree<'_> {
    /// Reads each directory once, even if symbolic links form a loop. Links come last, so that a directory is read at
    /// its own path if that is below the root too.
    fn read(&mut self) -> io::Result<()> {
        let mut visited = BTreeSet::new();
        let mut open = vec![PathBuf::new()];
        while let Some(directory) = open.pop().or_else(|| self.links.pop_first()) {
            if visited.insert(self.root.join(&directory).canonicalize()?) {
                self.read_directory(&directory, &mut open)?;
            }
        }
        Ok(())
    }

    fn read_directory(&mut self, directory: &Path, open: &mut Vec<PathBuf>) -> io::Result<()> {
        for entry in std::fs::read_dir(self.root.join(directory))? {
            let entry = entry?;
            let name = entry.file_name();
            let below = directory.join(&name);
            let is_output = [&self.paths.state, &self.paths.published].contains(&&self.absolute.join(&below));
            if name.to_string_lossy().starts_with('.') || is_output {
                continue;
            }
            let is_manifest = is_manifest(&below);
            let kind = entry.file_type()?;
            if !kind.is_symlink() {
                match kind.is_dir() {
                    true => open.push(below),
                    // Reading a named pipe would wait for a writer.
                    false if is_manifest && !kind.is_file() => return Err(not_a_file(&below)),
                    false => self.found.extend(is_manifest.then_some(below)),
                }
                continue;
            }
            match std::fs::metadata(entry.path()) {
                Ok(target) if target.is_dir() => drop(self.links.insert(below)),
                Ok(target) if is_manifest && !target.is_file() => return Err(not_a_file(&below)),
                // A manifest that is a broken link is reported when it is read.
                _ => self.found.extend(is_manifest.then_some(below)),
            }
        }
        Ok(())
    }
}

fn not_a_file(below: &Path) -> io::Error {
    io::Error::other(format!("`{}` is neither a file nor a directory", below.display()))
}

fn is_manifest(path: &Path) -> bool {
    path.extension().is_some_and(|extension| EXTENSIONS.iter().any(|known| extension == *known))
}

/// Resolves symbolic links as far as the path exists.
fn resolve(path: &Path) -> PathBuf {
    let path = without_parents(&std::path::absolute(path).unwrap_or_else(|_| path.to_owned()));
    let existing = path.ancestors().find_map(|ancestor| Some((ancestor, ancestor.canonicalize().ok()?)));
    match existing {
        Some((ancestor, real)) => {
            let missing = path.strip_prefix(ancestor).unwrap_or(Path::new(""));
            if missing.as_os_str().is_empty() { real } else { real.join(missing) }
        }
        None => path,
    }
}

/// Removes `..` as the operating system does: the parent of a symbolic link is that of its target.
fn without_parents(absolute: &Path) -> PathBuf {
    let mut path = PathBuf::new();
    for component in absolute.components() {
        if component == Component::ParentDir {
            path = path.canonicalize().unwrap_or(path);
            path.pop();
        } else {
            path.push(component);
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    fn tree(files: &[&str]) -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        for file in files {
            let path = directory.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        directory
    }

    fn paths(directory: &Path) -> SourcePaths {
        SourcePaths::new(&directory.join("purlin.db"), &directory.join("published"))
    }

    fn names(paths: &SourcePaths, given: &[PathBuf]) -> Vec<String> {
        let (files, errors) = paths.files(given);
        assert!(errors.is_empty(), "{errors:?}");
        files.iter().map(|file| paths.source(&file.absolute).to_string()).collect()
    }

    #[test]
    fn a_directory_is_read_with_its_subdirectories_and_without_hidden_ones_and_output() {
        let directory = tree(&[
            "b.yml",
            "a/b/c.yaml",
            "a/x.json",
            "a.yaml",
            ".git/x.yaml",
            "a/.x.yaml",
            "notes.txt",
            "published/s.json",
            "a/published/kept.yaml",
            "state.json",
        ]);
        let root = directory.path();
        let paths = SourcePaths::new(&root.join("state.json"), &root.join("published"));
        let all = ["a/b/c.yaml", "a/published/kept.yaml", "a/x.json", "a.yaml", "b.yml"];
        assert_eq!(names(&paths, &[root.to_owned()]), all);
        assert_eq!(names(&paths, &[root.join("a/b/.."), root.to_owned()]).len(), all.len());
        assert_eq!(names(&paths, &[root.join("a/x.json"), root.join("a")]).first().unwrap(), "a/x.json");
    }

    #[test]
    fn every_way_to_give_a_path_has_the_same_source() {
        let directory = tree(&["stack/app/a.yaml"]);
        let root = directory.path().canonicalize().unwrap();
        symlink(&root, root.join("stack/loop")).unwrap();
        let paths = paths(&root.join("stack"));
        for given in
            ["stack/app/a.yaml", "stack/./app//a.yaml", "stack/app/../app/a.yaml", "stack/loop/stack/app/a.yaml"]
        {
            assert_eq!(&*paths.source(&paths.absolute(&root.join(given))), "app/a.yaml", "{given}");
        }
        let outside = root.join("other.yaml");
        assert_eq!(&*paths.source(&paths.absolute(&outside)), outside.to_str().unwrap());
        assert_eq!(&*paths.source(&paths.absolute(Path::new("-"))), "-");
    }

    #[test]
    fn a_directory_covers_every_depth_and_a_file_only_itself() {
        let directory = tree(&["app/a.yaml"]);
        let root = directory.path();
        let paths = paths(root);
        let covers = |given: &str, source: &str| paths.covers(&paths.absolute(&root.join(given)), source);
        assert!(covers("", "app/b/c.yaml") && covers("app", "app/b/c.yaml") && covers("app/a.yaml", "app/a.yaml"));
        assert!(covers("gone", "gone/a.yaml") && covers("..", "app/a.yaml"));
        assert!(!covers("app/a.yaml", "app/b.yaml") && !covers("app", "apps/a.yaml") && !covers("app", "-"));
        assert!(paths.covers(&paths.absolute(Path::new("-")), "-") && !covers("", "/elsewhere/a.yaml"));
    }

    #[test]
    fn loops_of_symbolic_links_are_read_once() {
        let directory = tree(&["b/x.yaml"]);
        let root = directory.path();
        symlink(root, root.join("b/up")).unwrap();
        symlink(root.join("b"), root.join("a")).unwrap();
        symlink(root.join("itself"), root.join("itself")).unwrap();
        symlink(root.join("b/x.yaml"), root.join("link.yaml")).unwrap();
        assert_eq!(names(&paths(root), &[root.to_owned()]), ["b/x.yaml", "link.yaml"]);
    }
}
