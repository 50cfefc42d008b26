//! Shows a plan.

use std::io::{self, Write};

use super::json::{Diagnostics, FORMAT_VERSION};
use super::output::Paint;
use super::situation::Planned;
use crate::graph::render::GraphJson;
use crate::model::Action;
use crate::plan::render::json::Changes;
use crate::plan::render::{Counts, Style, write_change};

/// For people: every object that changes or is blocked, and the counts. Problems have been told before, on standard
/// error.
pub fn text(out: &mut dyn Write, planned: &Planned, paint: Paint) -> io::Result<()> {
    let style = if paint.0 { Style::Ansi } else { Style::Plain };
    let mut text = String::new();
    for change in planned.plan.changes.iter().filter(|change| change.action != Action::NoOp) {
        text.clear();
        // Writing to a String cannot fail.
        let _ = write_change(change, style, &mut text);
        out.write_all(text.as_bytes())?;
    }
    // With errors and not one object, "no changes" would be no answer.
    if planned.plan.changes.is_empty() && planned.has_errors() {
        return Ok(());
    }
    let counts = Counts::of(&planned.plan);
    let summary = if planned.refresh_only { refreshed(&counts) } else { counts.to_string() };
    writeln!(out, "{}", paint.strong(&summary))
}

fn refreshed(counts: &Counts) -> String {
    let Counts { record, forget, blocked, .. } = counts;
    let told = match record + forget {
        0 => "No differences: every object that could be read is as it is recorded.".to_owned(),
        _ => format!("Refresh: {record} to record as they are now, {forget} to forget. No object is changed."),
    };
    if *blocked > 0 { format!("{told} {blocked} blocked.") } else { told }
}

/// The format of `plan -o json`, written change by change: no tree of the whole is made.
pub fn json(out: &mut dyn Write, planned: &Planned) -> io::Result<()> {
    write!(out, "{{\"formatVersion\":\"{FORMAT_VERSION}\",\"changes\":")?;
    serde_json::to_writer(&mut *out, &Changes(&planned.plan.changes))?;
    out.write_all(b",\"graph\":")?;
    serde_json::to_writer(&mut *out, &GraphJson(&planned.graph))?;
    out.write_all(b",\"diagnostics\":")?;
    serde_json::to_writer(&mut *out, &Diagnostics(&planned.diagnostics))?;
    out.write_all(b"}\n")
}
