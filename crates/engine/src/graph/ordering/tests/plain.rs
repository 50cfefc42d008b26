//! A simple and slow implementation of the rules with explicit closures.

use super::super::{Object, Part, Presence, StepRef};

/// The kind of an edge in R6 and R7.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Fixed,
    /// An edge of R5 or R6 for a released object.
    Released(usize),
    /// The last part of R7.
    MayGo,
    /// R7 between two deposed objects.
    Deposed,
}

/// The steps, and the set of steps that each waits for directly or indirectly.
pub struct SimpleOrdering {
    pub steps: Vec<StepRef>,
    pub reach: Vec<u64>,
    pub fallbacks: Vec<bool>,
}

/// Returns the transitive closure of a relation on at most 64 elements.
pub fn closure(direct: &[u64]) -> Vec<u64> {
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

/// The terms of the rules: closures and steps.
pub struct Terms<'a> {
    pub objects: &'a [Object],
    pub wants: Vec<u64>,
    pub used: Vec<u64>,
    pub steps: Vec<StepRef>,
}

impl<'a> Terms<'a> {
    pub fn new(objects: &'a [Object]) -> Self {
        let wanted = objects.iter().enumerate().fold(0, |set, (at, object)| set | u64::from(object.wanted) << at);
        let own = |at: usize| !(1_u64 << at);
        let wants = objects
            .iter()
            .enumerate()
            .map(|(at, object)| if object.wanted { bits(&object.wants) & wanted & own(at) } else { 0 });
        let used = objects.iter().enumerate().map(|(at, object)| bits(&object.used) & own(at));
        let mut steps = Vec::new();
        for (object, at) in objects.iter().zip(0..) {
            let parts = [(object.apply, Part::Apply), (object.remove, Part::Remove)];
            let deposed_pairs = object.deposed.iter().zip(0..).map(|(left, k)| (left.remove, Part::Deposed(k)));
            let there = parts.into_iter().chain(deposed_pairs).filter(|(presence, _)| *presence != Presence::Absent);
            steps.extend(there.map(|(_, part)| StepRef { object: at, part }));
        }
        let (wants, used) = (closure(&wants.collect::<Vec<_>>()), closure(&used.collect::<Vec<_>>()));
        Self { objects, wants, used, steps }
    }

    pub fn wants(&self, b: usize, a: usize) -> bool {
        self.wants[b] >> a & 1 == 1
    }

    pub fn used(&self, b: usize, a: usize) -> bool {
        self.used[b] >> a & 1 == 1
    }

    /// All direct and indirect dependencies of a deposed object.
    pub fn deposed_used(&self, x: usize, k: usize) -> u64 {
        let direct = bits(&self.objects[x].deposed[k].used) & !(1 << x);
        (0..self.objects.len()).filter(|at| direct >> at & 1 == 1).fold(direct, |set, at| set | self.used[at])
    }

    fn step(&self, object: usize, part: Part) -> Option<usize> {
        self.steps.iter().position(|step| *step == StepRef { object: object as u32, part })
    }

    /// `C(x)`, unless it is not ordered.
    pub fn c(&self, x: usize) -> Option<usize> {
        self.step(x, Part::Apply).filter(|_| self.objects[x].apply != Presence::Detached)
    }

    /// `C(x)`, unless it is record-only.
    pub fn change(&self, x: usize) -> Option<usize> {
        self.c(x).filter(|_| !self.objects[x].is_record_only)
    }

    pub fn d(&self, x: usize) -> Option<usize> {
        self.step(x, Part::Remove)
    }

    pub fn deposed(&self, x: usize, k: usize) -> Option<usize> {
        self.step(x, Part::Deposed(k as u32))
    }

    pub fn presence(&self, step: StepRef) -> Presence {
        let object = &self.objects[step.object as usize];
        match step.part {
            Part::Apply => object.apply,
            Part::Remove => object.remove,
            Part::Deposed(k) => object.deposed[k as usize].remove,
        }
    }

    pub fn cbd(&self, x: usize) -> bool {
        self.objects[x].create_before_destroy
    }

    /// B releases A.
    pub fn releases(&self, b: usize, a: usize) -> bool {
        let goes = self.objects[a].remove == Presence::Planned && !self.cbd(a);
        goes && self.used(b, a) && self.c(b).is_some() && !self.wants(b, a)
    }

    /// A is released, and destroyed without a replacement.
    pub fn released_for_good(&self, a: usize) -> bool {
        self.c(a).is_none() && (0..self.objects.len()).any(|b| self.releases(b, a))
    }
}

type Edge = (usize, usize, Kind);

