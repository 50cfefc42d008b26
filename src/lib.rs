//! Purlin plans, orders and carries out changes to infrastructure objects with Terraform's semantics.
//!
//! Modules stand in the order in which the data passes through them. A module may use those above it and
//! never one below; `tests/local/tidy.rs` enforces that.
//!
//! ```text
//! API objects + records --load--> Config + Recorded + Diagnostics
//! Config + Recorded     --plan--> Plan
//! Plan + Recorded       --graph-> ActionGraph
//! ActionGraph           --walk--> ready steps
//! ready step            --execute: finalize, intend, call, record--> outcome
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
pub mod controller;
pub mod migrate;
pub mod cli;
