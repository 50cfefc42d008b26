//! Following a plan while it is carried out.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tokio::time::Instant;

use super::planning::Part;
use super::tracked::{Begun, Hold};
use super::{Chore, NamespaceTask};
use crate::controller::retry;
use crate::controller::summarize::{Note, StepState, finished};
use crate::execute::{HookNote, Progress, ProgressKind};
use crate::load::Instance;
use crate::model::{Action, Address, Change, Diagnostic, Operation, Reason, Severity, Step};
use crate::plan::Held;
use crate::store::secrets::Patience;

/// A plan that is being carried out.
pub(super) struct Adopted {
    pub(super) addresses: BTreeSet<Address>,
    open: BTreeSet<Step>,
    /// What it did may be what others wait for.
    had_steps: bool,
}

impl NamespaceTask {
    /// Remembers an adopted plan, and says of every object in it how it stands.
    pub(super) fn follow(&mut self, part: Part, nodes: Vec<(Step, bool)>, now: Instant) {
        self.adopted.retain(|adopted| adopted.addresses.is_disjoint(&part.addresses));
        let open: BTreeSet<Step> = nodes.iter().map(|(step, _)| step.clone()).collect();
        let as_wanted = self.created_as_wanted(&part, &nodes);
        let mut by_address: BTreeMap<Address, Vec<(Step, bool)>> = BTreeMap::new();
        for (step, is_running) in nodes {
            by_address.entry(step.address.clone()).or_default().push((step, is_running));
        }
        let mut changes: BTreeMap<Address, Vec<Change>> = BTreeMap::new();
        for change in part.plan.changes.iter().cloned() {
            changes.entry(change.address.clone()).or_default().push(change);
        }
        for address in &part.plan.read {
            match part.plan.gone.contains(address) {
                true => self.missing.gone(address, now),
                false => self.missing.there(address),
            }
        }
        if part.plan.read.iter().any(Address::is_data) {
            self.shared.index().touch_settings();
        }
        for address in &part.addresses {
            let own = changes.remove(address).unwrap_or_default();
            let steps = by_address.remove(address).unwrap_or_default();
            self.follow_object(&part, address, own, steps, now);
        }
        for address in &as_wanted {
            self.tracked.entry(address.clone()).or_default().is_done_by_its_steps();
        }
        for name in &part.names {
            self.follow_resource(name, &part.config);
            self.release_if_empty(name);
        }
        self.warn(&part);
        let had_steps = !open.is_empty();
        self.adopted.push(Adopted { addresses: part.addresses, open, had_steps });
        self.close_adopted();
    }

    fn follow_object(
        &mut self,
        part: &Part,
        address: &Address,
        changes: Vec<Change>,
        nodes: Vec<(Step, bool)>,
        now: Instant,
    ) {
        let random = self.context.engine.random.clone();
        let tracked = self.tracked.entry(address.clone()).or_default();
        let (leftovers, current): (Vec<_>, Vec<_>) = changes.into_iter().partition(|change| change.deposed.is_some());
        tracked.instance = part.config.instances.get(address).cloned();
        tracked.wish = part.wish(&address.name);
        tracked.change = current.into_iter().next();
        tracked.leftovers = leftovers;
        tracked.lifecycle = part.plan.lifecycle.get(address).cloned();
        tracked.wants = part.plan.wants.get(address).cloned().unwrap_or_default();
        tracked.expect(nodes);
        tracked.settled = None;
        tracked.retry_at = None;
        if let Some(instance) = &tracked.instance {
            tracked.requested = instance.reconcile_requested.clone();
        }
        if tracked.read_again(part.plan.read.contains(address), now, random.number())
            && let Some(at) = tracked.read_at
        {
            self.timers.insert((at, address.clone()));
        }
        let blocked = tracked.change.as_ref().filter(|change| change.action == Action::Blocked);
        let reason = blocked.map(|change| change.blocked.unwrap_or(Reason::Waiting));
        let drift = tracked.change.as_ref().and_then(|change| change.drift.clone());
        let at_rest = reason.is_none() && tracked.steps.is_empty();
        if part.plan.read.contains(address) {
            // What was found must be found again by every plan, until it is set right.
            tracked.unread = !at_rest || drift.is_some();
        }
        if at_rest {
            tracked.failures = 0;
            tracked.settled = part.fingerprints.get(address).copied();
            self.memo.forget(address);
        }
        if let Some(at) = reason.and_then(|reason| self.again_at(address, reason, now)) {
            self.tracked.entry(address.clone()).or_default().retry_at = Some(at);
            self.timers.insert((at, address.clone()));
        }
        if let Some(drift) = drift.filter(|_| !at_rest) {
            self.tell_drift(address, &drift, now);
        }
        self.keep_watch(address);
        self.changed.insert(address.name.clone());
        self.tidy(address);
    }

