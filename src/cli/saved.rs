//! Saved plans: `purlin plan --out FILE` and `purlin apply FILE`.
//!
//! A plan is a function of configuration, records, flags, a seed, and the replies of drivers. The file contains the
//! last three, and digests of the first two. Applying it makes the same plan from the saved replies, without calling
//! drivers, and walks it. A plan with a different digest is stale and rejected.

mod reply;
mod replay;

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::VERSION;
use super::failure::Failure;
use super::inputs::{Inputs, PlanBasis, PlanParameters, PlanResult};
use super::options::{Files, Planning, address};
use super::view;
use drivers::Registry;
use engine::graph::render::GraphJson;
use engine::plan::Refresh;
use engine::plan::render::json::Changes;
use model::text::hex;
use process::private_file;
use runtime::execute::{Engine, Limits};
use runtime::store::codec;

use replay::{ReplayDriver, ReplyLog};
use reply::Reply;

const FORMAT: u32 = 1;

/// The contents of a saved plan file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SavedPlan {
    format: u32,
    /// The Purlin version that made the plan. Another version may plan differently.
    purlin: String,
    sources: Vec<PathBuf>,
    state: PathBuf,
    config: String,
    records: String,
    plan: String,
    refresh_only: bool,
    #[serde(default)]
    destroy: bool,
    #[serde(default)]
    prune: bool,
    replace: Vec<String>,
    targets: Vec<String>,
    seed: u64,
    read: ReadSelection,
    replies: BTreeMap<String, Reply>,
}

/// Which objects were read.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum ReadSelection {
    All,
    None,
    Due(Vec<String>),
}

/// Read first, because other formats may have other fields.
#[derive(Deserialize)]
struct FormatHeader {
    format: u32,
}

/// Records the replies of drivers while a plan is made.
pub struct Recorder {
    log: Arc<ReplyLog>,
}

impl Recorder {
    /// Returns the recorder, and an engine whose driver calls it records.
    pub fn new(drivers: Registry, limits: Limits) -> (Self, Engine) {
        let tape = Arc::new(ReplyLog::default());
        let recording = Arc::clone(&tape);
        let drivers =
            drivers.map_drivers(move |driver| Arc::new(ReplayDriver::recording(driver, Arc::clone(&recording))));
        (Self { log: tape }, view::planning_engine(drivers, limits))
    }

    pub fn save(
        self,
        files: &Files,
        planning: &Planning,
        destroy: bool,
        inputs: &Inputs,
        planned: &PlanResult,
    ) -> anyhow::Result<SavedPlan> {
        let strings = |addresses: &BTreeSet<model::Address>| addresses.iter().map(ToString::to_string).collect();
        let absolute = |path: &PathBuf| std::path::absolute(path);
        Ok(SavedPlan {
            format: FORMAT,
            purlin: VERSION.to_owned(),
            sources: files.sources.iter().map(absolute).collect::<Result<_, _>>()?,
            state: absolute(&files.state)?,
            config: hex(&inputs.digest),
            records: records(inputs)?,
            plan: fingerprint(planned)?,
            refresh_only: planning.refresh_only,
            destroy,
            prune: files.prune,
            replace: strings(&planning.replace),
            targets: strings(&planning.targets),
            seed: planned.basis.seed,
            read: match &planned.basis.refresh {
                Refresh::All => ReadSelection::All,
                Refresh::None => ReadSelection::None,
                Refresh::Due(due) => ReadSelection::Due(strings(due)),
            },
            replies: self.log.take(),
        })
    }
}

