//! What happens to an object that is wanted: the action table of planning, for one object.
//!
//! First matching row wins, as in Terraform: no object → create; tainted → replace; planned equal → nothing; attributes
//! that cannot change in place, or a request → replace; otherwise update.

use std::sync::Arc;

use super::conditions::{self, Checked};
use super::conform::{conform, located};
use super::draft::{Block, Draft, Planned};
use super::drift::difference;
use super::marks::marked;
use super::policy::{self, Policy};
use super::progress::{Next, Progress, Refreshed, Replacement, Topic, decided};
use super::protect::{prevented_block, replaced_why};
use super::requests::replacement_requested;
use super::scene::{Id, Scene, Subject};
use super::seen::{Evaluate, Seen, disabled};
use super::{Mode, Question, agree, contract, data, draw, drift, hooks, ignore, trigger};
use crate::load::{DriftAction, Instance};
use crate::model::{
    Action, Diagnostic, Diagnostics, Drift, DriverError, ObjectStatus, PlanRequest, PlanResponse, Reason,
    RecordedObject, Severity, Value,
};

/// Evaluates the configuration, checks it, and asks for a plan.
pub(super) fn evaluate(seen: &Seen<'_, '_>, evaluator: &dyn Evaluate, id: Id, progress: &mut Progress) -> Next {
    let scene = seen.scene;
    let subject = scene.subjects[id];
    let Some(instance) = subject.instance else { return Next::Wait };
    if subject.address.is_data() {
        return data::evaluate(seen, evaluator, id, progress);
    }
    if let Some(Refreshed::Failed(error)) = &progress.current {
        let block = Block::failed(subject.address, "the object could not be read", error.clone());
        return decided(Draft::blocked(block, subject.current()));
    }
    if let Some(Refreshed::Elsewhere) = &progress.current {
        return decided(Draft::blocked(drift::elsewhere(scene, subject), subject.current()));
    }
    if instance.policies.only_observe() {
        return decided(observed(subject, progress));
    }
    let block = |diagnostics| {
        let block = Block { diagnostics, waiting_for: Vec::new(), held: false, frozen: false };
        decided(Draft::blocked(block, subject.current()))
    };
    if let Checked::Violated(problems) = conditions::before(instance, seen) {
        return block(problems);
    }
    let evaluated = match evaluator.evaluate(instance, seen) {
        Ok(value) => value,
        Err(problems) => return block(disabled(scene, instance, located(instance, problems))),
    };
    let Some(schema) = scene.schema(id) else { return Next::Wait };
    let (config, problems) = conform(subject.address, evaluated, &schema);
    if problems.iter().any(|problem| problem.severity == Severity::Error) {
        return block(problems);
    }
    progress.diagnostics.extend(problems);
    let problems = ignore::check(instance, &schema);
    if problems.iter().any(|problem| problem.severity == Severity::Error) {
        return block(problems);
    }
    progress.diagnostics.extend(problems);
    progress.config = config;
    let status = prior(subject, progress).map(|object| object.status);
    let undisputed = drift::undisputed(scene, id, progress);
    match (status, undisputed) {
        (None, Some(recorded)) if drift::reports_gone(scene, id, progress) => {
            decided(drift::reported(subject, progress, recorded, Drift::Gone))
        }
        // Not even the driver looks at it, unless what it is replaced by has fired.
        (Some(ObjectStatus::Ready), Some(recorded))
            if drift::action(subject) == DriftAction::Ignore
                && matches!(trigger::fired(seen, id, recorded), Ok(None)) =>
        {
            decided(kept(subject, progress, recorded, recorded.value.clone()))
        }
        (status, _) => go_on(seen, id, progress, status),
    }
}

