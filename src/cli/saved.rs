//! Saved plans: `purlin plan --out FILE` and `purlin apply FILE`.
//!
//! The file contains the plan with its graph, and digests of the configuration and the records that it was made from. The
//! configuration is read again. If it or the records have changed, the plan is stale and rejected. What a Terraform configuration
//! means is known only from planning it, so its plan is made again, and has to have the same changes.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::VERSION;
use super::args::RefreshChoice;
use super::failure::Failure;
use super::inputs::{Inputs, PlanParameters, PlanResult};
use super::options::{Files, Planning};
use super::root_module::Variables;
use engine::load::{Expansion, InstanceKeys};
use model::text::hex;
use model::{Address, Stem, errors, has_errors};
use process::private_file;
use runtime::execute::{Engine, Limits};
use runtime::pipeline;
use runtime::store::codec;

const FORMAT: u32 = 1;

/// The first line of the file, as JSON. The plan follows, in the encoding of records.
#[derive(Serialize, Deserialize)]
struct Header {
    format: u32,
    /// The Purlin version that made the plan. Another version may have another form of it.
    #[serde(default)]
    purlin: String,
    /// The digest of everything that follows.
    #[serde(default)]
    digest: String,
}

/// A saved plan.
#[derive(Debug, Serialize, Deserialize)]
pub struct SavedPlan {
    sources: Vec<PathBuf>,
    state: PathBuf,
    prune: bool,
    /// The digest of the manifests.
    config: [u8; 32],
    /// The digest of the records.
    records: [u8; 32],
    planned: PlanResult,
    targets: BTreeSet<Address>,
    replace: BTreeSet<Address>,
    /// Whether objects were read.
    is_refreshed: bool,
    /// The values of variables of a Terraform configuration.
    variables: Variables,
    /// When it was planned, as the configuration sees it.
    plan_time: Timestamp,
    /// The instances of the families whose instances depend on the values of other objects.
    families: BTreeMap<Stem, InstanceKeys>,
}

impl SavedPlan {
    pub fn new(files: &Files, planning: &Planning, inputs: &Inputs, mut planned: PlanResult) -> anyhow::Result<Self> {
        // It is planned again, and configurations can have ephemeral values.
        if planned.is_terraform && !planned.destroys {
            planned.plan.forget_configurations();
        }
        let program = inputs.config.root_program();
        let ephemeral = program.map(|program| program.ephemeral_variables()).unwrap_or_default();
        let before = &inputs.config.families;
        let families = planned.config.families.iter();
        let families = families.filter(|(name, _)| before.get(*name).is_some_and(|family| family.is_pending()));
        let families = families.filter_map(|(name, family)| match &family.expansion {
            Expansion::Known(keys) => Some((name.clone(), keys.clone())),
            Expansion::Pending | Expansion::Failed(_) => None,
        });
        Ok(Self {
            sources: files.sources.iter().map(std::path::absolute).collect::<Result<_, _>>()?,
            state: std::path::absolute(&files.state)?,
            prune: files.prune,
            config: inputs.digest,
            records: records(inputs)?,
            families: families.collect(),
            targets: planning.targets.clone(),
            replace: planning.replace.clone(),
            is_refreshed: planning.refresh != RefreshChoice::None,
            variables: files.variables.absolute()?.without(&ephemeral),
            plan_time: files.plan_time,
            planned,
        })
    }

    /// Writes the file, readable only by its owner.
    pub fn write(&self, path: &Path) -> anyhow::Result<()> {
        write_private(path, &self.to_bytes()?).map_err(|error| {
            Failure::hinted(
                format!("the plan cannot be saved to `{}`: {error}", path.display()),
                "specify another file",
            )
        })
    }

    pub fn to_bytes(&self) -> anyhow::Result<Vec<u8>> {
        // Values that are nested too deeply were rejected when they were planned.
        let body = codec::encode_content(self).map_err(|_| {
            Failure::hinted("the plan cannot be saved, because the path of a file is not UTF-8", "use another name")
        })?;
        let header = Header { format: FORMAT, purlin: VERSION.to_owned(), digest: hex(&Sha256::digest(&body)) };
        Ok([&serde_json::to_vec(&header)?[..], b"\n", &body].concat())
    }

    pub fn read(path: &Path) -> anyhow::Result<Self> {
        let name = path.display();
        let bytes = std::fs::read(path).map_err(|error| {
            let hint = "`purlin plan -f DIR --out FILE` saves a plan; to apply manifests, specify them with -f";
            Failure::hinted(format!("the saved plan `{name}` cannot be read: {error}"), hint)
        })?;
        Self::from_bytes(&bytes, &name.to_string())
    }

