//! What is decided about rings: which released objects fall back (R6), which edges of leftovers are dropped (R7).

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::draft::Draft;
use super::topology::{Adjacency, NONE};
use super::world::World;
use super::{Because, Edge, FellBack};

/// How the last part of R7 is drawn for a leftover.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// With junctions and without its exceptions. Wherever an exception applies (the leftover itself used what now
    /// uses its object) both directions are drawn, so there is a ring: a leftover that stands in none has none.
    Chained,
    /// Dependent by dependent, with the exceptions, so that single edges can be dropped.
    OneByOne,
}

/// The decisions so far.
#[derive(Clone, Debug)]
pub(super) struct Choices {
    fallen: Vec<bool>,
    modes: Vec<Mode>,
    dropped: BTreeSet<(u32, u32)>,
    wants_places: Vec<u32>,
}

impl Choices {
    pub(super) fn new(world: &World<'_>) -> Self {
        let mut wants_places = vec![0; world.objects.len()];
        for (&at, place) in world.wants_order.iter().zip(0..) {
            wants_places[at as usize] = place;
        }
        Self {
            fallen: vec![false; world.objects.len()],
            modes: vec![Mode::Chained; world.leftovers.len()],
            dropped: BTreeSet::new(),
            wants_places,
        }
    }

    pub(super) fn mode(&self, leftover: usize) -> Mode {
        self.modes[leftover]
    }

    pub(super) fn is_dropped(&self, from: u32, to: u32) -> bool {
        self.dropped.contains(&(from, to))
    }

    pub(super) fn has_fallen_back(&self, at: u32) -> bool {
        self.fallen[at as usize]
    }

    /// Whether `D(x)` takes the create-before-destroy line of R4: the object stays until what it used has changed.
    pub(super) fn goes_late(&self, world: &World<'_>, at: u32) -> bool {
        world.remove[at as usize] != NONE
            && (world.creates_first(at) || (world.is_released_for_good(at) && !self.has_fallen_back(at)))
    }

    /// Whether `D(x)` waits for `C(x)`, if there is one, and for `C` of whatever used x: whoever waits for that `D`
    /// needs not wait for these.
    pub(super) fn waits_for_all_above(&self, world: &World<'_>, at: u32) -> bool {
        let is_all_released = world.is_released_by_all(at) && world.make[at as usize] == NONE;
        world.removes(at) && (world.creates_first(at) || (is_all_released && !self.has_fallen_back(at)))
    }

    /// Each object's place in an order in which whatever an object wants stands before it.
    pub(super) fn wants_places(&self) -> &[u32] {
        &self.wants_places
    }

    /// Decides anew, given a graph with rings. Says whether anything was decided: if not, the rules cannot help.
    ///
    /// First leftovers in rings get their exceptions, which decides nothing. Then edges that R7 may drop are dropped,
    /// all of one component together. Only when no ring has such an edge, in each component the first released
    /// object with an edge in it falls back.
    pub(super) fn revise(
        &mut self,
        world: &World<'_>,
        draft: &Draft,
        rings: &[Vec<u32>],
        fell_back: &mut Vec<FellBack>,
    ) -> bool {
        let inner = Inner::new(draft, rings);
        let exact = self.look_closer(world, &inner);
        exact || self.drop_edges_of_leftovers(&inner) || self.fall_back(world, &inner, rings.len(), fell_back)
    }

    fn look_closer(&mut self, world: &World<'_>, inner: &Inner) -> bool {
        let mut changed = false;
        for (mode, left) in self.modes.iter_mut().zip(&world.leftovers) {
            if *mode == Mode::Chained && inner.ring_of[left.node as usize] != NONE {
                *mode = Mode::OneByOne;
                changed = true;
            }
        }
        changed
    }

    fn drop_edges_of_leftovers(&mut self, inner: &Inner) -> bool {
        let before = self.dropped.len();
        let may_go = |edge: &&Edge| edge.because == Because::DependentOfSuccessorFirst;
        self.dropped.extend(inner.edges.iter().filter(may_go).map(|edge| (edge.from, edge.to)));
        self.dropped.len() > before
    }

    fn fall_back(&mut self, world: &World<'_>, inner: &Inner, rings: usize, fell_back: &mut Vec<FellBack>) -> bool {
        let mut first: Vec<Option<(u32, &Edge)>> = vec![None; rings];
        for edge in &inner.edges {
            let Some(step) = world.steps.get(edge.from as usize) else { continue };
            let is_late = edge.because == Because::DependencyChangesFirst && !world.creates_first(step.object);
            let first = &mut first[inner.ring_of[edge.from as usize] as usize];
            if (edge.because == Because::Released || is_late) && first.is_none_or(|(object, _)| step.object < object) {
                *first = Some((step.object, edge));
            }
        }
        for (object, edge) in first.iter().flatten() {
            self.fallen[*object as usize] = true;
            let ring = inner.ring_along(edge);
            let ring = ring.into_iter().filter_map(|node| world.steps.get(node as usize).copied()).collect();
            fell_back.push(FellBack { object: *object, ring });
        }
        first.iter().any(Option::is_some)
    }
}

/// The edges inside of strongly connected components.
struct Inner {
    ring_of: Vec<u32>,
    edges: Vec<Edge>,
    waits: Adjacency,
}

impl Inner {
    fn new(draft: &Draft, rings: &[Vec<u32>]) -> Self {
        let mut ring_of = vec![NONE; draft.nodes()];
        for (ring, at) in rings.iter().zip(0..) {
            for &node in ring {
                ring_of[node as usize] = at;
            }
        }
        let is_inner = |edge: &&Edge| {
            let ring = ring_of[edge.from as usize];
            ring != NONE && ring == ring_of[edge.to as usize]
        };
        let edges: Vec<Edge> = draft.edges.iter().filter(is_inner).copied().collect();
        let waits = Adjacency::new(draft.nodes(), edges.iter().map(|edge| (edge.from, edge.to)).collect());
        Self { ring_of, edges, waits }
    }

    /// A shortest ring that goes along an edge, from its waiting end on.
    fn ring_along(&self, edge: &Edge) -> Vec<u32> {
        let mut came_from = BTreeMap::new();
        let mut queue = VecDeque::from([edge.to]);
        while let Some(here) = queue.pop_front() {
            if here == edge.from {
                break;
            }
            for &next in self.waits.of(here) {
                if next != edge.to && !came_from.contains_key(&next) {
                    came_from.insert(next, here);
                    queue.push_back(next);
                }
            }
        }
        let mut ring: Vec<u32> =
            std::iter::successors(Some(edge.from), |node| came_from.get(node).copied()).collect();
        ring.reverse();
        ring.rotate_right(1);
        ring
    }
}
