//! Claims of Resources to recorded objects. Conflicting claims are all blocked.

use std::sync::Arc;

use super::{Conversion, Move, Search, is_desired};
use crate::load::{Expansion, Family, Instance};
use model::{Address, InstanceKey, Reason, Uid, in_stem};

/// The claim of an instance to the object of another address. A claim counts even while it cannot be fulfilled.
/// Otherwise another instance would get the object, and this one would create a new object later.
pub struct Claim {
    pub to: Address,
    pub uid: Uid,
    /// Made by `spec.moved` or the annotation.
    pub explicit: bool,
    /// The object can be moved. Otherwise it is blocked with the reason.
    pub possible: bool,
    /// Set if the object gets another type.
    pub conversion: Option<Arc<Conversion>>,
}

impl Claim {
    /// An explicit claim that cannot be fulfilled yet.
    pub fn waiting(instance: &Instance) -> Self {
        let (to, uid) = (instance.address.clone(), instance.uid.clone());
        Self { to, uid, explicit: true, possible: false, conversion: None }
    }
}

impl Search<'_> {
    pub fn claim(&mut self, from: &Address, claim: Claim) {
        let claims = self.claims.entry(from.clone()).or_default();
        // A Resource may name an object in two ways.
        if !claims.iter().any(|known| known.explicit && known.to == claim.to) {
            claims.push(claim);
        }
    }

    /// Keeps an object for an instance that claims it and cannot get it yet.
    pub fn keep_for(&mut self, instance: &Instance, from: &Address, message: String) {
        self.block(from, Reason::MoveBlocked, message);
        self.claim(from, Claim::waiting(instance));
    }

    /// Fulfills the claim to each object. If several Resources name it, none gets it: a wrong guess would destroy it. As with
    /// a `moved` block, an explicit claim overrides the implied ones, whose instances search again after the move.
    pub fn resolve_claims(&mut self) {
        for (from, claims) in std::mem::take(&mut self.claims) {
            let (explicit, implied): (Vec<Claim>, Vec<Claim>) = claims.into_iter().partition(|claim| claim.explicit);
            if explicit.len() > 1 {
                self.refuse_claims(&from, &explicit, &implied);
            } else if let Some(first) = explicit.first().filter(|claim| !claim.possible) {
                // The explicit claimant is blocked already. Block the implied claimants too.
                for claim in implied {
                    let message = format!("`{from}` will be moved to `{}`, so it is not moved here", first.to);
                    self.block(&claim.to, Reason::MoveBlocked, message);
                }
            } else if let Some(claim) = explicit.into_iter().chain(implied).find(|claim| claim.possible) {
                let Claim { to, uid, conversion, .. } = claim;
                self.found.moves.push(Move { from, to, uid, reverted: false, conversion });
            }
        }
    }

    fn refuse_claims(&mut self, from: &Address, explicit: &[Claim], implied: &[Claim]) {
        let mut names: Vec<String> = explicit.iter().map(|claim| format!("`{}`", claim.to)).collect();
        names.sort();
        let mut fields: Vec<String> = explicit.iter().filter_map(|claim| self.field_of(claim, from)).collect();
        fields.sort();
        fields.dedup();
        let message = format!(
            "`{from}` is claimed by {} (hint: keep {} in only one of them)",
            names.join(" and "),
            fields.join(" or ")
        );
        for address in explicit.iter().chain(implied).map(|claim| &claim.to).chain([from]) {
            self.block(address, Reason::MoveBlocked, message.clone());
        }
    }

    /// The field that makes a claim.
    fn field_of(&self, claim: &Claim, from: &Address) -> Option<String> {
        self.said.get(&claim.to.stem).map(|entries| entries.field(from))
    }

    /// Blocks the objects that a family claims while its instances are not known.
    pub fn block_claimed_by_family(&mut self, family: &Family) {
        let shared = &family.shared;
        if !self.concerns(shared) || !shared.is_desired() || matches!(family.expansion, Expansion::Known(_)) {
            return;
        }
        let (recorded, to) = (self.recorded, &shared.address);
        for entry in shared.moved_from.iter() {
            let is_open = self.said.get(&to.stem).is_none_or(|entries| !entries.is_fulfilled(entry));
            for (address, _) in in_stem(recorded, &entry.from.stem) {
                if entry.from.key != InstanceKey::None && *address != entry.from {
                    continue;
                }
                if !is_desired(self.config, address) {
                    self.block_first(
                        address,
                        &format!("it will be moved to `{to}`, whose instances are not known yet"),
                    );
                    if is_open {
                        self.claim(address, Claim::waiting(shared));
                    }
                } else if is_open && address.stem != to.stem {
                    self.keep_configured(address, format!("`{to}`, whose instances are not known yet, claims it"));
                }
            }
        }
    }

    /// Blocks all objects that an invalid address may mean.
    pub fn block_all_named(&mut self, instance: &Instance) {
        let (recorded, address) = (self.recorded, &instance.address);
        for entry in instance.moved_from.iter() {
            for (from, _) in in_stem(recorded, &entry.from.stem) {
                if is_desired(self.config, from) {
                    self.keep_configured(from, format!("`{address}`, whose former addresses are invalid, claims it"));
                    continue;
                }
                let message = format!(
                    "`{address}` seems to claim `{from}`, but its former addresses are invalid; the object is kept until \
                     this is resolved (hint: correct {}, or remove it)",
                    entry.field()
                );
                self.block(from, Reason::MoveBlocked, message);
                if self.record(address).is_none() {
                    self.claim(from, Claim::waiting(instance));
                }
            }
        }
    }
}
