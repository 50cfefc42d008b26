//! The differences of two values as a tree: attributes, entries, items and lines, with what is unchanged folded.
//!
//! A sensitive value is never written, whichever of the two values is marked.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::items::{Row, align};
use super::strings::{self, has_lines};
use super::tree::{Node, Sign};
use super::{Detail, scalar};
use model::text::{counted, cut};
use model::value::SENSITIVE_TEXT;
use model::{Path, Secrets, Segment, Value};

/// Attributes that identify an object. They are shown although they do not change.
const IDENTIFYING: [&str; 2] = ["id", "name"];

/// Entries that identify a map in a list.
const IDENTIFYING_ITEM: [&str; 3] = ["name", "key", "id"];

/// A list of values that is not longer than this is written on one line.
const MAX_INLINE: usize = 60;

/// What a difference needs beyond the two values.
#[derive(Clone, Copy)]
pub struct Differ<'a> {
    /// The attributes that force a replacement.
    pub forced: &'a [Path],
    /// The attributes that another client changed.
    pub drifted: &'a [Path],
    pub detail: Detail,
}

/// The attributes of an object whose values differ.
pub fn attributes(differ: Differ<'_>, before: &Value, after: &Value) -> Vec<Node> {
    let secrets = Secrets::of([before, after]);
    differ.entries(&mask(before, &secrets), &mask(after, &secrets), &Path::default())
}

/// Marks strings that contain a sensitive string, for instance an address with a password. Only expressions carry
/// marks on, and no provider does.
fn mask(value: &Value, secrets: &Secrets) -> Value {
    match value {
        _ if secrets.is_empty() => value.clone(),
        Value::String(text) if secrets.occur_in(text) => value.clone().into_sensitive(),
        Value::Map(map) => Value::map(map.iter().map(|(name, item)| (Arc::clone(name), mask(item, secrets)))),
        Value::List(items) => Value::list(items.iter().map(|item| mask(item, secrets))),
        other => other.clone(),
    }
}

/// The attributes of an object without differences; `Sign::Removed` if it is destroyed.
pub fn whole_attributes(value: &Value, sign: Sign, detail: Detail) -> Vec<Node> {
    let differ = Differ { forced: &[], drifted: &[], detail };
    let value = &mask(value, &Secrets::of([value]));
    match value {
        Value::Map(map) => {
            let present = map.iter().filter(|(_, item)| !matches!(item.unmarked(), Value::Null));
            present.map(|(name, item)| differ.whole(sign, Some(label(name)), item, &Path::default())).collect()
        }
        other => vec![differ.whole(sign, None, other, &Path::default())],
    }
}

/// The identifying attributes of an object that is destroyed, and the number of the others.
pub fn identifying(value: &Value, sign: Sign, detail: Detail) -> Vec<Node> {
    let Value::Map(map) = value else { return Vec::new() };
    let present: Vec<(&Arc<str>, &Value)> =
        map.iter().filter(|(_, item)| !matches!(item.unmarked(), Value::Null)).collect();
    let shown = present.iter().filter(|(name, _)| IDENTIFYING.contains(&name.as_ref()));
    let shown = Value::map(shown.map(|(name, item)| (Arc::clone(name), Value::clone(item))));
    let mut nodes = whole_attributes(&shown, sign, detail);
    let hidden = present.len() - nodes.len();
    nodes.extend(
        (hidden > 0).then(|| Node::comment(format!("({}; --full shows them)", counted(hidden, "more attribute")))),
    );
    nodes
}

