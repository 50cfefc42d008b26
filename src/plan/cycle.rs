//! Rings in configuration: objects that refer to each other, so that none can come first.
//!
//! Takes a `Config`, gives each ring with every reference in it and the smallest change found that breaks it.
//! It refuses nothing itself: the planner holds the members and their dependents, everything else proceeds.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::sync::Arc;

use petgraph::algo::kosaraju_scc;
use petgraph::graph::{DiGraph, NodeIndex};

use crate::load::{Config, Family};
use crate::model::{Address, Diagnostic, InstanceKey, Path, Reason};

/// Objects each of which needs, in the end, itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cycle {
    /// Every object of the ring (or of rings that share objects), in address order.
    pub members: Vec<Address>,
    /// Every reference from a member to a member, in the order of the shortest ring first.
    pub links: Vec<Link>,
    /// How many of `links`, from the first, make up one shortest ring.
    pub ring: usize,
    /// The references to take away so that no ring is left: positions in `links`.
    pub fix: Vec<usize>,
}

/// One reference of a ring.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Link {
    /// The object that refers.
    pub dependent: Address,
    /// The object, or the whole family, referred to.
    pub dependency: Address,
    /// The fields that refer to it, from `spec` on.
    pub fields: Vec<Path>,
}

/// Finds every ring among the wanted instances, in the order of their first members.
pub fn find(config: &Config) -> Vec<Cycle> {
    let references = References::of(config);
    let mut cycles: Vec<Cycle> = kosaraju_scc(&references.graph)
        .into_iter()
        .filter(|members| members.len() > 1 || references.graph.contains_edge(members[0], members[0]))
        .map(|members| references.describe(&members))
        .collect();
    cycles.sort_by(|a, b| a.members.cmp(&b.members));
    cycles
}

/// Who refers to whom. A family that is referred to as a whole has a node of its own, which refers to every
/// instance: a thousand dependents of a thousand instances are two thousand edges, not a million.
struct References {
    graph: DiGraph<Address, Vec<Path>>,
}

impl References {
    fn of(config: &Config) -> Self {
        let mut graph = DiGraph::new();
        let mut nodes: BTreeMap<Address, NodeIndex> = BTreeMap::new();
        let wanted = || config.instances.values().filter(|instance| instance.is_wanted());
        for instance in wanted() {
            nodes.insert(instance.address.clone(), graph.add_node(instance.address.clone()));
        }
        // Of a family whose instances are not made out yet, the Resource stands for all of them.
        let open = |family: &&Arc<Family>| family.is_open() && family.shared.is_wanted();
        let open: Vec<&Arc<Family>> = config.families.values().filter(open).collect();
        for family in &open {
            let address = &family.shared.address;
            nodes.insert(address.clone(), graph.add_node(address.clone()));
        }
        for instance in wanted().filter(|instance| instance.address.key != InstanceKey::None) {
            let family = Address::single(instance.address.name.clone());
            let node = *nodes.entry(family.clone()).or_insert_with(|| graph.add_node(family));
            graph.add_edge(node, nodes[&instance.address], Vec::new());
        }
        let of_open: BTreeSet<NodeIndex> = open.iter().map(|family| nodes[&family.shared.address]).collect();
        let is_open = |node: &&NodeIndex| of_open.contains(*node);
        let singles = wanted().map(|instance| (&instance.address, &instance.references));
        let families = open.iter().map(|family| (&family.shared.address, &family.repetition().references));
        for (address, references) in singles.chain(families) {
            let from = nodes[address];
            let mut fields: BTreeMap<NodeIndex, Vec<Path>> = BTreeMap::new();
            for reference in references.iter() {
                let whole = || nodes.get(&Address::single(reference.target.name.clone())).filter(|node| is_open(node));
                if let Some(&to) = nodes.get(&reference.target.spoken()).or_else(whole) {
                    fields.entry(to).or_default().push(reference.at.clone());
                }
            }
            for (to, fields) in fields {
                graph.add_edge(from, to, fields);
            }
        }
        Self { graph }
    }

