//! Terraform and OpenTofu providers: their types and values, their processes, and their packages.
//!
//! Providers run unmodified. What Purlin makes of them is the matter of the crate `drivers`.
#![forbid(unsafe_code)]

pub mod cty;
pub mod plugin;
pub mod install;
