//! Watches files by polling.
//!
//! Polling also works on network file systems, bind mounts and overlays, where notifications get lost, and with editors
//! that replace files instead of writing them. Polling a few hundred files takes less than a millisecond; for larger
//! directories the interval grows.

use std::collections::hash_map::DefaultHasher;
use std::fs;
use std::hash::{Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::cli::local::DesiredState;
use crate::cli::options::{Files, source_paths};
use crate::cli::root_module;
use engine::load::SourcePaths;
use programs::ReadFiles;

/// The minimum poll interval, short enough that users do not notice a delay.
const MIN_INTERVAL: Duration = Duration::from_millis(200);

/// Polling takes at most one part in this many of the time.
const MAX_SHARE: u32 = 20;

/// How long the files must be unchanged before missing manifests count as removed. Checking out a branch, or saving in
/// an editor, removes files for a moment.
pub const QUIET: Duration = Duration::from_secs(1);

/// The last known state of the files, and when it changed.
pub struct Watch {
    sources: Vec<PathBuf>,
    paths: SourcePaths,
    /// The files with values of variables that the command line names.
    values: Vec<PathBuf>,
    /// The directories of the modules of a Terraform configuration.
    modules: Vec<PathBuf>,
    /// The files that its functions have read.
    read: Arc<ReadFiles>,
    fingerprint: u64,
    changed: Instant,
    next_look: Instant,
}

impl Watch {
    pub fn new(files: &Files, now: Instant) -> Self {
        let paths = source_paths(&files.state);
        let values = files.variables.files().map(Path::to_owned).collect();
        Self::of(files.sources.clone(), paths, values, now)
    }

    fn of(sources: Vec<PathBuf>, paths: SourcePaths, values: Vec<PathBuf>, now: Instant) -> Self {
        let (modules, read, next_look) = (Vec::new(), Arc::default(), now + MIN_INTERVAL);
        let mut watch = Self { sources, paths, values, modules, read, fingerprint: 0, changed: now, next_look };
        watch.fingerprint = watch.fingerprint();
        watch
    }

    /// Watches the modules of what was read too.
    pub fn follow(&mut self, read: &DesiredState) {
        if read.module_directories.is_empty() {
            return;
        }
        self.read = read.module_files.clone();
        if self.modules != read.module_directories {
            self.modules.clone_from(&read.module_directories);
            self.fingerprint = self.fingerprint();
        }
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
        let has_read_other = self.read.have_changed();
        if has_read_other {
            // They are read again, and until then they are known to have changed.
            self.read = Arc::default();
        }
        let changed = fingerprint != self.fingerprint || has_read_other;
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
        // A directory can get a configuration. The modules of one that was read include it.
        let is_none_read = self.modules.is_empty();
        let new = self.sources.iter().filter(|source| is_none_read && root_module::is_in(source));
        new.chain(&self.modules).for_each(|module| Self::hash_module(module, &mut hasher));
        hasher.finish()
    }

    /// The files of a module, those with values of variables, and what says which modules and providers are installed.
    fn hash_module(directory: &Path, hasher: &mut DefaultHasher) {
        for known in [".terraform/modules/modules.json", ".terraform.lock.hcl", root_module::STATE] {
            hash_file(&directory.join(known), hasher);
        }
        let entries = fs::read_dir(directory).into_iter().flatten().flatten();
        let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.retain(|name| {
            configuration::is_configuration(name) || name.ends_with(".tfvars") || name.ends_with(".tfvars.json")
        });
        names.sort();
        names.iter().for_each(|name| hash_file(&directory.join(name), hasher));
    }
}

fn hash_file(path: &Path, hasher: &mut DefaultHasher) {
    (path, programs::stamp(path)).hash(hasher);
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
        let mut watch = Watch::of(vec![directory.path().to_owned()], paths, Vec::new(), Instant::now());
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
    fn the_files_of_modules_count_and_what_functions_have_read() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        for name in ["root/templates", "other"] {
            fs::create_dir_all(path(name)).unwrap();
        }
        let paths = SourcePaths::new(&path("root/purlin.db"), &path("root/published"));
        let mut watch = Watch::of(vec![path("root")], paths, vec![path("own.tfvars")], Instant::now());
        let write = |watch: &mut Watch, name: &str| {
            fs::write(path(name), name).unwrap();
            (watch.poll(), watch.poll())
        };
        assert_eq!(write(&mut watch, "root/main.tf"), (true, false), "the directory has a configuration now");
        let read = Arc::new(ReadFiles::default());
        for name in ["root/templates", "root/read.txt"] {
            read.look_at(&path(name));
        }
        watch.follow(&DesiredState {
            module_directories: vec![path("root"), path("other")],
            module_files: read,
            ..DesiredState::default()
        });
        for name in ["root/log.txt", "root/purlin.db-wal", "other/README.md"] {
            assert_eq!(write(&mut watch, name), (false, false), "{name}");
        }
        for name in ["other/main.tf", "root/a.auto.tfvars", "own.tfvars", "root/.terraform.lock.hcl", "root/read.txt"] {
            assert_eq!(write(&mut watch, name), (true, false), "{name}");
        }
    }
}
