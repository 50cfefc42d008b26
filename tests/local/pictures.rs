//! The pictures of README, drawn from what `purlin` prints for the examples. `UPDATE_EXPECT=1 cargo test --test local
//! pictures` draws them.

mod graph;
mod terminal;

use std::fs;

use crate::pages::{Shell, root};

const SHOWN: &str = "purlin apply -f examples/quickstart-changed --yes";

/// A shell in which `examples/quickstart` is applied.
fn applied() -> Shell {
    let mut shell = Shell::start(&[]);
    let ran = shell.run("purlin apply -f examples/quickstart --yes");
    assert!(!ran.failed, "{}", ran.output);
    shell
}

/// Writes the picture, or checks that it shows the same. Parallel steps may be finished in another order, so the order
/// and the positions of lines do not matter.
fn check(name: &str, svg: &str) {
    let path = root().join("docs/images").join(name);
    let position = regex::Regex::new(r#" (x|y|d|points|x1|x2|y1|y2)="[^"]*""#).unwrap();
    let lines = |svg: &str| {
        let mut lines: Vec<String> = svg.lines().map(|line| position.replace_all(line, "").into_owned()).collect();
        lines.sort();
        lines
    };
    let found = fs::read_to_string(&path).unwrap_or_default();
    if lines(&found) == lines(svg) {
        return;
    }
    let is_update = std::env::var_os("UPDATE_EXPECT").is_some();
    assert!(is_update, "{name} is out of date: run `UPDATE_EXPECT=1 cargo test --test local pictures`");
    fs::write(&path, svg).unwrap();
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[test]
fn the_graph_in_readme_is_the_graph_of_the_example() {
    let ran = applied().run("purlin graph -f examples/quickstart-changed -o json 2>/dev/null");
    check("graph.svg", &graph::draw(&serde_json::from_str(&ran.output).unwrap()));
}

#[test]
fn the_session_in_readme_is_what_the_commands_print() {
    let ran = applied().run(&format!("{SHOWN} --color always 2>/dev/null"));
    assert!(!ran.failed, "{}", ran.output);
    check("session.svg", &terminal::draw(SHOWN, &ran.output));
}
