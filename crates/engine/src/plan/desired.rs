//! Decides about a desired object: the action table of planning.
//!
//! The first matching row applies, as in Terraform: no object → create; tainted → replace; no difference → no-op;
//! attributes that cannot change in place, or a request → replace; otherwise → update.

use std::sync::Arc;

use super::conditions::{self, ConditionOutcome};
use super::conform::{conform_config, located};
use super::decision::{Block, Decision, PlannedChange};
use super::drift::difference;
use super::eval_scope::{EvalScope, Evaluate, disabled};
use super::input::{Id, Node, PlanInput, is_only_observed};
use super::marks::marked;
use super::policy::{self, Policy};
use super::progress::{CallPurpose, NextAction, Progress, RefreshResult, Replacement, decided};
use super::protect::{prevented_block, replaced_why};
use super::{DriverRequest, Mode, Refresh, contract, data, drift, hooks, ignore, readiness, seed, trigger};
use crate::load::{DriftAction, Instance};
use model::{
    Action, ChangeCause, ConfigDigest, Diagnostic, Diagnostics, Drift, DriverError, Ignored, ImportRequest, Lifecycle,
    ObjectStatus, Path, PlanRequest, PlanResponse, Reason, RecordedObject, Severity, Value, Words, has_errors, visible,
};

/// Evaluates the configuration, checks it, and requests a plan from the driver.
pub fn evaluate(scope: &EvalScope<'_, '_>, evaluator: &dyn Evaluate, id: Id, progress: &mut Progress) -> NextAction {
    let input = scope.input;
    let node = input.nodes[id];
    let Some(instance) = node.instance else { return NextAction::Wait };
    if node.address.is_data() {
        return data::evaluate(scope, evaluator, id, progress);
    }
    if let Some(RefreshResult::Failed(error)) = &progress.current {
        let block = Block::failed(node.address, "the object could not be read", error.clone());
        return decided(Decision::blocked(block, node.current()));
    }
    if let Some(RefreshResult::MissingAfterConfigChange) = &progress.current {
        return decided(Decision::blocked(drift::missing_after_config_change(input, node), node.current()));
    }
    if let Some(block) = readiness::terminating(input, node, progress.health.as_ref()) {
        return decided(Decision::blocked(block, node.current()));
    }
    if instance.policies.only_observe() {
        return decided(observe_only(input, node, progress));
    }
    if let ConditionOutcome::Violated(problems) = conditions::before(instance, scope) {
        return blocked(node, problems);
    }
    let evaluated = match evaluator.evaluate(instance, scope) {
        Ok(value) => value,
        Err(problems) => return blocked(node, disabled(input, instance, located(instance, problems))),
    };
    let Some(schema) = input.schema(id) else { return NextAction::Wait };
    let config = match conform_config(node.address, evaluated, &schema) {
        Ok(config) => config,
        Err(problems) => return blocked(node, problems),
    };
    let problems = ignore::check(instance, &schema);
    if has_errors(&problems) {
        return blocked(node, problems);
    }
    progress.diagnostics.extend(problems);
    progress.config = config;
    let status = prior(node, progress).map(|object| object.status);
    let undisputed = drift::matching_record(input, id, progress);
    match (status, undisputed) {
        (None, Some(recorded)) if drift::reports_missing(input, id, progress) => {
            decided(drift::report_drift(node, progress, recorded, Drift::Missing))
        }
        // The driver is not called, unless a replacement trigger has fired.
        (Some(ObjectStatus::Ready), Some(recorded))
            if drift::action(node) == DriftAction::Ignore
                && matches!(trigger::fired(scope, id, recorded), Ok(None)) =>
        {
            let decision = unchanged_decision(node, progress, recorded, recorded.value.clone());
            decided(awaited_if_unready(decision, None))
        }
        (status, _) => request_action(scope, id, progress, status),
    }
}

fn blocked(node: Node<'_>, diagnostics: Diagnostics) -> NextAction {
    let block = Block { diagnostics, waiting_for: Vec::new(), held: false, frozen: false };
    decided(Decision::blocked(block, node.current()))
}

