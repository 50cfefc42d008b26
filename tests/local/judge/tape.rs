//! Follows the steps of one plan: each starts only after everything that the rules say it waits for.

use std::collections::{BTreeMap, BTreeSet};

use purlin::cli::json::StepEvent;
use purlin::execute::{Progress, ProgressKind};
use purlin::model::{Action, Address, Operation, Recorded};

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
    /// No other plan was carried out before it in this run, so that everything that is told is of this one.
    is_alone: bool,
    /// Ids of the steps that the plan announced, each with what was told of it, as `apply -o json` tells it.
    announced: BTreeMap<String, Vec<String>>,
}

impl Tape {
    pub(super) fn new(view: &View<'_>, ruled: Ruled, is_alone: bool) -> Self {
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
        let announced = view.graph.nodes().map(|node| (view.graph.step(node).id(), Vec::new())).collect();
        let only_reads = view.only_reads;
        Self {
            facts,
            first,
            waits,
            started,
            inherited,
            finished,
            is_partial_view,
            only_reads,
            steps,
            is_alone,
            announced,
        }
    }

    pub(super) fn has_nothing_to_do(&self) -> bool {
        self.steps == 0
    }

    /// Takes an event.
    pub(super) fn follow(&mut self, progress: &Progress, records: &Recorded) -> Result<(), String> {
        let node = Node::of(&progress.step);
        let id = progress.step.id();
        self.is_announced(progress)?;
        match &progress.kind {
            ProgressKind::Hook(_) | ProgressKind::Warning(_) | ProgressKind::Delayed(_) => {}
            ProgressKind::LetGo => return Err(format!("{id} was let go of, and nothing is ever waited for")),
            ProgressKind::Withdrawn => return Err(format!("{id} was withdrawn, and nobody wishes for something else")),
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

    /// Events are about steps that the plan has named, under the same ids.
    fn is_announced(&mut self, progress: &Progress) -> Result<(), String> {
        if !self.is_alone
            || matches!(progress.kind, ProgressKind::Hook(_) | ProgressKind::Warning(_) | ProgressKind::Delayed(_))
        {
            return Ok(());
        }
        let told = serde_json::to_value(StepEvent::new(progress)).map_err(|error| error.to_string())?;
        let text = |field: &str| told[field].as_str().unwrap_or_default().to_owned();
        let Some(events) = self.announced.get_mut(&text("node")) else {
            return Err(format!("{told} is told of a step that the plan has not named"));
        };
        events.push(text("event"));
        Ok(())
    }

    /// The run has ended by itself: of each step that the plan named its start and its end were told, or that it was
    /// skipped.
    pub(super) fn is_told_whole(&self) -> Result<(), String> {
        let is_whole = |events: &Vec<String>| {
            let events: Vec<&str> = events.iter().map(String::as_str).collect();
            matches!(events[..], ["started", "finished" | "failed"] | ["skipped"])
        };
        let wrong = self.announced.iter().find(|(_, events)| self.is_alone && !is_whole(events));
        wrong.map_or(Ok(()), |(id, events)| Err(format!("of {id} was told {events:?}")))
    }

    /// The record names direct dependencies and carries the effective flag.
    fn is_recorded_as_it_must(&self, x: &Address, operation: Operation, records: &Recorded) -> Result<(), String> {
        if operation.removes() || self.is_partial_view || self.only_reads || !self.facts.wanted.contains(x) {
            return Ok(());
        }
        // Of a blocked object only what the manifest says about keeping it is recorded.
        if self.facts.actions.get(x) == Some(&Action::Blocked) {
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