fn go_on(seen: &Seen<'_, '_>, id: Id, progress: &mut Progress, status: Option<ObjectStatus>) -> Next {
    let scene = seen.scene;
    let subject = scene.subjects[id];
    match status {
        None => match trigger::readable(seen, id) {
            Ok(()) => plan_new(scene, id, progress),
            Err(block) => decided(Draft::blocked(*block, subject.current())),
        },
        Some(ObjectStatus::Tainted) => replace(scene, id, progress, Replacement::Tainted),
        Some(_) if replacement_requested(scene, id) => replace(scene, id, progress, Replacement::Requested),
        Some(_) => {
            let prior = prior(subject, progress);
            match prior.as_ref().map_or(Ok(None), |prior| trigger::fired(seen, id, prior)) {
                Ok(None) => ask_plan(scene, id, progress, prior),
                Ok(Some(because)) => replace(scene, id, progress, Replacement::Triggered(because)),
                Err(block) => decided(Draft::blocked(*block, subject.current())),
            }
        }
    }
}

/// An object that is only looked at: it is what it is.
fn observed(subject: Subject<'_>, progress: &mut Progress) -> Draft {
    match prior(subject, progress) {
        Some(object) => kept(subject, progress, &object, object.value.clone()),
        None => {
            let why = absent_why(progress);
            let block = policy::refuse(subject, Policy::Create, why).expect("`only_observe` allows no create");
            Draft::blocked(block, None)
        }
    }
}

fn absent_why(progress: &Progress) -> &'static str {
    match progress.current {
        Some(Refreshed::Gone) => "it does not exist any more",
        _ => "there is none yet",
    }
}

/// What is certain of an object that is about to change. What the configuration leaves to the driver may come out
/// differently from the plan, and others may have a part in it by then: a Job that is yet to succeed must be made first.
fn as_far_as_asked_for(seen: &Seen<'_, '_>, id: Id, instance: &Instance, draft: &Draft, object: Value) -> Value {
    let (Some(planned), Some(schema)) = (&draft.planned, seen.scene.schema(id)) else {
        return object;
    };
    // Nobody looks at it, or nothing is known of it.
    if instance.postconditions.is_empty() || !matches!(object, Value::Map(_)) {
        return object;
    }
    let asked = |name: &str| planned.config.get(name).is_some_and(|asked| !matches!(asked.unmarked(), Value::Null));
    let open = schema.attributes.iter().filter(|(name, attribute)| attribute.computed && !asked(name));
    open.fold(object, |object, (name, _)| object.with(name.clone(), Value::Unknown))
}

/// Checks the postconditions of a decided object as far as they are known: an object that would violate one is not
/// changed, and one that stays as it is gets a step of its own when its conditions cannot be judged yet.
pub(super) fn confirm(seen: &Seen<'_, '_>, id: Id, draft: &mut Draft) {
    let subject = seen.scene.subjects[id];
    if seen.scene.options.mode == Mode::RefreshOnly {
        return doubt(seen, id, draft);
    }
    let Some(instance) = subject.instance.filter(|_| subject.wanted && !draft.is_blocked()) else { return };
    let Some(object) = draft.seen.clone() else { return };
    let faults = match draft.action {
        Action::Create | Action::Replace => hooks::check(instance, &object, seen),
        _ => Vec::new(),
    };
    if !faults.is_empty() {
        let block = Block { diagnostics: faults, waiting_for: Vec::new(), held: false, frozen: false };
        return draft.block(block, subject.current());
    }
    // Hooks that have not run yet may be what makes a postcondition true; they run first.
    let hooks_first = draft.action != Action::Replace && draft.prior.as_ref().is_some_and(|prior| prior.hooks_pending);
    match conditions::after(instance, &as_far_as_asked_for(seen, id, instance, draft, object), seen) {
        Checked::Violated(diagnostics) if !hooks_first => {
            draft.block(Block { diagnostics, waiting_for: Vec::new(), held: false, frozen: false }, subject.current());
        }
        checked => {
            draft.check_later = checked == Checked::Unknown || conditions::before(instance, seen) == Checked::Unknown;
        }
    }
}

