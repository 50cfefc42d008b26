//! From decisions to the plan: changes in address order, what the executor needs for each step, and what is to be told.

mod follow;

use std::collections::BTreeMap;
use std::sync::Arc;

use self::follow::follow;
use super::draft::{Block, Draft, LeftoverDraft};
use super::inherit::Inheritance;
use super::scene::{Id, Scene, Subject};
use super::seen::Seen;
use super::{
    EffectiveLifecycle, Mode, Plan, Prepared, draw, families, hooks, leaving, protect, select, settle, trigger,
};
use crate::load::Instance;
use crate::model::{
    Action, Address, Change, DeposedKey, Diagnostic, Diagnostics, Reason, RecordedHook, RecordedObject, ReplaceOrder,
    Severity, Triggers, Value,
};

/// How many objects of a chain are told before it is cut.
const LONGEST_CHAIN: usize = 16;

/// After so many failures in a row a one-off run warns, where controller and `dev` stop.
const MANY_FAILED_CREATES: u32 = 3;

/// Makes the plan of settled drafts.
pub(super) fn assemble(scene: &Scene<'_>, drafts: Vec<Option<Draft>>, flags: &Inheritance) -> Plan {
    let mut plan = Plan {
        wants: wants(scene),
        lifecycle: lifecycle(scene, flags),
        changes: Vec::with_capacity(drafts.len()),
        ..Plan::default()
    };
    let mut diagnostics = Told { found: Vec::new() };
    warn_of_orphans(scene, &drafts, &mut diagnostics);
    let again = must_run_again(scene, &drafts);
    let mut expressed = expressed(scene, &drafts);
    let mut prepared = Vec::new();
    for (id, draft) in drafts.into_iter().enumerate() {
        let Some(mut draft) = draft else { continue };
        if scene.is_junction(id) {
            plan.changes.extend(family_change(scene, id, draft, &mut diagnostics));
            continue;
        }
        let subject = scene.subjects[id];
        if scene.is_selected(id) {
            draft_diagnostics(scene, id, &mut draft, flags, &mut diagnostics);
        }
        let blocked = draft.block.as_deref().map(Block::reason);
        if let Some(step) = prepare(scene, id, &mut draft, flags_of(scene, id, flags, &mut expressed)) {
            prepared.push((subject.address.clone(), step));
        }
        select::at_rest(&mut draft);
        let leftovers = std::mem::take(&mut draft.leftovers);
        if draft.read {
            plan.read.insert(subject.address.clone());
        }
        if let Some(reading) = draft.reading.take() {
            plan.readings.insert(subject.address.clone(), reading);
        }
        if draft.gone {
            plan.gone.insert(subject.address.clone());
        }
        if shown(subject, &draft, &leftovers) {
            plan.changes.push(change(scene, id, draft));
        }
        for leftover in leftovers {
            // What blocks the object and with it the leftover is told once.
            if let Some(block) = leftover.block.as_deref().filter(|block| Some(block.reason()) != blocked) {
                let named = |problem: &Diagnostic| Diagnostic {
                    summary: format!("deposed {}: {}", leftover.key, problem.summary),
                    ..problem.clone()
                };
                diagnostics.extend(id, block.diagnostics.iter().map(named));
            }
            plan.changes.push(leftover_change(scene, id, leftover));
        }
    }
    // Families come last above.
    plan.changes.sort_by(|a, b| a.address.cmp(&b.address));
    plan.prepared = prepared.into_iter().collect();
    plan.diagnostics = diagnostics.in_order(scene);
    plan.diagnostics.extend(again);
    plan.diagnostics.extend(select::warning(scene, &plan.changes));
    plan
}

/// What is told of a Resource that stands for several objects: its warnings, and why it is not known for which ones.
/// Then it has an entry of its own, unless there is one of that address.
fn family_change(scene: &Scene<'_>, id: Id, draft: Draft, told: &mut Told) -> Option<Change> {
    let subject = scene.subjects[id];
    let family = subject.family.filter(|_| subject.wanted)?;
    let warnings = family.shared.problems.iter().filter(|problem| problem.severity == Severity::Warning);
    told.extend(id, warnings.cloned());
    let block = draft.block.as_deref().filter(|_| families::is_unexpanded(scene, id) || draft.at_once)?;
    if !scene.is_selected(id) {
        let because = Some(select::NOT_SELECTED.to_owned());
        let type_name = family.shared.type_name.clone();
        let at_rest = finish_change(scene, subject, Draft { because, ..Draft::nothing() }, None, None);
        return scene.find(subject.address).is_none().then_some(Change { type_name, ..at_rest });
    }
    let in_place = |mut diagnostic: Diagnostic| {
        diagnostic.source = diagnostic.source.or_else(|| family.shared.source.clone());
        diagnostic
    };
    told.extend(id, block.diagnostics.iter().cloned().map(in_place));
    if scene.find(subject.address).is_some() {
        return None;
    }
    let type_name = family.shared.type_name.clone();
    Some(Change { type_name, ..finish_change(scene, subject, draft, None, None) })
}

