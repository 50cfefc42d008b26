//! Reads the files of a Terraform configuration.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::cli::failure::Failure;
use crate::cli::local;
use crate::cli::options::Files;
use migrate::{Configuration, Folder, Problem};

/// Larger files are no templates.
const MAX_SIZE: u64 = 1024 * 1024;

/// Reads the configuration from a directory of HCL, or from a plan as JSON.
pub fn read(path: &Path, var_files: &[PathBuf]) -> anyhow::Result<Configuration> {
    let failed = |problem: Problem| {
        let message = format!("--config: {}: {}", path.display(), problem.message);
        Failure { message, hint: problem.hint }
    };
    let unreadable = |error: io::Error| failed(Problem::hinted(error.to_string(), Configuration::HINT));
    if !path.is_dir() {
        let text = fs::read_to_string(path).map_err(unreadable)?;
        return Ok(Configuration::parse(&[text]).map_err(failed)?);
    }
    let plans = json_files(path).map_err(unreadable)?;
    if !has_hcl(path).map_err(unreadable)? {
        return Ok(Configuration::parse(&plans).map_err(failed)?);
    }
    let mut variables = Vec::new();
    for file in var_files {
        let text = fs::read_to_string(file)
            .map_err(|error| Failure { message: format!("--var-file: {}: {error}", file.display()), hint: None })?;
        variables.push((file.display().to_string(), text));
    }
    let read = |folder: &str| text_files(&path.join(folder));
    let mut configuration = Configuration::read(&read, &variables).map_err(failed)?;
    // A plan has the values of all variables.
    if let Ok(plan) = Configuration::parse(&plans) {
        configuration.take_values(plan);
    }
    Ok(configuration)
}

/// The manifests of `-f`.
pub fn given_manifests(files: &Files) -> anyhow::Result<Vec<(String, String)>> {
    if files.sources.is_empty() {
        return Ok(Vec::new());
    }
    let (found, _) = local::source_paths(files).files(&files.sources);
    let read = |path: PathBuf| Ok((path.display().to_string(), fs::read_to_string(&path)?));
    found.into_iter().map(|file| read(file.path)).collect()
}

fn entries(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let entries: io::Result<Vec<PathBuf>> = fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect();
    entries.map(|mut all| {
        all.sort();
        all
    })
}

fn has_extension(path: &Path, extension: &str) -> bool {
    path.extension().is_some_and(|found| found == extension)
}

fn has_hcl(folder: &Path) -> io::Result<bool> {
    Ok(entries(folder)?.iter().any(|path| has_extension(path, "tf") || has_extension(path, "tofu")))
}

fn json_files(folder: &Path) -> io::Result<Vec<String>> {
    entries(folder)?.iter().filter(|path| has_extension(path, "json")).map(fs::read_to_string).collect()
}

/// The text files of a directory and its subdirectories. Of hidden directories, only that of installed modules is read.
fn text_files(folder: &Path) -> io::Result<Folder> {
    let mut found = Folder::new();
    let mut open = vec![PathBuf::new()];
    while let Some(below) = open.pop() {
        for path in entries(&folder.join(&below))? {
            let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
            let inner = below.join(name);
            let hidden = name.starts_with('.') && name != ".terraform";
            let installed = below != Path::new(".terraform") || name == "modules";
            if path.is_dir() {
                if !hidden && installed {
                    open.push(inner);
                }
            } else if fs::metadata(&path)?.len() <= MAX_SIZE
                && let (Ok(text), Some(inner)) = (fs::read_to_string(&path), inner.to_str())
            {
                found.insert(inner.to_owned(), text);
            }
        }
    }
    Ok(found)
}
