//! Rings that a change would close over records: an object begins to refer to one that, by the record of somebody who
//! cannot follow now, still uses it.
//!
//! Configuration has no ring here; `cycle` has seen to that. But an object that is blocked, or whose step is running,
//! keeps the edges of its record, whatever its configuration says by now. So does, until its own step has succeeded, an
//! object that is changed, and nothing says that it comes before another one that it does not refer to any more. If a
//! new reference led back to an object over such edges, records would depend on each other in a ring, and a later
//! destroy would find no order. So the reference has to wait, and says for whom.

use std::collections::{BTreeMap, VecDeque};

use petgraph::algo::kosaraju_scc;
use petgraph::graph::{DiGraph, NodeIndex};

use crate::model::{Diagnostic, Reason, Severity};
use crate::plan::draft::{Block, Draft};
use crate::plan::scene::{Id, Scene};

/// For each ring the first object, in address order, whose new reference closes it.
pub(super) fn refusals(scene: &Scene<'_>, drafts: &[Option<Draft>]) -> Vec<(Id, Block)> {
    let now = Now { scene, drafts };
    if !(0..drafts.len()).any(|id| (now.keeps_edges(id) || now.leaves_family(id)) && scene.used.of(id).next().is_some())
    {
        return Vec::new();
    }
    let mut graph: DiGraph<(), ()> = DiGraph::new();
    for _ in 0..2 * drafts.len() {
        graph.add_node(());
    }
    for id in 0..drafts.len() {
        for side in [Side::Before(id), Side::After(id)] {
            for target in now.edges(side) {
                graph.add_edge(now.node(side), now.node(target), ());
            }
        }
    }
    let rings = kosaraju_scc(&graph).into_iter().filter(|members| members.len() > 1);
    rings.filter_map(|members| now.refuse(members.into_iter().map(|node| now.side(node)).collect())).collect()
}

/// An object as its record has it, or as it is once its step has succeeded. What it refers to is done by then (R1); of
/// what a record names nobody knows.
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

/// The situation as this plan may leave it.
struct Now<'s, 'a> {
    scene: &'s Scene<'a>,
    drafts: &'s [Option<Draft>],
}

impl Now<'_, '_> {
    fn node(&self, side: Side) -> NodeIndex {
        NodeIndex::new(match side {
            Side::Before(id) => id,
            Side::After(id) => self.drafts.len() + id,
        })
    }

    fn side(&self, node: NodeIndex) -> Side {
        let node = node.index();
        node.checked_sub(self.drafts.len()).map_or(Side::Before(node), Side::After)
    }

    /// Whether the edges of the record stay, since the plan does not touch the object.
    fn keeps_edges(&self, id: Id) -> bool {
        !self.scene.is_junction(id)
            && (!self.scene.is_selected(id)
                || self.scene.running.contains_key(&id)
                || self.drafts[id].as_ref().is_some_and(Draft::is_blocked))
    }

    /// Whether it is an instance that goes: it is part of its family until it has gone, and nobody who reads the family
    /// waits for that.
    fn leaves_family(&self, id: Id) -> bool {
        let subject = self.scene.subjects[id];
        !subject.wanted && subject.address.is_instance() && !self.scene.is_junction(id)
    }

    /// Whether the edges of the record stay only until the object has changed.
    fn will_let_go(&self, id: Id, target: Id) -> bool {
        let changes = !self.keeps_edges(id) && !self.scene.is_junction(id);
        changes && !self.scene.wants.of(id).any(|wanted| wanted == target)
    }

    fn edges(&self, side: Side) -> Vec<Side> {
        let id = side.id();
        let both = || self.scene.wants.of(id).chain(self.scene.used.of(id));
        let after = |target: Id| if self.keeps_edges(target) { Side::Before(target) } else { Side::After(target) };
        let member = |target: Id| if self.leaves_family(target) { Side::Before(target) } else { after(target) };
        match side {
            // A family is what its instances are, wanted or recorded.
            Side::After(_) if self.scene.is_junction(id) => both().map(member).collect(),
            Side::After(_) if self.keeps_edges(id) => Vec::new(),
            // What is not wanted wants nothing: it goes, and its edges with it.
            Side::After(_) => self.scene.wants.of(id).map(after).collect(),
            Side::Before(_) if self.scene.is_junction(id) => {
                both().flat_map(|id| [Side::Before(id), after(id)]).collect()
            }
            Side::Before(_) => self.scene.used.of(id).flat_map(|id| [Side::Before(id), after(id)]).collect(),
        }
    }

