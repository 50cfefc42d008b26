//! Tracks each Resource, with one or many instances, and writes one status for all of them, not one for each step of
//! each instance.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::index::PublishedStatus;
use super::objects::{TrackedObject, blocked_for};
use super::summarize::{
    FamilyInput, InstanceCount, Member, Note, ObjectInput, ObjectState, Summary, summarize, summarize_family,
    waits_for_others,
};
use super::time::Time;
use super::{Command, Reconciler, ReportSubject, StatusTarget, StatusUpdate, Urgency};
use api::conditions::ConditionType;
use api::{ModuleStatus, Status};
use engine::load::{Config, Expansion, Instance, InstanceKeys, Interner};
use model::{Action, Address, Name, Reason, Step, Uid, in_family};

/// A step or a wait that takes longer than this gets an interim status.
const INTERIM_DELAY: Duration = Duration::from_secs(1);

/// The minimum interval between interim statuses of a family: with a thousand instances some are always in progress,
/// and etcd and every watcher receive each status.
const FAMILY_INTERVAL: Duration = Duration::from_secs(5);

/// How many events for instances of one family are reported before it is idle. The others are only counted.
const MAX_REPORTED: usize = 20;

/// The interner of condition strings is reset at this size.
const MAX_STRINGS: usize = 1_000;

/// For how many instances the status lists the steps that they wait for.
const WAITS_SHOWN: usize = 20;

#[derive(Debug, Default)]
pub struct Resources {
    tracked: BTreeMap<Name, Box<TrackedResource>>,
    /// Interned condition strings, which most Resources share.
    strings: Interner,
    /// Resources whose status may have changed in this turn.
    pub changed: BTreeSet<Name>,
    /// UIDs of Resources whose finalizer and annotation were, or are being, removed: one request each.
    pub released: BTreeSet<Uid>,
    /// Names of Resources whose finalizer and annotation are being added: one request each.
    pub claiming: BTreeSet<Name>,
    counted: BTreeMap<(ObjectState, Reason), usize>,
}

impl Resources {
    pub fn get(&self, name: &str) -> Option<&TrackedResource> {
        self.tracked.get(name).map(AsRef::as_ref)
    }

    pub fn get_mut(&mut self, name: &str) -> Option<&mut TrackedResource> {
        self.tracked.get_mut(name).map(AsMut::as_mut)
    }

    pub fn count(&self) -> BTreeMap<(ObjectState, Reason), usize> {
        self.counted.clone()
    }

    fn state_changed(&mut self, from: Option<(ObjectState, Reason)>, to: Option<(ObjectState, Reason)>) {
        if let Some(state) = from
            && let Some(count) = self.counted.get_mut(&state)
        {
            *count = count.saturating_sub(1);
            if *count == 0 {
                self.counted.remove(&state);
            }
        }
        if let Some(state) = to {
            *self.counted.entry(state).or_default() += 1;
        }
    }

    /// The event for the Resource of an object. `None` if the family has reported enough events since it was last idle.
    pub fn note(&mut self, address: &Address, mut note: Note) -> Option<(Arc<Instance>, Note)> {
        let followed = self.tracked.get_mut(address.name())?;
        if !address.is_single() {
            if followed.reported >= MAX_REPORTED {
                *followed.unreported.entry((note.reason, note.action)).or_default() += 1;
                return None;
            }
            followed.reported += 1;
            note.note = format!("{address}: {}", note.note);
        }
        Some((followed.shared.clone(), note))
    }

    fn published(&mut self, status: &Status) -> PublishedStatus {
        // Frequent strings are interned again soon.
        if self.strings.len() > MAX_STRINGS {
            self.strings = Interner::default();
        }
        PublishedStatus::of(status, &mut self.strings)
    }
}

