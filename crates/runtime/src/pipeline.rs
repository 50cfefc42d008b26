//! The pipeline from configuration and records to a plan with ordered steps. `purlin plan`, `apply`, `dev` and the
//! controller all call [`plan()`], which calls drivers but changes nothing.

mod driver_calls;
mod providers;
mod takeover;

use std::borrow::Cow;
use std::pin::pin;
use std::sync::Arc;

use self::driver_calls::run_calls;
use self::providers::{DriverTypes, configuration_warnings};
use self::takeover::take_over;
use crate::execute::Engine;
use engine::graph::{self, ActionGraph};
use engine::load::Config;
use engine::load::expression::PlanBudget;
use engine::plan::moves::{self, Move, Moves, Takeovers};
use engine::plan::{Mode, ObjectBlock, Plan, PlanOptions, Planner, ResponseCache, UNDECIDED};
use model::{Address, Diagnostics, Reason, Recorded};

pub use driver_calls::{ImportedObject, import};
pub use providers::prepare;

/// The cost of all expressions of a plan, about five seconds, so that one namespace cannot occupy a thread for long.
const EXPRESSION_UNITS: u64 = 20_000_000;
/// The cost that each object adds: planning it takes longer than that.
const EXPRESSION_UNITS_PER_OBJECT: u64 = 2_000;

/// A plan and the order of its steps.
#[derive(Debug, Default)]
pub struct OrderedPlan {
    pub plan: Plan,
    pub graph: ActionGraph,
    /// The configuration, with the instances of families that depend on the values of other objects.
    pub config: Arc<Config>,
    /// The moves to write before the first step with [`crate::execute::apply_moves`].
    pub moves: Vec<Move>,
}

/// Creates a plan. Driver calls run in parallel as far as dependencies and limits allow. `memo` caches the responses
/// of drivers for later plans.
pub async fn plan(
    engine: &Engine,
    config: &Arc<Config>,
    recorded: &Recorded,
    options: &PlanOptions,
    memo: &mut ResponseCache,
) -> OrderedPlan {
    let objects = config.instances.len().max(recorded.len()) as u64;
    let mut budget = PlanBudget::new(EXPRESSION_UNITS + objects * EXPRESSION_UNITS_PER_OBJECT);
    let mut planning = pin!(plan_within_budget(engine, config, recorded, options, memo));
    std::future::poll_fn(|context| budget.within(|| planning.as_mut().poll(context))).await
}

async fn plan_within_budget(
    engine: &Engine,
    config: &Arc<Config>,
    recorded: &Recorded,
    options: &PlanOptions,
    memo: &mut ResponseCache,
) -> OrderedPlan {
    prepare(engine, config, recorded).await;
    let types = DriverTypes(&engine.drivers);
    let mut config = Arc::clone(config);
    let mut takeovers = Takeovers::new();
    let mut warnings = Diagnostics::new();
    loop {
        let Moves { moves, blocked: held, claimed, diagnostics, takeovers: questions } =
            moves::find(&config, recorded, options, &takeovers);
        if !questions.is_empty() {
            let (taken, warned) = take_over(engine, &config, questions).await;
            takeovers.extend(taken);
            warnings.extend(warned);
            continue;
        }
        let after = (!moves.is_empty()).then(|| moves::apply_moves(recorded, &moves));
        let mut options = Cow::Borrowed(options);
        if !moves.is_empty() || !held.is_empty() || !claimed.is_empty() {
            let options = options.to_mut();
            options.claimed = claimed;
            options.moved = moves.iter().map(|moved| (moved.to.clone(), moved.because())).collect();
            options.blocked.extend(held);
        }
        let now = after.as_ref().unwrap_or(recorded);
        let undecided = undecided(&config, now, options.mode);
        if !undecided.is_empty() {
            options.to_mut().blocked.extend(undecided);
        }
        let mut planner = Planner::new(&config, now, &options, &types);
        let used = run_calls(engine, &config, now, &mut planner, memo).await;
        if !planner.expansions().is_empty() {
            // The values of other objects determined the instances of a family: plan again with these instances.
            let expanded = Arc::new(config.expanded(planner.expansions()));
            drop(planner);
            config = expanded;
            continue;
        }
        memo.end_plan();
        let mut plan = planner.finish();
        let (graph, unordered) = graph::build(&plan, &config, now, &options.running);
        let of_providers = used.values().flat_map(|used| configuration_warnings(engine, &config.namespace, used));
        plan.diagnostics.extend(diagnostics.into_iter().chain(warnings).chain(of_providers).chain(unordered));
        return OrderedPlan { plan, graph, config, moves };
    }
}

/// The recorded objects of which a configuration does not know whether it has them, although no expression of the plan
/// decides it. They are left as they are.
fn undecided(config: &Config, recorded: &Recorded, mode: Mode) -> Vec<(Address, ObjectBlock)> {
    if mode != Mode::Normal || config.modules.is_empty() {
        return Vec::new();
    }
    let unknown = recorded.keys().filter(|address| address.is_qualified() && !config.instances.contains_key(*address));
    unknown
        .filter(|address| config.gates(address).next().is_none() && config.is_undecided(address))
        .map(|address| (address.clone(), ObjectBlock { reason: Reason::Waiting, message: UNDECIDED.to_owned() }))
        .collect()
}
