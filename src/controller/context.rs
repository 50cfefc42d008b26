//! What the task of every namespace needs. One for the whole process.

use std::sync::Arc;

use k8s_openapi::api::core::v1::ObjectReference;

use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::events::Events;
use super::guard::Guard;
use super::holders::Holders;
use super::lease::Leadership;
use super::metrics::Metrics;
use super::status::StatusWriter;
use super::world::World;
use crate::api;
use crate::driver::ObjectWatcher;
use crate::execute::Engine;
use crate::process::{Shutdown, Threads};
use crate::reconcile::time::{Moment, Time};
use crate::reconcile::{About, Note};
use crate::store::ClusterJournal;
use crate::store::secrets::record_name;

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
    /// When the process started: what the time of reconcilers counts from.
    pub started: Instant,
}

impl Context {
    /// The present, for reconcilers.
    pub fn moment(&self) -> Moment {
        Moment { time: Time(self.started.elapsed()), wall: self.engine.clock.now() }
    }

    /// The time of a reconciler, as the runtime has it.
    pub fn instant(&self, time: Time) -> Instant {
        self.started + time.0
    }

    /// What watches the objects of a type, if they can be watched.
    pub fn watcher(&self, type_name: &str) -> Option<&dyn ObjectWatcher> {
        self.engine.drivers.get(type_name)?.watcher()
    }

    /// Logs a note and sends it as an event. Nothing can be created in a terminating namespace, so there it is logged only.
    pub fn report(&self, namespace: &str, about: &About, note: Note, terminating: bool) {
        let regarding = self.regarding(namespace, about);
        let (kind, name) = (regarding.kind.as_deref(), regarding.name.as_deref());
        if note.warning {
            tracing::warn!(namespace, kind, name, reason = note.reason, "{}", note.note);
        } else {
            tracing::info!(namespace, kind, name, reason = note.reason, "{}", note.note);
        }
        if !terminating {
            self.events.tell(regarding, note);
        }
    }

    fn regarding(&self, namespace: &str, about: &About) -> ObjectReference {
        let ours = |kind: &str, name: &str, uid: &str| ObjectReference {
            api_version: Some(api::API_VERSION.to_owned()),
            kind: Some(kind.to_owned()),
            namespace: Some(namespace.to_owned()),
            name: Some(name.to_owned()),
            uid: Some(uid.to_owned()),
            ..ObjectReference::default()
        };
        match about {
            About::Resource(instance) => ours(instance.address.kind(), instance.address.object_name(), &instance.uid),
            About::ProviderConfig { name, uid } => ours("ProviderConfig", name, uid),
            About::Record(address) => ObjectReference {
                api_version: Some("v1".to_owned()),
                kind: Some("Secret".to_owned()),
                namespace: Some(self.namespace.to_string()),
                name: Some(record_name(namespace, address)),
                ..ObjectReference::default()
            },
        }
    }
}
