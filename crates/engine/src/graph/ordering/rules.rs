//! The rules R1 to R8 for a given set of decisions, and R10, which needs a graph without cycles. Only R1, R3, R5 and the
//! part of R7 about the deposed objects of the same object apply to a record-only step.
//!
//! Each function applies one rule, and omits edges that other rules imply. A running step waits for nothing, so nothing
//! is implied through it; therefore the functions check whether a step is planned.

use super::builder::GraphBuilder;
use super::decisions::{Decisions, DeposedMode};
use super::relations::Relations;
use super::topology::{Incremental, NONE, Search};
use super::{EdgeReason, Presence};

/// Adds all edges of R1 to R8.
pub fn apply_rules(relations: &Relations<'_>, decisions: &Decisions) -> GraphBuilder {
    let mut builder = GraphBuilder::new(relations.steps.len());
    let chains = Chains::new(relations, decisions, &mut builder);
    let [search, above, wanting, released_by] = [(); 4].map(|()| Search::new(relations.objects.len()));
    let mut rules = Rules { relations, decisions, chains, builder, search, above, wanting, released_by };
    for at in 0..relations.objects.len() as u32 {
        rules.references(at);
        rules.replacement(at);
        rules.dependents_destroyed_first(at);
        rules.dependents_destroyed_before_changes(at);
        rules.dependents_change_before_destroy(at);
        rules.fallback_dependencies(at);
    }
    for left in 0..relations.deposed.len() {
        rules.deposed_step(left);
    }
    let searches = [&rules.search, &rules.above, &rules.wanting, &rules.released_by];
    rules.builder.visits = searches.map(|search| search.visits).iter().sum();
    rules.builder
}

/// For each object, the nodes that represent transitive closures.
struct Chains {
    /// `C` of the object and of its desired dependencies.
    wanted: Vec<u32>,
    /// `C` of the object and of its recorded dependencies, without record-only steps.
    used: Vec<u32>,
    /// `D` of the object, of its recorded dependents, and of deposed objects that depended on any of these.
    removals: Vec<u32>,
    /// The same without objects that are destroyed late, and without deposed objects, which always are.
    early_removals: Vec<u32>,
    /// `C` of the object and of its recorded dependents.
    user_applies: Vec<u32>,
    /// The same without record-only steps.
    user_changes: Vec<u32>,
    /// `D` of the object and of its recorded dependencies to which the fallback of R6 applies.
    fallback_removals: Vec<u32>,
}

impl Chains {
    fn new(relations: &Relations<'_>, decisions: &Decisions, builder: &mut GraphBuilder) -> Self {
        let count = relations.objects.len();
        let wanted = builder.chain(relations.wants_order.iter(), count, |at, chain, found| {
            found.push(relations.apply[at as usize]);
            if !relations.has_apply(at) {
                if !relations.creates_first(at) {
                    // The second case of R5, which `C(x)` would imply: the old object is being destroyed.
                    found.push(relations.remove[at as usize]);
                }
                pass_on(chain, relations.wants.of(at), found);
            }
        });
        let used = builder.chain(relations.used_order.iter(), count, |at, chain, found| {
            found.push(relations.change(at));
            if !(relations.has_change(at) && relations.keeps_all_dependencies[at as usize]) {
                pass_on(chain, relations.used.of(at), found);
            }
        });
        let removals = builder.chain(relations.used_order.iter().rev(), count, |at, chain, found| {
            found.push(relations.remove[at as usize]);
            if !relations.has_remove(at) {
                found.extend(relations.deposed_users.of(at).iter().map(|&left| relations.deposed[left as usize].node));
                pass_on(chain, relations.users.of(at), found);
            }
        });
        let early_removals = builder.chain(relations.used_order.iter().rev(), count, |at, chain, found| {
            let goes_early = !decisions.is_destroyed_late(relations, at);
            if goes_early {
                found.push(relations.remove[at as usize]);
            }
            if !(goes_early && relations.has_remove(at)) {
                pass_on(chain, relations.users.of(at), found);
            }
        });
        let upwards = relations.used_order.iter().rev();
        let user_applies = builder.chain(upwards.clone(), count, steps_above(relations, decisions, false));
        let for_deposed = upwards.filter(|_| !relations.deposed.is_empty());
        let user_changes = builder.chain(for_deposed, count, steps_above(relations, decisions, true));
        let fallback_removals =
            builder.chain(relations.used_order.iter().filter(|_| decisions.has_fallbacks()), count, {
                |at, chain, found| {
                    if decisions.is_fallback(at) {
                        found.push(relations.remove[at as usize]);
                    }
                    pass_on(chain, relations.used.of(at), found);
                }
            });
        Self { wanted, used, removals, early_removals, user_applies, user_changes, fallback_removals }
    }
}

