//! Who is create-before-destroy, and because of whom.
//!
//! Takes what every object wants, what its record used and which flags there are; gives the least set that has
//! every source and, with each member, everything that the member wants or used. It does not decide what happens
//! to anybody: a flag only matters once the object is replaced or destroyed.

use std::collections::VecDeque;

/// One object, as the rule sees it. Positions are positions in the slice given to [`effective`].
#[derive(Clone, Debug, Default)]
pub struct Subject {
    /// Wanted: configured and not being deleted.
    pub wanted: bool,
    /// Wanted with `createBeforeDestroy: true`, or wanted with `deletionPolicy: Orphan` and replaced by this plan.
    pub asks: bool,
    /// The flag in the record of its current object. Counts only when it is no longer wanted.
    pub recorded_flag: bool,
    /// What its configuration refers to directly.
    pub wants: Vec<usize>,
    /// What the record of its current object names.
    pub used: Vec<usize>,
    /// What the records of its leftovers name.
    pub leftovers_used: Vec<usize>,
}

/// The effective flag of each object, and what forces it.
///
/// Chains are told on demand: written out for every object they would need quadratic space in a long chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inheritance {
    origins: Vec<Origin>,
}

/// Where an object's flag comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    /// It is off.
    Off,
    /// The object is a source itself.
    Own,
    /// The direct dependent at this position forces it.
    From(usize),
}

/// Finds the least set. Linear in objects and edges. Among several chains that force an object a shortest one is
/// told; among those the one whose source, and then whose members, stand first in the slice.
///
/// Sources are: an object that asks; an object no longer wanted whose record has the flag; whatever a leftover's
/// record names, unless something else forces it. The recorded flag of a wanted object is no source, or it could never be switched off.
pub fn effective(subjects: &[Subject]) -> Inheritance {
    let mut origins = vec![Origin::Off; subjects.len()];
    let is_source = |subject: &Subject| (subject.wanted && subject.asks) || (!subject.wanted && subject.recorded_flag);
    spread(subjects, &mut origins, (0..subjects.len()).filter(|&at| is_source(&subjects[at])));
    // Last, since this reason goes with the leftover: any other one stays.
    let named: Vec<usize> = subjects.iter().flat_map(|subject| subject.leftovers_used.iter().copied()).collect();
    spread(subjects, &mut origins, named.into_iter());
    Inheritance { origins }
}

/// Makes the given ones sources, and gives the flag to all that they lead to and that have none yet.
fn spread(subjects: &[Subject], origins: &mut [Origin], sources: impl Iterator<Item = usize>) {
    let mut queue = VecDeque::new();
    for source in sources {
        if origins[source] == Origin::Off {
            origins[source] = Origin::Own;
            queue.push_back(source);
        }
    }
    while let Some(dependent) = queue.pop_front() {
        let subject = &subjects[dependent];
        for &dependency in subject.wants.iter().chain(&subject.used) {
            if origins[dependency] == Origin::Off {
                origins[dependency] = Origin::From(dependent);
                queue.push_back(dependency);
            }
        }
    }
}

impl Inheritance {
    /// How many objects there are.
    pub fn len(&self) -> usize {
        self.origins.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.origins.is_empty()
    }

    /// Whether the object at this position is create-before-destroy.
    pub fn is_on(&self, at: usize) -> bool {
        self.origins[at] != Origin::Off
    }

    /// The objects that force the flag of the object at `at`, from its direct dependent to the one that is a
    /// source itself. Nothing when the flag is off or the object is a source.
    pub fn forced_by(&self, at: usize) -> impl Iterator<Item = usize> + '_ {
        let next = move |here: usize| match self.origins[here] {
            Origin::From(dependent) => Some(dependent),
            Origin::Off | Origin::Own => None,
        };
        std::iter::successors(next(at), move |&here| next(here))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(wants: &[usize]) -> Subject {
        Subject { wanted: true, wants: wants.to_vec(), ..Subject::default() }
    }

    fn chain(inheritance: &Inheritance, at: usize) -> Option<Vec<usize>> {
        inheritance.is_on(at).then(|| inheritance.forced_by(at).collect())
    }

    #[test]
    fn the_flag_goes_down_to_dependencies_and_not_up_to_dependents() {
        let subjects = [wanted(&[]), Subject { asks: true, ..wanted(&[0]) }, wanted(&[1])];
        let found = effective(&subjects);
        assert_eq!([0, 1, 2].map(|at| chain(&found, at)), [Some(vec![1]), Some(vec![]), None]);
    }

    #[test]
    fn it_goes_over_records_and_configuration_in_turn_and_tells_the_shortest_chain() {
        let subjects = [
            wanted(&[]),
            Subject { used: vec![0], ..Subject::default() },
            wanted(&[1]),
            Subject { asks: true, used: vec![2], ..wanted(&[]) },
            Subject { asks: true, ..wanted(&[3, 0]) },
        ];
        let found = effective(&subjects);
        assert_eq!(chain(&found, 1), Some(vec![2, 3]));
        assert_eq!(chain(&found, 0), Some(vec![4]));
        assert_eq!(chain(&found, 3), Some(vec![]));
    }

    #[test]
    fn a_recorded_flag_counts_only_for_what_is_no_longer_wanted() {
        let recorded = Subject { recorded_flag: true, used: vec![1], ..Subject::default() };
        let gone = effective(&[recorded.clone(), wanted(&[])]);
        assert_eq!((chain(&gone, 0), chain(&gone, 1)), (Some(vec![]), Some(vec![0])));
        let stays = effective(&[Subject { wanted: true, ..recorded }, wanted(&[])]);
        assert_eq!((chain(&stays, 0), chain(&stays, 1)), (None, None));
    }

    #[test]
    fn what_a_leftover_used_is_a_source_and_the_leftovers_object_is_not() {
        let subjects = [wanted(&[]), Subject { leftovers_used: vec![0], ..wanted(&[]) }];
        let found = effective(&subjects);
        assert_eq!((chain(&found, 0), chain(&found, 1)), (Some(vec![]), None));
    }

    #[test]
    fn a_long_chain_is_found_in_linear_time() {
        let mut subjects: Vec<_> = (0..200_000_usize).map(|at| wanted(&[at.saturating_sub(1)])).collect();
        subjects[199_999].asks = true;
        assert_eq!(effective(&subjects).forced_by(0).count(), 199_999);
    }
}
