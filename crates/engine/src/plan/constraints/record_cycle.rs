//! Detects cycles that a new reference would create through recorded dependencies.
//!
//! The configuration has no cycle here: `cycle` has checked that. But a blocked object, or one with a running step,
//! keeps the dependencies of its record. A changed object keeps them until its step has succeeded, and the step has no
//! order relative to a dependency that was removed. If a new reference led back to its object through such
//! dependencies, the records would form a cycle, and a later destroy would have no valid order. So the object with the
//! new reference waits.

use std::collections::{BTreeMap, VecDeque};

use petgraph::algo::kosaraju_scc;
use petgraph::graph::{DiGraph, NodeIndex};

use crate::plan::decision::{Block, Decision};
use crate::plan::input::{Id, PlanInput};
use model::{Diagnostic, Reason, Severity};

/// For each cycle, the first object in address order whose new reference closes it.
pub fn find(input: &PlanInput<'_>, decisions: &[Option<Decision>]) -> Vec<(Id, Block)> {
    let now = Dependencies { input, decisions };
    if !(0..decisions.len())
        .any(|id| (now.keeps_edges(id) || now.leaves_family(id)) && input.recorded_dependencies.of(id).next().is_some())
    {
        return Vec::new();
    }
    let mut graph: DiGraph<(), ()> = DiGraph::new();
    for _ in 0..2 * decisions.len() {
        graph.add_node(());
    }
    for id in 0..decisions.len() {
        for side in [Side::Before(id), Side::After(id)] {
            for target in now.edges(side) {
                graph.add_edge(now.node(side), now.node(target), ());
            }
        }
    }
    let cycles = kosaraju_scc(&graph).into_iter().filter(|members| members.len() > 1);
    cycles.filter_map(|members| now.refuse(members.into_iter().map(|node| now.side(node)).collect())).collect()
}

/// An object with the dependencies of its record (`Before`), or of its configuration after its step has succeeded
/// (`After`). Dependencies of the configuration are applied before the step (rule R1); recorded ones may be in either
/// state.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Side {
    After(Id),
    Before(Id),
}

impl Side {
    fn id(self) -> Id {
        match self {
            Self::Before(id) | Self::After(id) => id,
        }
    }
}

/// The dependencies that may exist while this plan is applied.
struct Dependencies<'s, 'a> {
    input: &'s PlanInput<'a>,
    decisions: &'s [Option<Decision>],
}

impl Dependencies<'_, '_> {
    fn node(&self, side: Side) -> NodeIndex {
        NodeIndex::new(match side {
            Side::Before(id) => id,
            Side::After(id) => self.decisions.len() + id,
        })
    }

    fn side(&self, node: NodeIndex) -> Side {
        let node = node.index();
        node.checked_sub(self.decisions.len()).map_or(Side::Before(node), Side::After)
    }

    /// Whether the recorded dependencies remain because the plan does not change the object.
    fn keeps_edges(&self, id: Id) -> bool {
        !self.input.is_junction(id)
            && (!self.input.is_selected(id)
                || self.input.running.contains_key(&id)
                || self.decisions[id].as_ref().is_some_and(Decision::is_blocked))
    }

    /// Whether it is an instance that is destroyed. It is part of its family until then, and readers of the family do
    /// not wait for the destroy.
    fn leaves_family(&self, id: Id) -> bool {
        let node = self.input.nodes[id];
        !node.desired && node.address.is_instance() && !self.input.is_junction(id)
    }

    /// Whether the recorded dependency remains only until the object has changed.
    fn will_release(&self, id: Id, target: Id) -> bool {
        let changes = !self.keeps_edges(id) && !self.input.is_junction(id);
        changes && !self.input.dependencies.of(id).any(|wanted| wanted == target)
    }

    fn edges(&self, side: Side) -> Vec<Side> {
        let id = side.id();
        let (new, recorded) = (self.input.dependencies.of(id), self.input.recorded_dependencies.of(id));
        match side {
            // A family depends on its desired and its recorded instances.
            Side::After(_) if self.input.is_junction(id) => new
                .chain(recorded)
                .map(|member| if self.leaves_family(member) { Side::Before(member) } else { self.after(member) })
                .collect(),
            Side::After(_) if self.keeps_edges(id) => Vec::new(),
            // An object that is not desired has no dependencies after its destroy.
            Side::After(_) => new.map(|target| self.after(target)).collect(),
            Side::Before(_) if self.input.is_junction(id) => {
                new.chain(recorded).flat_map(|member| [Side::Before(member), self.after(member)]).collect()
            }
            Side::Before(_) => recorded.flat_map(|target| [Side::Before(target), self.after(target)]).collect(),
        }
    }

