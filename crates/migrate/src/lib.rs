//! Conversion between states of Terraform or OpenTofu and records.
//!
//! [`state::parse`] reads a state, of which providers upgrade the objects to their current schemas, and [`records`] makes
//! records of them, at the same addresses. [`export`] converts records to a state. This crate does no I/O and calls no
//! provider; `cli::commands::migrate` does.
#![forbid(unsafe_code)]

mod built_in;
pub mod export;
mod problem;
mod records;
mod sensitive;
pub mod state;

pub use built_in::without_provider;
pub use problem::Problem;
pub use records::{Place, records};
