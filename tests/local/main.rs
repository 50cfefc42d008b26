//! Tests that need no cluster: the layout, the scenarios, the judge, providers, and the command line.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a test fails by panicking, and prints what it found")]

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
mod words;
mod import_cycles;
mod own_process;
