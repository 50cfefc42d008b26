//! Follows the steps of one plan: each starts only after everything that the rules say it waits for.

use std::collections::{BTreeMap, BTreeSet};

use purlin::execute::{Progress, ProgressKind};
use purlin::model::{Address, Operation, Recorded};

use super::rules::{Facts, Node};
use super::view::{Ruled, View};

/// See the module.
pub(super) struct Tape {
    facts: Facts,
    first: BTreeSet<Address>,
    /// What each step waits for, directly.
    waits: BTreeMap<Node, BTreeSet<Node>>,
    started: BTreeSet<Node>,
    /// Objects with a step of an earlier plan under way: what is told of them until it ends is not of this plan.
    inherited: BTreeSet<Address>,
    finished: BTreeSet<Node>,
    /// Steps of other plans were running when this one was made, so the records told less than the planner knew.
    is_partial_view: bool,
    /// Records follow what is read, and keep what they say besides.
    only_reads: bool,
    steps: usize,
}

impl Tape {
    pub(super) fn new(view: &View<'_>, ruled: Ruled) -> Self {
        let Ruled { facts, first, order } = ruled;
        let is_partial_view = !view.running.is_empty();
        let mut waits: BTreeMap<Node, BTreeSet<Node>> = BTreeMap::new();
        for (from, to) in order.waits {
            let is_plain = matches!((&from, &to), (Node::C(_), Node::C(_)) | (Node::D(_), Node::D(_)));
            let is_running = |node: &Node| view.running.iter().any(|running| running.step.address == *address(node));
            if !is_partial_view || (is_plain && !is_running(&from) && !is_running(&to)) {
                waits.entry(from).or_default().insert(to);
            }
        }
        let steps = view.plan.changes.iter().filter(|change| !matches!(change.action, purlin::model::Action::NoOp));
        let steps = steps.count();
        let inherited = view.running.iter().map(|running| running.step.address.clone()).collect();
        let (started, finished) = (BTreeSet::new(), BTreeSet::new());
        Self { facts, first, waits, started, inherited, finished, is_partial_view, only_reads: view.only_reads, steps }
    }

    pub(super) fn has_nothing_to_do(&self) -> bool {
        self.steps == 0
    }

    /// Takes an event.
    pub(super) fn follow(&mut self, progress: &Progress, records: &Recorded) -> Result<(), String> {
        let node = Node::of(&progress.step);
        let id = progress.step.id();
        match &progress.kind {
            ProgressKind::Hook(_) => {}
            ProgressKind::Started if self.inherited.contains(&progress.step.address) => {}
            ProgressKind::Started => {
                let early: Vec<&Node> = self
                    .waits
                    .get(&node)
                    .into_iter()
                    .flatten()
                    .filter(|other| !self.finished.contains(other))
                    .collect();
                if !early.is_empty() {
                    return Err(format!("{id} has started, and must wait for {early:?}"));
                }
                // What was running already may tell of its start only now, under a name that another step has by now.
                if !self.started.insert(node) && !self.is_partial_view {
                    return Err(format!("{id} has started twice"));
                }
            }
            ProgressKind::Finished => {
                // What ended before this plan was made may be told of only now.
                if self.started.contains(&node) {
                    self.is_recorded_as_it_must(&progress.step.address, progress.step.operation, records)?;
                }
                self.finished.insert(node);
                self.inherited.remove(&progress.step.address);
            }
            ProgressKind::Failed { .. } => drop(self.inherited.remove(&progress.step.address)),
            ProgressKind::Skipped { .. } => {
                if self.started.contains(&node) && !self.is_partial_view {
                    return Err(format!("{id} is skipped, though it has started"));
                }
            }
        }
        Ok(())
    }

    /// The record names direct dependencies and carries the effective flag.
    fn is_recorded_as_it_must(&self, x: &Address, operation: Operation, records: &Recorded) -> Result<(), String> {
        if operation.removes() || self.is_partial_view || self.only_reads || !self.facts.wanted.contains(x) {
            return Ok(());
        }
        let current = records.get(x).and_then(|stored| stored.record.current.clone());
        let Some(current) = current else { return Err(format!("{x}: nothing is recorded after its step")) };
        let dependencies: BTreeSet<Address> = current.dependencies.iter().cloned().collect();
        if dependencies != self.facts.refers[x] {
            return Err(format!("{x}: recorded with {dependencies:?}, and refers to {:?}", self.facts.refers[x]));
        }
        if current.create_before_destroy != self.first.contains(x) {
            return Err(format!("{x}: recorded with the flag {}", current.create_before_destroy));
        }
        Ok(())
    }
}

fn address(node: &Node) -> &Address {
    match node {
        Node::C(address) | Node::D(address) | Node::L(address, _) => address,
    }
}