/// An object of which nothing is left but leftovers has no entry of its own.
fn shown(subject: Subject<'_>, draft: &Draft, leftovers: &[LeftoverDraft]) -> bool {
    if subject.address.is_data() && !subject.wanted {
        return false;
    }
    subject.wanted || subject.current().is_some() || leftovers.is_empty() || draft.is_blocked()
}

fn change(scene: &Scene<'_>, id: Id, draft: Draft) -> Change {
    let subject = scene.subjects[id];
    let recorded = subject.current().map(|object| object.value.clone());
    let running = scene.running.get(&id);
    let prior = draft.prior.as_ref().map(|object| object.value.clone());
    let (before, after) = match draft.action {
        _ if running.is_some() => (recorded, running.and_then(|running| running.planned.clone())),
        Action::NoOp if subject.address.is_data() => (draft.seen.clone(), draft.seen.clone()),
        Action::NoOp => (prior.clone(), prior),
        Action::Record | Action::Wait => (recorded, prior),
        Action::Create | Action::Read => (None, draft.planned.map(|planned| planned.value)),
        Action::Update | Action::Replace => {
            let planned = draft.planned.as_ref().map(|planned| planned.value.clone());
            return finish_change(scene, subject, Draft { prior: None, ..draft }, prior, planned);
        }
        Action::Destroy | Action::Forget => (prior.or(recorded), None),
        Action::Blocked => (recorded, None),
    };
    finish_change(scene, subject, Draft { planned: None, prior: None, ..draft }, before, after)
}

fn finish_change(
    scene: &Scene<'_>,
    subject: Subject<'_>,
    draft: Draft,
    before: Option<Value>,
    after: Option<Value>,
) -> Change {
    let order = (draft.action == Action::Replace).then_some(if draft.create_first {
        ReplaceOrder::CreateFirst
    } else {
        ReplaceOrder::DestroyFirst
    });
    let told = draft.block.as_deref().or(draft.hold_destroy.as_deref());
    Change {
        address: subject.address.clone(),
        deposed: None,
        type_name: subject.type_name(),
        action: draft.action,
        order,
        forget: draft.forget,
        hold_destroy: draft.hold_destroy.as_deref().map(Block::reason),
        blocked: draft.block.as_deref().map(Block::reason),
        message: told.map(|block| block.leading().message()).unwrap_or_default(),
        waiting_for: told.map(|block| scene.addresses(block.waiting_for.iter().copied())).unwrap_or_default(),
        replace_paths: draft.planned.map(|planned| planned.replace_paths).unwrap_or_default(),
        drift: draft.drift,
        because: draft.because,
        before,
        after,
    }
}

fn leftover_change(scene: &Scene<'_>, id: Id, leftover: LeftoverDraft) -> Change {
    let block = leftover.block.as_deref();
    Change {
        address: scene.address(id).clone(),
        deposed: Some(leftover.key),
        type_name: scene.subjects[id].type_name(),
        action: leftover.action,
        order: None,
        forget: leftover.action == Action::Forget,
        hold_destroy: None,
        blocked: block.map(Block::reason),
        message: block.map(|block| block.leading().message()).unwrap_or_default(),
        waiting_for: block.map(|block| scene.addresses(block.waiting_for.iter().copied())).unwrap_or_default(),
        replace_paths: Vec::new(),
        drift: None,
        because: leftover.because,
        before: Some(leftover.object.value.clone()),
        after: None,
    }
}

/// The flags to record with an object, where more than its own spec decides them.
#[derive(Clone)]
struct Flags {
    create_first: bool,
    expressed: Expressed,
}

/// What expressions decide about the record of an object.
#[derive(Clone)]
struct Expressed {
    prevent_destroy: bool,
    triggers: Option<Arc<Triggers>>,
}

