//! Hooks: commands and Jobs that run after a create or before a destroy.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::encoding::is_default;
use super::{Value, shared};

/// How a hook runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum HookKind {
    /// A local program.
    Exec,
    /// A Job in the namespace of the Resource.
    Job,
}

/// How a failure of a hook is handled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum OnFailure {
    /// The step fails.
    #[default]
    Fail,
    /// The step reports a warning and continues.
    Continue,
}

/// A hook in a record, from which it can run without its Resource.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedHook {
    /// Unique among the hooks of its object.
    #[serde(rename = "n", deserialize_with = "shared::text")]
    pub name: Arc<str>,
    #[serde(rename = "k")]
    pub kind: HookKind,
    #[serde(rename = "f", default, skip_serializing_if = "is_default")]
    pub on_failure: OnFailure,
    /// `Exec`: the program and its arguments. `Job`: the Pod template. In an object, expressions in the strings are not
    /// evaluated; in an intent, they are.
    #[serde(rename = "d")]
    pub definition: Value,
}