fn request_action(
    scope: &EvalScope<'_, '_>,
    id: Id,
    progress: &mut Progress,
    status: Option<ObjectStatus>,
) -> NextAction {
    let input = scope.input;
    let node = input.nodes[id];
    match status {
        None => match trigger::check_readable(scope, id) {
            Ok(()) => plan_new(input, id, progress),
            Err(block) => decided(Decision::blocked(*block, node.current())),
        },
        Some(ObjectStatus::Tainted) => replace(input, id, progress, Replacement::Tainted),
        Some(_) if input.is_replacement_requested(id) => replace(input, id, progress, Replacement::Requested),
        Some(_) => {
            let prior = prior(node, progress);
            match prior.as_ref().map_or(Ok(None), |prior| trigger::fired(scope, id, prior)) {
                Ok(None) => request_plan(input, id, progress, prior),
                Ok(Some(because)) => replace(input, id, progress, Replacement::Triggered(because)),
                Err(block) => decided(Decision::blocked(*block, node.current())),
            }
        }
    }
}

/// The decision about an object with the policy `Observe` only.
fn observe_only(input: &PlanInput<'_>, node: Node<'_>, progress: &mut Progress) -> Decision {
    match prior(node, progress) {
        None if input.options.offline && node.instance.is_some_and(|instance| instance.import.is_some()) => {
            Decision { value: Some(Value::Unknown), changed: true, ..Decision::no_op() }
        }
        Some(object) => unchanged_decision(node, progress, &object, object.value.clone()),
        None => {
            let why = absent_why(progress);
            let block =
                policy::block_unless_allowed(node, Policy::Create, why).expect("`only_observe` allows no create");
            Decision::blocked(block, None)
        }
    }
}

fn absent_why(progress: &Progress) -> &'static str {
    match progress.current {
        Some(RefreshResult::Missing) => "it no longer exists",
        _ => "it does not exist yet",
    }
}

/// The value that postconditions see before the object is changed. Computed attributes that the configuration does not
/// set are unknown: they may differ after the step, such as the status of a Job that must be created before it can
/// succeed.
fn configured_part(
    scope: &EvalScope<'_, '_>,
    id: Id,
    instance: &Instance,
    decision: &Decision,
    object: Value,
) -> Value {
    let (Some(planned), Some(schema)) = (&decision.planned, scope.input.schema(id)) else {
        return object;
    };
    if instance.postconditions.is_empty() || !matches!(object, Value::Map(_)) {
        return object;
    }
    let open = schema.attributes.iter().filter(|(name, attribute)| {
        attribute.computed && planned.config.get(name).is_none_or(|asked| matches!(asked.unmarked(), Value::Null))
    });
    open.fold(object, |object, (name, _)| object.with(name.clone(), Value::Unknown))
}

/// Checks the postconditions of a decided object. An object that would violate one is blocked. An unchanged object gets
/// a step if its conditions depend on unknown values.
pub fn check_postconditions(scope: &EvalScope<'_, '_>, id: Id, decision: &mut Decision) {
    let node = scope.input.nodes[id];
    if scope.input.options.mode == Mode::RefreshOnly {
        return warn_of_conditions(scope, id, decision);
    }
    let Some(instance) = node.instance.filter(|_| node.desired && !decision.is_blocked()) else { return };
    let Some(object) = decision.value.clone() else { return };
    let faults = match decision.action {
        Action::Create | Action::Replace => hooks::check(instance, &object, scope),
        _ => Vec::new(),
    };
    if !faults.is_empty() {
        let block = Block { diagnostics: faults, waiting_for: Vec::new(), held: false, frozen: false };
        return decision.block(block, node.current());
    }
    // Pending hooks run before the postconditions are checked, and may make them true.
    let hooks_first =
        decision.action != Action::Replace && decision.prior.as_ref().is_some_and(|prior| prior.hooks_pending);
    match conditions::after(instance, &configured_part(scope, id, instance, decision, object), scope) {
        ConditionOutcome::Violated(diagnostics) if !hooks_first => {
            decision.block(Block { diagnostics, waiting_for: Vec::new(), held: false, frozen: false }, node.current());
        }
        checked => {
            decision.check_later = checked == ConditionOutcome::Unknown
                || conditions::before(instance, scope) == ConditionOutcome::Unknown;
        }
    }
}

