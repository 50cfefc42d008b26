//! Caches the status of a Resource: the one that this process has written or is writing, and whether the server has a
//! different one.
//!
//! The watch delivers own writes late and out of step with newer ones, so only an event newer than the last answered
//! write counts. It shows a write of another process: an earlier leader whose last request arrived late.

use super::PublishedStatus;
use crate::model::Version;

#[derive(Clone, Debug)]
pub(super) struct StatusCache {
    /// The current status.
    published: PublishedStatus,
    /// The version of the last answered write.
    written_version: Version,
    /// A write is in flight; events cannot be judged until its response arrives.
    is_writing: bool,
    /// The last event during the write.
    deferred: Option<Box<(Version, PublishedStatus)>>,
}

impl StatusCache {
    pub(super) fn new(published: PublishedStatus) -> Self {
        Self { published, written_version: Version(0), is_writing: false, deferred: None }
    }

    pub(super) fn published(&self) -> &PublishedStatus {
        &self.published
    }

    /// Records that a status is being written.
    pub(super) fn publish(&mut self, published: PublishedStatus) {
        self.published = published;
        self.is_writing = true;
    }

    /// Records the response to the write of the status with this digest; `None`: it will not be written. Returns
    /// whether the server has a different status.
    pub(super) fn written(&mut self, digest: u64, version: Option<Version>) -> bool {
        self.written_version = self.written_version.max(version.unwrap_or(Version(0)));
        // The response to an older write says nothing about the current one.
        if digest != self.published.digest {
            return false;
        }
        self.is_writing = false;
        match self.deferred.take() {
            Some(deferred) => self.observed(deferred.0, deferred.1),
            None => false,
        }
    }

    /// Records a status from the watch. Returns whether it replaces the cached one.
    pub(super) fn observed(&mut self, version: Version, status: PublishedStatus) -> bool {
        if self.is_writing {
            self.deferred = Some(Box::new((version, status)));
            return false;
        }
        if version <= self.written_version || status.digest == self.published.digest {
            return false;
        }
        self.published = status;
        true
    }

    /// The writer has ended: the last status from the watch counts.
    pub(super) fn begin_again(&mut self) {
        self.is_writing = false;
        if let Some(deferred) = self.deferred.take() {
            self.observed(deferred.0, deferred.1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn says(digest: u64) -> PublishedStatus {
        let mut published = PublishedStatus::empty();
        published.digest = digest;
        published
    }

    #[test]
    fn writes_of_another_process_are_detected_and_own_writes_are_not() {
        let mut status = StatusCache::new(says(0));
        status.publish(says(1));
        status.publish(says(2));
        assert!(!status.written(1, Some(Version(10))), "the second write is in flight");
        assert!(!status.observed(Version(10), says(1)), "the watch delivers the first own write");
        assert!(!status.written(2, Some(Version(12))));
        assert!(!status.observed(Version(11), says(7)), "the own write has replaced it");
        assert!(!status.observed(Version(12), says(2)));
        assert!(status.observed(Version(13), says(7)));
        assert_eq!(status.published().digest, 7);
    }

    #[test]
    fn an_event_during_a_write_counts_after_the_response() {
        let mut status = StatusCache::new(says(0));
        status.publish(says(1));
        assert!(!status.observed(Version(20), says(7)));
        assert!(status.written(1, Some(Version(15))), "the other write is newer");
        status.publish(says(1));
        assert!(!status.observed(Version(21), says(8)));
        assert!(!status.written(1, Some(Version(22))), "the own write is newer");
        status.publish(says(2));
        assert!(!status.observed(Version(25), says(9)));
        status.begin_again();
        assert_eq!(status.published().digest, 9);
    }
}
