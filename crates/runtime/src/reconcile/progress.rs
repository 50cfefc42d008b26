//! Tracks the execution of adopted plans.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::index::{StepStart, Work};
use super::objects::{Hold, TrackedObject, blocked_for};
use super::planning::{CRD_AGAIN, PlanPart};
use super::summarize::{Note, StepState, step_note, waits_for_others};
use super::time::Time;
use super::{Command, Phase, Reconciler, ReportSubject};
use crate::execute::{Adoption, HookNote, ProgressKind, WorkerCommand, Written};
use engine::load::Instance;
use engine::plan::{ObjectBlock, PlannedObject};
use model::{Action, Address, Diagnostic, Health, Name, Operation, Reason, Record, Severity, Step, Stored};

/// How long the watch may take to show that this process has removed the annotation of a Resource.
const MARKS_SHOWN: Duration = Duration::from_secs(1);

/// A plan that is being executed.
#[derive(Debug)]
pub struct AdoptedPlan {
    /// The objects of the plan, except those that a newer plan covers: this one may have been planned for other
    /// components, whose steps are still running.
    pub addresses: BTreeSet<Address>,
    /// Those with open steps.
    pub open: BTreeSet<Address>,
    /// Whether it has steps, whose results others may wait for.
    pub had_steps: bool,
}

/// Plans with open steps. There can be one for each object of a large namespace, so they are found by their objects.
#[derive(Debug, Default)]
pub struct AdoptedPlans {
    plans: BTreeMap<u64, AdoptedPlan>,
    next: u64,
    /// The newest plan of each object.
    of: BTreeMap<Address, u64>,
    /// The plans without open steps.
    finished: BTreeSet<u64>,
}

impl AdoptedPlans {
    /// Adds a plan, which replaces older ones of the same objects.
    pub fn add(&mut self, plan: AdoptedPlan) {
        let id = self.next;
        self.next += 1;
        for address in &plan.addresses {
            let Some(older) = self.of.insert(address.clone(), id) else { continue };
            let Some(left) = self.plans.get_mut(&older) else { continue };
            left.addresses.remove(address);
            left.open.remove(address);
            if left.open.is_empty() {
                self.finished.insert(older);
            }
            if left.addresses.is_empty() {
                self.finished.remove(&older);
                self.plans.remove(&older);
            }
        }
        if plan.open.is_empty() {
            self.finished.insert(id);
        }
        self.plans.insert(id, plan);
    }

    pub fn of(&self, address: &Address) -> Option<&AdoptedPlan> {
        self.plans.get(self.of.get(address)?)
    }

    /// An object has no open step any more.
    pub fn close(&mut self, address: &Address) {
        let Some(id) = self.of.get(address) else { return };
        let Some(plan) = self.plans.get_mut(id) else { return };
        plan.open.remove(address);
        if plan.open.is_empty() {
            self.finished.insert(*id);
        }
    }

    /// Removes and returns the plans without open steps, oldest first.
    pub fn take_finished(&mut self) -> Vec<AdoptedPlan> {
        let finished = std::mem::take(&mut self.finished);
        let plans: Vec<AdoptedPlan> = finished.iter().filter_map(|id| self.plans.remove(id)).collect();
        plans.iter().flat_map(|plan| &plan.addresses).for_each(|address| _ = self.of.remove(address));
        plans
    }

    #[cfg(test)]
    pub fn is_empty(&self) -> bool {
        self.plans.is_empty() && self.of.is_empty()
    }
}