fn flags_of(scene: &Scene<'_>, id: Id, flags: &Inheritance, expressed: &mut BTreeMap<Id, Expressed>) -> Flags {
    let own = || {
        let prevent_destroy = scene.subjects[id].instance.is_some_and(|instance| instance.prevent_destroy);
        Expressed { prevent_destroy, triggers: None }
    };
    Flags { create_first: flags.is_on(id), expressed: expressed.remove(&id).unwrap_or_else(own) }
}

/// What is to be recorded of objects where expressions decide it: their protection, and what triggers them.
fn expressed(scene: &Scene<'_>, drafts: &[Option<Draft>]) -> BTreeMap<Id, Expressed> {
    let seen = Seen { scene, drafts };
    let asks = |instance: &&Arc<Instance>| instance.prevent_destroy_when.is_some() || !instance.triggers.is_empty();
    let one = |(id, subject): (Id, &Subject<'_>)| {
        let instance = subject.instance.filter(asks)?;
        let before = subject.current();
        let known = before.and_then(|before| before.triggers.as_ref()).map(|triggers| triggers.salt);
        let salt = known.unwrap_or_else(|| draw::salt(scene.options.seed, subject.address));
        let is_triggered = subject.wanted && !instance.triggers.is_empty();
        let triggers = is_triggered.then(|| Arc::new(trigger::seen_in_plan(&seen, instance, salt)));
        let before = before.is_some_and(|object| object.prevent_destroy);
        Some((id, Expressed { prevent_destroy: protect::recorded(instance, &seen, before), triggers }))
    };
    scene.subjects.iter().enumerate().filter_map(one).collect()
}

/// What the executor needs for a step `C(x)`. An object that stays as it is gets a record-only step when its record
/// does not say what it should.
fn prepare(scene: &Scene<'_>, id: Id, draft: &mut Draft, flags: Flags) -> Option<Prepared> {
    let subject = scene.subjects[id];
    if draft.is_blocked() || scene.options.mode == Mode::RefreshOnly {
        return follow(scene, id, draft, &flags.expressed);
    }
    let instance = subject.instance.filter(|_| subject.wanted && !scene.running.contains_key(&id))?;
    if draft.action == Action::Read {
        let planned = draft.planned.as_ref()?;
        let service_account = instance.service_account.clone();
        return Some(Prepared {
            config: planned.config.clone(),
            planned: planned.value.clone(),
            recorded: RecordedObject { provider: draft.provider.clone(), service_account, ..Default::default() },
            ..prepared_from(scene, id, draft.action)
        });
    }
    if matches!(draft.action, Action::NoOp | Action::Wait) {
        let object = draft.prior.clone()?;
        if draft.action == Action::NoOp {
            let because = record_only(scene, subject, instance, &object, draft, &flags);
            let moved = scene.options.moved.get(subject.address).cloned();
            draft.because = Some(moved.or_else(|| because.map(str::to_owned))?);
            draft.action = Action::Record;
        }
        return Some(Prepared {
            config: Value::Null,
            planned: draft
                .seen
                .clone()
                .filter(|_| draft.action == Action::Wait)
                .unwrap_or_else(|| object.value.clone()),
            private: object.private.clone(),
            recorded: RecordedObject {
                provider: draft.provider.clone().or_else(|| object.provider.clone()),
                ..recorded(scene, instance, Some(&object), flags, object.schema_version)
            },
            prior: Some(object),
            publish_again: draft.copies_drifted,
            ..prepared_from(scene, id, draft.action)
        });
    }
    let planned = draft.planned.as_ref().filter(|_| draft.makes())?;
    let base = draft.prior.as_ref().filter(|_| draft.action == Action::Update);
    let replaced = draft.prior.as_ref().filter(|_| draft.action == Action::Replace);
    let version = scene.schema(id).map_or(0, |schema| schema.version);
    Some(Prepared {
        prior: base.cloned(),
        replaced: replaced.cloned(),
        config: planned.config.clone(),
        planned: planned.value.clone(),
        private: planned.private.clone(),
        entropy: draw::entropy(scene.options.seed, subject.address),
        replace_paths: planned.replace_paths.clone(),
        tells: planned.tells,
        identity: planned.identity.clone(),
        recorded: RecordedObject {
            provider: draft.provider.clone(),
            ..recorded(
                scene,
                instance,
                base,
                Flags { create_first: flags.create_first || draft.forget, ..flags },
                version,
            )
        },
        publish_again: draft.copies_drifted,
        ..prepared_from(scene, id, draft.action)
    })
}

