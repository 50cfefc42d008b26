//! To and from Terraform and OpenTofu: `purlin migrate` and `purlin state export --terraform`.
//!
//! A state of version 4 is read by `state` and written by `export`. `names` decides what its resources are called here,
//! `gather` has the providers bring its objects into the form of records, `arguments` and `references` make
//! configurations of them, and `documents` writes those down.

mod address;
mod arguments;
mod configuration;
mod documents;
mod export;
mod gather;
mod migrate;
mod names;
mod providers;
mod references;
mod secrets;
mod state;

pub use arguments::escaped;
pub use export::run as export;
pub use migrate::run as migrate;
