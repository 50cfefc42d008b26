//! R1 to R8, drawn once for a given set of choices. A record-only step orders nothing but records: of these rules R1,
//! R3, R5 and the part of R7 about an object's own leftovers apply to it.
//!
//! Each function draws one rule and says what it may leave out because other rules imply it. Nothing is implied
//! through a running step, which waits for nothing: hence the questions whether a step is planned.

use super::choices::{Choices, Mode};
use super::draft::Draft;
use super::topology::{NONE, Search};
use super::world::World;
use super::{Because, Presence};

/// Draws every edge of R1 to R8.
pub(super) fn draw(world: &World<'_>, choices: &Choices) -> Draft {
    let mut draft = Draft::new(world.steps.len());
    let chains = Chains::new(world, choices, &mut draft);
    let [search, above, wanting, letting_go] = [(); 4].map(|()| Search::new(world.objects.len()));
    let mut rules = Rules { world, choices, chains, draft, search, above, wanting, letting_go };
    for at in 0..world.objects.len() as u32 {
        rules.references(at);
        rules.replacement(at);
        rules.dependents_go_first(at);
        rules.dependents_go_before_changes(at);
        rules.dependents_change_before_it_goes(at);
        rules.dependencies_that_fell_back(at);
    }
    for left in 0..world.leftovers.len() {
        rules.leftover(left);
    }
    let searches = [&rules.search, &rules.above, &rules.wanting, &rules.letting_go];
    rules.draft.visits = searches.map(|search| search.visits).iter().sum();
    rules.draft
}

/// Pass-through nodes: for each object the one node that stands for a whole closure.
struct Chains {
    /// `C` of the object and of all that it wants.
    wanted: Vec<u32>,
    /// `C` of the object and of all that it used, but for record-only steps.
    used: Vec<u32>,
    /// `D` of the object, of all that used it, and of leftovers that used any of these.
    going: Vec<u32>,
    /// The same without objects that go late, and without leftovers, which always do.
    going_early: Vec<u32>,
    /// `C` of the object and of all that used it.
    moving: Vec<u32>,
    /// The same but for record-only steps.
    changing: Vec<u32>,
    /// `D` of the object and of all that it used, of those that fell back.
    fallen: Vec<u32>,
}

impl Chains {
    fn new(world: &World<'_>, choices: &Choices, draft: &mut Draft) -> Self {
        let count = world.objects.len();
        let onward = |chain: &[u32], next: &[u32], found: &mut Vec<u32>| {
            found.extend(next.iter().map(|&object| chain[object as usize]));
        };
        let wanted = draft.chain(world.wants_order.iter(), count, |at, chain, found| {
            found.push(world.make[at as usize]);
            if !world.makes(at) {
                if !world.creates_first(at) {
                    // The second case of R5, which `C(x)` would imply: the old object is on its way out.
                    found.push(world.remove[at as usize]);
                }
                onward(chain, world.wants.of(at), found);
            }
        });
        let used = draft.chain(world.used_order.iter(), count, |at, chain, found| {
            found.push(world.change(at));
            if !(world.changes(at) && world.keeps_all_used[at as usize]) {
                onward(chain, world.used.of(at), found);
            }
        });
        let going = draft.chain(world.used_order.iter().rev(), count, |at, chain, found| {
            found.push(world.remove[at as usize]);
            if !world.removes(at) {
                found.extend(world.leftover_users.of(at).iter().map(|&left| world.leftovers[left as usize].node));
                onward(chain, world.users.of(at), found);
            }
        });
        let going_early = draft.chain(world.used_order.iter().rev(), count, |at, chain, found| {
            let goes_early = !choices.goes_late(world, at);
            if goes_early {
                found.push(world.remove[at as usize]);
            }
            if !(goes_early && world.removes(at)) {
                onward(chain, world.users.of(at), found);
            }
        });
        let above = |at: u32, only_changes: bool, chain: &[u32], found: &mut Vec<u32>| {
            if !choices.waits_for_all_above(world, at) {
                let counts = |user: u32| if only_changes { world.changes(user) } else { world.makes(user) };
                // Whoever stands above, and has a step, waits for what it still wants.
                let is_implied = world.users.of(at).iter().any(|&user| counts(user) && world.wants.has(user, at));
                if !is_implied {
                    found.push(if only_changes { world.change(at) } else { world.make[at as usize] });
                }
                onward(chain, world.users.of(at), found);
            }
        };
        let upwards = || world.used_order.iter().rev();
        let moving = draft.chain(upwards(), count, |at, chain, found| above(at, false, chain, found));
        let for_leftovers = upwards().filter(|_| !world.leftovers.is_empty());
        let changing = draft.chain(for_leftovers, count, |at, chain, found| above(at, true, chain, found));
        let fallen = draft.chain(world.used_order.iter().filter(|_| choices.has_any_fallen_back()), count, {
            |at, chain, found| {
                if choices.has_fallen_back(at) {
                    found.push(world.remove[at as usize]);
                }
                onward(chain, world.used.of(at), found);
            }
        });
        Self { wanted, used, going, going_early, moving, changing, fallen }
    }
}

