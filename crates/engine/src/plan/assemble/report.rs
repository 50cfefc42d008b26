//! The diagnostics of a plan, in the order of its objects.

use crate::plan::Mode;
use crate::plan::decision::{Block, Decision};
use crate::plan::inherit::Inheritance;
use crate::plan::input::{Id, PlanInput};
use crate::plan::{constraints, destroys, families};
use model::{Action, Diagnostic, Diagnostics, Reason, Severity, Words};

/// After this many consecutive failures, a one-off run warns. The controller and `dev` stop instead.
const MANY_FAILED_CREATES: u32 = 3;

/// Diagnostics by object.
#[derive(Default)]
pub struct Report {
    found: Vec<(Id, Diagnostic)>,
}

impl Report {
    pub fn extend(&mut self, id: Id, diagnostics: impl IntoIterator<Item = Diagnostic>) {
        self.found.extend(diagnostics.into_iter().map(|diagnostic| (id, diagnostic)));
    }

    pub fn in_order(mut self, input: &PlanInput<'_>) -> Diagnostics {
        self.found.sort_by(|(a, _), (b, _)| input.address(*a).cmp(input.address(*b)));
        let mut diagnostics = Diagnostics::with_capacity(self.found.len());
        for (id, mut diagnostic) in self.found {
            let node = &input.nodes[id];
            let instance = node.instance.or_else(|| node.family.map(|family| &family.shared));
            if diagnostic.source.is_none() {
                diagnostic.source = instance.and_then(|instance| instance.source_of(diagnostic.path.as_ref()));
            }
            diagnostics.push(diagnostic);
        }
        diagnostics
    }
}

pub fn report_diagnostics(
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
        let what = match Words::of(node.address) {
            Words::Manifest => "`createBeforeDestroy: false` is overridden",
            Words::Terraform => "`create_before_destroy = false` is overridden",
        };
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
pub fn warn_of_orphans(input: &PlanInput<'_>, decisions: &[Option<Decision>], report: &mut Report) {
    for (id, decision) in decisions.iter().enumerate() {
        let Some(decision) = decision else { continue };
        let deposed = decision.deposed.iter().filter(|object| object.action == Action::Forget);
        let kept = deposed.filter(|object| object.exists).flat_map(|object| {
            let targets = input.deposed_dependencies(id, &object.object);
            targets.into_iter().map(|used| (object.key, used))
        });
        for (key, used) in kept.filter(|(_, used)| decisions[*used].as_ref().is_some_and(destroys_object)) {
            let what = format!(
                "the old object (deposed {key}) is kept, but `{}`, which it depends on, is destroyed",
                input.address(used)
            );
            report.extend(id, [Diagnostic::warning(input.address(id), Reason::OrphanDependsOnDestroyed, what)]);
        }
        // An object that no longer exists has no dependencies.
        if !decision.forget || decision.prior.is_none() {
            continue;
        }
        let used = input
            .recorded_dependencies
            .of(id)
            .flat_map(|used| if input.is_junction(used) { input.members(used) } else { used..used + 1 });
        for used in used.filter(|used| decisions[*used].as_ref().is_some_and(destroys_object)) {
            let what = format!("the object is kept, but `{}`, which it depends on, is destroyed", input.address(used));
            report.extend(id, [Diagnostic::warning(input.address(id), Reason::OrphanDependsOnDestroyed, what)]);
        }
    }
}

fn destroys_object(decision: &Decision) -> bool {
    let is_replaced = decision.action == Action::Replace && decision.hold_destroy.is_none();
    !decision.forget && (decision.action == Action::Destroy || is_replaced)
}

/// A one-off run applies one plan: objects that wait for a step of it need another run. The controller and `dev` plan
/// again automatically.
pub fn deferred_warning(input: &PlanInput<'_>, decisions: &[Option<Decision>]) -> Option<Diagnostic> {
    if !input.options.destroy_orphans || input.options.mode != Mode::Normal {
        return None;
    }
    let mut waiting = 0;
    for id in 0..input.nodes.len() {
        let Some(block) = decisions[id].as_ref().and_then(|decision| decision.block.as_deref()) else { continue };
        let waits = match input.is_junction(id) {
            true => {
                input.is_selected(id)
                    && families::is_unexpanded(input, id)
                    && block.reason() == Reason::DependencyNotReady
            }
            false => waits_for_step(input, decisions, block) || waits_for_provider(input, decisions, id, block),
        };
        waiting += usize::from(waits);
    }
    (waiting > 0).then(|| {
        let what = format!("{waiting} object(s) wait for changes of this plan");
        let warning = Diagnostic::general(Reason::Waiting, what).hint("run apply again");
        Diagnostic { severity: Severity::Warning, ..warning }
    })
}

fn waits_for_step(input: &PlanInput<'_>, decisions: &[Option<Decision>], block: &Block) -> bool {
    block.reason() == Reason::Waiting
        || block
            .waiting_for
            .iter()
            .any(|id| input.running.contains_key(id) || decisions[*id].as_ref().is_some_and(Decision::removes))
}

/// Whether an object waits for its provider configuration, which is known after the steps of its dependencies, unless
/// these are blocked.
fn waits_for_provider(input: &PlanInput<'_>, decisions: &[Option<Decision>], id: Id, block: &Block) -> bool {
    let provided = input.nodes[id].instance.and_then(|instance| instance.provider.as_ref());
    block.reason() == Reason::DependencyNotReady
        && provided.is_some_and(|provided| !provided.references().is_empty())
        && block.waiting_for.iter().any(|id| decisions[*id].as_ref().is_some_and(|decision| decision.block.is_none()))
}
