//! Holds the destroys of objects that are still in use.
//!
//! An object keeps its dependencies in use when it is blocked, when it is desired, or when its own destroy is held.
//! From there, every destroy is held along recorded dependencies, also through unchanged or changing objects that still
//! have the reference.

use crate::plan::decision::{Block, Decision};
use crate::plan::destroys::all_destroys_held;
use crate::plan::input::{Id, Node, PlanInput};
use model::{Action, Diagnostic, Lifecycle, ObjectStatus, Reason, RecordedObject, Severity, Words};

/// How many dependents a message names.
const USERS_SHOWN: usize = 3;

/// Returns the replacements that must be blocked completely, and whether anything was held.
pub fn hold(input: &PlanInput<'_>, decisions: &mut [Option<Decision>]) -> (Vec<(Id, Block)>, bool) {
    let mut changed = hold_deposed_of_blocked(input, decisions);
    let mut search = Search { input, user: vec![None; decisions.len()], waits: false, open: Vec::new() };
    let mut blocks = Vec::new();
    // Objects that only wait come last, so that they are reported only if nothing else keeps the object in use.
    for waits in [false, true] {
        search.waits = waits;
        for id in 0..decisions.len() {
            let only_waits = decisions[id].as_ref().is_some_and(only_waits);
            if only_waits == waits {
                search.start_from(id, decisions);
            }
        }
        while let Some(id) = search.open.pop() {
            changed |= search.visit(id, decisions, &mut blocks);
        }
    }
    changed |= !blocks.is_empty();
    (blocks, changed)
}

/// Whether an object is blocked only until another change of this plan is applied, or held by such an object.
fn only_waits(decision: &Decision) -> bool {
    decision.block.as_deref().is_some_and(|block| {
        let waits = matches!(block.reason(), Reason::DependencyNotReady | Reason::InUse);
        waits && block.cause().severity == Severity::Warning
    })
}

struct Search<'s, 'a> {
    input: &'s PlanInput<'a>,
    /// The dependent because of which the destroys of each object are held.
    user: Vec<Option<Id>>,
    /// Whether this pass starts from objects that only wait.
    waits: bool,
    open: Vec<Id>,
}

