//! Renders a plan for users in the style of Terraform: `+ ~ - -/+ +/-`, differences by attribute, reasons, a summary.
//!
//! Differences are trees ([`tree`]), which [`write_change`] writes as text. Sensitive values are never written.

mod diff;
mod items;
pub mod json;
pub mod markdown;
pub mod moves;
pub mod problems;
mod scalar;
mod strings;
pub mod summary;
#[cfg(test)]
mod tests;
pub mod tree;

use model::text::one_line;
use model::{Action, Change, ChangeCause, Drift, ReplaceOrder, Text, Tone, Value};

pub use diff::whole_attributes;
pub use tree::{Node, Sign};

/// How much of the values is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Detail {
    /// Unchanged attributes, all attributes of destroyed objects, and long strings are shown too.
    pub full: bool,
}

impl Detail {
    /// The maximum number of characters of a string or of one of its lines.
    fn characters(self) -> usize {
        if self.full { usize::MAX } else { scalar::MAX_CHARACTERS }
    }

    /// The maximum number of lines of a string that is shown as a whole.
    fn lines(self) -> usize {
        if self.full { usize::MAX } else { 60 }
    }
}

/// Whether a plan shows a change. Blocked objects are shown by their problems, which [`problems`] collects.
pub fn is_shown(change: &Change) -> bool {
    !change.silent && !matches!(change.action, Action::NoOp | Action::Blocked)
}

/// Writes one change: a comment line with the action and its reason, then the attributes.
pub fn write_change(change: &Change, detail: Detail, text: &mut Text) {
    let name = match change.deposed {
        Some(key) => format!("{} (deposed {key})", change.address),
        None => change.address.to_string(),
    };
    text.put("  # ").tone(Tone::Strong, &name).put(' ').put(sentence(change));
    // The attributes that force a replacement say so themselves.
    if let Some(because) = change.because.as_ref().and_then(ChangeCause::unless_forced) {
        text.put(format_args!(" ({})", one_line(&because.to_string())));
    }
    text.end_line();
    let nodes = nodes(change, detail);
    if nodes.is_empty() {
        text.end_line();
        return;
    }
    let (symbol, tone) = symbol(change);
    text.put(format_args!("{:1$}", "", 3_usize.saturating_sub(symbol.len()))).tone(tone, symbol);
    text.put(format_args!(" {} {name}", change.type_name)).end_line();
    tree::write(&nodes, 1, text);
    text.end_line();
}

/// The attributes of a change, with their differences.
pub fn nodes(change: &Change, detail: Detail) -> Vec<Node> {
    let null = Value::Null;
    let (before, after) = (change.before.as_ref().unwrap_or(&null), change.after.as_ref().unwrap_or(&null));
    let drifted = match &change.drift {
        Some(Drift::Changed(paths)) => paths.as_slice(),
        _ => &[],
    };
    let differ = diff::Differ { forced: &change.replace_paths, drifted, detail };
    match change.action {
        Action::NoOp | Action::Blocked => Vec::new(),
        Action::Record | Action::Wait if before.equals_unmarked(after) || after == &null => Vec::new(),
        Action::Destroy | Action::Forget => {
            let sign = if change.action == Action::Destroy { Sign::Removed } else { Sign::None };
            if detail.full { whole_attributes(before, sign, detail) } else { diff::identifying(before, sign, detail) }
        }
        _ => diff::attributes(differ, before, after),
    }
}

fn sentence(change: &Change) -> &'static str {
    let is_forced = !change.replace_paths.is_empty();
    match (change.action, change.order) {
        (Action::Create, _) => "will be created",
        (Action::Update, _) => "will be updated in place",
        (Action::Replace, Some(ReplaceOrder::CreateFirst)) if change.forget => {
            "will be replaced: the new object is created, then the old one is forgotten"
        }
        (Action::Replace, Some(ReplaceOrder::CreateFirst)) if change.hold_destroy.is_some() => {
            "will be replaced: the new object is created, the old one is kept for now"
        }
        (Action::Replace, Some(ReplaceOrder::CreateFirst)) if is_forced => "must be replaced: created, then destroyed",
        (Action::Replace, Some(ReplaceOrder::CreateFirst)) => "will be replaced: created, then destroyed",
        (Action::Replace, _) if is_forced => "must be replaced: destroyed, then created",
        (Action::Replace, _) => "will be replaced: destroyed, then created",
        (Action::Destroy, _) => "will be destroyed",
        (Action::Forget, _) => "will be forgotten: only its record is dropped",
        (Action::Record, _) => "is unchanged; only its record is updated",
        (Action::Wait, _) => "is unchanged, but not ready yet",
        (Action::Read, _) => "will be read during apply",
        (Action::Blocked, _) => "is blocked",
        (Action::NoOp, _) => "is unchanged",
    }
}

fn symbol(change: &Change) -> (&'static str, Tone) {
    match (change.action, change.order) {
        (Action::Create, _) => ("+", Tone::Added),
        (Action::Update, _) => ("~", Tone::Changed),
        (Action::Replace, Some(ReplaceOrder::CreateFirst)) => ("+/-", Tone::Removed),
        (Action::Replace, _) => ("-/+", Tone::Removed),
        (Action::Destroy, _) => ("-", Tone::Removed),
        (Action::Forget | Action::Record | Action::Wait, _) => (".", Tone::Faint),
        (Action::Read, _) => ("<=", Tone::Added),
        (Action::Blocked | Action::NoOp, _) => (" ", Tone::Faint),
    }
}

/// Every symbol that changes can have, in the order of the legend, with its meaning.
const LEGEND: [(&str, &str); 7] = [
    ("+", "create"),
    ("~", "update in place"),
    ("-/+", "replace: destroy, then create"),
    ("+/-", "replace: create, then destroy"),
    ("-", "destroy"),
    (".", "only the record changes, not the object"),
    ("<=", "read"),
];

/// Writes the meaning of the symbols that occur in changes. Nothing if none of them is shown.
pub fn write_legend<'a>(changes: impl IntoIterator<Item = &'a Change> + 'a, text: &mut Text) {
    let used: Vec<(&str, Tone)> = changes.into_iter().filter(|change| is_shown(change)).map(symbol).collect();
    for (sign, meaning) in LEGEND {
        if let Some((_, tone)) = used.iter().find(|(other, _)| *other == sign) {
            text.put(format_args!("{:1$}", "", 3_usize.saturating_sub(sign.len()))).tone(*tone, sign);
            text.put(' ').put(meaning).end_line();
        }
    }
    if !used.is_empty() {
        text.end_line();
    }
}
