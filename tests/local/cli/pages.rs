//! The pages of the documentation that show the command line do what they say.
//!
//! A block `console` is a session: lines that begin with `$ ` are run, the others are what comes out, standard error
//! after standard output. All blocks of a page share one folder; a block `yaml` before them whose first line is
//! `# files/NAME` is written there. Ids and durations are told as `ID` and `1ms`; what the
//! command works on is left out. `UPDATE_EXPECT=1` rewrites.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use expect_test::{ExpectFile, expect_file};

use super::sandbox::Sandbox;

#[test]
fn the_command_line_page_does_what_it_says() {
    check("docs/command-line.md", expect_file!["../../../docs/command-line.md"]);
}

fn check(page: &str, expected: ExpectFile) {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(page)).unwrap();
    expected.assert_eq(&play(&text));
}

/// The page with the output that its commands have now.
fn play(page: &str) -> String {
    let sandbox = Sandbox::new();
    let mut told = String::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        writeln!(told, "{line}").unwrap();
        let mut block = || -> Vec<&str> { lines.by_ref().take_while(|line| *line != "```").collect() };
        match line {
            "```console" => told.push_str(&session(&sandbox, block())),
            "```yaml" => told.push_str(&file(&sandbox, block())),
            _ => continue,
        }
        told.push_str("```\n");
    }
    told
}

fn file(sandbox: &Sandbox, block: Vec<&str>) -> String {
    let text = block.join("\n") + "\n";
    if let Some(name) = block.first().and_then(|line| line.strip_prefix("# files/")) {
        sandbox.write(&format!("files/{name}"), &text);
    }
    text
}

fn session(sandbox: &Sandbox, block: Vec<&str>) -> String {
    let mut told = String::new();
    for command in block.iter().filter_map(|line| line.strip_prefix("$ ")) {
        writeln!(told, "$ {command}").unwrap();
        let words: Vec<&str> = command.split(' ').collect();
        let output = match words.as_slice() {
            ["purlin", arguments @ ..] => {
                let ran = sandbox.run(arguments);
                format!("{}{}", ran.stdout, ran.stderr)
            }
            ["sed", "-i", script, name] => {
                let (_, rest) = script.split_once('/').unwrap();
                let (from, to) = rest.trim_end_matches('/').split_once('/').unwrap();
                let text = fs::read_to_string(sandbox.path(name)).unwrap();
                assert!(text.contains(from), "{command}");
                sandbox.write(name, &text.replace(from, to));
                String::new()
            }
            _ => panic!("a page may not say `{command}`"),
        };
        let lines = output.lines().filter(|line| !line.starts_with("Working on "));
        told.extend(lines.map(|line| format!("{}\n", stable(line))));
    }
    told
}

/// A line without what differs from run to run.
fn stable(line: &str) -> String {
    let words = line.split(' ').map(|word| {
        let inner = word.trim_matches(['"', '(', ')', ',', '`', '.']);
        let is_id = inner.len() == 36 && inner.split('-').count() == 5;
        let took = inner.strip_suffix("ms").is_some_and(|number| number.parse::<u32>().is_ok());
        match (is_id, took) {
            (true, _) => word.replace(inner, "ID"),
            (_, true) => word.replace(inner, "1ms"),
            _ => word.to_owned(),
        }
    });
    words.collect::<Vec<_>>().join(" ").trim_end().to_owned()
}
