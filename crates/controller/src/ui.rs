//! The live view: one page with the graph of a namespace, its objects and held plans. `purlin ui` serves it to one user,
//! and the controller to everyone with a token of the API server.
//!
//! ```text
//! files, or the API server with the rights of the user --Session--> snapshot --server--> page
//! ```
//!
//! The page is plain HTML, CSS and JavaScript, and loads nothing from elsewhere. This module reads nothing with the rights of
//! the controller, and it changes nothing, except that a user decides on a Plan.

pub mod cluster;
pub mod decision;
pub mod observed;
pub mod page;
pub mod server;
pub mod snapshot;

use std::sync::Arc;

use futures::future::BoxFuture;
use serde::Serialize;
use tokio::sync::OwnedSemaphorePermit;

use model::DeposedKey;
use model::history_list::ListedChange;
use process::request_error;
use snapshot::Snapshot;

/// Why a request is not answered, as an HTTP status and one line for the user.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    pub status: u16,
    pub message: String,
}

impl Refusal {
    pub fn new(status: u16, message: impl Into<String>) -> Self {
        Self { status, message: message.into() }
    }
}

impl From<kube::Error> for Refusal {
    fn from(error: kube::Error) -> Self {
        match error {
            kube::Error::Api(status) => Self::new(status.code, status.message.clone()),
            other => Self::new(502, request_error(&other)),
        }
    }
}

/// Decides who may see the page, by the token of a request.
pub trait Backend: Send + Sync {
    /// How the user gets a token; the page shows it.
    fn sign_in(&self) -> &'static str;

    /// The session of a token. A wrong one is refused with 401, and one with too many requests with 429.
    fn open<'a>(&'a self, token: &'a str) -> BoxFuture<'a, Result<Opened, Refusal>>;
}

/// A session that answers a request.
pub struct Opened {
    pub session: Arc<dyn Session>,
    /// Counts the requests of the session: held until the answer.
    pub permit: Option<OwnedSemaphorePermit>,
}

/// What one user can see and do.
pub trait Session: Send + Sync {
    fn about(&self) -> BoxFuture<'_, Result<About, Refusal>>;

    /// The graph of a namespace. If `seen` is the current version, it waits for a change, at most [`LONGEST_WAIT`].
    fn graph<'a>(&'a self, namespace: &'a str, seen: Option<&'a str>) -> BoxFuture<'a, Result<Current, Refusal>>;

    /// Everything about one object.
    fn object<'a>(&'a self, namespace: &'a str, name: &'a str) -> BoxFuture<'a, Result<Detail, Refusal>>;

    /// The changes of a held Plan.
    fn plan<'a>(&'a self, namespace: &'a str, name: &'a str) -> BoxFuture<'a, Result<PlanDetail, Refusal>>;

    /// Approves or rejects a Plan. Returns what was done, as a sentence.
    fn decide<'a>(&'a self, decision: &'a decision::Request) -> BoxFuture<'a, Result<String, Refusal>>;
}

/// How long a request for a graph waits for a change: less than the usual time limit of a proxy.
pub const LONGEST_WAIT: std::time::Duration = std::time::Duration::from_secs(25);

/// What the page shows around the graph.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct About {
    pub version: &'static str,
    /// The files, or the context of the cluster.
    pub target: String,
    /// The name of the user; empty for files.
    pub user: String,
    /// The namespaces that the user can choose. A user who may not list them types one.
    pub namespaces: Vec<String>,
    pub default_namespace: String,
    /// Whether another namespace can be typed.
    pub any_namespace: bool,
}

/// The answer to a request for a graph.
pub enum Current {
    /// The version that the page has is the current one.
    Unchanged,
    Changed {
        version: String,
        snapshot: Arc<Snapshot>,
    },
}

/// A list, or why it cannot be shown.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Section<T> {
    pub items: Vec<T>,
    pub note: Option<String>,
}

impl<T> Section<T> {
    pub fn unavailable(note: impl Into<String>) -> Self {
        Self { items: Vec::new(), note: Some(note.into()) }
    }
}

impl<T> From<Vec<T>> for Section<T> {
    fn from(items: Vec<T>) -> Self {
        Self { items, note: None }
    }
}

/// Everything about one object. All texts are without sensitive values.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Detail {
    pub name: String,
    /// `Resource` or `DataSource`.
    pub kind: &'static str,
    pub type_name: String,
    /// Labels with their values.
    pub facts: Vec<(&'static str, String)>,
    pub conditions: Vec<ConditionRow>,
    /// The attributes of the object as JSON.
    pub attributes: serde_json::Value,
    pub diffs: Vec<Diff>,
    pub events: Section<EventRow>,
    pub history: Section<HistoryRow>,
}

/// A condition of the status.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ConditionRow {
    #[serde(rename = "type")]
    pub kind: String,
    pub status: String,
    pub reason: String,
    pub message: String,
    /// RFC 3339; empty if unknown.
    pub since: String,
}

/// A planned change, as `purlin plan` prints it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Diff {
    /// The Plan that has it; empty for files.
    pub plan: String,
    pub text: String,
}

/// A Kubernetes event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct EventRow {
    /// RFC 3339; empty if unknown.
    pub when: String,
    pub warning: bool,
    pub reason: String,
    pub message: String,
    pub count: i32,
}

/// A change in the history, as `purlin history` prints it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HistoryRow {
    pub address: String,
    pub when: String,
    pub action: String,
    pub duration: String,
    pub result: String,
    pub why: String,
}

impl From<&ListedChange<'_>> for HistoryRow {
    fn from(change: &ListedChange<'_>) -> Self {
        let [when, action, duration, result, why] = change.cells();
        Self { address: change.address.to_string(), when, action, duration, result, why }
    }
}

/// The changes of a Plan.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PlanDetail {
    pub name: String,
    pub uid: String,
    pub digest: String,
    pub changes: Vec<PlanChange>,
    /// Errors and warnings, one line each.
    pub problems: Vec<String>,
}

/// One change of a Plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PlanChange {
    pub address: String,
    pub deposed: Option<DeposedKey>,
    /// Whether it is one of those that wait for the approval.
    pub held: bool,
    pub text: String,
}
