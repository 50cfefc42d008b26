//! Prints the output of `purlin dev`: each planned change and each problem once, and the overall status when it is
//! idle.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::cli::inputs::{OtherSources, PlanResult};
use crate::cli::output::Console;
use crate::cli::progress::Reporter;
use crate::cli::show;
use engine::plan::Plan;
use engine::plan::render::problems;
use model::has_errors;
use model::{Action, Address, Change, DeposedKey, Diagnostic, Diagnostics, Reason, Recorded};
use runtime::execute::{Progress, ProgressKind};

/// The current object of an address, or a deposed object.
type Object = (Address, Option<DeposedKey>);

pub struct DevReporter {
    console: Console,
    pub progress: Reporter,
    /// Planned changes that were printed and are not finished.
    shown: BTreeMap<Object, Action>,
    /// The problems of the last plan of each name.
    problems: BTreeMap<Arc<str>, Diagnostics>,
    /// Problems that are not about an object.
    general: Diagnostics,
    /// The names with objects that are kept because the desired state may be incomplete.
    held: BTreeSet<Arc<str>>,
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
    pub fn problems(&mut self, found: &Diagnostics) {
        self.warn(found.iter().filter(|one| !self.general.contains(one)).cloned().collect(), &[]);
        self.general.clone_from(found);
    }

    /// Prints the new changes and problems of an adopted plan. `has_no_errors`: whether all manifests could be read and planned.
    pub fn adopted(&mut self, names: &BTreeSet<Arc<str>>, mut plan: Plan, has_no_errors: bool) {
        let incomplete = |change: &&Change| change.blocked == Some(Reason::SourceIncomplete);
        self.held.retain(|name| !names.contains(name));
        self.held.extend(plan.changes.iter().filter(incomplete).map(|change| change.address.name.clone()));
        let mut found = std::mem::take(&mut plan.diagnostics);
        if has_no_errors {
            // The files have just changed; this is resolved after a moment.
            found.retain(|one| one.reason != Reason::SourceIncomplete);
        }
        self.report(names, found, &plan.changes);
        self.progress.planned(&plan.changes);
        let is_covered = |object: &Object, _: &mut Action| names.contains(&object.0.name);
        let before: BTreeMap<Object, Action> = self.shown.extract_if(.., is_covered).collect();
        let object = |change: &Change| (change.address.clone(), change.deposed);
        self.shown.extend(plan.changes.iter().map(|change| (object(change), change.action)));
        plan.changes.retain(|change| before.get(&object(change)) != Some(&change.action));
        if plan.changes.iter().any(Change::is_change) {
            let mut text = self.progress.blank();
            show::write_changes(&PlanResult { plan, ..PlanResult::default() }, &mut text);
            self.progress.lines(&text);
        }
    }

    /// Reports an event of a step. `records` must include its result.
    pub fn progress(&mut self, progress: &Progress, records: &Recorded) {
        self.last_status = None;
        self.progress.event(progress, records);
        if matches!(progress.kind, ProgressKind::Finished) {
            let address = &progress.step.address;
            self.shown.retain(|(shown, _), _| shown != address);
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
                "Manifests were removed. Their objects are destroyed when the files have not changed for one second, \
                 unless they are protected."
            }
            (false, false) => "Manifests were removed. Their objects are kept until the errors above are fixed.",
            _ if self.problems.values().chain([&self.general]).any(|found| has_errors(found)) => {
                "No more changes can be applied until the errors above are fixed. Watching for changes."
            }
            _ => "All objects are up to date. Watching for changes.",
        }
    }

    /// Prints each problem once, not with every plan.
    fn report(&mut self, names: &BTreeSet<Arc<str>>, found: Diagnostics, changes: &[Change]) {
        let name_of = |one: &Diagnostic| one.address.as_ref().map(|address| address.name.clone());
        let before: Vec<Diagnostics> = names.iter().filter_map(|name| self.problems.remove(name)).collect();
        let is_known = |one: &Diagnostic| before.iter().flatten().chain(&self.general).any(|known| known == one);
        let news = found.iter().filter(|one| !is_known(one)).cloned().collect();
        for one in found {
            match name_of(&one) {
                Some(name) => self.problems.entry(name).or_default().push(one),
                None if !self.general.contains(&one) => self.general.push(one),
                None => {}
            }
        }
        self.warn(news, changes);
    }

    fn warn(&mut self, mut found: Diagnostics, changes: &[Change]) {
        found.retain(|one| self.progress.is_new(one));
        self.console.problems(&problems::collect(changes, &found));
    }
}