impl Differ<'_> {
    /// The entries of two maps. At the top, these are attributes, for which null means that they are not set.
    fn entries(self, old: &Value, new: &Value, at: &Path) -> Vec<Node> {
        let is_top = at.0.is_empty();
        let identifying: &[&str] = match at.0.last() {
            None => &IDENTIFYING,
            Some(Segment::Index(_)) => &IDENTIFYING_ITEM,
            Some(Segment::Name(_)) => &[],
        };
        let mut nodes = Vec::new();
        let mut unchanged = 0;
        for name in names(old, new) {
            let at = at.name(Arc::clone(&name));
            let sides = [old, new].map(|value| value.get(&name).cloned());
            let [old, new] = sides.map(|item| item.filter(|item| !is_top || !matches!(item, Value::Null)));
            match (old, new) {
                (None | Some(Value::Null), None | Some(Value::Null)) => {}
                (Some(old), Some(new)) if old.equals_unmarked(&new) && !new.has_unknown() => {
                    let shown = self.detail.full || identifying.contains(&name.as_ref());
                    match shown || self.forces(&at, true) {
                        true => nodes.push(self.whole(Sign::None, Some(label(&name)), &marked_as(&new, &old), &at)),
                        false => unchanged += 1,
                    }
                }
                (None, Some(new)) => nodes.push(self.whole(Sign::Added, Some(label(&name)), &new, &at)),
                (Some(old), None) => nodes.push(self.whole(Sign::Removed, Some(label(&name)), &old, &at)),
                (Some(old), Some(new)) => nodes.extend(self.changed(Some(label(&name)), &old, &new, &at)),
            }
        }
        let noun = if is_top { "unchanged attribute" } else { "unchanged entry" };
        nodes.extend((unchanged > 0).then(|| Node::comment(format!("({})", counted(unchanged, noun)))));
        nodes
    }

    /// Two values that differ.
    fn changed(self, label: Option<String>, old: &Value, new: &Value, at: &Path) -> Vec<Node> {
        let node = match (old, new) {
            (Value::Sensitive(_), _) | (_, Value::Sensitive(_)) => Node::value(Sign::Changed, label, SENSITIVE_TEXT),
            (Value::Map(_), Value::Map(_)) => {
                let node = Node::block(Sign::Changed, label, ("{", "}"), self.entries(old, new, at));
                return vec![node.noted(self.notes(at, false))];
            }
            (Value::List(before), Value::List(after)) => {
                let node = Node::block(Sign::Changed, label, ("[", "]"), self.items(before, after, at));
                return vec![node.noted(self.notes(at, false))];
            }
            (Value::String(before), Value::String(after)) => self.strings(label, before, after),
            (old, Value::Unknown) => {
                Node::value(Sign::Changed, label, format!("{} -> {}", self.brief(old), scalar::UNKNOWN_TEXT))
            }
            (old, new) => match (self.on_one_line(old), self.on_one_line(new)) {
                (Some(old), Some(new)) => Node::value(Sign::Changed, label, format!("{old} -> {new}")),
                (_, None) if matches!(old, Value::Null) => return vec![self.whole(Sign::Added, label, new, at)],
                (None, _) if matches!(new, Value::Null) => return vec![self.whole(Sign::Removed, label, old, at)],
                _ => {
                    let removed = self.whole(Sign::Removed, label.clone(), old, at);
                    return vec![removed.noted(Vec::new()), self.whole(Sign::Added, label, new, at)];
                }
            },
        };
        vec![node.noted(self.notes(at, true))]
    }

    /// The items of two lists. Unchanged items are folded, except those next to a change that fit on one line.
    fn items(self, old: &[Value], new: &[Value], at: &Path) -> Vec<Node> {
        let rows = align(old, new);
        let mut nodes = Vec::new();
        let mut folded = 0;
        for (position, row) in rows.iter().enumerate() {
            if let Row::Same(..) = row {
                let neighbors = &rows[position.saturating_sub(1)..rows.len().min(position + 2)];
                let by_change = neighbors.iter().any(|row| !matches!(row, Row::Same(..)));
                let shown = self.same_item(old, new, *row).filter(|_| self.detail.full || by_change);
                match shown {
                    Some(node) => nodes.extend(fold(&mut folded).into_iter().chain([node])),
                    None => folded += 1,
                }
                continue;
            }
            nodes.extend(fold(&mut folded));
            match *row {
                Row::Same(..) => {}
                Row::Removed(here) => {
                    let item = hidden_by_other(&old[here], here, new);
                    nodes.push(self.whole(Sign::Removed, None, &item, &at.index(here)));
                }
                Row::Added(there) => {
                    let item = hidden_by_other(&new[there], there, old);
                    nodes.push(self.whole(Sign::Added, None, &item, &at.index(there)));
                }
                Row::Changed(here, there) => {
                    let (before, after) =
                        (hidden_by_other(&old[here], here, new), hidden_by_other(&new[there], there, old));
                    nodes.extend(self.changed(None, &before, &after, &at.index(there)));
                }
            }
        }
        nodes.extend(fold(&mut folded));
        nodes
    }

    /// An unchanged item of a list, if it can be shown: on one line, or with all details.
    fn same_item(self, old: &[Value], new: &[Value], row: Row) -> Option<Node> {
        let Row::Same(here, there) = row else { return None };
        let item = marked_as(&new[there], &old[here]);
        let item = hidden_by_other(&hidden_by_other(&item, here, new), there, old);
        (self.detail.full || self.on_one_line(&item).is_some())
            .then(|| self.whole(Sign::None, None, &item, &Path::default()))
    }

    /// Two strings that differ: by their JSON, by line, or as a whole.
    fn strings(self, label: Option<String>, old: &str, new: &str) -> Node {
        let parsed = strings::json(old).zip(strings::json(new)).filter(|(old, new)| old != new);
        if let Some((before, after)) = parsed {
            let inside = Differ { forced: &[], drifted: &[], ..self };
            // The path only has to differ from the top, where null means that an attribute is not set.
            let at = Path::of(&["json"]);
            return match (&before, &after) {
                (Value::Map(_), Value::Map(_)) => {
                    Node::block(Sign::Changed, label, JSON_MAP, inside.entries(&before, &after, &at))
                }
                (Value::List(before), Value::List(after)) => {
                    Node::block(Sign::Changed, label, JSON_LIST, inside.items(before, after, &at))
                }
                _ => Node::value(Sign::Changed, label, scalar::change(old, new, self.detail)),
            };
        }
        if has_lines(old) || has_lines(new) {
            let lines = strings::line_differences(old, new, self.detail);
            return Node::block(Sign::Changed, label, ("|", ""), lines);
        }
        Node::value(Sign::Changed, label, scalar::change(old, new, self.detail))
    }

    /// A value with all its parts, each with the sign.
    fn whole(self, sign: Sign, label: Option<String>, value: &Value, at: &Path) -> Node {
        let node = match value {
            Value::Map(map) => {
                let present = map.iter().filter(|(_, item)| !matches!(item, Value::Null));
                let nodes = present
                    .map(|(name, item)| self.whole(sign, Some(self::label(name)), item, &at.name(Arc::clone(name))));
                match nodes.collect::<Vec<_>>() {
                    nodes if nodes.is_empty() => Node::value(sign, label, "{}"),
                    nodes => Node::block(sign, label, ("{", "}"), nodes),
                }
            }
            Value::List(items) => match self.on_one_line(value) {
                Some(text) => Node::value(sign, label, text),
                None => {
                    let nodes = items.iter().enumerate();
                    let nodes = nodes.map(|(place, item)| self.whole(sign, None, item, &at.index(place))).collect();
                    Node::block(sign, label, ("[", "]"), nodes)
                }
            },
            Value::String(text) => match strings::json(text) {
                Some(Value::Map(map)) => {
                    let inside = Differ { forced: &[], drifted: &[], ..self };
                    let entries = map.iter().map(|(name, item)| inside.whole(sign, Some(self::label(name)), item, at));
                    Node::block(sign, label, JSON_MAP, entries.collect())
                }
                Some(Value::List(items)) => {
                    let inside = Differ { forced: &[], drifted: &[], ..self };
                    Node::block(
                        sign,
                        label,
                        JSON_LIST,
                        items.iter().map(|item| inside.whole(sign, None, item, at)).collect(),
                    )
                }
                _ if has_lines(text) => {
                    Node::block(sign, label, ("|", ""), strings::lines(text, Sign::None, self.detail))
                }
                _ => Node::value(sign, label, scalar::text(value, self.detail)),
            },
            other => Node::value(sign, label, scalar::text(other, self.detail)),
        };
        node.noted(self.notes(at, true))
    }

    /// The value on one line. `None` for maps, longer lists, and strings that have a structure.
    fn on_one_line(self, value: &Value) -> Option<String> {
        match value {
            Value::Map(map) if !map.is_empty() => None,
            Value::Map(_) => Some("{}".to_owned()),
            Value::String(text) if has_lines(text) || strings::json(text).is_some() => None,
            Value::List(items) => {
                if items.iter().any(|item| matches!(item, Value::List(_))) {
                    return None;
                }
                let texts = items.iter().map(|item| self.on_one_line(item));
                let text = texts.collect::<Option<Vec<_>>>()?.join(", ");
                (text.chars().count() <= MAX_INLINE).then(|| format!("[{text}]"))
            }
            plain => Some(scalar::text(plain, self.detail)),
        }
    }

    /// An old value whose new value is unknown. The two cannot be compared, so the parts of the old one are counted.
    fn brief(self, value: &Value) -> String {
        match value {
            Value::Map(map) if !map.is_empty() => format!("({})", counted(map.len(), "entry")),
            Value::List(items) if self.on_one_line(value).is_none() => format!("({})", counted(items.len(), "item")),
            Value::String(text) if has_lines(text) => format!("({})", counted(text.lines().count(), "line")),
            Value::String(text) if strings::json(text).is_some() => {
                format!("(JSON of {})", counted(text.chars().count(), "character"))
            }
            other => scalar::text(other, self.detail),
        }
    }

    fn notes(self, at: &Path, is_leaf: bool) -> Vec<&'static str> {
        let drifted = concerns(self.drifted, at, is_leaf).then_some("changed outside of Purlin");
        let forces = self.forces(at, is_leaf).then_some("forces replacement");
        drifted.into_iter().chain(forces).collect()
    }

    fn forces(self, at: &Path, is_leaf: bool) -> bool {
        concerns(self.forced, at, is_leaf)
    }
}

