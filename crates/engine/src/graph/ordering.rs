//! The ordering rules R1 to R10 (`docs/ordering.md`): which step waits for which, and why.
//!
//! Objects are numbers in address order with desired dependencies (*wants*), recorded dependencies (*used*), steps and
//! effective flags. Without addresses, plans and records, the tests can compare the result with a simple
//! implementation.
//!
//! The relations *wants* and *used* are transitive through all objects, but their closures are never computed: an
//! object without a step becomes a junction. A thousand dependents and a thousand dependencies of an unchanged object
//! need only two thousand edges.

mod decisions;
mod builder;
mod new_dependencies;
mod rules;
mod topology;
mod relations;

#[cfg(test)]
mod tests;

use super::{EdgeReason, Wait};
use decisions::Decisions;
use relations::Relations;

/// The state of a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Presence {
    /// The step does not exist.
    #[default]
    Absent,
    /// The step is planned.
    Planned,
    /// The step is running: it waits for nothing, and the other steps of its object wait for it.
    Running,
    /// The step is planned but not ordered: it waits for nothing, and nothing waits for it.
    Detached,
}

/// An object, or a family on which others depend as a whole. A family is desired, has no steps, and depends on its
/// instances.
#[derive(Clone, Debug, Default)]
pub struct Object {
    /// The object is configured and not being deleted.
    pub wanted: bool,
    /// The effective flag, which can be inherited.
    pub create_before_destroy: bool,
    /// `C(x)`: create, update or record.
    pub apply: Presence,
    /// `C(x)` changes only the record, so that no destroy waits for it and it waits for no destroy.
    pub is_record_only: bool,
    /// `D(x)`: destroy or forget of the current object.
    pub remove: Presence,
    /// Direct desired dependencies.
    pub wants: Vec<u32>,
    /// Direct recorded dependencies of the current object.
    pub used: Vec<u32>,
    pub deposed: Vec<Deposed>,
    /// The objects whose steps may let the change of this one succeed.
    pub remedies: Vec<u32>,
}

/// An object deposed in an earlier run.
#[derive(Clone, Debug, Default)]
pub struct Deposed {
    /// `D(x#k)`.
    pub remove: Presence,
    /// Direct recorded dependencies of the deposed object.
    pub used: Vec<u32>,
}

/// A step of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// `C(x)`.
    Apply,
    /// `D(x)`.
    Remove,
    /// `D(x#k)`, by index of the deposed object.
    Deposed(u32),
}

/// A step and the number of its object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StepRef {
    pub object: u32,
    pub part: Part,
}

/// `from` waits for `to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Edge {
    pub from: u32,
    pub to: u32,
    pub reason: EdgeReason,
    /// The objects depend on each other only through other objects.
    pub indirect: bool,
}

/// An object without dependents that is destroyed in the usual order (R6).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fallback {
    pub object: u32,
    /// The cycle that the safer order would cause: each step, and why it waits for the next one. Empty if the limit of
    /// work was exceeded.
    pub cycle: Vec<(StepRef, Wait)>,
}

#[derive(Clone, Debug, Default)]
pub struct Ordering {
    /// The steps, sorted by object.
    pub steps: Vec<StepRef>,
    /// The number of nodes. Nodes after the steps are junctions.
    pub nodes: usize,
    /// The edges, at most one between two nodes.
    pub edges: Vec<Edge>,
    /// In the order of the decisions.
    pub fallbacks: Vec<Fallback>,
}

/// The limit of work for R6, which takes a second or two. Deciding on one object of each cycle at a time rebuilds the
/// graph each time, which would take hours for thousands of objects in a large cycle.
const MAX_WORK: usize = 20_000_000;

/// Applies the rules.
///
/// R6 and R7 remove edges that are in cycles. Each iteration rebuilds the whole graph with the decisions so far, which
/// is simpler than an incremental change. Cycles are rare, so there is usually only one iteration.
pub fn order(objects: &[Object]) -> Ordering {
    order_with_limit(objects, MAX_WORK)
}

/// [`order`] with a limit of work.
fn order_with_limit(objects: &[Object], max_work: usize) -> Ordering {
    let relations = Relations::new(objects);
    let mut decisions = Decisions::new(&relations);
    let mut work = 0;
    let mut builder = loop {
        let builder = rules::apply_rules(&relations, &decisions);
        let cycles = builder.cycles();
        work += builder.nodes() + builder.edges.len() + builder.visits;
        if cycles.is_empty() || !decisions.revise(&relations, &builder, &cycles, work + decisions.visits > max_work) {
            break builder;
        }
    };
    new_dependencies::add(&relations, &mut builder);
    rules::add_remedies(&relations, &mut builder);
    let (nodes, edges) = builder.finish();
    Ordering { steps: relations.steps, nodes, edges, fallbacks: decisions.fallbacks }
}
