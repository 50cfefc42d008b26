//! Finds dependency cycles in the configuration.
//!
//! Returns each cycle with all its references and the smallest change found that breaks it. The planner blocks the
//! members and their dependents; all other objects proceed.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::sync::Arc;

use petgraph::algo::kosaraju_scc;
use petgraph::graph::{DiGraph, NodeIndex};

use crate::load::{Config, Family, Instance};
use model::{Address, Diagnostic, InstanceKey, Path, Reason};

/// Objects that depend on themselves, directly or indirectly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cycle {
    /// Every object of the cycle, or of cycles that share objects, in address order.
    pub members: Vec<Address>,
    /// Every reference between members. The references of the shortest cycle come first.
    pub links: Vec<Link>,
    /// How many of the first `links` form the shortest cycle.
    pub shortest_len: usize,
    /// The references to remove to break all cycles, as positions in `links`.
    pub fix: Vec<usize>,
}

/// One reference of a cycle.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Link {
    pub dependent: Address,
    /// An object or a whole family.
    pub dependency: Address,
    /// The fields of the references, with absolute paths.
    pub fields: Vec<Path>,
}

/// Finds every cycle among the desired instances, in the order of their first members.
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

/// The reference graph. A family that is referenced as a whole has a separate node with an edge to every instance, so
/// that a thousand dependents of a thousand instances need two thousand edges, not a million.
struct References {
    graph: DiGraph<Address, Vec<Path>>,
}

impl References {
    fn of(config: &Config) -> Self {
        let mut graph = DiGraph::new();
        let mut nodes: BTreeMap<Address, NodeIndex> = BTreeMap::new();
        for instance in desired_instances(config) {
            nodes.insert(instance.address.clone(), graph.add_node(instance.address.clone()));
        }
        // If the instances of a family are not known yet, the Resource represents all of them.
        let open: Vec<&Arc<Family>> =
            config.families.values().filter(|family| family.is_pending() && family.shared.is_desired()).collect();
        for family in &open {
            let address = &family.shared.address;
            nodes.insert(address.clone(), graph.add_node(address.clone()));
        }
        for instance in desired_instances(config).filter(|instance| instance.address.key != InstanceKey::None) {
            let family = Address::single(instance.address.stem.clone());
            let node = *nodes.entry(family.clone()).or_insert_with(|| graph.add_node(family));
            graph.add_edge(node, nodes[&instance.address], Vec::new());
        }
        let open_nodes: BTreeSet<NodeIndex> = open.iter().map(|family| nodes[&family.shared.address]).collect();
        let singles = desired_instances(config).map(|instance| (&instance.address, &instance.references));
        let families = open.iter().map(|family| (&family.shared.address, &family.repetition().references));
        for (address, references) in singles.chain(families) {
            let from = nodes[address];
            let mut fields: BTreeMap<NodeIndex, Vec<Path>> = BTreeMap::new();
            for reference in references.iter() {
                let target = nodes.get(&reference.target.as_reference()).or_else(|| {
                    nodes.get(&Address::single(reference.target.stem.clone())).filter(|node| open_nodes.contains(*node))
                });
                if let Some(&to) = target {
                    fields.entry(to).or_default().push(reference.at.clone());
                }
            }
            for (to, fields) in fields {
                graph.add_edge(from, to, fields);
            }
        }
        Self { graph }
    }

