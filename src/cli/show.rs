//! Prints a plan as text or JSON.

use std::io::{self, Write};

use super::inputs::PlanResult;
use super::json::{Diagnostics, FORMAT_VERSION};
use super::output::Paint;
use crate::graph::render::GraphJson;
use crate::model::Action;
use crate::plan::render::json::Changes;
use crate::plan::render::{Counts, Style, write_change};

/// Prints every object that changes or is blocked, and the counts. Diagnostics are printed to standard error before.
pub fn text(out: &mut dyn Write, planned: &PlanResult, paint: Paint) -> io::Result<()> {
    let style = if paint.0 { Style::Ansi } else { Style::Plain };
    let mut text = String::new();
    for change in planned.plan.changes.iter().filter(|change| change.action != Action::NoOp) {
        text.clear();
        // Writing to a String cannot fail.
        let _ = write_change(change, style, &mut text);
        out.write_all(text.as_bytes())?;
    }
    // With errors and no objects, "no changes" would be wrong.
    if planned.plan.changes.is_empty() && planned.has_errors() {
        return Ok(());
    }
    let counts = Counts::of(&planned.plan);
    let summary = if planned.refresh_only { refresh_summary(&counts) } else { counts.to_string() };
    writeln!(out, "{}", paint.strong(&summary))
}

fn refresh_summary(counts: &Counts) -> String {
    let Counts { record, forget, blocked, .. } = counts;
    let summary = match record + forget {
        0 => "No differences: all objects that could be read match their records.".to_owned(),
        _ => format!("Refresh: {record} to record, {forget} to forget. No objects are changed."),
    };
    if *blocked > 0 { format!("{summary} {blocked} blocked.") } else { summary }
}

/// The format of `plan -o json`, written change by change to save memory.
pub fn json(out: &mut dyn Write, planned: &PlanResult) -> io::Result<()> {
    write!(out, "{{\"formatVersion\":\"{FORMAT_VERSION}\",\"changes\":")?;
    serde_json::to_writer(&mut *out, &Changes(&planned.plan.changes))?;
    out.write_all(b",\"graph\":")?;
    serde_json::to_writer(&mut *out, &GraphJson(&planned.graph))?;
    out.write_all(b",\"diagnostics\":")?;
    serde_json::to_writer(&mut *out, &Diagnostics(&planned.diagnostics))?;
    out.write_all(b"}\n")
}
