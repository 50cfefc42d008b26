//! Decisions about cycles: the fallback of R6, and the edges of deposed objects that R7 drops.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::builder::GraphBuilder;
use super::relations::Relations;
use super::topology::{Adjacency, NONE, Search};
use super::{Edge, EdgeReason, Fallback, Part, StepRef, Wait};

/// How the last part of R7 is applied to a deposed object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeposedMode {
    /// With junctions and without exceptions. Where an exception applies (the deposed object depended on a current
    /// dependent of its object), both directions are added and cause a cycle. Without a cycle, there is no exception.
    Chained,
    /// With separate edges for each dependent and with exceptions, so that single edges can be dropped.
    Individual,
}

#[derive(Clone, Debug)]
pub struct Decisions {
    has_fallback: Vec<bool>,
    modes: Vec<DeposedMode>,
    dropped: BTreeSet<(u32, u32)>,
    wants_places: Vec<u32>,
    /// In the order of the decisions.
    pub fallbacks: Vec<Fallback>,
    /// The number of visited objects.
    pub visits: usize,
}

impl Decisions {
    pub fn new(relations: &Relations<'_>) -> Self {
        let mut wants_places = vec![0; relations.objects.len()];
        for (&at, place) in relations.wants_order.iter().zip(0..) {
            wants_places[at as usize] = place;
        }
        Self {
            has_fallback: vec![false; relations.objects.len()],
            modes: vec![DeposedMode::Chained; relations.deposed.len()],
            dropped: BTreeSet::new(),
            wants_places,
            fallbacks: Vec::new(),
            visits: 0,
        }
    }

    pub fn mode(&self, deposed: usize) -> DeposedMode {
        self.modes[deposed]
    }

    pub fn is_dropped(&self, from: u32, to: u32) -> bool {
        self.dropped.contains(&(from, to))
    }

    pub fn has_fallbacks(&self) -> bool {
        !self.fallbacks.is_empty()
    }

    pub fn is_fallback(&self, at: u32) -> bool {
        self.has_fallback[at as usize]
    }

    /// Whether R4 applies to `D(x)` as for create-before-destroy: the object is kept until its recorded dependencies
    /// have changed.
    pub fn is_destroyed_late(&self, relations: &Relations<'_>, at: u32) -> bool {
        relations.remove[at as usize] != NONE
            && (relations.creates_first(at) || (relations.is_destroyed_after_release(at) && !self.is_fallback(at)))
    }

    /// Whether `D(x)` waits for `C(x)`, if it exists, and for `C` of all recorded dependents of x. A step that waits
    /// for this `D(x)` needs no edges to them.
    pub fn waits_for_all_users(&self, relations: &Relations<'_>, at: u32) -> bool {
        let is_all_released = relations.is_released_by_all(at) && relations.apply[at as usize] == NONE;
        relations.has_remove(at) && (relations.creates_first(at) || (is_all_released && !self.is_fallback(at)))
    }

    /// Returns the position of each object in an order in which desired dependencies come first.
    pub fn wants_places(&self) -> &[u32] {
        &self.wants_places
    }

    /// Makes further decisions for a graph with cycles. Returns whether there was any decision; if not, the cycles
    /// remain.
    ///
    /// First, deposed objects in cycles get their exceptions. Then contradicting edges between deposed objects are
    /// dropped, then edges that R7 can drop, all of one component together. Only if no cycle has such an edge, the
    /// first released object in each component falls back to the usual order; in a hurry, all of them do.
    pub fn revise(
        &mut self,
        relations: &Relations<'_>,
        builder: &GraphBuilder,
        cycles: &[Vec<u32>],
        in_a_hurry: bool,
    ) -> bool {
        let inner = CycleEdges::new(builder, cycles);
        self.expand_chains(relations, &inner)
            || self.drop_contradictions(relations, &inner)
            || self.drop_deposed_edges(&inner)
            || if in_a_hurry {
                self.add_all_fallbacks(relations, cycles)
            } else {
                self.add_first_fallbacks(relations, &inner, cycles)
            }
    }

    fn expand_chains(&mut self, relations: &Relations<'_>, inner: &CycleEdges) -> bool {
        let mut changed = false;
        for (mode, left) in self.modes.iter_mut().zip(&relations.deposed) {
            if *mode == DeposedMode::Chained && inner.component_of[left.node as usize] != NONE {
                *mode = DeposedMode::Individual;
                changed = true;
            }
        }
        changed
    }

    /// Deposed objects were recorded at different times, so three of them can depend on each other in a cycle, although
    /// no two of them do. Edges between them are dropped in this case.
    fn drop_contradictions(&mut self, relations: &Relations<'_>, inner: &CycleEdges) -> bool {
        let among = inner
            .edges
            .iter()
            .map(|edge| (edge.from, edge.to))
            .filter(|&(from, to)| relations.is_deposed(from) && relations.is_deposed(to));
        let among = Adjacency::new(inner.component_of.len(), among);
        let before = self.dropped.len();
        for cycle in among.cycles() {
            let pairs = cycle.iter().flat_map(|&from| among.of(from).iter().map(move |&to| (from, to)));
            self.dropped.extend(pairs.filter(|(_, to)| cycle.binary_search(to).is_ok()));
        }
        self.dropped.len() > before
    }

    fn drop_deposed_edges(&mut self, inner: &CycleEdges) -> bool {
        let before = self.dropped.len();
        let optional = inner.edges.iter().filter(|edge| edge.reason == EdgeReason::DependentOfSuccessorFirst);
        self.dropped.extend(optional.map(|edge| (edge.from, edge.to)));
        self.dropped.len() > before
    }

