//! The planning machine: it walks the objects in dependency order, asks what it must know, and settles the plan once
//! every object is decided.
//!
//! It does not know how an object is decided: `wanted` and `leaving` do, one object at a time, and `settle` looks at
//! the whole.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::draft::{Block, Draft};
use super::families::Families;
use super::inherit::{self, Inheritance};
use super::progress::{Next, Progress, Topic};
use super::scene::{Id, Scene};
use super::seen::{Evaluate, Seen, Templates};
use super::{
    Ask, AskId, Plan, PlanOptions, Question, Reply, Types, assemble, inquiry, leaving, preflight, publish, select,
    settle, wanted,
};
use crate::load::{Config, Members};
use crate::model::{Diagnostic, Reason, Recorded};

/// After so many rounds an object whose dependency was blocked late is not planned again, but waits. Real plans need
/// two or three; the bound keeps the worst that anybody can construct linear.
const MAX_ROUNDS: usize = 50;

/// Plans one namespace, or some of its components.
///
/// An object is asked about once everything that it refers to is decided. When nothing is left to ask, the plan is
/// settled: what only the whole can tell (who creates first, who is held by whom) may block an object late; then those
/// that were planned on the assumption that it changes are planned again.
pub struct Planner<'a> {
    scene: Scene<'a>,
    evaluator: &'a dyn Evaluate,
    drafts: Vec<Option<Draft>>,
    under_way: Vec<Option<Box<Progress>>>,
    /// How many direct dependencies of each object are undecided.
    undecided: Vec<u32>,
    /// Objects whose dependencies are all decided.
    startable: Vec<Id>,
    asks: Vec<Ask>,
    /// By `AskId`; answered ones are gone.
    open: Vec<Option<(Id, Topic)>>,
    open_count: usize,
    rounds: usize,
    families: Families,
    flags: Option<Inheritance>,
    settled: bool,
}

impl<'a> Planner<'a> {
    /// Starts planning. Nothing is asked yet.
    pub fn new(config: &'a Config, recorded: &'a Recorded, options: &'a PlanOptions, types: &'a dyn Types) -> Self {
        Self::with_evaluator(config, recorded, options, types, &Templates)
    }

    /// The same with another way to evaluate configuration: tests need no expression language.
    pub(super) fn with_evaluator(
        config: &'a Config,
        recorded: &'a Recorded,
        options: &'a PlanOptions,
        types: &'a dyn Types,
        evaluator: &'a dyn Evaluate,
    ) -> Self {
        let mut scene = Scene::new(config, recorded, options, types);
        scene.selected = select::selected(&scene);
        let count = scene.subjects.len();
        let mut planner = Self {
            evaluator,
            drafts: preflight::decide_at_once(&scene, config),
            under_way: std::iter::repeat_with(|| None).take(count).collect(),
            undecided: vec![0; count],
            startable: Vec::new(),
            asks: Vec::new(),
            open: Vec::new(),
            open_count: 0,
            rounds: 0,
            families: Families::default(),
            flags: None,
            settled: false,
            scene,
        };
        planner.schedule(0..count);
        planner
    }

    /// The questions that can be asked now and were not given out before. Empty while every open question waits for
    /// a reply, and when there is nothing left to ask.
    pub fn ready(&mut self) -> Vec<Ask> {
        self.advance();
        while self.asks.is_empty() && self.open_count == 0 && !self.settled && self.families.expansions.is_empty() {
            self.settle();
            self.advance();
        }
        std::mem::take(&mut self.asks)
    }

    /// Takes the reply to a question; more questions may be ready then. A reply to no open question is ignored.
    pub fn answer(&mut self, id: AskId, reply: Reply) {
        let Some((subject, topic)) = self.open.get_mut(id.0).and_then(Option::take) else { return };
        self.open_count -= 1;
        let Some(mut progress) = self.under_way[subject].take() else { return };
        let next = inquiry::take_reply(&mut progress, &self.scene, subject, topic, reply);
        self.follow(subject, progress, next);
    }

    /// The families whose instances are known only now, since an expression tells them. Call it when `ready` gives
    /// nothing and no question is open: if there is any, begin anew with [`Config::expanded`], and give the same
    /// replies to the same questions. A plan that is finished all the same leaves these families out.
    pub fn expansions(&self) -> &BTreeMap<Arc<str>, Members> {
        &self.families.expansions
    }

    /// The plan. Call it when `ready` gives nothing and no question is open.
    pub fn finish(mut self) -> Plan {
        self.families.expansions.clear();
        // A caller that stops early gets a plan all the same: what was never answered cannot be planned.
        while !self.ready().is_empty() || self.open_count > 0 {
            self.open_count = 0;
            self.open.iter_mut().for_each(|open| *open = None);
            for id in 0..self.scene.subjects.len() {
                if self.under_way[id].take().is_some() {
                    let what = "planning ended before the driver had answered";
                    let block = Block::broken(Diagnostic::error(self.scene.address(id), Reason::InternalError, what));
                    self.decided(id, Draft::blocked(block, self.scene.subjects[id].current()));
                }
            }
        }
        let flags = self.flags.unwrap_or_else(|| inherit::effective(&[]));
        assemble::assemble(&self.scene, self.drafts, &flags)
    }