    /// Describes one strongly connected component.
    fn describe(&self, members: &[NodeIndex]) -> Cycle {
        let component = Component::new(self, members);
        let cycle = component.shortest_cycle();
        let around: Vec<Edge> = (0..cycle.len()).map(|at| (cycle[at], cycle[(at + 1) % cycle.len()])).collect();
        let mut arrows: Vec<Edge> = around.iter().copied().filter(|arrow| component.is_reference(arrow)).collect();
        let first_edges: BTreeSet<Edge> = arrows.iter().copied().collect();
        arrows.extend(component.edges().filter(|arrow| component.is_reference(arrow) && !first_edges.contains(arrow)));
        let positions: BTreeMap<Edge, usize> = arrows.iter().copied().zip(0..).collect();
        let real = component.members.iter().filter(|&&node| !self.is_family(node));
        Cycle {
            members: real.map(|&node| self.graph[node].clone()).collect(),
            links: arrows.iter().map(|&(from, to)| self.link(component.members[from], component.members[to])).collect(),
            shortest_len: first_edges.len(),
            fix: component.cut(&around).iter().map(|arrow| positions[arrow]).collect(),
        }
    }

    fn link(&self, from: NodeIndex, to: NodeIndex) -> Link {
        let fields = self.graph.find_edge(from, to).map(|edge| self.graph[edge].clone()).unwrap_or_default();
        Link { dependent: self.graph[from].clone(), dependency: self.graph[to].clone(), fields }
    }

    /// Whether the node is a family. Only the edges of a family have no fields.
    fn is_family(&self, node: NodeIndex) -> bool {
        self.graph.edges(node).next().is_some_and(|edge| edge.weight().is_empty())
    }
}

fn desired_instances(config: &Config) -> impl Iterator<Item = &Arc<Instance>> {
    config.instances.values().filter(|instance| instance.is_desired())
}

/// An edge between two members of a component, by position.
type Edge = (usize, usize);

/// A strongly connected component. Members are in address order.
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
        let outgoing = members
            .iter()
            .map(|&from| {
                let mut targets: Vec<usize> = graph.neighbors(from).filter_map(|to| places.get(&to).copied()).collect();
                targets.sort_unstable();
                targets
            })
            .collect();
        let is_family = members.iter().map(|&node| references.is_family(node)).collect();
        Self { members, is_family, outgoing }
    }

    fn edges(&self) -> impl Iterator<Item = Edge> + '_ {
        self.outgoing.iter().enumerate().flat_map(|(from, targets)| targets.iter().map(move |&to| (from, to)))
    }

    /// The edges from a family to its instances are not references.
    fn is_reference(&self, arrow: &Edge) -> bool {
        !self.is_family[arrow.0]
    }

    /// How many linear searches are allowed.
    fn tries(&self) -> usize {
        (WORK_LIMIT / self.edges().count()).max(1)
    }

    /// A shortest cycle, or an approximation if the component is large.
    fn shortest_cycle(&self) -> Vec<usize> {
        let cycles = (0..self.members.len()).take(self.tries()).filter_map(|start| self.cycle_through(start));
        cycles.min_by_key(Vec::len).unwrap_or_default()
    }

    fn cycle_through(&self, start: usize) -> Option<Vec<usize>> {
        let mut came_from: Vec<Option<usize>> = vec![None; self.members.len()];
        let mut queue = VecDeque::from([start]);
        while let Some(here) = queue.pop_front() {
            for &next in &self.outgoing[here] {
                if next == start {
                    // `start` itself came from nowhere.
                    let mut cycle: Vec<usize> = std::iter::successors(Some(here), |&at| came_from[at]).collect();
                    cycle.reverse();
                    return Some(cycle);
                }
                if came_from[next].is_none() {
                    came_from[next] = Some(here);
                    queue.push_back(next);
                }
            }
        }
        None
    }

    /// References whose removal breaks every cycle: a single one if possible, otherwise a minimal set. The edges from a
    /// family to its instances cannot be removed, only the references to the family.
    fn cut(&self, cycle: &[Edge]) -> Vec<Edge> {
        let may_go = cycle.iter().filter(|arrow| self.is_reference(arrow)).take(self.tries());
        if let Some(&arrow) = may_go.into_iter().find(|&&arrow| self.is_acyclic_without(&BTreeSet::from([arrow]))) {
            return vec![arrow];
        }
        let mut away: BTreeSet<Edge> = BTreeSet::new();
        for (from, to) in self.back_edges() {
            if self.is_family[from] {
                away.extend(self.edges().filter(|arrow| arrow.1 == from));
            } else {
                away.insert((from, to));
            }
        }
        for arrow in away.clone().into_iter().rev().take(self.tries()) {
            away.remove(&arrow);
            if !self.is_acyclic_without(&away) {
                away.insert(arrow);
            }
        }
        away.into_iter().collect()
    }

    /// The back edges of a depth-first search. Without them no cycle is left.
    fn back_edges(&self) -> Vec<Edge> {
        let mut back = Vec::new();
        let mut on_way = vec![false; self.members.len()];
        let mut visited = vec![false; self.members.len()];
        for start in 0..self.members.len() {
            let mut path: Vec<Edge> = if visited[start] { Vec::new() } else { vec![(start, 0)] };
            while let Some((here, tried)) = path.last_mut() {
                let here = *here;
                (visited[here], on_way[here]) = (true, true);
                let next = self.outgoing[here].get(*tried).copied();
                *tried += 1;
                match next {
                    None => {
                        on_way[here] = false;
                        path.pop();
                    }
                    Some(next) if on_way[next] => back.push((here, next)),
                    Some(next) if visited[next] => {}
                    Some(next) => path.push((next, 0)),
                }
            }
        }
        back
    }

    fn is_acyclic_without(&self, away: &BTreeSet<Edge>) -> bool {
        let mut open = vec![0_usize; self.members.len()];
        self.edges().filter(|arrow| !away.contains(arrow)).for_each(|(_, to)| open[to] += 1);
        let mut free: Vec<usize> = (0..open.len()).filter(|&at| open[at] == 0).collect();
        let mut done = 0;
        while let Some(here) = free.pop() {
            done += 1;
            for &to in self.outgoing[here].iter().filter(|&&to| !away.contains(&(here, to))) {
                open[to] -= 1;
                if open[to] == 0 {
                    free.push(to);
                }
            }
        }
        done == open.len()
    }
}

