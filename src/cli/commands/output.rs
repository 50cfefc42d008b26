//! `purlin output`: the outputs of a Terraform configuration, as the last apply has recorded them.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::value::RawValue;

use crate::cli::args::OutputArgs;
use crate::cli::failure::{Exit, Failure};
use crate::cli::init;
use crate::cli::options::source_paths;
use crate::cli::output::Console;
use crate::cli::outputs::{self, StoredOutput};
use crate::cli::root_module;
use model::Value;
use model::suggest::closest;
use runtime::store::StateFile;

pub fn run(args: OutputArgs, console: Console) -> anyhow::Result<Exit> {
    let root = init::root(args.root.directory)?;
    let outputs = recorded(&root, &args.state)?;
    match &args.name {
        Some(name) => {
            let output = find(&outputs, name)?;
            match () {
                () if args.json => exactly(&format!("{}\n", output.json), console)?,
                () if args.raw => exactly(&raw(output)?, console)?,
                () => console.lines(format_args!("{}\n", outputs::shown(&output.value, 0)))?,
            }
        }
        None if args.json => exactly(&format!("{}\n", all_as_json(&outputs)?), console)?,
        None if outputs.is_empty() => console.notice("No outputs are recorded: `purlin apply` records them."),
        None => {
            for StoredOutput { name, value, is_sensitive, .. } in &outputs {
                let shown = if *is_sensitive { "<sensitive>".to_owned() } else { outputs::shown(value, 0) };
                console.lines(format_args!("{name} = {shown}\n"))?;
            }
        }
    }
    Ok(Exit::Success)
}

/// Prints text for programs, in which nothing is escaped.
fn exactly(text: &str, console: Console) -> anyhow::Result<()> {
    console.result(|out| out.write_all(text.as_bytes()))
}

/// The recorded outputs of the configuration in a directory, in order of their names.
fn recorded(root: &Path, state: &Path) -> anyhow::Result<Vec<StoredOutput>> {
    let Some(found) = StateFile::read(state)? else { return Ok(Vec::new()) };
    let paths = source_paths(state);
    let source = paths.source(&root_module::source_path(root, &paths));
    let text = found.loaded.configurations.get(&source).map(|known| known.outputs.as_str()).unwrap_or_default();
    let outputs = outputs::from_state(text);
    let mut outputs = outputs.map_err(|what| {
        let hint = "`purlin apply` records them again";
        Failure::hinted(format!("the outputs in `{}` cannot be read: {what}", state.display()), hint)
    })?;
    outputs.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(outputs)
}

fn find<'o>(outputs: &'o [StoredOutput], name: &str) -> anyhow::Result<&'o StoredOutput> {
    let output = outputs.iter().find(|output| output.name == name);
    output.ok_or_else(|| {
        let names = outputs.iter().map(|output| output.name.as_str());
        let hint = match closest(name, names) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => "`purlin output` lists the outputs; a new one is recorded by `purlin apply`".to_owned(),
        };
        Failure::hinted(format!("there is no output `{name}`"), hint)
    })
}

fn raw(output: &StoredOutput) -> anyhow::Result<String> {
    match &output.value {
        Value::String(text) => Ok(text.to_string()),
        Value::Bool(_) | Value::Number(_) => Ok(output.value.to_json_text()),
        _ => {
            let message = format!("the output `{}` is neither a text, a number nor a boolean", output.name);
            Err(Failure::hinted(message, "use -json"))
        }
    }
}

/// As Terraform prints them: `{"NAME": {"sensitive", "type", "value"}}`.
fn all_as_json(outputs: &[StoredOutput]) -> anyhow::Result<String> {
    let mut entries = BTreeMap::new();
    for output in outputs {
        let sensitive = raw_json(if output.is_sensitive { "true" } else { "false" })?;
        let members = [("sensitive", sensitive), ("type", raw_json(&output.ty)?), ("value", raw_json(&output.json)?)];
        entries.insert(&output.name, BTreeMap::from(members));
    }
    Ok(serde_json::to_string_pretty(&entries)?)
}

fn raw_json(text: &str) -> serde_json::Result<Box<RawValue>> {
    RawValue::from_string(text.to_owned())
}
