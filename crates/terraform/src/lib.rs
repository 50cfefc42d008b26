//! Terraform configurations on Purlin's engine: the border between [`configuration`] and [`engine`].
//!
//! A [`Terraform`] is a program of the engine. Each instance of a `resource` block is a Resource with Terraform's address, whose
//! expressions are evaluated by the configuration with the values that the engine has: of a plan while planning, and those of
//! the records in a step. Blocks with `count` and `for_each` are families, and so are module calls, to which the Resources in
//! them refer as long as their instances depend on other objects.
//!
//! The crate reads no files and calls no provider.
#![forbid(unsafe_code)]

mod address;
mod desired;
mod functions;
mod moved;
mod problem;
mod program;
mod providers;
mod provisioners;
mod schemas;
mod templates;
mod unsupported;
mod value;

pub use address::{address, instance};
pub use problem::diagnostics;
pub use program::{NamedProvider, Origin, Terraform};
pub use providers::{config_name, required};
pub use schemas::Schemas;
pub use unsupported::unsupported;
pub use value::{from_model, to_config, to_model};
