//! Defects of the controller that the stories have found and that are not mended yet. Each must still be there: when one is
//! mended, its line goes.

use super::Story;
use super::strike::Fault;

/// A story that ends wrongly for a reason that is known.
struct Defect {
    story: &'static str,
    fault: Fault,
    /// A part of the objection.
    says: &'static str,
    why: &'static str,
}

const DEFECTS: &[Defect] = &[];

/// Those of the stories that are played, and how often each was met.
pub(super) struct Known(Vec<(&'static Defect, usize)>);

impl Known {
    pub(super) fn of(stories: &[&Story]) -> Self {
        let played = |defect: &&Defect| stories.iter().any(|story| story.name == defect.story);
        Self(DEFECTS.iter().filter(played).map(|defect| (defect, 0)).collect())
    }

    /// Whether an objection is about one of them.
    pub(super) fn covers(&mut self, story: &str, fault: Option<Fault>, objection: &str) -> bool {
        let is =
            |defect: &Defect| defect.story == story && Some(defect.fault) == fault && objection.contains(defect.says);
        let Some((_, count)) = self.0.iter_mut().find(|(defect, _)| is(defect)) else { return false };
        *count += 1;
        true
    }

    pub(super) fn print(&self) {
        for (defect, count) in &self.0 {
            eprintln!("known: {} with {} fails at {count} places: {}", defect.story, defect.fault, defect.why);
        }
    }

    /// Objects to those that have been mended.
    pub(super) fn check(&self) {
        for (defect, count) in &self.0 {
            assert!(*count > 0, "{} with {} ends well now: take it off the list", defect.story, defect.fault);
        }
    }
}
