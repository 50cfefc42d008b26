//! The watch of records. A large one has to be put together from its parts, by requests of its own: one that fails says
//! nothing about the record, which is read again until the server hands it out.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::runtime::watcher::{self, Config, watcher};
use tokio::task::{AbortHandle, JoinSet};

use super::{Pauses, Watch, version};
use crate::controller::world::World;
use crate::model::{Address, Reason, Stored};
use crate::plan::Held;
use crate::process::{Gate, Random};
use crate::reconcile::index::Event;
use crate::store::secrets::{
    Decoded, FIELD_SELECTOR, Failure, LABEL_SELECTOR, PartedHead, Patience, Secrets, decode, is_family,
};
use crate::store::{Strings, Unreadable};

/// The watch stands still meanwhile. What takes longer is read beside it.
const AT_ONCE: Patience = Patience::Bounded(Duration::from_secs(1));

impl Watch {
    /// Watches the records, which are all in the controller's own namespace. `serves` tells whose records count.
    pub async fn records(
        self,
        api: Api<Secret>,
        secrets: Secrets,
        serves: impl Fn(&str) -> bool + Send + Sync + 'static,
        gate: Gate,
    ) {
        let config = Config::default().fields(FIELD_SELECTOR).labels(LABEL_SELECTOR);
        let sink = Arc::new(Sink { world: self.world.clone(), serves: Box::new(serves) });
        let mut reader = Reader::new(sink, secrets, self.random.clone());
        let mut stream = std::pin::pin!(self.events("records", watcher(api, config)));
        while let Some(event) = stream.next().await {
            match event {
                watcher::Event::Init => self.world.apply_to_all(None, &Event::RecordsRelisting),
                watcher::Event::InitApply(secret) | watcher::Event::Apply(secret) => reader.read(&secret).await,
                watcher::Event::Delete(secret) => reader.deleted(&secret),
                watcher::Event::InitDone => {
                    self.world.apply_to_all(None, &Event::RecordsListed);
                    gate.open();
                }
            }
        }
    }
}

/// Where events of records go.
struct Sink {
    world: Arc<World>,
    serves: Box<dyn Fn(&str) -> bool + Send + Sync>,
}

/// What reading a large record came to.
type Whole = Result<Option<Result<Stored, Unreadable>>, Failure>;

impl Sink {
    fn apply(&self, namespace: &Arc<str>, event: Event) {
        if (self.serves)(namespace) {
            self.world.apply(namespace, event);
        }
    }

    /// Takes in what a reading says. `whose` counts when the record itself does not tell.
    fn take(&self, whose: Option<&Whose>, read: Whole) -> Result<(), Failure> {
        match (read?, whose) {
            (Some(Ok(stored)), _) => {
                let namespace = stored.record.namespace.clone();
                self.apply(&namespace, Event::RecordApplied(stored));
            }
            (Some(Err(unreadable)), Some((namespace, address))) => {
                let message = unreadable.message;
                tracing::error!(namespace = &**namespace, %address, error = message, "a record cannot be read");
                let held = Held { reason: Reason::RecordUnreadable, message };
                self.apply(namespace, Event::RecordUnreadable(address.clone(), held));
            }
            // It is gone already, which the watch is about to tell; or it does not even say whose it is.
            (None, _) | (_, None) => {}
        }
        Ok(())
    }
}

/// Makes events of Secrets.
struct Reader {
    sink: Arc<Sink>,
    secrets: Secrets,
    random: Arc<dyn Random>,
    strings: Strings,
    /// Those that could not be read and are read again. They end with the watch.
    again: JoinSet<()>,
    /// The same by the names of their Secrets.
    by_name: BTreeMap<String, AbortHandle>,
}

impl Reader {
    fn new(sink: Arc<Sink>, secrets: Secrets, random: Arc<dyn Random>) -> Self {
        let (strings, again, by_name) = (Strings::default(), JoinSet::new(), BTreeMap::new());
        Self { sink, secrets, random, strings, again, by_name }
    }

    /// Takes in what a Secret holds, now or as soon as it can be read.
    async fn read(&mut self, secret: &Secret) {
        // Whatever was to be read again is older than this.
        self.forget(secret);
        let whose = whose(secret);
        let read = match decode(secret, &mut self.strings) {
            Ok(Decoded::Family(family)) => {
                let namespace = family.namespace.clone();
                return self.sink.apply(&namespace, Event::FamilyApplied(family));
            }
            Err(unreadable) if is_family(secret) => {
                let Some((namespace, address)) = whose else { return };
                return self.sink.apply(&namespace, Event::FamilyUnreadable(address.name, unreadable.message));
            }
            Ok(Decoded::Record(stored)) => Ok(Some(Ok(stored))),
            Err(unreadable) => Ok(Some(Err(unreadable))),
            Ok(Decoded::Parted(head)) => match self.secrets.assemble(&head, AT_ONCE).await {
                Err(failure) => return self.read_again(secret, head, whose, &failure),
                read => read,
            },
        };
        // Only requests fail, and those were looked at.
        let _ = self.sink.take(whose.as_ref(), read);
    }