/// Adds a warning for each violated condition in a refresh-only plan.
fn warn_of_conditions(scope: &EvalScope<'_, '_>, id: Id, decision: &mut Decision) {
    let instance = scope.input.nodes[id].instance.filter(|instance| instance.is_desired() && !decision.is_blocked());
    let Some(instance) = instance else { return };
    let after = decision.value.as_ref().map(|object| conditions::after(instance, object, scope));
    for checked in [Some(conditions::before(instance, scope)), after].into_iter().flatten() {
        let ConditionOutcome::Violated(problems) = checked else { continue };
        // A refresh-only plan ignores conditions that cannot be evaluated.
        let fails = [Reason::PreconditionFailed, Reason::PostconditionFailed];
        let violated = problems.into_iter().filter(|problem| fails.contains(&problem.reason));
        decision.diagnostics.extend(violated.map(|problem| Diagnostic { severity: Severity::Warning, ..problem }));
    }
}

/// The refreshed object if it was read, otherwise the recorded or imported one.
fn prior(node: Node<'_>, progress: &Progress) -> Option<Arc<RecordedObject>> {
    match &progress.current {
        Some(RefreshResult::Found(object)) => Some(object.clone()),
        Some(RefreshResult::Missing) => None,
        Some(RefreshResult::Failed(_) | RefreshResult::MissingAfterConfigChange) | None => {
            progress.imported.as_ref().or(node.current()).cloned()
        }
    }
}

/// Requests a plan from the driver. Ignored attributes are requested with their current values.
fn request_plan(
    input: &PlanInput<'_>,
    id: Id,
    progress: &mut Progress,
    prior: Option<Arc<RecordedObject>>,
) -> NextAction {
    // An object whose creation was interrupted is compared with its whole configuration.
    let complete = prior.as_ref().filter(|prior| prior.status == ObjectStatus::Ready);
    if let (Some(prior), Some(instance)) = (complete, input.nodes[id].instance)
        && !instance.ignore_changes.is_empty()
    {
        let schema = input.schema(id).unwrap_or_default();
        let asked = ignore::keep(progress.config.clone(), &prior.value, &instance.ignore_changes, &schema);
        progress.configured = Some(std::mem::replace(&mut progress.config, asked));
    }
    if let Some(object) = prior.as_ref().filter(|object| is_up_to_date(input, id, progress, object)) {
        let unchanged = object.value.clone();
        return decided(unchanged_decision(input.nodes[id], progress, object, unchanged));
    }
    let entropy = seed::entropy(input.options.seed, input.address(id));
    let written = progress.configured.clone().zip(input.nodes[id].instance);
    let ignored = written.map(|(written, instance)| Ignored { written, changes: instance.ignore_changes.clone() });
    let replaces = progress.replacement.as_ref().and_then(|_| self::prior(input.nodes[id], progress));
    let config = progress.config.clone();
    let request = PlanRequest { prior, config, ignored, entropy, previous_plan: None, replaces };
    NextAction::Call(vec![(CallPurpose::Plan, DriverRequest::Plan(request))])
}

/// Whether a driver call would return no change, so that it is not made: configuration, provider and service account are
/// the same as in the last call, and the drift interval has not passed. Terraform calls the provider for every object in
/// every plan. In Purlin, the record holds a digest of the configuration that the driver last found the object to match.
/// Until the next refresh, the same call would return the same result.
fn is_up_to_date(input: &PlanInput<'_>, id: Id, progress: &Progress, object: &Arc<RecordedObject>) -> bool {
    let node = input.nodes[id];
    let Refresh::Due(due) = &input.options.refresh else { return false };
    let recorded = node.current().is_some_and(|recorded| Arc::ptr_eq(recorded, object));
    let account = node.instance.is_some_and(|instance| instance.service_account == object.service_account);
    recorded
        && account
        && !due.contains(node.address)
        && object.status == ObjectStatus::Ready
        && object.readiness.is_none()
        && object.provider == progress.provider
        && input.schema(id).is_some_and(|schema| schema.version == object.schema_version)
        && object.matching_config.is_some()
        && object.matching_config == ConfigDigest::new(&progress.config, object.revision)
}

/// Requests a plan for a new object, unless it must not be created.
fn plan_new(input: &PlanInput<'_>, id: Id, progress: &mut Progress) -> NextAction {
    let node = input.nodes[id];
    // A new object gets everything as configured.
    progress.config = progress.configured.take().unwrap_or_else(|| std::mem::take(&mut progress.config));
    if input.options.namespace_terminating {
        let what = "nothing can be created because the namespace is terminating";
        let held = Block::held(Diagnostic::error(node.address, Reason::NamespaceTerminating, what));
        return decided(Decision::blocked(held, prior(node, progress).as_ref().and(node.current())));
    }
    // The policy `Replace` includes creating the new object, even if the old one is already destroyed.
    let pending = node.record.is_some_and(|record| record.replacement_pending);
    if progress.replacement.is_none()
        && !pending
        && let Some(block) = policy::block_unless_allowed(node, Policy::Create, absent_why(progress))
    {
        return decided(Decision::blocked(block, None));
    }
    request_plan(input, id, progress, None)
}

