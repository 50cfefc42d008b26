//! Purlin plans, orders and applies changes to infrastructure objects with Terraform's semantics.
//!
//! The crates under `crates/` contain the code, and this one the command line. `ARCHITECTURE.md` describes them.
#![forbid(unsafe_code)]

pub use controller::ui;
pub use drivers as driver;
pub use engine::{graph, load, plan};
pub use runtime::{execute, pipeline, reconcile, store};
pub use tfprovider::{install, plugin, schema};
pub use {api, controller, cty, migrate, model, process};

pub mod cli;