impl Reconciler {
    /// Records an adopted plan and the resulting state of each of its objects.
    pub fn track_plan(&mut self, part: &PlanPart) {
        let Adoption { scope, config, plan, graph, .. } = &*part.adoption;
        let nodes: Vec<(Step, bool)> =
            graph.nodes().map(|node| (graph.step(node).clone(), graph.is_running(node))).collect();
        let as_wanted = self.created_as_desired(part, &nodes);
        let mut by_address: BTreeMap<Address, Vec<(Step, bool)>> = BTreeMap::new();
        for (step, is_running) in nodes {
            by_address.entry(step.address.clone()).or_default().push((step, is_running));
        }
        let open: BTreeSet<Address> = by_address.keys().cloned().collect();
        for (address, planned) in plan.objects.iter().filter(|(_, planned)| planned.is_read) {
            match planned.is_missing {
                true => self.objects.missing.mark_missing(address, self.now.time),
                false => self.objects.missing.mark_found(address),
            }
        }
        if plan.objects.iter().any(|(address, planned)| planned.is_read && address.is_data()) {
            self.index.touch_provider_configs();
        }
        let unplanned = PlannedObject::default();
        for address in scope {
            let planned = plan.objects.get(address).map_or(&unplanned, AsRef::as_ref);
            let steps = by_address.remove(address).unwrap_or_default();
            self.track_object(part, address, planned, steps);
        }
        for address in &as_wanted {
            self.objects.entry(address).in_flight = false;
        }
        for name in &part.names {
            let is_over_quota =
                self.objects.of(name).any(|(_, tracked)| tracked.held_for() == Some(Reason::QuotaExceeded));
            self.objects.over_quota.set(name, is_over_quota);
            self.track_resource(name, config);
            self.release_if_empty(name);
            self.claim(name);
        }
        self.report_warnings(part);
        self.track_approvals(part);
        let had_steps = !open.is_empty();
        self.planning.adopted.add(AdoptedPlan { addresses: scope.clone(), open, had_steps });
        self.close_finished_plans();
    }

    fn track_object(&mut self, part: &PlanPart, address: &Address, planned: &PlannedObject, nodes: Vec<(Step, bool)>) {
        let was_read = planned.is_read;
        let reason = self.set_planned(part, address, planned, nodes);
        let tracked = self.objects.entry(address);
        let blocked_type = tracked.change.as_ref().map(|change| change.type_name.clone());
        match blocked_type.filter(|_| matches!(reason, Some(Reason::AlreadyExists | Reason::NameCycle))) {
            Some(type_name) => drop(self.objects.taken.insert(address.clone(), type_name)),
            None => drop(self.objects.taken.remove(address)),
        }
        let tracked = self.objects.entry(address);
        // Also for objects that a replacement destroys as soon as that is possible.
        let held = tracked.change.as_ref().and_then(|change| change.hold_destroy);
        let given_up: Vec<Reason> = held.into_iter().chain(tracked.deposed.iter().filter_map(blocked_for)).collect();
        let drift = tracked.change.as_ref().and_then(|change| change.drift.clone());
        let is_corrected = tracked.change.as_ref().is_some_and(|change| change.reported_drift().is_none());
        self.counts.drift += u64::from(was_read && drift.is_some());
        let at_rest = reason.is_none() && tracked.steps.is_empty();
        if at_rest {
            tracked.failures = 0;
            tracked.last_failure = None;
            tracked.up_to_date = part.fingerprints.get(address).copied();
            self.planning.memo.remove(address);
        }
        let again = reason.into_iter().chain(given_up).find_map(|reason| self.replan_at(address, reason));
        if let Some(at) = again {
            self.objects.retry_at(address, at);
        }
        self.plan_reading(address, was_read, reason);
        if was_read {
            let tracked = self.objects.entry(address);
            tracked.known = true;
            // Every plan must find the drift again until it is corrected.
            tracked.unread = !at_rest || drift.is_some();
        }
        if let Some(drift) = drift.filter(|_| !at_rest && is_corrected) {
            self.report_drift(address, &drift);
        }
        self.objects.watch(address);
        self.resources.changed.insert(address.name().clone());
        self.clean_up(address);
    }

