//! `purlin dev`: runs the reconciler of a namespace on a watched directory. Manifests are files, records are in a state
//! file, and progress is printed.

mod files;
mod module;
mod outputs;
mod report;
mod shell;
mod sources;
mod watch;

pub use shell::DevSession;
pub use watch::Watch;