    /// Tells one strongly connected component.
    fn describe(&self, members: &[NodeIndex]) -> Cycle {
        let component = Component::new(self, members);
        let ring = component.shortest_ring();
        let around: Vec<Arrow> = (0..ring.len()).map(|at| (ring[at], ring[(at + 1) % ring.len()])).collect();
        let is_told = |arrow: &Arrow| !component.is_family[arrow.0];
        let mut arrows: Vec<Arrow> = around.iter().copied().filter(is_told).collect();
        let told_first: BTreeSet<Arrow> = arrows.iter().copied().collect();
        arrows.extend(component.arrows().filter(|arrow| is_told(arrow) && !told_first.contains(arrow)));
        let positions: BTreeMap<Arrow, usize> = arrows.iter().copied().zip(0..).collect();
        let link = |&(from, to): &Arrow| {
            let (from, to) = (component.members[from], component.members[to]);
            let fields = self.graph.find_edge(from, to).map(|edge| self.graph[edge].clone()).unwrap_or_default();
            Link { dependent: self.graph[from].clone(), dependency: self.graph[to].clone(), fields }
        };
        let real = component.members.iter().filter(|&&node| !self.is_family(node));
        Cycle {
            members: real.map(|&node| self.graph[node].clone()).collect(),
            links: arrows.iter().map(link).collect(),
            ring: told_first.len(),
            fix: component.cut(&around).iter().map(|arrow| positions[arrow]).collect(),
        }
    }

    /// Whether the node stands for a family and not for an instance: only such a node's edges have no field.
    fn is_family(&self, node: NodeIndex) -> bool {
        self.graph.edges(node).next().is_some_and(|edge| edge.weight().is_empty())
    }
}

/// From one member of a component to another, by position.
type Arrow = (usize, usize);

/// A strongly connected component, to be taken apart. Members stand in address order.
struct Component {
    members: Vec<NodeIndex>,
    is_family: Vec<bool>,
    outgoing: Vec<Vec<usize>>,
}

impl Component {
    fn new(references: &References, members: &[NodeIndex]) -> Self {
        let graph = &references.graph;
        let mut members = members.to_vec();
        members.sort_by(|&a, &b| graph[a].cmp(&graph[b]).then(a.cmp(&b)));
        let places: BTreeMap<NodeIndex, usize> = members.iter().copied().zip(0..).collect();
        let targets = |&from: &NodeIndex| {
            let mut targets: Vec<usize> = graph.neighbors(from).filter_map(|to| places.get(&to).copied()).collect();
            targets.sort_unstable();
            targets
        };
        let outgoing = members.iter().map(targets).collect();
        let is_family = members.iter().map(|&node| references.is_family(node)).collect();
        Self { members, is_family, outgoing }
    }

