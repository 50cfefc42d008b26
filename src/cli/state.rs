//! Records in the hands of a person: `purlin state`.

pub mod command;
pub mod edit;
pub mod export;
pub mod records;
pub mod rows;

#[cfg(test)]
mod fixtures;