#[derive(Debug)]
pub struct TrackedResource {
    /// The Resource as of the last plan, with the spec that all instances share.
    pub shared: Arc<Instance>,
    extent: InstanceCount,
    /// When to write an interim status.
    publish_at: Option<Time>,
    /// When the last interim status was written.
    published_at: Option<Time>,
    /// The state that the gauge counts.
    state: Option<(ObjectState, Reason)>,
    /// Warnings of the last plan that concern no single instance.
    pub warnings: BTreeSet<String>,
    /// Events of instances that were reported, and not reported, since the Resource was last idle.
    reported: usize,
    unreported: BTreeMap<(&'static str, &'static str), usize>,
}

impl TrackedResource {
    fn new(shared: Arc<Instance>, extent: InstanceCount) -> Self {
        Self {
            shared,
            extent,
            publish_at: None,
            published_at: None,
            state: None,
            warnings: BTreeSet::new(),
            reported: 0,
            unreported: BTreeMap::new(),
        }
    }

    fn has_keys(&self) -> bool {
        let repeats = self.shared.repetition.as_ref().is_some_and(|repetition| repetition.repeat.is_some());
        repeats || is_module(&self.shared)
    }
}

fn extent(config: &Config, shared: &Instance) -> InstanceCount {
    if is_module(shared) {
        return extent_of_module(config, shared.address.name());
    }
    let Some(family) = config.families.get(&shared.address.stem) else { return InstanceCount::Known(1) };
    match &family.expansion {
        _ if !shared.is_desired() => InstanceCount::Known(0),
        Expansion::Known(InstanceKeys::Disabled) => InstanceCount::Disabled,
        Expansion::Known(InstanceKeys::One) => InstanceCount::Known(1),
        Expansion::Known(InstanceKeys::Count(count)) => InstanceCount::Known(*count),
        Expansion::Known(InstanceKeys::Keys(keys)) => InstanceCount::Known(keys.len() as u64),
        Expansion::Pending | Expansion::Failed(_) => InstanceCount::Unknown,
    }
}

/// Whether it has the objects of a configuration.
fn is_module(shared: &Instance) -> bool {
    shared.program.is_some() || shared.address.is_module()
}

/// The number of all objects of a Module, unless the instances of some block or call are not known.
fn extent_of_module(config: &Config, name: &Name) -> InstanceCount {
    let mut families = config.families.values().filter(|family| family.shared.address.name() == name);
    match families.any(|family| !matches!(family.expansion, Expansion::Known(_))) {
        true => InstanceCount::Unknown,
        false => {
            InstanceCount::Known(in_family(&config.instances, name).filter(|(_, one)| one.is_desired()).count() as u64)
        }
    }
}

/// Whether the object usually finishes within a second: it has running steps, or it waits for objects of the same
/// request.
fn is_in_progress(tracked: &TrackedObject) -> bool {
    tracked.is_open()
        || tracked.awaits_plan()
        || tracked
            .change
            .as_deref()
            .and_then(blocked_for)
            .is_some_and(|reason| waits_for_others(reason) || reason == Reason::InUse)
}

/// Whether the plan does more than to update a record, to read a data source, or to correct drift, of which no other
/// Resource is the cause.
fn changes_object(tracked: &TrackedObject) -> bool {
    tracked.change.as_deref().is_some_and(|change| {
        matches!(change.action, Action::Create | Action::Update | Action::Replace | Action::Wait | Action::Blocked)
            && change.drift.is_none()
    })
}

impl Reconciler {
    /// Updates a Resource after a plan.
    pub fn track_resource(&mut self, name: &Name, config: &Config) {
        // Without a Resource, its objects are abandoned.
        let Some(shared) = config.resource(&Address::single(name.clone())).cloned() else {
            return self.untrack_resource(name);
        };
        let extent = extent(config, &shared);
        match self.resources.get_mut(name) {
            Some(followed) => (followed.shared, followed.extent) = (shared, extent),
            None => {
                self.resources.tracked.insert(name.clone(), Box::new(TrackedResource::new(shared, extent)));
            }
        }
        self.resources.changed.insert(name.clone());
    }

    /// Drops a deleted Resource once none of its objects is tracked.
    pub fn untrack_resource(&mut self, name: &Name) {
        if self.index.instance(name).is_some() || self.objects.of(name).next().is_some() {
            return;
        }
        if let Some(followed) = self.resources.tracked.remove(name) {
            self.resources.state_changed(followed.state, None);
            self.resources.released.remove(&followed.shared.uid);
        }
    }

