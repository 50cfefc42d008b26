//! Everything that needs no cluster: the layout, the scenarios, the judge, and the command line.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a test fails by panicking, and tells what it saw")]

#[path = "../support/programs.rs"]
mod programs;
#[path = "../support/providers.rs"]
mod providers;
mod kit;
mod scenarios;
mod judge;
mod cli;
mod documents;
mod plugins;
mod installing;
mod tidy;
mod circles;
mod own_process;
