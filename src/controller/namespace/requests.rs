//! Small requests to the API server, of which nothing depends on the answer but when to ask again.

use std::sync::Arc;

use crate::controller::context::Context;
use crate::controller::world::Shared;
use crate::model::Address;
use crate::reconcile::Happened;
use crate::reconcile::index::Event;
use crate::store::secrets::{Decoded, Patience};

/// Takes our marks off a Resource. The cache has no record of it; the server has the last word.
pub(super) async fn release(context: Arc<Context>, shared: Arc<Shared>, name: Arc<str>, uid: Arc<str>) -> Happened {
    let namespace = shared.name();
    match context.journal.release_all(namespace, &name, &uid).await {
        Ok(true) => Happened::Nothing,
        // There is a record, which the watch delivers in a moment.
        Ok(false) => Happened::NotReleased(name, uid),
        Err(error) => {
            tracing::warn!(%namespace, %name, %error, "the finalizer stays for now; it is tried again");
            Happened::NotReleased(name, uid)
        }
    }
}

/// Reads a record that another process may have written.
pub(super) async fn read_record(context: Arc<Context>, shared: Arc<Shared>, address: Address) -> Happened {
    let read = context.journal.secrets().get(shared.name(), &address, Patience::SHORT).await;
    if let Ok(Some(Ok(Decoded::Record(stored)))) = read {
        context.world.apply(shared.name(), Event::RecordRead(stored));
    }
    Happened::Nothing
}
