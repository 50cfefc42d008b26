//! `purlin state`: inspects and edits records.

pub mod command;
pub mod edit;
pub mod export;
pub mod push;
pub mod records;
pub mod recover;
pub mod rows;

#[cfg(test)]
mod fixtures;

use super::failure::Failure;
use super::output::Console;

/// Asks for a confirmation, unless `yes` is set.
fn confirm(what: &str, yes: bool, console: Console) -> anyhow::Result<()> {
    if yes {
        return Ok(());
    }
    if !console.can_ask {
        return Err(Failure::hinted("cannot ask for confirmation without a terminal", "add --yes"));
    }
    match console.confirms(&format!("{what}\n"))? {
        true => Ok(()),
        false => Err(Failure::hinted("not confirmed", "nothing was changed")),
    }
}