struct Rules<'a> {
    world: &'a World<'a>,
    choices: &'a Choices,
    chains: Chains,
    draft: Draft,
    search: Search,
    above: Search,
    wanting: Search,
    letting_go: Search,
}

impl Rules<'_> {
    /// Waits for the node of each object in a chain; one that stands for another object is an indirect relation.
    fn wait_for_chain(&mut self, from: u32, chain: fn(&Chains) -> &[u32], objects: &[u32], because: Because) {
        for &object in objects {
            let to = chain(&self.chains)[object as usize];
            let own = self.world.steps.get(to as usize).is_some_and(|step| step.object == object);
            self.draft.wait(from, to, because, !own);
        }
    }

    /// Waits for steps of leftovers.
    fn wait_for_leftovers(&mut self, from: u32, leftovers: &[u32], because: Because) {
        for &left in leftovers {
            self.draft.wait(from, self.world.leftovers[left as usize].node, because, false);
        }
    }

    /// R1.
    fn references(&mut self, at: u32) {
        let world = self.world;
        if world.makes(at) {
            let make = world.make[at as usize];
            self.wait_for_chain(make, |chains| &chains.wanted, world.wants.of(at), Because::References);
        }
    }

    /// R3, and what a running step makes of it.
    fn replacement(&mut self, at: u32) {
        let (make, remove) = (self.world.make[at as usize], self.world.remove[at as usize]);
        if make == NONE || remove == NONE {
            return;
        }
        match (self.world.makes(at), self.world.removes(at)) {
            (true, true) if self.world.creates_first(at) => {
                self.draft.wait(remove, make, Because::NewComesFirst, false);
            }
            (true, true) => self.draft.wait(make, remove, Because::OldGoesFirst, false),
            (true, false) => self.draft.wait(make, remove, Because::StepRunning, false),
            (false, true) => self.draft.wait(remove, make, Because::StepRunning, false),
            (false, false) => {}
        }
    }

    /// R2, and the same for leftovers that used the object (R7).
    fn dependents_go_first(&mut self, at: u32) {
        let world = self.world;
        if world.removes(at) {
            let remove = world.remove[at as usize];
            self.wait_for_chain(remove, |chains| &chains.going, world.users.of(at), Because::DependentsGoFirst);
            self.wait_for_leftovers(remove, world.leftover_users.of(at), Because::LeftoverGoesFirst);
        }
    }

    /// R4, and R6 where it lets released objects go late.
    fn dependents_go_before_changes(&mut self, at: u32) {
        let world = self.world;
        let goes_late = self.choices.goes_late(world, at);
        // A delete-first replacement waits for its own destroy, and that one for every dependent's. What the object
        // still wants waits for all that go above it, and so for all above the object.
        let has_base = world.wants.of(at).iter().any(|&to| world.changes(to) && world.used.has(at, to));
        if world.changes(at) && (goes_late || !world.removes(at)) && !has_base {
            let make = world.make[at as usize];
            self.wait_for_chain(make, |chains| &chains.going_early, world.users.of(at), Because::DependentGoesFirst);
        }
        // A create-first replacement has its own creation first, which waits for all that it still wants.
        let is_implied = world.makes(at) && world.keeps_all_used[at as usize];
        if goes_late && world.removes(at) && !is_implied {
            let remove = world.remove[at as usize];
            self.wait_for_chain(remove, |chains| &chains.used, world.used.of(at), Because::DependencyChangesFirst);
        }
    }

    /// R5. Its second case is implied by R1 and R3, or drawn with the chain of what is wanted.
    fn dependents_change_before_it_goes(&mut self, at: u32) {
        let world = self.world;
        if !world.removes(at) {
            return;
        }
        let remove = world.remove[at as usize];
        let users = world.users.of(at);
        if world.creates_first(at) {
            self.wait_for_chain(remove, |chains| &chains.moving, users, Because::DependentMovesFirst);
        } else if self.choices.has_fallen_back(at) {
            // Drawn with those that used it.
        } else if world.is_released_by_all(at) {
            self.wait_for_chain(remove, |chains| &chains.moving, users, Because::Released);
        } else {
            self.released_by_some(at);
        }
    }

    /// R6: the classic order of what the object used and what fell back. To draw it for an object that still wants
    /// the other says nothing new: it waits for the new one, and that for the end of the old one. So does an object
    /// whose dependency is drawn for.
    fn dependencies_that_fell_back(&mut self, at: u32) {
        let world = self.world;
        if !world.makes(at) || !self.choices.has_any_fallen_back() {
            return;
        }
        for &to in world.used.of(at) {
            if !(world.makes(to) && world.wants.has(at, to)) {
                let make = world.make[at as usize];
                self.wait_for_chain(make, |chains| &chains.fallen, &[to], Because::FellBack);
            }
        }
    }

    /// The released case of R5, one dependent after the other, for an object that some still want.
    fn released_by_some(&mut self, at: u32) {
        let world = self.world;
        if !world.is_dropped_above[at as usize] {
            return;
        }
        for user in self.who_let_go(at) {
            // Of two that let go, of which one wants the other, the edge to the one implies that to the other.
            let mut above = world.wanters.of(user).iter();
            if !above.any(|&other| world.makes(other) && self.letting_go.has(other)) {
                let (remove, make) = (world.remove[at as usize], world.make[user as usize]);
                self.draft.wait(remove, make, Because::Released, !world.used.has(user, at));
            }
        }
    }

    /// Those that used the object and do not want it, from the object up. Nothing is to be found above
    /// - an object that wants it still and above which no reference was dropped: all above want it still as well;
    /// - an object that wants it still and is itself destroyed, and has not fallen back: whoever above has let go of
    ///   `at` has let go of that object too, whose own destroy waits for it, and `at` goes after that destroy (R2).
    fn who_let_go(&mut self, at: u32) -> Vec<u32> {
        let world = self.world;
        let mut found = Vec::new();
        let mut knows_wanting = false;
        self.letting_go.restart();
        self.above.restart();
        self.above.push(world.users.of(at));
        while let Some(user) = self.above.stack.pop() {
            let place = self.choices.wants_places();
            let close = (!knows_wanting).then(|| self.search.reaches(&world.wants, place, user, at));
            let wants_it = close.flatten().unwrap_or_else(|| {
                if !knows_wanting {
                    self.wanting.reachable(&world.wanters, world.wanters.of(at));
                    knows_wanting = true;
                }
                self.wanting.has(user)
            });
            if !wants_it {
                self.letting_go.visit(user);
                found.push(user);
            }
            let is_covered = world.removes(user) && !self.choices.has_fallen_back(user);
            if !(wants_it && (is_covered || !world.is_dropped_above[user as usize])) {
                self.above.push(world.users.of(user));
            }
        }
        found
    }

    /// R7.
    fn leftover(&mut self, number: usize) {
        let world = self.world;
        let left = &world.leftovers[number];
        let at = left.object as usize;
        if !left.is_planned {
            for (make, step) in [(true, world.make[at]), (false, world.remove[at])] {
                let is_planned = if make { world.makes(left.object) } else { world.removes(left.object) };
                if is_planned {
                    self.draft.wait(step, left.node, Because::StepRunning, false);
                }
            }
            return;
        }
        self.draft.wait(left.node, world.make[at], Because::SuccessorFirst, false);
        if world.objects[at].remove == Presence::Running {
            self.draft.wait(left.node, world.remove[at], Because::StepRunning, false);
        }
        for &(object, node) in &world.running_leftovers {
            if object == left.object {
                self.draft.wait(left.node, node, Because::StepRunning, false);
            }
        }
        self.wait_for_chain(left.node, |chains| &chains.used, &left.used, Because::LeftoverGoesLater);
        match self.choices.mode(number) {
            Mode::Chained => {
                let (users, because) = (world.users.of(left.object), Because::DependentOfSuccessorFirst);
                self.wait_for_chain(left.node, |chains| &chains.changing, users, because);
                self.wait_for_chain(left.node, |chains| &chains.going, users, because);
                self.wait_for_leftovers(left.node, world.leftover_users.of(left.object), Because::LeftoverGoesFirst);
            }
            Mode::OneByOne => self.leftover_one_by_one(number),
        }
    }

    /// The last part of R7 with its exceptions, for a leftover that stands in a ring when they are ignored.
    fn leftover_one_by_one(&mut self, number: usize) {
        let world = self.world;
        let left = &world.leftovers[number];
        let used_by_it = self.search.reachable(&world.used, &left.used);
        let mut is_used_by_it = vec![false; world.objects.len()];
        for object in used_by_it {
            is_used_by_it[object as usize] = true;
        }
        let users = self.search.reachable(&world.users, world.users.of(left.object));
        for &user in users.iter().filter(|&&user| !is_used_by_it[user as usize] && user != left.object) {
            for step in [world.change(user), world.remove[user as usize]] {
                if !self.choices.is_dropped(left.node, step) {
                    let indirect = !world.used.has(user, left.object);
                    self.draft.wait(left.node, step, Because::DependentOfSuccessorFirst, indirect);
                }
            }
        }
        for user in users.into_iter().chain([left.object]) {
            for &other in world.leftover_users.of(user) {
                let other = &world.leftovers[other as usize];
                if !is_used_by_it[other.object as usize] && !self.choices.is_dropped(left.node, other.node) {
                    self.draft.wait(left.node, other.node, Because::LeftoverGoesFirst, user != left.object);
                }
            }
        }
    }
}
