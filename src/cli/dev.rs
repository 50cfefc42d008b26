//! `purlin dev`: the reconciler of a namespace over a watched folder. What a cluster's watches deliver comes from files
//! here, records are in a state file, and what happens is printed.

mod files;
mod narrator;
mod shell;
mod watch;

pub use shell::Dev;
