//! Moves: an object gets another address without a change.
//!
//! Finds the records that belong to another address now, and computes the records after the moves. `execute` writes
//! them. A move is explicit (`spec.moved`, or the annotation `purlin.dev/moved-from`) or implied: between an object
//! without a key and `[0]`, or the only key of a `forEach`. An object that a Resource claims is not destroyed or replaced
//! unless it is moved. If the type differs, the driver of the new type must convert the object: the
//! result contains these takeovers, and the caller calls `find` again with their results.

mod claims;
mod conversion;
mod ambiguity;
mod entries;
mod origin;
mod records;
mod unfulfilled;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub use self::records::{
    Redirections, apply_moves, has_arrived, is_copy, moved_record, references_any, rounds, unfinished,
};

use self::claims::Claim;
use self::entries::Entries;
use super::{Mode, ObjectBlock, PlanOptions};
use crate::load::{Config, Expansion, Instance};
use model::record::with_source;
use model::{Address, Diagnostics, Reason, Record, Recorded, Stem, Uid};
use serde::{Deserialize, Serialize};

/// One record that belongs to another address or type now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Move {
    pub from: Address,
    pub to: Address,
    /// The UID of the Resource at `to`.
    pub uid: Uid,
    /// An interrupted move that is reverted: the object stays at `from`.
    pub reverted: bool,
    /// Set if the object gets another type. `from` and `to` may be equal then.
    pub conversion: Option<Arc<Conversion>>,
}

/// The record of an object that a driver has converted to another type.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Conversion {
    /// The record at the time of the driver call.
    #[serde(with = "with_source")]
    pub before: Arc<Record>,
    /// The converted record, at the same address.
    #[serde(with = "with_source")]
    pub after: Arc<Record>,
}

/// A call of the driver of an object's new type to convert the object.
#[derive(Clone, Debug)]
pub struct Takeover {
    pub from: Address,
    pub to: Address,
    pub record: Arc<Record>,
}

/// The results of takeovers by `from` and `to`: the converted record, or why the conversion failed.
pub type Takeovers = BTreeMap<(Address, Address), Result<Arc<Record>, ObjectBlock>>;

#[derive(Clone, Debug, Default)]
pub struct Moves {
    /// In execution order.
    pub moves: Vec<Move>,
    /// Objects that wait for a move: nothing may be created or destroyed at these addresses.
    pub blocked: BTreeMap<Address, ObjectBlock>,
    /// Configured objects that another address claims: they may be updated, but not be replaced.
    pub claimed: BTreeMap<Address, ObjectBlock>,
    /// Warnings about claims without effect.
    pub diagnostics: Diagnostics,
    /// Driver calls that must come first. If there are any, the other fields are incomplete.
    pub takeovers: Vec<Takeover>,
}

impl Moves {
    /// Holds both addresses of a move.
    fn hold(&mut self, from: &Address, to: &Address, held: ObjectBlock) {
        self.blocked.extend([(from.clone(), held.clone()), (to.clone(), held)]);
    }
}

/// Finds the moves in every plan mode: the interrupted ones, those that the records then allow, those that these allow in
/// turn, and so on. What is kept is decided last, when no object can be moved any more. So the plan after the moves
/// keeps the same objects for the same reasons. `answers` are the results of the takeovers of earlier calls.
pub fn find(config: &Config, recorded: &Recorded, options: &PlanOptions, answers: &Takeovers) -> Moves {
    let mut after = Cow::Borrowed(recorded);
    let mut moves = Vec::new();
    loop {
        let mut found = interrupted(config, &after, options);
        if found.moves.is_empty() {
            found = requested(found, config, [recorded, &after], options, answers);
        }
        if found.moves.is_empty() || !found.takeovers.is_empty() {
            found.moves.splice(0..0, moves);
            return found;
        }
        after = Cow::Owned(apply_moves(&after, &found.moves));
        moves.append(&mut found.moves);
    }
}