    /// Sets what is planned of an object. Returns why its change is blocked.
    fn set_planned(
        &mut self,
        part: &PlanPart,
        address: &Address,
        planned: &PlannedObject,
        nodes: Vec<(Step, bool)>,
    ) -> Option<Reason> {
        let Adoption { config, desired_digests, .. } = &*part.adoption;
        let was_read = planned.is_read;
        let tracked = self.objects.entry(address);
        let requested = config.instances.get(address).map(|instance| instance.reconcile_requested.clone());
        // A requested reading that failed is still due.
        let is_unread = !was_read && requested.as_ref().is_some_and(|asked| *asked != tracked.requested);
        let is_recorded = self.index.records().has_current(address);
        tracked.unread |= is_unread && is_recorded;
        tracked.instance = config.instances.get(address).cloned();
        let desired_digest = desired_digests.get(address.name()).copied().unwrap_or_default();
        if std::mem::replace(&mut tracked.desired_digest, desired_digest) != desired_digest {
            tracked.set_blocked(false);
            tracked.failures = 0;
        }
        tracked.change.clone_from(&planned.change);
        tracked.deposed.clone_from(&planned.deposed);
        tracked.lifecycle.clone_from(&planned.lifecycle);
        tracked.dependencies = planned.dependencies.clone().unwrap_or_default();
        tracked.set_steps(nodes);
        tracked.up_to_date = None;
        tracked.retry_at = None;
        tracked.requested = requested.unwrap_or_default();
        let reason = tracked.change.as_deref().and_then(blocked_for);
        tracked.set_blocked(reason.is_some());
        // Only a reading shows whether a call fails because the object is gone.
        tracked.unread |= reason == Some(Reason::OperationFailed) && is_recorded && !was_read;
        reason
    }

    /// When to plan a blocked object again although nothing changes.
    fn replan_at(&mut self, address: &Address, reason: Reason) -> Option<Time> {
        let now = self.now.time;
        let hold = self.objects.get(address).and_then(|tracked| tracked.hold.as_ref());
        match reason {
            Reason::CustomResourceDefinitionTerminating | Reason::CustomResourceDefinitionUnknown => {
                Some(now + CRD_AGAIN)
            }
            // A hold has its own time.
            _ if hold.is_some() => hold?.until,
            _ if reason.may_pass() => Some(now + self.wait_after_failure(address, reason)),
            _ => None,
        }
    }

    pub fn handle_step_progress(&mut self, step: &Step, kind: ProgressKind, written: Written) {
        match kind {
            ProgressKind::Started => self.step_started(step),
            ProgressKind::Hook(note) => self.report_hook(step, note),
            // The next plan reports what differs.
            ProgressKind::Warning(warning) if warning.reason == Reason::Drifted => {
                self.objects.entry(&step.address).changed_meanwhile = true;
            }
            ProgressKind::Warning(warning) => {
                self.report_provider_warnings(&step.address, &[&warning]);
                if warning.reason == Reason::FieldKept
                    && let Some(tracked) = self.objects.get_mut(&step.address)
                {
                    tracked.warnings.get_or_insert_default().remarks.insert(warning.message());
                }
            }
            ProgressKind::Delayed(why) => {
                let is_stalled = why.severity == Severity::Error;
                self.set_state(step, StepState::Delayed { reason: why.reason, message: why.message(), is_stalled });
            }
            ProgressKind::Finished => self.step_ended(step, StepState::Finished, written),
            ProgressKind::Failed { reason, message, retryable } => {
                self.step_ended(step, StepState::Failed { reason, message, retryable }, written);
            }
            ProgressKind::Superseded | ProgressKind::WaitInterrupted => self.step_withdrawn(step, written),
            ProgressKind::Skipped { because_of } => self.set_state(step, StepState::Skipped(because_of)),
        }
        let address = &step.address;
        self.resources.changed.insert(address.name().clone());
        if !self.objects.get(address).is_some_and(TrackedObject::is_open) {
            self.clean_up(address);
            self.planning.adopted.close(address);
            self.close_finished_plans();
        }
    }

    fn step_started(&mut self, step: &Step) {
        let address = &step.address;
        let shared_fingerprint = self.index.shared_fingerprint(address.name());
        tracing::debug!(namespace = &**self.namespace(), step = step.id(), "started");
        let tracked = self.objects.entry(address);
        // The step reports what still holds.
        tracked.replace_remarks(BTreeSet::new());
        tracked.changed_meanwhile = false;
        let desired_digest = tracked.desired_digest;
        let start = StepStart { step: step.clone(), at: self.now.time, desired_digest, shared_fingerprint };
        self.index.begin(address, Work::Step(start));
        let is_outdated = desired_digest != self.index.desired_digest(address.name());
        if is_outdated && !step.operation.removes() {
            self.commands.push(Command::Execute(WorkerCommand::EndWait(step.clone())));
        }
        self.set_state(step, StepState::Running);
    }