    fn arrows(&self) -> impl Iterator<Item = Arrow> + '_ {
        self.outgoing.iter().enumerate().flat_map(|(from, targets)| targets.iter().map(move |&to| (from, to)))
    }

    /// How often something linear may be tried.
    fn tries(&self) -> usize {
        (MOST_WORK / self.arrows().count()).max(1)
    }

    /// A shortest ring, or one that is nearly so when the component is large.
    fn shortest_ring(&self) -> Vec<usize> {
        let rings = (0..self.members.len()).take(self.tries()).filter_map(|start| self.ring_through(start));
        rings.min_by_key(Vec::len).unwrap_or_default()
    }

    /// A shortest ring through a member.
    fn ring_through(&self, start: usize) -> Option<Vec<usize>> {
        let mut came_from: Vec<Option<usize>> = vec![None; self.members.len()];
        let mut queue = VecDeque::from([start]);
        while let Some(here) = queue.pop_front() {
            for &next in &self.outgoing[here] {
                if next == start {
                    let back = |&at: &usize| if at == start { None } else { came_from[at] };
                    let mut ring: Vec<usize> = std::iter::successors(Some(here), back).collect();
                    ring.reverse();
                    return Some(ring);
                }
                if came_from[next].is_none() {
                    came_from[next] = Some(here);
                    queue.push_back(next);
                }
            }
        }
        None
    }

    /// References whose removal breaks every ring: a single one if there is such a one, else a set none of which
    /// could stay. Of a family only the references to it can go.
    fn cut(&self, ring: &[Arrow]) -> Vec<Arrow> {
        let may_go = ring.iter().filter(|arrow| !self.is_family[arrow.0]).take(self.tries());
        if let Some(&arrow) = may_go.into_iter().find(|&&arrow| self.is_acyclic_without(&BTreeSet::from([arrow]))) {
            return vec![arrow];
        }
        let mut away: BTreeSet<Arrow> = BTreeSet::new();
        for (from, to) in self.arrows_back() {
            let into_family = self.arrows().filter(|arrow| self.is_family[from] && arrow.1 == from);
            away.extend(into_family);
            away.extend((!self.is_family[from]).then_some((from, to)));
        }
        for arrow in away.clone().into_iter().rev().take(self.tries()) {
            away.remove(&arrow);
            if !self.is_acyclic_without(&away) {
                away.insert(arrow);
            }
        }
        away.into_iter().collect()
    }

    /// Arrows that lead back to where a walk in depth came from: without them no ring is left.
    fn arrows_back(&self) -> Vec<Arrow> {
        let mut back = Vec::new();
        let mut on_way = vec![false; self.members.len()];
        let mut visited = vec![false; self.members.len()];
        for start in 0..self.members.len() {
            let mut way: Vec<Arrow> = if visited[start] { Vec::new() } else { vec![(start, 0)] };
            while let Some((here, tried)) = way.last_mut() {
                let here = *here;
                (visited[here], on_way[here]) = (true, true);
                let next = self.outgoing[here].get(*tried).copied();
                *tried += 1;
                match next {
                    None => {
                        on_way[here] = false;
                        way.pop();
                    }
                    Some(next) if on_way[next] => back.push((here, next)),
                    Some(next) if visited[next] => {}
                    Some(next) => way.push((next, 0)),
                }
            }
        }
        back
    }

    fn is_acyclic_without(&self, away: &BTreeSet<Arrow>) -> bool {
        let stays = |arrow: &Arrow| !away.contains(arrow);
        let mut open = vec![0_usize; self.members.len()];
        self.arrows().filter(stays).for_each(|(_, to)| open[to] += 1);
        let mut free: Vec<usize> = (0..open.len()).filter(|&at| open[at] == 0).collect();
        let mut done = 0;
        while let Some(here) = free.pop() {
            done += 1;
            for &to in self.outgoing[here].iter().filter(|&&to| stays(&(here, to))) {
                open[to] -= 1;
                if open[to] == 0 {
                    free.push(to);
                }
            }
        }
        done == open.len()
    }
}

/// How many arrows may be looked at in search of the shortest ring or the smallest change: a fraction of a second.
/// A larger component is told with a ring and a change that are good enough.
const MOST_WORK: usize = 1_000_000;

/// How many references a sentence tells before it only counts.
const MOST_TOLD: usize = 12;

impl Cycle {
    /// The error for each member: all of them tell the same ring.
    pub fn diagnostics(&self) -> Vec<Diagnostic> {
        let hint = self.hint();
        let told = |member: &Address| {
            let summary = "it refers to itself in a ring";
            let reason = if self.members.len() == 1 { Reason::SelfReference } else { Reason::DependencyCycle };
            Diagnostic::error(member, reason, summary).because(self.to_string()).hint(hint.clone())
        };
        self.members.iter().map(told).collect()
    }

    /// The smallest change that breaks the ring.
    pub fn hint(&self) -> String {
        let told: Vec<String> = self.fix.iter().take(MOST_TOLD).map(|&at| self.links[at].removal()).collect();
        let more = self.fix.len().saturating_sub(MOST_TOLD);
        let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
        format!("remove {}{rest}", told.join(" and "))
    }
}

impl Link {
    fn fields_text(&self) -> String {
        self.fields.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
    }

    fn removal(&self) -> String {
        format!("the reference of {} to {} ({})", self.dependent, self.dependency, self.fields_text())
    }
}

impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} refers to {} ({})", self.dependent, self.dependency, self.fields_text())
    }
}

impl fmt::Display for Cycle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let told: Vec<String> = self.links.iter().take(MOST_TOLD.max(self.ring)).map(ToString::to_string).collect();
        f.write_str(&told.join(", "))?;
        match self.links.len().saturating_sub(told.len()) {
            0 => Ok(()),
            more => write!(f, ", and {more} more references among {} objects", self.members.len()),
        }
    }
}

#[cfg(test)]
#[path = "cycle/tests.rs"]
mod tests;
