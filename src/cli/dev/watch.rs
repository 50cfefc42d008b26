//! Watches files by polling.
//!
//! Polling also works on network file systems, bind mounts and overlays, where notifications get lost, and with editors
//! that replace files instead of writing them. Polling a few hundred files takes less than a millisecond; for larger
//! directories the interval grows.

use std::collections::hash_map::DefaultHasher;
use std::fs;
use std::hash::{Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::cli::local::DesiredState;
use crate::cli::options::{Files, source_paths};
use engine::load::SourcePaths;

/// The minimum poll interval, short enough that users do not notice a delay.
const MIN_INTERVAL: Duration = Duration::from_millis(200);

/// Polling takes at most one part in this many of the time.
const MAX_SHARE: u32 = 20;

/// How long the files must be unchanged before missing manifests count as removed. Checking out a branch, or saving in
/// an editor, removes files for a moment.
pub const QUIET: Duration = Duration::from_secs(1);

/// More files than these are not looked at: a directory with a Terraform configuration may contain anything.
const MAX_FILES: usize = 20_000;

/// The last known state of the files, and when it changed.
pub struct Watch {
    sources: Vec<PathBuf>,
    paths: SourcePaths,
    /// The files with values of variables that the command line names.
    values: Vec<PathBuf>,
    /// The directories of the modules of a Terraform configuration.
    modules: Vec<PathBuf>,
    fingerprint: u64,
    changed: Instant,
    next_look: Instant,
}

impl Watch {
    pub fn new(files: &Files, now: Instant) -> Self {
        let paths = source_paths(&files.state);
        let modules = files.root_module().map(Path::to_owned).into_iter().collect();
        let values = files.variables.files().map(Path::to_owned).collect();
        Self::of(files.sources.clone(), paths, values, modules, now)
    }

    fn of(
        sources: Vec<PathBuf>,
        paths: SourcePaths,
        values: Vec<PathBuf>,
        modules: Vec<PathBuf>,
        now: Instant,
    ) -> Self {
        let mut watch =
            Self { sources, paths, values, modules, fingerprint: 0, changed: now, next_look: now + MIN_INTERVAL };
        watch.fingerprint = watch.fingerprint();
        watch
    }

    /// Watches the modules of what was read too.
    pub fn follow(&mut self, read: &DesiredState) {
        if !read.module_directories.is_empty() && self.modules != read.module_directories {
            self.modules.clone_from(&read.module_directories);
            self.fingerprint = self.fingerprint();
        }
    }

    /// A digest of the files at the last poll.
    pub fn digest(&self) -> u64 {
        self.fingerprint
    }

    pub fn next_poll(&self) -> Instant {
        self.next_look
    }

    /// Returns whether the files have changed since the last poll.
    pub fn poll(&mut self) -> bool {
        let before = Instant::now();
        let fingerprint = self.fingerprint();
        let now = Instant::now();
        self.next_look = now + MIN_INTERVAL.max((now - before) * MAX_SHARE);
        let changed = fingerprint != self.fingerprint;
        if changed {
            self.fingerprint = fingerprint;
            self.changed = now;
        }
        changed
    }

    /// Whether the files have been unchanged for `QUIET`.
    pub fn is_quiet(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.changed) >= QUIET
    }

    /// When `is_quiet` becomes true if nothing changes.
    pub fn quiet_at(&self) -> Instant {
        self.changed + QUIET
    }
}

impl Watch {
    /// A digest of the names, sizes and times of the files that are read.
    fn fingerprint(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        let (files, errors) = self.paths.files(&self.sources);
        files.iter().for_each(|file| hash_file(&file.path, &mut hasher));
        for (path, error) in errors {
            path.hash(&mut hasher);
            error.kind().hash(&mut hasher);
        }
        self.values.iter().for_each(|file| hash_file(file, &mut hasher));
        let mut left = MAX_FILES;
        // A module below another one is found twice, which changes nothing.
        self.modules.iter().for_each(|module| self.hash_module(module, &mut left, &mut hasher));
        hasher.finish()
    }

    /// Functions can read any file of a module. Hidden ones are those of tools, except the list of the installed modules and the
    /// lock file, and so are states.
    fn hash_module(&self, directory: &Path, left: &mut usize, hasher: &mut DefaultHasher) {
        for known in [".terraform/modules/modules.json", ".terraform.lock.hcl"] {
            hash_file(&directory.join(known), hasher);
        }
        let mut entries: Vec<_> = fs::read_dir(directory).into_iter().flatten().flatten().collect();
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
            let is_of_tool = name.starts_with('.') || name.contains(".tfstate");
            if is_of_tool || self.paths.is_own(&name) || *left == 0 {
                continue;
            }
            *left -= 1;
            match entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                true => self.hash_module(&path, left, hasher),
                false => hash_file(&path, hasher),
            }
        }
    }
}

fn hash_file(path: &Path, hasher: &mut DefaultHasher) {
    path.hash(hasher);
    match fs::metadata(path) {
        Ok(metadata) => {
            metadata.len().hash(hasher);
            metadata.modified().ok().hash(hasher);
        }
        Err(error) => error.kind().hash(hasher),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_documents_count() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        fs::create_dir(path("sub")).unwrap();
        let paths = SourcePaths::new(&path("purlin.db"), &path("published"));
        let mut watch = Watch::of(vec![directory.path().to_owned()], paths, Vec::new(), Vec::new(), Instant::now());
        fs::write(path("purlin.db"), "x").unwrap();
        assert!(!watch.poll());
        fs::write(path("app.yaml"), "x").unwrap();
        assert!(watch.poll() && !watch.poll());
        fs::write(path("app.yaml"), "xy").unwrap();
        assert!(watch.poll());
        fs::remove_file(path("app.yaml")).unwrap();
        assert!(watch.poll());
        fs::write(path("sub/app.yaml"), "x").unwrap();
        assert!(watch.poll());
        assert!(!watch.is_quiet(Instant::now()) && watch.is_quiet(watch.quiet_at()));
    }

    #[test]
    fn all_files_of_modules_count_except_those_of_tools() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        for name in ["root/.git", "root/templates", "other"] {
            fs::create_dir_all(path(name)).unwrap();
        }
        let paths = SourcePaths::new(&path("root/purlin.db"), &path("root/published"));
        let modules = vec![path("root"), path("other")];
        let mut watch = Watch::of(vec![path("root")], paths, vec![path("own.tfvars")], modules, Instant::now());
        for name in ["root/purlin.db-wal", "root/.git/HEAD", "root/terraform.tfstate.backup", "root.txt"] {
            fs::write(path(name), "x").unwrap();
            assert!(!watch.poll(), "{name}");
        }
        for name in ["root/main.tf", "root/templates/a.tpl", "other/main.tf", "own.tfvars", "root/.terraform.lock.hcl"]
        {
            fs::write(path(name), "x").unwrap();
            assert!(watch.poll() && !watch.poll(), "{name}");
        }
    }
}
