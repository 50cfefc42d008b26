//! Saved plans: `purlin plan --out FILE` and `purlin apply FILE`.
//!
//! A plan is a function of configuration, records, flags, a seed, and what drivers replied. The file holds the last
//! three whole and digests of the first two. To apply it is to make the same plan once more, from the same replies and
//! without asking anybody, and to walk it. Whatever has moved on since gives another digest, and the plan is refused.

mod reply;
mod tape;

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::VERSION;
use super::failure::Failure;
use super::options::{Files, Planning, address};
use super::situation::{Basis, Planned, Purpose, Situation};
use super::view;
use crate::driver::Registry;
use crate::execute::{Engine, Limits};
use crate::graph::render::GraphJson;
use crate::plan::Refresh;
use crate::plan::render::json::Changes;
use crate::process::private_file;
use crate::store::codec;

use reply::Reply;
use tape::{Tape, Taped};

/// The format of the file.
const FORMAT: u32 = 1;

/// A saved plan, as it stands in its file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SavedPlan {
    format: u32,
    /// The version that has made it: another one may plan otherwise.
    purlin: String,
    sources: Vec<PathBuf>,
    state: PathBuf,
    config: String,
    records: String,
    plan: String,
    refresh_only: bool,
    #[serde(default)]
    destroy: bool,
    replace: Vec<String>,
    targets: Vec<String>,
    seed: u64,
    read: Read,
    replies: BTreeMap<String, Reply>,
}

/// What was read before it was compared.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Read {
    All,
    None,
    Due(Vec<String>),
}

/// Only the format is looked at in a file of another one.
#[derive(Deserialize)]
struct Head {
    format: u32,
}

/// Writes down what drivers reply while a plan is made.
pub struct Recorder {
    tape: Arc<Tape>,
}

impl Recorder {
    /// The recorder, and an engine that plans through it.
    pub fn new(drivers: Registry, limits: Limits) -> (Self, Engine) {
        let tape = Arc::new(Tape::default());
        let recording = Arc::clone(&tape);
        let drivers = drivers.wrapped(move |driver| Arc::new(Taped::recording(driver, Arc::clone(&recording))));
        (Self { tape }, view::planning_engine(drivers, limits))
    }

    /// The plan that was made.
    pub fn save(
        self,
        files: &Files,
        planning: &Planning,
        destroy: bool,
        situation: &Situation,
        planned: &Planned,
    ) -> anyhow::Result<SavedPlan> {
        let texts = |addresses: &BTreeSet<crate::model::Address>| addresses.iter().map(ToString::to_string).collect();
        let absolute = |path: &PathBuf| std::path::absolute(path);
        Ok(SavedPlan {
            format: FORMAT,
            purlin: VERSION.to_owned(),
            sources: files.sources.iter().map(absolute).collect::<Result<_, _>>()?,
            state: absolute(&files.state)?,
            config: hex(&situation.digest),
            records: records(situation)?,
            plan: fingerprint(planned)?,
            refresh_only: planning.refresh_only,
            destroy,
            replace: texts(&planning.replace),
            targets: texts(&planning.targets),
            seed: planned.basis.seed,
            read: match &planned.basis.refresh {
                Refresh::All => Read::All,
                Refresh::None => Read::None,
                Refresh::Due(due) => Read::Due(texts(due)),
            },
            replies: self.tape.take(),
        })
    }
}

