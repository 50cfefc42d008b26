//! Cycles among recorded dependencies. Purlin does not write cycles, but a manually edited record can cause one.

use petgraph::algo::kosaraju_scc;
use petgraph::graph::DiGraph;

/// A recorded dependency that is ignored to break a cycle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IgnoredDependency {
    pub dependent: u32,
    pub dependency: u32,
    /// The objects in the cycle, in address order.
    pub cycle: Vec<u32>,
}

/// Breaks every cycle at its oldest edge, and returns the removed edges.
///
/// Edges have no timestamps, but every write of a record increases its version and replaces all its edges. The oldest
/// edges are therefore those of the record with the lowest version. Among these, and among records with the same
/// version, the first edge in address order is removed. A dependency of an object on itself is removed silently.
pub fn break_cycles(used: &mut [Vec<u32>], versions: &[u64]) -> Vec<IgnoredDependency> {
    for (list, at) in used.iter_mut().zip(0_u32..) {
        list.retain(|&to| to != at);
    }
    let mut cuts = Vec::new();
    loop {
        let edges = used.iter().zip(0_u32..).flat_map(|(list, at)| list.iter().map(move |&to| (at, to)));
        let graph = DiGraph::<(), ()>::from_edges(edges);
        if petgraph::algo::toposort(&graph, None).is_ok() {
            return cuts;
        }
        let mut cycles: Vec<Vec<u32>> = kosaraju_scc(&graph)
            .into_iter()
            .filter(|cycle| cycle.len() > 1)
            .map(|cycle| cycle.into_iter().map(|node| node.index() as u32).collect())
            .collect();
        for cycle in &mut cycles {
            cycle.sort_unstable();
        }
        cycles.sort_unstable();
        for cycle in cycles {
            let oldest = cycle.iter().min_by_key(|&&at| (versions[at as usize], at)).copied().unwrap_or_default();
            let list = &mut used[oldest as usize];
            if let Some(dependency) = list.iter().copied().filter(|to| cycle.binary_search(to).is_ok()).min() {
                list.retain(|&to| to != dependency);
                cuts.push(IgnoredDependency { dependent: oldest, dependency, cycle });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cycle_is_broken_in_the_oldest_record() {
        let mut used = vec![vec![1], vec![2], vec![0, 2], vec![0]];
        let cuts = break_cycles(&mut used, &[7, 3, 9, 1]);
        assert_eq!(cuts, [IgnoredDependency { dependent: 1, dependency: 2, cycle: vec![0, 1, 2] }]);
        assert_eq!(used, [vec![1], vec![], vec![0], vec![0]]);
    }

    #[test]
    fn cycles_that_share_an_object_are_all_broken() {
        let mut used = vec![vec![1, 2], vec![0], vec![0]];
        let cuts = break_cycles(&mut used, &[1, 1, 1]);
        let edges: Vec<_> = cuts.iter().map(|cut| (cut.dependent, cut.dependency)).collect();
        assert_eq!(edges, [(0, 1), (0, 2)]);
    }

    #[test]
    fn records_without_cycles_are_unchanged() {
        let mut used = vec![vec![], vec![0], vec![0, 1]];
        assert!(break_cycles(&mut used, &[0; 3]).is_empty());
        assert_eq!(used, [vec![], vec![0], vec![0, 1]]);
    }
}
