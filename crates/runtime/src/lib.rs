//! From ordered steps to recorded results: execution, storage of records, and continuous reconciliation.
//!
//! ```text
//! ready step --execute: finalize, write intent, call, record--> outcome
//! outcomes   --reconcile: summarize--> conditions, events, requeue, metrics
//! ```
#![forbid(unsafe_code)]

pub mod execute;
pub mod pipeline;
pub mod store;
pub mod reconcile;
