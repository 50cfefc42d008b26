//! What the task of every namespace needs. One for the whole process.

use std::sync::Arc;

use k8s_openapi::api::core::v1::ObjectReference;

use tokio::sync::Semaphore;

use super::events::Events;
use super::guard::Guard;
use super::holders::Holders;
use super::lease::Leadership;
use super::metrics::Metrics;
use super::status::StatusWriter;
use super::summarize::Note;
use super::world::World;
use crate::api;
use crate::execute::Engine;
use crate::load::Instance;
use crate::process::{Shutdown, Threads};
use crate::store::ClusterJournal;

/// The surroundings of a namespace's task.
pub struct Context {
    /// Plans and executes.
    pub engine: Arc<Engine>,
    /// The journal of `engine`, for what only a cluster has.
    pub journal: Arc<ClusterJournal>,
    /// The live Resources, for recovery.
    pub client: kube::Client,
    /// As which service account built-in drivers act when a Resource names none.
    pub default_service_account: Arc<str>,
    /// Where the controller's records are.
    pub namespace: Arc<str>,
    /// All namespaces.
    pub world: Arc<World>,
    /// Writes status.
    pub status: StatusWriter,
    /// Sends events.
    pub events: Events,
    /// Counts.
    pub metrics: Metrics,
    /// Judges holders of intents.
    pub holders: Holders,
    /// Holds destroys while our CRD is being deleted.
    pub guard: Guard,
    /// Places for plannings, of all namespaces.
    pub plannings: Semaphore,
    /// Places for plannings that ask providers, which may hang.
    pub asking_plannings: Semaphore,
    /// Where plans are computed.
    pub threads: Threads,
    /// Whether steps may start.
    pub leadership: Leadership,
    /// Whether the process is to end.
    pub shutdown: Shutdown,
}

impl Context {
    /// Tells something about a Resource. Nothing can be created in a terminating namespace, so there it is logged only.
    pub fn tell(&self, namespace: &str, instance: &Instance, terminating: bool, note: Note) {
        let name = instance.address.object_name();
        if note.warning {
            tracing::warn!(namespace, name, reason = note.reason, "{}", note.note);
        } else {
            tracing::info!(namespace, name, reason = note.reason, "{}", note.note);
        }
        if !terminating {
            let regarding = ObjectReference {
                api_version: Some(api::API_VERSION.to_owned()),
                kind: Some(instance.address.kind().to_owned()),
                namespace: Some(namespace.to_owned()),
                name: Some(name.to_owned()),
                uid: Some(instance.uid.to_string()),
                ..ObjectReference::default()
            };
            self.events.tell(regarding, note);
        }
    }
}