impl Search<'_, '_> {
    /// Adds the objects that an object keeps in use.
    fn start_from(&mut self, id: Id, decisions: &mut [Option<Decision>]) {
        if self.input.is_junction(id) {
            return;
        }
        let node = self.input.nodes[id];
        let Some(decision) = &mut decisions[id] else { return };
        if let Some(running) = self.input.running.get(&id) {
            // While its step runs, the object has its old and its new dependencies.
            let recorded = running.recorded.as_ref();
            let new: Vec<Id> = recorded.map(|object| self.input.deposed_dependencies(id, object)).unwrap_or_default();
            self.reach(id, self.input.recorded_dependencies.of(id).chain(new));
        } else if decision.is_blocked() {
            self.reach(id, self.input.recorded_dependencies.of(id));
        } else if decision.action == Action::Replace && decision.create_first && decision.hold_destroy.is_none() {
            decision.hold_destroy = all_destroys_held(self.input, node).map(Box::new);
        }
        let living = node.current().is_some() || decision.changes_object();
        if node.desired && living {
            // Only recorded dependencies that are still referenced and being deleted: other dependencies are kept
            // anyway, and a new reference targets the successor of the deleted object.
            let input = self.input;
            let leaving = input.dependencies.of(id).filter(|target| !input.nodes[*target].desired);
            self.reach(id, leaving.filter(|target| input.recorded_dependencies.of(id).any(|used| used == *target)));
        }
        for deposed in decision.deposed.iter().filter(|deposed| deposed.block.is_some()) {
            self.reach(id, self.input.deposed_dependencies(id, &deposed.object));
        }
        if decision.hold_destroy.is_some() {
            self.reach(id, self.input.recorded_dependencies.of(id));
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

    /// Holds every destroy of an object, and continues with its recorded dependencies.
    fn visit(&mut self, id: Id, decisions: &mut [Option<Decision>], blocks: &mut Vec<(Id, Block)>) -> bool {
        let Some(user) = self.user[id] else { return false };
        if self.input.is_junction(id) {
            self.reach(user, self.input.recorded_dependencies.of(id));
            return false;
        }
        let (mut changed, mut stays) = (false, false);
        let block = self.in_use_block(id, user, decisions);
        let current = self.input.nodes[id].current();
        if let Some(decision) = decisions[id].as_mut() {
            let is_running = self.input.running.contains_key(&id);
            stays = is_running || decision.is_blocked() || decision.removes() || decision.action == Action::Replace;
            let destroys = decision.removes() && current.is_some();
            if is_running {
                // Its running step cannot be held, but its deposed objects can.
            } else if destroys {
                decision.block(block.clone(), current);
                changed = true;
            } else if decision.action == Action::Replace && !decision.create_first {
                blocks.push((id, block.clone()));
            } else if decision.action == Action::Replace && decision.hold_destroy.is_none() {
                // No error: a later apply without this selection destroys the old object.
                let mut block = block.clone();
                if !self.input.is_selected(user) {
                    block.diagnostics.iter_mut().for_each(|diagnostic| diagnostic.severity = Severity::Warning);
                }
                decision.hold_destroy = Some(Box::new(block));
                changed = true;
            }
            for deposed in decision.deposed.iter_mut().filter(|deposed| deposed.removes()) {
                if !self.input.running_deposed.contains_key(&(id, deposed.key)) {
                    deposed.block(block.clone());
                    changed = true;
                }
            }
        }
        let deposed = self.input.nodes[id].record.iter().flat_map(|record| record.deposed.values());
        let used_by_deposed: Vec<Id> = deposed.flat_map(|object| self.input.deposed_dependencies(id, object)).collect();
        self.reach(id, used_by_deposed);
        if stays {
            self.reach(id, self.input.recorded_dependencies.of(id));
        } else {
            self.reach(user, self.input.referenced_dependencies(id));
        }
        changed
    }

    /// Why a destroy is held, with a hint.
    fn in_use_block(&self, id: Id, user: Id, decisions: &[Option<Decision>]) -> Block {
        let input = self.input;
        let why = decisions[user].as_ref().and_then(|decision| decision.block.as_ref()).map(|block| block.reason());
        let user_address = input.address(user);
        let (user_text, deposed) = self.describe_user(user, id);
        if input.running.contains_key(&user) {
            let what = format!("in use by {user_text}, which has a running step");
            let waits = Diagnostic::warning(input.address(id), Reason::Waiting, what);
            return Block::held(waits).waiting_for([user]);
        }
        // Neither can come first, so the user must resolve it.
        let is_deleted = input.nodes[id].instance.is_some_and(|instance| instance.deleting);
        let is_replaced =
            decisions[id].as_ref().is_some_and(|decision| decision.action == Action::Replace && !decision.create_first);
        let deadlock = self.waits && (is_deleted || is_replaced) && self.waits_for(user, id, decisions);
        let (what, hint) = match why {
            Some(Reason::NotSelected) if input.is_of_other_source(user) => {
                let source = input.nodes[user].record.and_then(|record| record.source.as_deref());
                let source = source.map_or_else(String::new, |source| format!(" (`{source}`)"));
                (
                    format!("still used by {user_text}, which is from another source{source}"),
                    format!(
                        "specify the {} of `{user_address}` too, with another -f",
                        Words::of(user_address).source()
                    ),
                )
            }
            Some(Reason::NotSelected) => (
                format!("in use by {user_text}, which is not selected"),
                format!("select it too with `--target {user_address}`"),
            ),
            Some(_) if deadlock && is_deleted => {
                (format!("in use by {user_text}, which waits for its successor"), self.ways_out(id, &[user]))
            }
            Some(_) if deadlock => (
                format!("in use by {user_text}, which waits for this replacement"),
                format!(
                    "set {} so that the new object is created first, or remove the dependency of `{user_address}` until \
                     the replacement is done",
                    Words::of(input.address(id)).with(Lifecycle::CreateBeforeDestroy, true)
                ),
            ),
            Some(_) if self.waits => (
                format!("in use by {user_text}, which waits for a change that is not applied yet"),
                format!("no action is needed: it is destroyed after `{user_address}` has changed"),
            ),
            Some(reason) => (
                format!("in use by {user_text}, which is blocked: {reason}"),
                format!("resolve the problem that blocks `{user_address}` first"),
            ),
            None if deposed => (
                format!("in use by {user_text}"),
                format!("make sure that this deposed object of `{user_address}` can be destroyed first"),
            ),
            None if input.nodes[user].desired => {
                let users = self.living_users(id, user);
                let hint = self.ways_out(id, &users);
                let text = match (users.as_slice(), users.len().saturating_sub(USERS_SHOWN)) {
                    ([] | [_], _) => user_text,
                    (_, 0) => joined(&self.quoted(&users)),
                    (_, more) => {
                        let others = if more == 1 { "1 other".to_owned() } else { format!("{more} others") };
                        joined(&[self.quoted(&users[..USERS_SHOWN]), vec![others]].concat())
                    }
                };
                let deleted = if is_deleted { "the Resource is being deleted, but it is " } else { "" };
                (format!("{deleted}in use by {text}"), hint)
            }
            None => (format!("in use by {user_text}"), format!("wait until `{user_address}` is deleted")),
        };
        let mut diagnostic = Diagnostic::error(input.address(id), Reason::InUse, what).hint(hint);
        if self.waits && !deadlock {
            diagnostic.severity = Severity::Warning;
        }
        Block::held(diagnostic).waiting_for([user])
    }

    /// The desired objects that keep an object in use directly. `first` is one of them, or depends on it indirectly.
    fn living_users(&self, id: Id, first: Id) -> Vec<Id> {
        let input = self.input;
        let junction =
            input.junction(&input.address(id).stem).filter(|junction| input.members(*junction).contains(&id));
        let mut users: Vec<Id> = std::iter::once(id)
            .chain(junction)
            .flat_map(|target| input.dependents.of(target))
            .filter(|user| *user < input.objects && input.nodes[*user].desired)
            .filter(|user| input.recorded_dependencies.of(*user).any(|used| input.includes(used, id)))
            .collect();
        users.sort_unstable();
        users.dedup();
        if users.contains(&first) { users } else { vec![first] }
    }

    /// How a user resolves that an object in use cannot be destroyed.
    fn ways_out(&self, id: Id, users: &[Id]) -> String {
        let input = self.input;
        let remove = match users {
            [user] => format!("delete `{}` too, or remove its reference", input.address(*user)),
            _ => "delete them too, or remove their references".to_owned(),
        };
        let node = input.nodes[id];
        // Only in a cluster can a Resource be deleted while it is in use.
        if input.options.destroy_orphans || !node.instance.is_some_and(|instance| instance.deleting) {
            return remove;
        }
        let name = &node.address.stem;
        format!("{remove}; or, to keep `{name}`, run `purlin state release {name}` and apply its manifest again")
    }

    fn quoted(&self, objects: &[Id]) -> Vec<String> {
        objects.iter().map(|id| format!("`{}`", self.input.address(*id))).collect()
    }

    /// The dependent as messages name it, and whether only a deposed object of it has the dependency.
    fn describe_user(&self, user: Id, id: Id) -> (String, bool) {
        let input = self.input;
        let address = input.address(user);
        let mut used = input.recorded_dependencies.of(user).chain(input.dependencies.of(user));
        if used.any(|used| input.includes(used, id)) {
            return (format!("`{address}`"), false);
        }
        for (key, object) in input.nodes[user].record.iter().flat_map(|record| &record.deposed) {
            if input.deposed_dependencies(user, object).into_iter().any(|used| input.includes(used, id)) {
                return (format!("`{address}` (deposed {key})"), true);
            }
        }
        (format!("`{address}` indirectly"), false)
    }

    /// Whether a blocked object waits, directly or indirectly, for a change of another one.
    fn waits_for(&self, user: Id, id: Id, decisions: &[Option<Decision>]) -> bool {
        let mut visited = vec![false; decisions.len()];
        let mut open = vec![user];
        while let Some(here) = open.pop() {
            if here == id || (self.input.is_junction(here) && self.input.members(here).any(|member| member == id)) {
                return true;
            }
            let block = decisions[here].as_ref().and_then(|decision| decision.block.as_ref());
            let next: Vec<Id> = match block {
                Some(block) => block.waiting_for.clone(),
                None => self.input.dependencies.of(here).collect(),
            };
            for next in next {
                if !std::mem::replace(&mut visited[next], true) {
                    open.push(next);
                }
            }
        }
        false
    }
}

/// Lists words as "`a`, `b` and `c`".
fn joined(words: &[String]) -> String {
    match words {
        [] => String::new(),
        [only] => only.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// Whether the deposed object must be kept until the postconditions of its successor are checked.
fn awaits_successor(node: Node<'_>, deposed: &RecordedObject) -> bool {
    let judged = node.instance.is_some_and(|instance| !instance.postconditions.is_empty());
    node.desired && judged && deposed.awaits_postconditions
}

/// Holds the deposed objects of a blocked object if nothing of it may be changed, or if they are the only working ones
/// because no complete current object exists. A deposed object that was never complete may always be destroyed. If
/// there are too many of them for a new object, all but the newest working one are destroyed.
fn hold_deposed_of_blocked(input: &PlanInput<'_>, decisions: &mut [Option<Decision>]) -> bool {
    let mut changed = false;
    for (id, decision) in decisions.iter_mut().enumerate() {
        let Some(decision) = decision.as_mut().filter(|decision| !decision.deposed.is_empty()) else { continue };
        let node = input.nodes[id];
        let Some(block) = decision.block.clone() else { continue };
        let gives_up = node.desired && !node.current().is_some_and(|object| object.status == ObjectStatus::Ready);
        let makes_room = block.reason() == Reason::TooManyDeposedObjects;
        let working = decision.deposed.iter().filter(|deposed| deposed.object.status == ObjectStatus::Ready);
        let newest = working.max_by_key(|deposed| (deposed.object.revision, deposed.key)).map(|deposed| deposed.key);
        for deposed in decision.deposed.iter_mut().filter(|deposed| deposed.removes()) {
            let works = deposed.object.status == ObjectStatus::Ready;
            let needed = gives_up && works && (!makes_room || newest == Some(deposed.key));
            if block.frozen || needed || awaits_successor(node, &deposed.object) {
                deposed.keep(node.address, &block);
                changed = true;
            }
        }
    }
    changed
}
