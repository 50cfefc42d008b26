//! Where the processes of a provider run, if not beside the controller.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The prefix of the variables of the runner itself, which a provider neither gets nor sets.
pub const OWN_VARIABLES: &str = "PURLIN_";

/// A provider whose processes run in Pods of the namespace. Records have a copy, so that a destroy needs no other object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PodRunner {
    /// The service account of the namespace that creates the Pod; empty for the default one of the controller.
    #[serde(default)]
    pub creator: Arc<str>,
    /// The service account of the Pod, whose token the provider gets. `None`: that of `creator`, without its token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_account: Option<Arc<str>>,
    /// The `resources` of the container.
    #[serde(default, skip_serializing_if = "serde_json::Value::is_null")]
    pub resources: serde_json::Value,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub node_selector: BTreeMap<String, String>,
    /// The `tolerations` of the Pod.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tolerations: Vec<serde_json::Value>,
    /// Variables of the container.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: BTreeMap<String, String>,
    /// How long the Pod is kept without calls; `None` for the default of the pool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_timeout: Option<Duration>,
}