    /// Reads on in the background. Meanwhile nothing is done about the object.
    fn read_again(&mut self, secret: &Secret, head: PartedHead, whose: Option<Whose>, failure: &Failure) {
        let message = format!("its record cannot be read at the moment: {failure}; it is read again");
        tracing::warn!(secret = secret.metadata.name, "{message}");
        if let Some((namespace, address)) = &whose {
            let held = Held { reason: Reason::RecordNotRead, message };
            self.sink.apply(namespace, Event::RecordUnreadable(address.clone(), held));
        }
        let (sink, secrets, pauses) = (self.sink.clone(), self.secrets.clone(), Pauses::new(self.random.clone()));
        let handle = self.again.spawn(async move {
            for pause in pauses {
                tokio::time::sleep(pause).await;
                let read = secrets.assemble(&head, AT_ONCE).await;
                match sink.take(whose.as_ref(), read) {
                    Ok(()) => return,
                    Err(failure) => tracing::debug!("a record is not read yet: {failure}"),
                }
            }
        });
        self.by_name.insert(secret.metadata.name.clone().unwrap_or_default(), handle);
    }

    fn deleted(&mut self, secret: &Secret) {
        self.forget(secret);
        let Some((namespace, address)) = whose(secret) else { return };
        let version = version(&secret.metadata);
        let event = match is_family(secret) {
            true => Event::FamilyDeleted(address.name, version),
            false => Event::RecordDeleted(address, version),
        };
        self.sink.apply(&namespace, event);
    }

    /// Stops reading again.
    fn forget(&mut self, secret: &Secret) {
        while self.again.try_join_next().is_some() {}
        if let Some(handle) = secret.metadata.name.as_ref().and_then(|name| self.by_name.remove(name)) {
            handle.abort();
        }
    }
}

/// Namespace and instance.
type Whose = (Arc<str>, Address);

/// Whose record a Secret is, by what stands beside the record: all that is left when the record itself is unreadable.
fn whose(secret: &Secret) -> Option<Whose> {
    let namespace = secret.metadata.labels.as_ref()?.get("purlin.dev/namespace")?;
    let address = secret.metadata.annotations.as_ref()?.get("purlin.dev/address")?;
    Some((namespace.as_str().into(), address.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Record, Value};
    use crate::process::SystemRandom;
    use crate::store::codec::arbitrary::typical;
    use crate::store::fake::{Fault, Shared, secrets, server};

    /// A record that needs parts.
    fn large() -> Record {
        let mut record = typical(1);
        let numbers = (0..250_000_u64).map(|number| format!("{:016x}", number.wrapping_mul(6_364_136_223_846_793_005)));
        let text: String = numbers.collect();
        Arc::make_mut(record.current.as_mut().unwrap()).value = Value::map([("text", Value::from(text.as_str()))]);
        record
    }

    fn head(server: &Shared) -> Secret {
        let server = server.lock().unwrap();
        let head = server.objects.values().find(|secret| secret["metadata"]["labels"]["purlin.dev/record"] == "head");
        serde_json::from_value(head.unwrap().clone()).unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn a_part_that_cannot_be_read_now_is_read_again_and_nobody_is_sent_to_a_backup() {
        let (server, client) = server();
        let (secrets, _stop) = secrets(client);
        let record = large();
        secrets.put(&record, None, Patience::SHORT).await.unwrap();
        let (world, mut opened) = World::new(1, Arc::new(SystemRandom));
        let sink = Arc::new(Sink { world, serves: Box::new(|_| true) });
        let mut reader = Reader::new(sink, secrets, Arc::new(SystemRandom));
        let head = head(&server);
        let (_, address) = whose(&head).unwrap();
        server.lock().unwrap().faults = [Fault::Code(503); 60].into();
        reader.read(&head).await;
        let shared = opened.try_recv().unwrap();
        let held = shared.lock().index().unreadable()[&address].clone();
        assert_eq!(held.reason, Reason::RecordNotRead);
        assert!(!held.message.contains("backup"), "{}", held.message);
        while !shared.lock().index().unreadable().is_empty() {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        assert_eq!(*shared.lock().index().records()[&address].record, record);
    }

    #[tokio::test(start_paused = true)]
    async fn a_missing_part_says_that_the_record_is_to_be_restored() {
        let (server, client) = server();
        let (secrets, _stop) = secrets(client);
        secrets.put(&large(), None, Patience::SHORT).await.unwrap();
        let (world, mut opened) = World::new(1, Arc::new(SystemRandom));
        let sink = Arc::new(Sink { world, serves: Box::new(|_| true) });
        let mut reader = Reader::new(sink, secrets, Arc::new(SystemRandom));
        let head = head(&server);
        let (_, address) = whose(&head).unwrap();
        server.lock().unwrap().objects.retain(|path, _| !path.ends_with("-1"));
        reader.read(&head).await;
        let held = opened.try_recv().unwrap().lock().index().unreadable()[&address].clone();
        assert_eq!(held.reason, Reason::RecordUnreadable);
        assert!(held.message.contains("backup"), "{}", held.message);
    }
}
