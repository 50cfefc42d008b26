//! What documents show is what happens: their files are written, their commands run, and the output compared.
//!
//! In a document a fenced block ` ```yaml NAME ` is the file `files/NAME` from there on, and a block ` ```console ` holds
//! `$ purlin ...` lines, each followed by what it prints. A command without output under it only has to succeed; what
//! is shown of one is all of it. `UPDATE_EXPECT=1` rewrites the output.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use super::sandbox::Sandbox;

/// The documents whose examples are run. Each begins with an empty folder.
const DOCUMENTS: [&str; 4] = ["command-line.md", "families.md", "lifecycle.md", "moves.md"];

#[test]
fn what_documents_show_is_what_happens() {
    for name in DOCUMENTS {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs").join(name);
        let text = fs::read_to_string(&path).unwrap();
        let actual = play(&text);
        if actual != text && std::env::var_os("UPDATE_EXPECT").is_some() {
            fs::write(&path, &actual).unwrap();
            continue;
        }
        let diff = similar::TextDiff::from_lines(&text, &actual);
        assert!(actual == text, "{name}:\n{}", diff.unified_diff().header("as it says", "as it is"));
    }
}

/// The document with every output as it came out.
fn play(text: &str) -> String {
    let sandbox = Sandbox::new();
    let mut out = String::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        writeln!(out, "{line}").unwrap();
        let Some(info) = line.strip_prefix("```") else { continue };
        let block: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
        match info.split_once(' ') {
            Some(("yaml", name)) => {
                let file = block.join("\n") + "\n";
                sandbox.write(&format!("files/{name}"), &file);
                out.push_str(&file);
            }
            None if info == "console" => out.push_str(&run_all(&sandbox, &block)),
            _ => block.iter().for_each(|line| writeln!(out, "{line}").unwrap()),
        }
        out.push_str("```\n");
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