/// A plan that only reads warns of conditions that do not hold: the preconditions of what is wanted, and the
/// postconditions of what was read.
fn doubt(seen: &Seen<'_, '_>, id: Id, draft: &mut Draft) {
    let instance = seen.scene.subjects[id].instance.filter(|instance| instance.is_wanted() && !draft.is_blocked());
    let Some(instance) = instance else { return };
    let after = draft.seen.as_ref().map(|object| conditions::after(instance, object, seen));
    for checked in [Some(conditions::before(instance, seen)), after].into_iter().flatten() {
        let Checked::Violated(found) = checked else { continue };
        // What cannot be evaluated is no matter of a plan that asks for nothing.
        let fails = [Reason::PreconditionFailed, Reason::PostconditionFailed];
        let violated = found.into_iter().filter(|problem| fails.contains(&problem.reason));
        draft.diagnostics.extend(violated.map(|problem| Diagnostic { severity: Severity::Warning, ..problem }));
    }
}

/// The object as it is.
fn prior(subject: Subject<'_>, progress: &Progress) -> Option<Arc<RecordedObject>> {
    match &progress.current {
        Some(Refreshed::Found(object)) => Some(object.clone()),
        Some(Refreshed::Gone) => None,
        Some(Refreshed::Failed(_) | Refreshed::Elsewhere) | None => {
            subject.current().or(progress.imported.as_ref()).cloned()
        }
    }
}

/// Asks what a change would lead to. What is to stay as it is at the object that exists is asked for as it is.
fn ask_plan(scene: &Scene<'_>, id: Id, progress: &mut Progress, prior: Option<Arc<RecordedObject>>) -> Next {
    // Of an object that was cut in the making it is asked whether it is as it should be.
    let complete = prior.as_ref().filter(|prior| prior.status == ObjectStatus::Ready);
    if let (Some(prior), Some(instance)) = (complete, scene.subjects[id].instance)
        && !instance.ignore_changes.is_empty()
    {
        let schema = scene.schema(id).unwrap_or_default();
        let asked = ignore::keep(progress.config.clone(), &prior.value, &instance.ignore_changes, &schema);
        progress.configured = Some(std::mem::replace(&mut progress.config, asked));
    }
    if let Some(object) = prior.as_ref().filter(|object| agree::is_known(scene, id, progress, object)) {
        let unchanged = object.value.clone();
        return decided(kept(scene.subjects[id], progress, object, unchanged));
    }
    let entropy = draw::entropy(scene.options.seed, scene.address(id));
    let request = PlanRequest { prior, config: progress.config.clone(), entropy, planned_before: None };
    Next::Ask(vec![(Topic::Plan, Question::Plan(request))])
}

/// A new object, unless none may be made.
fn plan_new(scene: &Scene<'_>, id: Id, progress: &mut Progress) -> Next {
    let subject = scene.subjects[id];
    // A new object gets everything as configured.
    progress.config = progress.configured.take().unwrap_or_else(|| std::mem::take(&mut progress.config));
    if scene.options.namespace_terminating {
        let what = "nothing can be created, since the namespace is terminating";
        let held = Block::held(Diagnostic::error(subject.address, Reason::NamespaceTerminating, what));
        return decided(Draft::blocked(held, prior(subject, progress).as_ref().and(subject.current())));
    }
    // Whoever may replace may make the new object, also when the old one is gone already.
    let pending = subject.record.is_some_and(|record| record.replacement_pending);
    if progress.replacement.is_none()
        && !pending
        && let Some(block) = policy::refuse(subject, Policy::Create, absent_why(progress))
    {
        return decided(Draft::blocked(block, None));
    }
    ask_plan(scene, id, progress, None)
}