    /// A step was withdrawn because the desired state has changed, or its wait was ended. The object is planned again.
    fn step_withdrawn(&mut self, step: &Step, written: Written) {
        let address = &step.address;
        self.index.end(address, written);
        // After a shutdown it still waits for the same.
        if self.phase == Phase::Active {
            self.set_state(step, StepState::Waiting);
        }
        self.touch(address.name());
        self.replan_component(step);
    }

    fn step_ended(&mut self, step: &Step, state: StepState, written: Written) {
        let (address, now) = (&step.address, self.now.time);
        let stored = self.index.records().get(address).cloned();
        let before = stored.as_ref().map(|stored| stored.record.uid.clone());
        let after = written.record(stored.as_ref()).cloned();
        let start = self.index.records().started(address).cloned();
        self.index.end(address, written);
        let failed = matches!(state, StepState::Failed { .. });
        if let StepState::Failed { reason, message, retryable } = &state {
            let (reason, message) = (*reason, message.clone());
            // Only at debug level: the status and an event report the failure.
            tracing::debug!(
                namespace = &**self.namespace(), step = step.id(), %reason, retryable, "failed: {message}"
            );
            self.hold_failed(address, ObjectBlock { reason, message }, *retryable, start.as_ref());
        } else {
            let took = now - start.as_ref().map_or(now, |start| start.at);
            tracing::debug!(namespace = &**self.namespace(), step = step.id(), ?took, "finished");
            let adopted =
                before.is_some() && after.as_ref().is_some_and(|after| before.as_ref() != Some(&after.record.uid));
            let id = after.as_ref().and_then(|after| after.record.current.as_ref()?.id().map(str::to_owned));
            let made = stored.as_ref().filter(|_| !adopted).map(|stored| made_by(step, &stored.record));
            let made = made.unwrap_or_else(|| step.clone());
            self.report_finished(&made, adopted, id.as_deref());
        }
        if after.is_none() && before.is_some() {
            self.object_removed();
            self.plan_if_marked(address.name());
        }
        if let Some(Stored { record, .. }) = stored.as_ref().filter(|_| !failed && step.operation == Operation::Destroy)
        {
            self.identity_freed(&record.type_name);
        }
        let exists = !failed && !step.operation.removes();
        if exists && step.operation == Operation::Create {
            self.objects.missing.mark_recreated(address, now);
        }
        self.set_state(step, state);
        if let Some(tracked) = self.objects.get_mut(address).filter(|tracked| exists && !tracked.is_open()) {
            tracked.require_reading(tracked.changed_meanwhile);
            tracked.known = true;
            if step.operation != Operation::Record {
                // Such a step ends when the object is ready. The watch reports if it is not any more.
                tracked.set_health(Health::Current);
            }
        }
        if self.objects.get(address).is_some_and(|tracked| tracked.unread) {
            self.touch(address.name());
        }
        self.objects.watch(address);
        self.replan_component(step);
    }

    /// The last record of a Resource that is being deleted was removed. If its annotation stays, other objects can exist
    /// whose records were lost, and the next plan says so.
    fn plan_if_marked(&mut self, name: &Name) {
        let is_last = self.recorded(name).next().is_none();
        let resource = self.index.instance(name).filter(|resource| is_last && resource.deleting);
        if resource.is_some_and(|resource| resource.has_record_annotation()) {
            self.objects.retry_at(&Address::single(name.clone()), self.now.time + MARKS_SHOWN);
        }
    }

    fn set_state(&mut self, step: &Step, state: StepState) {
        self.objects.entry(&step.address).set(step, state);
    }

    /// Holds a failed object for a while, or until something changes, and reads its record again in case another
    /// process has written it. `start`: the start of the failed step. If something has changed since, the object is
    /// retried immediately.
    pub fn hold_failed(&mut self, address: &Address, held: ObjectBlock, retryable: bool, start: Option<&StepStart>) {
        // The cached plan may be the cause.
        self.planning.memo.remove(address);
        let present = self.index.shared_fingerprint(address.name());
        let desired_digest = self.index.desired_digest(address.name());
        let changed =
            start.is_some_and(|start| (start.desired_digest, start.shared_fingerprint) != (desired_digest, present));
        // A different fingerprint ends the hold.
        let fingerprint = self.index.fingerprint_of(address, if changed { !present } else { present });
        if changed {
            self.touch(address.name());
        }
        let wait = self.wait_after_failure(address, held.reason);
        let until = retryable.then(|| self.now.time + wait);
        let tracked = self.objects.entry(address);
        tracked.last_failure = Some(held.message.as_str().into());
        tracked.hold = Some(Box::new(Hold { held, until, fingerprint }));
        tracked.retry_at = until;
        until.into_iter().for_each(|at| self.objects.wake_at(address, at));
        self.read_record(address);
    }

