//! What is remembered of each Resource, be it one object or a family of many, and the status that is written of it: one
//! for all instances, and not with each step of each of them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::index::Published;
use super::summarize::{
    Extent, FamilySituation, Member, Note, ObjectState, Situation, Summary, summarize, summarize_family,
    waits_by_itself,
};
use super::time::Time;
use super::tracked::Tracked;
use super::{About, Command, Reconciler, Urgency};
use crate::api::ResourceStatus;
use crate::load::{Config, Expansion, Instance, Interner, Members};
use crate::model::{Action, Address, InstanceKey, Reason, Step};

/// A step or a wait that lasts longer gets one status in between.
const PATIENCE: Duration = Duration::from_secs(1);

/// While instances of a family come and go, its status is written no more often than this: with a thousand of them
/// some are always on their way, and each status is kept by etcd and sent to every watcher.
const FAMILY_PAUSE: Duration = Duration::from_secs(5);

/// How many events of the instances of one family are reported before it comes to rest; the others are only counted.
const MOST_REPORTED: usize = 20;

/// At this many texts of conditions the table of those that Resources share begins from nothing.
const MOST_TEXTS: usize = 1_000;

/// Of how many instances the status says what they wait for.
const WAITS_SHOWN: usize = 20;

/// All Resources.
#[derive(Debug, Default)]
pub(super) struct Resources {
    followed: BTreeMap<Arc<str>, Box<Followed>>,
    /// What conditions say, which most Resources share.
    texts: Interner,
    /// Those whose status may have changed in this turn.
    pub(super) changed: BTreeSet<Arc<str>>,
    /// Those whose marks were, or are being, taken off, by UID, so that it is asked for once.
    pub(super) released: BTreeSet<Arc<str>>,
    /// How many there are in each state.
    counted: BTreeMap<ObjectState, usize>,
}

impl Resources {
    pub(super) fn get(&self, name: &str) -> Option<&Followed> {
        self.followed.get(name).map(AsRef::as_ref)
    }

    pub(super) fn get_mut(&mut self, name: &str) -> Option<&mut Followed> {
        self.followed.get_mut(name).map(AsMut::as_mut)
    }

    /// How many there are in each state.
    pub(super) fn count(&self) -> BTreeMap<ObjectState, usize> {
        self.counted.clone()
    }

    /// A Resource has another state, or none any more.
    fn state_changed(&mut self, from: Option<ObjectState>, to: Option<ObjectState>) {
        if let Some(count) = from.and_then(|state| self.counted.get_mut(&state)) {
            *count = count.saturating_sub(1);
        }
        if let Some(state) = to {
            *self.counted.entry(state).or_default() += 1;
        }
    }

    /// A note about an object as one of its Resource. Of the instances of a family only the first are reported, until it
    /// comes to rest.
    pub(super) fn note(&mut self, address: &Address, mut note: Note) -> Option<(Arc<Instance>, Note)> {
        let followed = self.followed.get_mut(&address.name)?;
        if address.key != InstanceKey::None {
            if followed.reported >= MOST_REPORTED {
                *followed.unreported.entry((note.reason, note.action)).or_default() += 1;
                return None;
            }
            followed.reported += 1;
            note.note = format!("{address}: {}", note.note);
        }
        Some((followed.shared.clone(), note))
    }

    /// What is remembered of a status.
    fn published(&mut self, status: &ResourceStatus) -> Published {
        // What is said often is said again soon.
        if self.texts.len() > MOST_TEXTS {
            self.texts = Interner::default();
        }
        Published::of(status, &mut self.texts)
    }
}

/// One Resource.
#[derive(Debug)]
pub(super) struct Followed {
    /// The Resource as it was planned last: what all its instances share.
    pub(super) shared: Arc<Instance>,
    extent: Extent,
    /// When to write its status though it is not settled.
    publish_at: Option<Time>,
    /// When that was done last.
    published_at: Option<Time>,
    /// What the gauge counts it as.
    state: Option<ObjectState>,
    /// The warnings of its last plan that concern no instance of it.
    pub(super) warned: BTreeSet<String>,
    /// How many events of its instances were reported, and how many were not, since it was at rest.
    reported: usize,
    unreported: BTreeMap<(&'static str, &'static str), usize>,
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
            reported: 0,
            unreported: BTreeMap::new(),
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

impl Reconciler {
    /// Remembers a Resource as it was planned.
    pub(super) fn follow_resource(&mut self, name: &Arc<str>, config: &Config) {
        // Without a Resource its objects are abandoned.
        let Some(shared) = config.resource(&Address::single(name.clone())).cloned() else {
            return self.forget_resource(name);
        };
        let extent = extent(config, &shared);
        match self.resources.get_mut(name) {
            Some(followed) => (followed.shared, followed.extent) = (shared, extent),
            None => {
                self.resources.followed.insert(name.clone(), Box::new(Followed::new(shared, extent)));
            }
        }
        self.resources.changed.insert(name.clone());
    }

    /// Lets go of a Resource that is gone, once nothing of it is remembered.
    pub(super) fn forget_resource(&mut self, name: &Arc<str>) {
        if self.index.instance(name).is_some() || self.objects.of(name).next().is_some() {
            return;
        }
        if let Some(followed) = self.resources.followed.remove(name) {
            self.resources.state_changed(followed.state, None);
            self.resources.released.remove(&followed.shared.uid);
        }
    }

