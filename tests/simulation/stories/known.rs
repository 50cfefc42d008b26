//! Defects of the controller that the stories have found and that are not mended yet. Each must still be there: when one is
//! mended, its line goes.

use super::Story;
use super::strike::Fault;

/// A story that ends wrongly for a reason that is known.
struct Defect {
    story: &'static str,
    /// With which of the faults.
    faults: &'static [Fault],
    /// A part of the objection.
    says: &'static str,
    why: &'static str,
}

const DEFECTS: &[Defect] = &[
    Defect {
        story: "disabled_and_enabled",
        faults: &[Fault::CrashBefore, Fault::CrashAfter, Fault::StaleStart],
        says: "RecordMissing",
        why: "after a crash between the marks and the record, the next process believes that the marks are there: \
              `RecordMissing` for good",
    },
    Defect {
        story: "orphan",
        faults: &[Fault::CrashBefore, Fault::CrashAfter, Fault::StaleStart],
        says: "it ends with [\"a v0 f0\"]",
        why: "after a crash between the finalizer and the record, what was to be forgotten stays recorded",
    },
    Defect {
        story: "triggered_replacement",
        faults: &[
            Fault::CrashBefore,
            Fault::CrashAfter,
            Fault::StaleStart,
            Fault::CallCrashBefore,
            Fault::CallAnswerLost,
            Fault::CallCrashAfter,
        ],
        says: "\"Created b\", \"Created b\", \"Created b\"",
        why: "while the intent of what triggers it is open, the new object is made, and then replaced once more",
    },
    Defect {
        story: "all_deleted_and_applied_again",
        faults: &Fault::ALL,
        says: "Resource is gone",
        why: "a Resource that was made again while its old record was there uses what is being deleted, and holds it",
    },
    Defect {
        story: "replace_chain_create_first",
        faults: &[Fault::AnswerLost],
        says: "has deposed objects",
        why: "old objects are not destroyed before something else wakes them, at the latest when they are read again",
    },
    Defect {
        story: "lease_lost_while_it_calls",
        faults: &[Fault::AnswerLost],
        says: "has deposed objects",
        why: "old objects are not destroyed before something else wakes them, at the latest when they are read again",
    },
    Defect {
        story: "lost_object_made_again",
        faults: &[Fault::QuestionFails],
        says: "which does not exist",
        why: "a read that was asked for by annotation and failed is not tried again before the interval",
    },
];

/// Those of the stories that are played, and how often each was met.
pub(super) struct Known(Vec<(&'static Defect, usize)>);

impl Known {
    pub(super) fn of(stories: &[&Story]) -> Self {
        let played = |defect: &&Defect| stories.iter().any(|story| story.name == defect.story);
        Self(DEFECTS.iter().filter(played).map(|defect| (defect, 0)).collect())
    }

    /// Whether an objection is about one of them.
    pub(super) fn covers(&mut self, story: &str, fault: Option<Fault>, objection: &str) -> bool {
        let is = |defect: &Defect| {
            defect.story == story
                && fault.is_some_and(|fault| defect.faults.contains(&fault))
                && objection.contains(defect.says)
        };
        let Some((_, count)) = self.0.iter_mut().find(|(defect, _)| is(defect)) else { return false };
        *count += 1;
        true
    }

    pub(super) fn print(&self) {
        for (defect, count) in &self.0 {
            eprintln!("known: {} fails in {count} plays: {}", defect.story, defect.why);
        }
    }

    /// Objects to those that have been mended.
    pub(super) fn check(&self) {
        for (defect, count) in &self.0 {
            assert!(*count > 0, "{} ends well now: take it off the list of known defects", defect.story);
        }
    }
}