    fn report_hook(&mut self, step: &Step, hook: HookNote) {
        let (reason, state) = if hook.failed { ("HookFailed", "failed") } else { ("HookSucceeded", "ran") };
        let more = if hook.message.is_empty() { String::new() } else { format!(": {}", hook.message) };
        let note = format!("the hook `{}` {state}{more}", hook.hook);
        self.report_object(&step.address, Note { warning: hook.failed, reason, action: "Hook", note });
    }

    fn report_finished(&mut self, step: &Step, adopted: bool, id: Option<&str>) {
        let id = id.filter(|_| !step.operation.removes());
        let Some(tracked) = self.objects.get(&step.address) else { return };
        let mut changes = tracked.change.as_deref().into_iter().chain(&tracked.deposed);
        let because = changes.find(|change| change.deposed == step.deposed).and_then(|change| change.because.as_ref());
        if let Some(note) = step_note(step, adopted, id, because) {
            self.report_object(&step.address, note);
        }
    }

    /// Reports the new warnings of a plan as events of their objects.
    fn report_warnings(&mut self, part: &PlanPart) {
        let mut warnings: BTreeMap<&Address, Vec<&Diagnostic>> = BTreeMap::new();
        let Adoption { scope, plan, .. } = &*part.adoption;
        for diagnostic in plan.diagnostics.iter().filter(|diagnostic| diagnostic.severity == Severity::Warning) {
            if let Some(address) = &diagnostic.address {
                warnings.entry(address).or_default().push(diagnostic);
            }
        }
        let of_families: Vec<Address> = part.names.iter().map(|name| Address::single(name.clone())).collect();
        for address in scope.iter().chain(of_families.iter().filter(|a| !scope.contains(a))) {
            let (advice, warnings): (Vec<_>, Vec<_>) = warnings
                .remove(address)
                .unwrap_or_default()
                .into_iter()
                .partition(|warning| matches!(warning.reason, Reason::ProviderWarning | Reason::FieldKept));
            let remarks: BTreeSet<String> = advice
                .iter()
                .filter(|warning| warning.reason == Reason::FieldKept)
                .map(|warning| warning.message())
                .collect();
            if let Some(tracked) = self.objects.get_mut(address)
                && (!remarks.is_empty() || plan.objects.get(address).is_some_and(|planned| planned.is_read))
            {
                tracked.replace_remarks(remarks);
            }
            self.report_provider_warnings(address, &advice);
            let texts: BTreeSet<String> = warnings.iter().map(|warning| warning.message()).collect();
            let known = match self.objects.get_mut(address) {
                Some(tracked) => tracked.replace_warnings(texts),
                // Warnings about a family as a whole.
                None => match self.resources.get_mut(address.name()) {
                    Some(resource) => std::mem::replace(&mut resource.warnings, texts),
                    None => continue,
                },
            };
            for diagnostic in warnings {
                let (reason, note) = (diagnostic.reason, diagnostic.message());
                // A change that waits is no news: its status says so, and the event about a held change names its Plan.
                if reason == Reason::ApprovalRequired || waits_for_others(reason) || known.contains(&note) {
                    continue;
                }
                // The user suspended it.
                let warning = reason != Reason::Suspended;
                self.report_object(address, Note { warning, reason: reason.as_str(), action: "Plan", note });
            }
        }
    }