    /// When an object that could not be planned is planned again though nothing changes.
    fn again_at(&mut self, address: &Address, reason: Reason, now: Instant) -> Option<Instant> {
        match reason {
            Reason::CustomResourceDefinitionDeleted | Reason::CustomResourceDefinitionUnknown => {
                Some(Self::crd_again(now))
            }
            _ if retry::may_pass(reason) => {
                let draw = self.context.engine.random.number();
                let tracked = self.tracked.entry(address.clone()).or_default();
                // One that is held has its own time already.
                if let Some(hold) = &tracked.hold {
                    return hold.until;
                }
                tracked.failures += 1;
                Some(now + retry::delay_after(reason, tracked.failures, draw))
            }
            _ => self.tracked.get(address).and_then(|tracked| tracked.hold.as_ref()).and_then(|hold| hold.until),
        }
    }

    /// Takes in what happened to a step.
    pub(super) fn take_progress(&mut self, progress: Progress) {
        let Progress { step, kind, .. } = progress;
        let now = Instant::now();
        match kind {
            ProgressKind::Started => self.step_started(&step, now),
            ProgressKind::Hook(note) => self.tell_hook(&step, note),
            ProgressKind::Warning(warning) => self.tell_advice(&step.address, &[&warning]),
            ProgressKind::Delayed(why) => {
                self.set_state(&step, StepState::Delayed { reason: why.reason, message: why.message() });
            }
            ProgressKind::Finished => self.step_ended(&step, StepState::Finished, now),
            ProgressKind::Failed { reason, message, retryable } => {
                self.step_ended(&step, StepState::Failed { reason, message, retryable }, now);
            }
            ProgressKind::Withdrawn => self.step_withdrawn(&step, now),
            ProgressKind::Skipped { because_of } => self.set_state(&step, StepState::Skipped(because_of)),
        }
        let address = &step.address;
        self.changed.insert(address.name.clone());
        let open = self.tracked.get(address).is_some_and(|tracked| tracked.is_open());
        if !open {
            self.tidy(address);
        }
        if self.tracked.get(address).is_none_or(|tracked| tracked.is_over(&step)) {
            for adopted in &mut self.adopted {
                adopted.open.remove(&step);
            }
            self.close_adopted();
        }
    }

    fn step_started(&mut self, step: &Step, now: Instant) {
        let base = self.run.records().get(&step.address).map(|stored| stored.version);
        let mut index = self.shared.index();
        index.begin(&step.address, base);
        let situation = index.shared_fingerprint(&step.address.name);
        drop(index);
        self.context.metrics.step_started();
        tracing::debug!(namespace = &**self.shared.name(), step = step.id(), "started");
        let tracked = self.tracked.entry(step.address.clone()).or_default();
        tracked.started.insert(step.clone(), Begun { at: now, wish: tracked.wish, situation });
        self.set_state(step, StepState::Running);
    }

    /// A step has seen that a newer wish is known, and has done nothing. That wish is planned next.
    fn step_withdrawn(&mut self, step: &Step, now: Instant) {
        let address = &step.address;
        let own = self.run.records().get(address).cloned();
        if !self.run.is_running(address) {
            self.shared.index().end(address, own.as_ref());
        }
        if let Some(tracked) = self.tracked.get_mut(address) {
            tracked.started.remove(step);
        }
        self.context.metrics.step_withdrawn();
        self.set_state(step, StepState::Waiting);
        self.bring_in(address);
        self.settle.touch(&address.name, now);
        self.plan_beyond(step, now);
    }

