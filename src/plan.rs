//! Planning: `Config` + `Recorded` -> `Plan`. Asks questions, does no I/O.
//!
//! The planner is a machine: [`Planner::ready`] gives the questions that can be asked now, [`Planner::answer`]
//! takes a reply, [`Planner::finish`] gives the plan once nothing is open. Whoever drives it calls the drivers.

mod agree;
pub mod ask;
mod assemble;
pub mod conditions;
mod conform;
mod contract;
mod data;
pub mod cycle;
mod draft;
mod draw;
mod drift;
mod families;
pub mod finalize;
pub mod hooks;
mod ignore;
pub mod inherit;
mod inquiry;
mod leaving;
mod marks;
pub mod memo;
pub mod options;
pub mod planner;
pub mod moves;
mod policy;
mod preflight;
mod progress;
mod protect;
mod publish;
pub mod render;
mod requests;
mod scene;
mod seen;
pub mod select;
mod served;
mod settle;
mod through;
pub mod trigger;
mod wanted;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::model::{Address, Change, DeposedKey, Diagnostics, Path, Reading, RecordedObject, Value};

pub use ask::{Ask, AskId, Question, Reply, Types};
pub use memo::Memo;
pub use options::{Configuration, Elsewhere, Held, Mode, Others, PendingImport, PlanOptions, Refresh, RunningStep};
pub use planner::Planner;
pub use through::Through;

/// What will be done with every wanted or recorded object, as a value.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// Every wanted or recorded object once, in address order, each leftover as its own entry after its object.
    pub changes: Vec<Change>,
    /// What the executor needs beyond `changes`, for every object with a step of the kind create, update or record. A
    /// blocked object has such a step when its record does not say what its manifest says about keeping the object.
    pub prepared: BTreeMap<Address, Prepared>,
    /// The effective lifecycle of every wanted object, and of every recorded one that is no longer wanted.
    pub lifecycle: BTreeMap<Address, EffectiveLifecycle>,
    /// Direct dependencies of every wanted object that exist (`wants` before closure), in address order.
    pub wants: BTreeMap<Address, Arc<[Address]>>,
    /// What is known of every data source that needs no step to be read.
    pub readings: BTreeMap<Address, Arc<Reading>>,
    /// The wanted objects that were read for it, be they there or gone.
    pub read: BTreeSet<Address>,
    /// Those of them that are gone.
    pub gone: BTreeSet<Address>,
    /// All problems, in address order.
    pub diagnostics: Diagnostics,
}

/// The effective create-before-destroy flag of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EffectiveLifecycle {
    /// Whether a replacement creates first.
    pub create_before_destroy: bool,
    /// The chain of objects that forces it, from this object's direct dependent to the one that asks for it itself;
    /// empty when the object asks for it itself or the flag is off. A chain of more than sixteen objects is cut: the
    /// first fifteen are told and the last, or chains would need quadratic space.
    pub forced_by: Vec<Address>,
}

/// Why a change stands in a plan that is the step under way itself, shown for completeness: nothing is prepared for it,
/// and it does not happen a second time.
pub const RUNNING: &str = "a step of it is running";

/// What is told of an object that is missing under another configuration than the one that last saw it.
pub const GONE_ELSEWHERE: &str = "the object is not there, but it is looked for under another configuration of the \
                                  provider than the one that last saw it, so it may exist all the same";

/// A planned create, update or record-only change, ready to be finalized.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// The object as refreshed by this plan: the base of an update; `None` for a create and for the new object of a
    /// replacement.
    pub prior: Option<Arc<RecordedObject>>,
    /// The object that a replacement gives up, as refreshed by this plan; it may not be recorded yet, when it was
    /// imported just now.
    pub replaced: Option<Arc<RecordedObject>>,
    /// The configuration as it was evaluated for the plan, unknown places included. `Null` for a record-only step,
    /// which needs none.
    pub config: Value,
    /// The planned value, unknown places included.
    pub planned: Value,
    /// The driver's private bytes.
    pub private: Arc<[u8]>,
    /// What was drawn for it; the final plan gets the same.
    pub entropy: [u8; 16],
    /// The attributes that force the replacement.
    pub replace_paths: Vec<Path>,
    /// The driver is to be told something that no value shows, so it is called even if nothing else is to be done.
    pub tells: bool,
    /// What the object will be found by, as far as the driver knows before it exists.
    pub identity: Option<Value>,
    /// What is published is written even if it is as recorded, since somebody else has changed it.
    pub publish_again: bool,
    /// Flags, edges and status to record with the result (its `value`, `private`, `identity` are placeholders, but
    /// for a record-only step, where they are what is to be recorded).
    pub recorded: RecordedObject,
    /// The deposed key to use should this replacement create first; nothing for other steps.
    pub deposed_key: DeposedKey,
    /// The step only records what was read, and what the manifest says about keeping the object: it checks no conditions,
    /// runs no hooks and publishes nothing.
    pub only_follows: bool,
}