    /// Reports how many events were not reported, now that the family is idle.
    fn report_suppressed(&mut self, name: &Name) {
        let Some(followed) = self.resources.get_mut(name) else { return };
        followed.reported = 0;
        let unreported = std::mem::take(&mut followed.unreported);
        let shared = followed.shared.clone();
        for ((reason, action), count) in unreported {
            let note = format!("{count} more events of this kind for other instances");
            self.report(ReportSubject::Resource(shared.clone()), Note { warning: false, reason, action, note });
        }
    }

    /// Publishes the status of every changed Resource: immediately if it is idle or not ready any more, otherwise after a
    /// delay.
    pub fn publish_changed(&mut self) {
        let changed = std::mem::take(&mut self.resources.changed);
        self.index.approvals_mut().touch_names(&changed);
        let (active, idle): (Vec<_>, Vec<_>) =
            changed.into_iter().partition(|name| self.objects.of(name).any(|(_, tracked)| is_in_progress(tracked)));
        for name in active {
            if self.is_no_longer_ready(&name) {
                self.publish(&name, Urgency::NoLongerReady);
            } else {
                self.publish_later(&name);
            }
        }
        for name in idle {
            self.publish(&name, Urgency::Final);
            self.report_suppressed(&name);
        }
    }

    /// Whether the written status says that the current generation is ready, but an object of the Resource will change or
    /// cannot be planned.
    fn is_no_longer_ready(&self, name: &Name) -> bool {
        let Some((followed, written)) = self.resources.get(name).zip(self.index.published(name)) else { return false };
        !followed.shared.deleting
            && written.observed_generation == followed.shared.generation
            && [ConditionType::Ready, ConditionType::Synced].iter().all(|kind| written.is_true(*kind))
            && self.objects.of(name).any(|(_, tracked)| changes_object(tracked))
    }

    /// Schedules an interim status for a Resource that is still in progress.
    pub fn publish_later(&mut self, name: &Name) {
        self.publish_after(name, INTERIM_DELAY);
    }

    /// Schedules an interim status.
    pub fn publish_after(&mut self, name: &Name, delay: Duration) {
        let now = self.now.time;
        let Some(followed) = self.resources.get_mut(name) else { return };
        let again = followed.published_at.filter(|_| followed.has_keys()).map(|at| at + FAMILY_INTERVAL);
        let at = again.map_or(now + delay, |again| again.max(now + delay));
        if followed.publish_at.is_none_or(|planned| at < planned) {
            followed.publish_at = Some(at);
            self.objects.wake_at(&Address::single(name.clone()), at);
        }
    }

    /// Writes a scheduled interim status when it is due.
    pub fn publish_if_due(&mut self, name: &Name) {
        let now = self.now.time;
        let Some(followed) = self.resources.get_mut(name) else { return };
        if followed.publish_at.is_some_and(|at| at <= now) {
            followed.published_at = Some(now);
            self.publish(name, Urgency::Interim);
        }
    }

    /// Writes the status of a Resource if it has changed.
    fn publish(&mut self, name: &Name, urgency: Urgency) {
        let Some(Summary { status, module, notes, state, reason }) = self.summary(name) else { return };
        let status: Status = match module {
            Some(details) => ModuleStatus::new(status, details).into(),
            None => status.into(),
        };
        let Some(followed) = self.resources.get_mut(name) else { return };
        followed.publish_at = None;
        let shared = followed.shared.clone();
        let before = followed.state.replace((state, reason));
        self.resources.state_changed(before, Some((state, reason)));
        let new = self.resources.published(&status);
        let digest = new.digest;
        if self.index.is_published(name, digest, shared.generation) {
            return;
        }
        self.index.publish(name, new, shared.generation);
        for note in notes {
            self.report(ReportSubject::Resource(shared.clone()), note);
        }
        let target = StatusTarget { namespace: self.namespace().clone(), name: name.clone(), uid: shared.uid.clone() };
        let update = StatusUpdate { status, generation: shared.generation, digest, urgency };
        self.commands.push(Command::WriteStatus(target, Box::new(update)));
    }

