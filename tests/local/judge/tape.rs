//! Checks the events of one plan: each step starts only after the steps that the rules require.

use std::collections::{BTreeMap, BTreeSet};

use purlin::cli::json::StepEvent;
use purlin::execute::{Progress, ProgressKind};
use purlin::model::{Action, Address, Operation, Recorded};

use super::plan_check::{PlanCheck, RuleResult};
use super::rules::{Facts, Node};

pub(super) struct Tape {
    facts: Facts,
    first: BTreeSet<Address>,
    /// The direct predecessors of each step.
    waits: BTreeMap<Node, BTreeSet<Node>>,
    started: BTreeSet<Node>,
    /// Objects with a running step of an earlier plan. Until it ends, their events do not belong to this plan.
    inherited: BTreeSet<Address>,
    finished: BTreeSet<Node>,
    /// Whether steps of other plans were running during planning, so that the records were incomplete.
    is_partial_view: bool,
    /// Whether the plan only updates records to the values that were read.
    refresh_only: bool,
    steps: usize,
    /// Whether this is the only plan of the run, so that all events belong to it.
    is_alone: bool,
    /// The events of each planned step, by its ID, as `apply -o json` reports them.
    announced: BTreeMap<String, Vec<String>>,
}

impl Tape {
    pub(super) fn new(view: &PlanCheck<'_>, ruled: RuleResult, is_alone: bool) -> Self {
        let RuleResult { facts, first, order } = ruled;
        let is_partial_view = !view.running.is_empty();
        let mut waits: BTreeMap<Node, BTreeSet<Node>> = BTreeMap::new();
        for (from, to) in order.waits {
            let is_plain = matches!((&from, &to), (Node::C(_), Node::C(_)) | (Node::D(_), Node::D(_)));
            let is_running = |node: &Node| view.running.iter().any(|running| running.step.address == *address(node));
            if !is_partial_view || (is_plain && !is_running(&from) && !is_running(&to)) {
                waits.entry(from).or_default().insert(to);
            }
        }
        let steps = view.plan.changes().filter(|change| !matches!(change.action, purlin::model::Action::NoOp));
        let steps = steps.count();
        let inherited = view.running.iter().map(|running| running.step.address.clone()).collect();
        let (started, finished) = (BTreeSet::new(), BTreeSet::new());
        let announced = view.graph.nodes().map(|node| (view.graph.step(node).id(), Vec::new())).collect();
        let refresh_only = view.refresh_only;
        Self {
            facts,
            first,
            waits,
            started,
            inherited,
            finished,
            is_partial_view,
            refresh_only,
            steps,
            is_alone,
            announced,
        }
    }

    pub(super) fn has_nothing_to_do(&self) -> bool {
        self.steps == 0
    }

    /// Checks an event.
    pub(super) fn follow(&mut self, progress: &Progress, records: &Recorded) -> Result<(), String> {
        let node = Node::of(&progress.step);
        let id = progress.step.id();
        self.check_announced(progress)?;
        match &progress.kind {
            ProgressKind::Hook(_) | ProgressKind::Warning(_) | ProgressKind::Delayed(_) => {}
            ProgressKind::WaitInterrupted => {
                return Err(format!("{id}: a wait was interrupted, but no step waits for readiness"));
            }
            ProgressKind::Superseded => {
                return Err(format!("{id} was superseded, but the desired state is unchanged"));
            }
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
                    return Err(format!("{id} has started before {early:?}"));
                }
                // A step of an earlier plan may report its start only now, with an ID that another step has.
                if !self.started.insert(node) && !self.is_partial_view {
                    return Err(format!("{id} has started twice"));
                }
            }
            ProgressKind::Finished => {
                // A step that ended before this plan may be reported only now.
                if self.started.contains(&node) {
                    self.check_record(&progress.step.address, progress.step.operation, records)?;
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

    /// Checks that the event belongs to a planned step, with the same ID.
    fn check_announced(&mut self, progress: &Progress) -> Result<(), String> {
        if !self.is_alone
            || matches!(progress.kind, ProgressKind::Hook(_) | ProgressKind::Warning(_) | ProgressKind::Delayed(_))
        {
            return Ok(());
        }
        let event = serde_json::to_value(StepEvent::new(progress)).map_err(|error| error.to_string())?;
        let text = |field: &str| event[field].as_str().unwrap_or_default().to_owned();
        let Some(events) = self.announced.get_mut(&text("node")) else {
            return Err(format!("{event} does not belong to a planned step"));
        };
        events.push(text("event"));
        Ok(())
    }

    /// Checks after a complete run that the start and end of every planned step were reported, or that it was skipped.
    pub(super) fn check_complete(&self) -> Result<(), String> {
        let is_whole = |events: &Vec<String>| {
            let events: Vec<&str> = events.iter().map(String::as_str).collect();
            matches!(events[..], ["started", "finished" | "failed"] | ["skipped"])
        };
        let wrong = self.announced.iter().find(|(_, events)| self.is_alone && !is_whole(events));
        wrong.map_or(Ok(()), |(id, events)| Err(format!("the events of {id} are incomplete: {events:?}")))
    }

    /// Checks that the record contains the direct dependencies and the effective flag.
    fn check_record(&self, x: &Address, operation: Operation, records: &Recorded) -> Result<(), String> {
        if operation.removes() || self.is_partial_view || self.refresh_only || !self.facts.desired.contains(x) {
            return Ok(());
        }
        // For a blocked object, only the protection and deletion policy are recorded.
        if self.facts.actions.get(x) == Some(&Action::Blocked) {
            return Ok(());
        }
        let current = records.get(x).and_then(|stored| stored.record.current.clone());
        let Some(current) = current else { return Err(format!("{x}: no object is recorded after its step")) };
        let dependencies: BTreeSet<Address> = current.dependencies.iter().cloned().collect();
        if dependencies != self.facts.references[x] {
            return Err(format!(
                "{x}: {dependencies:?} are recorded, but it references {:?}",
                self.facts.references[x]
            ));
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