    /// Reads the bytes of the file of this name.
    pub fn from_bytes(bytes: &[u8], name: &str) -> anyhow::Result<Self> {
        let end = bytes.iter().position(|byte| *byte == b'\n').unwrap_or(bytes.len());
        let (header, body) = bytes.split_at(end);
        let header: Header = serde_json::from_slice(header).map_err(|_| {
            Failure::hinted(format!("`{name}` is not a saved plan"), "to apply manifests, specify them with -f")
        })?;
        let again = "plan again with `purlin plan --out`";
        if header.format != FORMAT {
            let message = format!("the saved plan `{name}` has format {}, not {FORMAT}", header.format);
            return Err(Failure::hinted(message, again));
        }
        if header.purlin != VERSION {
            let message =
                format!("the saved plan `{name}` was made by Purlin {}, but this is Purlin {VERSION}", header.purlin);
            return Err(Failure::hinted(message, again));
        }
        let body = body.get(1..).filter(|body| hex(&Sha256::digest(body)) == header.digest);
        let saved = body.and_then(|body| codec::decode_content(body).ok());
        saved.ok_or_else(|| Failure::hinted(format!("the saved plan `{name}` is damaged"), again))
    }

    pub fn files(&self, kubeconfig: Option<PathBuf>, plugin_dirs: Vec<PathBuf>) -> Files {
        let (sources, state) = (self.sources.clone(), self.state.clone());
        let (variables, prune, plan_time) = (self.variables.clone(), self.prune, self.plan_time);
        Files {
            sources,
            prune,
            state,
            is_state_named: true,
            kubeconfig,
            plugin_dirs,
            variables,
            asks_for_values: false,
            plan_time,
        }
    }

    /// Returns an error if the manifests or records have changed since the plan was saved.
    pub fn check(&self, inputs: &Inputs) -> anyhow::Result<()> {
        let what = if inputs.digest != self.config {
            "the files"
        } else if records(inputs)? != self.records {
            "the records"
        } else {
            return Ok(());
        };
        let message = format!("{what} have changed since the plan was saved, so the plan is stale");
        Err(Failure::hinted(message, "plan again with `purlin plan --out`"))
    }

    /// Returns the plan, with the configuration of the inputs that [`Self::check`] has accepted. Prepares the providers as
    /// planning does.
    ///
    /// # Errors
    /// If the plan of a Terraform configuration has other changes now.
    pub async fn restore(self, engine: &Engine, inputs: &Inputs) -> anyhow::Result<PlanResult> {
        if !inputs.config.modules.is_empty() && !self.planned.destroys {
            return self.plan_again(engine, inputs).await;
        }
        let mut config = inputs.whole_config(self.planned.destroys);
        if !self.families.is_empty() {
            config = Arc::new(config.expanded(&self.families));
        }
        pipeline::prepare(engine, &config, &inputs.recorded).await;
        Ok(PlanResult { config, ..self.planned })
    }

    /// The plan as it was saved, for showing it.
    pub fn into_planned(self) -> PlanResult {
        self.planned
    }

    async fn plan_again(self, engine: &Engine, inputs: &Inputs) -> anyhow::Result<PlanResult> {
        let Self { planned, targets, replace, is_refreshed, .. } = self;
        let refresh = if is_refreshed { RefreshChoice::All } else { RefreshChoice::None };
        let limits = Limits::default();
        let planning = Planning { targets, replace, refresh_only: planned.refresh_only, refresh, limits };
        let purpose = PlanParameters { seed: Some(planned.seed), ..PlanParameters::default() };
        let again = inputs.plan(engine, &planning, purpose).await?;
        // What is missing now, such as the value of an ephemeral variable, is the reason of the differences.
        let error = errors(&again.diagnostics).next().filter(|_| !has_errors(&planned.diagnostics));
        if let Some(error) = error {
            let hint = error.hint.clone().unwrap_or_else(|| "plan again with `purlin plan --out`".to_owned());
            return Err(Failure::hinted(error.to_string(), hint));
        }
        let differs = again.plan.changes().zip(planned.plan.changes()).find(|(now, saved)| now != saved);
        let other = differs.map(|(now, _)| &now.address);
        match (other, again.plan.changes().count() == planned.plan.changes().count()) {
            (None, true) => Ok(again),
            (other, _) => {
                let what = other.map_or_else(String::new, |address| format!(" of `{address}`"));
                let message =
                    format!("the changes{what} are others than when the plan was saved, so the plan is stale");
                Err(Failure::hinted(message, "plan again with `purlin plan --out`"))
            }
        }
    }
}

fn write_private(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut file = private_file::options().create(true).truncate(true).open(path)?;
    #[cfg(unix)]
    file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// A digest of the records. It includes their contents, because a file restored from a backup may have the same
/// versions.
fn records(inputs: &Inputs) -> anyhow::Result<[u8; 32]> {
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
    Ok(hasher.finalize().into())
}
