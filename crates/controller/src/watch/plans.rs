//! The watch of Plans. It receives metadata only: the manifests of a Plan are requested when they are needed.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures::StreamExt as _;
use kube::api::PartialObjectMeta;
use kube::runtime::watcher::{Config, Event, watcher};
use kube::{Api, Client, ResourceExt as _};
use tokio::sync::mpsc::UnboundedSender;

use super::Watch;
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
        let api: Api<PartialObjectMeta<PlanObject>> = match &namespace {
            Some(namespace) => Api::namespaced(client, namespace),
            None => Api::all(client),
        };
        let start = move || watcher(api.clone(), Config::default());
        let mut stream = std::pin::pin!(self.sharded_events("plans", start));
        let (mut known, mut unlisted) = (BTreeSet::new(), BTreeSet::new());
        while let Some((_, event)) = stream.next().await {
            let events = match event {
                Event::Init => {
                    unlisted.clone_from(&known);
                    continue;
                }
                Event::InitApply(plan) | Event::Apply(plan) => {
                    let key = key(&plan);
                    if !self.leadership.watches(&key.namespace) {
                        continue;
                    }
                    unlisted.remove(&key);
                    known.insert(key.clone());
                    let uid = plan.uid().unwrap_or_default().into();
                    vec![PlanEvent::Applied { key, uid, generation: plan.metadata.generation.unwrap_or_default() }]
                }
                Event::Delete(plan) => {
                    known.remove(&key(&plan));
                    vec![PlanEvent::Deleted(key(&plan))]
                }
                Event::InitDone => {
                    let gone = std::mem::take(&mut unlisted);
                    known.retain(|key| !gone.contains(key));
                    gone.into_iter().map(PlanEvent::Deleted).collect()
                }
            };
            for event in events {
                // The receiver is dropped during shutdown.
                if send.send(event).is_err() {
                    return;
                }
            }
        }
    }
}

fn key(plan: &PartialObjectMeta<PlanObject>) -> PlanKey {
    PlanKey { namespace: plan.namespace().unwrap_or_default().into(), name: plan.name_any().into() }
}
