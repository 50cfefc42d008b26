//! Strings with several lines, as differences by line, and strings that contain JSON.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::value::RawValue;
use similar::{Algorithm, DiffOp, capture_diff_slices};

use super::Detail;
use super::tree::{Node, Sign};
use model::text::{counted, cut};
use model::{Number, Value};

/// How many unchanged lines are shown before and after each change.
const CONTEXT: usize = 3;

/// The differences of more lines take too long to compute.
const MAX_COMPARED: usize = 10_000;

/// The structure of longer strings is not shown. Each level of JSON is read once more for each level around it.
const MAX_JSON: usize = 1 << 18;

/// Deeper JSON is shown as a string.
const MAX_DEPTH: usize = 32;

/// Whether a string is shown line by line. A line break at its end alone is no reason.
pub fn has_lines(text: &str) -> bool {
    text.trim_end_matches('\n').contains('\n')
}

/// The lines of a string, each with the sign, and a remark if the last line does not end.
pub fn lines(text: &str, sign: Sign, detail: Detail) -> Vec<Node> {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let most = detail.lines();
    let mut nodes = line_nodes(&lines[..lines.len().min(most)], sign, detail);
    if lines.len() > most {
        nodes.push(Node::comment(format!("({} in total)", counted(lines.len(), "line"))));
    }
    nodes.extend(unended(text).then(|| Node::comment("(no line break at the end)")));
    nodes
}

/// The lines that differ, with the unchanged lines around them.
pub fn line_differences(old: &str, new: &str, detail: Detail) -> Vec<Node> {
    let (before, after): (Vec<&str>, Vec<&str>) =
        (old.split_inclusive('\n').collect(), new.split_inclusive('\n').collect());
    if before.len() + after.len() > MAX_COMPARED {
        return [lines(old, Sign::Removed, detail), lines(new, Sign::Added, detail)].concat();
    }
    let steps = capture_diff_slices(Algorithm::Myers, &before, &after);
    let mut nodes = Vec::new();
    for (position, step) in steps.iter().enumerate() {
        if let DiffOp::Equal { old_index, len, .. } = *step {
            let same = &before[old_index..old_index + len];
            nodes.extend(unchanged(same, position > 0, position + 1 < steps.len(), detail));
            continue;
        }
        nodes.extend(line_nodes(&before[step.old_range()], Sign::Removed, detail));
        nodes.extend(line_nodes(&after[step.new_range()], Sign::Added, detail));
    }
    match (unended(old), unended(new)) {
        (true, false) => nodes.push(Node::comment("(a line break is added at the end)")),
        (false, true) => nodes.push(Node::comment("(the line break at the end is removed)")),
        _ => {}
    }
    nodes
}

/// Unchanged lines, of which only those next to a change are shown.
fn unchanged(same: &[&str], follows_change: bool, precedes_change: bool, detail: Detail) -> Vec<Node> {
    let head = if follows_change { CONTEXT } else { 0 };
    let tail = if precedes_change { CONTEXT } else { 0 };
    let hidden = same.len().saturating_sub(head + tail);
    // A remark instead of one line saves nothing.
    if detail.full || hidden < 2 {
        return line_nodes(same, Sign::None, detail);
    }
    let mut nodes = line_nodes(&same[..head], Sign::None, detail);
    nodes.push(Node::comment(format!("({})", counted(hidden, "unchanged line"))));
    nodes.extend(line_nodes(&same[same.len() - tail..], Sign::None, detail));
    nodes
}

fn line_nodes(lines: &[&str], sign: Sign, detail: Detail) -> Vec<Node> {
    lines
        .iter()
        .map(|line| Node::value(sign, None, cut(line.strip_suffix('\n').unwrap_or(line), detail.characters())))
        .collect()
}

fn unended(text: &str) -> bool {
    !text.is_empty() && !text.ends_with('\n')
}

/// The value of a string that contains a JSON object or array with at least one entry.
pub fn json(text: &str) -> Option<Value> {
    if text.len() > MAX_JSON || !text.trim_start().starts_with(['{', '[']) {
        return None;
    }
    let value = parse(text, MAX_DEPTH)?;
    let is_empty = match &value {
        Value::Map(map) => map.is_empty(),
        Value::List(items) => items.is_empty(),
        _ => true,
    };
    (!is_empty).then_some(value)
}

/// Numbers keep all their digits, so that different strings never look equal.
fn parse(text: &str, depth: usize) -> Option<Value> {
    let depth = depth.checked_sub(1)?;
    let text = text.trim();
    match text.as_bytes().first()? {
        b'{' => {
            let entries: BTreeMap<Cow<'_, str>, &RawValue> = serde_json::from_str(text).ok()?;
            let entries = entries.into_iter().map(|(name, item)| Some((name.into_owned(), parse(item.get(), depth)?)));
            Some(Value::map(entries.collect::<Option<Vec<_>>>()?))
        }
        b'[' => {
            let items: Vec<&RawValue> = serde_json::from_str(text).ok()?;
            Some(Value::list(items.into_iter().map(|item| parse(item.get(), depth)).collect::<Option<Vec<_>>>()?))
        }
        b'"' => Some(Value::from(serde_json::from_str::<String>(text).ok()?.as_str())),
        b't' | b'f' => serde_json::from_str::<bool>(text).ok().map(Value::from),
        b'n' => (text == "null").then_some(Value::Null),
        _ => Number::parse(text).map(Value::Number),
    }
}