/// Requests a plan for a new object that replaces the old one, unless the old one must be kept. The driver does not get
/// the prior state, because computed values of the old object must not carry over.
fn replace(input: &PlanInput<'_>, id: Id, progress: &mut Progress, replacement: Replacement) -> NextAction {
    let node = input.nodes[id];
    let old = prior(node, progress);
    let paths = match &replacement {
        Replacement::Attributes(paths) => &paths[..],
        _ => &[],
    };
    let why = replaced_why(paths, &replacement.because().to_string());
    if let Some(block) = policy::block_unless_allowed(node, Policy::Replace, &why) {
        return decided(Decision::blocked(block, node.current()));
    }
    if let Some(block) = replaced_import(input, node, progress, &replacement, &why) {
        return decided(Decision::blocked(block, node.current()));
    }
    if old.as_ref().is_some_and(|old| node.prevents_destroy(old) && !node.keeps_object(old)) {
        let setting = Words::of(node.address).setting(Lifecycle::PreventDestroy);
        let what = format!("the object must be replaced, but `{setting}` forbids destroying it: {why}");
        return decided(Decision::blocked(prevented_block(input, node, what), node.current()));
    }
    progress.replacement = Some(replacement);
    plan_new(input, id, progress)
}

/// The block of an object that would be destroyed by the plan that imports it, or that begins to manage what was only
/// observed: who does this wants to keep the object. On files, the user sees the replacement in the plan before it is made,
/// as in Terraform.
fn replaced_import(
    input: &PlanInput<'_>,
    node: Node<'_>,
    progress: &Progress,
    replacement: &Replacement,
    why: &str,
) -> Option<Block> {
    let imported = progress.imported.as_ref().filter(|_| !progress.adopts);
    let object = imported.or(node.current().filter(|object| is_only_observed(object)))?;
    let is_shown_first = input.options.destroy_orphans;
    if is_shown_first || node.keeps_object(object) {
        return None;
    }
    let spec = Path::default().name("spec");
    let (which, at, correct) = match imported {
        Some(_) => ("object to import", spec.name("import"), "correct `spec.import`, or "),
        None => ("observed object", spec.name("config"), ""),
    };
    let what = format!("the {which} would be replaced: {why}");
    if matches!(replacement, Replacement::Requested) {
        let (name, annotation) = (&node.address.stem, api::REPLACE_REQUESTED_AT);
        let hint = format!(
            "remove the annotation from the manifest and the Resource: `kubectl annotate pres {name} {annotation}-`; to \
             replace the object, set it again when Purlin manages it"
        );
        let at = Path::default().name("metadata").name("annotations").name(annotation);
        return Some(Block::broken(Diagnostic::error(node.address, Reason::IdentityConflict, what).hint(hint).at(at)));
    }
    let hint = format!(
        "{correct}change `spec.config` to match the object; to replace it, change `spec.config` when Purlin manages it"
    );
    Some(Block::broken(Diagnostic::error(node.address, Reason::IdentityConflict, what).hint(hint).at(at)))
}

/// Handles the driver's plan.
pub fn handle_plan(
    input: &PlanInput<'_>,
    id: Id,
    progress: &mut Progress,
    diagnostics: Diagnostics,
    result: Result<Option<PlanResponse>, DriverError>,
) -> NextAction {
    let node = input.nodes[id];
    let diagnostics = node.instance.map_or_else(Vec::new, |instance| located(instance, diagnostics));
    let block = if has_errors(&diagnostics) {
        Block { diagnostics, waiting_for: Vec::new(), held: false, frozen: false }
    } else {
        progress.diagnostics.extend(diagnostics);
        let outcome = match result {
            Ok(Some(response)) => decide(input, id, progress, response).map_err(|fault| Block::broken(*fault)),
            Ok(None) => Err(Block::broken(*contract::fault(node.address, "driver returned no plan".to_owned()))),
            Err(error) => Err(Block::failed(node.address, "the change could not be planned", error)),
        };
        match outcome {
            Ok(next) => return next,
            Err(block) => block,
        }
    };
    let mut decision = Decision::blocked(block, node.current());
    decision.diagnostics = std::mem::take(&mut progress.diagnostics);
    decided(decision)
}

