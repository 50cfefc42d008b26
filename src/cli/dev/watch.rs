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

/// The minimum poll interval, short enough that users do not notice a delay.
const MIN_INTERVAL: Duration = Duration::from_millis(200);

/// Polling takes at most one part in this many of the time.
const MAX_SHARE: u32 = 20;

/// How long the files must be unchanged before missing manifests count as removed. Checking out a branch, or saving in
/// an editor, removes files for a moment.
pub const QUIET: Duration = Duration::from_secs(1);

/// The extensions of manifests. Other files, such as the state file, are ignored.
const EXTENSIONS: [&str; 3] = ["yaml", "yml", "json"];

/// The last known state of the files, and when it changed.
pub struct Watch {
    sources: Vec<PathBuf>,
    fingerprint: u64,
    changed: Instant,
    next_look: Instant,
}

impl Watch {
    pub fn new(sources: Vec<PathBuf>, now: Instant) -> Self {
        let fingerprint = fingerprint(&sources);
        Self { sources, fingerprint, changed: now, next_look: now + MIN_INTERVAL }
    }

    pub fn next_poll(&self) -> Instant {
        self.next_look
    }

    /// Returns whether the files have changed since the last poll.
    pub fn poll(&mut self) -> bool {
        let before = Instant::now();
        let fingerprint = fingerprint(&self.sources);
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

fn fingerprint(sources: &[PathBuf]) -> u64 {
    let mut hasher = DefaultHasher::new();
    for source in sources {
        if source.is_dir() { hash_directory(source, &mut hasher) } else { hash_file(source, &mut hasher) }
    }
    hasher.finish()
}

/// Like `load::source`, does not descend into subdirectories.
fn hash_directory(path: &Path, hasher: &mut DefaultHasher) {
    let entries = match fs::read_dir(path) {
        Ok(entries) => entries,
        Err(error) => return error.kind().hash(hasher),
    };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        if path.extension().is_some_and(|found| EXTENSIONS.iter().any(|known| found == *known)) {
            hash_file(&path, hasher);
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
        let mut watch = Watch::new(vec![directory.path().to_owned()], Instant::now());
        fs::write(path("purlin.db"), "x").unwrap();
        assert!(!watch.poll());
        fs::write(path("app.yaml"), "x").unwrap();
        assert!(watch.poll() && !watch.poll());
        fs::write(path("app.yaml"), "xy").unwrap();
        assert!(watch.poll());
        fs::remove_file(path("app.yaml")).unwrap();
        assert!(watch.poll());
        assert!(!watch.is_quiet(Instant::now()) && watch.is_quiet(watch.quiet_at()));
    }
}
