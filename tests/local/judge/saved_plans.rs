//! Saved plans: a plan is written to a file, read and applied. Applying it makes no driver calls for planning, and a
//! stale plan is rejected.

use std::sync::Arc;

use purlin::cli::inputs::{Inputs, PlanBasis, PlanParameters, PlanResult};
use purlin::cli::options::{Files, Planning};
use purlin::cli::saved::{Recorder, SavedPlan};
use purlin::driver::Registry;
use purlin::execute::Limits;
use purlin::load::Config;
use purlin::model::Recorded;
use purlin::pipeline;
use purlin::plan::render::json::Changes;
use purlin::plan::{Mode, PlanOptions};
use sha2::{Digest as _, Sha256};

use super::fake_driver::{FakeDriver, TYPE};
use super::history::History;

/// A saved plan, and the records from which it was computed.
pub(super) struct FiledPlan {
    saved: SavedPlan,
    recorded: Recorded,
    /// The digest of its manifests.
    digest: [u8; 32],
}

impl History {
    /// Plans like `purlin plan --out`, reads the file, and restores the plan from it. `None`: crashed.
    pub(super) async fn plan_through_a_file(
        &mut self,
        config: &Arc<Config>,
        recorded: &Recorded,
        options: &PlanOptions,
    ) -> Result<Option<pipeline::OrderedPlan>, String> {
        let inputs = Inputs {
            config: Arc::clone(config),
            digest: self.digest(),
            recorded: recorded.clone(),
            held: options.blocked.clone(),
            destroy_orphans: options.destroy_orphans,
            ..Inputs::default()
        };
        let planning = Planning {
            targets: options.targets.clone(),
            replace: options.replace.clone(),
            refresh_only: options.mode == Mode::RefreshOnly,
            ..Planning::default()
        };
        let parameters = PlanParameters {
            mode: options.mode,
            basis: Some(PlanBasis { seed: options.seed, refresh: options.refresh.clone() }),
            ..PlanParameters::default()
        };
        let drivers = Registry::default().with(TYPE, Arc::clone(&self.driver) as _);
        let (recorder, engine) = Recorder::new(drivers, Limits::default());
        let planned = inputs.plan(&engine, &planning, parameters);
        let Some(planned) = self.crash.clone().survive(planned).await else { return Ok(None) };
        let planned = planned.map_err(|error| error.to_string())?;
        let files = Files {
            sources: Vec::new(),
            prune: false,
            state: "state".into(),
            is_state_named: true,
            kubeconfig: None,
            plugin_dirs: Vec::new(),
        };
        let is_destroy = options.mode == Mode::Destroy;
        let saved = recorder.save(&files, &planning, is_destroy, &inputs, &planned);
        let text =
            serde_json::to_string(&saved.map_err(|error| error.to_string())?).map_err(|error| error.to_string())?;
        let read = || serde_json::from_str::<SavedPlan>(&text).map_err(|error| error.to_string());

        read()?.check(&inputs).map_err(|error| format!("a new saved plan is rejected: {error}"))?;
        let again = read()?.plan(self.unrelated_drivers(), Limits::default(), &inputs).await;
        let again = again.map_err(|error| format!("a saved plan cannot be restored: {error}"))?;
        let as_json = |changes| serde_json::to_string(&Changes(changes)).unwrap_or_default();
        if as_json(&again.plan.changes) != as_json(&planned.plan.changes) || again.moves != planned.moves {
            return Err("a restored plan differs from the saved one".into());
        }
        self.note("  the plan is saved and restored");
        self.saved_plan = Some(FiledPlan { saved: read()?, recorded: recorded.clone(), digest: inputs.digest });
        let PlanResult { plan, graph, config, moves, .. } = again;
        Ok(Some(pipeline::OrderedPlan { plan, graph, config, moves }))
    }

    /// Returns a driver with other objects, whose responses would change the plan.
    fn unrelated_drivers(&self) -> Registry {
        let (dice, crash) = (Arc::clone(&self.dice), Arc::default());
        Registry::default()
            .with(TYPE, Arc::new(FakeDriver::new(dice, crash, Arc::default(), self.driver.recovery)) as _)
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