/// The parts that every step has.
fn prepared_from(scene: &Scene<'_>, id: Id, action: Action) -> Prepared {
    let subject = scene.subjects[id];
    Prepared {
        prior: None,
        replaced: None,
        config: Value::Null,
        planned: Value::Null,
        private: Arc::new([]),
        entropy: [0; 16],
        replace_paths: Vec::new(),
        tells: false,
        identity: None,
        publish_again: false,
        recorded: RecordedObject::default(),
        deposed_key: match action {
            Action::Replace => draw::deposed_key(scene.options.seed, subject.address, subject.record),
            _ => DeposedKey(0),
        },
        only_follows: false,
    }
}

/// What is to be recorded with an object: its flags, its direct dependencies, and as whom it is managed.
fn recorded(
    scene: &Scene<'_>,
    instance: &Instance,
    base: Option<&Arc<RecordedObject>>,
    flags: Flags,
    version: u64,
) -> RecordedObject {
    let object = base.map_or_else(RecordedObject::default, |object| object.as_ref().clone());
    let dependencies = match base {
        Some(base) if uses(scene, instance, &base.dependencies) => base.dependencies.clone(),
        _ => match scene.used_through_data(instance) {
            Some(targets) => targets.into_iter().collect(),
            None => targets(instance).cloned().collect(),
        },
    };
    RecordedObject {
        schema_version: version,
        dependencies,
        create_before_destroy: flags.create_first,
        prevent_destroy: flags.expressed.prevent_destroy,
        triggers: flags.expressed.triggers,
        skip_destroy: instance.keeps_object(),
        service_account: instance.service_account.clone(),
        hooks: recorded_hooks(instance, base),
        hooks_pending: base.is_none_or(|base| base.hooks_pending) && hooks::follow_create(instance),
        ..object
    }
}

/// The hooks before a destroy, shared with the record when nothing has changed.
fn recorded_hooks(instance: &Instance, base: Option<&Arc<RecordedObject>>) -> Arc<[RecordedHook]> {
    match base {
        Some(base) if hooks::to_record(instance).eq(base.hooks.iter()) => base.hooks.clone(),
        _ if hooks::to_record(instance).next().is_none() => Arc::default(),
        _ => hooks::to_record(instance).cloned().collect(),
    }
}

/// The direct dependencies as they are recorded: in address order, each once, a whole family as one entry.
fn targets(instance: &Instance) -> impl Iterator<Item = &Address> {
    let references = &instance.references;
    let repeated = |at: usize| at > 0 && references[at - 1].target == references[at].target;
    (0..references.len()).filter(move |at| !repeated(*at)).map(|at| &references[at].target)
}

/// Whether these are the direct dependencies to record.
fn uses(scene: &Scene<'_>, instance: &Instance, recorded: &[Address]) -> bool {
    match scene.used_through_data(instance) {
        Some(targets) => targets.iter().eq(recorded),
        None => targets(instance).eq(recorded),
    }
}

/// Why the record of an object that stays as it is must be written, if it must.
fn record_only(
    scene: &Scene<'_>,
    subject: Subject<'_>,
    instance: &Instance,
    object: &RecordedObject,
    draft: &Draft,
    flags: &Flags,
) -> Option<&'static str> {
    let rules = [
        (!uses(scene, instance, &object.dependencies), "its dependencies changed"),
        (object.create_before_destroy != flags.create_first, "its create-before-destroy flag changed"),
        (object.prevent_destroy != flags.expressed.prevent_destroy, "`preventDestroy` changed"),
        (object.skip_destroy != instance.keeps_object(), "what happens to it in the end changed"),
        (object.triggers != flags.expressed.triggers, "what triggers its replacement was seen anew"),
        (object.service_account != instance.service_account, "its service account changed"),
        (!hooks::to_record(instance).eq(object.hooks.iter()), "its hooks changed"),
        (object.hooks_pending, "its hooks have not all run yet"),
        (
            subject.record.is_some_and(|record| record.uid != instance.uid),
            "another Resource of the same name took it over",
        ),
        (has_lost_marks(instance), "its finalizer or its annotation was taken off"),
    ];
    let rules = || rules.into_iter().find(|(changed, _)| *changed).map(|(_, because)| because);
    let differs = draft.record_differs.or(draft.publishes);
    differs.or_else(rules).or(draft.check_later.then_some("its conditions are checked when all is known"))
}

/// A Resource in a cluster says that it has a record; without that its deletion would leave the object behind.
fn has_lost_marks(instance: &Instance) -> bool {
    !instance.uid.is_empty() && !instance.deleting && !instance.is_marked()
}

