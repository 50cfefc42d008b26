//! What a namespace's task remembers of each Resource, be it one object or a family of many, and the status that it
//! writes of it: one for all instances, and not with each step of each of them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

use super::NamespaceTask;
use super::tracked::Tracked;
use crate::api::ResourceStatus;
use crate::controller::index::Published;
use crate::controller::metrics::ObjectState;
use crate::controller::status::{Target, Urgency};
use crate::controller::summarize::{
    Extent, FamilySituation, Member, Note, Situation, Summary, summarize, summarize_family, waits_by_itself,
};
use crate::load::{Config, Expansion, Instance, Interner, Members};
use crate::model::{Action, Address, InstanceKey, Reason, Step, of_name};

/// A step or a wait that lasts longer gets one status in between.
const PATIENCE: Duration = Duration::from_secs(1);

/// While instances of a family come and go, its status is written no more often than this: with a thousand of them
/// some are always on their way, and each status is kept by etcd and sent to every watcher.
const FAMILY_PAUSE: Duration = Duration::from_secs(5);

/// How many events are told of the instances of one family before it comes to rest; the others are only counted.
const MOST_TOLD: usize = 20;

/// At this many texts of conditions the table of those that Resources share begins anew.
const MOST_TEXTS: usize = 1_000;

/// Of how many instances it is told what they wait for.
const WAITS_SHOWN: usize = 20;

/// One Resource.
#[derive(Debug)]
pub(super) struct Followed {
    /// The Resource as it was planned last: what all its instances share.
    pub(super) shared: Arc<Instance>,
    extent: Extent,
    /// When to write its status though it is not settled.
    publish_at: Option<Instant>,
    /// When that was done last.
    published_at: Option<Instant>,
    /// What the gauge counts it as.
    pub(super) state: Option<ObjectState>,
    /// The warnings of its last plan that concern no instance of it.
    pub(super) warned: BTreeSet<String>,
    /// How many events were told of its instances, and how many were not, since it was at rest.
    told: usize,
    untold: BTreeMap<(&'static str, &'static str), usize>,
}

impl Followed {
    fn new(shared: Arc<Instance>, extent: Extent) -> Self {
        Self {
            shared,
            extent,
            publish_at: None,
            published_at: None,
            state: None,
            warned: BTreeSet::new(),
            told: 0,
            untold: BTreeMap::new(),
        }
    }

    fn has_keys(&self) -> bool {
        self.shared.repetition.as_ref().is_some_and(|repetition| repetition.repeat.is_some())
    }
}

/// How many objects a Resource stands for.
fn extent(config: &Config, shared: &Instance) -> Extent {
    let Some(family) = config.families.get(&shared.address.name) else { return Extent::Known(1) };
    match &family.expansion {
        _ if !shared.is_wanted() => Extent::Known(0),
        Expansion::Known(Members::Disabled) => Extent::Disabled,
        Expansion::Known(Members::One) => Extent::Known(1),
        Expansion::Known(Members::Count(count)) => Extent::Known(*count),
        Expansion::Known(Members::Keys(keys)) => Extent::Known(keys.len() as u64),
        Expansion::Open | Expansion::Failed(_) => Extent::Unknown,
    }
}

/// Whether an object comes to rest within a second as a rule: it is being worked on, or others of the same request are.
fn is_on_its_way(tracked: &Tracked) -> bool {
    let blocked = tracked.change.as_ref().filter(|change| change.action == Action::Blocked);
    let often_passes = |reason| waits_by_itself(reason) || reason == Reason::StillUsed;
    tracked.is_open()
        || tracked.awaits_plan()
        || blocked.is_some_and(|change| often_passes(change.blocked.unwrap_or(Reason::Waiting)))
}

