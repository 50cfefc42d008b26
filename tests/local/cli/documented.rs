//! What documents show is what happens: their files are written, their commands run, and the output compared.
//!
//! In a document a fenced block ` ```yaml NAME ` is the file `files/NAME` from there on, one ` ```json NAME ` the file `NAME`, and a block ` ```console ` holds
//! `$ purlin ...` lines, each followed by what it prints. A command without output under it only has to succeed; what
//! is shown of one is all of it. Below a line `<!-- graph of FOLDER -->` the next fenced block is what `purlin graph` shows:
//! the YAML files of that folder are applied in their order, and the last is what the graph is of; one whose name ends in
//! `-fails` is applied and has to fail. `UPDATE_EXPECT=1` rewrites the output.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use super::sandbox::Sandbox;

/// The documents whose examples are run. Each begins with an empty folder.
const DOCUMENTS: [&str; 6] =
    ["command-line.md", "data-sources.md", "families.md", "lifecycle.md", "moves.md", "ordering.md"];

#[test]
fn what_documents_show_is_what_happens() {
    for name in DOCUMENTS {
        check(name, &Sandbox::new());
    }
}

/// Plays a document in a folder that may hold what it takes for granted.
pub(super) fn check(name: &str, sandbox: &Sandbox) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs").join(name);
    let text = fs::read_to_string(&path).unwrap();
    let actual = play(&text, sandbox);
    if actual != text && std::env::var_os("UPDATE_EXPECT").is_some() {
        fs::write(&path, &actual).unwrap();
        return;
    }
    let diff = similar::TextDiff::from_lines(&text, &actual);
    assert!(actual == text, "{name}:\n{}", diff.unified_diff().header("as it says", "as it is"));
}

/// The document with every output as it came out.
fn play(text: &str, sandbox: &Sandbox) -> String {
    let mut out = String::new();
    let mut lines = text.lines();
    let mut pictured = None;
    while let Some(line) = lines.next() {
        writeln!(out, "{line}").unwrap();
        if let Some(folder) = line.strip_prefix("<!-- graph of ").and_then(|rest| rest.strip_suffix(" -->")) {
            pictured = Some(folder);
        }
        let Some(info) = line.strip_prefix("```") else { continue };
        let block: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
        match info.split_once(' ') {
            _ if let Some(folder) = pictured.take() => out.push_str(&picture(folder, info)),
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

/// The graph of what the last file of a folder asks for, when all others are applied.
fn picture(folder: &str, language: &str) -> String {
    let sandbox = Sandbox::new();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let mut files: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
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

/// The text with the keys of leftovers, which are drawn, replaced by one that always stands there.
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

/// The text with the ids that were drawn for this run replaced by one that always stands there.
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
