//! Inheritance of the create-before-destroy flag along dependencies.
//!
//! Computes the smallest set that contains every source and, with each member, all its configured and recorded
//! dependencies. The flag only matters when an object is replaced or destroyed.

use std::collections::VecDeque;

/// One object. Positions refer to the slice passed to [`effective`].
#[derive(Clone, Debug, Default)]
pub struct FlagNode {
    /// Configured and not being deleted.
    pub desired: bool,
    /// Has `createBeforeDestroy: true`, or `deletionPolicy: Orphan` and is replaced by this plan.
    pub sets_flag: bool,
    /// The flag in the record of the current object. Ignored for a desired object.
    pub recorded_flag: bool,
    /// The direct dependencies of the configuration.
    pub dependencies: Vec<usize>,
    /// The dependencies in the record of the current object.
    pub recorded_dependencies: Vec<usize>,
    /// The dependencies in the records of the deposed objects.
    pub deposed_dependencies: Vec<usize>,
}

/// The effective flag of each object, and what forces it.
///
/// Chains are computed on demand, because storing them for every object would need quadratic space.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inheritance {
    origins: Vec<Origin>,
}

/// The origin of an object's flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    /// The flag is off.
    Off,
    /// The object is a source itself.
    Own,
    /// The direct dependent at this position forces it.
    From(usize),
}

/// Linear in objects and edges. If several chains force an object, a shortest one is used, and among those the one
/// whose source, and then whose members, come first in the slice.
///
/// Sources are: a desired object that sets the flag; an object that is no longer desired and has the recorded flag; the
/// dependencies of a deposed object, unless something else forces them. The recorded flag of a desired object is not a
/// source, because the flag could never be switched off then.
pub fn effective(nodes: &[FlagNode]) -> Inheritance {
    let mut origins = vec![Origin::Off; nodes.len()];
    let sources = (0..nodes.len()).filter(|&at| match nodes[at].desired {
        true => nodes[at].sets_flag,
        false => nodes[at].recorded_flag,
    });
    spread(nodes, &mut origins, sources);
    // Last, because this origin disappears with the deposed object. Other origins take precedence.
    let named: Vec<usize> = nodes.iter().flat_map(|node| node.deposed_dependencies.iter().copied()).collect();
    spread(nodes, &mut origins, named.into_iter());
    Inheritance { origins }
}

/// Sets the flag for the sources and all their direct and indirect dependencies without one.
fn spread(nodes: &[FlagNode], origins: &mut [Origin], sources: impl Iterator<Item = usize>) {
    let mut queue = VecDeque::new();
    for source in sources {
        if origins[source] == Origin::Off {
            origins[source] = Origin::Own;
            queue.push_back(source);
        }
    }
    while let Some(dependent) = queue.pop_front() {
        let node = &nodes[dependent];
        for &dependency in node.dependencies.iter().chain(&node.recorded_dependencies) {
            if origins[dependency] == Origin::Off {
                origins[dependency] = Origin::From(dependent);
                queue.push_back(dependency);
            }
        }
    }
}

impl Inheritance {
    pub fn len(&self) -> usize {
        self.origins.len()
    }

    pub fn is_empty(&self) -> bool {
        self.origins.is_empty()
    }

    /// Whether the object at this position is create-before-destroy.
    pub fn is_on(&self, at: usize) -> bool {
        self.origins[at] != Origin::Off
    }

    /// The objects that force the flag of the object at `at`, from its direct dependent to the source. Empty if the
    /// flag is off or the object is a source.
    pub fn forced_by(&self, at: usize) -> impl Iterator<Item = usize> + '_ {
        let chain = std::iter::successors(Some(at), move |&here| match self.origins[here] {
            Origin::From(dependent) => Some(dependent),
            Origin::Off | Origin::Own => None,
        });
        chain.skip(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn desired(wants: &[usize]) -> FlagNode {
        FlagNode { desired: true, dependencies: wants.to_vec(), ..FlagNode::default() }
    }

    fn chain(inheritance: &Inheritance, at: usize) -> Option<Vec<usize>> {
        inheritance.is_on(at).then(|| inheritance.forced_by(at).collect())
    }

    #[test]
    fn dependencies_inherit_the_flag_and_dependents_do_not() {
        let nodes = [desired(&[]), FlagNode { sets_flag: true, ..desired(&[0]) }, desired(&[1])];
        let found = effective(&nodes);
        assert_eq!([0, 1, 2].map(|at| chain(&found, at)), [Some(vec![1]), Some(vec![]), None]);
    }

    #[test]
    fn the_flag_follows_records_and_configuration_and_reports_the_shortest_chain() {
        let nodes = [
            desired(&[]),
            FlagNode { recorded_dependencies: vec![0], ..FlagNode::default() },
            desired(&[1]),
            FlagNode { sets_flag: true, recorded_dependencies: vec![2], ..desired(&[]) },
            FlagNode { sets_flag: true, ..desired(&[3, 0]) },
        ];
        let found = effective(&nodes);
        assert_eq!(chain(&found, 1), Some(vec![2, 3]));
        assert_eq!(chain(&found, 0), Some(vec![4]));
        assert_eq!(chain(&found, 3), Some(vec![]));
    }

    #[test]
    fn a_recorded_flag_applies_only_to_an_object_that_is_not_desired() {
        let recorded = FlagNode { recorded_flag: true, recorded_dependencies: vec![1], ..FlagNode::default() };
        let gone = effective(&[recorded.clone(), desired(&[])]);
        assert_eq!((chain(&gone, 0), chain(&gone, 1)), (Some(vec![]), Some(vec![0])));
        let stays = effective(&[FlagNode { desired: true, ..recorded }, desired(&[])]);
        assert_eq!((chain(&stays, 0), chain(&stays, 1)), (None, None));
    }

    #[test]
    fn a_dependency_of_a_deposed_object_is_a_source_and_its_owner_is_not() {
        let nodes = [desired(&[]), FlagNode { deposed_dependencies: vec![0], ..desired(&[]) }];
        let found = effective(&nodes);
        assert_eq!((chain(&found, 0), chain(&found, 1)), (Some(vec![]), None));
    }

    #[test]
    fn a_long_chain_is_found_in_linear_time() {
        let mut nodes: Vec<_> = (0..200_000_usize).map(|at| desired(&[at.saturating_sub(1)])).collect();
        nodes[199_999].sets_flag = true;
        assert_eq!(effective(&nodes).forced_by(0).count(), 199_999);
    }
}