    /// Blocks the first of the members that refers to another one and did not before.
    fn refuse(&self, mut members: Vec<Side>) -> Option<(Id, Block)> {
        members.sort_unstable();
        let is_new = |id: Id, target: &Side| {
            members.binary_search(target).is_ok() && !self.scene.used.of(id).any(|used| used == target.id())
        };
        let changing =
            members.iter().filter(|side| matches!(side, Side::After(_)) && !self.scene.is_junction(side.id()));
        let mut found =
            changing.filter_map(|side| Some((*side, self.edges(*side).into_iter().find(|t| is_new(side.id(), t))?)));
        let (closes, target) = found.next()?;
        let id = closes.id();
        let way = self.way(&members, target, closes);
        let links = || std::iter::once((closes, target)).chain(way.windows(2).map(|pair| (pair[0], pair[1])));
        let told: Vec<String> = links()
            .filter(|(from, _)| !self.scene.is_junction(from.id()))
            .map(|(from, to)| self.link(from, to.id()))
            .collect();
        let lets_go =
            |(from, to): &(Side, Side)| matches!(from, Side::Before(_)) && self.will_let_go(from.id(), to.id());
        let changing: Vec<Id> = links().filter(lets_go).map(|(from, _)| from.id()).collect();
        let stuck: Vec<Id> = way.iter().map(|side| side.id()).filter(|id| self.keeps_edges(*id)).collect();
        let waits = !changing.is_empty() || stuck.iter().all(|member| self.scene.running.contains_key(member));
        let what = format!("refers to `{}`, which would close a ring", self.scene.address(target.id()));
        let mut diagnostic = Diagnostic::error(self.scene.address(id), Reason::DependencyCycle, what);
        diagnostic.path = self.field(id, target.id());
        diagnostic = diagnostic.because(told.join(", "));
        if waits {
            (diagnostic.severity, diagnostic.reason) = (Severity::Warning, Reason::Waiting);
        } else {
            let names: Vec<String> = stuck.iter().map(|id| format!("`{}`", self.scene.address(*id))).collect();
            diagnostic = diagnostic.hint(format!(
                "resolve what blocks {} first, so that it lets go, or remove the reference",
                names.join(" or ")
            ));
        }
        let waiting_for = if changing.is_empty() { stuck } else { changing };
        Some((id, Block::held(diagnostic).waiting_for(waiting_for)))
    }

    /// A shortest way from one member to another, both included.
    fn way(&self, members: &[Side], from: Side, to: Side) -> Vec<Side> {
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
        let back = |here: &Side| came_from.get(here).copied();
        let mut way: Vec<Side> = std::iter::successors(Some(to), back).collect();
        way.reverse();
        way
    }

    fn field(&self, from: Id, to: Id) -> Option<crate::model::Path> {
        let instance = self.scene.subjects[from].instance?;
        let names = |target: &crate::model::Address| self.scene.resolve(target) == Some(to);
        instance.references.iter().find(|reference| names(&reference.target)).map(|reference| reference.at.clone())
    }

    fn link(&self, side: Side, to: Id) -> String {
        let from = side.id();
        let (dependent, dependency) = (self.scene.address(from), self.scene.address(to));
        if matches!(side, Side::Before(_)) && self.will_let_go(from, to) {
            let end = if self.scene.subjects[from].wanted { "changed" } else { "gone" };
            return format!("`{dependent}` uses `{dependency}` by its record, until it has {end}");
        }
        if self.scene.running.contains_key(&from) {
            return format!("`{dependent}` uses `{dependency}`, until a step of it that is running has ended");
        }
        match self.drafts[from].as_ref().and_then(|draft| draft.block.as_deref()) {
            Some(block) => {
                format!("`{dependent}` still uses `{dependency}` by its record, and is blocked: {}", block.reason())
            }
            None if !self.scene.is_selected(from) => {
                format!("`{dependent}` still uses `{dependency}` by its record, and is not selected")
            }
            None => {
                let field = self.field(from, to).map(|field| format!(" ({field})")).unwrap_or_default();
                format!("`{dependent}` refers to `{dependency}`{field}")
            }
        }
    }
}
