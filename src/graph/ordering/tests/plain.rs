//! The rules as they are written, over closures that are written out. Slow, and obvious.

use super::super::{Object, Part, Presence, StepOf};

/// What an edge is, as far as R6 and R7 ask.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Fixed,
    /// R5 or R6, of a released object.
    Released(usize),
    /// The last part of R7.
    MayGo,
    /// R7 between two leftovers.
    Leftovers,
}

/// The result: the steps, and for each the set of those it waits for in the end.
pub(super) struct Plain {
    pub(super) steps: Vec<StepOf>,
    pub(super) reach: Vec<u64>,
    pub(super) fallen: Vec<bool>,
}

/// Transitive closure of a relation over at most 64 things.
pub(super) fn closure(direct: &[u64]) -> Vec<u64> {
    let mut reach = direct.to_vec();
    for middle in 0..reach.len() {
        for from in 0..reach.len() {
            if reach[from] >> middle & 1 == 1 {
                reach[from] |= reach[middle];
            }
        }
    }
    reach
}

fn bits(items: &[u32]) -> u64 {
    items.iter().fold(0, |set, &item| set | 1 << item)
}

/// The closures and the steps, as the rules name them.
pub(super) struct Terms<'a> {
    pub(super) objects: &'a [Object],
    pub(super) wants: Vec<u64>,
    pub(super) used: Vec<u64>,
    pub(super) steps: Vec<StepOf>,
}

impl<'a> Terms<'a> {
    pub(super) fn new(objects: &'a [Object]) -> Self {
        let wanted = objects.iter().enumerate().fold(0, |set, (at, object)| set | u64::from(object.wanted) << at);
        let own = |at: usize| !(1_u64 << at);
        let wants = objects
            .iter()
            .enumerate()
            .map(|(at, object)| if object.wanted { bits(&object.wants) & wanted & own(at) } else { 0 });
        let used = objects.iter().enumerate().map(|(at, object)| bits(&object.used) & own(at));
        let mut steps = Vec::new();
        for (object, at) in objects.iter().zip(0..) {
            let parts = [(object.make, Part::Make), (object.remove, Part::Remove)];
            let leftovers = object.leftovers.iter().zip(0..).map(|(left, k)| (left.remove, Part::Leftover(k)));
            let there = parts.into_iter().chain(leftovers).filter(|(presence, _)| *presence != Presence::Absent);
            steps.extend(there.map(|(_, part)| StepOf { object: at, part }));
        }
        let (wants, used) = (closure(&wants.collect::<Vec<_>>()), closure(&used.collect::<Vec<_>>()));
        Self { objects, wants, used, steps }
    }

    pub(super) fn wants(&self, b: usize, a: usize) -> bool {
        self.wants[b] >> a & 1 == 1
    }

    pub(super) fn used(&self, b: usize, a: usize) -> bool {
        self.used[b] >> a & 1 == 1
    }

    /// All that a leftover used, itself and through current objects.
    pub(super) fn leftover_used(&self, x: usize, k: usize) -> u64 {
        let direct = bits(&self.objects[x].leftovers[k].used) & !(1 << x);
        (0..self.objects.len()).filter(|at| direct >> at & 1 == 1).fold(direct, |set, at| set | self.used[at])
    }

    fn step(&self, object: usize, part: Part) -> Option<usize> {
        self.steps.iter().position(|step| *step == StepOf { object: object as u32, part })
    }

    /// `C(x)`, unless it is apart.
    pub(super) fn c(&self, x: usize) -> Option<usize> {
        self.step(x, Part::Make).filter(|_| self.objects[x].make != Presence::Apart)
    }

    /// `C(x)`, unless it is record-only.
    pub(super) fn change(&self, x: usize) -> Option<usize> {
        self.c(x).filter(|_| !self.objects[x].only_records)
    }

    pub(super) fn d(&self, x: usize) -> Option<usize> {
        self.step(x, Part::Remove)
    }

    pub(super) fn leftover(&self, x: usize, k: usize) -> Option<usize> {
        self.step(x, Part::Leftover(k as u32))
    }

    pub(super) fn presence(&self, step: StepOf) -> Presence {
        let object = &self.objects[step.object as usize];
        match step.part {
            Part::Make => object.make,
            Part::Remove => object.remove,
            Part::Leftover(k) => object.leftovers[k as usize].remove,
        }
    }

    pub(super) fn cbd(&self, x: usize) -> bool {
        self.objects[x].create_before_destroy
    }

    /// B releases A.
    pub(super) fn releases(&self, b: usize, a: usize) -> bool {
        let goes = self.objects[a].remove == Presence::Planned && !self.cbd(a);
        goes && self.used(b, a) && self.c(b).is_some() && !self.wants(b, a)
    }

    /// A is released and only destroyed.
    pub(super) fn released_for_good(&self, a: usize) -> bool {
        self.c(a).is_none() && (0..self.objects.len()).any(|b| self.releases(b, a))
    }
}

type Edge = (usize, usize, Kind);

struct Drawing<'a> {
    terms: &'a Terms<'a>,
    edges: Vec<Edge>,
}

