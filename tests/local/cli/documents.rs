//! Runs the examples of documents: writes their files, runs their commands, and compares the output.
//!
//! A fenced block ` ```yaml NAME ` writes the file `files/NAME`, and ` ```json NAME ` the file `NAME`. A ` ```console `
//! block contains `$ purlin ...` lines, each followed by its complete output; a command without output must only
//! succeed. The fenced block after a line `<!-- graph of DIRECTORY -->` is the output of `purlin graph`: the YAML files
//! of the directory are applied in order, except the last, which the graph shows. A file whose name ends in `-fails`
//! must fail to apply. `UPDATE_EXPECT=1` rewrites the output.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use super::sandbox::Sandbox;

/// Each document starts with an empty directory.
const DOCUMENTS: [&str; 6] =
    ["command-line.md", "data-sources.md", "families.md", "lifecycle.md", "moves.md", "ordering.md"];

#[test]
fn documents_show_actual_output() {
    for name in DOCUMENTS {
        check(name, &Sandbox::new());
    }
}

/// Runs a document in a sandbox that may contain its prerequisites.
pub(super) fn check(name: &str, sandbox: &Sandbox) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs").join(name);
    let text = fs::read_to_string(&path).unwrap();
    let actual = play(&text, sandbox);
    if actual != text && std::env::var_os("UPDATE_EXPECT").is_some() {
        fs::write(&path, &actual).unwrap();
        return;
    }
    let diff = similar::TextDiff::from_lines(&text, &actual);
    assert!(actual == text, "{name}:\n{}", diff.unified_diff().header("documented", "actual"));
}

/// Returns the document with the actual outputs.
fn play(text: &str, sandbox: &Sandbox) -> String {
    let mut out = String::new();
    let mut lines = text.lines();
    let mut pictured = None;
    while let Some(line) = lines.next() {
        writeln!(out, "{line}").unwrap();
        if let Some(directory) = line.strip_prefix("<!-- graph of ").and_then(|rest| rest.strip_suffix(" -->")) {
            pictured = Some(directory);
        }
        let Some(info) = line.strip_prefix("```") else { continue };
        let block: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
        match info.split_once(' ') {
            _ if let Some(directory) = pictured.take() => out.push_str(&graph_output(directory, info)),
            Some(("yaml", name)) => {
                let file = block.join("\n") + "\n";
                sandbox.write(&format!("files/{name}"), &file);
                out.push_str(&file);
            }
            Some(("json", name)) => {
                let file = block.join("\n") + "\n";
                sandbox.write(name, &file);
                out.push_str(&file);
            }
            None if info == "console" => out.push_str(&run_all(sandbox, &block)),
            _ => block.iter().for_each(|line| writeln!(out, "{line}").unwrap()),
        }
        out.push_str("```\n");
    }
    out
}

/// Applies all files of a directory except the last, and returns the graph of the last.
fn graph_output(directory: &str, language: &str) -> String {
    let sandbox = Sandbox::new();
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join(directory);
    let mut files: Vec<_> = fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let last = files.pop().unwrap();
    for file in files {
        let fails = file.file_stem().unwrap().to_str().unwrap().ends_with("-fails");
        let ran = sandbox.run(&["apply", "--yes", "-f", file.to_str().unwrap()]);
        assert_eq!(ran.code, Some(i32::from(fails)), "{}: {ran:?}", file.display());
    }
    let form = if language == "mermaid" { "mermaid" } else { "text" };
    without_keys(&sandbox.ok(&["graph", "-f", last.to_str().unwrap(), "-o", form]))
}

/// Replaces the random keys of deposed objects by a fixed one.
fn without_keys(text: &str) -> String {
    const BEFORE: &str = "(deposed ";
    let mut parts = text.split(BEFORE);
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        out.push_str(BEFORE);
        out.push_str("8e7cdf03");
        out.push_str(part.get(8..).unwrap_or_default());
    }
    out
}

fn run_all(sandbox: &Sandbox, block: &[&str]) -> String {
    let mut out = String::new();
    let mut commands = block.split(|line| line.starts_with("$ ")).skip(1);
    for command in block.iter().filter_map(|line| line.strip_prefix("$ ")) {
        let shown = commands.next().unwrap_or_default();
        let arguments: Vec<&str> = command.split_whitespace().skip(1).collect();
        let ran = sandbox.run(&arguments);
        writeln!(out, "$ {command}").unwrap();
        if shown.is_empty() {
            assert_eq!(ran.code, Some(0), "{command}: {ran:?}");
        } else {
            out.push_str(&without_ids(&ran.stdout));
        }
    }
    out
}

/// Replaces random IDs by a fixed one.
fn without_ids(text: &str) -> String {
    const SHOWN: &str = "5b6f0c1e-8a3d-4f27-9c4e-d1b2a3f4e5c6";
    let is_id = |text: &str| {
        let fits = |(here, there): (u8, u8)| if there == b'-' { here == b'-' } else { here.is_ascii_hexdigit() };
        text.len() == SHOWN.len() && text.bytes().zip(SHOWN.bytes()).all(fits)
    };
    let mut out = String::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        match rest.get(..SHOWN.len()).filter(|start| is_id(start)) {
            Some(id) => {
                out.push_str(SHOWN);
                rest = &rest[id.len()..];
            }
            None => {
                out.push(first);
                rest = &rest[first.len_utf8()..];
            }
        }
    }
    out
}
