//! Moving records to other addresses, before anything else is done about their objects, one component at a time. Nothing
//! of it is planned meanwhile, and no step of it starts.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::plan_request::Part;
use super::summarize::Note;
use super::{About, Command, Reconciler};
use crate::execute::JournalError;
use crate::model::{Address, Diagnostic, Diagnostics, Reason, Record, Recorded};
use crate::plan::Held;
use crate::plan::moves::Move;

/// The moves of one component.
#[derive(Debug)]
pub struct MoveRequest {
    /// The moves, in order.
    pub moves: Vec<Move>,
    /// The records that are written, as they are; carrying it out changes them.
    pub records: Recorded,
    names: BTreeSet<Arc<str>>,
    /// The objects whose records may be written.
    involved: BTreeSet<Address>,
    /// What the drivers of new types have warned of.
    warnings: Diagnostics,
}

/// What became of the moves of one component.
#[derive(Debug)]
pub struct Moved {
    /// What was asked for, with the records as they are now.
    pub request: MoveRequest,
    /// Whether it was done.
    pub outcome: Result<(), JournalError>,
}

impl Reconciler {
    /// Starts the moves that a plan has found.
    pub(super) fn start_moves(&mut self, part: &Part, moves: Vec<Move>) {
        let involved = self.involved(&part.addresses, &moves);
        if involved.iter().any(|address| self.schedule.is_running(address)) {
            return self.plan_again(part);
        }
        self.schedule.withdraw(&part.addresses);
        let known = self.schedule.records();
        let own = |address: &Address| Some((address.clone(), known.get(address)?.clone()));
        let records: Recorded = involved.iter().filter_map(own).collect();
        for address in &involved {
            self.index.begin(address, records.get(address).map(|stored| stored.version));
        }
        let warns = |one: &&Diagnostic| one.reason == Reason::ProviderWarning;
        let warnings = part.plan.diagnostics.iter().filter(warns).cloned().collect();
        self.moving.extend(part.names.iter().cloned());
        let names = part.names.clone();
        self.commands.push(Command::Move(Box::new(MoveRequest { moves, records, names, involved, warnings })));
    }

    /// The objects that are moved, their places, and those whose records name any of them.
    fn involved(&self, scope: &BTreeSet<Address>, moves: &[Move]) -> BTreeSet<Address> {
        let ends = || moves.iter().flat_map(|one| [&one.from, &one.to]);
        let names: BTreeSet<&str> = ends().map(|address| &*address.name).collect();
        let uses = |record: &Record| {
            let objects = record.current.iter().chain(record.deposed.values());
            objects.flat_map(|object| object.dependencies.iter()).any(|address| names.contains(&*address.name))
        };
        let records = scope.iter().filter_map(|address| self.schedule.records().get(address));
        let users = records.filter(|stored| uses(&stored.record)).map(|stored| &stored.record.address);
        users.chain(ends()).cloned().collect()
    }

    /// Takes in what moves came to; the component is planned again.
    pub(super) fn take_moved(&mut self, moved: Moved) {
        let Moved { request, outcome } = moved;
        let MoveRequest { names, moves, involved, records, warnings } = request;
        self.moving.retain(|name| !names.contains(name));
        self.planning.joining.clear();
        for address in &involved {
            let own = records.get(address);
            match own {
                Some(stored) => drop(self.schedule.records_mut().insert(address.clone(), stored.clone())),
                None => drop(self.schedule.records_mut().remove(address)),
            }
            self.index.end(address, own);
            self.bring_in(address);
        }
        for one in &moves {
            match &outcome {
                Ok(()) => self.report_move(one, &warnings),
                Err(error) => {
                    let message = format!("`{}` could not be moved to `{}`: {error}", one.from, one.to);
                    tracing::warn!(namespace = &**self.namespace(), "{message}");
                    for address in [&one.from, &one.to] {
                        let held = Held { reason: Reason::OperationFailed, message: message.clone() };
                        self.hold_failed(address, held, true, None);
                    }
                }
            }
            // Of steps that were taken back nothing more comes.
            if let Some(tracked) = self.objects.get_mut(&one.from) {
                tracked.expect(Vec::new());
            }
            self.tidy(&one.from);
        }
        names.iter().for_each(|name| self.touch(name));
    }

    fn report_move(&mut self, one: &Move, warnings: &[Diagnostic]) {
        let Move { from, to, .. } = one;
        let Some(instance) = self.index.instance(&to.name).filter(|_| !one.back) else {
            let namespace = self.namespace();
            return tracing::info!(%namespace, "`{from}` stays what it is, since `{to}` is not wanted any more");
        };
        let note = format!("`{from}` is `{to}` from now on; the object stays as it is");
        let moved = Note { warning: false, reason: "Moved", action: "Move", note };
        let own = warnings.iter().filter(|warning| warning.address.as_ref() == Some(to));
        let reason = Reason::ProviderWarning.as_str();
        let warned = own.map(|one| Note { warning: true, reason, action: "Move", note: one.message() });
        for note in std::iter::once(moved).chain(warned) {
            self.report(About::Resource(instance.clone()), note);
        }
    }
}
