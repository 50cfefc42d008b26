//! Shows a plan.

use std::io::{self, Write};

use super::json::{DiagnosticJson, FORMAT_VERSION};
use super::output::Paint;
use super::situation::Planned;
use crate::{graph, plan};

/// For people.
pub fn text(out: &mut dyn Write, planned: &Planned, paint: Paint) -> io::Result<()> {
    plan::render::text(out, &planned.plan, paint.0)
}

/// The format of `plan -o json`, written change by change: no tree of the whole is made.
pub fn json(out: &mut dyn Write, planned: &Planned) -> io::Result<()> {
    write!(out, "{{\"formatVersion\":\"{FORMAT_VERSION}\",\"changes\":")?;
    plan::render::json(out, &planned.plan)?;
    out.write_all(b",\"graph\":")?;
    graph::render::json(out, &planned.graph)?;
    out.write_all(b",\"diagnostics\":")?;
    serde_json::to_writer(&mut *out, &DiagnosticJson::all(&planned.diagnostics).collect::<Vec<_>>())?;
    out.write_all(b"}\n")
}