impl Drawing<'_> {
    fn wait(&mut self, from: Option<usize>, to: Option<usize>, kind: Kind) {
        if let (Some(from), Some(to)) = (from, to)
            && self.terms.presence(self.terms.steps[from]) == Presence::Planned
        {
            self.edges.push((from, to, kind));
        }
    }

    fn pairs(&mut self, fallen: &[bool]) {
        let terms = self.terms;
        let count = terms.objects.len();
        for x in 0..count {
            if terms.cbd(x) {
                self.wait(terms.d(x), terms.c(x), Kind::Fixed);
            } else {
                self.wait(terms.c(x), terms.d(x), Kind::Fixed);
            }
        }
        for (b, a) in (0..count).flat_map(|b| (0..count).map(move |a| (b, a))) {
            if terms.wants(b, a) {
                self.wait(terms.c(b), terms.c(a), Kind::Fixed);
            }
            if !terms.used(b, a) {
                continue;
            }
            self.wait(terms.d(a), terms.d(b), Kind::Fixed);
            if terms.cbd(b) {
                self.wait(terms.d(b), terms.change(a), Kind::Fixed);
            } else if terms.released_for_good(b) && !fallen[b] {
                self.wait(terms.d(b), terms.change(a), Kind::Released(b));
            } else {
                self.wait(terms.change(a), terms.d(b), Kind::Fixed);
            }
            if terms.cbd(a) {
                self.wait(terms.d(a), terms.c(b), Kind::Fixed);
            } else if terms.wants(b, a) || (terms.releases(b, a) && fallen[a]) {
                self.wait(terms.c(b), terms.d(a), Kind::Fixed);
            } else {
                self.wait(terms.d(a), terms.c(b), Kind::Released(a));
            }
        }
    }

    fn leftovers(&mut self) {
        let terms = self.terms;
        let count = terms.objects.len();
        let all = || (0..count).flat_map(|x| (0..terms.objects[x].leftovers.len()).map(move |k| (x, k)));
        for (x, k) in all() {
            let own = terms.leftover(x, k);
            let used = terms.leftover_used(x, k);
            self.wait(own, terms.c(x), Kind::Fixed);
            for y in (0..count).filter(|y| used >> y & 1 == 1) {
                self.wait(own, terms.change(y), Kind::Fixed);
                self.wait(terms.d(y), own, Kind::Fixed);
                for j in 0..terms.objects[y].leftovers.len() {
                    if terms.leftover_used(y, j) >> x & 1 == 0 {
                        self.wait(terms.leftover(y, j), own, Kind::Leftovers);
                    }
                }
            }
            for b in (0..count).filter(|&b| terms.used(b, x) && used >> b & 1 == 0) {
                self.wait(own, terms.change(b), Kind::MayGo);
                self.wait(own, terms.d(b), Kind::MayGo);
            }
        }
    }

    fn running(&mut self) {
        for (at, &step) in self.terms.steps.iter().enumerate() {
            for (other, &running) in self.terms.steps.iter().enumerate() {
                if step.object == running.object && self.terms.presence(running) == Presence::Running {
                    self.wait(Some(at), Some(other), Kind::Fixed);
                }
            }
        }
    }
}

fn reach(count: usize, edges: &[Edge]) -> Vec<u64> {
    let mut direct = vec![0; count];
    for &(from, to, _) in edges {
        direct[from] |= 1 << to;
    }
    closure(&direct)
}

/// Applies the rules.
pub(super) fn order(objects: &[Object]) -> Plain {
    let terms = Terms::new(objects);
    let mut fallen = vec![false; objects.len()];
    let mut gone: Vec<Edge> = Vec::new();
    let mut edges = loop {
        let mut drawing = Drawing { terms: &terms, edges: Vec::new() };
        drawing.pairs(&fallen);
        drawing.leftovers();
        drawing.running();
        let among: Vec<Edge> = drawing.edges.iter().filter(|edge| edge.2 == Kind::Leftovers).copied().collect();
        let around = reach(terms.steps.len(), &among);
        let contradicts = |edge: &Edge| edge.2 == Kind::Leftovers && around[edge.1] >> edge.0 & 1 == 1;
        drawing.edges.retain(|edge| !gone.contains(edge) && !contradicts(edge));
        let reach = reach(terms.steps.len(), &drawing.edges);
        let inner: Vec<Edge> = drawing.edges.iter().filter(|edge| reach[edge.1] >> edge.0 & 1 == 1).copied().collect();
        let may_go: Vec<Edge> = inner.iter().filter(|edge| edge.2 == Kind::MayGo).copied().collect();
        if !may_go.is_empty() {
            gone.extend(may_go);
            continue;
        }
        let firsts = first_released(&inner, &reach);
        if firsts.is_empty() {
            break drawing.edges;
        }
        for object in firsts {
            fallen[object] = true;
        }
    };
    newcomers(&terms, &mut edges);
    let reach = reach(terms.steps.len(), &edges);
    Plain { steps: terms.steps, reach, fallen }
}

/// The first released object with an edge in a ring, of each component.
fn first_released(inner: &[Edge], reach: &[u64]) -> Vec<usize> {
    let released = |edge: &Edge| if let Kind::Released(object) = edge.2 { Some((object, edge.0)) } else { None };
    let all: Vec<(usize, usize)> = inner.iter().filter_map(released).collect();
    let together = |a: usize, b: usize| a == b || (reach[a] >> b & 1 == 1 && reach[b] >> a & 1 == 1);
    let is_first = |&&(object, node): &&(usize, usize)| {
        all.iter().filter(|other| together(other.1, node)).all(|other| other.0 >= object)
    };
    all.iter().filter(is_first).map(|first| first.0).collect()
}

/// R9.
fn newcomers(terms: &Terms<'_>, edges: &mut Vec<Edge>) {
    let count = terms.objects.len();
    for (x, a) in (0..count).flat_map(|x| (0..count).map(move |a| (x, a))) {
        let object = &terms.objects[x];
        let is_replaced = object.make == Presence::Planned && object.remove == Presence::Planned;
        if !is_replaced || terms.cbd(x) || !terms.wants(x, a) || terms.used(x, a) {
            continue;
        }
        if let (Some(remove), Some(make)) = (terms.d(x), terms.c(a))
            && reach(terms.steps.len(), edges)[make] >> remove & 1 == 0
        {
            edges.push((remove, make, Kind::Fixed));
        }
    }
}