    fn add_first_fallbacks(&mut self, relations: &Relations<'_>, inner: &CycleEdges, cycles: &[Vec<u32>]) -> bool {
        let before = self.fallbacks.len();
        let mut search = [(); 2].map(|()| Search::new(relations.objects.len()));
        for cycle in cycles {
            let edge = Self::removed_objects(relations, cycle)
                .find_map(|at| Some((at, self.safer_edge(relations, inner, at, &mut search)?)));
            if let Some((object, to)) = edge {
                let cycle = inner.shortest_cycle(relations, relations.remove[object as usize], to);
                self.fallbacks.push(Fallback { object, cycle });
            }
        }
        self.visits += search.iter().map(|search| search.visits).sum::<usize>();
        for fallback in &self.fallbacks[before..] {
            self.has_fallback[fallback.object as usize] = true;
        }
        self.fallbacks.len() > before
    }

    /// Applies the fallback to all released objects that are in cycles or that still have desired dependents.
    fn add_all_fallbacks(&mut self, relations: &Relations<'_>, cycles: &[Vec<u32>]) -> bool {
        let before = self.fallbacks.len();
        let in_cycles: BTreeSet<u32> =
            cycles.iter().flat_map(|cycle| Self::removed_objects(relations, cycle)).collect();
        for object in 0..relations.objects.len() as u32 {
            let is_distinct = !relations.is_released_by_all(object);
            if self.can_be_released(relations, object) && (is_distinct || in_cycles.contains(&object)) {
                self.has_fallback[object as usize] = true;
                self.fallbacks.push(Fallback { object, cycle: Vec::new() });
            }
        }
        self.fallbacks.len() > before
    }

    /// Returns the objects whose `D(x)` is among the nodes, in address order.
    fn removed_objects<'r>(relations: &'r Relations<'_>, nodes: &'r [u32]) -> impl Iterator<Item = u32> + 'r {
        let steps = nodes.iter().filter_map(|&node| relations.steps.get(node as usize));
        steps.filter(|step| step.part == Part::Remove).map(|step| step.object)
    }

    fn can_be_released(&self, relations: &Relations<'_>, at: u32) -> bool {
        let goes = relations.has_remove(at) && !relations.creates_first(at) && !self.is_fallback(at);
        goes && (relations.is_released_by_all(at) || relations.has_removed_dependency_above[at as usize])
    }

    /// Returns a step in the same component that `D(x)` waits for by R6 or by the released case of R5, even if the edge
    /// was omitted because others imply it.
    fn safer_edge(
        &self,
        relations: &Relations<'_>,
        inner: &CycleEdges,
        at: u32,
        search: &mut [Search; 2],
    ) -> Option<u32> {
        if !self.can_be_released(relations, at) {
            return None;
        }
        let remove = relations.remove[at as usize];
        let [search, wanting] = search;
        wanting.reachable(&relations.wanters, relations.wanters.of(at));
        let users = search.reachable(&relations.users, relations.users.of(at));
        let mut user =
            users.into_iter().find(|&user| inner.share(remove, relations.apply[user as usize]) && !wanting.has(user));
        if user.is_none() && relations.is_destroyed_after_release(at) {
            let used = search.reachable(&relations.used, relations.used.of(at));
            user = used.into_iter().find(|&used| inner.share(remove, relations.change(used)));
        }
        user.map(|object| relations.apply[object as usize])
    }
}

/// The edges in strongly connected components.
struct CycleEdges {
    component_of: Vec<u32>,
    edges: Vec<Edge>,
    waits: Adjacency,
}

impl CycleEdges {
    fn new(builder: &GraphBuilder, cycles: &[Vec<u32>]) -> Self {
        let mut component_of = vec![NONE; builder.nodes()];
        for (cycle, at) in cycles.iter().zip(0..) {
            for &node in cycle {
                component_of[node as usize] = at;
            }
        }
        let mut edges: Vec<Edge> = Vec::new();
        for edge in &builder.edges {
            let cycle = component_of[edge.from as usize];
            if cycle != NONE && cycle == component_of[edge.to as usize] {
                edges.push(*edge);
            }
        }
        let waits = Adjacency::new(builder.nodes(), edges.iter().map(|edge| (edge.from, edge.to)));
        Self { component_of, edges, waits }
    }

    /// Whether `step` exists and is in the same component as `other`.
    fn share(&self, other: u32, step: u32) -> bool {
        step != NONE && self.component_of[step as usize] == self.component_of[other as usize]
    }

    /// Returns a shortest cycle with the edge from `from` to `to`: its steps, and why each waits for the next one.
    fn shortest_cycle(&self, relations: &Relations<'_>, from: u32, to: u32) -> Vec<(StepRef, Wait)> {
        let mut previous = BTreeMap::new();
        let mut queue = VecDeque::from([to]);
        while let Some(here) = queue.pop_front() {
            if here == from {
                break;
            }
            for &next in self.waits.of(here) {
                if next != to && !previous.contains_key(&next) {
                    previous.insert(next, here);
                    queue.push_back(next);
                }
            }
        }
        let mut cycle: Vec<u32> = std::iter::successors(Some(from), |node| previous.get(node).copied()).collect();
        cycle.reverse();
        cycle.rotate_right(1);
        let onward = (0..cycle.len()).map(|at| (cycle[at], cycle[(at + 1) % cycle.len()]));
        onward.filter_map(|(from, to)| Some((*relations.steps.get(from as usize)?, self.wait(from, to)))).collect()
    }

    /// Returns the reason of an edge. The safer edge of an object can be omitted because others imply it.
    fn wait(&self, from: u32, to: u32) -> Wait {
        let edge = self.edges.iter().find(|edge| (edge.from, edge.to) == (from, to));
        edge.map_or(Wait { reason: EdgeReason::Released, indirect: true }, |edge| Wait {
            reason: edge.reason,
            indirect: edge.indirect,
        })
    }
}
