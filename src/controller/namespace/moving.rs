//! Moving records to other addresses, before anything else is done about their objects: in the background, one component
//! at a time. Nothing of it is planned meanwhile, and no step of it starts.

use std::collections::BTreeSet;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures::FutureExt as _;
use tokio::time::Instant;

use super::NamespaceTask;
use super::planning::Part;
use crate::controller::context::Context;
use crate::controller::summarize::Note;
use crate::execute::{self, JournalError};
use crate::model::{Address, Diagnostic, Diagnostics, Reason, Record, Recorded};
use crate::plan::Held;
use crate::plan::moves::{Move, rounds};

/// What became of the moves of one component.
pub(super) struct Moved {
    names: BTreeSet<Arc<str>>,
    moves: Vec<Move>,
    /// The objects whose records were or might have been written.
    involved: BTreeSet<Address>,
    /// Their records as they are now.
    records: Recorded,
    /// What the drivers of new types have warned of.
    warnings: Diagnostics,
    outcome: Result<(), JournalError>,
}

impl NamespaceTask {
    /// Starts the moves that a plan has found. The plan itself is not carried out: the next one is made on the records as
    /// they are then.
    pub(super) fn start_moves(&mut self, part: &Part, moves: Vec<Move>, now: Instant) {
        let involved = self.involved(&part.addresses, &moves);
        if self.is_put_aside(part, now) {
            return;
        }
        if involved.iter().any(|address| self.run.is_running(address)) {
            return self.plan_again(part, now);
        }
        self.run.withdraw(&part.addresses);
        let own = |address: &Address| Some((address.clone(), self.run.records().get(address)?.clone()));
        let records: Recorded = involved.iter().filter_map(own).collect();
        let mut index = self.shared.index();
        for address in &involved {
            index.begin(address, records.get(address).map(|stored| stored.version));
        }
        drop(index);
        let warns = |one: &&Diagnostic| one.reason == Reason::ProviderWarning;
        let warnings = part.plan.diagnostics.iter().filter(warns).cloned().collect();
        self.moving.extend(part.names.iter().cloned());
        let (context, names) = (self.context.clone(), part.names.clone());
        self.moves.spawn(async move {
            let mut records = records;
            let carried = AssertUnwindSafe(carry_out(&context, &mut records, &moves)).catch_unwind().await;
            let lost = || JournalError::Unavailable {
                address: moves[0].from.clone(),
                message: "the move failed by a fault of Purlin".to_owned(),
            };
            let outcome = carried.unwrap_or_else(|_| Err(lost()));
            Moved { names, moves, involved, records, warnings, outcome }
        });
    }

    /// The objects that are moved, their places, and those whose records name any of them.
    fn involved(&self, scope: &BTreeSet<Address>, moves: &[Move]) -> BTreeSet<Address> {
        let ends = || moves.iter().flat_map(|one| [&one.from, &one.to]);
        let names: BTreeSet<&str> = ends().map(|address| &*address.name).collect();
        let uses = |record: &Record| {
            let objects = record.current.iter().chain(record.deposed.values());
            objects.flat_map(|object| object.dependencies.iter()).any(|address| names.contains(&*address.name))
        };
        let records = scope.iter().filter_map(|address| self.run.records().get(address));
        let users = records.filter(|stored| uses(&stored.record)).map(|stored| &stored.record.address);
        users.chain(ends()).cloned().collect()
    }

    /// Takes in what moves came to; the component is planned again.
    pub(super) fn take_moved(&mut self, moved: Moved) {
        let Moved { names, moves, involved, records, warnings, outcome } = moved;
        let now = Instant::now();
        self.moving.retain(|name| !names.contains(name));
        self.joining.clear();
        for address in &involved {
            let own = records.get(address);
            match own {
                Some(stored) => drop(self.run.records_mut().insert(address.clone(), stored.clone())),
                None => drop(self.run.records_mut().remove(address)),
            }
            self.shared.index().end(address, own);
            self.bring_in(address);
        }
        for one in &moves {
            match &outcome {
                Ok(()) => self.tell_move(one, &warnings),
                Err(error) => {
                    let message = format!("`{}` could not be moved to `{}`: {error}", one.from, one.to);
                    tracing::warn!(namespace = &**self.shared.name(), "{message}");
                    for address in [&one.from, &one.to] {
                        let held = Held { reason: Reason::OperationFailed, message: message.clone() };
                        self.hold_failed(address, held, true, None, now);
                    }
                }
            }
            // Steps that were taken back are not heard of again.
            if let Some(tracked) = self.tracked.get_mut(&one.from) {
                tracked.expect(Vec::new());
            }
            self.tidy(&one.from);
        }
        names.iter().for_each(|name| self.settle.touch(name, now));
    }

    fn tell_move(&self, one: &Move, warnings: &[Diagnostic]) {
        let (namespace, Move { from, to, .. }) = (self.shared.name(), one);
        let (instance, terminating) = {
            let index = self.shared.index();
            (index.instance(&to.name), index.is_terminating())
        };
        let Some(instance) = instance.filter(|_| !one.back) else {
            return tracing::info!(%namespace, "`{from}` stays what it is, since `{to}` is not wanted any more");
        };
        let note = format!("`{from}` is `{to}` from now on; the object stays as it is");
        let moved = Note { warning: false, reason: "Moved", action: "Move", note };
        let own = warnings.iter().filter(|warning| warning.address.as_ref() == Some(to));
        let reason = Reason::ProviderWarning.as_str();
        let warned = own.map(|one| Note { warning: true, reason, action: "Move", note: one.message() });
        for note in std::iter::once(moved).chain(warned) {
            self.context.tell(namespace, &instance, terminating, note);
        }
    }
}

/// Between the two halves of a round both Resources are there, and so are the copies that belong to the old one: they
/// are handed over before the server removes them with it.
async fn carry_out(context: &Context, records: &mut Recorded, moves: &[Move]) -> Result<(), JournalError> {
    let (engine, journal) = (&context.engine, context.engine.journal.as_ref());
    for round in rounds(moves) {
        execute::prepare(journal, records, round).await?;
        for one in round.iter().filter(|one| !one.back) {
            execute::hand_over_copies(engine, records, &one.to).await?;
        }
        execute::conclude(journal, records, round).await?;
    }
    Ok(())
}