/// Collects the nodes that represent other objects.
fn pass_on(chain: &[u32], objects: &[u32], found: &mut Vec<u32>) {
    found.extend(objects.iter().map(|&object| chain[object as usize]));
}

/// Collects the step of an object that its dependencies wait for, and those of its users.
fn steps_above(
    relations: &Relations<'_>,
    decisions: &Decisions,
    only_changes: bool,
) -> impl Fn(u32, &[u32], &mut Vec<u32>) {
    move |at: u32, chain: &[u32], found: &mut Vec<u32>| {
        if decisions.waits_for_all_users(relations, at) {
            return;
        }
        // A dependent with a step waits for its desired dependencies.
        let is_implied = relations.users.of(at).iter().any(|&user| {
            let has_step = if only_changes { relations.has_change(user) } else { relations.has_apply(user) };
            has_step && relations.wants.has(user, at)
        });
        if !is_implied {
            found.push(if only_changes { relations.change(at) } else { relations.apply[at as usize] });
        }
        pass_on(chain, relations.users.of(at), found);
    }
}

struct Rules<'a> {
    relations: &'a Relations<'a>,
    decisions: &'a Decisions,
    chains: Chains,
    builder: GraphBuilder,
    search: Search,
    above: Search,
    wanting: Search,
    released_by: Search,
}

