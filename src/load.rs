//! From API objects to a `Config`: what is wanted, with its expressions parsed and its references found.
//!
//! Takes Resources (from files or from the API server), gives a `Config` and diagnostics. One bad Resource
//! never hides another: it stays in the `Config` as present, marked with its errors.

pub mod condition;
pub mod config;
pub mod decode;
pub mod duration;
pub mod expression;
pub mod family;
pub mod hook;
pub mod inputs;
pub mod instance;
pub mod intern;
mod own;
pub mod provider;
pub mod publication;
pub mod publish;
pub mod repetition;
mod service;
pub mod source;
pub mod tree;

pub(crate) mod lifecycle;
mod manifest;

mod yaml;

pub(crate) use crate::model::suggest::{self, closest};
pub use condition::Condition;
pub use config::Config;
pub use decode::{data_from_api, from_api, provider_config_from_api, provider_from_api};
pub use expression::{Choice, Reference, Scope, Template};
pub use family::{Expansion, Family};
pub use hook::{Hook, When};
pub use inputs::{Data, Inputs};
pub use instance::{DeletionPolicy, Drift, DriftAction, Each, IgnoredChange, Instance, Policies, Timeouts, Trigger};
pub use intern::Interner;
pub use own::{Own, WithSelf};
pub use provider::{Provided, ProviderConfig, ProviderSpec, Unsettled};
pub use publication::Publication;
pub use repetition::{Made, Members, Repeat, Repetition};
pub use service::{BUILT_IN, config_name};
pub use source::{Loaded, read};
