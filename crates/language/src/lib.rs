//! Terraform's configuration language: the functions, and the evaluation of expressions over `cty` values.
//!
//! The crate reads no files by itself, knows no provider, and has no clock: what an evaluation may see comes in with the
//! [`Scope`]. It takes bounded time and memory, which the [`Budget`] of the scope sets.
#![forbid(unsafe_code)]
#![allow(
    clippy::unnecessary_wraps,
    reason = "every function of the table has the same signature, also those that cannot fail or need no context"
)]

mod scope;
mod failure;
pub mod functions;
mod evaluate;
mod constraint;

/// The only place that names the crate of the values.
mod cty {
    pub use ::cty::*;
}

pub use constraint::TypeConstraint;
pub use evaluate::{Environment, Evaluated, evaluate, traverse};
pub use failure::Failure;
pub use scope::{Budget, Effects, FileError, Files, NoFiles, Scope};
