//! Draws a terminal: one line of text for each line of output, with the colors of the ANSI sequences.

use std::fmt::Write as _;

use super::escaped;
use crate::pages::presentable;

/// Longer lines are cut.
const COLUMNS: usize = 104;
const FONT: usize = 13;
const LINE: usize = 18;
/// The width of a character in tenths of a pixel.
const CHARACTER: usize = 78;
const MARGIN: usize = 18;

/// The picture of a command and its output.
pub(super) fn draw(command: &str, output: &str) -> String {
    let times = regex::Regex::new(r"after \d+(\.\d+)?m?s").unwrap();
    let output = presentable(output);
    let output = times.replace_all(&output, "after 8ms");
    let lines: Vec<String> =
        [format!("$ \u{1b}[1m{command}\u{1b}[0m")].into_iter().chain(output.lines().map(cut)).collect();
    let (width, height) = (2 * MARGIN + COLUMNS * CHARACTER / 10, 2 * MARGIN + lines.len() * LINE);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
         font-family=\"ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace\" \
         font-size=\"{FONT}\">\n<rect width=\"{width}\" height=\"{height}\" rx=\"8\" fill=\"#1b1f24\"/>\n"
    );
    for (line, n) in lines.iter().zip(1..) {
        if line.is_empty() {
            continue;
        }
        let length = visible(line) * CHARACTER;
        let _ = writeln!(
            svg,
            "<text x=\"{MARGIN}\" y=\"{}\" xml:space=\"preserve\" textLength=\"{}.{}\" fill=\"#d0d7de\">{}</text>",
            MARGIN + n * LINE - 4,
            length / 10,
            length % 10,
            colored(line)
        );
    }
    svg + "</svg>\n"
}

/// The parts of a line: a sequence that changes the style, or text.
fn parts(line: &str) -> impl Iterator<Item = (Option<&str>, &str)> {
    let mut pieces = line.split("\u{1b}[");
    let first = pieces.next().map(|text| (None, text));
    first.into_iter().chain(pieces.filter_map(|piece| piece.split_once('m').map(|(style, text)| (Some(style), text))))
}

fn visible(line: &str) -> usize {
    parts(line).map(|(_, text)| text.chars().count()).sum()
}

fn cut(line: &str) -> String {
    let mut left = COLUMNS - 1;
    if visible(line) <= COLUMNS {
        return line.to_owned();
    }
    let mut out = String::new();
    for (style, text) in parts(line) {
        if let Some(style) = style {
            let _ = write!(out, "\u{1b}[{style}m");
        }
        out.extend(text.chars().take(left));
        left = left.saturating_sub(text.chars().count());
    }
    out + "…"
}

fn colored(line: &str) -> String {
    let mut style = String::new();
    let mut out = String::new();
    for (change, text) in parts(line) {
        for code in change.into_iter().flat_map(|change| change.split(';')) {
            match code {
                "" | "0" => style.clear(),
                "1" => style.push_str(" font-weight=\"700\""),
                "2" => style.push_str(" fill=\"#8b949e\""),
                "31" | "91" => style.push_str(" fill=\"#ff7b72\""),
                "32" | "92" => style.push_str(" fill=\"#7ee787\""),
                "33" | "93" => style.push_str(" fill=\"#e3b341\""),
                "34" | "94" => style.push_str(" fill=\"#79c0ff\""),
                "35" | "95" => style.push_str(" fill=\"#d2a8ff\""),
                "36" | "96" => style.push_str(" fill=\"#56d4dd\""),
                _ => {}
            }
        }
        match (style.is_empty(), text.is_empty()) {
            (_, true) => {}
            (true, false) => out.push_str(&escaped(text)),
            (false, false) => drop(write!(out, "<tspan{style}>{}</tspan>", escaped(text))),
        }
    }
    out
}
