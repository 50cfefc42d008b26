//! Watches files by looking at them.
//!
//! Polling, not a notification service: it works alike on network file systems, bind mounts of containers and
//! overlays, where notifications get lost, and it needs no care for editors that replace files instead of writing
//! them. A look at a few hundred files costs less than a millisecond; for folders so large that it costs more, looks
//! become rarer.

use std::collections::hash_map::DefaultHasher;
use std::fs;
use std::hash::{Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The time between two looks: below what a person notices after saving a file.
const SHORTEST: Duration = Duration::from_millis(200);

/// Looking takes at most this part of the time.
const SHARE: u32 = 20;

/// How long a folder must not have changed before what is missing from it counts as removed. Checking out a branch or
/// an editor's save moves files away for a moment.
pub const QUIET: Duration = Duration::from_secs(1);

/// Files that hold documents; nothing else is looked at, least of all the state file.
const EXTENSIONS: [&str; 3] = ["yaml", "yml", "json"];

/// What the files looked like, and when that was last different.
pub struct Watch {
    sources: Vec<PathBuf>,
    fingerprint: u64,
    changed: Instant,
    next_look: Instant,
}

impl Watch {
    /// The first look.
    pub fn new(sources: Vec<PathBuf>, now: Instant) -> Self {
        let fingerprint = fingerprint(&sources);
        Self { sources, fingerprint, changed: now, next_look: now + SHORTEST }
    }

    /// When to look again.
    pub fn next_look(&self) -> Instant {
        self.next_look
    }

    /// Looks; gives whether anything is different from the last look.
    pub fn look(&mut self) -> bool {
        let before = Instant::now();
        let fingerprint = fingerprint(&self.sources);
        let now = Instant::now();
        self.next_look = now + SHORTEST.max((now - before) * SHARE);
        let changed = fingerprint != self.fingerprint;
        if changed {
            self.fingerprint = fingerprint;
            self.changed = now;
        }
        changed
    }

    /// Whether nothing has changed for long enough to believe that what is missing was removed.
    pub fn is_quiet(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.changed) >= QUIET
    }

    /// When it will be quiet if nothing changes.
    pub fn quiet_at(&self) -> Instant {
        self.changed + QUIET
    }
}

fn fingerprint(sources: &[PathBuf]) -> u64 {
    let mut hasher = DefaultHasher::new();
    for source in sources {
        if source.is_dir() { folder(source, &mut hasher) } else { file(source, &mut hasher) }
    }
    hasher.finish()
}

/// As `load::source` has it: the documents of a folder, not of its sub-folders.
fn folder(path: &Path, hasher: &mut DefaultHasher) {
    let entries = match fs::read_dir(path) {
        Ok(entries) => entries,
        Err(error) => return error.kind().hash(hasher),
    };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        if path.extension().is_some_and(|found| EXTENSIONS.iter().any(|known| found == *known)) {
            file(&path, hasher);
        }
    }
}

fn file(path: &Path, hasher: &mut DefaultHasher) {
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
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let mut watch = Watch::new(vec![folder.path().to_owned()], Instant::now());
        fs::write(path("purlin.db"), "x").unwrap();
        assert!(!watch.look());
        fs::write(path("app.yaml"), "x").unwrap();
        assert!(watch.look() && !watch.look());
        fs::write(path("app.yaml"), "xy").unwrap();
        assert!(watch.look());
        fs::remove_file(path("app.yaml")).unwrap();
        assert!(watch.look());
        assert!(!watch.is_quiet(Instant::now()) && watch.is_quiet(watch.quiet_at()));
    }
}
