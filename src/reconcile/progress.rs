//! Following a plan while it is carried out.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::plan_request::Part;
use super::planning::{Adopted, CRD_AGAIN};
use super::summarize::{Note, StepState, finished};
use super::time::Time;
use super::tracked::{Begun, Hold, Tracked};
use super::{About, Command, Reconciler, retry};
use crate::execute::{HookNote, ProgressKind};
use crate::load::Instance;
use crate::model::{Action, Address, Change, Diagnostic, Operation, Reason, Severity, Step};
use crate::plan::Held;

impl Reconciler {
    /// Remembers an adopted plan, and how each object of it stands.
    pub(super) fn follow(&mut self, part: &Part, nodes: Vec<(Step, bool)>) {
        self.planning.adopted.retain(|adopted| adopted.addresses.is_disjoint(&part.addresses));
        let open: BTreeSet<Step> = nodes.iter().map(|(step, _)| step.clone()).collect();
        let as_wanted = self.created_as_wanted(part, &nodes);
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
                true => self.objects.missing.gone(address, self.now.time),
                false => self.objects.missing.there(address),
            }
        }
        if part.plan.read.iter().any(Address::is_data) {
            self.index.touch_settings();
        }
        for address in &part.addresses {
            let own = changes.remove(address).unwrap_or_default();
            let steps = by_address.remove(address).unwrap_or_default();
            self.follow_object(part, address, own, steps);
        }
        for address in &as_wanted {
            self.objects.entry(address).is_done_by_its_steps();
        }
        for name in &part.names {
            self.follow_resource(name, &part.config);
            self.release_if_empty(name);
        }
        self.warn(part);
        let had_steps = !open.is_empty();
        self.planning.adopted.push(Adopted { addresses: part.addresses.clone(), open, had_steps });
        self.close_adopted();
    }

    fn follow_object(&mut self, part: &Part, address: &Address, changes: Vec<Change>, nodes: Vec<(Step, bool)>) {
        let was_read = part.plan.read.contains(address);
        let tracked = self.objects.entry(address);
        let requested = part.config.instances.get(address).map(|instance| instance.reconcile_requested.clone());
        // A reading that was asked for and failed is still to be made.
        let is_unread = !was_read && requested.as_ref().is_some_and(|asked| *asked != tracked.requested);
        let is_recorded = self.schedule.records().get(address).is_some_and(|stored| stored.record.current.is_some());
        tracked.unread |= is_unread && is_recorded;
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
        tracked.requested = requested.unwrap_or_default();
        let blocked =
            |change: &Change| (change.action == Action::Blocked).then(|| change.blocked.unwrap_or(Reason::Waiting));
        let reason = tracked.change.as_ref().and_then(blocked);
        // Of what a replacement gives up as well: it is destroyed once that is possible.
        let held = tracked.change.as_ref().and_then(|change| change.hold_destroy);
        let given_up: Vec<Reason> = held.into_iter().chain(tracked.leftovers.iter().filter_map(blocked)).collect();
        let drift = tracked.change.as_ref().and_then(|change| change.drift.clone());
        let at_rest = reason.is_none() && tracked.steps.is_empty();
        if at_rest {
            tracked.failures = 0;
            tracked.settled = part.fingerprints.get(address).copied();
            self.planning.memo.forget(address);
        }
        self.plan_reading(address, was_read);
        if was_read {
            // What was found must be found again by every plan, until it is set right.
            self.objects.entry(address).unread = !at_rest || drift.is_some();
        }
        let again = reason.into_iter().chain(given_up).find_map(|reason| self.again_at(address, reason));
        if let Some(at) = again {
            self.objects.retry_at(address, at);
        }
        if let Some(drift) = drift.filter(|_| !at_rest) {
            self.report_drift(address, &drift);
        }
        self.objects.watch(address);
        self.resources.changed.insert(address.name.clone());
        self.tidy(address);
    }

    /// When an object that could not be planned is planned again though nothing changes.
    fn again_at(&mut self, address: &Address, reason: Reason) -> Option<Time> {
        let now = self.now.time;
        let hold = self.objects.get(address).and_then(|tracked| tracked.hold.as_ref());
        match reason {
            Reason::CustomResourceDefinitionDeleted | Reason::CustomResourceDefinitionUnknown => Some(now + CRD_AGAIN),
            // One that is held has its own time already.
            _ if hold.is_some() => hold?.until,
            _ if retry::may_pass(reason) => Some(now + self.wait_after_failure(address, reason)),
            _ => None,
        }
    }

    /// Takes in what happened to a step.
    pub(super) fn take_progress(&mut self, step: &Step, kind: ProgressKind) {
        match kind {
            ProgressKind::Started => self.step_started(step),
            ProgressKind::Hook(note) => self.report_hook(step, note),
            ProgressKind::Warning(warning) => self.advise(&step.address, &[&warning]),
            ProgressKind::Delayed(why) => {
                self.set_state(step, StepState::Delayed { reason: why.reason, message: why.message() });
            }
            ProgressKind::Finished => self.step_ended(step, StepState::Finished),
            ProgressKind::Failed { reason, message, retryable } => {
                self.step_ended(step, StepState::Failed { reason, message, retryable });
            }
            ProgressKind::Withdrawn | ProgressKind::LetGo => self.step_withdrawn(step),
            ProgressKind::Skipped { because_of } => self.set_state(step, StepState::Skipped(because_of)),
        }
        let address = &step.address;
        self.resources.changed.insert(address.name.clone());
        let tracked = self.objects.get(address);
        let is_over = tracked.is_none_or(|tracked| tracked.is_over(step));
        if !tracked.is_some_and(Tracked::is_open) {
            self.tidy(address);
        }
        if is_over {
            for adopted in &mut self.planning.adopted {
                adopted.open.remove(step);
            }
            self.close_adopted();
        }
    }

    fn step_started(&mut self, step: &Step) {
        let address = &step.address;
        let base = self.schedule.records().get(address).map(|stored| stored.version);
        self.index.begin(address, base);
        let situation = self.index.shared_fingerprint(&address.name);
        tracing::debug!(namespace = &**self.namespace(), step = step.id(), "started");
        let tracked = self.objects.entry(address);
        let begun = Begun { at: self.now.time, wish: tracked.wish, situation };
        tracked.started.insert(step.clone(), begun);
        self.set_state(step, StepState::Running);
    }

    /// What the schedule knows of the record of an object now counts, unless another step of it runs.
    fn end_in_index(&mut self, address: &Address) {
        if !self.schedule.is_running(address) {
            self.index.end(address, self.schedule.records().get(address));
        }
    }

    /// A step has seen that a newer wish is known, and has done nothing, or is not to wait any longer until its object is
    /// ready. What is known now is planned next.
    fn step_withdrawn(&mut self, step: &Step) {
        let address = &step.address;
        self.end_in_index(address);
        if let Some(tracked) = self.objects.get_mut(address) {
            tracked.started.remove(step);
        }
        self.set_state(step, StepState::Waiting);
        self.bring_in(address);
        self.touch(&address.name);
        self.plan_what_waited(step);
    }

    fn step_ended(&mut self, step: &Step, state: StepState) {
        let (address, now) = (&step.address, self.now.time);
        let before = self.index.records().get(address).map(|stored| stored.record.uid.clone());
        let own = self.schedule.records().get(address).cloned();
        self.end_in_index(address);
        let failed = matches!(state, StepState::Failed { .. });
        let begun = self.objects.entry(address).started.remove(step);
        if let StepState::Failed { reason, message, retryable } = &state {
            let (reason, message) = (*reason, message.clone());
            // The status and an event report it, and the log does with them.
            tracing::debug!(
                namespace = &**self.namespace(), step = step.id(), %reason, retryable, "failed: {message}"
            );
            self.hold_failed(address, Held { reason, message }, *retryable, begun);
        } else {
            let took = now - begun.map_or(now, |begun| begun.at);
            tracing::debug!(namespace = &**self.namespace(), step = step.id(), ?took, "finished");
            let adopted = before.is_some() && own.as_ref().is_some_and(|own| before.as_ref() != Some(&own.record.uid));
            let id = own.as_ref().and_then(|own| own.record.current.as_ref()?.id().map(str::to_owned));
            self.report_finished(step, adopted, id.as_deref());
        }
        let is_made = !failed && !step.operation.removes();
        if is_made && step.operation == Operation::Create {
            self.objects.missing.recreated(address, now);
        }
        self.set_state(step, state);
        if let Some(tracked) = self.objects.get_mut(address).filter(|tracked| is_made && !tracked.is_open()) {
            tracked.unread = false;
        }
        self.bring_in(address);
        self.objects.watch(address);
        self.plan_what_waited(step);
    }

    fn set_state(&mut self, step: &Step, state: StepState) {
        self.objects.entry(&step.address).set(step, state);
    }

    /// Leaves a failed object alone for a while, or until something changes; and reads its record once more, which
    /// another process may have written. `begun`: the step that failed. What has changed since it began deserves an
    /// attempt of its own.
    pub(super) fn hold_failed(&mut self, address: &Address, held: Held, retryable: bool, begun: Option<Begun>) {
        // What was planned may be why.
        self.planning.memo.forget(address);
        let present = self.index.shared_fingerprint(&address.name);
        let wish = self.index.wish(&address.name);
        let changed = begun.is_some_and(|begun| (begun.wish, begun.situation) != (wish, present));
        // A hold ends when the fingerprint is another one.
        let fingerprint = self.index.fingerprint_of(address, if changed { !present } else { present });
        if changed {
            self.touch(&address.name);
        }
        let wait = self.wait_after_failure(address, held.reason);
        let until = retryable.then(|| self.now.time + wait);
        let tracked = self.objects.entry(address);
        tracked.hold = Some(Hold { held, until, fingerprint });
        tracked.retry_at = until;
        until.into_iter().for_each(|at| self.objects.wake_at(address, at));
        if !address.is_data() {
            self.commands.push(Command::ReadRecord(address.clone()));
        }
    }

    fn report_hook(&mut self, step: &Step, hook: HookNote) {
        let (reason, state) = if hook.failed { ("HookFailed", "failed") } else { ("HookSucceeded", "ran") };
        let more = if hook.message.is_empty() { String::new() } else { format!(": {}", hook.message) };
        let note = format!("the hook `{}` {state}{more}", hook.hook);
        self.report_of(&step.address, Note { warning: hook.failed, reason, action: "Hook", note });
    }

    fn report_finished(&mut self, step: &Step, adopted: bool, id: Option<&str>) {
        let id = id.filter(|_| !step.operation.removes());
        let Some(tracked) = self.objects.get(&step.address) else { return };
        let mut changes = tracked.change.iter().chain(&tracked.leftovers);
        let because = changes.find(|change| change.deposed == step.deposed).and_then(|c| c.because.as_deref());
        if let Some(note) = finished(step, adopted, id, because) {
            self.report_of(&step.address, note);
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
            self.advise(address, &advice);
            let texts = own.iter().map(|diagnostic| diagnostic.message()).collect();
            let warned = match self.objects.get_mut(address) {
                Some(tracked) => &mut tracked.warned,
                // What concerns a family as a whole.
                None => match self.resources.get_mut(&address.name) {
                    Some(resource) => &mut resource.warned,
                    None => continue,
                },
            };
            let known = std::mem::replace(warned, texts);
            for diagnostic in own.into_iter().filter(|diagnostic| !known.contains(&diagnostic.message())) {
                let (reason, note) = (diagnostic.reason.as_str(), diagnostic.message());
                // The user asked for it to be suspended.
                let warning = diagnostic.reason != Reason::Suspended;
                self.report_of(address, Note { warning, reason, action: "Plan", note });
            }
        }
    }

    /// What a provider warns of is reported once for each generation of the Resource.
    pub(super) fn advise(&mut self, address: &Address, advice: &[&Diagnostic]) {
        let Some(tracked) = self.objects.get_mut(address).filter(|_| !advice.is_empty()) else { return };
        let generation = tracked.instance.as_ref().map_or(0, |instance| instance.generation);
        if tracked.advised.0 != generation {
            tracked.advised = (generation, BTreeSet::new());
        }
        let news: Vec<String> =
            advice.iter().map(|one| one.message()).filter(|text| tracked.advised.1.insert(text.clone())).collect();
        for note in news {
            let reason = Reason::ProviderWarning.as_str();
            self.report_of(address, Note { warning: true, reason, action: "Plan", note });
        }
    }

    /// Reports something about an object as an event of its Resource.
    pub(super) fn report_of(&mut self, address: &Address, note: Note) {
        if let Some((resource, note)) = self.resources.note(address, note) {
            self.report(About::Resource(resource), note);
        }
    }

    /// Vouches for the objects of plans that are carried out: they are as they should be, as long as nothing that they
    /// depend on changes. What waited for what such a plan did is planned again.
    fn close_adopted(&mut self) {
        let over: Vec<Adopted> = self.planning.adopted.extract_if(.., |adopted| adopted.open.is_empty()).collect();
        for Adopted { addresses, had_steps, .. } in over {
            let mut resources: BTreeMap<&Arc<str>, (Option<Arc<Instance>>, u64)> = BTreeMap::new();
            for address in &addresses {
                let (resource, fingerprint) = resources.entry(&address.name).or_insert_with(|| {
                    (self.index.instance(&address.name), self.index.shared_fingerprint(&address.name))
                });
                let fingerprint = self.index.fingerprint_of(address, *fingerprint);
                self.close(address, resource.as_ref(), fingerprint, had_steps);
            }
        }
    }

    fn close(&mut self, address: &Address, resource: Option<&Arc<Instance>>, fingerprint: u64, had_steps: bool) {
        let Some(tracked) = self.objects.get_mut(address) else { return };
        let blocked = tracked.change.as_ref().filter(|change| change.action == Action::Blocked);
        let reason = blocked.and_then(|change| change.blocked);
        let debounce = &mut self.planning.debounce;
        if had_steps && reason == Some(Reason::DependencyNotReady) {
            debounce.touch(&address.name, self.now.time);
        }
        let is_blocked = tracked.change.is_none() || blocked.is_some();
        let same = match (&tracked.instance, resource) {
            (Some(planned), Some(now)) => {
                (planned.generation, &planned.uid, &planned.inputs) == (now.generation, &now.uid, &now.inputs)
            }
            _ => false,
        };
        if !same || is_blocked || tracked.has_trouble() || debounce.contains(&address.name) {
            return;
        }
        tracked.settled = Some(fingerprint);
        tracked.failures = 0;
        tracked.hold = None;
        tracked.forget_values();
        self.planning.memo.forget(address);
        if let Some(resource) = resource.filter(|resource| tracked.was_planned_as(resource)) {
            // Kept once, and not as it was before our marks were put on.
            tracked.instance = Some(resource.clone());
            if let Some(known) = self.resources.get_mut(&address.name) {
                known.shared = resource.clone();
            }
        }
    }
}
