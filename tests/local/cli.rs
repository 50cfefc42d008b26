//! Tests of the `purlin` binary: output, exit codes and files.
#![expect(clippy::unwrap_used, reason = "a panic fails the test")]

mod apply;
mod conditions;
mod dev;
mod documents;
mod families;
mod formats;
mod hooks;
mod importing;
mod inputs;
mod invalid_input;
mod migrating;
mod provider_failures;
mod provider_installation;
mod provider_runs;
mod provider_sandbox;
mod providers;
mod publish;
mod sandbox;
mod saved;
mod selecting;
mod state;
mod type_changes;
