//! Draws a graph of steps from left to right. Each step shows why it waits.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use serde_json::Value as Json;

use super::escaped;

const WIDTH: usize = 184;
const GAP: usize = 40;
const TITLE: usize = 40;
const LINE: usize = 15;
const MARGIN: usize = 16;
/// Characters of a line of a reason.
const COLUMNS: usize = 29;

struct Step<'a> {
    title: String,
    color: &'a str,
    /// Why it waits, in lines.
    reasons: Vec<String>,
    x: usize,
    y: usize,
}

/// The picture of the output of `purlin graph -o json`.
pub(super) fn draw(graph: &Json) -> String {
    let edges = reduced(graph);
    let mut layers: BTreeMap<usize, Vec<&Json>> = BTreeMap::new();
    for node in array(&graph["nodes"]) {
        layers.entry(depth(string(&node["id"]), &edges)).or_default().push(node);
    }
    let mut steps: BTreeMap<&str, Step> = BTreeMap::new();
    let mut height = 0;
    for (layer, nodes) in &layers {
        let mut y = MARGIN;
        for node in nodes {
            let id = string(&node["id"]);
            let step = step(node, &edges, MARGIN + layer * (WIDTH + GAP), y);
            y += box_height(&step) + GAP / 2;
            steps.insert(id, step);
        }
        height = height.max(y);
    }
    // The layers are centered.
    for nodes in layers.values() {
        let ids = || nodes.iter().map(|node| string(&node["id"]));
        let used: usize = ids().map(|id| box_height(&steps[id]) + GAP / 2).sum();
        for id in ids() {
            steps.get_mut(id).unwrap().y += (height - MARGIN).saturating_sub(used) / 2;
        }
    }
    render(&steps, &edges, layers.len() * (WIDTH + GAP) - GAP + 2 * MARGIN, height)
}

/// The edges that do not follow from others: (the step that waits, the step before it, the reason).
fn reduced(graph: &Json) -> Vec<(&str, &str, &str)> {
    let all: Vec<(&str, &str, &str)> = array(&graph["edges"])
        .iter()
        .map(|edge| (string(&edge["from"]), string(&edge["to"]), string(&edge["because"])))
        .collect();
    let before = |step: &str| -> BTreeSet<&str> {
        let mut found = BTreeSet::new();
        let mut open = vec![step.to_owned()];
        while let Some(step) = open.pop() {
            for (_, to, _) in all.iter().filter(|(from, ..)| *from == step) {
                if found.insert(*to) {
                    open.push((*to).to_owned());
                }
            }
        }
        found
    };
    let follows = |from: &str, to: &str| {
        all.iter().any(|(other, via, _)| *other == from && *via != to && before(via).contains(to))
    };
    all.iter().filter(|(from, to, _)| !follows(from, to)).copied().collect()
}

/// The length of the longest path of steps before this one.
fn depth(id: &str, edges: &[(&str, &str, &str)]) -> usize {
    edges.iter().filter(|(from, ..)| *from == id).map(|(_, to, _)| depth(to, edges) + 1).max().unwrap_or(0)
}

fn step<'a>(node: &'a Json, edges: &[(&str, &str, &str)], x: usize, y: usize) -> Step<'a> {
    let color = match string(&node["operation"]) {
        "create" => "#1a7f37",
        "update" | "record" => "#9a6700",
        "destroy" | "forget" => "#cf222e",
        _ => "#57606a",
    };
    let reasons = edges.iter().filter(|(from, ..)| *from == string(&node["id"]));
    let reasons = reasons.flat_map(|(_, _, reason)| wrapped(reason)).collect();
    Step { title: format!("{} {}", string(&node["operation"]), string(&node["address"])), color, reasons, x, y }
}

fn wrapped(text: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last_mut().unwrap();
        if line.is_empty() {
            line.push_str(word);
        } else if line.len() + word.len() < COLUMNS {
            *line = format!("{line} {word}");
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}

fn box_height(step: &Step) -> usize {
    TITLE + step.reasons.len() * LINE
}

fn render(steps: &BTreeMap<&str, Step>, edges: &[(&str, &str, &str)], width: usize, height: usize) -> String {
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
         font-family=\"system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif\">\n\
         <defs><marker id=\"arrow\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"8\" markerHeight=\"8\" \
         orient=\"auto\"><path d=\"M0,0 L8,4 L0,8 z\" fill=\"#57606a\"/></marker></defs>\n\
         <rect width=\"{width}\" height=\"{height}\" rx=\"8\" fill=\"#ffffff\"/>\n"
    );
    // As in every other form of the graph, an arrow leads from a step to the step that it waits for.
    for (later, earlier, _) in edges {
        let (from, to) = (&steps[later], &steps[earlier]);
        let (x1, y1, x2, y2) = (from.x, from.y + TITLE / 2, to.x + WIDTH, to.y + TITLE / 2);
        let middle = usize::midpoint(x1, x2);
        let _ = writeln!(
            svg,
            "<path d=\"M{x1},{y1} C{middle},{y1} {middle},{y2} {x2},{y2}\" fill=\"none\" stroke=\"#57606a\" \
             stroke-width=\"1.5\" marker-end=\"url(#arrow)\"/>"
        );
    }
    for step in steps.values() {
        let Step { title, color, x, y, .. } = step;
        let _ = writeln!(
            svg,
            "<rect x=\"{x}\" y=\"{y}\" width=\"{WIDTH}\" height=\"{TITLE}\" rx=\"6\" fill=\"#f6f8fa\" stroke=\"{color}\" \
             stroke-width=\"2\"/>\n<text x=\"{}\" y=\"{}\" text-anchor=\"middle\" font-size=\"14\" font-weight=\"600\" \
             fill=\"{color}\">{}</text>",
            x + WIDTH / 2,
            y + TITLE / 2 + 5,
            escaped(title)
        );
        for (line, n) in step.reasons.iter().zip(1..) {
            let _ = writeln!(
                svg,
                "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\" font-size=\"12\" fill=\"#57606a\">{}</text>",
                x + WIDTH / 2,
                y + TITLE + n * LINE,
                escaped(line)
            );
        }
    }
    svg + "</svg>\n"
}

fn string(value: &Json) -> &str {
    value.as_str().unwrap_or_default()
}

fn array(value: &Json) -> &[Json] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}
