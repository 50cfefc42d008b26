//! Graph algorithms on compact adjacency lists. This file knows only numbers, no objects, steps or rules.

use petgraph::algo::kosaraju_scc;
use petgraph::graph::DiGraph;

/// No node.
pub const NONE: u32 = u32::MAX;

/// Sorted adjacency lists.
#[derive(Clone, Debug, Default)]
pub struct Adjacency {
    starts: Vec<u32>,
    items: Vec<u32>,
}

impl Adjacency {
    /// Creates the lists from pairs in any order. Duplicates are ignored.
    pub fn new(count: usize, pairs: impl Iterator<Item = (u32, u32)> + Clone) -> Self {
        let mut starts = vec![0; count + 1];
        for (from, _) in pairs.clone() {
            starts[from as usize + 1] += 1;
        }
        for at in 0..count {
            starts[at + 1] += starts[at];
        }
        let mut next = starts.clone();
        let mut items = vec![0; starts[count] as usize];
        for (from, to) in pairs {
            items[next[from as usize] as usize] = to;
            next[from as usize] += 1;
        }
        let mut list = Self { starts, items };
        list.sort_each();
        list
    }

    /// Sorts each list and removes duplicates.
    fn sort_each(&mut self) {
        let mut end = 0;
        for at in 0..self.len() {
            let range = self.starts[at] as usize..self.starts[at + 1] as usize;
            self.starts[at] = end as u32;
            let start = end;
            self.items[range.clone()].sort_unstable();
            for from in range {
                if end == start || self.items[end - 1] != self.items[from] {
                    self.items[end] = self.items[from];
                    end += 1;
                }
            }
        }
        let last = self.len();
        self.starts[last] = end as u32;
        self.items.truncate(end);
    }

    /// The number of nodes.
    pub fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// Returns the successors of a node.
    pub fn of(&self, from: u32) -> &[u32] {
        &self.items[self.starts[from as usize] as usize..self.starts[from as usize + 1] as usize]
    }

    /// Whether the edge exists.
    pub fn has(&self, from: u32, to: u32) -> bool {
        self.of(from).binary_search(&to).is_ok()
    }

    /// Returns all edges, sorted.
    pub fn pairs(&self) -> impl Iterator<Item = (u32, u32)> + Clone + '_ {
        (0..self.len() as u32).flat_map(|from| self.of(from).iter().map(move |&to| (from, to)))
    }

    /// Returns the graph with reversed edges.
    pub fn reversed(&self) -> Self {
        Self::new(self.len(), self.pairs().map(|(from, to)| (to, from)))
    }

    /// Returns the nodes in an order in which successors come first, and the number of sorted nodes. The remaining
    /// nodes are in cycles or lead to cycles, and are sorted by number.
    pub fn targets_first(&self) -> (Vec<u32>, usize) {
        let pointing = self.reversed();
        let mut open: Vec<u32> = (0..self.len() as u32).map(|at| self.of(at).len() as u32).collect();
        let mut order: Vec<u32> = (0..self.len() as u32).filter(|&at| open[at as usize] == 0).collect();
        let mut done = 0;
        while let Some(&here) = order.get(done) {
            done += 1;
            for &next in pointing.of(here) {
                open[next as usize] -= 1;
                if open[next as usize] == 0 {
                    order.push(next);
                }
            }
        }
        order.extend((0..self.len() as u32).filter(|&at| open[at as usize] > 0));
        (order, done)
    }

    /// Returns the strongly connected components with a cycle, each sorted, in the order of their first nodes.
    pub fn cycles(&self) -> Vec<Vec<u32>> {
        let (order, sound) = self.targets_first();
        if sound == order.len() {
            return Vec::new();
        }
        let graph = DiGraph::<(), (), u32>::from_edges(self.pairs());
        let components = kosaraju_scc(&graph).into_iter().map(|component| {
            let mut component: Vec<u32> = component.into_iter().map(|node| node.index() as u32).collect();
            component.sort_unstable();
            component
        });
        let mut cycles: Vec<Vec<u32>> =
            components.filter(|cycle| cycle.len() > 1 || self.has(cycle[0], cycle[0])).collect();
        cycles.sort_unstable();
        cycles
    }
}

/// A search in adjacency lists. Its marks are reused instead of cleared.
#[derive(Debug)]
pub struct Search {
    marks: Vec<u32>,
    round: u32,
    pub stack: Vec<u32>,
    /// The total number of visits, to limit the work.
    pub visits: usize,
}

impl Search {
    pub fn new(count: usize) -> Self {
        Self { marks: vec![0; count], round: 1, stack: Vec::new(), visits: 0 }
    }

