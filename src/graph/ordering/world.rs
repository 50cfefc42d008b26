//! The objects as the rules ask about them: relations in both directions, steps by number, and a few facts about
//! what stands above or below each object, each found in one pass over an order.

use super::topology::{Adjacency, NONE};
use super::{Object, Part, Presence, StepOf};

/// Everything that holds whatever is decided about rings.
#[derive(Debug)]
pub(super) struct World<'a> {
    pub(super) objects: &'a [Object],
    /// Direct references between wanted objects, and who has them.
    pub(super) wants: Adjacency,
    pub(super) wanters: Adjacency,
    /// Direct dependencies of current objects, and who has them.
    pub(super) used: Adjacency,
    pub(super) users: Adjacency,
    /// Numbers of objects, those that are wanted (used) by others first.
    pub(super) wants_order: Vec<u32>,
    pub(super) used_order: Vec<u32>,
    /// The steps by number, and the number of each object's steps (`NONE` without one).
    pub(super) steps: Vec<StepOf>,
    pub(super) make: Vec<u32>,
    pub(super) remove: Vec<u32>,
    /// The leftovers that have a step, which objects they used directly, and by whose leftovers an object was used.
    pub(super) leftovers: Vec<Left>,
    pub(super) leftover_users: Adjacency,
    /// The object and the step of each leftover that is being destroyed.
    pub(super) running_leftovers: Vec<(u32, u32)>,
    /// Somebody that used it, directly or through others, has a step `C`.
    pub(super) has_made_user: Vec<bool>,
    /// Whatever it used, directly or through others, wants all that it used; so does it itself.
    pub(super) keeps_all_used: Vec<bool>,
    /// Somebody that used it, directly or through others, dropped a reference on the way to it.
    pub(super) is_dropped_above: Vec<bool>,
}

/// A leftover with a step.
#[derive(Debug)]
pub(super) struct Left {
    pub(super) object: u32,
    pub(super) node: u32,
    pub(super) is_planned: bool,
    pub(super) used: Vec<u32>,
}

impl<'a> World<'a> {
    pub(super) fn new(objects: &'a [Object]) -> Self {
        let count = objects.len();
        let numbered = || objects.iter().zip(0_u32..);
        let wants = Adjacency::new(
            count,
            numbered()
                .filter(|(object, _)| object.wanted)
                .flat_map(|(object, at)| object.wants.iter().map(move |&to| (at, to)))
                .filter(|&(from, to)| from != to && objects[to as usize].wanted),
        );
        let used = Adjacency::new(
            count,
            numbered()
                .flat_map(|(object, at)| object.used.iter().map(move |&to| (at, to)))
                .filter(|(from, to)| from != to),
        );
        let mut world = Self {
            objects,
            wanters: wants.reversed(),
            users: used.reversed(),
            wants_order: wants.targets_first().0,
            used_order: used.targets_first().0,
            wants,
            used,
            steps: Vec::new(),
            make: vec![NONE; count],
            remove: vec![NONE; count],
            leftovers: Vec::new(),
            leftover_users: Adjacency::default(),
            running_leftovers: Vec::new(),
            has_made_user: vec![false; count],
            keeps_all_used: vec![true; count],
            is_dropped_above: vec![false; count],
        };
        world.number_steps();
        world.find_facts();
        world
    }

    fn number_steps(&mut self) {
        for (object, at) in self.objects.iter().zip(0_u32..) {
            let parts = [(object.make, Part::Make), (object.remove, Part::Remove)];
            let leftovers = object.leftovers.iter().zip(0_u32..).map(|(left, k)| (left.remove, Part::Leftover(k)));
            for (presence, part) in parts.into_iter().chain(leftovers) {
                if presence == Presence::Absent {
                    continue;
                }
                let node = self.steps.len() as u32;
                self.steps.push(StepOf { object: at, part });
                match part {
                    Part::Make if presence == Presence::Apart => {}
                    Part::Make => self.make[at as usize] = node,
                    Part::Remove => self.remove[at as usize] = node,
                    Part::Leftover(k) => {
                        let used = object.leftovers[k as usize].used.iter().copied().filter(|&to| to != at).collect();
                        let is_planned = presence == Presence::Planned;
                        if !is_planned {
                            self.running_leftovers.push((at, node));
                        }
                        self.leftovers.push(Left { object: at, node, is_planned, used });
                    }
                }
            }
        }
        let pairs = self.leftovers.iter().zip(0_u32..);
        let pairs = pairs.flat_map(|(left, at)| left.used.iter().map(move |&object| (object, at)));
        self.leftover_users = Adjacency::new(self.objects.len(), pairs);
    }

    fn find_facts(&mut self) {
        for &at in &self.used_order {
            let used = self.used.of(at);
            self.keeps_all_used[at as usize] =
                used.iter().all(|&to| self.keeps_all_used[to as usize] && self.wants.has(at, to));
        }
        for &at in self.used_order.iter().rev() {
            for &user in self.users.of(at) {
                self.has_made_user[at as usize] |=
                    self.has_made_user[user as usize] || self.make[user as usize] != NONE;
                self.is_dropped_above[at as usize] |= self.is_dropped_above[user as usize] || !self.wants.has(user, at);
            }
        }
    }

    /// `C(x)` is there and can wait.
    pub(super) fn makes(&self, at: u32) -> bool {
        self.objects[at as usize].make == Presence::Planned
    }

    /// `C(x)` if it changes the object, and not only the record.
    pub(super) fn change(&self, at: u32) -> u32 {
        if self.objects[at as usize].only_records { NONE } else { self.make[at as usize] }
    }

    /// `C(x)` is there, can wait, and changes the object.
    pub(super) fn changes(&self, at: u32) -> bool {
        self.makes(at) && !self.objects[at as usize].only_records
    }

    /// `D(x)` is there and can wait.
    pub(super) fn removes(&self, at: u32) -> bool {
        self.objects[at as usize].remove == Presence::Planned
    }

    /// The effective flag.
    pub(super) fn creates_first(&self, at: u32) -> bool {
        self.objects[at as usize].create_before_destroy
    }

    /// The object goes, is not create-before-destroy, and nobody wants it: whoever used it has let go of it.
    pub(super) fn is_released_by_all(&self, at: u32) -> bool {
        let is_wanted = self.objects[at as usize].wanted && !self.wanters.of(at).is_empty();
        self.removes(at) && !self.creates_first(at) && !is_wanted
    }

    /// The object only goes, is not create-before-destroy, and somebody that changes has let go of it: R6 lets it go
    /// late, as if it were create-before-destroy.
    pub(super) fn is_released_for_good(&self, at: u32) -> bool {
        self.is_released_by_all(at) && self.make[at as usize] == NONE && self.has_made_user[at as usize]
    }
}
