//! `purlin dev`: the reconcile loop on a watched folder. What the controller is for a cluster, this is for files.

pub mod backoff;
mod doubts;
pub mod reconcile;
pub mod watch;
