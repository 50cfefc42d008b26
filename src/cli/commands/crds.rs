//! `purlin crds`.
use crate::cli::failure::Exit;
use crate::cli::output::Console;

/// Prints all definitions as one YAML stream.
pub fn run(console: Console) -> anyhow::Result<Exit> {
    console.result(|out| {
        api::crds().iter().try_for_each(|(_, text)| {
            let separator = if text.starts_with("---") { "" } else { "---\n" };
            write!(out, "{separator}{text}")
        })
    })?;
    Ok(Exit::Success)
}
