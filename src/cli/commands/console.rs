//! `purlin console`: evaluates expressions with the values of a Terraform configuration.

use std::collections::BTreeMap;

use crate::cli::args::ConsoleArgs;
use crate::cli::expression_value::shown;
use crate::cli::failure::{Exit, Failure};
use crate::cli::inputs::PlanParameters;
use crate::cli::local;
use crate::cli::options::{Files, Planning};
use crate::cli::output::Console;
use crate::cli::outputs::RecordedScope;
use crate::cli::view::View;
use model::Source;
use runtime::execute::Limits;

const HELP: &str =
    "Enter an expression to see its value, such as `var.name` or `length(\"text\")`. `exit` or Ctrl-D ends.\n";

pub async fn run(args: ConsoleArgs, console: Console) -> anyhow::Result<Exit> {
    let files = Files::new(args.files, None).or_here();
    files.require_sources("console")?;
    let View { engine, inputs } = local::inspect(&files, Limits::default(), console).await?;
    // Data sources are not recorded. A plan reads them, and finds the instances of all blocks.
    let planned = inputs.plan(&engine, &Planning::without_refresh(), PlanParameters::default()).await?;
    console.diagnostics(&planned.diagnostics);
    let Some(terraform) = &inputs.terraform else {
        if planned.has_errors() {
            return Ok(Exit::Problems);
        }
        let hint = "specify the directory of a configuration with -f";
        return Err(Failure::hinted("`purlin console` works only on a Terraform configuration", hint));
    };
    let scope = RecordedScope {
        config: &planned.config,
        recorded: &inputs.recorded,
        readings: &planned.plan.readings().collect(),
        namespace: &inputs.namespace,
        planned: &BTreeMap::new(),
        is_final: true,
    };
    let prompt = if console.can_ask { "> " } else { "" };
    for number in 1.. {
        let Some(text) = console.read_line(prompt)? else { break };
        match text.as_str() {
            "" => continue,
            "exit" => break,
            "help" => {
                console.lines(HELP)?;
                continue;
            }
            _ => {}
        }
        match terraform.ask(&text, &Source { file: "console".into(), line: number }, &scope) {
            Ok(value) => console.lines(format_args!("{}\n", shown(&value, 0)))?,
            Err(problems) => {
                console.diagnostics(&problems);
                // A script ends with its first error.
                if !console.can_ask {
                    return Ok(Exit::Problems);
                }
            }
        }
    }
    Ok(Exit::Success)
}
