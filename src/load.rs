//! From API objects to a `Config`: what is wanted, with its expressions parsed and its references found.
//!
//! Takes Resources (from files or from the API server), gives a `Config` and diagnostics. One bad Resource
//! never hides another: it stays in the `Config` as present, marked with its errors.

pub mod config;
pub mod expression;

pub use config::{Config, DeletionPolicy, ImportRequest, Instance, Reference, Timeouts};
pub use expression::Template;