    /// Reports each warning of a provider once per generation of the Resource.
    pub fn report_provider_warnings(&mut self, address: &Address, advice: &[&Diagnostic]) {
        let Some(tracked) = self.objects.get_mut(address).filter(|_| !advice.is_empty()) else { return };
        let generation = tracked.instance.as_ref().map_or(0, |instance| instance.generation);
        let warnings = tracked.warnings.get_or_insert_default();
        if warnings.generation != generation {
            (warnings.generation, warnings.of_provider) = (generation, BTreeSet::new());
        }
        let messages = advice.iter().map(|warning| (warning.reason.as_str(), warning.message()));
        let messages: Vec<_> = messages.filter(|(_, text)| warnings.of_provider.insert(text.clone())).collect();
        for (reason, note) in messages {
            self.report_object(address, Note { warning: true, reason, action: "Plan", note });
        }
    }

    pub fn report_object(&mut self, address: &Address, note: Note) {
        if let Some((resource, note)) = self.resources.note(address, note) {
            self.report(ReportSubject::Resource(resource), note);
        }
    }

    /// Marks the objects of executed plans as up to date until one of their dependencies changes, and plans the objects
    /// again that waited for such a plan.
    fn close_finished_plans(&mut self) {
        for AdoptedPlan { addresses, had_steps, .. } in self.planning.adopted.take_finished() {
            let mut resources: BTreeMap<&Name, (Option<Arc<Instance>>, u64)> = BTreeMap::new();
            for address in &addresses {
                let (resource, fingerprint) = resources.entry(address.name()).or_insert_with(|| {
                    (self.index.instance(address.name()), self.index.shared_fingerprint(address.name()))
                });
                let fingerprint = self.index.fingerprint_of(address, *fingerprint);
                self.close(address, resource.as_ref(), fingerprint, had_steps);
            }
            self.index.approvals_mut().touch_names(resources.into_keys());
        }
    }

    fn close(&mut self, address: &Address, resource: Option<&Arc<Instance>>, fingerprint: u64, had_steps: bool) {
        let Some((tracked, made)) = self.objects.with_made_changes(address) else { return };
        let blocked = tracked.change.as_ref().filter(|change| change.action == Action::Blocked);
        let reason = blocked.and_then(|change| change.blocked);
        let debounce = &mut self.planning.debounce;
        if had_steps && reason == Some(Reason::DependencyNotReady) {
            debounce.touch(address.name(), self.now.time);
        }
        let is_blocked = tracked.change.is_none() || blocked.is_some();
        let same = match (&tracked.instance, resource) {
            (Some(planned), Some(now)) => {
                (planned.generation, &planned.uid, &planned.inputs) == (now.generation, &now.uid, &now.inputs)
            }
            _ => false,
        };
        let is_planned = same && !is_blocked && !tracked.awaits_plan() && !debounce.contains(address.name());
        if !is_planned || tracked.has_trouble() {
            return;
        }
        tracked.up_to_date = Some(fingerprint);
        tracked.failures = 0;
        tracked.last_failure = None;
        tracked.hold = None;
        tracked.drop_values(made);
        self.planning.memo.remove(address);
        if let Some(resource) = resource.filter(|resource| tracked.is_planned_as(resource)) {
            // Shares the instance of the index, which has the finalizer and the annotation.
            tracked.instance = Some(resource.clone());
            if let Some(known) = self.resources.get_mut(address.name()) {
                known.shared = resource.clone();
            }
        }
    }
}

/// The step that a step has completed: a wait ends the create or the update that has made its object, whose event was not
/// reported yet. `before` is the record when the step ended.
fn made_by(step: &Step, before: &Record) -> Step {
    let readiness = before.current.as_ref().and_then(|object| object.readiness);
    match readiness.filter(|_| step.operation == Operation::Wait) {
        Some(readiness) if readiness.is_new => {
            let replaces = readiness.deposed.is_some() || before.replacement_pending;
            Step { operation: Operation::Create, replaces, ..step.clone() }
        }
        Some(_) => Step { operation: Operation::Update, ..step.clone() },
        None => step.clone(),
    }
}

