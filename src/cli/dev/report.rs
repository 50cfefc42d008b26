//! Prints the output of `purlin dev`: each planned change and each problem once, and the overall status when it is
//! idle.

use std::collections::{BTreeMap, BTreeSet};

use crate::cli::inputs::{OtherSources, PlanResult};
use crate::cli::output::Console;
use crate::cli::progress::Reporter;
use crate::cli::{outputs, show};
use engine::plan::Plan;
use engine::plan::moves::Move;
use engine::plan::render::problems;
use model::has_errors;
use model::{
    Action, Address, Change, DeposedKey, Diagnostic, Diagnostics, Name, Reason, Recorded, Severity, Step, Tone,
};
use runtime::execute::{Progress, ProgressKind};
use runtime::reconcile::RESOLVING;

/// The current object of an address, or a deposed object.
type Object = (Address, Option<DeposedKey>);

fn object(change: &Change) -> Object {
    (change.address.clone(), change.deposed)
}

pub struct DevReporter {
    console: Console,
    pub progress: Reporter,
    /// Planned changes that were printed and are not finished.
    shown: BTreeMap<Object, Action>,
    /// The problems of the last plan of each name.
    problems: BTreeMap<Name, Diagnostics>,
    /// Problems that are not about an object.
    general: Diagnostics,
    /// Objects whose last step failed, and whose change is still to be made.
    failed: BTreeSet<Object>,
    /// The names with objects that are kept because the desired state may be incomplete.
    held: BTreeSet<Name>,
    other_sources: OtherSources,
    /// The last printed status, if nothing has happened since.
    last_status: Option<&'static str>,
}

impl DevReporter {
    pub fn new(console: Console, progress: Reporter) -> Self {
        Self {
            console,
            progress,
            shown: BTreeMap::new(),
            problems: BTreeMap::new(),
            general: Vec::new(),
            failed: BTreeSet::new(),
            held: BTreeSet::new(),
            other_sources: OtherSources::default(),
            last_status: None,
        }
    }

    /// Prints how many objects are left unchanged because their manifests are not watched, if that has changed.
    pub fn other_sources(&mut self, unchanged: usize) {
        let count = OtherSources { unchanged, ..OtherSources::default() };
        if std::mem::replace(&mut self.other_sources, count) != count && unchanged > 0 {
            let mut text = self.progress.blank();
            show::write_other_sources(count, false, &mut text);
            self.progress.lines(&text);
        }
    }

    /// Ensures that the status is printed again.
    pub fn files_changed(&mut self) {
        self.last_status = None;
    }

    /// Prints new problems of the files.
    pub fn problems(&mut self, problems: &Diagnostics) {
        self.warn(
            problems.iter().filter(|problem| !self.general.contains(problem)).cloned().collect(),
            &Plan::default(),
        );
        self.general.clone_from(problems);
    }

    /// Prints the new changes and problems of an adopted plan. `has_no_errors`: whether all manifests could be read and planned.
    pub fn adopted(&mut self, names: &BTreeSet<Name>, plan: &Plan, has_no_errors: bool) {
        let incomplete = plan.changes().filter(|change| change.blocked == Some(Reason::SourceIncomplete));
        self.held.retain(|name| !names.contains(name));
        self.held.extend(incomplete.map(|change| change.address.name().clone()));
        let mut diagnostics = plan.diagnostics.clone();
        // Nothing is wrong with what is resolved at this moment, and what depends on it follows.
        diagnostics.retain(|diagnostic| !diagnostic.detail.contains(RESOLVING));
        for diagnostic in diagnostics.iter_mut().filter(|diagnostic| diagnostic.summary == RESOLVING) {
            diagnostic.severity = Severity::Warning;
        }
        // What waits for changes of this plan is planned after them.
        diagnostics.retain(|diagnostic| diagnostic.reason != Reason::Waiting || diagnostic.address.is_some());
        if has_no_errors {
            // The files have just changed; this is resolved after a moment.
            diagnostics.retain(|diagnostic| diagnostic.reason != Reason::SourceIncomplete);
        }
        self.report(names, diagnostics, plan);
        self.progress.planned(plan.changes());
        let before: BTreeMap<Object, Action> =
            self.shown.extract_if(.., |object, _| names.contains(object.0.name())).collect();
        self.shown.extend(plan.changes().map(|change| (object(change), change.action)));
        self.failed.retain(|object| self.shown.get(object).is_some_and(|action| *action != Action::NoOp));
        let new = plan.changes().filter(|change| before.get(&object(change)) != Some(&change.action));
        let planned = PlanResult::of_changes(new.cloned(), Diagnostics::new());
        if planned.has_changes() {
            let mut text = self.progress.blank();
            show::write_changes(&planned, &mut text);
            self.progress.lines(&text);
        }
    }