/// Determines the action from the driver's plan.
fn decide(
    input: &PlanInput<'_>,
    id: Id,
    progress: &mut Progress,
    response: PlanResponse,
) -> Result<NextAction, Box<Diagnostic>> {
    let node = input.nodes[id];
    let schema = input.schema(id).unwrap_or_default();
    let mut response = marked(response, &progress.config, &schema);
    response.requires_update &= !node.instance.is_some_and(|instance| instance.ignores_write_only);
    let old = prior(node, progress);
    let planned_from = old.as_ref().filter(|_| progress.replacement.is_none());
    let before = planned_from.map(|object| &object.value);
    if !response.checked {
        contract::check_planned(node.address, &progress.config, &response.planned, before)?;
    }
    let Some(base) = planned_from else {
        return Ok(match adoption(node, progress, &response) {
            Some(import) => {
                (progress.import_requested, progress.adopts) = (true, true);
                NextAction::Call(vec![(CallPurpose::Import, DriverRequest::Import(import))])
            }
            None => decided(create_or_replace(input, id, progress, response, old)),
        });
    };
    progress.update_private = response.private.clone();
    let mut paths = response.requires_replace.clone();
    if !response.checked {
        paths = contract::forcing(node.address, &schema, paths, &base.value, &response.planned)?;
    }
    let ignored = node.instance.map_or(&[][..], |instance| &instance.ignore_changes);
    let unchanged = ignore::restore(response.planned.clone(), &base.value, ignored, &schema);
    let equal = unchanged.equals_unmarked(&base.value) && !unchanged.has_unknown();
    if !equal || !paths.is_empty() {
        let drifted = drift::matching_record(input, id, progress).and_then(|recorded| {
            let now = drift::read_value(recorded, progress)?;
            Some((recorded, drift::changed(&recorded.value, now, &response.planned)?))
        });
        if let Some((recorded, drift)) = drifted {
            if drift::action(node) == DriftAction::Report {
                let reported = drift::report_drift(node, progress, recorded, drift);
                return Ok(decided(awaited_if_unready(reported, None)));
            }
            progress.drift = Some(drift);
        }
    }
    if !paths.is_empty() {
        let paths = visible::paths(paths, &[&base.value, &response.planned]);
        return Ok(replace(input, id, progress, Replacement::Attributes(paths)));
    }
    if equal && !response.requires_update {
        let base = with_digest(node, progress, base);
        let decision = unchanged_decision(node, progress, &base, unchanged);
        return Ok(decided(awaited_if_unready(decision, response.until_ready)));
    }
    if base.status == ObjectStatus::Interrupted {
        return Ok(replace(input, id, progress, Replacement::Interrupted));
    }
    if let Some(block) =
        policy::block_unless_allowed(node, Policy::Update, &policy::differences(&base.value, &response.planned))
    {
        return Ok(decided(Decision::blocked(block, node.current())));
    }
    let because = match () {
        () if progress.imported.is_some() => Some(progress.imported_because()),
        () if progress.drift.is_some() => Some(ChangeCause::Drifted),
        () => (equal && response.requires_update).then_some(ChangeCause::WriteOnly),
    };
    Ok(decided(Decision { because, ..changed(progress, Action::Update, response, old) }))
}

/// The import of an object that exists already and belongs to this address. A create that completes a replacement, or
/// that restores an object, takes the object over itself.
fn adoption(node: Node<'_>, progress: &Progress, response: &PlanResponse) -> Option<ImportRequest> {
    let is_new = node.record.is_none_or(|record| !record.has_objects() && !record.replacement_pending);
    response.adopts.clone().filter(|_| is_new && !progress.import_requested && progress.replacement.is_none())
}

