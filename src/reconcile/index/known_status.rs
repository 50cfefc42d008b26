//! What is known of the status of a Resource: what we have written or are writing, and whether the server shows another.
//!
//! Our own writes come back through the watch, late and out of step with newer ones, so an event says something only if
//! it is newer than the last write that was answered. Then another process has written: one that led before us and whose
//! last request came late.

use super::Published;
use crate::model::Version;

#[derive(Debug)]
pub(super) struct KnownStatus {
    /// What it says, as far as we know.
    published: Published,
    /// The version of our last write that was answered.
    written: Version,
    /// A write is under way; until its answer is there nothing can be told.
    is_written: bool,
    /// What the watch has delivered meanwhile.
    seen: Option<Box<(Version, Published)>>,
}

impl KnownStatus {
    /// The status of a Resource that is seen for the first time.
    pub(super) fn new(published: Published) -> Self {
        Self { published, written: Version(0), is_written: false, seen: None }
    }

    pub(super) fn published(&self) -> &Published {
        &self.published
    }

    /// A status is handed over to be written.
    pub(super) fn publish(&mut self, published: Published) {
        self.published = published;
        self.is_written = true;
    }

    /// The status with this digest was written, and the Resource has this version since; `None`: it will not be written.
    /// Returns whether the server shows another one.
    pub(super) fn written(&mut self, digest: u64, version: Option<Version>) -> bool {
        self.written = self.written.max(version.unwrap_or(Version(0)));
        // An older one that was on its way when the present one was handed over says nothing.
        if digest != self.published.digest {
            return false;
        }
        self.is_written = false;
        match self.seen.take() {
            Some(seen) => self.observed(seen.0, seen.1),
            None => false,
        }
    }

    /// The server shows this status at this version. Returns whether it is another one than ours, which it then is.
    pub(super) fn observed(&mut self, version: Version, status: Published) -> bool {
        if self.is_written {
            self.seen = Some(Box::new((version, status)));
            return false;
        }
        if version <= self.written || status.digest == self.published.digest {
            return false;
        }
        self.published = status;
        true
    }

    /// Whoever wrote is gone: what the server showed last is what counts.
    pub(super) fn begin_again(&mut self) {
        self.is_written = false;
        if let Some(seen) = self.seen.take() {
            self.observed(seen.0, seen.1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn says(digest: u64) -> Published {
        let mut published = Published::nothing();
        published.digest = digest;
        published
    }

    #[test]
    fn what_another_process_wrote_is_noticed_and_own_writes_that_come_back_are_not() {
        let mut status = KnownStatus::new(says(0));
        status.publish(says(1));
        status.publish(says(2));
        assert!(!status.written(1, Some(Version(10))), "the second one is on its way");
        assert!(!status.observed(Version(10), says(1)), "our first write comes back");
        assert!(!status.written(2, Some(Version(12))));
        assert!(!status.observed(Version(11), says(7)), "what was written before ours is gone");
        assert!(!status.observed(Version(12), says(2)));
        assert!(status.observed(Version(13), says(7)));
        assert_eq!(status.published().digest, 7);
    }

    #[test]
    fn what_comes_while_a_write_is_under_way_counts_once_that_is_answered() {
        let mut status = KnownStatus::new(says(0));
        status.publish(says(1));
        assert!(!status.observed(Version(20), says(7)));
        assert!(status.written(1, Some(Version(15))), "it was written after ours");
        status.publish(says(1));
        assert!(!status.observed(Version(21), says(8)));
        assert!(!status.written(1, Some(Version(22))), "ours came after it");
        status.publish(says(2));
        assert!(!status.observed(Version(25), says(9)));
        status.begin_again();
        assert_eq!(status.published().digest, 9);
    }
}