impl NamespaceTask {
    /// Remembers a Resource as it was planned.
    pub(super) fn follow_resource(&mut self, name: &Arc<str>, config: &Config) {
        // Without a Resource its objects are abandoned.
        let Some(shared) = config.resource(&Address::single(name.clone())).cloned() else {
            return self.forget_resource(name);
        };
        let extent = extent(config, &shared);
        match self.followed.get_mut(name) {
            Some(followed) => (followed.shared, followed.extent) = (shared, extent),
            None => drop(self.followed.insert(name.clone(), Box::new(Followed::new(shared, extent)))),
        }
        self.changed.insert(name.clone());
    }

    /// Lets go of a Resource that is gone, once nothing of it is remembered.
    pub(super) fn forget_resource(&mut self, name: &Arc<str>) {
        if self.shared.index().instance(name).is_some() || of_name(&self.tracked, name).next().is_some() {
            return;
        }
        if let Some(followed) = self.followed.remove(name) {
            self.context.metrics.object_moved(followed.state, None);
            self.released.remove(&followed.shared.uid);
        }
    }

    /// Tells something about an object as an event of its Resource.
    pub(super) fn tell(&mut self, address: &Address, mut note: Note) {
        let Some(followed) = self.followed.get_mut(&address.name) else { return };
        if address.key != InstanceKey::None {
            if followed.told >= MOST_TOLD {
                *followed.untold.entry((note.reason, note.action)).or_default() += 1;
                return;
            }
            followed.told += 1;
            note.note = format!("{address}: {}", note.note);
        }
        let terminating = self.shared.index().is_terminating();
        self.context.tell(self.shared.name(), &followed.shared, terminating, note);
    }

    /// Tells how many events of its instances were not told, now that a family is at rest.
    fn tell_rest(&mut self, name: &Arc<str>) {
        let Some(followed) = self.followed.get_mut(name) else { return };
        followed.told = 0;
        let untold = std::mem::take(&mut followed.untold);
        let shared = followed.shared.clone();
        let terminating = self.shared.index().is_terminating();
        for ((reason, action), count) in untold {
            let note = format!("{count} more events of this kind, of other instances");
            self.context.tell(self.shared.name(), &shared, terminating, Note { warning: false, reason, action, note });
        }
    }

    /// Sees to the status of every Resource of which something has happened: at once when it has come to rest.
    pub(super) fn publish_changed(&mut self, now: Instant) {
        for name in std::mem::take(&mut self.changed) {
            if of_name(&self.tracked, &name).any(|(_, tracked)| is_on_its_way(tracked)) {
                self.publish_later(&name, now);
            } else {
                self.publish_as(&name, Urgency::Settled);
                self.tell_rest(&name);
            }
        }
    }

    /// Asks for a status when the Resource is still on its way by then.
    fn publish_later(&mut self, name: &Arc<str>, now: Instant) {
        let Some(followed) = self.followed.get_mut(name) else { return };
        if followed.publish_at.is_none() {
            let again = followed.published_at.filter(|_| followed.has_keys()).map(|at| at + FAMILY_PAUSE);
            let at = again.map_or(now + PATIENCE, |again| again.max(now + PATIENCE));
            followed.publish_at = Some(at);
            self.timers.insert((at, Address::single(name.clone())));
        }
    }

    /// Writes a status that was asked for, when its time has come.
    pub(super) fn publish_if_due(&mut self, name: &Arc<str>, now: Instant) {
        let Some(followed) = self.followed.get_mut(name) else { return };
        if followed.publish_at.is_some_and(|at| at <= now) {
            followed.published_at = Some(now);
            self.publish_as(name, Urgency::Interim);
        }
    }

