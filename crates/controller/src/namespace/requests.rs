//! Small requests to the API server, whose results only determine when to retry.

use std::sync::Arc;

use crate::context::Context;
use crate::namespaces::NamespaceHandle;
use model::{Address, Name, Uid};
use runtime::reconcile::Signal;
use runtime::reconcile::index::{Event, KnownRecord};
use runtime::store::secrets::{RetryPolicy, SecretContent};

/// Removes the finalizer and the annotation of a Resource. The cache has no record of it, but the server decides.
pub async fn release(context: Arc<Context>, shared: Arc<NamespaceHandle>, name: Name, uid: Uid) -> Signal {
    let namespace = shared.name();
    match context.journal.release_all(namespace, &name, &uid).await {
        Ok(true) => Signal::Wake,
        // A record exists, which the watch is about to deliver.
        Ok(false) => Signal::ReleaseFailed(name, uid),
        Err(error) => {
            tracing::warn!(%namespace, %name, %error, "could not remove the finalizer; retrying");
            Signal::ReleaseFailed(name, uid)
        }
    }
}

/// Adds the finalizer and the annotation of a Resource. The server decides whether its record needs them.
pub async fn claim(context: Arc<Context>, shared: Arc<NamespaceHandle>, address: Address, uid: Uid) -> Signal {
    let claimed = context.journal.claim(shared.name(), &address, &uid).await;
    if let Err(error) = &claimed {
        tracing::warn!(namespace = &**shared.name(), %address, %error, "could not add the finalizer; retrying");
    }
    Signal::Claimed(address.stem.name, claimed.is_ok())
}

/// `known`: what the index knows of the record now.
pub async fn read_record(
    context: Arc<Context>,
    shared: Arc<NamespaceHandle>,
    address: Address,
    known: KnownRecord,
) -> Signal {
    let retry = match known {
        KnownRecord::Erased(_) => RetryPolicy::UntilStopped,
        // The next failure reads it again.
        KnownRecord::Exists(_) | KnownRecord::Unknown => RetryPolicy::SHORT,
    };
    let found = match context.journal.secrets().get(shared.name(), &address, retry).await {
        Ok(None) => None,
        Ok(Some(Ok(SecretContent::Record(stored)))) => Some(stored),
        _ => return Signal::Wake,
    };
    context.namespaces.apply(shared.name(), Event::RecordRead { address, known, found });
    Signal::Wake
}
