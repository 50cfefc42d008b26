//! Moves records to other addresses, one component at a time, before any other change of their objects. Meanwhile the
//! component is not planned and starts no step.

use std::collections::BTreeSet;

use super::index::Work;
use super::planning::PlanPart;
use super::summarize::Note;
use super::{Command, MoveRequest, MoveResult, Reconciler, ReportSubject};
use crate::execute::Written;
use engine::plan::ObjectBlock;
use engine::plan::moves::{Move, references_any};
use model::{Address, Diagnostic, Reason, Stem};

impl Reconciler {
    pub fn start_moves(&mut self, part: &PlanPart, moves: Vec<Move>) {
        let involved = self.involved(&part.adoption.scope, &moves);
        if involved.iter().any(|address| self.schedule.is_running(address)) {
            return self.plan_again(part);
        }
        self.schedule.cancel(&part.adoption.scope);
        let records = self.index.records().of(&involved);
        for address in &involved {
            self.index.begin(address, Work::Move);
        }
        let diagnostics = part.adoption.plan.diagnostics.iter();
        let warnings = diagnostics.filter(|diagnostic| diagnostic.reason == Reason::ProviderWarning).cloned().collect();
        self.moving.extend(part.names.iter().cloned());
        let names = part.names.clone();
        self.commands.push(Command::Move(Box::new(MoveRequest { moves, records, names, involved, warnings })));
    }

    /// The moved objects, their new addresses, and the objects whose records reference any of them.
    fn involved(&self, scope: &BTreeSet<Address>, moves: &[Move]) -> BTreeSet<Address> {
        let ends = moves.iter().flat_map(|moved| [&moved.from, &moved.to]);
        let stems: BTreeSet<&Stem> = ends.clone().map(|address| &address.stem).collect();
        let records = scope.iter().filter_map(|address| self.index.records().get(address));
        let users =
            records.filter(|stored| references_any(&stored.record, &stems)).map(|stored| &stored.record.address);
        users.chain(ends).cloned().collect()
    }

    /// Handles the result of moves; the component is planned again.
    pub fn handle_moves(&mut self, result: MoveResult) {
        let MoveResult { request, outcome } = result;
        let MoveRequest { names, moves, involved, records, warnings } = request;
        self.moving.retain(|name| !names.contains(name));
        self.planning.joining.clear();
        for address in &involved {
            self.index.end(address, records.get(address).cloned().map_or(Written::Erased, Written::Record));
        }
        for moved in &moves {
            match &outcome {
                Ok(()) => self.report_move(moved, &warnings),
                Err(error) => {
                    let message = format!("`{}` could not be moved to `{}`: {error}", moved.from, moved.to);
                    tracing::warn!(namespace = &**self.namespace(), "{message}");
                    for address in [&moved.from, &moved.to] {
                        let held = ObjectBlock { reason: Reason::OperationFailed, message: message.clone() };
                        self.hold_failed(address, held, true, None);
                    }
                }
            }
            // The withdrawn steps report no further progress.
            if let Some(tracked) = self.objects.get_mut(&moved.from) {
                tracked.set_steps(Vec::new());
            }
            self.clean_up(&moved.from);
        }
        names.iter().for_each(|name| self.touch(name));
    }

    fn report_move(&mut self, moved: &Move, warnings: &[Diagnostic]) {
        let Move { from, to, reverted, .. } = moved;
        let Some(instance) = self.index.instance(to.name()).filter(|_| !reverted) else {
            let namespace = self.namespace();
            return tracing::info!(%namespace, "`{from}` keeps its address because `{to}` is no longer desired");
        };
        let note = format!("moved `{from}` to `{to}`; the object is unchanged");
        let note = Note { warning: false, reason: "Moved", action: "Move", note };
        self.report(ReportSubject::Resource(instance.clone()), note);
        for warning in warnings.iter().filter(|warning| warning.address.as_ref() == Some(to)) {
            let (reason, note) = (Reason::ProviderWarning.as_str(), warning.message());
            let note = Note { warning: true, reason, action: "Move", note };
            self.report(ReportSubject::Resource(instance.clone()), note);
        }
    }
}
