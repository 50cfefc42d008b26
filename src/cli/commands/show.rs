//! `purlin show`: a saved plan, or the recorded objects.

use crate::cli::args::{Format, ShowArgs};
use crate::cli::failure::Exit;
use crate::cli::options::Target;
use crate::cli::output::Console;
use crate::cli::outputs::{self, StoredOutput};
use crate::cli::saved::SavedPlan;
use crate::cli::show;
use crate::cli::state::command::write_row;
use crate::cli::state::records::{self, RecordList};
use crate::cli::state::rows;
use engine::graph::render::GraphJson;
use engine::plan::render::Detail;

pub async fn run(args: ShowArgs, console: Console) -> anyhow::Result<Exit> {
    let is_json = args.json || args.output == Format::Json;
    let detail = Detail { full: args.full };
    if let Some(path) = &args.plan {
        let planned = SavedPlan::read(path)?.into_planned();
        match is_json {
            true => console.result(|out| show::json(out, &planned, &GraphJson(&planned.graph)))?,
            false => show::plan(&planned, detail, console)?,
        }
        return Ok(Exit::Success);
    }
    let target = Target::from_args(args.target);
    let mut records = records::read(target.clone(), console).await?;
    records.retain_sources(&target);
    let mut rows = records.recorded.values().flat_map(|stored| rows::rows(&stored.record));
    let exit = Exit::of(!records.diagnostics.is_empty(), false, false);
    if is_json {
        console.result(|out| rows::write_json(out, &mut rows, &records.diagnostics))?;
        return Ok(exit);
    }
    console.diagnostics(&records.diagnostics);
    let mut text = console.text();
    rows.for_each(|row| write_row(&row, detail, &mut text));
    write_outputs(&records, &mut text);
    if text.as_str().is_empty() {
        console.notice("No objects are recorded.");
    }
    console.print(&text)?;
    Ok(exit)
}

/// Writes the outputs that the last apply has recorded. What cannot be read is left to `purlin output`, which says why.
fn write_outputs(records: &RecordList, text: &mut model::Text) {
    let stored = records.configurations.values().filter_map(|known| outputs::from_state(&known.outputs).ok());
    let mut outputs: Vec<StoredOutput> = stored.flatten().collect();
    outputs.sort_by(|a, b| a.name.cmp(&b.name));
    if outputs.is_empty() {
        return;
    }
    text.end_line().put("Outputs:").end_line().end_line();
    for StoredOutput { name, value, is_sensitive, .. } in outputs {
        let shown = if is_sensitive { "<sensitive>".to_owned() } else { outputs::shown(&value, 0) };
        text.put(format_args!("{name} = {shown}")).end_line();
    }
}
