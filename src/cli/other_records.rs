//! Records of the given sources in another state file.
//!
//! The default state file is that of the working directory. In another directory, or without the file, the same manifests
//! would create every object again. So a command that finds no record of its sources looks where these records may be.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::failure::Failure;
use super::options::{DEFAULT_STATE, Files, source_paths};
use engine::load::STDIN;
use model::text::{counted, split_hint};
use model::{Recorded, Stored};
use runtime::store::StateFile;

/// Returns an error if the objects of the sources are recorded in the backup of a missing state file, or in the state file
/// of a directory above or below the sources or above the working directory. `recorded`: the records of the selected
/// state file, `None` if it does not exist.
///
/// A state file that the user names is the right one, also if it has no record of the sources.
pub fn refuse(files: &Files, recorded: Option<&Recorded>) -> anyhow::Result<()> {
    if recorded.is_none() {
        refuse_backup(files)?;
    }
    let has_records = recorded.is_some_and(|recorded| covered(files, &files.state, recorded).next().is_some());
    if has_records || files.is_state_named || files.sources.is_empty() {
        return Ok(());
    }
    let state = std::path::absolute(&files.state)?;
    for other in directories(files).into_iter().map(|directory| directory.join(DEFAULT_STATE)) {
        if other == state || !other.is_file() {
            continue;
        }
        // A file that cannot be read, such as one of another user, does not concern this command.
        let Ok(Some(found)) = StateFile::read(&other) else { continue };
        let count = covered(files, &other, &found.loaded.records).count();
        if count > 0 {
            let other = shortest(&other);
            let what = format!(
                "{} of these files {} recorded in `{}`, and none in `{}`",
                counted(count, "object"),
                if count == 1 { "is" } else { "are" },
                other.display(),
                files.state.display()
            );
            let hint = format!(
                "select these records with `--state {}`; to create the objects again, use `--state {}`",
                other.display(),
                files.state.display()
            );
            return Err(Failure::hinted(what, hint));
        }
    }
    Ok(())
}

/// The state file of a directory above the working directory, the nearest one.
pub fn above() -> Option<PathBuf> {
    let here = std::env::current_dir().ok()?;
    let mut files = here.ancestors().skip(1).map(|directory| directory.join(DEFAULT_STATE));
    files.find(|file| file.is_file()).map(|file| shortest(&file))
}

/// Returns an error if a missing state file has a backup with records.
pub fn refuse_backup(files: &Files) -> anyhow::Result<()> {
    let backup = StateFile::backup_path(&files.state);
    let (state, copy) = (files.state.display(), backup.display());
    let missing = if files.state.exists() { "is empty" } else { "is missing" };
    let found = match StateFile::read(&backup) {
        Ok(None) => return Ok(()),
        Ok(Some(found)) => found.loaded,
        Err(error) => {
            let error = error.to_string();
            let (why, _) = split_hint(&error);
            let what = format!("the state file `{state}` {missing}, and its backup cannot be read: {why}");
            let hint = format!("restore `{state}` from another backup; to start without records, remove `{copy}`");
            return Err(Failure::hinted(what, hint));
        }
    };
    let count = found.records.len() + found.unreadable.len();
    if count == 0 {
        return Ok(());
    }
    let what = format!("the state file `{state}` {missing}, but its backup `{copy}` has {}", counted(count, "record"));
    Err(Failure::hinted(what, format!("restore it with `cp {copy} {state}`; to start without records, remove it")))
}

/// The records of a state file that belong to the given sources. Standard input belongs to no directory.
fn covered<'r>(files: &Files, state: &Path, recorded: &'r Recorded) -> impl Iterator<Item = &'r Stored> {
    let is_own = state == files.state;
    let paths = source_paths(state);
    let given = files.sources.iter().filter(|source| is_own || source.as_os_str() != STDIN);
    let given: Vec<PathBuf> = given.map(|source| paths.absolute(source)).collect();
    recorded.values().filter(move |stored| {
        let source = stored.record.source.as_deref();
        source.is_some_and(|source| given.iter().any(|path| paths.covers(path, source)))
    })
}

/// The directories whose state file may have the records: those of the sources, with all above and below them, and those
/// above the working directory.
fn directories(files: &Files) -> BTreeSet<PathBuf> {
    let paths = source_paths(&files.state);
    let (manifests, _) = paths.files(&files.sources);
    let manifests = manifests.iter().filter_map(|file| file.path.parent()).filter_map(|path| path.canonicalize().ok());
    let given = files.sources.iter().filter_map(|source| source.canonicalize().ok());
    let mut directories = BTreeSet::new();
    for start in given.chain(manifests).chain(std::env::current_dir()) {
        for directory in start.ancestors() {
            // The directories above a known one are known too.
            if !directories.insert(directory.to_owned()) {
                break;
            }
        }
    }
    directories
}

/// The path from the working directory if the file is below it or above it.
fn shortest(path: &Path) -> PathBuf {
    let Ok(here) = std::env::current_dir() else { return path.to_owned() };
    if let Ok(below) = path.strip_prefix(&here) {
        return below.to_owned();
    }
    let above = here.ancestors().enumerate().skip(1).find(|(_, above)| path.parent() == Some(*above));
    match (above, path.file_name()) {
        (Some((count, _)), Some(name)) => std::iter::repeat_n("..", count).collect::<PathBuf>().join(name),
        _ => path.to_owned(),
    }
}
