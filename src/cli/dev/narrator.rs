//! What `purlin dev` says: each planned change and each problem once, and how everything is when nothing is left to do.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::cli::output::Console;
use crate::cli::progress::Reporter;
use crate::cli::show;
use crate::cli::situation::{Planned, has_errors, is_change};
use crate::execute::{Progress, ProgressKind};
use crate::model::{Action, Address, Change, DeposedKey, Diagnostic, Diagnostics, Reason, Recorded};
use crate::plan::Plan;

/// The object that a planned change is about: the current one of an address, or a deposed one.
type Object = (Address, Option<DeposedKey>);

/// Says what happens.
pub struct Narrator {
    console: Console,
    /// Where progress goes.
    pub reporter: Reporter,
    /// Planned changes that were shown and are not done yet.
    shown: BTreeMap<Object, Action>,
    /// The problems of the last plan of each name, and those that concern none.
    problems: BTreeMap<Arc<str>, Diagnostics>,
    general: Diagnostics,
    /// The names of which something is held because the files are known in part only.
    held: BTreeSet<Arc<str>>,
    /// What was said last of how everything is, if that still holds.
    rested: Option<&'static str>,
}

impl Narrator {
    /// One that has said nothing yet.
    pub fn new(console: Console, reporter: Reporter) -> Self {
        Self {
            console,
            reporter,
            shown: BTreeMap::new(),
            problems: BTreeMap::new(),
            general: Vec::new(),
            held: BTreeSet::new(),
            rested: None,
        }
    }

    /// The files have changed: how everything is will be said again.
    pub fn files_changed(&mut self) {
        self.rested = None;
    }

    /// Problems of the files.
    pub fn problems(&mut self, found: &Diagnostics) {
        self.warn(found.iter().filter(|one| !self.general.contains(one)).cloned().collect());
        self.general.clone_from(found);
    }

    /// A plan is carried out from now on. `is_readable`: nothing is held for a file that cannot be read.
    pub fn adopted(&mut self, names: &BTreeSet<Arc<str>>, mut plan: Plan, is_readable: bool) -> anyhow::Result<()> {
        let incomplete = |change: &&Change| change.blocked == Some(Reason::SourceIncomplete);
        self.held.retain(|name| !names.contains(name));
        self.held.extend(plan.changes.iter().filter(incomplete).map(|change| change.address.name.clone()));
        let mut found = std::mem::take(&mut plan.diagnostics);
        if is_readable {
            // That the files have just changed passes in a moment.
            found.retain(|one| one.reason != Reason::SourceIncomplete);
        }
        self.report(names, found);
        let is_covered = |object: &Object, _: &mut Action| names.contains(&object.0.name);
        let before: BTreeMap<Object, Action> = self.shown.extract_if(.., is_covered).collect();
        let object = |change: &Change| (change.address.clone(), change.deposed);
        self.shown.extend(plan.changes.iter().map(|change| (object(change), change.action)));
        plan.changes.retain(|change| before.get(&object(change)) != Some(&change.action));
        if plan.changes.iter().any(is_change) {
            let mut text = Vec::new();
            show::text(&mut text, &Planned { plan, ..Planned::default() }, self.console.paint)?;
            self.reporter.note(String::from_utf8_lossy(&text).trim_end());
        }
        Ok(())
    }

    /// Something happened to a step. `records`: as they are after it.
    pub fn progress(&mut self, progress: &Progress, records: &Recorded) {
        self.rested = None;
        self.reporter.event(progress, records);
        if matches!(progress.kind, ProgressKind::Finished) {
            let address = &progress.step.address;
            self.shown.retain(|(shown, _), _| shown != address);
        }
    }

    /// Nothing is left to do. Said once, until something happens.
    pub fn rest(&mut self, is_readable: bool) {
        let said = self.how_it_is(is_readable);
        if self.rested != Some(said) {
            self.rested = Some(said);
            self.reporter.note(said);
        }
    }

    fn how_it_is(&self, is_readable: bool) -> &'static str {
        match (self.held.is_empty(), is_readable) {
            (false, true) => {
                "Something is missing from the files; it is destroyed once they have not changed for a second, unless \
                 it is protected."
            }
            (false, false) => "Something is missing from the files; it stays until they can be read.",
            _ if self.problems.values().chain([&self.general]).any(|found| has_errors(found)) => {
                "All that can be done is done; the errors above say what to do about the rest. Watching."
            }
            _ => "Everything is as the files ask for. Watching.",
        }
    }

    /// Problems are reported once, not with every plan.
    fn report(&mut self, names: &BTreeSet<Arc<str>>, found: Diagnostics) {
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
        self.warn(news);
    }

    fn warn(&mut self, mut found: Diagnostics) {
        found.retain(|one| self.reporter.is_news(one));
        self.console.diagnostics(&found);
    }
}