/// The interrupted moves that can be finished or reverted now. The others hold both of their addresses.
fn interrupted(config: &Config, recorded: &Recorded, options: &PlanOptions) -> Moves {
    let mut found = Moves::default();
    for (from, stored) in recorded {
        let Some(to) = &stored.record.moving_to else { continue };
        let held = options.blocked.get(&**to).or_else(|| options.blocked.get(from)).cloned().or_else(|| {
            running_user(recorded, options, [from, to]).map(|running| waits_for_operation(from, to, running))
        });
        if let Some(held) = held {
            found.hold(from, to, held);
            continue;
        }
        let back = !is_continued(config, recorded, options, &stored.record, to);
        let uid = config.resource(to).map_or_else(Uid::default, |resource| resource.uid.clone());
        // A converted record was written together with `moving_to`, so no conversion is needed.
        found.moves.push(Move { from: from.clone(), to: Address::clone(to), uid, reverted: back, conversion: None });
    }
    found
}

/// The moves that the Resources request, or, if there are none, what is kept. The records are those before and after the
/// moves that are found already.
fn requested(
    found: Moves,
    config: &Config,
    [before, recorded]: [&Recorded; 2],
    options: &PlanOptions,
    answers: &Takeovers,
) -> Moves {
    if recorded.is_empty()
        && options.indexed.is_empty()
        && config.resources().all(|resource| resource.moved_from.is_empty())
    {
        return found;
    }
    let said = entries::of_config(config, recorded);
    let claimed_by_others = origin::claimed_addresses(config, recorded, &said);
    let running = options.running.iter().map(|running| &running.step.address).collect();
    let open = open_records(recorded, &running);
    let mut search = Search {
        config,
        before,
        recorded,
        options,
        answers,
        found,
        said: &said,
        claims: BTreeMap::new(),
        without_record: BTreeSet::new(),
        claimed_by_others,
        unfinished: unfinished(recorded),
        running,
        open,
    };
    for (address, instance) in config.instances.iter().filter(|(_, instance)| instance.is_desired()) {
        search.find_origin(address, instance);
    }
    config.families.values().for_each(|family| search.block_claimed_by_family(family));
    search.check_targets();
    search.resolve_claims();
    if search.found.moves.is_empty() {
        search.keep_claimed();
        search.keep_unmoved_families();
        search.check_names();
        search.block_moved_to_other_sources();
    }
    let mut found = search.found;
    if options.mode != Mode::Normal {
        // Nothing is created, so only recorded objects must wait.
        found.blocked.retain(|address, _| recorded.contains_key(address));
    }
    found
}

/// A running step whose record changes with a move between two addresses: it has one of them, or references one. Its write
/// of the result and the move would be in each other's way.
fn running_user<'a>(recorded: &Recorded, options: &'a PlanOptions, ends: [&Address; 2]) -> Option<&'a Address> {
    let stems = ends.iter().map(|end| &end.stem).collect();
    options.running.iter().map(|running| &running.step.address).find(|address| {
        ends.contains(address) || recorded.get(*address).is_some_and(|stored| references_any(&stored.record, &stems))
    })
}

fn waits_for_operation(from: &Address, to: &Address, open: &Address) -> ObjectBlock {
    let message = format!("`{from}` is moved to `{to}` once the open operation of `{open}` is resolved");
    ObjectBlock { reason: Reason::OperationInProgress, message }
}

/// Whether an interrupted move is finished. Otherwise the record stays at its address, because the new address is no
/// longer desired.
fn is_continued(config: &Config, recorded: &Recorded, options: &PlanOptions, record: &Record, to: &Address) -> bool {
    let there = recorded.get(to).map(|stored| &stored.record).filter(|there| there.has_objects());
    if there.is_some_and(|there| !is_copy(record, there)) {
        // Another object was created at the new address.
        return false;
    }
    let is_there = there.is_some();
    let resource = config.resource(to);
    // In a cluster, a Resource with the finalizer is not deleted without Purlin, and decides about the object.
    let protects = is_there && resource.is_some_and(|resource| resource.is_marked());
    let same_type = resource.is_some_and(|resource| resource.type_name == record.type_name);
    options.mode != Mode::Normal || protects || (is_desired(config, to) && same_type)
}