impl SavedPlan {
    /// Writes the file, readable only by its owner.
    pub fn write(&self, path: &Path) -> anyhow::Result<()> {
        let failed = |error: std::io::Error| {
            Failure::hinted(
                format!("the plan cannot be saved to `{}`: {error}", path.display()),
                "specify another file",
            )
        };
        let mut file = private_file::options().create(true).truncate(true).open(path).map_err(failed)?;
        #[cfg(unix)]
        file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o600)).map_err(failed)?;
        file.write_all(&serde_json::to_vec(self)?).map_err(failed)?;
        file.sync_all().map_err(failed)
    }

    pub fn read(path: &Path) -> anyhow::Result<Self> {
        let name = path.display();
        let bytes = std::fs::read(path).map_err(|error| {
            let hint = "`purlin plan -f DIR --out FILE` saves a plan; to apply manifests, specify them with -f";
            Failure::hinted(format!("the saved plan `{name}` cannot be read: {error}"), hint)
        })?;
        let head: FormatHeader = serde_json::from_slice(&bytes).map_err(|_| {
            Failure::hinted(format!("`{name}` is not a saved plan"), "to apply manifests, specify them with -f")
        })?;
        let again = "plan again with `purlin plan --out`";
        if head.format != FORMAT {
            let message = format!("the saved plan `{name}` has format {}, not {FORMAT}", head.format);
            return Err(Failure::hinted(message, again));
        }
        let saved: Self = serde_json::from_slice(&bytes)
            .map_err(|_| Failure::hinted(format!("the saved plan `{name}` is damaged"), again))?;
        if saved.purlin != VERSION {
            let message =
                format!("the saved plan `{name}` was made by Purlin {}, but this is Purlin {VERSION}", saved.purlin);
            return Err(Failure::hinted(message, again));
        }
        Ok(saved)
    }

    pub fn files(&self, kubeconfig: Option<PathBuf>, plugin_dirs: Vec<PathBuf>) -> Files {
        let (sources, state) = (self.sources.clone(), self.state.clone());
        Files { sources, prune: self.prune, state, is_state_named: true, kubeconfig, plugin_dirs }
    }

    /// Returns an error if the manifests or records have changed since the plan was saved.
    pub fn check(&self, inputs: &Inputs) -> anyhow::Result<()> {
        let stale = |what: &str| {
            let message = format!("{what} changed since the plan was saved, so the plan is stale");
            Err(Failure::hinted(message, "plan again with `purlin plan --out`"))
        };
        match () {
            () if hex(&inputs.digest) != self.config => stale("the files have"),
            () if records(inputs)? != self.records => stale("the records have"),
            () => Ok(()),
        }
    }

    /// Makes the plan again from the saved replies.
    pub async fn plan(self, drivers: Registry, limits: Limits, inputs: &Inputs) -> anyhow::Result<PlanResult> {
        let set =
            |strings: &[String]| strings.iter().map(|text| address(text)).collect::<anyhow::Result<BTreeSet<_>>>();
        let planning = Planning {
            targets: set(&self.targets)?,
            replace: set(&self.replace)?,
            refresh_only: self.refresh_only,
            limits,
            ..Planning::default()
        };
        let refresh = match &self.read {
            ReadSelection::All => Refresh::All,
            ReadSelection::None => Refresh::None,
            ReadSelection::Due(due) => Refresh::Due(set(due)?),
        };
        let mode = if self.destroy { PlanParameters::destroy() } else { PlanParameters::default() };
        let purpose = PlanParameters { basis: Some(PlanBasis { seed: self.seed, refresh }), ..mode };
        let tape = Arc::new(ReplyLog::of(self.replies));
        let drivers = drivers.map_drivers(move |driver| Arc::new(ReplayDriver::replaying(driver, Arc::clone(&tape))));
        let planned = inputs.plan(&view::planning_engine(drivers, limits), &planning, purpose).await?;
        if fingerprint(&planned)? != self.plan {
            let message = "the saved plan cannot be reproduced, so it is not applied";
            return Err(Failure::hinted(message, "plan again with `purlin plan --out`, and report this as a bug"));
        }
        Ok(planned)
    }
}

/// A digest of the changes and the graph, without sensitive values.
fn fingerprint(planned: &PlanResult) -> anyhow::Result<String> {
    let mut hasher = Sha256::new();
    hasher.update(serde_json::to_vec(&Changes(&planned.plan.changes))?);
    hasher.update(serde_json::to_vec(&GraphJson(&planned.graph))?);
    Ok(hex(&hasher.finalize()))
}

/// A digest of the records. It includes their contents, because a file restored from a backup may have the same
/// versions.
fn records(inputs: &Inputs) -> anyhow::Result<String> {
    let mut hasher = Sha256::new();
    for stored in inputs.recorded.values() {
        hasher.update(stored.version.0.to_le_bytes());
        let source = stored.record.source.as_deref().unwrap_or_default();
        for bytes in [&*codec::encode(&stored.record)?, source.as_bytes()] {
            hasher.update((bytes.len() as u64).to_le_bytes());
            hasher.update(bytes);
        }
    }
    for (address, held) in &inputs.held {
        if held.reason == model::Reason::RecordUnreadable {
            hasher.update(address.to_string());
        }
    }
    Ok(hex(&hasher.finalize()))
}
