//! Rings among recorded dependencies. Purlin never writes one; a record edited by hand may close one.

use petgraph::algo::kosaraju_scc;
use petgraph::graph::DiGraph;

/// A dependency that is ignored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cut {
    pub(super) dependent: u32,
    pub(super) dependency: u32,
    /// Everybody in the ring, in address order.
    pub(super) ring: Vec<u32>,
}

/// Cuts every ring at its oldest edge, and tells which edges were cut.
///
/// Records carry no time for an edge, but every write of a record raises its version, and a write replaces all of its
/// edges: the oldest edges are those of the record with the lowest version. Among these, as among records of the same
/// version, the first in address order is cut. An object that names itself says nothing and is not told.
pub(super) fn cut_rings(used: &mut [Vec<u32>], versions: &[u64]) -> Vec<Cut> {
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
        let mut rings: Vec<Vec<u32>> = kosaraju_scc(&graph)
            .into_iter()
            .filter(|ring| ring.len() > 1)
            .map(|ring| ring.into_iter().map(|node| node.index() as u32).collect())
            .collect();
        for ring in &mut rings {
            ring.sort_unstable();
        }
        rings.sort_unstable();
        for ring in rings {
            let within = |&to: &u32| ring.binary_search(&to).is_ok();
            let oldest = ring.iter().min_by_key(|&&at| (versions[at as usize], at)).copied().unwrap_or_default();
            let list = &mut used[oldest as usize];
            if let Some(dependency) = list.iter().copied().filter(within).min() {
                list.retain(|&to| to != dependency);
                cuts.push(Cut { dependent: oldest, dependency, ring });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_is_cut_in_the_record_that_was_written_first() {
        let mut used = vec![vec![1], vec![2], vec![0, 2], vec![0]];
        let cuts = cut_rings(&mut used, &[7, 3, 9, 1]);
        assert_eq!(cuts, [Cut { dependent: 1, dependency: 2, ring: vec![0, 1, 2] }]);
        assert_eq!(used, [vec![1], vec![], vec![0], vec![0]]);
    }

    #[test]
    fn rings_that_share_an_object_are_cut_until_none_is_left() {
        let mut used = vec![vec![1, 2], vec![0], vec![0]];
        let cuts = cut_rings(&mut used, &[1, 1, 1]);
        let edges: Vec<_> = cuts.iter().map(|cut| (cut.dependent, cut.dependency)).collect();
        assert_eq!(edges, [(0, 1), (0, 2)]);
    }

    #[test]
    fn records_without_rings_stay_as_they_are() {
        let mut used = vec![vec![], vec![0], vec![0, 1]];
        assert!(cut_rings(&mut used, &[0; 3]).is_empty());
        assert_eq!(used, [vec![], vec![0], vec![0, 1]]);
    }
}