    /// Writes the status of a Resource, unless it says the same already.
    fn publish_as(&mut self, name: &Arc<str>, urgency: Urgency) {
        let now = self.context.engine.clock.now();
        let Some(summary) = self.sum_up(name, now) else { return };
        let Some(followed) = self.followed.get_mut(name) else { return };
        followed.publish_at = None;
        self.context.metrics.object_moved(followed.state, Some(summary.state));
        followed.state = Some(summary.state);
        let shared = followed.shared.clone();
        let new = self.published(&summary.status);
        let digest;
        let terminating = {
            let mut index = self.shared.index();
            if index.published(name).is_some_and(|old| old.digest == new.digest) {
                return;
            }
            digest = new.digest;
            index.publish(name, new);
            index.is_terminating()
        };
        for note in summary.notes {
            self.context.tell(self.shared.name(), &shared, terminating, note);
        }
        let target = Target { namespace: self.shared.name().clone(), name: name.clone(), uid: shared.uid.clone() };
        self.context.status.write(target, summary.status, digest, urgency);
    }

    fn published(&mut self, status: &ResourceStatus) -> Published {
        // What is said often is said again soon.
        if self.texts.len() > MOST_TEXTS {
            self.texts = Interner::default();
        }
        Published::of(status, &mut self.texts)
    }

    /// `None` when there is no Resource (any more) whose status could say something.
    fn sum_up(&self, name: &Arc<str>, now: Timestamp) -> Option<Summary> {
        let followed = self.followed.get(name)?;
        let index = self.shared.index();
        if index.instance(name)?.uid != followed.shared.uid {
            return None;
        }
        let previous = index.published(name)?;
        let single = Address::single(name.clone());
        let is_known =
            |address: &Address, tracked: &Tracked| tracked.is_planned() || self.run.records().contains_key(address);
        let of_family = followed.has_keys() || followed.extent == Extent::Disabled;
        let mut all = of_name(&self.tracked, name).filter(|(address, tracked)| is_known(address, tracked));
        if !of_family && all.all(|(address, _)| *address == single) {
            let tracked = self.tracked.get(&single)?;
            let waits = self.run.waiting_for(&single);
            return Some(summarize(&self.situation(followed, &single, tracked, &waits, previous, now)));
        }
        // An entry of the Resource itself that stands for no object is why its instances are not known.
        let stands_for_all = |address: &Address, tracked: &Tracked| {
            *address == single && tracked.instance.is_none() && !self.run.records().contains_key(address)
        };
        let known = || of_name(&self.tracked, name).filter(|(address, tracked)| is_known(address, tracked));
        let gate = known().find(|(address, tracked)| stands_for_all(address, tracked));
        let objects: Vec<_> = known().filter(|(address, tracked)| !stands_for_all(address, tracked)).collect();
        let waits: BTreeMap<&Address, Vec<Step>> = objects
            .iter()
            .filter(|(_, tracked)| tracked.is_open())
            .take(WAITS_SHOWN)
            .map(|(address, _)| (*address, self.run.waiting_for(address)))
            .collect();
        let members: Vec<Member<'_>> = objects
            .iter()
            .map(|(address, tracked)| {
                let waits = waits.get(address).map(Vec::as_slice).unwrap_or_default();
                let situation = self.situation(followed, address, tracked, waits, previous, now);
                Member { address, wanted: tracked.instance.is_some(), situation }
            })
            .collect();
        Some(summarize_family(&FamilySituation {
            resource: &followed.shared,
            extent: followed.extent,
            gate: gate.and_then(|(_, tracked)| tracked.change.as_ref()),
            members: &members,
            previous,
            now,
        }))
    }

    fn situation<'a>(
        &'a self,
        followed: &'a Followed,
        address: &Address,
        tracked: &'a Tracked,
        waiting_for: &'a [Step],
        previous: &'a Published,
        now: Timestamp,
    ) -> Situation<'a> {
        Situation {
            instance: tracked.instance.as_deref().unwrap_or(&followed.shared),
            record: self.run.records().get(address).map(|stored| &*stored.record),
            reading: self.run.readings().get(address).map(|reading| &**reading),
            change: tracked.change.as_ref(),
            leftovers: &tracked.leftovers,
            lifecycle: tracked.lifecycle.as_ref(),
            wants: &tracked.wants,
            steps: &tracked.steps,
            awaits_plan: tracked.awaits_plan(),
            waiting_for,
            previous,
            now,
        }
    }
}