impl Rules<'_> {
    /// Waits for the node of each object in a chain. A node of another object is an indirect relation.
    fn wait_for_chain(&mut self, from: u32, chain: fn(&Chains) -> &[u32], objects: &[u32], reason: EdgeReason) {
        for &object in objects {
            let to = chain(&self.chains)[object as usize];
            let is_direct = self.relations.steps.get(to as usize).is_some_and(|step| step.object == object);
            self.builder.wait(from, to, reason, !is_direct);
        }
    }

    /// Waits for the steps of deposed objects.
    fn wait_for_deposed(&mut self, from: u32, deposed: &[u32], reason: EdgeReason) {
        for &left in deposed {
            self.builder.wait(from, self.relations.deposed[left as usize].node, reason, false);
        }
    }

    /// R1.
    fn references(&mut self, at: u32) {
        let relations = self.relations;
        if relations.has_apply(at) {
            let make = relations.apply[at as usize];
            self.wait_for_chain(make, |chains| &chains.wanted, relations.wants.of(at), EdgeReason::References);
        }
    }

    /// R3, and the order of a running step.
    fn replacement(&mut self, at: u32) {
        let (make, remove) = (self.relations.apply[at as usize], self.relations.remove[at as usize]);
        if make == NONE || remove == NONE {
            return;
        }
        match (self.relations.has_apply(at), self.relations.has_remove(at)) {
            (true, true) if self.relations.creates_first(at) => {
                self.builder.wait(remove, make, EdgeReason::CreateBeforeDestroy, false);
            }
            (true, true) => self.builder.wait(make, remove, EdgeReason::DestroyBeforeCreate, false),
            (true, false) => self.builder.wait(make, remove, EdgeReason::StepRunning, false),
            (false, true) => self.builder.wait(remove, make, EdgeReason::StepRunning, false),
            (false, false) => {}
        }
    }

    /// R2, and the same for deposed objects that depended on the object (R7).
    fn dependents_destroyed_first(&mut self, at: u32) {
        let relations = self.relations;
        if relations.has_remove(at) {
            let remove = relations.remove[at as usize];
            self.wait_for_chain(
                remove,
                |chains| &chains.removals,
                relations.users.of(at),
                EdgeReason::DependentsDestroyedFirst,
            );
            self.wait_for_deposed(remove, relations.deposed_users.of(at), EdgeReason::DeposedDestroyedFirst);
        }
    }

    /// R4, and the late destroy of R6.
    fn dependents_destroyed_before_changes(&mut self, at: u32) {
        let relations = self.relations;
        let goes_late = self.decisions.is_destroyed_late(relations, at);
        // A destroy-before-create replacement waits for its own destroy, which waits for the destroys of all
        // dependents. A desired dependency that changes waits for the destroys of all its dependents, including those
        // of this object.
        let has_base = relations.wants.of(at).iter().any(|&to| relations.has_change(to) && relations.used.has(at, to));
        if relations.has_change(at) && (goes_late || !relations.has_remove(at)) && !has_base {
            let make = relations.apply[at as usize];
            self.wait_for_chain(
                make,
                |chains| &chains.early_removals,
                relations.users.of(at),
                EdgeReason::DependentDestroyedBeforeChange,
            );
        }
        // A create-before-destroy replacement waits for its own create, which waits for all desired dependencies.
        let is_implied = relations.has_apply(at) && relations.keeps_all_dependencies[at as usize];
        if goes_late && relations.has_remove(at) && !is_implied {
            let remove = relations.remove[at as usize];
            self.wait_for_chain(
                remove,
                |chains| &chains.used,
                relations.used.of(at),
                EdgeReason::DependencyChangesFirst,
            );
        }
    }

    /// R5. Its second case is implied by R1 and R3, or added with the chain of desired dependencies.
    fn dependents_change_before_destroy(&mut self, at: u32) {
        let relations = self.relations;
        if !relations.has_remove(at) {
            return;
        }
        let remove = relations.remove[at as usize];
        let users = relations.users.of(at);
        if relations.creates_first(at) {
            self.wait_for_chain(remove, |chains| &chains.user_applies, users, EdgeReason::DependentChangesFirst);
        } else if self.decisions.is_fallback(at) {
            // The former dependents add the edges.
        } else if relations.is_released_by_all(at) {
            self.wait_for_chain(remove, |chains| &chains.user_applies, users, EdgeReason::Released);
        } else {
            self.released_by_some(at);
        }
    }

    /// R6: the usual order for recorded dependencies with the fallback. It is implied for an object that still depends
    /// on the other: it waits for the new object, which waits for the destroy of the old one.
    fn fallback_dependencies(&mut self, at: u32) {
        let relations = self.relations;
        if !relations.has_apply(at) || !self.decisions.has_fallbacks() {
            return;
        }
        for &to in relations.used.of(at) {
            if !(relations.has_apply(to) && relations.wants.has(at, to)) {
                let make = relations.apply[at as usize];
                self.wait_for_chain(make, |chains| &chains.fallback_removals, &[to], EdgeReason::ReleaseFallback);
            }
        }
    }

    /// The released case of R5 with separate edges, for an object that still has dependents.
    fn released_by_some(&mut self, at: u32) {
        let relations = self.relations;
        if !relations.has_removed_dependency_above[at as usize] {
            return;
        }
        for user in self.former_users(at) {
            // If one former dependent depends on the other, the edge to the first implies the edge to the second.
            let mut above = relations.wanters.of(user).iter();
            if !above.any(|&other| relations.has_apply(other) && self.released_by.has(other)) {
                let (remove, make) = (relations.remove[at as usize], relations.apply[user as usize]);
                self.builder.wait(remove, make, EdgeReason::Released, !relations.used.has(user, at));
            }
        }
    }

    /// Returns the recorded dependents of an object that no longer depend on it. The search stops at
    /// - a dependent without removed dependencies above it: all its dependents still depend on `at`;
    /// - a dependent that is destroyed without the fallback: its destroy waits for its former dependents, and `at` is
    ///   destroyed after it (R2).
    fn former_users(&mut self, at: u32) -> Vec<u32> {
        let relations = self.relations;
        let mut found = Vec::new();
        let mut knows_wanting = false;
        self.released_by.restart();
        self.above.restart();
        self.above.push(relations.users.of(at));
        while let Some(user) = self.above.stack.pop() {
            let place = self.decisions.wants_places();
            let close = (!knows_wanting).then(|| self.search.reaches(&relations.wants, place, user, at));
            let wants_it = close.flatten().unwrap_or_else(|| {
                if !knows_wanting {
                    self.wanting.reachable(&relations.wanters, relations.wanters.of(at));
                    knows_wanting = true;
                }
                self.wanting.has(user)
            });
            if !wants_it {
                self.released_by.visit(user);
                found.push(user);
            }
            let is_covered = relations.has_remove(user) && !self.decisions.is_fallback(user);
            if !(wants_it && (is_covered || !relations.has_removed_dependency_above[user as usize])) {
                self.above.push(relations.users.of(user));
            }
        }
        found
    }

    /// R7.
    fn deposed_step(&mut self, number: usize) {
        let relations = self.relations;
        let left = &relations.deposed[number];
        let at = left.object as usize;
        if !left.is_planned {
            for (make, step) in [(true, relations.apply[at]), (false, relations.remove[at])] {
                let is_planned =
                    if make { relations.has_apply(left.object) } else { relations.has_remove(left.object) };
                if is_planned {
                    self.builder.wait(step, left.node, EdgeReason::StepRunning, false);
                }
            }
            return;
        }
        self.builder.wait(left.node, relations.apply[at], EdgeReason::SuccessorFirst, false);
        if relations.objects[at].remove == Presence::Running {
            self.builder.wait(left.node, relations.remove[at], EdgeReason::StepRunning, false);
        }
        for &(object, node) in &relations.running_deposed {
            if object == left.object {
                self.builder.wait(left.node, node, EdgeReason::StepRunning, false);
            }
        }
        self.wait_for_chain(left.node, |chains| &chains.used, &left.used, EdgeReason::DeposedDestroyedLater);
        match self.decisions.mode(number) {
            DeposedMode::Chained => {
                let (users, reason) = (relations.users.of(left.object), EdgeReason::DependentOfSuccessorFirst);
                self.wait_for_chain(left.node, |chains| &chains.user_changes, users, reason);
                self.wait_for_chain(left.node, |chains| &chains.removals, users, reason);
                self.wait_for_deposed(
                    left.node,
                    relations.deposed_users.of(left.object),
                    EdgeReason::DeposedDestroyedFirst,
                );
            }
            DeposedMode::Individual => self.deposed_step_individually(number),
        }
    }

    /// The last part of R7 with its exceptions, for a deposed object that would be in a cycle without them.
    fn deposed_step_individually(&mut self, number: usize) {
        let relations = self.relations;
        let left = &relations.deposed[number];
        let used_by_it = self.search.reachable(&relations.used, &left.used);
        let mut is_used_by_it = vec![false; relations.objects.len()];
        for object in used_by_it {
            is_used_by_it[object as usize] = true;
        }
        let users = self.search.reachable(&relations.users, relations.users.of(left.object));
        for &user in users.iter().filter(|&&user| !is_used_by_it[user as usize] && user != left.object) {
            for step in [relations.change(user), relations.remove[user as usize]] {
                if !self.decisions.is_dropped(left.node, step) {
                    let indirect = !relations.used.has(user, left.object);
                    self.builder.wait(left.node, step, EdgeReason::DependentOfSuccessorFirst, indirect);
                }
            }
        }
        for user in users.into_iter().chain([left.object]) {
            for &other in relations.deposed_users.of(user) {
                let other = &relations.deposed[other as usize];
                if !is_used_by_it[other.object as usize] && !self.decisions.is_dropped(left.node, other.node) {
                    self.builder.wait(left.node, other.node, EdgeReason::DeposedDestroyedFirst, user != left.object);
                }
            }
        }
    }
}

/// Adds the edges of R10 to a graph without cycles: a change that a driver refuses as things are now runs after the steps
/// that may resolve that, unless that would cause a cycle.
pub fn add_remedies(relations: &Relations<'_>, builder: &mut GraphBuilder) {
    let remedies = remedies(relations);
    if remedies.is_empty() {
        return;
    }
    let mut order = Incremental::new(&builder.adjacency());
    for (from, to) in remedies {
        if order.add(from, to) {
            builder.wait(from, to, EdgeReason::RemedyFirst, false);
        }
    }
}

/// The first step of each refused change, with each step of its remedies. The first step of a destroy-before-create
/// replacement is the destroy of the old object.
fn remedies(relations: &Relations<'_>) -> Vec<(u32, u32)> {
    let mut pairs = Vec::new();
    for (object, at) in relations.objects.iter().zip(0_u32..) {
        let (apply, remove) = (relations.apply[at as usize], relations.remove[at as usize]);
        let first = if remove == NONE || relations.creates_first(at) { apply } else { remove };
        for &to in &object.remedies {
            pairs.extend([(first, relations.apply[to as usize]), (first, relations.remove[to as usize])]);
        }
    }
    pairs.retain(|&(from, to)| from != NONE && to != NONE);
    pairs
}
