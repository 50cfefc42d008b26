//! `purlin state`: inspects and edits records.

pub mod command;
pub mod edit;
pub mod export;
pub mod records;
pub mod rows;

#[cfg(test)]
mod fixtures;
