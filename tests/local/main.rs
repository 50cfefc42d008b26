//! Tests that need no cluster: the layout, the scenarios, the judge, providers, and the command line.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a test fails by panicking, and prints what it found")]

#[path = "../support/programs.rs"]
mod programs;
#[path = "../support/providers.rs"]
mod providers;
#[path = "../support/pages.rs"]
mod pages;
mod kit;
mod scenarios;
mod judge;
mod cli;
mod page_examples;
mod pictures;
mod reference;
mod alerts;
mod plugins;
mod provider_calls;
mod installing;
mod plans;
mod tidy;
mod own_process;
mod compatibility;
mod configurations;
mod release;