/// A create or a replacement.
fn create_or_replace(
    input: &PlanInput<'_>,
    id: Id,
    progress: &mut Progress,
    response: PlanResponse,
    old: Option<Arc<RecordedObject>>,
) -> Decision {
    let node = input.nodes[id];
    let Some(replacement) = progress.replacement.take() else {
        let pending = node.record.is_some_and(|record| record.replacement_pending);
        if matches!(progress.current, Some(RefreshResult::Missing))
            && drift::matching_record(input, id, progress).is_some()
        {
            progress.drift = Some(Drift::Missing);
        }
        let because = match progress.current {
            Some(RefreshResult::Missing) => Some(ChangeCause::Missing),
            _ if pending => Some(ChangeCause::OldDestroyed),
            _ => None,
        };
        return Decision { because, ..changed(progress, Action::Create, response, None) };
    };
    let imported = progress.imported.is_some().then(|| progress.imported_because());
    let because = ChangeCause::both(imported, Some(replacement.because()));
    let destroy_private = match replacement {
        // The driver plans a tainted object only as a new one.
        Replacement::Tainted => response.private.clone(),
        _ => std::mem::take(&mut progress.update_private),
    };
    let mut decision = changed(progress, Action::Replace, response, old);
    decision.forget = decision.prior.as_ref().is_some_and(|old| node.keeps_object(old));
    if let Some(planned) = &mut decision.planned {
        planned.destroy_private = destroy_private;
        if let Replacement::Attributes(paths) = replacement {
            planned.replace_paths = paths;
        }
    }
    Decision { because, ..decision }
}

/// The decision about an object that gets a step.
fn changed(
    progress: &mut Progress,
    action: Action,
    response: PlanResponse,
    prior: Option<Arc<RecordedObject>>,
) -> Decision {
    Decision {
        action,
        prior,
        value: Some(response.planned.clone()),
        changed: true,
        drift: progress.drift.take(),
        planned: Some(Box::new(PlannedChange {
            config: std::mem::take(&mut progress.config),
            value: response.planned,
            private: response.private,
            destroy_private: Arc::default(),
            identity: response.identity.filter(|identity| !identity.has_unknown()),
            replace_paths: Vec::new(),
            requires_update: response.requires_update,
            configuration: Arc::clone(&progress.configuration),
            refusal: response.refusal,
        })),
        diagnostics: std::mem::take(&mut progress.diagnostics),
        ..Decision::no_op()
    }
}

/// The decision about an unchanged object. Its record may have to be updated.
fn unchanged_decision(node: Node<'_>, progress: &mut Progress, base: &Arc<RecordedObject>, planned: Value) -> Decision {
    let complete = base.status == ObjectStatus::Interrupted;
    let mut object = base.clone();
    if complete || planned != base.value {
        object = Arc::new(RecordedObject { value: planned, status: ObjectStatus::Ready, ..base.as_ref().clone() });
    }
    let recorded = node.current();
    let record_differs = match recorded {
        _ if progress.imported.is_some() => Some(progress.imported_because()),
        None => Some(ChangeCause::Imported),
        Some(_) if complete => Some(ChangeCause::InterruptedComplete),
        Some(recorded) => difference(recorded, &object),
    };
    let changed = recorded.is_none_or(|recorded| recorded.value != object.value);
    let diagnostics = std::mem::take(&mut progress.diagnostics);
    Decision { changed, record_differs, diagnostics, ..Decision::unchanged(Some(&object)) }
}

/// The decision about an unchanged object, which may not be ready yet. Dependents wait until it is ready. `until_ready`: what
/// they read meanwhile, if it differs from the recorded value.
fn awaited_if_unready(decision: Decision, until_ready: Option<Value>) -> Decision {
    if decision.prior.as_ref().is_none_or(|object| object.readiness.is_none()) {
        return decision;
    }
    let because = decision.because.or(Some(ChangeCause::NotReadyYet));
    let value = until_ready.or(decision.value);
    Decision { action: Action::Wait, because, changed: true, value, ..decision }
}

/// The object with the digest of the configuration that it matches. The digest alone is a reason to write the record only
/// if drift is reported, which is a change of an object that matched: the record of an imported or migrated object has
/// no digest. Otherwise, an object that equals its record is returned as it is.
fn with_digest(node: Node<'_>, progress: &Progress, base: &Arc<RecordedObject>) -> Arc<RecordedObject> {
    let is_recorded = node.current().is_some_and(|recorded| Arc::ptr_eq(recorded, base));
    let is_needed = base.matching_config.is_none() && drift::action(node) == DriftAction::Report;
    if is_recorded && !is_needed {
        return base.clone();
    }
    let matching_config = ConfigDigest::new(&progress.config, base.revision);
    Arc::new(RecordedObject { matching_config, ..base.as_ref().clone() })
}
