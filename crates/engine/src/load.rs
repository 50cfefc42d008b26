//! Turns API objects, from files or from the API server, into a `Config`: the desired state with parsed expressions and
//! their references.
//!
//! A Resource with errors stays in the `Config`, marked with its errors, so it does not hide other Resources.

pub mod condition;
pub mod config;
pub mod decode;
pub mod duration;
pub mod expression;
pub mod family;
mod family_import;
pub mod hook;
pub mod inputs;
pub mod instance;
pub mod intern;
pub mod program;
mod instance_scope;
mod other_sources;
pub mod provider;
pub mod publication;
pub mod publish;
pub mod repetition;
mod provider_resolver;
pub mod source;
pub mod tree;

pub(crate) mod lifecycle;

mod check;
mod compressed;
mod deserialize;
mod document;
mod lines;
mod shape;
mod yaml;

pub use compressed::{MAX_DECOMPRESSED, compress, decompress};
pub use condition::Condition;
pub use config::Config;
pub use decode::{
    ServiceAccount, ServiceAccounts, data_from_raw, from_raw, module_from_raw, provider_config_from_raw,
    provider_from_raw, provider_source,
};
pub use expression::{InstanceSelector, Reference, Scope, Template};
pub use family::{Expansion, Family};
pub use family_import::FamilyImport;
pub use hook::{Hook, HookPhase};
pub use inputs::{DataLookup, Inputs};
pub use instance::{
    DeletionPolicy, Drift, DriftAction, EachValue, Instance, MovedFrom, MovedPlace, Policies, ReadsAfter, Timeouts,
    Trigger,
};
pub use instance_scope::{InstanceScope, SelfScope};
pub use intern::Interner;
pub use lines::Lines;
pub use program::{Output, Program, ProgramResources, Revision};
pub use provider::{ConfigurationError, ProviderBinding, ProviderConfig, ProviderSpec, Runner};
pub use provider_resolver::{BUILT_IN, provider_config_name};
pub use publication::Publication;
pub use repetition::{InstanceKeys, Repeat, Repetition, RepetitionResult};
pub use source::{Coverage, GivenSource, Listed, LoadedSource, Proposal, ProposedFiles, STDIN, SourcePaths, read};
