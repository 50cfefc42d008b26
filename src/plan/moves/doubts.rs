//! What annotations say that cannot be, or that is doubtful: instead of destroying what may have been meant, it is held.

use std::sync::Arc;

use super::{Held, LET_GO, Search, lives};
use crate::load::Instance;
use crate::model::suggest::is_near;
use crate::model::{Address, Diagnostic, Reason};

impl Search<'_> {
    /// Who has an object, and says that it was another one, which nobody wants: one of them is not what was meant. When the
    /// object came from a place that the annotation names, all that it names were names of this object: the
    /// annotation stays when it was followed, and what has an old name now has nothing to do with it.
    pub(super) fn keep_named(&mut self) {
        let named =
            |(_, instance): &(&Address, &Arc<Instance>)| !instance.moved_from.is_empty() && instance.is_wanted();
        for (address, instance) in self.config.instances.iter().filter(named) {
            let arrives = self.found.moves.iter().find(|one| one.to == *address && !one.back).map(|one| &one.from);
            let Some(own) = self.record(address).or_else(|| self.record(arrives?)) else { continue };
            let is_named = |old: &Address| instance.moved_from.iter().any(|named| named.name == old.name);
            if own.came_from.iter().chain(arrives).any(is_named) {
                continue;
            }
            for from in self.named(address, &instance.moved_from) {
                let leaves = self.record(&from).is_some_and(|record| record.moving_to.is_none());
                let moves = self.found.moves.iter().any(|one| one.from == from);
                if leaves && !moves && !lives(self.config, &from) && !self.found.held.contains_key(&from) {
                    let message = format!(
                        "`{address}` says that it was this object, and has one of its own: it stays until that is \
                         settled (hint: remove the annotation `purlin.dev/moved-from` to let it go, or run `purlin \
                         state rm {address}` to move it there)"
                    );
                    self.hold(&from, Reason::MoveBlocked, message);
                }
            }
        }
    }

    /// What was never recorded under the name that it is said to have had. That is what an annotation says wherever its
    /// manifest is applied for the first time, so nothing is said of it; but not when something of its type is about
    /// to go. If that has nearly the name, the annotation may be misspelt: then nothing is made and nothing destroyed.
    pub(super) fn doubt_names(&mut self) {
        let mut doubts: Vec<(Address, String)> = Vec::new();
        for address in &self.in_vain {
            let Some(instance) = self.config.instances.get(address) else { continue };
            // What got other keys, or comes to a family that has objects, was not misnamed.
            let is_meant = |x: &Address| x.name == address.name || instance.moved_from.iter().any(|n| n.name == x.name);
            let known = self.recorded.iter().filter(|(_, stored)| stored.record.has_objects()).map(|(x, _)| x);
            if known.chain(self.found.moves.iter().map(|one| &one.from)).any(is_meant) {
                continue;
            }
            let moves = |x: &Address| self.found.moves.iter().any(|one| one.from == *x || one.to == *x);
            let goes = |x: &Address| !lives(self.config, x) && !self.found.held.contains_key(x) && !moves(x);
            let leaving = self.recorded.iter().filter(|(x, stored)| {
                stored.record.has_objects() && stored.record.type_name == instance.type_name && goes(x)
            });
            let leaving: Vec<&Address> = leaving.map(|(x, _)| x).collect();
            let near = |named: &&Address| leaving.iter().any(|x| is_near(&named.name, &x.name));
            if let Some(named) = instance.moved_from.iter().find(near) {
                for from in leaving.iter().filter(|x| is_near(&named.name, &x.name)) {
                    let why = format!("`{address}` says that it was `{named}`, of which there is no record");
                    let kept = format!("{why}, and may mean this one: it stays until that is settled (hint: {LET_GO})");
                    doubts.push(((*from).clone(), kept));
                    let hint = "correct the annotation `purlin.dev/moved-from`, or remove it to make a new object";
                    doubts.push((address.clone(), format!("{why}; did you mean `{from}`? (hint: {hint})")));
                }
            } else if let Some(first) = leaving.first() {
                let names: Vec<String> = instance.moved_from.iter().map(|named| format!("`{named}`")).collect();
                let what = format!("there is no record of {}, so nothing is moved here", names.join(", "));
                let others = format!("`{first}`, of the same type, is not wanted any more");
                let hint = "correct the annotation `purlin.dev/moved-from` when that one was meant";
                let warning = Diagnostic::warning(address, Reason::MoveBlocked, what).because(others).hint(hint);
                self.found.diagnostics.push(warning);
            }
        }
        for (address, message) in doubts {
            self.found.held.entry(address).or_insert(Held { reason: Reason::MoveBlocked, message });
        }
    }
}