/// A line without lines below it shows what is said about its parts.
fn concerns(paths: &[Path], at: &Path, is_leaf: bool) -> bool {
    paths.iter().any(|path| path == at || (is_leaf && path.starts_with(at)))
}

const JSON_MAP: (&str, &str) = ("json.marshal({", "})");
const JSON_LIST: (&str, &str) = ("json.marshal([", "])");

fn fold(folded: &mut usize) -> Option<Node> {
    let count = std::mem::take(folded);
    (count > 0).then(|| Node::comment(format!("({})", counted(count, "unchanged item"))))
}

/// Items can move, so an item is also sensitive if the item at its position, or an equal item, of the other list is.
fn hidden_by_other(item: &Value, position: usize, others: &[Value]) -> Value {
    let hidden = matches!(others.get(position), Some(Value::Sensitive(_)))
        || others.iter().any(|other| matches!(other, Value::Sensitive(_)) && other.equals_unmarked(item));
    if hidden { item.clone().into_sensitive() } else { item.clone() }
}

/// The value with its own marks and those of an equal value.
fn marked_as(value: &Value, other: &Value) -> Value {
    match (value, other) {
        (_, Value::Sensitive(_)) => value.clone().into_sensitive(),
        (Value::Map(map), Value::Map(others)) => Value::map(map.iter().map(|(name, item)| {
            let item = others.get(name).map_or_else(|| item.clone(), |other| marked_as(item, other));
            (Arc::clone(name), item)
        })),
        (Value::List(items), Value::List(others)) if items.len() == others.len() => {
            Value::list(items.iter().zip(others.iter()).map(|(item, other)| marked_as(item, other)))
        }
        _ => value.clone(),
    }
}

fn label(name: &Arc<str>) -> String {
    cut(&Path(vec![Segment::Name(Arc::clone(name))]).to_string(), scalar::MAX_CHARACTERS).into_owned()
}

fn names(before: &Value, after: &Value) -> BTreeSet<Arc<str>> {
    let mut names = BTreeSet::new();
    for value in [before, after] {
        if let Value::Map(map) = value.unmarked() {
            names.extend(map.keys().cloned());
        }
    }
    names
}
