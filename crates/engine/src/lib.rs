//! From manifests and records to ordered steps: loading, planning and ordering, without I/O.
//!
//! ```text
//! API objects + records --load--> Config + Recorded + Diagnostics
//! Config + Recorded     --plan--> Plan
//! Plan + Recorded       --graph-> ActionGraph
//! ActionGraph           --walk--> ready steps
//! ```
//!
//! Only `load::source` reads files. A planner needs drivers: it returns requests, and its caller sends them.
#![forbid(unsafe_code)]

pub mod load;
pub mod plan;
pub mod graph;
