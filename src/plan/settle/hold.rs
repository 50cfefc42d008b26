//! Holding: what an object that stays still uses is not destroyed.
//!
//! An object stays with its edges when it cannot be planned or carried out, when it is wanted, or when its own destroy
//! is held. From there every destroy is held along recorded edges, also through objects that have nothing to do, or
//! change, as long as these still have the reference.

use crate::model::{Action, Diagnostic, ObjectStatus, Reason, RecordedObject, Severity};
use crate::plan::draft::{Block, Draft};
use crate::plan::leaving::all_destroys_held;
use crate::plan::scene::{Id, Scene, Subject};

/// Holds destroys. Gives the replacements that must be blocked whole, and whether anything was held.
pub(super) fn hold(scene: &Scene<'_>, drafts: &mut [Option<Draft>]) -> (Vec<(Id, Block)>, bool) {
    let mut changed = hold_leftovers_of_blocked(scene, drafts);
    let mut search = Search { scene, user: vec![None; drafts.len()], waits: false, open: Vec::new() };
    let mut blocks = Vec::new();
    // Who only waits comes last, so that its waiting is told of no object that something else keeps as well.
    for waits in [false, true] {
        search.waits = waits;
        for id in 0..drafts.len() {
            let only_waits = drafts[id].as_ref().is_some_and(only_waits);
            if only_waits == waits {
                search.start_from(id, drafts);
            }
        }
        while let Some(id) = search.open.pop() {
            changed |= search.visit(id, drafts, &mut blocks);
        }
    }
    changed |= !blocks.is_empty();
    (blocks, changed)
}

/// Whether an object is blocked only until something else of this plan is applied, or held because of such a one.
fn only_waits(draft: &Draft) -> bool {
    let waits = |block: &Block| {
        let reason = matches!(block.reason(), Reason::DependencyNotReady | Reason::StillUsed);
        reason && block.leading().severity == Severity::Warning
    };
    draft.block.as_deref().is_some_and(waits)
}

struct Search<'s, 'a> {
    scene: &'s Scene<'a>,
    /// Because of whom the destroys of an object are held.
    user: Vec<Option<Id>>,
    /// Whether all who are searched from only wait.
    waits: bool,
    open: Vec<Id>,
}

impl Search<'_, '_> {
    /// Reaches what an object keeps in use that stays.
    fn start_from(&mut self, id: Id, drafts: &mut [Option<Draft>]) {
        if self.scene.is_junction(id) {
            return;
        }
        let subject = self.scene.subjects[id];
        let Some(draft) = &mut drafts[id] else { return };
        if let Some(running) = self.scene.running.get(&id) {
            // Until its step is over, the object has old edges and new ones.
            let recorded = running.recorded.as_ref();
            let new: Vec<Id> = recorded.map(|object| self.scene.leftover_used(id, object)).unwrap_or_default();
            self.reach(id, self.scene.used.of(id).chain(new));
        } else if draft.is_blocked() {
            self.reach(id, self.scene.used.of(id));
        } else if draft.action == Action::Replace && draft.create_first && draft.hold_destroy.is_none() {
            draft.hold_destroy = all_destroys_held(self.scene, subject).map(Box::new);
        }
        let living = subject.current().is_some() || draft.makes();
        if subject.wanted && living {
            // What it uses, still wants, and is being deleted all the same. Others that it wants stay anyway, and a new
            // reference means the successor of what is being deleted.
            let is_used = |target: Id| self.scene.used.of(id).any(|used| used == target);
            let leaving = |target: &Id| !self.scene.subjects[*target].wanted && is_used(*target);
            self.reach(id, self.scene.wants.of(id).filter(leaving));
        }
        for leftover in draft.leftovers.iter().filter(|leftover| leftover.block.is_some()) {
            self.reach(id, self.scene.leftover_used(id, &leftover.object));
        }
        if draft.hold_destroy.is_some() {
            self.reach(id, self.scene.used.of(id));
        }
    }

    fn reach(&mut self, user: Id, targets: impl IntoIterator<Item = Id>) {
        for target in targets {
            if self.user[target].is_none() && target != user {
                self.user[target] = Some(user);
                self.open.push(target);
            }
        }
    }