fn wants(scene: &Scene<'_>) -> std::collections::BTreeMap<Address, Arc<[Address]>> {
    let wanted = (0..scene.objects).filter(|id| scene.subjects[*id].wanted);
    wanted
        .map(|id| {
            // A family without instances is nothing that anybody could wait for.
            let exists = |target: &Id| {
                !scene.is_junction(*target) || scene.members(*target).any(|member| scene.subjects[member].wanted)
            };
            let mut targets: Vec<Address> =
                scene.wants.of(id).filter(exists).map(|target| scene.address(target).clone()).collect();
            targets.sort();
            let targets: Arc<[Address]> = targets.into();
            let recorded = scene.subjects[id].current().map(|object| &object.dependencies);
            let shared = recorded.filter(|recorded| ***recorded == *targets).cloned();
            (scene.address(id).clone(), shared.unwrap_or(targets))
        })
        .collect()
}

fn lifecycle(scene: &Scene<'_>, flags: &Inheritance) -> std::collections::BTreeMap<Address, EffectiveLifecycle> {
    let sources = sources(flags);
    let one = |id: Id| {
        let objects = flags.forced_by(id).filter(|member| !scene.is_junction(*member));
        let mut chain: Vec<Id> = objects.take(LONGEST_CHAIN - 1).collect();
        if let Some(source) = sources[id].filter(|source| chain.last().is_some_and(|last| last != source)) {
            chain.push(source);
        }
        let forced_by = scene.addresses(chain.into_iter().map(|member| settle::flagged_as(scene, member)));
        (scene.address(id).clone(), EffectiveLifecycle { create_before_destroy: flags.is_on(id), forced_by })
    };
    let known = |id: &Id| scene.subjects[*id].wanted || scene.subjects[*id].record.is_some();
    (0..scene.objects).filter(known).map(one).collect()
}

/// The object at the end of each chain. Each link is followed once, whatever the chains share.
fn sources(flags: &Inheritance) -> Vec<Option<Id>> {
    let mut sources: Vec<Option<Id>> = vec![None; flags.len()];
    for id in 0..sources.len() {
        let mut walked = vec![id];
        let mut end = None;
        for next in flags.forced_by(id) {
            end = sources[next].or(Some(next));
            if sources[next].is_some() {
                break;
            }
            walked.push(next);
        }
        if let Some(end) = end {
            walked.into_iter().filter(|member| *member != end).for_each(|member| sources[member] = Some(end));
        }
    }
    sources
}

/// Problems by object, to be told in address order.
struct Told {
    found: Vec<(Id, Diagnostic)>,
}

impl Told {
    fn extend(&mut self, id: Id, diagnostics: impl IntoIterator<Item = Diagnostic>) {
        self.found.extend(diagnostics.into_iter().map(|diagnostic| (id, diagnostic)));
    }

    fn in_order(mut self, scene: &Scene<'_>) -> Diagnostics {
        self.found.sort_by(|(a, _), (b, _)| scene.address(*a).cmp(scene.address(*b)));
        let placed = |(id, mut diagnostic): (Id, Diagnostic)| {
            let instance = scene.subjects[id].instance;
            diagnostic.source = diagnostic.source.or_else(|| instance.and_then(|instance| instance.source.clone()));
            diagnostic
        };
        self.found.into_iter().map(placed).collect()
    }
}

fn draft_diagnostics(scene: &Scene<'_>, id: Id, draft: &mut Draft, flags: &Inheritance, told: &mut Told) {
    let subject = scene.subjects[id];
    told.extend(id, std::mem::take(&mut draft.diagnostics));
    for block in draft.block.iter().chain(draft.hold_destroy.iter()) {
        // Of a family whose instances are not known the Resource tells why.
        if !families::is_unexpanded(scene, id) && leaving::of_broken(scene, id).is_none() {
            told.extend(id, block.diagnostics.iter().cloned());
        }
    }
    let Some(instance) = subject.instance.filter(|_| subject.wanted) else { return };
    let warnings = instance.problems.iter().filter(|problem| problem.severity == Severity::Warning);
    told.extend(id, warnings.cloned());
    if instance.create_before_destroy == Some(false) && flags.is_on(id) {
        let what = "`createBeforeDestroy: false` is overridden";
        let mut warning = Diagnostic::warning(subject.address, Reason::CreateBeforeDestroyForced, what);
        if flags.forced_by(id).next().is_some() {
            warning = warning.because(format!("required by {}", settle::told_chain(scene, flags, id)));
        }
        told.extend(id, [warning]);
    }
    let failed = subject.record.map_or(0, |record| record.failed_creates);
    if scene.options.max_failed_creates.is_none() && failed >= MANY_FAILED_CREATES && draft.makes() {
        let what = format!("the new object failed to be created {failed} times in a row");
        told.extend(id, [Diagnostic::warning(subject.address, Reason::CreateKeepsFailing, what)]);
    }
}

