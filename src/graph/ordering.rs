//! The ordering rules R1 to R9 (`docs/ordering.md`): which step waits for which, and why.
//!
//! Takes objects by number, in address order, with what they want, what their records used, their steps and their
//! effective flags; gives the steps and their edges. It knows no addresses, no plan and no records, so that it can
//! be compared, case by case, with a slow and obvious reading of the rules.
//!
//! The relations *wants* and *used* are transitive, through every object whatever its step, yet their closures are
//! never written out: an object without a step becomes a junction that leads on to what stands behind it. A thousand
//! dependents and a thousand dependencies of one untouched object are two thousand edges.

mod choices;
mod draft;
mod newcomers;
mod rules;
mod topology;
mod world;

#[cfg(test)]
mod tests;

use super::{Because, Wait};
use choices::Choices;
use world::World;

/// Whether a step is there, and whether it still can wait for anything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Presence {
    /// No such step.
    #[default]
    Absent,
    /// The step is to be done.
    Planned,
    /// The step is under way: it waits for nothing, and every other step of its object waits for it.
    Running,
    /// The step is to be done, and has no place in the order: it waits for nothing, and nothing waits for it.
    Apart,
}

/// One object, or a whole family that others refer to (wanted, without steps; it wants and used its instances).
#[derive(Clone, Debug, Default)]
pub(super) struct Object {
    /// Configured, and not being deleted.
    pub(super) wanted: bool,
    /// The effective flag.
    pub(super) create_before_destroy: bool,
    /// `C(x)`: create, update or record-only.
    pub(super) make: Presence,
    /// `C(x)` is record-only: the object stays as it is, so nothing need be gone before it, or stay until after it.
    pub(super) only_records: bool,
    /// `D(x)`: destroy or forget of the current object.
    pub(super) remove: Presence,
    /// What the configuration refers to directly.
    pub(super) wants: Vec<u32>,
    /// What the record of the current object names.
    pub(super) used: Vec<u32>,
    /// Objects deposed in earlier runs.
    pub(super) leftovers: Vec<Leftover>,
}

/// An object deposed in an earlier run.
#[derive(Clone, Debug, Default)]
pub(super) struct Leftover {
    /// `D(x#k)`.
    pub(super) remove: Presence,
    /// What its own record names.
    pub(super) used: Vec<u32>,
}

/// Which step of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Part {
    /// `C(x)`.
    Make,
    /// `D(x)`.
    Remove,
    /// `D(x#k)`, by position among the object's leftovers.
    Leftover(u32),
}

/// A step by the number of its object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct StepOf {
    pub(super) object: u32,
    pub(super) part: Part,
}

/// `from` waits for `to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Edge {
    pub(super) from: u32,
    pub(super) to: u32,
    pub(super) because: Because,
    /// The two objects are related through others only.
    pub(super) indirect: bool,
}

/// A released object that went back to the classic order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FellBack {
    pub(super) object: u32,
    /// The ring that the safer order would have closed: each step, and why it waits for the next one. Empty when there
    /// was no time to find it.
    pub(super) ring: Vec<(StepOf, Wait)>,
}

/// The order of all steps.
#[derive(Clone, Debug, Default)]
pub(super) struct Ordering {
    /// The steps, numbered from 0, by object.
    pub(super) steps: Vec<StepOf>,
    /// How many nodes there are: those behind the steps are junctions.
    pub(super) nodes: usize,
    /// The edges, one at most between two nodes.
    pub(super) edges: Vec<Edge>,
    /// In the order in which they fell back.
    pub(super) fell_back: Vec<FellBack>,
}

/// How much may be drawn and looked at before R6 is in a hurry: a second's worth or two. Its way of falling back, one
/// object of each ring after the other, takes a drawing for each; thousands of them in one large ring would take hours.
const MOST_DRAWN: usize = 20_000_000;

/// Applies the rules.
///
/// R6 and R7 take back edges that stand in rings; each turn draws the graph anew with what was decided so far, so
/// that only the rules themselves have to be right, not the way from one graph to the next. Rings are rare: one turn
/// is the usual case.
pub(super) fn order(objects: &[Object]) -> Ordering {
    order_within(objects, MOST_DRAWN)
}

/// The same with another limit.
fn order_within(objects: &[Object], most_drawn: usize) -> Ordering {
    let world = World::new(objects);
    let mut choices = Choices::new(&world);
    let mut drawn = 0;
    let mut draft = loop {
        let draft = rules::draw(&world, &choices);
        let rings = draft.rings();
        drawn += draft.nodes() + draft.edges.len() + draft.visits;
        if rings.is_empty() || !choices.revise(&world, &draft, &rings, drawn + choices.visits > most_drawn) {
            break draft;
        }
    };
    newcomers::add(&world, &mut draft);
    let (nodes, edges) = draft.finish();
    Ordering { steps: world.steps, nodes, edges, fell_back: choices.fell_back }
}
