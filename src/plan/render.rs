//! Renders a plan for users in the style of Terraform: `+ ~ - -/+ +/-`, differences by field, reasons, a summary.
//!
//! The caller chooses whether to use colors with a [`Style`]. Sensitive values are never written.

mod diff;
pub mod json;

use std::fmt::{self, Write};

use super::Plan;
use crate::model::{Action, Change, Diagnostic, ReplaceOrder, Severity};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Style {
    #[default]
    Plain,
    /// With ANSI colors. Color is never the only indication.
    Ansi,
}

/// The meaning of a part of the output, which determines its color.
#[derive(Clone, Copy)]
enum Tone {
    Good,
    Change,
    Bad,
    Quiet,
    Strong,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub create: usize,
    pub update: usize,
    pub replace: usize,
    /// Includes deposed objects.
    pub destroy: usize,
    /// Includes deposed objects.
    pub forget: usize,
    /// Blocked objects and held destroys.
    pub blocked: usize,
    /// Record-only steps, which are not changes.
    pub record: usize,
}

impl Counts {
    pub fn of(plan: &Plan) -> Self {
        let mut counts = Self::default();
        for change in &plan.changes {
            match change.action {
                Action::Create => counts.create += 1,
                Action::Update => counts.update += 1,
                Action::Replace => counts.replace += 1,
                Action::Destroy => counts.destroy += 1,
                Action::Forget => counts.forget += 1,
                Action::Blocked => counts.blocked += 1,
                Action::Record => counts.record += 1,
                Action::NoOp | Action::Read | Action::Wait => {}
            }
            counts.blocked += usize::from(change.hold_destroy.is_some());
        }
        counts
    }

    /// Whether any object changes. Record-only steps and blocked objects do not count.
    pub fn any_change(&self) -> bool {
        self.create + self.update + self.replace + self.destroy + self.forget > 0
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.any_change() {
            let Self { create, update, replace, destroy, .. } = self;
            write!(f, "Plan: {create} to create, {update} to update, {replace} to replace, {destroy} to destroy")?;
            if self.forget > 0 {
                write!(f, ", {} to forget", self.forget)?;
            }
        } else {
            f.write_str("No changes: every object is up to date")?;
            if self.blocked > 0 {
                f.write_str(" or blocked")?;
            }
        }
        f.write_str(".")?;
        if self.blocked > 0 {
            write!(f, " {} blocked.", self.blocked)?;
        }
        Ok(())
    }
}

/// Writes each object that changes or is blocked, the diagnostics, and the summary.
pub fn write(plan: &Plan, style: Style, out: &mut dyn Write) -> fmt::Result {
    for change in plan.changes.iter().filter(|change| change.action != Action::NoOp) {
        write_change(change, style, out)?;
    }
    for diagnostic in &plan.diagnostics {
        write_diagnostic(diagnostic, style, out)?;
    }
    if !plan.diagnostics.is_empty() {
        out.write_char('\n')?;
    }
    writeln!(out, "{}", style.paint(Tone::Strong, &Counts::of(plan).to_string()))
}

/// Writes one diagnostic on one line.
pub fn write_diagnostic(diagnostic: &Diagnostic, style: Style, out: &mut dyn Write) -> fmt::Result {
    let word = match diagnostic.severity {
        Severity::Error => style.paint(Tone::Bad, "error:"),
        Severity::Warning => style.paint(Tone::Change, "warning:"),
    };
    writeln!(out, "{word} {diagnostic}")
}

/// Writes one change: a comment line with the action and its reason, then the fields.
pub fn write_change(change: &Change, style: Style, out: &mut dyn Write) -> fmt::Result {
    let name = match change.deposed {
        Some(key) => format!("{} (deposed {key})", change.address),
        None => change.address.to_string(),
    };
    write!(out, "  # {} {}", style.paint(Tone::Strong, &name), sentence(change))?;
    if let Some(because) = change.because.as_ref().filter(|_| change.action != Action::Blocked) {
        write!(out, " ({because})")?;
    }
    out.write_char('\n')?;
    if change.action == Action::Blocked || change.hold_destroy.is_some() {
        let reason = change.blocked.or(change.hold_destroy).map_or("", |reason| reason.as_str());
        writeln!(out, "  # {}: {}", style.paint(Tone::Bad, reason), change.message)?;
    }
    let same_value =
        || change.before.as_ref().zip(change.after.as_ref()).is_none_or(|(old, new)| old.equals_unmarked(new));
    if change.action == Action::Blocked || (matches!(change.action, Action::Record | Action::Wait) && same_value()) {
        return out.write_char('\n');
    }
    let (sign, tone) = sign(change);
    writeln!(out, "  {} {} {name}", style.paint(tone, sign), change.type_name)?;
    diff::write_fields(change, style, out)?;
    out.write_char('\n')
}

fn sentence(change: &Change) -> &'static str {
    match (change.action, change.order) {
        (Action::Create, _) => "will be created",
        (Action::Update, _) => "will be updated in place",
        (Action::Replace, Some(ReplaceOrder::CreateFirst)) if change.forget => {
            "will be replaced: the new object is created, then the old one is forgotten"
        }
        (Action::Replace, Some(ReplaceOrder::CreateFirst)) if change.hold_destroy.is_some() => {
            "will be replaced: the new object is created, the old one is kept for now"
        }
        (Action::Replace, Some(ReplaceOrder::CreateFirst)) => "will be replaced: created, then destroyed",
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

fn sign(change: &Change) -> (&'static str, Tone) {
    match (change.action, change.order) {
        (Action::Create, _) => ("+", Tone::Good),
        (Action::Update, _) => ("~", Tone::Change),
        (Action::Replace, Some(ReplaceOrder::CreateFirst)) => ("+/-", Tone::Bad),
        (Action::Replace, _) => ("-/+", Tone::Bad),
        (Action::Destroy, _) => ("-", Tone::Bad),
        (Action::Forget | Action::Record | Action::Wait, _) => (".", Tone::Quiet),
        (Action::Read, _) => ("<=", Tone::Good),
        (Action::Blocked | Action::NoOp, _) => (" ", Tone::Quiet),
    }
}

impl Style {
    fn paint(self, tone: Tone, text: &str) -> String {
        let code = match (self, tone) {
            (Self::Plain, _) => return text.to_owned(),
            (Self::Ansi, Tone::Good) => "32",
            (Self::Ansi, Tone::Change) => "33",
            (Self::Ansi, Tone::Bad) => "31",
            (Self::Ansi, Tone::Quiet) => "2",
            (Self::Ansi, Tone::Strong) => "1",
        };
        format!("\u{1b}[{code}m{text}\u{1b}[0m")
    }
}
