//! Aligns the items of two lists by their content: an inserted item changes no other item.

use std::collections::HashMap;

use similar::{Algorithm, DiffOp, capture_diff_slices};

use model::Value;

/// The lists of more items are aligned only at their beginning and end, because anything else takes too long.
const MAX_COMPARED: usize = 10_000;

/// One row of the alignment, with positions in the old and the new list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Row {
    Same(usize, usize),
    /// Both items are maps or lists, and the new one takes the place of the old one.
    Changed(usize, usize),
    Removed(usize),
    Added(usize),
}

/// Returns each item of both lists once, in order: the longest common subsequence, and pairs of similar maps and lists
/// between its items. An unknown value equals no other.
pub fn align(old: &[Value], new: &[Value]) -> Vec<Row> {
    let mut known = HashMap::new();
    let before = numbered(old, &mut known);
    let after = numbered(new, &mut known);
    let steps = match old.len() + new.len() {
        0..=MAX_COMPARED => capture_diff_slices(Algorithm::Myers, &before, &after),
        _ => ends(&before, &after),
    };
    let mut rows = Vec::new();
    for step in steps {
        match step {
            DiffOp::Equal { old_index, new_index, len } => {
                rows.extend((0..len).map(|offset| Row::Same(old_index + offset, new_index + offset)));
            }
            gap => pair(old, new, gap.old_range().collect(), gap.new_range().collect(), &mut rows),
        }
    }
    rows
}

/// Equal values get equal numbers.
fn numbered(items: &[Value], known: &mut HashMap<String, usize>) -> Vec<usize> {
    let mut numbers = Vec::with_capacity(items.len());
    for item in items {
        let next = known.len();
        // A text that no value has.
        let text = if item.has_unknown() { format!("unknown {next}") } else { item.to_json_text() };
        numbers.push(*known.entry(text).or_insert(next));
    }
    numbers
}

/// The common beginning and end, and everything between them as one replacement.
fn ends(before: &[usize], after: &[usize]) -> Vec<DiffOp> {
    let head = before.iter().zip(after).take_while(|(a, b)| a == b).count();
    let (old, new) = (&before[head..], &after[head..]);
    let tail = old.iter().rev().zip(new.iter().rev()).take_while(|(a, b)| a == b).count();
    let (old_len, new_len) = (old.len() - tail, new.len() - tail);
    vec![
        DiffOp::Equal { old_index: 0, new_index: 0, len: head },
        DiffOp::Replace { old_index: head, old_len, new_index: head, new_len },
        DiffOp::Equal { old_index: head + old_len, new_index: head + new_len, len: tail },
    ]
}

/// Pairs each new item of a gap with the most similar old item after those that are paired already.
fn pair(old: &[Value], new: &[Value], removed: Vec<usize>, added: Vec<usize>, rows: &mut Vec<Row>) {
    let mut open = removed.as_slice();
    let mut unpaired = Vec::new();
    let alone = removed.len() == 1 && added.len() == 1;
    for there in added {
        let best = open
            .iter()
            .enumerate()
            .filter_map(|(at, here)| Some((similarity(&old[*here], &new[there])?, at)))
            // An only pair of maps is the same item with other contents.
            .filter(|(score, _)| *score > 0 || alone)
            // Of equally similar items, the first.
            .max_by_key(|(score, at)| (*score, std::cmp::Reverse(*at)));
        let Some((_, at)) = best else {
            unpaired.push(Row::Added(there));
            continue;
        };
        rows.extend(open[..at].iter().map(|here| Row::Removed(*here)));
        rows.append(&mut unpaired);
        rows.push(Row::Changed(open[at], there));
        open = &open[at + 1..];
    }
    rows.extend(open.iter().map(|here| Row::Removed(*here)));
    rows.append(&mut unpaired);
}

/// The entries with equal values that two maps have, or that two lists have at the same position. `None` for other
/// values.
fn similarity(old: &Value, new: &Value) -> Option<usize> {
    match (old, new) {
        (Value::Map(before), Value::Map(after)) => {
            let (mut count, mut is_named) = (0, false);
            for (name, item) in before.iter().filter(|(_, item)| !matches!(item, Value::Null)) {
                if after.get(name).is_some_and(|other| item.equals_unmarked(other)) {
                    count += 1;
                    is_named |= matches!(&**name, "name" | "key" | "id");
                }
            }
            // A name identifies an item better than anything else.
            Some(if is_named { count + before.len() } else { count })
        }
        (Value::List(before), Value::List(after)) => {
            Some(before.iter().zip(after.iter()).filter(|(a, b)| a.equals_unmarked(b)).count())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn aligned(old: serde_json::Value, new: serde_json::Value) -> Vec<Row> {
        let items = |json| match Value::from_json(json) {
            Value::List(items) => items,
            _ => panic!("no list"),
        };
        align(&items(old), &items(new))
    }

    #[test]
    fn an_inserted_item_changes_no_other() {
        let rows = aligned(json!(["a", "b"]), json!(["c", "a", "b"]));
        assert_eq!(rows, [Row::Added(0), Row::Same(0, 1), Row::Same(1, 2)]);
    }

    #[test]
    fn maps_are_paired_by_their_names() {
        let rows = aligned(
            json!([{"name": "a", "x": 1, "y": 1, "z": 1}, {"name": "b", "x": 1, "y": 2, "z": 2}]),
            json!([{"name": "b", "x": 1, "y": 1, "z": 1}]),
        );
        assert_eq!(rows, [Row::Removed(0), Row::Changed(1, 0)]);
        assert_eq!(aligned(json!([{"x": 1}]), json!([{"x": 2}])), [Row::Changed(0, 0)]);
        assert_eq!(
            aligned(json!([{"x": 1}, {"x": 3}]), json!([{"x": 2}])),
            [Row::Removed(0), Row::Removed(1), Row::Added(0)]
        );
    }

    #[test]
    fn unknown_items_equal_nothing() {
        assert_eq!(align(&[Value::Unknown], &[Value::Unknown]), [Row::Removed(0), Row::Added(0)]);
    }

    #[test]
    fn very_long_lists_are_aligned_at_their_ends() {
        let list = |from: i64| (from..from + 6_000).map(Value::from).collect::<Vec<_>>();
        let (old, mut new) = (list(0), list(0));
        new[3_000] = Value::from("x");
        let rows = align(&old, &new);
        assert_eq!(rows.iter().filter(|row| !matches!(row, Row::Same(..))).count(), 2);
        assert_eq!(rows.len(), 6_001);
    }
}
