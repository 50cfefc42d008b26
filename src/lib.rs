//! Purlin plans, orders and applies changes to infrastructure objects with Terraform's semantics.
//!
//! The modules are declared in dependency order: a module can use the modules above it, but not those below.
//! `tests/local/tidy.rs` enforces this.
//!
//! ```text
//! API objects + records --load--> Config + Recorded + Diagnostics
//! Config + Recorded     --plan--> Plan
//! Plan + Recorded       --graph-> ActionGraph
//! ActionGraph           --walk--> ready steps
//! ready step            --execute: finalize, write intent, call, record--> outcome
//! outcomes              --summarize--> conditions, events, requeue, metrics
//! ```
#![forbid(unsafe_code)]

pub mod model;
pub mod api;
pub mod load;
pub mod plan;
pub mod graph;
pub mod process;
pub mod cty;
pub mod plugin;
pub mod install;
pub mod driver;
pub mod execute;
pub mod pipeline;
pub mod store;
pub mod reconcile;
pub mod ui;
pub mod controller;
pub mod migrate;
pub mod cli;
