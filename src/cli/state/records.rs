//! Reads and edits the records of a target.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;

use super::edit::RecordEdit;
use crate::cli::cluster::ClusterEditor;
use crate::cli::options::{Target, source_paths};
use crate::cli::output::Console;
use crate::cli::{cluster, local};
use model::{Address, Diagnostic, Diagnostics, Reason, Record, Recorded, Stored};
use runtime::store::{RecordedConfiguration, StateFile, UnreadableRecord};

/// Records that are open for editing.
pub struct Records {
    pub recorded: Recorded,
    pub unreadable: Vec<UnreadableRecord>,
    pub editor: Editor,
}

/// Writes edited records by compare-and-swap.
pub enum Editor {
    /// A locked state file.
    File(Box<StateFile>),
    /// The Secrets of a controller.
    Cluster(Box<ClusterEditor>),
}

impl Editor {
    pub async fn write(&self, stored: &Stored, edited: RecordEdit) -> anyhow::Result<()> {
        match (self, edited) {
            (_, RecordEdit::Unchanged) => Ok(()),
            (Self::Cluster(editor), RecordEdit::Write(record)) => editor.write(&record, stored).await,
            (Self::Cluster(editor), RecordEdit::Delete) => editor.remove(stored).await,
            (Self::File(state), RecordEdit::Write(record)) => {
                Ok(state.write(&record, Some(stored.version)).await.map(drop)?)
            }
            (Self::File(state), RecordEdit::Delete) => Ok(state.delete(&stored.record.address, stored.version).await?),
        }
    }

    /// Whether the process that started the create of a record certainly no longer runs it. The lock of a state file
    /// proves it, and in a cluster the controller's report, or else the deadline of the create.
    pub async fn create_has_ended(&self, record: &Record, now: Timestamp) -> anyhow::Result<bool> {
        let Self::Cluster(editor) = self else { return Ok(true) };
        let is_over = record.intent.as_ref().is_none_or(|intent| intent.deadline < now);
        Ok(is_over || editor.has_condition(record.address.name(), Reason::CreateOutcomeUnknown).await?)
    }

    /// Whether a record of exactly this address should exist but does not.
    pub fn is_missing(&self, address: &Address) -> bool {
        match self {
            Self::Cluster(editor) => editor.is_missing(address),
            Self::File(_) => false,
        }
    }

    /// The missing records that an address stands for.
    pub async fn missing(&self, address: &Address) -> anyhow::Result<Vec<Address>> {
        match self {
            Self::Cluster(editor) => editor.missing(address).await,
            Self::File(_) => Ok(Vec::new()),
        }
    }

    /// Makes a missing record count as never created. A file has none.
    pub async fn forget_missing(&self, missing: &Address) -> anyhow::Result<()> {
        match self {
            Self::Cluster(editor) => editor.forget_missing(missing).await,
            Self::File(_) => Ok(()),
        }
    }

    pub async fn remove_unreadable(&self, found: &UnreadableRecord) -> anyhow::Result<()> {
        match self {
            Self::Cluster(editor) => editor.remove_unreadable(found).await,
            Self::File(state) => Ok(state.delete(&found.address, found.version).await?),
        }
    }
}

/// The records of a target.
pub struct RecordList {
    pub recorded: Recorded,
    /// Errors of unreadable records.
    pub diagnostics: Diagnostics,
    /// What is known of Terraform configurations beside their objects, by source.
    pub configurations: BTreeMap<Arc<str>, RecordedConfiguration>,
}

impl RecordList {
    /// Removes the records of other sources than those of `-f`, if it is given. The sources are not read.
    pub fn retain_sources(&mut self, target: &Target) {
        let Target::Files(files) = target else { return };
        if files.sources.is_empty() {
            return;
        }
        let paths = source_paths(&files.state);
        let given: Vec<_> = files.sources.iter().map(|source| paths.absolute(source)).collect();
        let is_covered = |source: &str| given.iter().any(|path| paths.covers(path, source));
        self.recorded.retain(|_, stored| stored.record.source.as_deref().is_some_and(is_covered));
        self.configurations.retain(|source, _| is_covered(source));
    }
}

pub async fn read(target: Target, console: Console) -> anyhow::Result<RecordList> {
    let loaded = match target {
        Target::Files(files) => local::read_records(&files, console)?,
        Target::Cluster(cluster) => cluster::records(&cluster, console).await?,
    };
    Ok(RecordList {
        diagnostics: loaded.unreadable.iter().map(diagnostic).collect(),
        recorded: loaded.records,
        configurations: loaded.configurations,
    })
}

/// Opens the records of a target for editing. A state file stays locked until the result is dropped.
pub async fn open(target: Target, console: Console) -> anyhow::Result<Records> {
    let (loaded, editor) = match target {
        Target::Files(files) => {
            let (loaded, state) = local::open_records(&files, console)?;
            (loaded, Editor::File(Box::new(state)))
        }
        Target::Cluster(cluster) => {
            let (loaded, editor) = cluster::open_records(&cluster, console).await?;
            (loaded, Editor::Cluster(Box::new(editor)))
        }
    };
    Ok(Records { recorded: loaded.records, unreadable: loaded.unreadable, editor })
}

fn diagnostic(unreadable: &UnreadableRecord) -> Diagnostic {
    let text = "the record cannot be read";
    Diagnostic::error(&unreadable.address, Reason::RecordUnreadable, text).because(&unreadable.message)
}
