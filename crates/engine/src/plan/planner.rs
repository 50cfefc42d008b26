//! The planning state machine: visits the objects in dependency order, requests driver calls, and applies the
//! constraints once every object is decided.
//!
//! `desired` and `destroys` decide about single objects, `constraints` about the whole plan.

use std::collections::BTreeMap;

use super::decision::{Block, Decision};
use super::eval_scope::{EvalScope, Evaluate, TemplateEvaluator};
use super::families::Families;
use super::inherit::{self, Inheritance};
use super::input::{Id, PlanInput};
use super::progress::{CallPurpose, NextAction, Progress};
use super::{
    CallId, DriverCall, DriverRequest, DriverResponse, Plan, PlanOptions, Types, assemble, constraints, desired,
    destroys, driver_call, preflight, publish, readiness, select,
};
use crate::load::{Config, InstanceKeys};
use model::{Diagnostic, Reason, Recorded, Stem};

/// After this many rounds, an object whose dependency was blocked late is not planned again, but waits. Real plans need
/// two or three rounds. The limit keeps the worst case linear.
const MAX_ROUNDS: usize = 50;

/// Plans one namespace, or some of its components.
///
/// An object is planned once all its dependencies are decided. When no call is left, the constraints of the whole plan
/// are applied. They may block an object. The objects that were planned with its planned value are then planned again.
pub struct Planner<'a> {
    input: PlanInput<'a>,
    evaluator: &'a dyn Evaluate,
    decisions: Vec<Option<Decision>>,
    in_progress: Vec<Option<Box<Progress>>>,
    /// The number of undecided direct dependencies of each node.
    undecided: Vec<u32>,
    /// Nodes whose dependencies are all decided.
    startable: Vec<Id>,
    calls: Vec<DriverCall>,
    /// By `CallId`. `None` after the response.
    open: Vec<Option<(Id, CallPurpose)>>,
    open_count: usize,
    rounds: usize,
    families: Families,
    flags: Option<Inheritance>,
    is_final: bool,
}

impl<'a> Planner<'a> {
    pub fn new(config: &'a Config, recorded: &'a Recorded, options: &'a PlanOptions, types: &'a dyn Types) -> Self {
        Self::with_evaluator(config, recorded, options, types, &TemplateEvaluator)
    }

    /// With a custom evaluator, so that tests need no expression language.
    pub(crate) fn with_evaluator(
        config: &'a Config,
        recorded: &'a Recorded,
        options: &'a PlanOptions,
        types: &'a dyn Types,
        evaluator: &'a dyn Evaluate,
    ) -> Self {
        let mut input = PlanInput::new(config, recorded, options, types);
        input.selected = select::selected(&input);
        let count = input.nodes.len();
        let mut planner = Self {
            evaluator,
            decisions: preflight::decide_early(&input, config),
            in_progress: std::iter::repeat_with(|| None).take(count).collect(),
            undecided: vec![0; count],
            startable: Vec::new(),
            calls: Vec::new(),
            open: Vec::new(),
            open_count: 0,
            rounds: 0,
            families: Families::default(),
            flags: None,
            is_final: false,
            input,
        };
        planner.schedule(0..count);
        planner
    }

    /// The calls that can be made now and were not returned before. Empty while all open calls wait for a response, and
    /// when no calls are left.
    pub fn ready_calls(&mut self) -> Vec<DriverCall> {
        self.advance();
        while self.calls.is_empty() && self.open_count == 0 && !self.is_final && self.families.expansions.is_empty() {
            self.apply_constraints();
            self.advance();
        }
        std::mem::take(&mut self.calls)
    }

    /// Handles the response to a call. More calls may be ready then. A response to a call that is not open is ignored.
    pub fn handle_response(&mut self, id: CallId, response: DriverResponse) {
        let Some((node, purpose)) = self.open.get_mut(id.0).and_then(Option::take) else { return };
        self.open_count -= 1;
        let Some(mut progress) = self.in_progress[node].take() else { return };
        let next = driver_call::handle_response(&mut progress, &self.input, node, purpose, response);
        self.advance_node(node, progress, next);
    }

    /// The families whose instances became known during planning. Call it when `ready_calls` returns nothing and no
    /// call is open. If it is not empty, start again with [`Config::expanded`] and return the same responses to the
    /// same calls. A plan that is finished anyway omits these families.
    pub fn expansions(&self) -> &BTreeMap<Stem, InstanceKeys> {
        &self.families.expansions
    }

    /// Returns the plan. Call it when `ready_calls` returns nothing and no call is open.
    pub fn finish(mut self) -> Plan {
        self.families.expansions.clear();
        // A caller that stops early gets a plan in which the objects with open calls are blocked.
        while !self.ready_calls().is_empty() || self.open_count > 0 {
            self.open_count = 0;
            self.open.iter_mut().for_each(|open| *open = None);
            for id in 0..self.input.nodes.len() {
                if self.in_progress[id].take().is_some() {
                    let what = "planning ended before the driver responded";
                    let block = Block::broken(Diagnostic::error(self.input.address(id), Reason::InternalError, what));
                    self.decided(id, Decision::blocked(block, self.input.nodes[id].current()));
                }
            }
        }
        let flags = self.flags.unwrap_or_else(|| inherit::effective(&[]));
        let general = std::mem::take(&mut self.input.general);
        let mut plan = assemble::assemble(&self.input, self.decisions, &flags);
        plan.diagnostics.splice(0..0, general);
        plan
    }

