//! The shared dependencies of all namespace tasks, one per process.

use std::sync::Arc;

use k8s_openapi::api::core::v1::ObjectReference;

use tokio::sync::OnceCell;
use tokio::sync::mpsc::UnboundedSender;
use tokio::time::Instant;

use super::crd_guard::CrdGuard;
use super::events::Events;
use super::holders::Holders;
use super::leadership::Leadership;
use super::metrics::Metrics;
use super::namespaces::Namespaces;
use super::status::StatusWriter;
use super::watch::PlanEvent;
use drivers::ObjectWatcher;
use engine::load::ServiceAccounts;
use model::Namespace;
use process::{Shutdown, Threads};
use runtime::execute::{Engine, Pool};
use runtime::reconcile::time::{Moment, Time};
use runtime::reconcile::{Note, ReportSubject};
use runtime::store::ClusterJournal;
use runtime::store::secrets::record_name;

pub struct Context {
    pub engine: Arc<Engine>,
    /// The journal of `engine`, with its cluster-specific functions.
    pub journal: Arc<ClusterJournal>,
    pub client: kube::Client,
    /// The service accounts that objects act as.
    pub accounts: ServiceAccounts,
    /// The namespace of the records and of the Leases.
    pub namespace: Namespace,
    pub namespaces: Arc<Namespaces>,
    pub status: StatusWriter,
    pub events: Events,
    pub metrics: Metrics,
    pub holders: Holders,
    /// Holds destroys while the CRD is being deleted.
    pub guard: CrdGuard,
    /// Limits the plannings of all namespaces.
    pub plannings: Arc<Pool>,
    /// Limits the plannings that call providers, which may be unresponsive.
    pub provider_plannings: Arc<Pool>,
    pub threads: Threads,
    pub leadership: Leadership,
    /// Where changes of Plans are sent, to be read again.
    pub plans: UnboundedSender<PlanEvent>,
    /// The salt of the digests of changes, once it is known.
    pub approval_salt: OnceCell<Arc<[u8]>>,
    /// Triggered when the process must terminate.
    pub shutdown: Shutdown,
    /// When the process started: the origin of the reconcilers' time.
    pub started: Instant,
}

impl Context {
    /// The current time for reconcilers.
    pub fn moment(&self) -> Moment {
        Moment { time: Time(self.started.elapsed()), wall: self.engine.clock.now() }
    }

    /// Converts the time of a reconciler to the runtime's.
    pub fn instant(&self, time: Time) -> Instant {
        self.started + time.0
    }

    /// The watcher for the objects of a type. `None`: they cannot be watched.
    pub fn watcher(&self, type_name: &str) -> Option<&dyn ObjectWatcher> {
        self.engine.drivers.get(type_name)?.watcher()
    }

    /// Logs a note and sends it as an event. In a terminating namespace no event can be created, so the note is only
    /// logged.
    pub fn report(&self, namespace: &str, about: &ReportSubject, note: Note, terminating: bool) {
        let regarding = self.regarding(namespace, about);
        let (kind, name) = (regarding.kind.as_deref(), regarding.name.as_deref());
        if note.warning {
            tracing::warn!(namespace, kind, name, reason = note.reason, "{}", note.note);
        } else if note.is_about_step() {
            // The log has the end of the step.
            tracing::debug!(namespace, kind, name, reason = note.reason, "{}", note.note);
        } else {
            tracing::info!(namespace, kind, name, reason = note.reason, "{}", note.note);
        }
        if !terminating {
            self.events.send(regarding, note);
        }
    }

    fn regarding(&self, namespace: &str, about: &ReportSubject) -> ObjectReference {
        match about {
            ReportSubject::Resource(instance) => {
                let address = &instance.address;
                purlin_object(namespace, address.kind(), address.object_name(), &instance.uid)
            }
            ReportSubject::ProviderConfig { name, uid } => purlin_object(namespace, "ProviderConfig", name, uid),
            ReportSubject::Record(address) => ObjectReference {
                api_version: Some("v1".to_owned()),
                kind: Some("Secret".to_owned()),
                namespace: Some(self.namespace.to_string()),
                name: Some(record_name(namespace, address)),
                ..ObjectReference::default()
            },
        }
    }
}

/// A reference to an object of Purlin's own kinds.
fn purlin_object(namespace: &str, kind: &str, name: &str, uid: &str) -> ObjectReference {
    ObjectReference {
        api_version: Some(api::API_VERSION.to_owned()),
        kind: Some(kind.to_owned()),
        namespace: Some(namespace.to_owned()),
        name: Some(name.to_owned()),
        uid: Some(uid.to_owned()),
        ..ObjectReference::default()
    }
}
