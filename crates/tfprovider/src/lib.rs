//! Terraform and OpenTofu providers: their schemas, their processes, and their packages.
//!
//! Providers run unmodified. What Purlin makes of them is the matter of the crate `drivers`.
#![forbid(unsafe_code)]

pub mod schema;
pub mod plugin;
pub mod install;
