//! Caches the status of a Resource: the one that this process has written or is writing, and whether the server has a
//! different one.
//!
//! The watch delivers own writes late and out of step with newer ones, so only an event newer than the last answered
//! write counts. It shows a write of another process: an earlier leader whose last request arrived late.

use super::PublishedStatus;
use model::Version;

/// How the write of a status ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusOutcome {
    /// The Resource has this version since.
    Stored(Version),
    /// The API server rejected it: the Resource was deleted, or the status of a newer generation follows.
    Rejected,
    /// It was not sent, because this replica did not hold the lease.
    NotLeading,
}

#[derive(Clone, Debug)]
pub struct StatusCache {
    /// The current status.
    published: PublishedStatus,
    /// The generation that it was computed from, until the server has it. A server with a newer generation rejects it,
    /// and then the same status must be written for that one.
    pending_for: Option<i64>,
    /// The version of the last answered write.
    written_version: Version,
    /// A write is in flight; events cannot be judged until its response arrives.
    is_writing: bool,
    /// The last event during the write.
    deferred: Option<Box<(Version, PublishedStatus)>>,
}

impl StatusCache {
    pub fn new(published: PublishedStatus) -> Self {
        Self { published, pending_for: None, written_version: Version(0), is_writing: false, deferred: None }
    }

    pub fn published(&self) -> &PublishedStatus {
        &self.published
    }

    /// Whether the server has a status with this digest, or may accept the one that was written last as a status of
    /// this generation.
    pub fn is_published(&self, digest: u64, generation: i64) -> bool {
        self.published.digest == digest && self.pending_for.is_none_or(|pending| pending == generation)
    }

    /// Records that a status is being written, which was computed from this generation.
    pub fn publish(&mut self, published: PublishedStatus, generation: i64) {
        self.published = published;
        self.pending_for = Some(generation);
        self.is_writing = true;
    }

    /// Records how the write of the status with this digest ended. Returns whether the server has a different status
    /// that must be replaced.
    pub fn written(&mut self, digest: u64, outcome: StatusOutcome) -> bool {
        if let StatusOutcome::Stored(version) = outcome {
            self.written_version = self.written_version.max(version);
        }
        // The response to an older write says nothing about the current one.
        if digest != self.published.digest {
            return false;
        }
        self.is_writing = false;
        if matches!(outcome, StatusOutcome::Stored(_)) {
            self.pending_for = None;
        }
        let is_missing = outcome == StatusOutcome::NotLeading;
        if is_missing {
            // The lease may be held again already: the same status counts as a new one, and is written.
            self.published.digest = !digest;
        }
        let is_replaced = self.deferred.take().is_some_and(|deferred| self.observed(deferred.0, deferred.1));
        is_missing || is_replaced
    }

    /// Records a status from the watch. Returns whether it replaces the cached one.
    pub fn observed(&mut self, version: Version, status: PublishedStatus) -> bool {
        if self.is_writing {
            self.deferred = Some(Box::new((version, status)));
            return false;
        }
        if version <= self.written_version || status.digest == self.published.digest {
            return false;
        }
        self.published = status;
        self.pending_for = None;
        true
    }

    /// A status that the server has rejected is written again.
    pub fn write_again(&mut self) {
        if self.pending_for.is_some() && !self.is_writing {
            self.published.digest = !self.published.digest;
        }
    }

    /// The writer has ended: the last status from the watch counts.
    pub fn begin_again(&mut self) {
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
        status.publish(says(1), 1);
        status.publish(says(2), 1);
        assert!(!status.written(1, StatusOutcome::Stored(Version(10))), "the second write is in flight");
        assert!(!status.observed(Version(10), says(1)), "the watch delivers the first own write");
        assert!(!status.written(2, StatusOutcome::Stored(Version(12))));
        assert!(!status.observed(Version(11), says(7)), "the own write has replaced it");
        assert!(!status.observed(Version(12), says(2)));
        assert!(status.observed(Version(13), says(7)));
        assert_eq!(status.published().digest, 7);
    }

    #[test]
    fn an_event_during_a_write_counts_after_the_response() {
        let mut status = StatusCache::new(says(0));
        status.publish(says(1), 1);
        assert!(!status.observed(Version(20), says(7)));
        assert!(status.written(1, StatusOutcome::Stored(Version(15))), "the other write is newer");
        status.publish(says(1), 1);
        assert!(!status.observed(Version(21), says(8)));
        assert!(!status.written(1, StatusOutcome::Stored(Version(22))), "the own write is newer");
        status.publish(says(2), 1);
        assert!(!status.observed(Version(25), says(9)));
        status.begin_again();
        assert_eq!(status.published().digest, 9);
    }

    #[test]
    fn a_rejected_status_is_written_for_the_next_generation() {
        let mut status = StatusCache::new(says(0));
        assert!(status.is_published(0, 3), "the server has it");
        status.publish(says(1), 3);
        assert!(!status.is_published(1, 4), "the server may reject it");
        assert!(!status.written(1, StatusOutcome::Rejected));
        assert!(status.is_published(1, 3), "it would be rejected again");
        assert!(!status.is_published(1, 4));
        status.publish(says(1), 4);
        status.written(1, StatusOutcome::Stored(Version(10)));
        assert!(status.is_published(1, 5) && !status.is_published(2, 5));
    }

    #[test]
    fn a_status_that_was_not_sent_is_missing_and_a_rejected_one_is_not() {
        let mut status = StatusCache::new(says(0));
        status.publish(says(1), 1);
        assert!(!status.written(1, StatusOutcome::Rejected), "a newer one follows");
        assert_eq!(status.published().digest, 1);
        status.publish(says(2), 1);
        status.publish(says(3), 1);
        assert!(!status.written(2, StatusOutcome::NotLeading), "the write of a newer one has not ended");
        assert!(status.written(3, StatusOutcome::NotLeading));
        assert_ne!(status.published().digest, 3, "the same status is written again");
    }
}