    fn after(&self, target: Id) -> Side {
        if self.keeps_edges(target) { Side::Before(target) } else { Side::After(target) }
    }

    /// Blocks the first member with a new reference to another member.
    fn refuse(&self, mut members: Vec<Side>) -> Option<(Id, Block)> {
        members.sort_unstable();
        let (closes, target) = self.new_reference(&members)?;
        let id = closes.id();
        let path = self.path(&members, target, closes);
        let mut links = vec![(closes, target)];
        links.extend(path.windows(2).map(|pair| (pair[0], pair[1])));
        let references: Vec<String> = links
            .iter()
            .filter(|(from, _)| !self.input.is_junction(from.id()))
            .map(|(from, to)| self.link(*from, to.id()))
            .collect();
        let changing: Vec<Id> = links
            .iter()
            .filter(|(from, to)| matches!(from, Side::Before(_)) && self.will_release(from.id(), to.id()))
            .map(|(from, _)| from.id())
            .collect();
        let stuck: Vec<Id> = path.iter().map(|side| side.id()).filter(|id| self.keeps_edges(*id)).collect();
        let waits = !changing.is_empty() || stuck.iter().all(|member| self.input.running.contains_key(member));
        let what = format!("the reference to `{}` would create a dependency cycle", self.input.address(target.id()));
        let mut diagnostic = Diagnostic::error(self.input.address(id), Reason::DependencyCycle, what);
        diagnostic.path = self.field(id, target.id());
        diagnostic = diagnostic.because(references.join(", "));
        if waits {
            (diagnostic.severity, diagnostic.reason) = (Severity::Warning, Reason::Waiting);
        } else {
            let names: Vec<String> = stuck.iter().map(|id| format!("`{}`", self.input.address(*id))).collect();
            diagnostic = diagnostic.hint(format!(
                "resolve the problem that blocks {} first, so that its old dependency is released, or remove the \
                 reference",
                names.join(" or ")
            ));
        }
        let waiting_for = if changing.is_empty() { stuck } else { changing };
        Some((id, Block::held(diagnostic).waiting_for(waiting_for)))
    }

    /// The first member with a new reference to another member, which it names. `members` are sorted.
    fn new_reference(&self, members: &[Side]) -> Option<(Side, Side)> {
        for side in members {
            if !matches!(side, Side::After(_)) || self.input.is_junction(side.id()) {
                continue;
            }
            let target = self.edges(*side).into_iter().find(|target| {
                members.binary_search(target).is_ok()
                    && !self.input.recorded_dependencies.of(side.id()).any(|used| used == target.id())
            });
            if let Some(target) = target {
                return Some((*side, target));
            }
        }
        None
    }

    /// A shortest path from one member to another, both included.
    fn path(&self, members: &[Side], from: Side, to: Side) -> Vec<Side> {
        let mut came_from: BTreeMap<Side, Side> = BTreeMap::new();
        let mut queue = VecDeque::from([from]);
        while let Some(here) = queue.pop_front() {
            if here == to {
                break;
            }
            for next in self.edges(here) {
                if members.binary_search(&next).is_ok() && next != from && !came_from.contains_key(&next) {
                    came_from.insert(next, here);
                    queue.push_back(next);
                }
            }
        }
        let mut path: Vec<Side> = std::iter::successors(Some(to), |here| came_from.get(here).copied()).collect();
        path.reverse();
        path
    }

    fn field(&self, from: Id, to: Id) -> Option<model::Path> {
        let instance = self.input.nodes[from].instance?;
        let reference =
            instance.references.iter().find(|reference| self.input.resolve(&reference.target) == Some(to))?;
        Some(reference.at.clone())
    }

    fn link(&self, side: Side, to: Id) -> String {
        let from = side.id();
        let (dependent, dependency) = (self.input.address(from), self.input.address(to));
        if matches!(side, Side::Before(_)) && self.will_release(from, to) {
            let end = if self.input.nodes[from].desired { "changed" } else { "deleted" };
            return format!("`{dependent}` depends on `{dependency}` according to its record until it is {end}");
        }
        if self.input.running.contains_key(&from) {
            return format!("`{dependent}` depends on `{dependency}` until its running step ends");
        }
        match self.decisions[from].as_ref().and_then(|decision| decision.block.as_deref()) {
            Some(block) => {
                format!(
                    "`{dependent}` depends on `{dependency}` according to its record and is blocked: {}",
                    block.reason()
                )
            }
            None if !self.input.is_selected(from) => {
                format!("`{dependent}` depends on `{dependency}` according to its record and is not selected")
            }
            None => {
                let field = self.field(from, to).map(|field| format!(" ({field})")).unwrap_or_default();
                format!("`{dependent}` references `{dependency}`{field}")
            }
        }
    }
}