    /// Reports how many events of its instances were not reported, now that a family is at rest.
    fn report_rest(&mut self, name: &Arc<str>) {
        let Some(followed) = self.resources.get_mut(name) else { return };
        followed.reported = 0;
        let unreported = std::mem::take(&mut followed.unreported);
        let shared = followed.shared.clone();
        for ((reason, action), count) in unreported {
            let note = format!("{count} more events of this kind, of other instances");
            self.report(About::Resource(shared.clone()), Note { warning: false, reason, action, note });
        }
    }

    /// Sees to the status of every Resource of which something has happened: at once when it has come to rest.
    pub(super) fn publish_changed(&mut self) {
        for name in std::mem::take(&mut self.resources.changed) {
            if self.objects.of(&name).any(|(_, tracked)| is_on_its_way(tracked)) {
                self.publish_later(&name);
            } else {
                self.publish(&name, Urgency::Settled);
                self.report_rest(&name);
            }
        }
    }

    /// Asks for a status when the Resource is still on its way after a while.
    fn publish_later(&mut self, name: &Arc<str>) {
        let now = self.now.time;
        let Some(followed) = self.resources.get_mut(name) else { return };
        if followed.publish_at.is_none() {
            let again = followed.published_at.filter(|_| followed.has_keys()).map(|at| at + FAMILY_PAUSE);
            let at = again.map_or(now + PATIENCE, |again| again.max(now + PATIENCE));
            followed.publish_at = Some(at);
            self.objects.wake_at(&Address::single(name.clone()), at);
        }
    }

    /// Writes a status that was asked for, when its time has come.
    pub(super) fn publish_if_due(&mut self, name: &Arc<str>) {
        let now = self.now.time;
        let Some(followed) = self.resources.get_mut(name) else { return };
        if followed.publish_at.is_some_and(|at| at <= now) {
            followed.published_at = Some(now);
            self.publish(name, Urgency::Interim);
        }
    }

    /// Writes the status of a Resource, unless it says the same already.
    fn publish(&mut self, name: &Arc<str>, urgency: Urgency) {
        let Some(Summary { status, notes, state }) = self.sum_up(name) else { return };
        let Some(followed) = self.resources.get_mut(name) else { return };
        followed.publish_at = None;
        let shared = followed.shared.clone();
        let before = followed.state.replace(state);
        self.resources.state_changed(before, Some(state));
        let new = self.resources.published(&status);
        if self.index.published(name).is_some_and(|old| old.digest == new.digest) {
            return;
        }
        let digest = new.digest;
        self.index.publish(name, new);
        for note in notes {
            self.report(About::Resource(shared.clone()), note);
        }
        let (name, uid, status) = (name.clone(), shared.uid.clone(), Box::new(status));
        self.commands.push(Command::WriteStatus { name, uid, status, digest, urgency });
    }

    /// `None` when there is no Resource (any more) whose status could say something.
    fn sum_up(&self, name: &Arc<str>) -> Option<Summary> {
        let followed = self.resources.get(name)?;
        let index = &self.index;
        if index.instance(name)?.uid != followed.shared.uid {
            return None;
        }
        let previous = index.published(name)?;
        let single = Address::single(name.clone());
        let is_known = |address: &Address, tracked: &Tracked| {
            tracked.is_planned() || self.schedule.records().contains_key(address)
        };
        let of_family = followed.has_keys() || followed.extent == Extent::Disabled;
        let mut all = self.objects.of(name).filter(|(address, tracked)| is_known(address, tracked));
        if !of_family && all.all(|(address, _)| *address == single) {
            let tracked = self.objects.get(&single)?;
            let waits = self.schedule.waiting_for(&single);
            return Some(summarize(&self.situation(followed, &single, tracked, &waits, previous)));
        }
        // An entry of the Resource itself that stands for no object is why its instances are not known.
        let stands_for_all = |address: &Address, tracked: &Tracked| {
            *address == single && tracked.instance.is_none() && !self.schedule.records().contains_key(address)
        };
        let known = || self.objects.of(name).filter(|(address, tracked)| is_known(address, tracked));
        let gate = known().find(|(address, tracked)| stands_for_all(address, tracked));
        let objects: Vec<_> = known().filter(|(address, tracked)| !stands_for_all(address, tracked)).collect();
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
                let situation = self.situation(followed, address, tracked, waits, previous);
                Member { address, wanted: tracked.instance.is_some(), situation }
            })
            .collect();
        Some(summarize_family(&FamilySituation {
            resource: &followed.shared,
            extent: followed.extent,
            gate: gate.and_then(|(_, tracked)| tracked.change.as_ref()),
            members: &members,
            previous,
            now: self.now.wall,
        }))
    }

    fn situation<'a>(
        &'a self,
        followed: &'a Followed,
        address: &Address,
        tracked: &'a Tracked,
        waiting_for: &'a [Step],
        previous: &'a Published,
    ) -> Situation<'a> {
        Situation {
            instance: tracked.instance.as_deref().unwrap_or(&followed.shared),
            record: self.schedule.records().get(address).map(|stored| &*stored.record),
            reading: self.schedule.readings().get(address).map(|reading| &**reading),
            change: tracked.change.as_ref(),
            leftovers: &tracked.leftovers,
            lifecycle: tracked.lifecycle.as_ref(),
            wants: &tracked.wants,
            steps: &tracked.steps,
            awaits_plan: tracked.awaits_plan(),
            waiting_for,
            previous,
            now: self.now.wall,
        }
    }
}
