//! The command line as a process: what it prints, where, and with which exit code.

mod apply;
mod dev;
mod formats;
mod problems;
mod sandbox;
mod state;