    /// Holds every destroy of an object, and goes on to what it used.
    fn visit(&mut self, id: Id, drafts: &mut [Option<Draft>], blocks: &mut Vec<(Id, Block)>) -> bool {
        let Some(user) = self.user[id] else { return false };
        if self.scene.is_junction(id) {
            self.reach(user, self.scene.used.of(id));
            return false;
        }
        let (mut changed, mut stays) = (false, false);
        let block = self.still_used(id, user, drafts);
        let current = self.scene.subjects[id].current();
        if let Some(draft) = drafts[id].as_mut() {
            let is_running = self.scene.running.contains_key(&id);
            stays = is_running || draft.is_blocked() || draft.leaves() || draft.action == Action::Replace;
            let destroys = draft.leaves() && current.is_some();
            if is_running {
                // Its own step is past holding; its leftovers are not.
            } else if destroys {
                draft.block(block.clone(), current);
                changed = true;
            } else if draft.action == Action::Replace && !draft.create_first {
                blocks.push((id, block.clone()));
            } else if draft.action == Action::Replace && draft.hold_destroy.is_none() {
                // Nothing goes wrong: the rest is for a later apply, as the selection has it.
                let mut block = block.clone();
                let later = |user: Id| !self.scene.is_selected(user);
                block.diagnostics.iter_mut().filter(|_| later(user)).for_each(|told| told.severity = Severity::Warning);
                draft.hold_destroy = Some(Box::new(block));
                changed = true;
            }
            for leftover in draft.leftovers.iter_mut().filter(|leftover| leftover.goes()) {
                if !self.scene.running_leftovers.contains_key(&(id, leftover.key)) {
                    leftover.block(block.clone());
                    changed = true;
                }
            }
        }
        let leftovers = self.scene.subjects[id].record.iter().flat_map(|record| record.deposed.values());
        let used_by_leftovers: Vec<Id> = leftovers.flat_map(|object| self.scene.leftover_used(id, object)).collect();
        self.reach(id, used_by_leftovers);
        if stays {
            self.reach(id, self.scene.used.of(id));
        } else {
            self.reach(user, self.scene.still_used(id));
        }
        changed
    }

    /// Why a destroy waits, with the ways out.
    fn still_used(&self, id: Id, user: Id, drafts: &[Option<Draft>]) -> Block {
        let scene = self.scene;
        let why = drafts[user].as_ref().and_then(|draft| draft.block.as_ref()).map(|block| block.reason());
        let user_address = scene.address(user);
        let (who, deposed) = self.who_uses(user, id);
        if scene.running.contains_key(&user) {
            let what = format!("still used by {who}, a step of which is running");
            let waits = Diagnostic::warning(scene.address(id), Reason::Waiting, what);
            return Block::held(waits).waiting_for([user]);
        }
        // Neither would ever go first, so a person has to solve it.
        let deadlock = self.waits
            && drafts[id].as_ref().is_some_and(|draft| draft.action == Action::Replace && !draft.create_first)
            && self.waits_for(user, id, drafts);
        let (what, hint) = match why {
            Some(Reason::NotSelected) => (
                format!("still used by {who}, which is not selected"),
                format!("select it too: `--target {user_address}`"),
            ),
            Some(_) if deadlock => (
                format!("still used by {who}, which waits for this very replacement"),
                format!(
                    "set `lifecycle.createBeforeDestroy: true` here, so that the new object is made first, or let \
                     `{user_address}` not hang on it until this is done"
                ),
            ),
            Some(_) if self.waits => (
                format!("still used by {who}, which waits for something that is not applied yet"),
                format!("nothing need be done: it goes once `{user_address}` has changed"),
            ),
            Some(reason) => (
                format!("still used by {who}, which is blocked: {reason}"),
                format!("resolve what blocks `{user_address}` first"),
            ),
            None if deposed => (
                format!("still used by {who}"),
                format!("see to it that this object, which `{user_address}` had before, can go first"),
            ),
            None if scene.subjects[user].wanted => {
                (format!("still used by {who}"), format!("delete `{user_address}` too, or remove its reference"))
            }
            None => (format!("still used by {who}"), format!("wait until `{user_address}` is gone")),
        };
        let mut diagnostic = Diagnostic::error(scene.address(id), Reason::StillUsed, what).hint(hint);
        if self.waits && !deadlock {
            diagnostic.severity = Severity::Warning;
        }
        Block::held(diagnostic).waiting_for([user])
    }

