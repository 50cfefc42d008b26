//! The pipeline: from what is wanted and recorded to a plan with the order of its steps. `purlin plan`, `apply` and `dev`
//! and the controller all go through [`plan()`]. Drivers are asked; nothing is changed anywhere.

mod answer;
mod import;
mod providers;
mod takeover;
mod types;

use std::borrow::Cow;
use std::sync::Arc;

use self::answer::drive;
use self::providers::{prepare, warnings_of_settings};
use self::takeover::take_over;
use crate::execute::Engine;
use crate::graph::{self, ActionGraph};
use crate::load::Config;
use crate::model::{Diagnostics, Recorded};
use crate::plan::moves::{self, Move, Moves, Takeovers};
use crate::plan::{Memo, Plan, PlanOptions, Planner};

pub use import::{Unmanaged, import};

/// A plan with what it was made from.
#[derive(Debug, Default)]
pub struct Planned {
    /// What will be done.
    pub plan: Plan,
    /// In which order.
    pub graph: ActionGraph,
    /// What is wanted, with the instances of every family that an expression decides.
    pub config: Arc<Config>,
    /// The moves that come before the first step: [`crate::execute::carry_out`] writes them.
    pub moves: Vec<Move>,
}

/// Makes a plan, asking drivers as parallel as dependencies and limits allow. `memo` has what providers said to earlier
/// plans, and afterwards what they said to this one.
pub async fn plan(
    engine: &Engine,
    config: &Arc<Config>,
    recorded: &Recorded,
    options: &PlanOptions,
    memo: &mut Memo,
) -> Planned {
    prepare(engine, config, recorded).await;
    let mut config = Arc::clone(config);
    let mut takeovers = Takeovers::new();
    let mut warnings = Diagnostics::new();
    loop {
        let Moves { moves, held, diagnostics, questions } = moves::find(&config, recorded, options, &takeovers);
        if !questions.is_empty() {
            let (taken, warned) = take_over(engine, &config, questions).await;
            takeovers.extend(taken);
            warnings.extend(warned);
            continue;
        }
        let after = (!moves.is_empty()).then(|| moves::carried(recorded, &moves));
        let mut options = Cow::Borrowed(options);
        if !moves.is_empty() || !held.is_empty() {
            let options = options.to_mut();
            options.moved = moves.iter().map(|one| (one.to.clone(), one.because())).collect();
            options.held.extend(held);
        }
        let now = after.as_ref().unwrap_or(recorded);
        let mut planner = Planner::new(&config, now, &options, &engine.drivers);
        let used = drive(engine, &config, now, &mut planner, memo).await;
        if !planner.expansions().is_empty() {
            // The values of other objects have decided which instances there are: planned again with them.
            let expanded = Arc::new(config.expanded(planner.expansions()));
            drop(planner);
            config = expanded;
            continue;
        }
        memo.end_plan();
        let mut plan = planner.finish();
        let (graph, unordered) = graph::build(&plan, &config, now, &options.running);
        let of_providers = used.values().flat_map(|used| warnings_of_settings(engine, used));
        plan.diagnostics.extend(diagnostics.into_iter().chain(warnings).chain(of_providers).chain(unordered));
        return Planned { plan, graph, config, moves };
    }
}
