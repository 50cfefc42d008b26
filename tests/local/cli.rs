//! Tests of the `purlin` binary: output, exit codes and files.
#![expect(clippy::unwrap_used, reason = "a panic fails the test")]

mod apply;
mod conditions;
mod dev;
mod environments;
mod errors;
mod failures;
mod families;
mod formats;
mod help;
mod history;
mod hooks;
mod ignored_changes;
mod importing;
mod inputs;
mod invalid_input;
mod live_view;
mod migrating;
mod mishaps;
mod other_records;
mod previews;
mod provider_drift;
mod provider_failures;
mod provider_installation;
mod provider_runs;
mod provider_sandbox;
mod providers;
mod publish;
mod recovery;
pub(crate) mod sandbox;
mod saved;
mod selecting;
mod sources;
mod state;
mod terraform;
mod text_output;
mod type_changes;
