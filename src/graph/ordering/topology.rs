//! The few graph algorithms that ordering needs, over compact adjacency lists.
//!
//! It knows numbers only: no objects, no steps, no rules.

use petgraph::algo::kosaraju_scc;
use petgraph::graph::DiGraph;

/// Stands for "no node".
pub(super) const NONE: u32 = u32::MAX;

/// Who points at whom: for each number a sorted list of numbers.
#[derive(Clone, Debug, Default)]
pub(super) struct Adjacency {
    starts: Vec<u32>,
    items: Vec<u32>,
}

impl Adjacency {
    /// From pairs in any order; doubled pairs count once.
    pub(super) fn new(count: usize, pairs: impl Iterator<Item = (u32, u32)> + Clone) -> Self {
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

    /// Sorts what each number points at, and closes the gaps that doubles leave.
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

    /// How many numbers there are.
    pub(super) fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// What a number points at.
    pub(super) fn of(&self, from: u32) -> &[u32] {
        &self.items[self.starts[from as usize] as usize..self.starts[from as usize + 1] as usize]
    }

    /// Whether `from` points at `to`.
    pub(super) fn has(&self, from: u32, to: u32) -> bool {
        self.of(from).binary_search(&to).is_ok()
    }

    /// Every pair, sorted.
    pub(super) fn pairs(&self) -> impl Iterator<Item = (u32, u32)> + Clone + '_ {
        (0..self.len() as u32).flat_map(|from| self.of(from).iter().map(move |&to| (from, to)))
    }

    /// The same with every arrow turned round.
    pub(super) fn reversed(&self) -> Self {
        Self::new(self.len(), self.pairs().map(|(from, to)| (to, from)))
    }

    /// Every number after what it points at, and how many of them that holds for: those from there on stand in
    /// rings, or point at such, and come in their own order.
    pub(super) fn targets_first(&self) -> (Vec<u32>, usize) {
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

    /// The strongly connected components that hold a ring, each sorted, in the order of their first members.
    pub(super) fn rings(&self) -> Vec<Vec<u32>> {
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
        let mut rings: Vec<Vec<u32>> = components.filter(|ring| ring.len() > 1 || self.has(ring[0], ring[0])).collect();
        rings.sort_unstable();
        rings
    }
}

/// Searches over adjacency lists, with marks that are reused instead of cleared.
#[derive(Debug)]
pub(super) struct Search {
    marks: Vec<u32>,
    round: u32,
    pub(super) stack: Vec<u32>,
    /// How many visits there were in all, to bound what is spent.
    pub(super) visits: usize,
}

impl Search {
    pub(super) fn new(count: usize) -> Self {
        Self { marks: vec![0; count], round: 1, stack: Vec::new(), visits: 0 }
    }

    /// Forgets what was visited.
    pub(super) fn restart(&mut self) {
        self.round += 1;
        self.stack.clear();
    }

    /// Marks a number; says whether that is new.
    pub(super) fn visit(&mut self, at: u32) -> bool {
        let new = self.marks[at as usize] != self.round;
        self.marks[at as usize] = self.round;
        self.visits += usize::from(new);
        new
    }

    /// Whether a number was visited.
    pub(super) fn has(&self, at: u32) -> bool {
        self.marks[at as usize] == self.round
    }

    /// Puts every number not visited yet on the stack.
    pub(super) fn push(&mut self, numbers: &[u32]) {
        for &at in numbers {
            if self.visit(at) {
                self.stack.push(at);
            }
        }
    }

    /// Everything reachable from `starts`, these included, in the order in which it is found.
    pub(super) fn reachable(&mut self, graph: &Adjacency, starts: &[u32]) -> Vec<u32> {
        self.restart();
        self.push(starts);
        let mut found = Vec::new();
        while let Some(here) = self.stack.pop() {
            found.push(here);
            self.push(graph.of(here));
        }
        found
    }

    /// Whether `target` is reachable from `from`, if a short search can tell. `place` is a place in an order that puts
    /// targets first: nothing placed before the target can lead to it.
    pub(super) fn reaches(&mut self, graph: &Adjacency, place: &[u32], from: u32, target: u32) -> Option<bool> {
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

/// How many numbers a short search looks at: what is asked about is mostly close by.
const SHORT: usize = 64;

/// An order that is kept while arrows are added one by one (Pearce and Kelly's algorithm): each addition looks only
/// at what stands between its two ends.
#[derive(Debug)]
pub(super) struct Incremental {
    waits: Vec<Vec<u32>>,
    waiting: Vec<Vec<u32>>,
    place: Vec<u32>,
    pub(super) search: Search,
}

impl Incremental {
    /// Starts from a graph without rings.
    pub(super) fn new(graph: &Adjacency) -> Self {
        let mut place = vec![0; graph.len()];
        for (at, &node) in graph.targets_first().0.iter().enumerate() {
            place[node as usize] = at as u32;
        }
        let lists = |graph: &Adjacency| (0..graph.len() as u32).map(|at| graph.of(at).to_vec()).collect();
        Self { waits: lists(graph), waiting: lists(&graph.reversed()), place, search: Search::new(graph.len()) }
    }

    /// Adds `from` waits for `to`, unless that would close a ring. Says whether it was added.
    pub(super) fn add(&mut self, from: u32, to: u32) -> bool {
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

    /// Everything reachable from `start` that `goes_on` lets through; nothing at all when it answers `None`.
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