    /// The user of an object as sentences name it, and whether only an object of it that was deposed uses the other one.
    fn who_uses(&self, user: Id, id: Id) -> (String, bool) {
        let scene = self.scene;
        let address = scene.address(user);
        let means = |used: Id| scene.stands_for(used, id);
        if scene.used.of(user).chain(scene.wants.of(user)).any(means) {
            return (format!("`{address}`"), false);
        }
        let mut deposed = scene.subjects[user].record.iter().flat_map(|record| &record.deposed);
        match deposed.find(|(_, object)| scene.leftover_used(user, object).into_iter().any(means)) {
            Some((key, _)) => (format!("`{address}` (deposed {key})"), true),
            None => (format!("`{address}` through others"), false),
        }
    }

    /// Whether a blocked object waits for a change of another one, be it through others.
    fn waits_for(&self, user: Id, id: Id, drafts: &[Option<Draft>]) -> bool {
        let mut seen = vec![false; drafts.len()];
        let mut open = vec![user];
        while let Some(here) = open.pop() {
            if here == id || (self.scene.is_junction(here) && self.scene.members(here).any(|member| member == id)) {
                return true;
            }
            let block = drafts[here].as_ref().and_then(|draft| draft.block.as_ref());
            let next: Vec<Id> = match block {
                Some(block) => block.waiting_for.clone(),
                None => self.scene.wants.of(here).collect(),
            };
            for next in next {
                if !std::mem::replace(&mut seen[next], true) {
                    open.push(next);
                }
            }
        }
        false
    }
}

/// Whether the object was replaced, and nobody knows yet whether its successor is as it must be. Without postconditions
/// every successor is.
fn awaits_successor(subject: Subject<'_>, leftover: &RecordedObject) -> bool {
    let judged = subject.instance.is_some_and(|instance| !instance.postconditions.is_empty());
    subject.wanted && judged && leftover.awaits_postconditions
}

/// The leftovers of an object that is blocked: they stay when nothing about it may be touched, and when they may be all
/// that works, because there is no complete current object. A leftover that never worked may always go. When there are
/// too many of them for a new object, all but the newest that works go, so that there is room for one.
fn hold_leftovers_of_blocked(scene: &Scene<'_>, drafts: &mut [Option<Draft>]) -> bool {
    let mut changed = false;
    for (id, draft) in drafts.iter_mut().enumerate() {
        let Some(draft) = draft.as_mut().filter(|draft| !draft.leftovers.is_empty()) else { continue };
        let subject = scene.subjects[id];
        let Some(block) = draft.block.clone() else { continue };
        let complete = |object: &RecordedObject| object.status == ObjectStatus::Ready;
        let gives_up = subject.wanted && !subject.current().is_some_and(|object| complete(object));
        let makes_room = block.reason() == Reason::TooManyLeftovers;
        let working = draft.leftovers.iter().filter(|leftover| complete(&leftover.object));
        let newest =
            working.max_by_key(|leftover| (leftover.object.revision, leftover.key)).map(|leftover| leftover.key);
        for leftover in draft.leftovers.iter_mut().filter(|leftover| leftover.goes()) {
            let needed = gives_up && complete(&leftover.object);
            let needed = needed && (!makes_room || newest == Some(leftover.key));
            if block.frozen || needed || awaits_successor(subject, &leftover.object) {
                let cause = block.leading();
                let what = format!("the leftover stays while its object is blocked: {}", cause.summary);
                let mut diagnostic = Diagnostic::error(subject.address, cause.reason, what);
                diagnostic.severity = cause.severity;
                leftover.block(Block::held(diagnostic).waiting_for(block.waiting_for.iter().copied()));
                changed = true;
            }
        }
    }
    changed
}
