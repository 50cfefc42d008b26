//! Rings that a change would close over records: an object begins to refer to one that, by the record of somebody who
//! cannot follow now, still uses it.
//!
//! Configuration has no ring here; `cycle` has seen to that. But an object that is blocked, or whose step is running,
//! keeps the edges of its record, whatever its configuration says by now. If a new reference led back to an object over
//! such edges, records would depend on each other in a ring, and a later destroy would find no order. So the reference
//! has to wait, and says for whom.

use std::collections::{BTreeMap, VecDeque};

use petgraph::algo::kosaraju_scc;
use petgraph::graph::{DiGraph, NodeIndex};

use crate::model::{Diagnostic, Reason, Severity};
use crate::plan::draft::{Block, Draft};
use crate::plan::scene::{Id, Scene};

/// For each ring the first object, in address order, whose new reference closes it.
pub(super) fn refusals(scene: &Scene<'_>, drafts: &[Option<Draft>]) -> Vec<(Id, Block)> {
    let now = Now { scene, drafts };
    if !(0..drafts.len()).any(|id| now.keeps_edges(id) && scene.used.of(id).next().is_some()) {
        return Vec::new();
    }
    let mut graph: DiGraph<(), ()> = DiGraph::new();
    for _ in drafts {
        graph.add_node(());
    }
    for id in 0..drafts.len() {
        for target in now.edges(id) {
            graph.add_edge(NodeIndex::new(id), NodeIndex::new(target), ());
        }
    }
    let rings = kosaraju_scc(&graph).into_iter().filter(|members| members.len() > 1);
    rings.filter_map(|members| now.refuse(members.into_iter().map(NodeIndex::index).collect())).collect()
}

/// The situation as this plan will leave it.
struct Now<'s, 'a> {
    scene: &'s Scene<'a>,
    drafts: &'s [Option<Draft>],
}

impl Now<'_, '_> {
    /// Whether the edges of the record stay, since the plan does not touch the object.
    fn keeps_edges(&self, id: Id) -> bool {
        !self.scene.is_selected(id)
            || self.scene.running.contains_key(&id)
            || self.drafts[id].as_ref().is_some_and(Draft::is_blocked)
    }

    fn edges(&self, id: Id) -> Vec<Id> {
        if self.scene.is_junction(id) {
            // A family is what its instances are, wanted or recorded.
            self.scene.wants.of(id).chain(self.scene.used.of(id)).collect()
        } else if self.keeps_edges(id) {
            self.scene.used.of(id).collect()
        } else {
            // What is not wanted wants nothing: it goes, and its edges with it.
            self.scene.wants.of(id).collect()
        }
    }

    /// Blocks the first of the members that refers to another one and did not before.
    fn refuse(&self, mut members: Vec<Id>) -> Option<(Id, Block)> {
        members.sort_unstable();
        let is_new = |id: Id, target: &Id| {
            members.binary_search(target).is_ok() && !self.scene.used.of(id).any(|used| used == *target)
        };
        let changing = members.iter().copied().filter(|id| !self.scene.is_junction(*id) && !self.keeps_edges(*id));
        let mut found = changing.filter_map(|id| Some((id, self.edges(id).into_iter().find(|t| is_new(id, t))?)));
        let (id, target) = found.next()?;
        let way = self.way(&members, target, id);
        let links: Vec<String> = std::iter::once((id, target))
            .chain(way.windows(2).map(|pair| (pair[0], pair[1])))
            .filter(|(from, _)| !self.scene.is_junction(*from))
            .map(|(from, to)| self.link(from, to))
            .collect();
        let stuck = way.iter().copied().filter(|member| !self.scene.is_junction(*member) && self.keeps_edges(*member));
        let stuck: Vec<Id> = stuck.collect();
        let waits = stuck.iter().all(|member| self.scene.running.contains_key(member));
        let what = format!("refers to `{}`, which would close a ring", self.scene.address(target));
        let mut diagnostic = Diagnostic::error(self.scene.address(id), Reason::DependencyCycle, what);
        diagnostic.path = self.field(id, target);
        diagnostic = diagnostic.because(links.join(", "));
        if waits {
            (diagnostic.severity, diagnostic.reason) = (Severity::Warning, Reason::Waiting);
        } else {
            let names: Vec<String> = stuck.iter().map(|id| format!("`{}`", self.scene.address(*id))).collect();
            diagnostic = diagnostic.hint(format!(
                "resolve what blocks {} first, so that it lets go, or remove the reference",
                names.join(" or ")
            ));
        }
        Some((id, Block::held(diagnostic).waiting_for(stuck)))
    }

    /// A shortest way from one member to another, both included.
    fn way(&self, members: &[Id], from: Id, to: Id) -> Vec<Id> {
        let mut came_from: BTreeMap<Id, Id> = BTreeMap::new();
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
        let back = |here: &Id| came_from.get(here).copied();
        let mut way: Vec<Id> = std::iter::successors(Some(to), back).collect();
        way.reverse();
        way
    }

    fn field(&self, from: Id, to: Id) -> Option<crate::model::Path> {
        let instance = self.scene.subjects[from].instance?;
        let names = |target: &crate::model::Address| self.scene.resolve(target) == Some(to);
        instance.references.iter().find(|reference| names(&reference.target)).map(|reference| reference.at.clone())
    }

    fn link(&self, from: Id, to: Id) -> String {
        let (dependent, dependency) = (self.scene.address(from), self.scene.address(to));
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