/// An object that stays although it is not managed any more, and used something that is destroyed.
fn warn_of_orphans(scene: &Scene<'_>, drafts: &[Option<Draft>], told: &mut Told) {
    let destroyed = |id: Id| {
        drafts[id].as_ref().is_some_and(|draft| {
            let replaced = draft.action == Action::Replace && draft.hold_destroy.is_none();
            !draft.forget && (draft.action == Action::Destroy || replaced)
        })
    };
    for (id, draft) in drafts.iter().enumerate() {
        let Some(drafted) = draft else { continue };
        let leftovers = drafted.leftovers.iter().filter(|leftover| leftover.action == Action::Forget);
        let kept = leftovers.filter(|leftover| leftover.exists).flat_map(|leftover| {
            let targets = scene.leftover_used(id, &leftover.object);
            targets.into_iter().map(|used| (leftover.key, used))
        });
        for (key, used) in kept.filter(|(_, used)| destroyed(*used)) {
            let what = format!(
                "the old object (deposed {key}) stays, and `{}`, which it used, is destroyed",
                scene.address(used)
            );
            told.extend(id, [Diagnostic::warning(scene.address(id), Reason::OrphanUsesDestroyed, what)]);
        }
        // An object that is gone needs nothing any more.
        if !draft.as_ref().is_some_and(|draft| draft.forget && draft.prior.is_some()) {
            continue;
        }
        let objects = |used: Id| if scene.is_junction(used) { scene.members(used) } else { used..used + 1 };
        for used in scene.used.of(id).flat_map(objects).filter(|used| destroyed(*used)) {
            let what = format!("the object stays, and `{}`, which it used, is destroyed", scene.address(used));
            told.extend(id, [Diagnostic::warning(scene.address(id), Reason::OrphanUsesDestroyed, what)]);
        }
    }
}

/// A one-off run carries out one plan: what waits until something is gone or has run needs another. A loop plans again
/// by itself.
fn must_run_again(scene: &Scene<'_>, drafts: &[Option<Draft>]) -> Option<Diagnostic> {
    if !scene.options.destroy_orphans || scene.options.mode != Mode::Normal {
        return None;
    }
    let steps = |id: &Id| scene.running.contains_key(id) || drafts[*id].as_ref().is_some_and(Draft::leaves);
    let waits = |draft: &&Draft| {
        let is_over_soon = |block: &Block| block.reason() == Reason::Waiting || block.waiting_for.iter().any(steps);
        draft.block.as_deref().is_some_and(is_over_soon)
    };
    let unknown = |draft: &Draft| draft.block.as_ref().is_some_and(|b| b.reason() == Reason::DependencyNotReady);
    let families = scene.objects..scene.subjects.len();
    let families = families.filter(|id| scene.is_selected(*id) && families::is_unexpanded(scene, *id));
    let families = families.filter(|id| drafts[*id].as_ref().is_some_and(unknown)).count();
    // Its settings are known once what they refer to has run, if that is going to.
    let goes_on = |id: &Id| drafts[*id].as_ref().is_some_and(|draft| draft.block.is_none());
    let is_next = |draft: &Draft| draft.block.as_ref().is_some_and(|block| block.waiting_for.iter().any(goes_on));
    let refers = |id: Id, draft: &Draft| {
        let provided = scene.subjects[id].instance.and_then(|instance| instance.provider.as_ref());
        unknown(draft) && provided.is_some_and(|provided| !provided.references().is_empty()) && is_next(draft)
    };
    let objects = (0..scene.objects).filter_map(|id| Some((id, drafts[id].as_ref()?)));
    let waiting = families + objects.filter(|(id, draft)| waits(draft) || refers(*id, draft)).count();
    (waiting > 0).then(|| {
        let what = format!("{waiting} object(s) wait for what this plan does");
        let warning = Diagnostic::general(Reason::RunAgain, what).hint("run apply again");
        Diagnostic { severity: Severity::Warning, ..warning }
    })
}