impl SavedPlan {
    /// Writes it where only its owner can read it.
    pub fn write(&self, path: &Path) -> anyhow::Result<()> {
        let failed = |error: std::io::Error| {
            Failure::hinted(format!("the plan cannot be saved to `{}`: {error}", path.display()), "name another file")
        };
        let mut file = private_file::options().create(true).truncate(true).open(path).map_err(failed)?;
        #[cfg(unix)]
        file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o600)).map_err(failed)?;
        file.write_all(&serde_json::to_vec(self)?).map_err(failed)?;
        file.sync_all().map_err(failed)
    }

    /// Reads a file.
    pub fn read(path: &Path) -> anyhow::Result<Self> {
        let name = path.display();
        let bytes = std::fs::read(path).map_err(|error| {
            let hint = "`purlin plan -f DIR --out FILE` saves a plan; to apply files, name them with -f";
            Failure::hinted(format!("the saved plan `{name}` cannot be read: {error}"), hint)
        })?;
        let head: Head = serde_json::from_slice(&bytes)
            .map_err(|_| Failure::hinted(format!("`{name}` is no saved plan"), "to apply files, name them with -f"))?;
        let again = "plan again with `purlin plan --out`";
        if head.format != FORMAT {
            let message = format!("the saved plan `{name}` has format {}, not {FORMAT}", head.format);
            return Err(Failure::hinted(message, again));
        }
        let saved: Self = serde_json::from_slice(&bytes)
            .map_err(|_| Failure::hinted(format!("the saved plan `{name}` is damaged"), again))?;
        if saved.purlin != VERSION {
            let message = format!("purlin {} has made the saved plan `{name}`, and this is {VERSION}", saved.purlin);
            return Err(Failure::hinted(message, again));
        }
        Ok(saved)
    }

    /// What it was made from.
    pub fn files(&self, kubeconfig: Option<PathBuf>, plugin_dirs: Vec<PathBuf>) -> Files {
        Files { sources: self.sources.clone(), state: self.state.clone(), kubeconfig, plugin_dirs }
    }

    /// Whether the situation is still the one that it was made in.
    pub fn check(&self, situation: &Situation) -> anyhow::Result<()> {
        let moved = |what: &str| {
            let message = format!("{what} changed since the plan was saved, so it is not carried out");
            Err(Failure::hinted(message, "plan again with `purlin plan --out`"))
        };
        match () {
            () if hex(&situation.digest) != self.config => moved("the files have"),
            () if records(situation)? != self.records => moved("the records have"),
            () => Ok(()),
        }
    }

    /// The plan, made out of what was replied then.
    pub async fn plan(self, drivers: Registry, limits: Limits, situation: &Situation) -> anyhow::Result<Planned> {
        let set = |texts: &[String]| texts.iter().map(|text| address(text)).collect::<anyhow::Result<BTreeSet<_>>>();
        let planning = Planning {
            targets: set(&self.targets)?,
            replace: set(&self.replace)?,
            refresh_only: self.refresh_only,
            limits,
            ..Planning::default()
        };
        let refresh = match &self.read {
            Read::All => Refresh::All,
            Read::None => Refresh::None,
            Read::Due(due) => Refresh::Due(set(due)?),
        };
        let towards = if self.destroy { Purpose::destroy() } else { Purpose::default() };
        let purpose = Purpose { basis: Some(Basis { seed: self.seed, refresh }), ..towards };
        let tape = Arc::new(Tape::of(self.replies));
        let drivers = drivers.wrapped(move |driver| Arc::new(Taped::playing(driver, Arc::clone(&tape))));
        let planned = situation.plan(&view::planning_engine(drivers, limits), &planning, purpose).await?;
        if fingerprint(&planned)? != self.plan {
            let message = "the saved plan cannot be made out again, so it is not carried out";
            return Err(Failure::hinted(message, "plan again with `purlin plan --out`, and report this"));
        }
        Ok(planned)
    }
}

/// What a plan does, as anybody may see it.
fn fingerprint(planned: &Planned) -> anyhow::Result<String> {
    let mut hasher = Sha256::new();
    hasher.update(serde_json::to_vec(&Changes(&planned.plan.changes))?);
    hasher.update(serde_json::to_vec(&GraphJson(&planned.graph))?);
    Ok(hex(&hasher.finalize()))
}

/// The records, by version and content: a file that was restored from a backup may have the same versions.
fn records(situation: &Situation) -> anyhow::Result<String> {
    let mut hasher = Sha256::new();
    for stored in situation.recorded.values() {
        hasher.update(stored.version.0.to_le_bytes());
        let bytes = codec::encode(&stored.record)?;
        hasher.update((bytes.len() as u64).to_le_bytes());
        hasher.update(bytes);
    }
    for (address, held) in &situation.held {
        if held.reason == crate::model::Reason::RecordUnreadable {
            hasher.update(address.to_string());
        }
    }
    Ok(hex(&hasher.finalize()))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