    /// Counts what each undecided object waits for, and starts those that wait for nothing.
    fn schedule(&mut self, ids: impl Iterator<Item = Id> + Clone) {
        for id in ids.clone() {
            let open = self.scene.wants.of(id).filter(|dependency| self.drafts[*dependency].is_none()).count();
            self.undecided[id] = u32::try_from(open).unwrap_or(u32::MAX);
        }
        let startable = ids.filter(|id| self.drafts[*id].is_none() && self.undecided[*id] == 0);
        self.startable.extend(startable);
        // Taken from the end, so that objects are asked about in address order.
        self.startable.reverse();
    }

    fn advance(&mut self) {
        while let Some(id) = self.startable.pop() {
            let subject = self.scene.subjects[id];
            let seen = Seen { scene: &self.scene, drafts: &self.drafts };
            let mut begun = self.families.decide(&seen, id);
            if begun.is_none() && subject.wanted {
                begun = preflight::after_dependencies(&seen, id);
            }
            match begun {
                Some(mut draft) => {
                    draft.leftovers = leaving::leftovers(&self.scene, id, Vec::new());
                    self.decided(id, draft);
                }
                None => {
                    let mut progress = Box::new(Progress::default());
                    let next = inquiry::begin(&mut progress, &seen, id);
                    self.follow(id, progress, next);
                }
            }
        }
    }

    /// Does what an object needs next, until it waits for a reply or is decided.
    fn follow(&mut self, id: Id, mut progress: Box<Progress>, mut next: Next) {
        loop {
            match next {
                Next::Wait => {
                    self.under_way[id] = Some(progress);
                    return;
                }
                Next::Ask(questions) => {
                    for (topic, question) in questions {
                        self.ask(id, &progress, topic, question);
                    }
                    next = Next::Wait;
                }
                Next::Evaluate => {
                    let seen = Seen { scene: &self.scene, drafts: &self.drafts };
                    next = wanted::evaluate(&seen, self.evaluator, id, &mut progress);
                }
                Next::Decided(mut draft) => {
                    draft.diagnostics.append(&mut progress.heard);
                    let seen = Seen { scene: &self.scene, drafts: &self.drafts };
                    wanted::confirm(&seen, id, &mut draft);
                    publish::look(&seen, id, progress.copies_drifted, &mut draft);
                    if draft.leftovers.is_empty() {
                        let refreshed = std::mem::take(&mut progress.leftovers);
                        draft.leftovers = leaving::leftovers(&self.scene, id, refreshed);
                    }
                    draft.provider = progress.provider.take();
                    (draft.read, draft.gone) = (progress.was_read(), progress.found_gone());
                    self.decided(id, *draft);
                    return;
                }
            }
        }
    }

    fn ask(&mut self, id: Id, progress: &Progress, topic: Topic, question: Question) {
        let subject = self.scene.subjects[id];
        // A leftover is read as whoever made it.
        let recorded = match (&question, topic) {
            (Question::Read(object), Topic::Leftover(_)) => object.provider.clone(),
            _ => None,
        };
        let provider = recorded.or_else(|| progress.provider.clone());
        let service_account = match (&question, subject.instance) {
            (Question::Read(object), _) if topic != Topic::Current || !subject.wanted => object.service_account.clone(),
            (_, Some(instance)) => instance.service_account.clone(),
            (_, None) => "".into(),
        };
        self.asks.push(Ask {
            id: AskId(self.open.len()),
            address: subject.address.clone(),
            type_name: subject.type_name(),
            provider,
            service_account,
            question,
        });
        self.open.push(Some((id, topic)));
        self.open_count += 1;
    }

    fn decided(&mut self, id: Id, draft: Draft) {
        self.drafts[id] = Some(draft);
        for dependent in self.scene.dependents.of(id) {
            if self.drafts[dependent].is_none() {
                self.undecided[dependent] -= 1;
                if self.undecided[dependent] == 0 {
                    self.startable.push(dependent);
                }
            }
        }
    }

    /// Looks at the whole. Objects that were planned upon a change that will not happen are planned again.
    fn settle(&mut self) {
        self.close_gaps();
        self.rounds += 1;
        let (flags, again) = settle::settle(&self.scene, &mut self.drafts);
        self.flags = Some(flags);
        self.settled = again.is_empty();
        for id in &again {
            self.drafts[*id] = None;
        }
        self.families.forget();
        if self.rounds < MAX_ROUNDS {
            self.schedule(again.into_iter());
            return;
        }
        for id in again {
            let what = "a dependency was held back while this was planned";
            let waits = Diagnostic::warning(self.scene.address(id), Reason::DependencyNotReady, what);
            let mut draft = Draft::blocked(Block::held(waits), self.scene.subjects[id].current());
            draft.leftovers = leaving::leftovers(&self.scene, id, Vec::new());
            self.drafts[id] = Some(draft);
        }
    }

    /// Objects that never became startable stand behind a ring that `cycle` did not report. That would be a fault of
    /// ours; the plan must end all the same.
    fn close_gaps(&mut self) {
        for id in 0..self.drafts.len() {
            if self.drafts[id].is_none() {
                let what = "the order of dependencies could not be found";
                let block = Block::broken(Diagnostic::error(self.scene.address(id), Reason::InternalError, what));
                self.drafts[id] = Some(Draft::blocked(block, self.scene.subjects[id].current()));
            }
        }
    }
}
