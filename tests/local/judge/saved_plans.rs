//! Saved plans: a plan is written to a file, read and applied. A stale plan is rejected.

use std::sync::Arc;

use purlin::cli::inputs::{Inputs, PlanResult};
use purlin::cli::options::Files;
use purlin::cli::saved::SavedPlan;
use purlin::execute::Engine;
use purlin::load::Config;
use purlin::model::Recorded;
use purlin::pipeline::OrderedPlan;
use sha2::{Digest as _, Sha256};

use super::history::History;

/// A saved plan, and the records from which it was computed.
pub(super) struct FiledPlan {
    saved: SavedPlan,
    recorded: Recorded,
    /// The digest of its manifests.
    digest: [u8; 32],
}

impl History {
    /// Saves a plan like `purlin plan --out`, and returns what the file contains.
    pub(super) async fn through_a_file(
        &mut self,
        engine: &Engine,
        config: &Arc<Config>,
        recorded: &Recorded,
        planned: OrderedPlan,
    ) -> Result<OrderedPlan, String> {
        let inputs = Inputs {
            config: Arc::clone(config),
            digest: self.digest(),
            recorded: recorded.clone(),
            ..Inputs::default()
        };
        let files = Files {
            sources: Vec::new(),
            prune: false,
            state: "state".into(),
            is_state_named: true,
            kubeconfig: None,
            plugin_dirs: Vec::new(),
            variables: purlin::cli::root_module::Variables::default(),
            asks_for_values: false,
            plan_time: jiff::Timestamp::UNIX_EPOCH,
        };
        let described = |planned: &OrderedPlan| {
            let OrderedPlan { plan, graph, config, moves } = planned;
            format!("{plan:?} {graph:?} {moves:?} {:?}", config.instances.keys())
        };
        let before = described(&planned);
        let OrderedPlan { plan, graph, config, moves } = planned;
        let planned = PlanResult { plan, graph, config, moves, ..PlanResult::default() };
        let saved = SavedPlan::new(&files, &purlin::cli::options::Planning::default(), &inputs, planned)
            .and_then(|saved| saved.to_bytes());
        let bytes = saved.map_err(|error| format!("a plan cannot be saved: {error}"))?;
        let read = || SavedPlan::from_bytes(&bytes, "plan").map_err(|error| error.to_string());

        read()?.check(&inputs).map_err(|error| format!("a new saved plan is rejected: {error}"))?;
        let restored = read()?.restore(engine, &inputs).await.map_err(|error| error.to_string())?;
        let PlanResult { plan, graph, config, moves, .. } = restored;
        let restored = OrderedPlan { plan, graph, config, moves };
        if described(&restored) != before {
            return Err(format!("a restored plan differs from the saved one: {} {before}", described(&restored)));
        }
        self.note("  the plan is saved and restored");
        self.saved_plan = Some(FiledPlan { saved: read()?, recorded: recorded.clone(), digest: inputs.digest });
        Ok(restored)
    }

    fn digest(&self) -> [u8; 32] {
        Sha256::digest(format!("{} {}", self.desired.generation(), self.desired.yaml())).into()
    }

    /// Checks that a saved plan is accepted exactly as long as manifests and records are unchanged.
    pub(super) fn check_stale_rejection(&mut self) -> Result<(), String> {
        let Some(FiledPlan { saved, recorded, digest }) = self.saved_plan.take() else { return Ok(()) };
        let now = Inputs { digest: self.digest(), recorded: self.records(), ..Inputs::default() };
        let versions = |all: &Recorded| all.iter().map(|(x, one)| (x.clone(), one.version)).collect::<Vec<_>>();
        let is_good = versions(&recorded) == versions(&now.recorded) && digest == now.digest;
        match (saved.check(&now), is_good) {
            (Ok(()), false) => Err("a stale saved plan is accepted".into()),
            (Err(error), true) => Err(format!("a saved plan that is not stale is rejected: {error}")),
            _ => Ok(()),
        }
    }
}
