//! The diagnostics of a plan, in the order of its objects.

use crate::plan::Mode;
use crate::plan::decision::{Block, Decision};
use crate::plan::inherit::Inheritance;
use crate::plan::input::{Id, PlanInput};
use crate::plan::{constraints, destroys, families};
use model::{Action, Diagnostic, Diagnostics, Reason, Severity};

/// After this many consecutive failures, a one-off run warns. The controller and `dev` stop instead.
const MANY_FAILED_CREATES: u32 = 3;

/// Diagnostics by object.
#[derive(Default)]
pub(super) struct Report {
    found: Vec<(Id, Diagnostic)>,
}

impl Report {
    pub fn extend(&mut self, id: Id, diagnostics: impl IntoIterator<Item = Diagnostic>) {
        self.found.extend(diagnostics.into_iter().map(|diagnostic| (id, diagnostic)));
    }

    pub fn in_order(mut self, input: &PlanInput<'_>) -> Diagnostics {
        self.found.sort_by(|(a, _), (b, _)| input.address(*a).cmp(input.address(*b)));
        let placed = |(id, mut diagnostic): (Id, Diagnostic)| {
            let node = &input.nodes[id];
            let instance = node.instance.or_else(|| node.family.map(|family| &family.shared));
            let path = diagnostic.path.as_ref();
            let place = || instance.and_then(|instance| instance.source_of(path));
            diagnostic.source = diagnostic.source.or_else(place);
            diagnostic
        };
        self.found.into_iter().map(placed).collect()
    }
}

pub(super) fn report_diagnostics(
    input: &PlanInput<'_>,
    id: Id,
    decision: &mut Decision,
    flags: &Inheritance,
    report: &mut Report,
) {
    let node = input.nodes[id];
    report.extend(id, std::mem::take(&mut decision.diagnostics));
    for block in decision.block.iter().chain(decision.hold_destroy.iter()) {
        // If the instances of a family are not known, the Resource reports why.
        if !families::is_unexpanded(input, id) && destroys::invalid_resource_block(input, id).is_none() {
            report.extend(id, block.diagnostics.iter().cloned());
        }
    }
    let Some(instance) = node.instance.filter(|_| node.desired) else { return };
    let warnings = instance.problems.iter().filter(|problem| problem.severity == Severity::Warning);
    report.extend(id, warnings.cloned());
    if instance.create_before_destroy == Some(false) && flags.is_on(id) {
        let what = "`createBeforeDestroy: false` is overridden";
        let mut warning = Diagnostic::warning(node.address, Reason::CreateBeforeDestroyForced, what);
        if flags.forced_by(id).next().is_some() {
            warning = warning.because(format!("required by {}", constraints::describe_chain(input, flags, id)));
        }
        report.extend(id, [warning]);
    }
    let failed = node.record.map_or(0, |record| record.failed_creates);
    if input.options.max_failed_creates.is_none() && failed >= MANY_FAILED_CREATES && decision.changes_object() {
        let what = format!("creating the new object failed {failed} times in a row");
        report.extend(id, [Diagnostic::warning(node.address, Reason::RepeatedCreateFailures, what)]);
    }
}

/// Warns about forgotten objects that depend on destroyed ones.
pub(super) fn warn_of_orphans(input: &PlanInput<'_>, decisions: &[Option<Decision>], report: &mut Report) {
    let destroyed = |id: Id| {
        decisions[id].as_ref().is_some_and(|decision| {
            let replaced = decision.action == Action::Replace && decision.hold_destroy.is_none();
            !decision.forget && (decision.action == Action::Destroy || replaced)
        })
    };
    for (id, decision) in decisions.iter().enumerate() {
        let Some(drafted) = decision else { continue };
        let deposed = drafted.deposed.iter().filter(|object| object.action == Action::Forget);
        let kept = deposed.filter(|object| object.exists).flat_map(|object| {
            let targets = input.deposed_dependencies(id, &object.object);
            targets.into_iter().map(|used| (object.key, used))
        });
        for (key, used) in kept.filter(|(_, used)| destroyed(*used)) {
            let what = format!(
                "the old object (deposed {key}) is kept, but `{}`, which it depends on, is destroyed",
                input.address(used)
            );
            report.extend(id, [Diagnostic::warning(input.address(id), Reason::OrphanDependsOnDestroyed, what)]);
        }
        // An object that no longer exists has no dependencies.
        if !decision.as_ref().is_some_and(|decision| decision.forget && decision.prior.is_some()) {
            continue;
        }
        let objects = |used: Id| if input.is_junction(used) { input.members(used) } else { used..used + 1 };
        for used in input.recorded_dependencies.of(id).flat_map(objects).filter(|used| destroyed(*used)) {
            let what = format!("the object is kept, but `{}`, which it depends on, is destroyed", input.address(used));
            report.extend(id, [Diagnostic::warning(input.address(id), Reason::OrphanDependsOnDestroyed, what)]);
        }
    }
}

/// A one-off run applies one plan: objects that wait for a step of it need another run. The controller and `dev` plan
/// again automatically.
pub(super) fn deferred_warning(input: &PlanInput<'_>, decisions: &[Option<Decision>]) -> Option<Diagnostic> {
    if !input.options.destroy_orphans || input.options.mode != Mode::Normal {
        return None;
    }
    let steps = |id: &Id| input.running.contains_key(id) || decisions[*id].as_ref().is_some_and(Decision::removes);
    let waits = |decision: &&Decision| {
        let is_over_soon = |block: &Block| block.reason() == Reason::Waiting || block.waiting_for.iter().any(steps);
        decision.block.as_deref().is_some_and(is_over_soon)
    };
    let unknown =
        |decision: &Decision| decision.block.as_ref().is_some_and(|b| b.reason() == Reason::DependencyNotReady);
    let families = input.objects..input.nodes.len();
    let families = families.filter(|id| input.is_selected(*id) && families::is_unexpanded(input, *id));
    let families = families.filter(|id| decisions[*id].as_ref().is_some_and(unknown)).count();
    // The provider configuration is known after the steps of its dependencies, unless these are blocked.
    let goes_on = |id: &Id| decisions[*id].as_ref().is_some_and(|decision| decision.block.is_none());
    let is_next =
        |decision: &Decision| decision.block.as_ref().is_some_and(|block| block.waiting_for.iter().any(goes_on));
    let refers = |id: Id, decision: &Decision| {
        let provided = input.nodes[id].instance.and_then(|instance| instance.provider.as_ref());
        unknown(decision) && provided.is_some_and(|provided| !provided.references().is_empty()) && is_next(decision)
    };
    let objects = (0..input.objects).filter_map(|id| Some((id, decisions[id].as_ref()?)));
    let waiting = families + objects.filter(|(id, decision)| waits(decision) || refers(*id, decision)).count();
    (waiting > 0).then(|| {
        let what = format!("{waiting} object(s) wait for changes of this plan");
        let warning = Diagnostic::general(Reason::Waiting, what).hint("run apply again");
        Diagnostic { severity: Severity::Warning, ..warning }
    })
}
