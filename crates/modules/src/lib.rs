//! Installs the modules that a Terraform configuration calls, to any depth, as `tofu init` does.
//!
//! Packages come from registries, Git repositories, archives over HTTP, OCI registries and this machine. They are untrusted: what they unpack
//! to has limits, and no link in them leads out of them. `.terraform/modules/modules.json` is read and written as upstream does,
//! so that both programs can work in one directory. Nothing is evaluated but the sources and versions of module calls.
#![forbid(unsafe_code)]

mod archive;
mod checksum;
mod disk;
mod error;
mod git;
mod installer;
mod oci;
mod package;
mod registry;

pub use disk::Disk;
pub use error::ModuleError;
pub use installer::{Installation, Installer, Options, Progress, installed};