    fn step_ended(&mut self, step: &Step, state: StepState, now: Instant) {
        let address = &step.address;
        let before = self.shared.index().records().get(address).map(|stored| stored.record.uid.clone());
        let own = self.run.records().get(address).cloned();
        if !self.run.is_running(address) {
            self.shared.index().end(address, own.as_ref());
        }
        let failed = matches!(state, StepState::Failed { .. });
        let tracked = self.tracked.entry(address.clone()).or_default();
        let begun = tracked.started.remove(step);
        let began = begun.map_or(now, |begun| begun.at);
        let type_name = tracked.change.as_ref().map(|change| change.type_name.clone()).unwrap_or_default();
        self.context.metrics.step_ended(step.operation, &type_name, failed, now - began);
        if let StepState::Failed { reason, message, retryable } = &state {
            let (reason, message) = (*reason, message.clone());
            // The status and an event tell of it, and the log does with them.
            tracing::debug!(
                namespace = &**self.shared.name(), step = step.id(), %reason, retryable, "failed: {message}"
            );
            self.hold_failed(address, Held { reason, message }, *retryable, begun, now);
        } else {
            tracing::debug!(namespace = &**self.shared.name(), step = step.id(), took = ?(now - began), "finished");
            let adopted = before.is_some() && own.as_ref().is_some_and(|own| before.as_ref() != Some(&own.record.uid));
            let id = own.as_ref().and_then(|own| own.record.current.as_ref()?.id().map(str::to_owned));
            self.tell_finished(step, adopted, id.as_deref());
        }
        let is_made = !failed && !step.operation.removes();
        if is_made && step.operation == Operation::Create {
            self.missing.made_anew(address, now);
        }
        self.set_state(step, state);
        if let Some(tracked) = self.tracked.get_mut(address).filter(|tracked| is_made && !tracked.is_open()) {
            tracked.unread = false;
        }
        self.bring_in(address);
        self.keep_watch(address);
        self.plan_beyond(step, now);
    }

    fn set_state(&mut self, step: &Step, state: StepState) {
        self.tracked.entry(step.address.clone()).or_default().set(step, state);
    }

    /// Leaves a failed object alone for a while, or until something changes; and reads its record once more, which
    /// another process may have written. `begun`: the step that failed. What has changed since it began deserves an
    /// attempt of its own.
    pub(super) fn hold_failed(
        &mut self,
        address: &Address,
        held: Held,
        retryable: bool,
        begun: Option<Begun>,
        now: Instant,
    ) {
        // What was planned may be why.
        self.memo.forget(address);
        let (fingerprint, changed) = {
            let index = self.shared.index();
            let present = index.shared_fingerprint(&address.name);
            let wish = index.wish(&address.name);
            let changed = begun.is_some_and(|begun| (begun.wish, begun.situation) != (wish, present));
            // A hold ends when the fingerprint is another one.
            (index.fingerprint_of(address, if changed { !present } else { present }), changed)
        };
        if changed {
            self.settle.touch(&address.name, now);
        }
        let draw = self.context.engine.random.number();
        let tracked = self.tracked.entry(address.clone()).or_default();
        tracked.failures += 1;
        let until = retryable.then(|| now + retry::delay_after(held.reason, tracked.failures, draw));
        tracked.hold = Some(Hold { held, until, fingerprint });
        tracked.retry_at = until;
        self.timers.extend(until.map(|at| (at, address.clone())));
        if address.is_data() {
            return;
        }
        let (context, shared, address) = (self.context.clone(), self.shared.clone(), address.clone());
        self.chores.spawn(async move {
            let secrets = context.journal.secrets();
            if let Ok(Some(Ok(crate::store::secrets::Decoded::Record(stored)))) =
                secrets.get(shared.name(), &address, Patience::SHORT).await
            {
                context.world.apply(shared.name(), crate::controller::index::Event::RecordApplied(stored));
            }
            Chore::Done
        });
    }

    fn tell_hook(&mut self, step: &Step, told: HookNote) {
        let (reason, state) = if told.failed { ("HookFailed", "failed") } else { ("HookSucceeded", "ran") };
        let more = if told.message.is_empty() { String::new() } else { format!(": {}", told.message) };
        let note = format!("the hook `{}` {state}{more}", told.hook);
        self.tell(&step.address, Note { warning: told.failed, reason, action: "Hook", note });
    }

    fn tell_finished(&mut self, step: &Step, adopted: bool, id: Option<&str>) {
        let id = id.filter(|_| !step.operation.removes());
        let Some(tracked) = self.tracked.get(&step.address) else { return };
        let mut changes = tracked.change.iter().chain(&tracked.leftovers);
        let because = changes.find(|change| change.deposed == step.deposed).and_then(|c| c.because.as_deref());
        if let Some(note) = finished(step, adopted, id, because) {
            self.tell(&step.address, note);
        }
    }

