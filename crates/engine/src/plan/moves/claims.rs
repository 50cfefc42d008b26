//! Claims of Resources to recorded objects. Conflicting claims are all blocked.

use std::sync::Arc;

use super::{Conversion, Move, Search, is_desired};
use crate::load::{Expansion, Family, Instance, MovedFrom};
use crate::plan::ObjectBlock;
use model::{Address, InstanceKey, Reason, in_family};

/// The claim of an instance to the object of another address. A claim counts even while it cannot be fulfilled.
/// Otherwise another instance would get the object, and this one would create a new object later.
pub(super) struct Claim {
    pub to: Address,
    pub uid: Arc<str>,
    /// Made by `spec.moved` or the annotation.
    pub explicit: bool,
    /// The object can be moved. Otherwise it is blocked with the reason.
    pub possible: bool,
    /// Set if the object gets another type.
    pub conversion: Option<Arc<Conversion>>,
}

impl Claim {
    /// An explicit claim that can be fulfilled.
    pub fn explicit(instance: &Instance) -> Self {
        let (to, uid) = (instance.address.clone(), instance.uid.clone());
        Self { to, uid, explicit: true, possible: true, conversion: None }
    }
}

impl Search<'_> {
    pub(super) fn claim(&mut self, from: &Address, claim: Claim) {
        let claims = self.claims.entry(from.clone()).or_default();
        // A Resource may name an object in two ways.
        if !claims.iter().any(|known| known.explicit && known.to == claim.to) {
            claims.push(claim);
        }
    }

    /// A single claim to an object is fulfilled. If there are several, none is: a wrong guess would destroy the object.
    pub(super) fn resolve_claims(&mut self) {
        let is_claimed = |(_, claims): &(&Address, &mut Vec<Claim>)| {
            let mut explicit = claims.iter().filter(|claim| claim.explicit);
            explicit.next().is_some_and(|one| one.possible) && explicit.next().is_none()
        };
        loop {
            let mut passed = Vec::new();
            for (from, claims) in self.claims.iter_mut().filter(is_claimed) {
                let given_up = claims.extract_if(.., |claim| !claim.explicit);
                passed.extend(given_up.map(|claim| (claim.to, from.clone())));
            }
            if passed.is_empty() {
                break;
            }
            // An instance that loses an implied claim searches again.
            for (to, from) in passed {
                self.overridden.insert((to.clone(), from));
                if let Some(instance) = self.config.instances.get(&to) {
                    self.find_origin(&to, instance);
                }
            }
        }
        for (from, claims) in std::mem::take(&mut self.claims) {
            self.resolve_claim(from, claims);
        }
    }

    fn resolve_claim(&mut self, from: Address, claims: Vec<Claim>) {
        let explicit = || claims.iter().filter(|claim| claim.explicit);
        if explicit().count() > 1 {
            let mut names: Vec<String> = explicit().map(|claim| format!("`{}`", claim.to)).collect();
            names.sort();
            let mut fields: Vec<String> = explicit().filter_map(|claim| self.field_of(claim, &from)).collect();
            fields.sort();
            fields.dedup();
            let message = format!(
                "`{from}` is claimed by {} (hint: keep {} in only one of them)",
                names.join(" and "),
                fields.join(" or ")
            );
            for address in claims.iter().map(|claim| &claim.to).chain([&from]) {
                self.block(address, Reason::MoveBlocked, message.clone());
            }
        } else if let Some(first) = explicit().find(|claim| !claim.possible) {
            // The explicit claimant is blocked already. Block the implied claimants too.
            for other in claims.iter().filter(|claim| !claim.explicit) {
                let message = format!("`{from}` will be moved to `{}`, so it is not moved here", first.to);
                self.block(&other.to, Reason::MoveBlocked, message);
            }
        } else if let Some(Claim { to, uid, conversion, .. }) = claims.into_iter().find(|claim| claim.possible) {
            self.found.moves.push(Move { from, to, uid, reverted: false, conversion });
        }
    }

    /// The field that makes a claim.
    fn field_of(&self, claim: &Claim, from: &Address) -> Option<String> {
        self.said.get(&claim.to.name).map(|entries| entries.field(from))
    }

    /// Blocks the objects that a family claims while its instances are not known.
    pub(super) fn block_claimed_by_family(&mut self, family: &Family) {
        let shared = &family.shared;
        if !self.concerns(shared) || !shared.is_desired() || matches!(family.expansion, Expansion::Known(_)) {
            return;
        }
        let (recorded, to) = (self.recorded, &family.shared.address);
        let was_followed = self.said.get(&to.name).is_some_and(|entries| entries.is_applied);
        for MovedFrom { from, .. } in family.shared.moved_from.iter() {
            let all = in_family(recorded, &from.name).map(|(address, _)| address);
            for address in all.filter(|address| from.key == InstanceKey::None || *address == from) {
                if is_desired(self.config, address) {
                    if !was_followed && address.name != to.name {
                        self.keep_configured(address, format!("`{to}`, whose instances are not known yet, claims it"));
                    }
                    continue;
                }
                let message = format!("it will be moved to `{to}`, whose instances are not known yet");
                let held = ObjectBlock { reason: Reason::MoveBlocked, message };
                self.found.blocked.entry(address.clone()).or_insert(held);
                if !was_followed {
                    self.claim(address, Claim { possible: false, ..Claim::explicit(&family.shared) });
                }
            }
        }
    }

    /// Blocks all objects that an invalid address may mean.
    pub(super) fn block_all_named(&mut self, instance: &Instance) {
        let (recorded, address) = (self.recorded, &instance.address);
        for entry in instance.moved_from.iter() {
            let all = in_family(recorded, &entry.from.name).map(|(address, _)| address);
            for found in all {
                if is_desired(self.config, found) {
                    self.keep_configured(found, format!("`{address}`, whose former addresses are invalid, claims it"));
                    continue;
                }
                let message = format!(
                    "`{address}` seems to claim `{found}`, but its former addresses are invalid; the object is kept until \
                     this is resolved (hint: correct {}, or remove it)",
                    entry.field()
                );
                self.block(found, Reason::MoveBlocked, message);
                if self.record(address).is_none() {
                    self.claim(found, Claim { possible: false, ..Claim::explicit(instance) });
                }
            }
        }
    }
}
