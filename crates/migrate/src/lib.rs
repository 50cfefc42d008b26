//! Conversion between states of Terraform or OpenTofu and records.
//!
//! [`state::parse`] reads a state, of which providers upgrade the objects to their current schemas, and [`records`] makes
//! records of them, at the same addresses. [`export`] converts records to a state. This crate does no I/O and calls no
//! provider; `cli::commands::migrate` does.
#![forbid(unsafe_code)]

use std::fmt;

mod built_in;
pub mod export;
mod records;
pub mod state;

pub use built_in::without_provider;
pub use records::{Place, records};

/// An error with a hint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    pub message: String,
    pub hint: Option<String>,
}

impl Problem {
    pub fn hinted(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { message: message.into(), hint: Some(hint.into()) }
    }

    /// Creates a problem without a hint.
    pub fn plain(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        self.hint.as_ref().map_or(Ok(()), |hint| write!(f, " (hint: {hint})"))
    }
}

impl std::error::Error for Problem {}