    /// `None` if the Resource no longer exists.
    fn summary(&self, name: &Name) -> Option<Summary> {
        let followed = self.resources.get(name)?;
        if self.index.instance(name)?.uid != followed.shared.uid {
            return None;
        }
        let previous = self.index.published(name)?;
        let single = Address::single(name.clone());
        let of_family = followed.has_keys() || followed.extent == InstanceCount::Disabled;
        if of_family || self.known_objects(name).any(|(address, _)| *address != single) {
            return Some(self.family_summary(name, followed, previous));
        }
        let tracked = self.objects.get(&single)?;
        let waits = self.schedule.waiting_for(&single);
        Some(summarize(&self.object_input(followed, &single, tracked, &waits, previous)))
    }

    /// The objects of a Resource that were planned or have a record.
    fn known_objects<'a>(&'a self, name: &'a Name) -> impl Iterator<Item = (&'a Address, &'a TrackedObject)> {
        let records = self.index.records();
        self.objects.of(name).filter(move |(address, tracked)| tracked.is_planned() || records.contains_key(*address))
    }

    fn family_summary(&self, name: &Name, followed: &TrackedResource, previous: &PublishedStatus) -> Summary {
        let single = Address::single(name.clone());
        // An entry at the address of the Resource that has no object explains why the instances are not known.
        let (gates, objects): (Vec<_>, Vec<_>) = self.known_objects(name).partition(|(address, tracked)| {
            **address == single && tracked.instance.is_none() && !self.index.records().contains_key(*address)
        });
        let waits: BTreeMap<&Address, Vec<Step>> = objects
            .iter()
            .filter(|(_, tracked)| tracked.is_open())
            .take(WAITS_SHOWN)
            .map(|(address, _)| (*address, self.schedule.waiting_for(address)))
            .collect();
        let members: Vec<Member<'_>> = objects
            .iter()
            .map(|(address, tracked)| {
                let waits = waits.get(address).map(Vec::as_slice).unwrap_or_default();
                let object = self.object_input(followed, address, tracked, waits, previous);
                Member { address, desired: tracked.instance.is_some(), object }
            })
            .collect();
        summarize_family(&FamilyInput {
            resource: &followed.shared,
            extent: followed.extent,
            gate: gates.first().and_then(|(_, tracked)| tracked.change.as_deref()),
            members: &members,
            lost: self.index.family_loss(name),
            previous,
            namespace: self.command_namespace(),
            now: self.now.wall,
        })
    }

    fn object_input<'a>(
        &'a self,
        followed: &'a TrackedResource,
        address: &Address,
        tracked: &'a TrackedObject,
        waiting_for: &'a [Step],
        previous: &'a PublishedStatus,
    ) -> ObjectInput<'a> {
        let instance = tracked.instance.as_deref().unwrap_or(&followed.shared);
        let provider = instance.provider.as_ref().map(|provider| provider.name());
        let written = self.schedule.written(address);
        let stored = written.or_else(|| self.index.records().get(address));
        ObjectInput {
            instance,
            provider_is_rejected: provider.is_some_and(|name| self.provider_configs.is_rejected(name)),
            record: stored.map(|stored| &*stored.record),
            only_waits: written.is_some(),
            reading: self.schedule.readings().get(address).map(|reading| &**reading),
            change: tracked.change.as_deref(),
            deposed: &tracked.deposed,
            lifecycle: tracked.lifecycle.as_ref(),
            dependencies: &tracked.dependencies,
            steps: &tracked.steps,
            health: tracked.known_health(),
            awaits_plan: tracked.current_awaits_plan(),
            waiting_for,
            last_failure: tracked.last_failure.as_deref(),
            remarks: tracked.warnings.as_ref().map(|warnings| &warnings.remarks),
            previous,
            namespace: self.command_namespace(),
            now: self.now.wall,
        }
    }
}
