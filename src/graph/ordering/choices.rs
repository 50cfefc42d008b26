//! What is decided about rings: which released objects fall back (R6), which edges of leftovers are dropped (R7).

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::draft::Draft;
use super::topology::{Adjacency, NONE, Search};
use super::world::World;
use super::{Because, Edge, FellBack, Part, StepOf, Wait};

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
    /// In the order in which they fell back.
    pub(super) fell_back: Vec<FellBack>,
    /// How many objects were looked at to decide so.
    pub(super) visits: usize,
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
            fell_back: Vec::new(),
            visits: 0,
        }
    }

    pub(super) fn mode(&self, leftover: usize) -> Mode {
        self.modes[leftover]
    }

    pub(super) fn is_dropped(&self, from: u32, to: u32) -> bool {
        self.dropped.contains(&(from, to))
    }

    pub(super) fn has_any_fallen_back(&self) -> bool {
        !self.fell_back.is_empty()
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
    /// First leftovers in rings get their exceptions, which decides nothing. Then orders among leftovers that
    /// contradict each other are dropped, then edges that R7 may drop, all of one component together. Only when no
    /// ring has such an edge, in each component the first released object with an edge in it falls back; in a hurry
    /// all that may be released.
    pub(super) fn revise(&mut self, world: &World<'_>, draft: &Draft, rings: &[Vec<u32>], in_a_hurry: bool) -> bool {
        let inner = Inner::new(draft, rings);
        self.look_closer(world, &inner)
            || self.drop_contradictions(world, &inner)
            || self.drop_edges_of_leftovers(&inner)
            || if in_a_hurry { self.all_fall_back(world, rings) } else { self.first_fall_back(world, &inner, rings) }
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

    /// Leftovers were recorded at different times, so three of them may have used each other in a ring, though no two
    /// did. What they say about each other's order is void then.
    fn drop_contradictions(&mut self, world: &World<'_>, inner: &Inner) -> bool {
        let is_leftover =
            |node: u32| world.steps.get(node as usize).is_some_and(|step| matches!(step.part, Part::Leftover(_)));
        let among = inner.edges.iter().map(|edge| (edge.from, edge.to));
        let among = Adjacency::new(inner.ring_of.len(), among.filter(|&(a, b)| is_leftover(a) && is_leftover(b)));
        let before = self.dropped.len();
        for ring in among.rings() {
            let pairs = ring.iter().flat_map(|&from| among.of(from).iter().map(move |&to| (from, to)));
            self.dropped.extend(pairs.filter(|(_, to)| ring.binary_search(to).is_ok()));
        }
        self.dropped.len() > before
    }

    fn drop_edges_of_leftovers(&mut self, inner: &Inner) -> bool {
        let before = self.dropped.len();
        let may_go = |edge: &&Edge| edge.because == Because::DependentOfSuccessorFirst;
        self.dropped.extend(inner.edges.iter().filter(may_go).map(|edge| (edge.from, edge.to)));
        self.dropped.len() > before
    }

    fn first_fall_back(&mut self, world: &World<'_>, inner: &Inner, rings: &[Vec<u32>]) -> bool {
        let before = self.fell_back.len();
        let mut search = [(); 2].map(|()| Search::new(world.objects.len()));
        for ring in rings {
            let mut edge = |at: u32| Some((at, self.safer_edge(world, inner, at, &mut search)?));
            if let Some((object, to)) = Self::goes(world, ring).find_map(&mut edge) {
                let ring = inner.ring_along(world, world.remove[object as usize], to);
                self.fell_back.push(FellBack { object, ring });
            }
        }
        self.visits += search.iter().map(|search| search.visits).sum::<usize>();
        for fallen in &self.fell_back[before..] {
            self.fallen[fallen.object as usize] = true;
        }
        self.fell_back.len() > before
    }

    /// All that stand in rings, and all for which those that let go of them must be told from those that did not.
    fn all_fall_back(&mut self, world: &World<'_>, rings: &[Vec<u32>]) -> bool {
        let before = self.fell_back.len();
        let in_rings: BTreeSet<u32> = rings.iter().flat_map(|ring| Self::goes(world, ring)).collect();
        for object in 0..world.objects.len() as u32 {
            let is_told_apart = !world.is_released_by_all(object);
            if self.may_be_released(world, object) && (is_told_apart || in_rings.contains(&object)) {
                self.fallen[object as usize] = true;
                self.fell_back.push(FellBack { object, ring: Vec::new() });
            }
        }
        self.fell_back.len() > before
    }

    /// The objects whose `D(x)` is among some nodes, in address order.
    fn goes<'r>(world: &'r World<'_>, nodes: &'r [u32]) -> impl Iterator<Item = u32> + 'r {
        let steps = nodes.iter().filter_map(|&node| world.steps.get(node as usize));
        steps.filter(|step| step.part == Part::Remove).map(|step| step.object)
    }

    fn may_be_released(&self, world: &World<'_>, at: u32) -> bool {
        let goes = world.removes(at) && !world.creates_first(at) && !self.has_fallen_back(at);
        goes && (world.is_released_by_all(at) || world.is_dropped_above[at as usize])
    }

    /// A step in the same component that `D(x)` waits for by R6, or by the released case of R5, whether that edge was
    /// drawn or left out as implied by others.
    fn safer_edge(&self, world: &World<'_>, inner: &Inner, at: u32, search: &mut [Search; 2]) -> Option<u32> {
        if !self.may_be_released(world, at) {
            return None;
        }
        let ring = inner.ring_of[world.remove[at as usize] as usize];
        let in_ring = |step: u32| step != NONE && inner.ring_of[step as usize] == ring;
        let [search, wanting] = search;
        wanting.reachable(&world.wanters, world.wanters.of(at));
        let users = search.reachable(&world.users, world.users.of(at));
        let user = users.into_iter().find(|&user| in_ring(world.make[user as usize]) && !wanting.has(user));
        let used_late = || {
            let used = world.is_released_for_good(at).then(|| search.reachable(&world.used, world.used.of(at)))?;
            used.into_iter().find(|&used| in_ring(world.change(used)))
        };
        user.or_else(used_late).map(|other| world.make[other as usize])
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
        let waits = Adjacency::new(draft.nodes(), edges.iter().map(|edge| (edge.from, edge.to)));
        Self { ring_of, edges, waits }
    }

    /// A shortest ring on which `to` follows `from`, beginning with `from`: its steps, and why each waits for the next.
    fn ring_along(&self, world: &World<'_>, from: u32, to: u32) -> Vec<(StepOf, Wait)> {
        let mut came_from = BTreeMap::new();
        let mut queue = VecDeque::from([to]);
        while let Some(here) = queue.pop_front() {
            if here == from {
                break;
            }
            for &next in self.waits.of(here) {
                if next != to && !came_from.contains_key(&next) {
                    came_from.insert(next, here);
                    queue.push_back(next);
                }
            }
        }
        let mut ring: Vec<u32> = std::iter::successors(Some(from), |node| came_from.get(node).copied()).collect();
        ring.reverse();
        ring.rotate_right(1);
        let onward = (0..ring.len()).map(|at| (ring[at], ring[(at + 1) % ring.len()]));
        onward.filter_map(|(from, to)| Some((*world.steps.get(from as usize)?, self.wait(from, to)))).collect()
    }

    /// Why a node waits for another. The safer edge of an object may have been left out as implied by others.
    fn wait(&self, from: u32, to: u32) -> Wait {
        let edge = self.edges.iter().find(|edge| (edge.from, edge.to) == (from, to));
        edge.map_or(Wait { because: Because::Released, indirect: true }, |edge| Wait {
            because: edge.because,
            indirect: edge.indirect,
        })
    }
}
