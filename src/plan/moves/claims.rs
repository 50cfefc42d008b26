//! Who says that it was what: of several nobody is believed.

use std::sync::Arc;

use super::{Conversion, Move, Search, lives};
use crate::load::{Expansion, Family, Instance};
use crate::model::{Address, InstanceKey, Reason, of_name};
use crate::plan::{Held, Mode};

/// Who says that it was somewhere else before. It says so as long as its manifest is there, also while nothing can be
/// moved to it: otherwise somebody else gets the object meanwhile, and it makes another one afterwards.
pub(super) struct Claim {
    pub to: Address,
    pub uid: Arc<str>,
    /// By the annotation.
    pub explicit: bool,
    /// Nothing stands in the way. Of what cannot be moved the object is held, and that says why.
    pub possible: bool,
    /// It is of another type there.
    pub conversion: Option<Arc<Conversion>>,
}

impl Claim {
    /// By the annotation of a Resource, with nothing in the way.
    pub fn by(instance: &Instance) -> Self {
        let (to, uid) = (instance.address.clone(), instance.uid.clone());
        Self { to, uid, explicit: true, possible: true, conversion: None }
    }
}

impl Search<'_> {
    pub(super) fn claim(&mut self, from: &Address, claim: Claim) {
        let claims = self.claims.entry(from.clone()).or_default();
        // An annotation that nobody can read may name an object in two ways.
        if !claims.iter().any(|known| known.explicit && known.to == claim.to) {
            claims.push(claim);
        }
    }

    /// Whoever claims an object alone gets it. When several do, nobody does: a wrong guess would destroy it.
    pub(super) fn settle_claims(&mut self) {
        let is_told = |(_, claims): &(&Address, &mut Vec<Claim>)| {
            let mut explicit = claims.iter().filter(|claim| claim.explicit);
            explicit.next().is_some_and(|one| one.possible) && explicit.next().is_none()
        };
        loop {
            let mut passed = Vec::new();
            for (from, claims) in self.claims.iter_mut().filter(is_told) {
                let given_up = claims.extract_if(.., |claim| !claim.explicit);
                passed.extend(given_up.map(|claim| (claim.to, from.clone())));
            }
            if passed.is_empty() {
                break;
            }
            // Whoever took it for granted looks for what it is told of.
            for (to, from) in passed {
                self.passed.insert((to.clone(), from));
                if let Some(instance) = self.config.instances.get(&to) {
                    self.look_for(&to, instance);
                }
            }
        }
        for (from, claims) in std::mem::take(&mut self.claims) {
            self.settle(from, claims);
        }
    }

    fn settle(&mut self, from: Address, claims: Vec<Claim>) {
        let explicit = || claims.iter().filter(|claim| claim.explicit);
        if explicit().count() > 1 {
            let mut names: Vec<String> = explicit().map(|claim| format!("`{}`", claim.to)).collect();
            names.sort();
            let message = format!(
                "`{from}` is to be moved to {}; only one of them can be what it was (hint: leave the annotation \
                 `purlin.dev/moved-from` to that one)",
                names.join(" and ")
            );
            for address in claims.iter().map(|claim| &claim.to).chain([&from]) {
                self.hold(address, Reason::MoveBlocked, message.clone());
            }
        } else if let Some(first) = explicit().find(|claim| !claim.possible) {
            // It is held there, and here only who would have taken it for granted.
            for other in claims.iter().filter(|claim| !claim.explicit) {
                let message = format!("`{from}` is to be moved to `{}`, so it is not moved here", first.to);
                self.hold(&other.to, Reason::MoveBlocked, message);
            }
        } else if let Some(Claim { to, uid, conversion, .. }) = claims.into_iter().find(|claim| claim.possible) {
            self.found.moves.push(Move { from, to, uid, back: false, conversion });
        }
    }

    /// While it is not known which instances a family has, nobody can tell what of the objects that are to be moved
    /// to it is still wanted.
    pub(super) fn hold_for(&mut self, family: &Family) {
        let shared = &family.shared;
        // Any of its objects would be protected, or kept.
        let keeps = shared.prevent_destroy || shared.prevent_destroy_when.is_some() || shared.keeps_object();
        let concerns = match self.options.mode {
            Mode::Normal => true,
            Mode::Destroy => keeps,
            Mode::RefreshOnly => false,
        };
        if !concerns || !shared.is_wanted() || matches!(family.expansion, Expansion::Known(_)) {
            return;
        }
        let (recorded, to) = (self.recorded, &family.shared.address);
        let was_followed = self.was_followed(shared);
        for from in family.shared.moved_from.iter() {
            let all = of_name(recorded, &from.name).map(|(address, _)| address);
            for address in all.filter(|address| from.key == InstanceKey::None || *address == from) {
                if lives(self.config, address) {
                    continue;
                }
                let message =
                    format!("it is to be moved to `{to}`, of which it is not known which objects it stands for");
                let held = Held { reason: Reason::MoveBlocked, message };
                self.found.held.entry(address.clone()).or_insert(held);
                if !was_followed {
                    self.claim(address, Claim { possible: false, ..Claim::by(&family.shared) });
                }
            }
        }
    }

    /// Holds whatever an annotation may have meant that cannot be read.
    pub(super) fn keep_all_named(&mut self, instance: &Instance) {
        let (recorded, address) = (self.recorded, &instance.address);
        for from in instance.moved_from.iter() {
            let all = of_name(recorded, &from.name).map(|(address, _)| address);
            for found in all.filter(|found| !lives(self.config, found)) {
                let why = format!("`{address}` seems to say that it was `{found}`, in a way that nobody can read");
                self.keep(found, &why);
                if self.record(address).is_none() {
                    self.claim(found, Claim { possible: false, ..Claim::by(instance) });
                }
            }
        }
    }
}
