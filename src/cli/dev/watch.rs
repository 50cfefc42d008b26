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

use engine::load::SourcePaths;

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
    fingerprint: u64,
    changed: Instant,
    next_look: Instant,
}

impl Watch {
    pub fn new(sources: Vec<PathBuf>, paths: SourcePaths, now: Instant) -> Self {
        let fingerprint = fingerprint(&sources, &paths);
        Self { sources, paths, fingerprint, changed: now, next_look: now + MIN_INTERVAL }
    }

    pub fn next_poll(&self) -> Instant {
        self.next_look
    }

    /// Returns whether the files have changed since the last poll.
    pub fn poll(&mut self) -> bool {
        let before = Instant::now();
        let fingerprint = fingerprint(&self.sources, &self.paths);
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

/// A digest of the names, sizes and times of the files that are read.
fn fingerprint(sources: &[PathBuf], paths: &SourcePaths) -> u64 {
    let mut hasher = DefaultHasher::new();
    let (files, errors) = paths.files(sources);
    files.iter().for_each(|file| hash_file(&file.path, &mut hasher));
    for (path, error) in errors {
        path.hash(&mut hasher);
        error.kind().hash(&mut hasher);
    }
    hasher.finish()
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
        let mut watch = Watch::new(vec![directory.path().to_owned()], paths, Instant::now());
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
}