    /// Warnings of a plan become events of their objects, once: the next plan says the same again.
    fn warn(&mut self, part: &Part) {
        let mut warnings: BTreeMap<&Address, Vec<&Diagnostic>> = BTreeMap::new();
        for diagnostic in part.plan.diagnostics.iter().filter(|diagnostic| diagnostic.severity == Severity::Warning) {
            if let Some(address) = &diagnostic.address {
                warnings.entry(address).or_default().push(diagnostic);
            }
        }
        let of_families: Vec<Address> = part.names.iter().map(|name| Address::single(name.clone())).collect();
        for address in part.addresses.iter().chain(of_families.iter().filter(|a| !part.addresses.contains(a))) {
            let own = warnings.remove(address).unwrap_or_default();
            let (advice, own): (Vec<_>, Vec<_>) =
                own.into_iter().partition(|one| one.reason == Reason::ProviderWarning);
            self.tell_advice(address, &advice);
            let texts = own.iter().map(|diagnostic| diagnostic.message()).collect();
            let warned = match self.tracked.get_mut(address) {
                Some(tracked) => &mut tracked.warned,
                // What is told of a family as a whole.
                None => match self.followed.get_mut(&address.name) {
                    Some(followed) => &mut followed.warned,
                    None => continue,
                },
            };
            let told = std::mem::replace(warned, texts);
            for diagnostic in own.into_iter().filter(|diagnostic| !told.contains(&diagnostic.message())) {
                let (reason, note) = (diagnostic.reason.as_str(), diagnostic.message());
                // Somebody wished it to be suspended.
                let warning = diagnostic.reason != Reason::Suspended;
                self.tell(address, Note { warning, reason, action: "Plan", note });
            }
        }
    }

    /// What a provider warns of is told once for each generation of the Resource.
    pub(super) fn tell_advice(&mut self, address: &Address, advice: &[&Diagnostic]) {
        let Some(tracked) = self.tracked.get_mut(address).filter(|_| !advice.is_empty()) else { return };
        let generation = tracked.instance.as_ref().map_or(0, |instance| instance.generation);
        if tracked.advised.0 != generation {
            tracked.advised = (generation, BTreeSet::new());
        }
        let news: Vec<String> =
            advice.iter().map(|one| one.message()).filter(|text| tracked.advised.1.insert(text.clone())).collect();
        for note in news {
            let reason = Reason::ProviderWarning.as_str();
            self.tell(address, Note { warning: true, reason, action: "Plan", note });
        }
    }

    /// Vouches for the objects of plans that are carried out: they are as they should be, as long as nothing that they
    /// depend on changes. What waited for what such a plan did is planned again.
    fn close_adopted(&mut self) {
        let (over, open): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.adopted).into_iter().partition(|adopted| adopted.open.is_empty());
        self.adopted = open;
        let (shared, now) = (self.shared.clone(), Instant::now());
        for Adopted { addresses, had_steps, .. } in over {
            let index = shared.index();
            let mut resources: BTreeMap<&Arc<str>, (Option<Arc<Instance>>, u64)> = BTreeMap::new();
            for address in &addresses {
                let Some(tracked) = self.tracked.get_mut(address) else { continue };
                let blocked = tracked.change.as_ref().filter(|change| change.action == Action::Blocked);
                let reason = blocked.and_then(|change| change.blocked);
                if had_steps && reason == Some(Reason::DependencyNotReady) {
                    self.settle.touch(&address.name, now);
                }
                let is_blocked = tracked.change.is_none() || blocked.is_some();
                let (resource, fingerprint) = resources
                    .entry(&address.name)
                    .or_insert_with(|| (index.instance(&address.name), index.shared_fingerprint(&address.name)));
                let same = match (&tracked.instance, &*resource) {
                    (Some(planned), Some(now)) => {
                        (planned.generation, &planned.uid, &planned.inputs) == (now.generation, &now.uid, &now.inputs)
                    }
                    _ => false,
                };
                if same && !is_blocked && !tracked.has_trouble() && !self.settle.contains(&address.name) {
                    tracked.settled = Some(index.fingerprint_of(address, *fingerprint));
                    self.memo.forget(address);
                    tracked.failures = 0;
                    tracked.hold = None;
                    tracked.forget_values();
                    if let Some(resource) = resource.as_ref().filter(|resource| tracked.was_planned_as(resource)) {
                        // Kept once, and not as it was before our marks were put on.
                        tracked.instance = Some(resource.clone());
                        if let Some(followed) = self.followed.get_mut(&address.name) {
                            followed.shared = resource.clone();
                        }
                    }
                }
            }
        }
    }
}
