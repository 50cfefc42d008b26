//! Rings in configuration: objects that refer to each other, so that none can come first.
//!
//! Takes a `Config`, gives each ring with every reference in it and the smallest change found that breaks it.
//! It refuses nothing itself: the planner holds the members and their dependents, everything else proceeds.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;

use petgraph::algo::kosaraju_scc;
use petgraph::graph::{DiGraph, NodeIndex};

use crate::load::Config;
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
        for instance in wanted().filter(|instance| instance.address.key != InstanceKey::None) {
            let family = Address::single(instance.address.name.clone());
            let node = *nodes.entry(family.clone()).or_insert_with(|| graph.add_node(family));
            graph.add_edge(node, nodes[&instance.address], Vec::new());
        }
        for instance in wanted() {
            let from = nodes[&instance.address];
            let mut fields: BTreeMap<NodeIndex, Vec<Path>> = BTreeMap::new();
            for reference in instance.references.iter() {
                if let Some(&to) = nodes.get(&reference.target) {
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
        let mut inner = Component::new(&self.graph, members);
        let first = inner.shortest_ring();
        inner.edges.sort_by_key(|edge| {
            let place = first.iter().position(|&node| node == edge.0);
            let in_ring = place.is_some_and(|at| first[(at + 1) % first.len()] == edge.1);
            (if in_ring { place.unwrap_or(0) } else { usize::MAX }, self.graph[edge.0].clone())
        });
        let real = |node: &NodeIndex| !self.is_family(*node);
        let mut links: Vec<Link> = Vec::new();
        let mut positions: BTreeMap<(NodeIndex, NodeIndex), usize> = BTreeMap::new();
        let mut ring = 0;
        for &(from, to) in inner.edges.iter().filter(|(from, _)| real(from)) {
            positions.insert((from, to), links.len());
            let at = first.iter().position(|&node| node == from);
            ring += usize::from(at.is_some_and(|at| first[(at + 1) % first.len()] == to));
            let fields = self.graph.find_edge(from, to).map(|edge| self.graph[edge].clone()).unwrap_or_default();
            links.push(Link { dependent: self.graph[from].clone(), dependency: self.graph[to].clone(), fields });
        }
        let fix = inner.smallest_cut(&|node| real(&node)).iter().map(|edge| positions[edge]).collect();
        let mut members: Vec<Address> =
            members.iter().filter(|node| real(node)).map(|&node| self.graph[node].clone()).collect();
        members.sort();
        Cycle { members, links, ring, fix }
    }

    /// Whether the node stands for a family and not for an instance: only such a node's edges have no field.
    fn is_family(&self, node: NodeIndex) -> bool {
        self.graph.edges(node).next().is_some_and(|edge| edge.weight().is_empty())
    }
}

/// A strongly connected component, to be taken apart.
struct Component {
    members: Vec<NodeIndex>,
    edges: Vec<(NodeIndex, NodeIndex)>,
}

impl Component {
    fn new(graph: &DiGraph<Address, Vec<Path>>, members: &[NodeIndex]) -> Self {
        let mut members = members.to_vec();
        members.sort_by(|&a, &b| graph[a].cmp(&graph[b]).then(a.cmp(&b)));
        let inside: BTreeSet<NodeIndex> = members.iter().copied().collect();
        let mut edges = Vec::new();
        for &from in &members {
            let mut targets: Vec<_> = graph.neighbors(from).filter(|to| inside.contains(to)).collect();
            targets.sort_by(|&a, &b| graph[a].cmp(&graph[b]).then(a.cmp(&b)));
            edges.extend(targets.into_iter().map(|to| (from, to)));
        }
        Self { members, edges }
    }

    /// A shortest ring, beginning with the first member in address order that stands in one.
    fn shortest_ring(&self) -> Vec<NodeIndex> {
        let rings = self.members.iter().take(MOST_TRIED).filter_map(|&start| self.ring_through(start, &[]));
        rings.min_by_key(Vec::len).unwrap_or_default()
    }

    /// A shortest ring through a node that uses none of the edges taken away.
    fn ring_through(&self, start: NodeIndex, away: &[(NodeIndex, NodeIndex)]) -> Option<Vec<NodeIndex>> {
        let mut outgoing: BTreeMap<NodeIndex, Vec<NodeIndex>> = BTreeMap::new();
        for edge in self.edges.iter().filter(|edge| !away.contains(edge)) {
            outgoing.entry(edge.0).or_default().push(edge.1);
        }
        let mut came_from = BTreeMap::new();
        let mut queue = VecDeque::from([start]);
        while let Some(here) = queue.pop_front() {
            for &next in outgoing.get(&here).into_iter().flatten() {
                if next == start {
                    let mut ring: Vec<_> =
                        std::iter::successors(Some(here), |node| came_from.get(node).copied()).collect();
                    ring.reverse();
                    return Some(ring);
                }
                if next != start && !came_from.contains_key(&next) {
                    came_from.insert(next, here);
                    queue.push_back(next);
                }
            }
        }
        None
    }

    /// References whose removal breaks every ring: a single one if there is such a one, else rings are broken one
    /// after the other, each at the reference that most rings found so far share, and what proves needless is
    /// put back.
    fn smallest_cut(&self, may_go: &dyn Fn(NodeIndex) -> bool) -> Vec<(NodeIndex, NodeIndex)> {
        let ring = self.shortest_ring();
        let around = (0..ring.len()).map(|at| (ring[at], ring[(at + 1) % ring.len()]));
        if let Some(edge) = around.filter(|edge| may_go(edge.0)).find(|&edge| self.is_acyclic_without(&[edge])) {
            return vec![edge];
        }
        let mut away: Vec<(NodeIndex, NodeIndex)> = Vec::new();
        for &start in &self.members {
            while let Some(ring) = self.ring_through(start, &away) {
                let around = (0..ring.len()).map(|at| (ring[at], ring[(at + 1) % ring.len()]));
                let degree =
                    |edge: &(NodeIndex, NodeIndex)| self.edges.iter().filter(|other| other.1 == edge.1).count();
                // A ring of families alone cannot be: a family's edges lead to its instances only.
                let Some(edge) = around.filter(|edge| may_go(edge.0)).min_by_key(degree) else { return away };
                away.push(edge);
            }
        }
        for at in (0..away.len()).rev() {
            let mut fewer = away.clone();
            fewer.remove(at);
            if self.is_acyclic_without(&fewer) {
                away = fewer;
            }
        }
        away
    }

    fn is_acyclic_without(&self, away: &[(NodeIndex, NodeIndex)]) -> bool {
        let mut graph: DiGraph<(), ()> = DiGraph::new();
        let nodes: BTreeMap<NodeIndex, NodeIndex> = self.members.iter().map(|&m| (m, graph.add_node(()))).collect();
        for edge in self.edges.iter().filter(|edge| !away.contains(edge)) {
            graph.add_edge(nodes[&edge.0], nodes[&edge.1], ());
        }
        petgraph::algo::toposort(&graph, None).is_ok()
    }
}

/// How many members are tried as the start of a shortest ring: each costs a search, and a ring of hundreds is no
/// better told by its shortest part.
const MOST_TRIED: usize = 100;

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