struct Search<'a> {
    config: &'a Config,
    /// The records before all moves: what is moved is not lost.
    before: &'a Recorded,
    recorded: &'a Recorded,
    options: &'a PlanOptions,
    answers: &'a Takeovers,
    found: Moves,
    said: &'a BTreeMap<&'a Stem, Entries<'a>>,
    claims: BTreeMap<Address, Vec<Claim>>,
    /// Instances without an object whose former addresses have no record, which may be a slip.
    without_record: BTreeSet<Address>,
    /// Addresses that Resources of other names claim.
    claimed_by_others: BTreeSet<Address>,
    /// The moves that cannot be finished yet, by both of their addresses.
    unfinished: BTreeMap<&'a Address, (&'a Address, &'a Address)>,
    /// The addresses of running steps.
    running: BTreeSet<&'a Address>,
    open: Vec<&'a Arc<Record>>,
}

/// The records with an open intent or a running step.
fn open_records<'a>(recorded: &'a Recorded, running: &BTreeSet<&Address>) -> Vec<&'a Arc<Record>> {
    recorded
        .values()
        .map(|stored| &stored.record)
        .filter(|record| record.intent.is_some() || running.contains(&record.address))
        .collect()
}

impl<'a> Search<'a> {
    fn record(&self, address: &Address) -> Option<&'a Arc<Record>> {
        let record = self.recorded.get(address).map(|stored| &stored.record)?;
        (record.has_objects() || record.intent.is_some()).then_some(record)
    }

    fn block(&mut self, address: &Address, reason: Reason, message: String) {
        self.found.blocked.insert(address.clone(), ObjectBlock { reason, message });
    }

    /// Blocks an address that is not blocked for another reason.
    fn block_first(&mut self, address: &Address, message: &str) {
        if !self.found.blocked.contains_key(address) {
            self.block(address, Reason::MoveBlocked, message.to_owned());
        }
    }

    /// A configured object that another address claims may be updated, but not be replaced.
    fn keep_configured(&mut self, from: &Address, message: String) {
        if self.options.mode == Mode::Normal {
            let held = ObjectBlock { reason: Reason::MoveBlocked, message };
            self.found.claimed.entry(from.clone()).or_insert(held);
        }
    }

    fn is_running(&self, address: &Address) -> bool {
        self.running.contains(address)
    }

    /// Whether the record exists but cannot be read.
    fn is_unreadable(&self, address: &Address) -> bool {
        self.options
            .blocked
            .get(address)
            .is_some_and(|held| matches!(held.reason, Reason::RecordUnreadable | Reason::RecordUnavailable))
    }

    /// Whether the record is missing although the index of the family lists it.
    fn is_lost(&self, address: &Address) -> bool {
        self.options.indexed.contains(address)
            && !self.recorded.contains_key(address)
            && !self.before.contains_key(address)
    }

    /// Whether an object of this address may have had a record that is missing now.
    fn may_be_lost(&self, address: &Address) -> bool {
        self.is_lost(address) || self.config.resource(address).is_some_and(|resource| self.has_lost_all(resource))
    }

    /// Whether the Resource is marked as recorded, but no instance has a record.
    fn has_lost_all(&self, instance: &Instance) -> bool {
        let name = instance.address.name();
        let start = Address::single(name.clone());
        let has_traces = self.before.range(start.clone()..).next().is_some_and(|(address, _)| address.name() == name)
            || self.options.indexed.range(start..).next().is_some_and(|address| address.name() == name)
            || self.running.iter().any(|address| address.name() == name);
        instance.has_record_annotation() && !has_traces
    }
}

/// Whether an object is desired at an address, or this is not known.
fn is_desired(config: &Config, address: &Address) -> bool {
    config.instances.get(address).is_some_and(|instance| instance.is_desired())
        || config
            .families
            .get(&address.stem)
            .is_some_and(|family| family.shared.is_desired() && !matches!(family.expansion, Expansion::Known(_)))
}

#[cfg(test)]
mod tests;
