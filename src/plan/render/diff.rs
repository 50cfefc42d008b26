//! Renders the fields of a change: values, differences, and the attributes that force a replacement.

use std::collections::BTreeSet;
use std::fmt::{self, Write};
use std::sync::Arc;

use super::{Style, Tone};
use crate::model::value::SENSITIVE_TEXT;
use crate::model::{Action, Change, Path, Segment, Value};

/// Shown instead of an unknown value.
const UNKNOWN_TEXT: &str = "(known after apply)";

/// Writes all fields of a new object, the differences of a changed object, or the id of a destroyed object.
pub(super) fn write_fields(change: &Change, style: Style, out: &mut dyn Write) -> fmt::Result {
    let mut fields = Fields { change, style, out, unchanged: 0 };
    let null = Value::Null;
    let (before, after) = (change.before.as_ref().unwrap_or(&null), change.after.as_ref().unwrap_or(&null));
    match change.action {
        Action::Destroy | Action::Forget => match before.get("id").filter(|id| !matches!(id, Value::Sensitive(_))) {
            Some(id) => fields.line(1, "-", Tone::Bad, "id", &text(id), false),
            None => Ok(()),
        },
        _ => {
            fields.attributes(before, after)?;
            fields.count_unchanged()
        }
    }
}

struct Fields<'a> {
    change: &'a Change,
    style: Style,
    out: &'a mut dyn Write,
    unchanged: usize,
}

impl Fields<'_> {
    fn attributes(&mut self, before: &Value, after: &Value) -> fmt::Result {
        for name in names(before, after) {
            let null = Value::Null;
            let (old, new) = (before.get(&name).unwrap_or(&null), after.get(&name).unwrap_or(&null));
            self.field(1, &Path::default().name(name.clone()), &Label::Name(name), old, new)?;
        }
        Ok(())
    }

    /// Writes one field with all differences below it.
    fn field(&mut self, depth: usize, at: &Path, label: &Label, old: &Value, new: &Value) -> fmt::Result {
        let marked = matches!(old, Value::Sensitive(_)) || matches!(new, Value::Sensitive(_));
        let equal = old.equals_unmarked(new) && !new.has_unknown();
        let label_text = label.text();
        match (old.unmarked(), new.unmarked()) {
            (Value::Null, Value::Null) => Ok(()),
            _ if equal => {
                self.unchanged += 1;
                Ok(())
            }
            _ if marked => self.change_line(depth, at, &label_text, old, new),
            (Value::Map(_), Value::Map(_)) => {
                self.open(depth, &label_text, "{", at)?;
                for name in names(old, new) {
                    let null = Value::Null;
                    let (old, new) = (old.get(&name).unwrap_or(&null), new.get(&name).unwrap_or(&null));
                    self.field(depth + 1, &at.name(name.clone()), &Label::Name(name), old, new)?;
                }
                self.close(depth, "}")
            }
            (Value::List(a), Value::List(b)) => {
                self.open(depth, &label_text, "[", at)?;
                for place in 0..a.len().max(b.len()) {
                    let null = Value::Null;
                    let (old, new) = (a.get(place).unwrap_or(&null), b.get(place).unwrap_or(&null));
                    self.field(depth + 1, &at.index(place), &Label::Place(place), old, new)?;
                }
                self.close(depth, "]")
            }
            _ => self.change_line(depth, at, &label_text, old, new),
        }
    }

    fn change_line(&mut self, depth: usize, at: &Path, label: &str, old: &Value, new: &Value) -> fmt::Result {
        let forces = self.forces(at);
        match (old.unmarked(), new.unmarked()) {
            (Value::Null, _) => self.line(depth, "+", Tone::Good, label, &text(new), forces),
            (_, Value::Null) => self.line(depth, "-", Tone::Bad, label, &text(old), forces),
            _ => self.line(depth, "~", Tone::Change, label, &format!("{} -> {}", text(old), text(new)), forces),
        }
    }

    fn line(&mut self, depth: usize, sign: &str, tone: Tone, label: &str, text: &str, forces: bool) -> fmt::Result {
        let indent = "    ".repeat(depth);
        let note = if forces { self.style.paint(Tone::Bad, " # forces replacement") } else { String::new() };
        writeln!(self.out, "  {indent}{} {label} = {text}{note}", self.style.paint(tone, sign))
    }

    fn open(&mut self, depth: usize, label: &str, bracket: &str, at: &Path) -> fmt::Result {
        let forces = self.forces(at);
        self.line(depth, "~", Tone::Change, label, bracket, forces)
    }

    fn close(&mut self, depth: usize, bracket: &str) -> fmt::Result {
        writeln!(self.out, "  {}  {bracket}", "    ".repeat(depth))
    }

    fn count_unchanged(&mut self) -> fmt::Result {
        if self.unchanged == 0 {
            return Ok(());
        }
        let text = format!("# {} unchanged", self.unchanged);
        writeln!(self.out, "        {}", self.style.paint(Tone::Quiet, &text))
    }

    fn forces(&self, at: &Path) -> bool {
        self.change.replace_paths.contains(at)
    }
}

enum Label {
    Name(Arc<str>),
    Place(usize),
}

impl Label {
    fn text(&self) -> String {
        match self {
            Self::Name(name) => Path(vec![Segment::Name(name.clone())]).to_string(),
            Self::Place(place) => format!("[{place}]"),
        }
    }
}

fn names(before: &Value, after: &Value) -> BTreeSet<Arc<str>> {
    let of = |value: &Value| match value.unmarked() {
        Value::Map(map) => map.keys().cloned().collect::<Vec<_>>(),
        _ => Vec::new(),
    };
    of(before).into_iter().chain(of(after)).collect()
}

/// A value on one line. Sensitive values are masked.
fn text(value: &Value) -> String {
    match value {
        Value::Sensitive(_) => SENSITIVE_TEXT.to_owned(),
        Value::Unknown => UNKNOWN_TEXT.to_owned(),
        Value::Null => "null".to_owned(),
        Value::List(items) => format!("[{}]", items.iter().map(text).collect::<Vec<_>>().join(", ")),
        Value::Map(map) => {
            let entry = |(name, item): (&Arc<str>, &Value)| {
                let name = Path(vec![Segment::Name(name.clone())]);
                format!("{name} = {}", text(item))
            };
            format!("{{ {} }}", map.iter().map(entry).collect::<Vec<_>>().join(", "))
        }
        known => known.to_json_text(),
    }
}
