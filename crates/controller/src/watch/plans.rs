//! The watch of Plans. It receives metadata only: the manifests of a Plan are requested when they are needed.

use std::sync::Arc;

use futures::StreamExt as _;
use kube::api::PartialObjectMeta;
use kube::{Api, Client, ResourceExt as _};
use tokio::sync::mpsc::UnboundedSender;

use super::{Change, Watch, scoped};
use api::PlanObject;

/// The namespace and the name of a Plan.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PlanKey {
    pub namespace: Arc<str>,
    pub name: Arc<str>,
}

/// A change of a Plan.
#[derive(Clone, Debug)]
pub enum PlanEvent {
    Applied {
        key: PlanKey,
        uid: Arc<str>,
        generation: i64,
    },
    Deleted(PlanKey),
    /// A write of its status failed because another client has changed it.
    Conflict(PlanKey),
}

impl Watch {
    /// Sends the changes of Plans in a namespace, or in all.
    pub async fn plans(self, client: Client, namespace: Option<String>, send: UnboundedSender<PlanEvent>) {
        let api: Api<PartialObjectMeta<PlanObject>> = scoped(client, namespace.as_deref());
        let mut changes = std::pin::pin!(self.changes("plans", api));
        while let Some(change) = changes.next().await {
            let event = match change {
                Change::Applied(namespace, plan) => PlanEvent::Applied {
                    key: PlanKey { namespace, name: plan.name_any().into() },
                    uid: plan.uid().unwrap_or_default().into(),
                    generation: plan.metadata.generation.unwrap_or_default(),
                },
                Change::Deleted(namespace, name) => PlanEvent::Deleted(PlanKey { namespace, name }),
                Change::Listed(_) => continue,
            };
            // The receiver is dropped during shutdown.
            if send.send(event).is_err() {
                return;
            }
        }
    }
}