struct EdgeRules<'a> {
    terms: &'a Terms<'a>,
    edges: Vec<Edge>,
}

impl EdgeRules<'_> {
    fn wait(&mut self, from: Option<usize>, to: Option<usize>, kind: Kind) {
        if let (Some(from), Some(to)) = (from, to)
            && self.terms.presence(self.terms.steps[from]) == Presence::Planned
        {
            self.edges.push((from, to, kind));
        }
    }

    fn pairs(&mut self, fallbacks: &[bool]) {
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
            } else if terms.released_for_good(b) && !fallbacks[b] {
                self.wait(terms.d(b), terms.change(a), Kind::Released(b));
            } else {
                self.wait(terms.change(a), terms.d(b), Kind::Fixed);
            }
            if terms.cbd(a) {
                self.wait(terms.d(a), terms.c(b), Kind::Fixed);
            } else if terms.wants(b, a) || (terms.releases(b, a) && fallbacks[a]) {
                self.wait(terms.c(b), terms.d(a), Kind::Fixed);
            } else {
                self.wait(terms.d(a), terms.c(b), Kind::Released(a));
            }
        }
    }

    fn deposed_pairs(&mut self) {
        let terms = self.terms;
        let count = terms.objects.len();
        for (x, k) in (0..count).flat_map(|x| (0..terms.objects[x].deposed.len()).map(move |k| (x, k))) {
            let own = terms.deposed(x, k);
            let used = terms.deposed_used(x, k);
            self.wait(own, terms.c(x), Kind::Fixed);
            for y in (0..count).filter(|y| used >> y & 1 == 1) {
                self.wait(own, terms.change(y), Kind::Fixed);
                self.wait(terms.d(y), own, Kind::Fixed);
                for j in 0..terms.objects[y].deposed.len() {
                    if terms.deposed_used(y, j) >> x & 1 == 0 {
                        self.wait(terms.deposed(y, j), own, Kind::Deposed);
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
pub fn order(objects: &[Object]) -> SimpleOrdering {
    let terms = Terms::new(objects);
    let mut fallbacks = vec![false; objects.len()];
    let mut dropped: Vec<Edge> = Vec::new();
    let mut edges = loop {
        let mut rules = EdgeRules { terms: &terms, edges: Vec::new() };
        rules.pairs(&fallbacks);
        rules.deposed_pairs();
        rules.running();
        let among: Vec<Edge> = rules.edges.iter().filter(|edge| edge.2 == Kind::Deposed).copied().collect();
        let around = reach(terms.steps.len(), &among);
        rules.edges.retain(|edge| {
            let contradicts = edge.2 == Kind::Deposed && around[edge.1] >> edge.0 & 1 == 1;
            !contradicts && !dropped.contains(edge)
        });
        let reach = reach(terms.steps.len(), &rules.edges);
        let inner: Vec<Edge> = rules.edges.iter().filter(|edge| reach[edge.1] >> edge.0 & 1 == 1).copied().collect();
        let may_go: Vec<Edge> = inner.iter().filter(|edge| edge.2 == Kind::MayGo).copied().collect();
        if !may_go.is_empty() {
            dropped.extend(may_go);
            continue;
        }
        let firsts = first_released(&inner, &reach);
        if firsts.is_empty() {
            break rules.edges;
        }
        for object in firsts {
            fallbacks[object] = true;
        }
    };
    new_dependencies(&terms, &mut edges);
    let reach = reach(terms.steps.len(), &edges);
    SimpleOrdering { steps: terms.steps, reach, fallbacks }
}

/// Returns the first released object with an edge in a cycle in each component.
fn first_released(inner: &[Edge], reach: &[u64]) -> Vec<usize> {
    let all: Vec<(usize, usize)> = inner
        .iter()
        .filter_map(|edge| if let Kind::Released(object) = edge.2 { Some((object, edge.0)) } else { None })
        .collect();
    let together = |a: usize, b: usize| a == b || (reach[a] >> b & 1 == 1 && reach[b] >> a & 1 == 1);
    all.iter()
        .filter(|&&(object, node)| all.iter().filter(|other| together(other.1, node)).all(|other| other.0 >= object))
        .map(|first| first.0)
        .collect()
}

/// R9.
fn new_dependencies(terms: &Terms<'_>, edges: &mut Vec<Edge>) {
    let count = terms.objects.len();
    for (x, a) in (0..count).flat_map(|x| (0..count).map(move |a| (x, a))) {
        let object = &terms.objects[x];
        let is_replaced = object.apply == Presence::Planned && object.remove == Presence::Planned;
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