    /// Counts the undecided dependencies of each undecided node, and starts the nodes without any.
    fn schedule(&mut self, ids: impl Iterator<Item = Id> + Clone) {
        for id in ids.clone() {
            let open =
                self.input.dependencies.of(id).filter(|dependency| self.decisions[*dependency].is_none()).count();
            self.undecided[id] = u32::try_from(open).unwrap_or(u32::MAX);
        }
        let startable = ids.filter(|id| self.decisions[*id].is_none() && self.undecided[*id] == 0);
        self.startable.extend(startable);
        // Nodes are taken from the end, so that calls are in address order.
        self.startable.reverse();
    }

    fn advance(&mut self) {
        while let Some(id) = self.startable.pop() {
            let node = self.input.nodes[id];
            let scope = EvalScope { input: &self.input, decisions: &self.decisions };
            let mut begun = self.families.decide(&scope, id);
            if begun.is_none() && node.desired {
                begun = preflight::after_dependencies(&scope, id);
            }
            match begun {
                Some(mut decision) => {
                    decision.deposed = destroys::decide_deposed(&self.input, id, Vec::new());
                    self.decided(id, decision);
                }
                None => {
                    let mut progress = Box::new(Progress::default());
                    let next = driver_call::start(&mut progress, &scope, id);
                    self.advance_node(id, progress, next);
                }
            }
        }
    }

    /// Advances an object until it waits for a response or is decided.
    fn advance_node(&mut self, id: Id, mut progress: Box<Progress>, mut next: NextAction) {
        loop {
            match next {
                NextAction::Wait => {
                    self.in_progress[id] = Some(progress);
                    return;
                }
                NextAction::Call(questions) => {
                    for (purpose, question) in questions {
                        self.request_call(id, &progress, purpose, question);
                    }
                    next = NextAction::Wait;
                }
                NextAction::Evaluate => {
                    let scope = EvalScope { input: &self.input, decisions: &self.decisions };
                    next = desired::evaluate(&scope, self.evaluator, id, &mut progress);
                }
                NextAction::Decided(mut decision) => {
                    decision.diagnostics.append(&mut progress.read_warnings);
                    let scope = EvalScope { input: &self.input, decisions: &self.decisions };
                    readiness::hold_for_dependencies(&scope, id, &mut decision);
                    desired::check_postconditions(&scope, id, &mut decision);
                    publish::check_copies(&scope, id, progress.copies_drifted, &mut decision);
                    if decision.deposed.is_empty() {
                        let refreshed = std::mem::take(&mut progress.deposed);
                        decision.deposed = destroys::decide_deposed(&self.input, id, refreshed);
                    }
                    decision.provider = progress.provider.take();
                    decision.health = progress.health.take();
                    (decision.read, decision.missing) = (progress.was_read(), progress.found_missing());
                    self.decided(id, *decision);
                    return;
                }
            }
        }
    }

    fn request_call(&mut self, id: Id, progress: &Progress, purpose: CallPurpose, question: DriverRequest) {
        let node = self.input.nodes[id];
        // A deposed object is read with the provider configuration that created it.
        let recorded = match (&question, purpose) {
            (DriverRequest::Read(object), CallPurpose::Deposed(_)) => object.provider.clone(),
            _ => None,
        };
        let provider = recorded.or_else(|| progress.provider.clone());
        let service_account = match (&question, node.instance) {
            (DriverRequest::Read(object), _) if purpose != CallPurpose::Current || !node.desired => {
                object.service_account.clone()
            }
            (_, Some(instance)) => instance.service_account.clone(),
            (_, None) => "".into(),
        };
        self.calls.push(DriverCall {
            id: CallId(self.open.len()),
            address: node.address.clone(),
            type_name: node.type_name(),
            provider,
            service_account,
            request: question,
        });
        self.open.push(Some((id, purpose)));
        self.open_count += 1;
    }

    fn decided(&mut self, id: Id, decision: Decision) {
        self.decisions[id] = Some(decision);
        for dependent in self.input.dependents.of(id) {
            if self.decisions[dependent].is_none() {
                self.undecided[dependent] -= 1;
                if self.undecided[dependent] == 0 {
                    self.startable.push(dependent);
                }
            }
        }
    }

    /// Applies the constraints of the whole plan. Objects that were planned with a removed change are planned again.
    fn apply_constraints(&mut self) {
        self.close_gaps();
        self.rounds += 1;
        let scope = EvalScope { input: &self.input, decisions: &self.decisions };
        let problems: Vec<Diagnostic> = self.input.programs().flat_map(|program| program.problems(&scope)).collect();
        self.input.general = problems;
        let (flags, again) = constraints::apply(&self.input, &mut self.decisions);
        self.flags = Some(flags);
        self.is_final = again.is_empty();
        for id in &again {
            self.decisions[*id] = None;
        }
        self.families.reset();
        if self.rounds < MAX_ROUNDS {
            self.schedule(again.into_iter());
            return;
        }
        for id in again {
            let what = "a dependency was blocked while this object was planned";
            let waits = Diagnostic::warning(self.input.address(id), Reason::DependencyNotReady, what);
            let mut decision = Decision::blocked(Block::held(waits), self.input.nodes[id].current());
            decision.deposed = destroys::decide_deposed(&self.input, id, Vec::new());
            self.decisions[id] = Some(decision);
        }
    }

    /// Blocks objects that never became startable because of a cycle that `cycle` did not report. That would be a bug
    /// in Purlin, but the plan must end in any case.
    fn close_gaps(&mut self) {
        for id in 0..self.decisions.len() {
            if self.decisions[id].is_none() {
                let what = "the dependency order could not be determined";
                let block = Block::broken(Diagnostic::error(self.input.address(id), Reason::InternalError, what));
                self.decisions[id] = Some(Decision::blocked(block, self.input.nodes[id].current()));
            }
        }
    }
}
