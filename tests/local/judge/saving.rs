//! Saved plans: a plan goes through a file, and what comes out of it is carried out. Nobody is asked a second time, and
//! once anything has moved on the file is refused.

use std::sync::Arc;

use purlin::cli::options::{Files, Planning};
use purlin::cli::saved::{Recorder, SavedPlan};
use purlin::cli::situation::{Basis, Planned, Purpose, Situation};
use purlin::driver::Registry;
use purlin::execute::Limits;
use purlin::load::Config;
use purlin::model::Recorded;
use purlin::pipeline;
use purlin::plan::render::json::Changes;
use purlin::plan::{Mode, PlanOptions};
use sha2::{Digest as _, Sha256};

use super::history::History;
use super::world::{TYPE, World};

/// A plan that lies in a file, and the records that it was made from.
pub(super) struct Filed {
    saved: SavedPlan,
    recorded: Recorded,
    /// Of the manifests that it was made from.
    digest: [u8; 32],
}

impl History {
    /// Plans as `purlin plan --out` does, reads the file back, and plans out of it. `None`: crashed.
    pub(super) async fn plan_through_a_file(
        &mut self,
        config: &Arc<Config>,
        recorded: &Recorded,
        options: &PlanOptions,
    ) -> Result<Option<pipeline::Planned>, String> {
        let situation = Situation {
            config: Arc::clone(config),
            digest: self.digest(),
            recorded: recorded.clone(),
            held: options.held.clone(),
            destroy_orphans: options.destroy_orphans,
            ..Situation::default()
        };
        let planning = Planning {
            targets: options.targets.clone(),
            replace: options.replace.clone(),
            refresh_only: options.mode == Mode::RefreshOnly,
            ..Planning::default()
        };
        let purpose = Purpose {
            mode: options.mode,
            basis: Some(Basis { seed: options.seed, refresh: options.refresh.clone() }),
            ..Purpose::default()
        };
        let drivers = Registry::default().with(TYPE, Arc::clone(&self.world) as _);
        let (recorder, engine) = Recorder::new(drivers, Limits::default());
        let planned = situation.plan(&engine, &planning, purpose);
        let Some(planned) = self.crash.clone().survive(planned).await else { return Ok(None) };
        let planned = planned.map_err(|error| error.to_string())?;
        let files = Files { sources: Vec::new(), state: "state".into(), kubeconfig: None, plugin_dirs: Vec::new() };
        let is_destroy = options.mode == Mode::Destroy;
        let saved = recorder.save(&files, &planning, is_destroy, &situation, &planned);
        let text =
            serde_json::to_string(&saved.map_err(|error| error.to_string())?).map_err(|error| error.to_string())?;
        let read = || serde_json::from_str::<SavedPlan>(&text).map_err(|error| error.to_string());

        read()?.check(&situation).map_err(|error| format!("a saved plan is refused at once: {error}"))?;
        let again = read()?.plan(self.nobody(), Limits::default(), &situation).await;
        let again = again.map_err(|error| format!("a saved plan cannot be made out: {error}"))?;
        let told = |changes| serde_json::to_string(&Changes(changes)).unwrap_or_default();
        if told(&again.plan.changes) != told(&planned.plan.changes) || again.moves != planned.moves {
            return Err("a saved plan does not do what it said".into());
        }
        self.note("  the plan goes through a file");
        self.filed = Some(Filed { saved: read()?, recorded: recorded.clone(), digest: situation.digest });
        let Planned { plan, graph, config, moves, .. } = again;
        Ok(Some(pipeline::Planned { plan, graph, config, moves }))
    }

    /// A driver that knows nothing of this world: whoever asks it gets other answers.
    fn nobody(&self) -> Registry {
        let (dice, crash) = (Arc::clone(&self.dice), Arc::default());
        Registry::default().with(TYPE, Arc::new(World::new(dice, crash, Arc::default(), self.world.recovery)) as _)
    }

    fn digest(&self) -> [u8; 32] {
        Sha256::digest(format!("{} {}", self.wish.generation(), self.wish.yaml())).into()
    }

    /// A saved plan is good for as long as nothing has moved on, and no longer.
    pub(super) fn refuses_what_is_out_of_date(&mut self) -> Result<(), String> {
        let Some(Filed { saved, recorded, digest }) = self.filed.take() else { return Ok(()) };
        let now = Situation { digest: self.digest(), recorded: self.records(), ..Situation::default() };
        let versions = |all: &Recorded| all.iter().map(|(x, one)| (x.clone(), one.version)).collect::<Vec<_>>();
        let is_good = versions(&recorded) == versions(&now.recorded) && digest == now.digest;
        match (saved.check(&now), is_good) {
            (Ok(()), false) => Err("a saved plan is taken a second time, though things have moved on".into()),
            (Err(error), true) => Err(format!("a saved plan is refused, though nothing has moved on: {error}")),
            _ => Ok(()),
        }
    }
}