/// Plans that are computed while steps are running. The outcome of such a step is known only as planned, and the changes that
/// depend on it are planned when it has ended.
impl Reconciler {
    /// The objects whose running first create already results in the desired state of this plan: nothing that it was
    /// planned for has changed since it started, and nothing that it depends on changes with this plan. Such an object
    /// needs no further plan: otherwise, while a thousand objects arrive and are created, each would cause a plan of
    /// all of them. `nodes`: the steps of the plan, each with whether it is running.
    pub fn created_as_desired(&self, part: &PlanPart, nodes: &[(Step, bool)]) -> Vec<Address> {
        let busy: BTreeSet<&Address> = nodes.iter().map(|(step, _)| &step.address).collect();
        let Adoption { plan, config, .. } = &*part.adoption;
        let mut created = Vec::new();
        for (step, _) in nodes.iter().filter(|(_, is_running)| *is_running) {
            let address = &step.address;
            let is_triggered = config.instances.get(address).is_none_or(|instance| !instance.triggers.is_empty());
            if is_triggered || !self.is_first_create(step) || !self.has_desired_state_of(step) {
                continue;
            }
            let uses_changing = plan
                .dependencies_of(address)
                .iter()
                .any(|used| busy.contains(used) || plan.objects.get(used).is_some_and(|planned| planned.is_read));
            if !uses_changing {
                created.push(address.clone());
            }
        }
        created
    }

    fn is_first_create(&self, step: &Step) -> bool {
        step.operation == Operation::Create && !step.replaces && !self.index.records().has_objects(&step.address)
    }

    /// Whether the desired state is the one for which a running step has started.
    fn has_desired_state_of(&self, step: &Step) -> bool {
        if self.objects.get(&step.address).is_none_or(|tracked| tracked.in_flight) {
            return false;
        }
        let name = step.address.name();
        let present = (self.index.desired_digest(name), self.index.shared_fingerprint(name));
        let begun = self.index.records().started(&step.address).filter(|start| start.step == *step);
        begun.is_some_and(|start| (start.desired_digest, start.shared_fingerprint) == present)
    }

    /// Plans a component again when a step has ended that was running at planning: its outcome is known now.
    pub fn replan_component(&mut self, step: &Step) {
        let planned_around = self.objects.get_mut(&step.address).is_some_and(TrackedObject::end_in_flight);
        let generation = self.index.instance(step.address.name()).map(|instance| instance.generation);
        let planned = self.resources.get(step.address.name()).map(|followed| followed.shared.generation);
        if generation.is_some() && generation != planned {
            self.touch(step.address.name());
        }
        if !planned_around {
            return;
        }
        // The object may no longer exist and have no connections, so the plan determines the component.
        let adopted = self.planning.adopted.of(&step.address);
        for address in adopted.into_iter().flat_map(|adopted| &adopted.addresses) {
            self.planning.debounce.touch(address.name(), self.now.time);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(names: &[&str]) -> AdoptedPlan {
        let addresses: BTreeSet<Address> = names.iter().map(|name| Address::single(*name)).collect();
        AdoptedPlan { open: addresses.clone(), addresses, had_steps: true }
    }

    fn finished(plans: &mut AdoptedPlans) -> Vec<String> {
        let finished = plans.take_finished();
        finished
            .iter()
            .map(|plan| plan.addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "))
            .collect()
    }

    #[test]
    fn a_newer_plan_of_another_component_leaves_the_running_steps_of_the_older_one() {
        let mut plans = AdoptedPlans::default();
        plans.add(plan(&["a", "b"]));
        plans.add(plan(&["b"]));
        let older = plans.of(&Address::single("a")).map(|plan| (plan.addresses.len(), plan.open.len()));
        assert_eq!(older, Some((1, 1)), "the end of its step plans it again");
        plans.close(&Address::single("b"));
        assert_eq!(finished(&mut plans), ["b"]);
        plans.add(plan(&["a"]));
        assert!(finished(&mut plans).is_empty(), "nothing is left of the older plan");
        plans.close(&Address::single("a"));
        assert_eq!(finished(&mut plans), ["a"]);
        assert!(plans.is_empty());
    }

    #[test]
    fn a_plan_is_finished_when_a_newer_one_has_taken_its_last_open_step() {
        let mut plans = AdoptedPlans::default();
        plans.add(plan(&["a", "b"]));
        plans.close(&Address::single("a"));
        plans.add(plan(&["b"]));
        assert_eq!(finished(&mut plans), ["a"]);
        plans.add(AdoptedPlan { open: BTreeSet::new(), ..plan(&["c"]) });
        assert_eq!(finished(&mut plans), ["c"], "it never had a step");
    }
}
