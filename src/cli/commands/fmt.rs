//! `purlin fmt`: formats the files of configurations of Terraform, as `tofu fmt` does.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use crate::cli::args::FmtArgs;
use crate::cli::failure::{Exit, Failure};
use crate::cli::output::Console;
use hcl::{FileId, Source};
use similar::TextDiff;

/// The endings of files that are formatted.
const ENDINGS: [&str; 5] = [".tf", ".tofu", ".tfvars", ".tftest.hcl", ".tofutest.hcl"];

/// As upstream, for scripts.
const NOT_FORMATTED: Exit = Exit::Program(3);

pub fn run(args: FmtArgs, console: Console) -> anyhow::Result<Exit> {
    if args.targets == [Path::new("-")] {
        return standard_input(&args, console);
    }
    let targets = if args.targets.is_empty() { vec![PathBuf::from(".")] } else { args.targets.clone() };
    let mut files = Vec::new();
    for target in &targets {
        collect(target, args.recursive, &mut files)?;
    }
    let (mut changed, mut failed) = (false, false);
    for file in files {
        match format_file(&file, &args, console) {
            Ok(Some(is_changed)) => changed |= is_changed,
            Ok(None) => failed = true,
            Err(error) => {
                console.failure(&error);
                failed = true;
            }
        }
    }
    Ok(match (failed, changed && args.check) {
        (true, _) => Exit::Problems,
        (false, true) => NOT_FORMATTED,
        (false, false) => Exit::Success,
    })
}

fn standard_input(args: &FmtArgs, console: Console) -> anyhow::Result<Exit> {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text)?;
    let Some(formatted) = formatted("<stdin>", &text, console) else { return Ok(Exit::Problems) };
    if args.check {
        return Ok(if formatted == text { Exit::Success } else { NOT_FORMATTED });
    }
    let shown = if args.diff { diff("<stdin>", &text, &formatted) } else { formatted };
    console.result(|out| out.write_all(shown.as_bytes()))?;
    Ok(Exit::Success)
}

/// Adds the files of a target: a file as it is named, or those of a directory with known endings. Hidden ones are left out.
fn collect(target: &Path, recursive: bool, files: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    if !fs::metadata(target).map_err(|error| failure(target, &error))?.is_dir() {
        let name = target.display().to_string();
        if !ENDINGS.iter().any(|ending| name.ends_with(ending)) {
            let hint = format!("the files of configurations end in {}", ENDINGS.join(", "));
            return Err(Failure::hinted(format!("{name} is no file of a configuration"), hint));
        }
        files.push(target.to_owned());
        return Ok(());
    }
    for entry in entries(target).map_err(|error| failure(target, &error))? {
        let Ok(name) = entry.file_name().into_string() else { continue };
        let path = if target == Path::new(".") { PathBuf::from(&name) } else { target.join(&name) };
        if name.starts_with('.') {
            continue;
        }
        // A link to a directory above would lead around in a circle.
        if entry.file_type().map_err(|error| failure(&path, &error))?.is_dir() {
            if recursive {
                collect(&path, true, files)?;
            }
        } else if path.is_file() && ENDINGS.iter().any(|ending| name.ends_with(ending)) {
            files.push(path);
        }
    }
    Ok(())
}

fn entries(directory: &Path) -> std::io::Result<Vec<fs::DirEntry>> {
    let mut entries = fs::read_dir(directory)?.collect::<Result<Vec<_>, _>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    Ok(entries)
}

fn failure(path: &Path, error: &std::io::Error) -> Failure {
    Failure { message: format!("{}: {error}", path.display()), hint: None }
}

/// Formats a file. Returns whether it was not formatted; `None` if it has errors, which are printed.
fn format_file(file: &Path, args: &FmtArgs, console: Console) -> anyhow::Result<Option<bool>> {
    let name = file.display().to_string();
    let text = fs::read_to_string(file).map_err(|error| failure(file, &error))?;
    let Some(formatted) = formatted(&name, &text, console) else { return Ok(None) };
    if formatted == text {
        return Ok(Some(false));
    }
    if args.list {
        console.lines(format_args!("{name}\n"))?;
    }
    if args.diff {
        console.result(|out| out.write_all(diff(&name, &text, &formatted).as_bytes()))?;
    }
    if args.write && !args.check {
        fs::write(file, formatted).map_err(|error| failure(file, &error))?;
    }
    Ok(Some(true))
}

/// The text in its format. `None` if it has errors, all of which are printed.
fn formatted(name: &str, text: &str, console: Console) -> Option<String> {
    let source = Source::new(FileId(0), name, text);
    let problems = match hcl::format_configuration(source.clone()) {
        Ok(formatted) => return Some(formatted),
        Err(problems) => problems,
    };
    for problem in problems {
        let line = source.position(problem.range.start).line;
        let message = format!("{name}:{line}: {}: {}", problem.summary, problem.detail.trim_end_matches('.'));
        console.failure(&Failure { message, hint: problem.hint }.into());
    }
    None
}

fn diff(name: &str, before: &str, after: &str) -> String {
    let diff = TextDiff::from_lines(before, after);
    diff.unified_diff().header(&format!("old/{name}"), &format!("new/{name}")).to_string()
}
