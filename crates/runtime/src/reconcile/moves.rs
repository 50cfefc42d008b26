//! Moves records to other addresses, one component at a time, before any other change of their objects. Meanwhile the
//! component is not planned and starts no step.

use std::collections::BTreeSet;

use super::index::Work;
use super::plan_request::PlanPart;
use super::summarize::Note;
use super::{Command, MoveRequest, MoveResult, Reconciler, ReportSubject};
use crate::execute::Written;
use engine::plan::ObjectBlock;
use engine::plan::moves::{Move, references_any};
use model::{Address, Diagnostic, Reason, Recorded};

impl Reconciler {
    pub(super) fn start_moves(&mut self, part: &PlanPart, moves: Vec<Move>) {
        let involved = self.involved(&part.addresses, &moves);
        if involved.iter().any(|address| self.schedule.is_running(address)) {
            return self.plan_again(part);
        }
        self.schedule.cancel(&part.addresses);
        let known = self.index.records();
        let own = |address: &Address| Some((address.clone(), known.get(address)?.clone()));
        let records: Recorded = involved.iter().filter_map(own).collect();
        for address in &involved {
            self.index.begin(address, Work::Move);
        }
        let warns = |one: &&Diagnostic| one.reason == Reason::ProviderWarning;
        let warnings = part.plan.diagnostics.iter().filter(warns).cloned().collect();
        self.moving.extend(part.names.iter().cloned());
        let names = part.names.clone();
        self.commands.push(Command::Move(Box::new(MoveRequest { moves, records, names, involved, warnings })));
    }

    /// The moved objects, their new addresses, and the objects whose records reference any of them.
    fn involved(&self, scope: &BTreeSet<Address>, moves: &[Move]) -> BTreeSet<Address> {
        let ends = || moves.iter().flat_map(|one| [&one.from, &one.to]);
        let names: BTreeSet<&str> = ends().map(|address| &*address.name).collect();
        let records = scope.iter().filter_map(|address| self.index.records().get(address));
        let users =
            records.filter(|stored| references_any(&stored.record, &names)).map(|stored| &stored.record.address);
        users.chain(ends()).cloned().collect()
    }

    /// Handles the result of moves; the component is planned again.
    pub(super) fn handle_moves(&mut self, moved: MoveResult) {
        let MoveResult { request, outcome } = moved;
        let MoveRequest { names, moves, involved, records, warnings } = request;
        self.moving.retain(|name| !names.contains(name));
        self.planning.joining.clear();
        for address in &involved {
            self.index.end(address, records.get(address).cloned().map_or(Written::Erased, Written::Record));
        }
        for one in &moves {
            match &outcome {
                Ok(()) => self.report_move(one, &warnings),
                Err(error) => {
                    let message = format!("`{}` could not be moved to `{}`: {error}", one.from, one.to);
                    tracing::warn!(namespace = &**self.namespace(), "{message}");
                    for address in [&one.from, &one.to] {
                        let held = ObjectBlock { reason: Reason::OperationFailed, message: message.clone() };
                        self.hold_failed(address, held, true, None);
                    }
                }
            }
            // The withdrawn steps report no further progress.
            if let Some(tracked) = self.objects.get_mut(&one.from) {
                tracked.set_steps(Vec::new());
            }
            self.clean_up(&one.from);
        }
        names.iter().for_each(|name| self.touch(name));
    }

    fn report_move(&mut self, one: &Move, warnings: &[Diagnostic]) {
        let Move { from, to, .. } = one;
        let Some(instance) = self.index.instance(&to.name).filter(|_| !one.reverted) else {
            let namespace = self.namespace();
            return tracing::info!(%namespace, "`{from}` keeps its address because `{to}` is no longer desired");
        };
        let note = format!("moved `{from}` to `{to}`; the object is unchanged");
        let moved = Note { warning: false, reason: "Moved", action: "Move", note };
        let own = warnings.iter().filter(|warning| warning.address.as_ref() == Some(to));
        let reason = Reason::ProviderWarning.as_str();
        let warned = own.map(|one| Note { warning: true, reason, action: "Move", note: one.message() });
        for note in std::iter::once(moved).chain(warned) {
            self.report(ReportSubject::Resource(instance.clone()), note);
        }
    }
}
