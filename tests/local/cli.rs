//! The command line as a process: what it prints, where, and with which exit code.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod apply;
mod bench;
mod conditions;
mod dev;
mod documented;
mod driven;
mod evolving;
mod families;
mod formats;
mod hooks;
mod importing;
mod inputs;
mod installed;
mod migrating;
mod problems;
mod selecting;
mod providers;
mod publish;
mod sandbox;
mod saved;
mod state;
mod troubled;