    /// Clears all marks.
    pub fn restart(&mut self) {
        self.round += 1;
        self.stack.clear();
    }

    /// Marks a node. Returns whether it was not marked before.
    pub fn visit(&mut self, at: u32) -> bool {
        let new = self.marks[at as usize] != self.round;
        self.marks[at as usize] = self.round;
        self.visits += usize::from(new);
        new
    }

    /// Whether a node is marked.
    pub fn has(&self, at: u32) -> bool {
        self.marks[at as usize] == self.round
    }

    /// Pushes all nodes that are not marked yet.
    pub fn push(&mut self, numbers: &[u32]) {
        for &at in numbers {
            if self.visit(at) {
                self.stack.push(at);
            }
        }
    }

    /// Returns `starts` and all nodes reachable from them, in the order of the search.
    pub fn reachable(&mut self, graph: &Adjacency, starts: &[u32]) -> Vec<u32> {
        self.restart();
        self.push(starts);
        let mut found = Vec::new();
        while let Some(here) = self.stack.pop() {
            found.push(here);
            self.push(graph.of(here));
        }
        found
    }

    /// Whether `target` is reachable from `from`. Returns `None` if the search exceeds its limit. `place` is the
    /// position in an order in which successors come first, so nodes before the target cannot lead to it.
    pub fn reaches(&mut self, graph: &Adjacency, place: &[u32], from: u32, target: u32) -> Option<bool> {
        self.restart();
        self.push(&[from]);
        for _ in 0..SHORT {
            let Some(here) = self.stack.pop() else { return Some(false) };
            if here == target {
                return Some(true);
            }
            if place[here as usize] > place[target as usize] {
                self.push(graph.of(here));
            }
        }
        None
    }
}

/// The maximum number of nodes of a short search. Targets are usually close.
const SHORT: usize = 64;

/// A topological order that is maintained while edges are added (Pearce and Kelly's algorithm). Each addition visits
/// only nodes between its two ends.
#[derive(Debug)]
pub struct Incremental {
    waits: Vec<Vec<u32>>,
    waiting: Vec<Vec<u32>>,
    place: Vec<u32>,
    pub search: Search,
}

impl Incremental {
    /// Starts with a graph without cycles.
    pub fn new(graph: &Adjacency) -> Self {
        let mut place = vec![0; graph.len()];
        for (at, &node) in graph.targets_first().0.iter().enumerate() {
            place[node as usize] = at as u32;
        }
        let reversed = graph.reversed();
        let [waits, waiting] =
            [graph, &reversed].map(|graph| (0..graph.len() as u32).map(|at| graph.of(at).to_vec()).collect());
        Self { waits, waiting, place, search: Search::new(graph.len()) }
    }

    /// Adds an edge, unless it would cause a cycle. Returns whether it was added.
    pub fn add(&mut self, from: u32, to: u32) -> bool {
        let (low, high) = (self.place[from as usize], self.place[to as usize]);
        if from == to {
            return false;
        }
        if low < high {
            let Some(mut needed) = Self::between(&mut self.search, &self.waits, to, |node| {
                (node != from).then_some(self.place[node as usize] > low)
            }) else {
                return false;
            };
            let waiting =
                Self::between(&mut self.search, &self.waiting, from, |node| Some(self.place[node as usize] < high));
            let mut waiting = waiting.unwrap_or_default();
            needed.sort_unstable_by_key(|&node| self.place[node as usize]);
            waiting.sort_unstable_by_key(|&node| self.place[node as usize]);
            needed.append(&mut waiting);
            let mut places: Vec<u32> = needed.iter().map(|&node| self.place[node as usize]).collect();
            places.sort_unstable();
            for (node, place) in needed.into_iter().zip(places) {
                self.place[node as usize] = place;
            }
        }
        self.waits[from as usize].push(to);
        self.waiting[to as usize].push(from);
        true
    }

    /// Returns all nodes reachable from `start` for which `goes_on` is true. Returns `None` if `goes_on` does.
    fn between(
        search: &mut Search,
        lists: &[Vec<u32>],
        start: u32,
        goes_on: impl Fn(u32) -> Option<bool>,
    ) -> Option<Vec<u32>> {
        search.restart();
        search.push(&[start]);
        let mut found = Vec::new();
        while let Some(here) = search.stack.pop() {
            found.push(here);
            for &next in &lists[here as usize] {
                if goes_on(next)? && search.visit(next) {
                    search.stack.push(next);
                }
            }
        }
        Some(found)
    }
}
