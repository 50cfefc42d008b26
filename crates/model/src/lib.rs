//! The types that all modules share. This module depends on no other module, does no I/O, reads no clock and generates
//! no random values.
#![forbid(unsafe_code)]

pub mod address;
pub mod approval;
pub mod backoff;
pub mod bucket;
pub mod call;
pub mod change;
pub mod change_cause;
pub mod commands;
pub mod config_digest;
pub mod data;
pub mod diagnostic;
pub mod display;
pub mod encoding;
pub mod health;
pub mod history;
pub mod history_list;
pub mod hook;
pub mod kube_names;
pub mod names;
pub mod number;
pub mod path;
pub mod provider;
mod qualified;
pub mod quota;
pub mod reason;
pub mod record;
pub mod schema;
pub mod secrets;
pub mod shared;
pub mod suggest;
pub mod text;
pub mod unicode;
pub mod value;
pub mod visible;
pub mod words;

pub use address::{Address, DeposedKey, InstanceKey, Stem, in_family, in_stem};
pub use approval::{ApprovalKind, ApprovedObject, ChangeApproval, RequiredApprovals};
pub use backoff::backoff;
pub use bucket::{BUCKETS, bucket};
pub use call::{
    DriverError, ErrorKind, Ignored, IgnoredChange, ImportRequest, ObjectState, PlanRequest, PlanResponse, Refusal,
    Remedy,
};
pub use change::{Action, Change, Drift, Operation, ReplaceOrder, Step};
pub use change_cause::{ChangeCause, KeptBy};
pub use commands::with_namespace;
pub use config_digest::ConfigDigest;
pub use data::{DataKind, DataRef, ReadResult};
pub use diagnostic::{Diagnostic, Diagnostics, Severity, Source, errors, has_errors};
pub use display::{display_id, kubernetes_name};
pub use health::{Health, Observed, held_by};
pub use history::{Cause, ChangeKind, ChangeOutcome, History, HistoryEntry, Resolution};
pub use hook::{HookKind, OnFailure, RecordedHook};
pub use names::{Name, Namespace, TypeName, Uid};
pub use number::{Number, quantity};
pub use path::{Path, Segment};
pub use provider::{Files, OWN_VARIABLES, Package, PodRunner, Provider, ProviderUse};
pub use quota::{InvalidQuota, Quota};
pub use reason::Reason;
pub use record::{
    Holder, Intent, ObjectStatus, ObservedTrigger, PlannedObject, PublishedCopy, Readiness, Record, Recorded,
    RecordedObject, Revision, Stored, Triggers, Version,
};
pub use schema::{Attribute, AttributeType, Schema};
pub use secrets::Secrets;
pub use shared::Interner;
pub use text::{Text, Tone};
pub use value::{Map, Value};
pub use words::{Lifecycle, Words};