/// A new object instead of the old one, unless the old one must stay. Planned as if there were none: the driver must
/// not be told what it computed for the old object.
fn replace(scene: &Scene<'_>, id: Id, progress: &mut Progress, replacement: Replacement) -> Next {
    let subject = scene.subjects[id];
    let old = prior(subject, progress);
    let paths = match &replacement {
        Replacement::Attributes(paths) => &paths[..],
        _ => &[],
    };
    let why = replaced_why(paths, replacement.because());
    if let Some(block) = policy::refuse(subject, Policy::Replace, &why) {
        return decided(Draft::blocked(block, subject.current()));
    }
    let prevented = |old: &Arc<RecordedObject>| subject.prevents_destroy(old) && !subject.keeps_object(old);
    if old.as_ref().is_some_and(prevented) {
        let what = format!("the object must be replaced, and `preventDestroy` forbids to destroy it: {why}");
        return decided(Draft::blocked(prevented_block(scene, subject, what), subject.current()));
    }
    progress.replacement = Some(replacement);
    plan_new(scene, id, progress)
}

/// Takes the driver's plan.
pub(super) fn take_plan(
    scene: &Scene<'_>,
    id: Id,
    progress: &mut Progress,
    found: Diagnostics,
    result: Result<Option<PlanResponse>, DriverError>,
) -> Next {
    let subject = scene.subjects[id];
    let found = subject.instance.map_or_else(Vec::new, |instance| located(instance, found));
    let block = if found.iter().any(|problem| problem.severity == Severity::Error) {
        Block { diagnostics: found, waiting_for: Vec::new(), held: false, frozen: false }
    } else {
        progress.diagnostics.extend(found);
        let outcome = match result {
            Ok(Some(response)) => judge(scene, id, progress, response).map_err(|fault| Block::broken(*fault)),
            Ok(None) => Err(Block::broken(*contract::fault(subject.address, "driver gave no plan".to_owned()))),
            Err(error) => Err(Block::failed(subject.address, "the change could not be planned", error)),
        };
        match outcome {
            Ok(next) => return next,
            Err(block) => block,
        }
    };
    let mut draft = Draft::blocked(block, subject.current());
    draft.diagnostics = std::mem::take(&mut progress.diagnostics);
    decided(draft)
}

/// From what the driver plans to an action.
fn judge(scene: &Scene<'_>, id: Id, progress: &mut Progress, response: PlanResponse) -> Result<Next, Box<Diagnostic>> {
    let subject = scene.subjects[id];
    let schema = scene.schema(id).unwrap_or_default();
    let response = marked(response, &progress.config, &schema);
    let old = prior(subject, progress);
    let planned_from = old.as_ref().filter(|_| progress.replacement.is_none());
    let before = planned_from.map(|object| &object.value);
    if !response.checked {
        contract::check_planned(subject.address, &progress.config, &response.planned, before)?;
    }
    let Some(base) = planned_from else {
        return Ok(decided(made(scene, id, progress, response, old)));
    };
    let mut paths = response.requires_replace.clone();
    if !response.checked {
        paths = contract::forcing(subject.address, &schema, paths, &base.value, &response.planned)?;
    }
    let ignored = subject.instance.map_or(&[][..], |instance| &instance.ignore_changes);
    let unchanged = ignore::restore(response.planned.clone(), &base.value, ignored, &schema);
    let equal = unchanged.same(&base.value) && !unchanged.has_unknown();
    if !equal || !paths.is_empty() {
        let undisputed = drift::undisputed(scene, id, progress);
        let found = undisputed.and_then(|recorded| Some((recorded, drift::found(recorded, progress)?)));
        let drifted = found
            .and_then(|(recorded, now)| Some((recorded, drift::changed(&recorded.value, now, &response.planned)?)));
        if let Some((recorded, drift)) = drifted {
            if drift::action(subject) == DriftAction::Report {
                return Ok(decided(drift::reported(subject, progress, recorded, drift)));
            }
            progress.drift = Some(drift);
        }
    }
    if !paths.is_empty() {
        return Ok(replace(scene, id, progress, Replacement::Attributes(paths)));
    }
    if equal && !response.tells {
        let base = agree::noted(subject, progress, base);
        let draft = kept(subject, progress, &base, unchanged);
        return Ok(decided(match base.readiness {
            Some(_) => awaited(draft, response.until_ready),
            None => draft,
        }));
    }
    if base.status == ObjectStatus::Interrupted {
        return Ok(replace(scene, id, progress, Replacement::Interrupted));
    }
    if let Some(block) = policy::refuse(subject, Policy::Update, &policy::differences(&base.value, &response.planned)) {
        return Ok(decided(Draft::blocked(block, subject.current())));
    }
    let drifted = progress.drift.is_some().then_some(drift::BECAUSE);
    let told = (equal && response.tells).then_some("a write-only argument changed");
    let because = progress.imported.is_some().then_some("imported").or(drifted).or(told).map(str::to_owned);
    Ok(decided(Draft { because, ..changed(progress, Action::Update, response, old) }))
}