/// How many edges the searches for the shortest cycle and the smallest change may visit. Larger components get an
/// approximation.
const WORK_LIMIT: usize = 1_000_000;

/// How many references a message names before it only counts them.
const MAX_SHOWN: usize = 12;

impl Cycle {
    /// One error for each member, with the same cycle.
    pub fn diagnostics(&self) -> Vec<Diagnostic> {
        let hint = self.hint();
        let reason = if self.members.len() == 1 { Reason::SelfReference } else { Reason::DependencyCycle };
        self.members
            .iter()
            .map(|member| {
                Diagnostic::error(member, reason, "dependency cycle").because(self.to_string()).hint(hint.clone())
            })
            .collect()
    }

    /// The smallest change that breaks the cycle.
    pub fn hint(&self) -> String {
        let shown: Vec<String> = self.fix.iter().take(MAX_SHOWN).map(|&at| self.links[at].removal()).collect();
        let more = self.fix.len().saturating_sub(MAX_SHOWN);
        let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
        format!("remove {}{rest}", shown.join(" and "))
    }
}

impl Link {
    fn fields_list(&self) -> String {
        self.fields.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
    }

    fn removal(&self) -> String {
        format!("the reference from {} to {} ({})", self.dependent, self.dependency, self.fields_list())
    }
}

impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} references {} ({})", self.dependent, self.dependency, self.fields_list())
    }
}

impl fmt::Display for Cycle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown: Vec<String> =
            self.links.iter().take(MAX_SHOWN.max(self.shortest_len)).map(ToString::to_string).collect();
        f.write_str(&shown.join(", "))?;
        match self.links.len().saturating_sub(shown.len()) {
            0 => Ok(()),
            more => write!(f, ", and {more} more references among {} objects", self.members.len()),
        }
    }
}

#[cfg(test)]
#[path = "cycle/tests.rs"]
mod tests;