    /// Prints what has moved.
    pub fn moved(&mut self, moves: &[Move]) {
        self.last_status = None;
        let mut text = self.progress.blank();
        for moved in moves.iter().filter(|moved| !moved.reverted) {
            text.tone(Tone::Strong, &moved.to).put(": ").put(moved.because()).end_line();
        }
        self.progress.lines(&text);
    }

    /// Prints the outputs that differ from those recorded before.
    pub fn outputs(&mut self, before: &str, after: &str) {
        let mut text = self.progress.blank();
        outputs::write_changes(before, after, &mut text);
        self.progress.lines(&text);
    }

    /// Reports an event of a step. `records` must include its result.
    pub fn progress(&mut self, progress: &Progress, records: &Recorded) {
        self.last_status = None;
        self.progress.event(progress, records);
        let Step { address, deposed, .. } = &progress.step;
        match progress.kind {
            ProgressKind::Finished => {
                self.shown.retain(|(shown, _), _| shown != address);
                self.failed.remove(&(address.clone(), *deposed));
            }
            ProgressKind::Failed { .. } => drop(self.failed.insert((address.clone(), *deposed))),
            _ => {}
        }
    }

    /// Prints the status when nothing is left to do, once until something happens.
    pub fn report_idle(&mut self, has_no_errors: bool) {
        let status = self.status_line(has_no_errors);
        if self.last_status != Some(status) {
            self.last_status = Some(status);
            let mut text = self.progress.blank();
            text.put(status);
            self.progress.note(&text);
        }
    }

    fn status_line(&self, has_no_errors: bool) -> &'static str {
        match (self.held.is_empty(), has_no_errors) {
            (false, true) => {
                "Objects were removed from the files. They are destroyed when the files have not changed for one second, \
                 unless they are protected."
            }
            (false, false) => "Objects were removed from the files. They are kept until the errors above are fixed.",
            _ if self.problems.values().chain([&self.general]).any(|found| has_errors(found)) => {
                "No more changes can be applied until the errors above are fixed. Watching for changes."
            }
            _ if !self.failed.is_empty() => {
                "Some changes have failed. Those that may succeed later are tried again. Watching for changes."
            }
            _ => "All objects are up to date. Watching for changes.",
        }
    }

    /// Prints each problem once, not with every plan.
    fn report(&mut self, names: &BTreeSet<Name>, diagnostics: Diagnostics, plan: &Plan) {
        let before: Vec<Diagnostics> = names.iter().filter_map(|name| self.problems.remove(name)).collect();
        let known: Vec<&Diagnostic> = before.iter().flatten().chain(&self.general).collect();
        let news = diagnostics.iter().filter(|diagnostic| !known.contains(diagnostic)).cloned().collect();
        for diagnostic in diagnostics {
            match diagnostic.address.as_ref().map(|address| address.name().clone()) {
                Some(name) => self.problems.entry(name).or_default().push(diagnostic),
                None if !self.general.contains(&diagnostic) => self.general.push(diagnostic),
                None => {}
            }
        }
        self.warn(news, plan);
    }

    fn warn(&mut self, mut problems: Diagnostics, plan: &Plan) {
        let mut notes = self.progress.blank();
        for resolved in problems.extract_if(.., |problem| problem.summary == RESOLVING) {
            notes.put(resolved).end_line();
        }
        self.progress.lines(&notes);
        problems.retain(|problem| self.progress.is_new(problem));
        self.console.problems(&problems::collect(plan.changes(), &problems));
    }
}
