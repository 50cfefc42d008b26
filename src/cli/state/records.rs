//! Records of a target, to look at or to edit.

use super::edit::Edited;
use crate::cli::cluster::ClusterEditor;
use crate::cli::options::Target;
use crate::cli::output::Console;
use crate::cli::{cluster, local};
use crate::model::{Address, Diagnostic, Diagnostics, Reason, Recorded, Stored};
use crate::store::{StateFile, Unreadable};

/// Records that may be written.
pub struct Records {
    /// The records.
    pub recorded: Recorded,
    /// Those that cannot be read.
    pub unreadable: Vec<Unreadable>,
    /// Writes them.
    pub editor: Editor,
}

/// Writes edited records by compare-and-swap, and tells at once when that fails.
pub enum Editor {
    /// Into a state file that we hold the lock of.
    File(StateFile),
    /// Into the Secrets of a controller.
    Cluster(Box<ClusterEditor>),
}

impl Editor {
    /// Writes what has become of a record.
    pub async fn write(&self, stored: &Stored, edited: Edited) -> anyhow::Result<()> {
        match (self, edited) {
            (_, Edited::Same) => Ok(()),
            (Self::Cluster(editor), Edited::To(record)) => editor.write(&record, stored).await,
            (Self::Cluster(editor), Edited::Erased) => editor.remove(stored).await,
            (Self::File(state), Edited::To(record)) => {
                Ok(state.write(&record, Some(stored.version)).await.map(drop)?)
            }
            (Self::File(state), Edited::Erased) => Ok(state.delete(&stored.record.address, stored.version).await?),
        }
    }

    /// Whether there should be a record of that very address, and is none.
    pub fn misses(&self, address: &Address) -> bool {
        match self {
            Self::Cluster(editor) => editor.misses(address),
            Self::File(_) => false,
        }
    }

    /// Removes a record that cannot be read.
    pub async fn remove_unreadable(&self, found: &Unreadable) -> anyhow::Result<()> {
        match self {
            Self::Cluster(editor) => editor.remove_unreadable(found).await,
            Self::File(state) => Ok(state.delete(&found.address, found.version).await?),
        }
    }
}

/// Records as they are now.
pub struct Seen {
    /// The records.
    pub recorded: Recorded,
    /// Those that could not be read.
    pub diagnostics: Diagnostics,
}

/// Reads the records of a target.
pub async fn read(target: Target, console: Console) -> anyhow::Result<Seen> {
    let loaded = match target {
        Target::Files(files) => local::records(&files, console)?,
        Target::Cluster(cluster) => cluster::records(&cluster, console).await?,
    };
    Ok(Seen { recorded: loaded.records, diagnostics: loaded.unreadable.iter().map(diagnostic).collect() })
}

/// Opens the records of a target for editing: a state file is locked meanwhile.
pub async fn open(target: Target, console: Console) -> anyhow::Result<Records> {
    let (loaded, editor) = match target {
        Target::Files(files) => {
            let (loaded, state) = local::open_records(&files, console)?;
            (loaded, Editor::File(state))
        }
        Target::Cluster(cluster) => {
            let (loaded, editor) = cluster::open_records(&cluster, console).await?;
            (loaded, Editor::Cluster(Box::new(editor)))
        }
    };
    Ok(Records { recorded: loaded.records, unreadable: loaded.unreadable, editor })
}

fn diagnostic(unreadable: &Unreadable) -> Diagnostic {
    let text = "the record cannot be read";
    Diagnostic::error(&unreadable.address, Reason::RecordUnreadable, text).because(&unreadable.message)
}
