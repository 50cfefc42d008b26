//! The relations between objects in both directions, the numbers of steps, and transitive flags of each object, which
//! are computed in one pass.

use super::topology::{Adjacency, NONE};
use super::{Object, Part, Presence, StepRef};

/// Everything that does not depend on decisions about cycles.
#[derive(Debug)]
pub struct Relations<'a> {
    pub objects: &'a [Object],
    /// Direct desired dependencies between desired objects, and the reverse relation.
    pub wants: Adjacency,
    pub wanters: Adjacency,
    /// Direct recorded dependencies of current objects, and the reverse relation.
    pub used: Adjacency,
    pub users: Adjacency,
    /// The objects in an order in which desired (recorded) dependencies come first.
    pub wants_order: Vec<u32>,
    pub used_order: Vec<u32>,
    /// The steps, and the indexes of each object's steps (`NONE` without a step).
    pub steps: Vec<StepRef>,
    pub apply: Vec<u32>,
    pub remove: Vec<u32>,
    /// The deposed objects with a step, and for each object the deposed objects that depend on it directly.
    pub deposed: Vec<DeposedStep>,
    pub deposed_users: Adjacency,
    /// The object and the step of each deposed object that is being destroyed.
    pub running_deposed: Vec<(u32, u32)>,
    /// A direct or indirect recorded dependent has a step `C`.
    pub has_applied_user: Vec<bool>,
    /// The object and its direct and indirect recorded dependencies still have all their recorded dependencies.
    pub keeps_all_dependencies: Vec<bool>,
    /// A dependency on the path from a direct or indirect recorded dependent was removed.
    pub has_removed_dependency_above: Vec<bool>,
}

/// A deposed object with a step.
#[derive(Debug)]
pub struct DeposedStep {
    pub object: u32,
    pub node: u32,
    pub is_planned: bool,
    pub used: Vec<u32>,
}

impl<'a> Relations<'a> {
    pub fn new(objects: &'a [Object]) -> Self {
        let count = objects.len();
        let numbered = objects.iter().zip(0_u32..);
        let wants = Adjacency::new(
            count,
            numbered
                .clone()
                .filter(|(object, _)| object.wanted)
                .flat_map(|(object, at)| object.wants.iter().map(move |&to| (at, to)))
                .filter(|&(from, to)| from != to && objects[to as usize].wanted),
        );
        let used = Adjacency::new(
            count,
            numbered
                .flat_map(|(object, at)| object.used.iter().map(move |&to| (at, to)))
                .filter(|(from, to)| from != to),
        );
        let mut relations = Self {
            objects,
            wanters: wants.reversed(),
            users: used.reversed(),
            wants_order: wants.targets_first().0,
            used_order: used.targets_first().0,
            wants,
            used,
            steps: Vec::new(),
            apply: vec![NONE; count],
            remove: vec![NONE; count],
            deposed: Vec::new(),
            deposed_users: Adjacency::default(),
            running_deposed: Vec::new(),
            has_applied_user: vec![false; count],
            keeps_all_dependencies: vec![true; count],
            has_removed_dependency_above: vec![false; count],
        };
        relations.number_steps();
        relations.compute_flags();
        relations
    }

    fn number_steps(&mut self) {
        for (object, at) in self.objects.iter().zip(0_u32..) {
            let parts = [(object.apply, Part::Apply), (object.remove, Part::Remove)];
            let deposed = object.deposed.iter().zip(0_u32..).map(|(left, k)| (left.remove, Part::Deposed(k)));
            for (presence, part) in parts.into_iter().chain(deposed) {
                if presence == Presence::Absent {
                    continue;
                }
                let node = self.steps.len() as u32;
                self.steps.push(StepRef { object: at, part });
                match part {
                    Part::Apply if presence == Presence::Detached => {}
                    Part::Apply => self.apply[at as usize] = node,
                    Part::Remove => self.remove[at as usize] = node,
                    Part::Deposed(k) => {
                        let used = object.deposed[k as usize].used.iter().copied().filter(|&to| to != at).collect();
                        let is_planned = presence == Presence::Planned;
                        if !is_planned {
                            self.running_deposed.push((at, node));
                        }
                        self.deposed.push(DeposedStep { object: at, node, is_planned, used });
                    }
                }
            }
        }
        let pairs = self.deposed.iter().zip(0_u32..);
        let pairs = pairs.flat_map(|(left, at)| left.used.iter().map(move |&object| (object, at)));
        self.deposed_users = Adjacency::new(self.objects.len(), pairs);
    }

    fn compute_flags(&mut self) {
        for &at in &self.used_order {
            let used = self.used.of(at);
            self.keeps_all_dependencies[at as usize] =
                used.iter().all(|&to| self.keeps_all_dependencies[to as usize] && self.wants.has(at, to));
        }
        for &at in self.used_order.iter().rev() {
            for &user in self.users.of(at) {
                self.has_applied_user[at as usize] |=
                    self.has_applied_user[user as usize] || self.apply[user as usize] != NONE;
                self.has_removed_dependency_above[at as usize] |=
                    self.has_removed_dependency_above[user as usize] || !self.wants.has(user, at);
            }
        }
    }

    /// `C(x)` is planned.
    pub fn has_apply(&self, at: u32) -> bool {
        self.objects[at as usize].apply == Presence::Planned
    }

    /// Returns `C(x)` if it changes more than the record.
    pub fn change(&self, at: u32) -> u32 {
        if self.objects[at as usize].is_record_only { NONE } else { self.apply[at as usize] }
    }

    /// `C(x)` is planned and changes more than the record.
    pub fn has_change(&self, at: u32) -> bool {
        self.has_apply(at) && !self.objects[at as usize].is_record_only
    }

    /// `C(x)` is planned and changes only the record.
    pub fn only_records(&self, at: u32) -> bool {
        self.has_apply(at) && !self.has_change(at)
    }

    pub fn is_deposed(&self, step: u32) -> bool {
        self.steps.get(step as usize).is_some_and(|step| matches!(step.part, Part::Deposed(_)))
    }

    /// `D(x)` is planned.
    pub fn has_remove(&self, at: u32) -> bool {
        self.objects[at as usize].remove == Presence::Planned
    }

    pub fn creates_first(&self, at: u32) -> bool {
        self.objects[at as usize].create_before_destroy
    }

    /// The object is destroyed, is not create-before-destroy, and no object depends on it any longer.
    pub fn is_released_by_all(&self, at: u32) -> bool {
        let is_wanted = self.objects[at as usize].wanted && !self.wanters.of(at).is_empty();
        self.has_remove(at) && !self.creates_first(at) && !is_wanted
    }

    /// The object is destroyed and not replaced, is not create-before-destroy, and a former dependent changes. R6
    /// destroys it late, as if it were create-before-destroy.
    pub fn is_destroyed_after_release(&self, at: u32) -> bool {
        self.is_released_by_all(at) && self.apply[at as usize] == NONE && self.has_applied_user[at as usize]
    }
}
