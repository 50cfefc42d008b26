//! Terraform configurations as programs: what they ask the providers of this process, and the files that their functions
//! read. The command line and the controller use it, each with configurations from its own sources.
#![forbid(unsafe_code)]

mod effects;
mod files;
mod schemas;

pub use effects::{AtApply, rfc3339};
pub use files::{FileStamp, InModules, MAX_FILE, ReadFiles, cleaned, stamp};
pub use schemas::{close_opened, schemas};