/// A create or a replacement.
fn made(
    scene: &Scene<'_>,
    id: Id,
    progress: &mut Progress,
    response: PlanResponse,
    old: Option<Arc<RecordedObject>>,
) -> Draft {
    let subject = scene.subjects[id];
    let Some(replacement) = progress.replacement.take() else {
        let pending = subject.record.is_some_and(|record| record.replacement_pending);
        if matches!(progress.current, Some(Refreshed::Gone)) && drift::undisputed(scene, id, progress).is_some() {
            progress.drift = Some(Drift::Gone);
        }
        let because = match progress.current {
            Some(Refreshed::Gone) => Some("it does not exist any more"),
            _ if pending => Some("replacement: the old object is already destroyed"),
            _ => None,
        };
        return Draft { because: because.map(str::to_owned), ..changed(progress, Action::Create, response, None) };
    };
    let mut because = replacement.because().to_owned();
    if progress.imported.is_some() {
        because = format!("imported, {because}");
    }
    let mut draft = changed(progress, Action::Replace, response, old);
    draft.forget = draft.prior.as_ref().is_some_and(|old| subject.keeps_object(old));
    if let (Replacement::Attributes(paths), Some(planned)) = (replacement, &mut draft.planned) {
        planned.replace_paths = paths;
    }
    Draft { because: Some(because), ..draft }
}

/// An object that gets a step.
fn changed(
    progress: &mut Progress,
    action: Action,
    response: PlanResponse,
    prior: Option<Arc<RecordedObject>>,
) -> Draft {
    Draft {
        action,
        prior,
        seen: Some(response.planned.clone()),
        changed: true,
        drift: progress.drift.take(),
        planned: Some(Box::new(Planned {
            config: std::mem::take(&mut progress.config),
            value: response.planned,
            private: response.private,
            identity: response.identity.filter(|identity| !identity.has_unknown()),
            replace_paths: Vec::new(),
            tells: response.tells,
        })),
        diagnostics: std::mem::take(&mut progress.diagnostics),
        ..Draft::nothing()
    }
}

/// An object that stays as it is, though its record may have to follow.
fn kept(subject: Subject<'_>, progress: &mut Progress, base: &Arc<RecordedObject>, planned: Value) -> Draft {
    let complete = base.status == ObjectStatus::Interrupted;
    let mut object = base.clone();
    if complete || planned != base.value {
        object = Arc::new(RecordedObject { value: planned, status: ObjectStatus::Ready, ..base.as_ref().clone() });
    }
    let recorded = subject.current();
    let record_differs = match recorded {
        None => Some("imported"),
        Some(_) if complete => Some("interrupted, and found complete"),
        Some(recorded) => difference(recorded, &object),
    };
    let changed = recorded.is_none_or(|recorded| recorded.value != object.value);
    let diagnostics = std::mem::take(&mut progress.diagnostics);
    Draft { changed, record_differs, diagnostics, ..Draft::unchanged(Some(&object)) }
}

/// An object that stays as it is and is not ready yet: what depends on it sees it once it is.
fn awaited(draft: Draft, until_ready: Option<Value>) -> Draft {
    let because = Some("it is not ready yet".to_owned());
    Draft { action: Action::Wait, because, changed: true, seen: until_ready.or(draft.seen.clone()), ..draft }
}
