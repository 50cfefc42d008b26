//! Watches records. A large record is assembled from its parts by separate requests. A failed request says nothing
//! about the record, which is read again until the requests succeed. Parts are not watched, so a record with a missing or
//! damaged part is also read again: an administrator may restore the part.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::runtime::watcher::Config;
use tokio::task::{AbortHandle, JoinSet};

use super::{Watch, WatchedKind, version};
use crate::namespaces::Namespaces;
use engine::plan::ObjectBlock;
use model::{Address, Namespace, Reason, Stored};
use process::Random;
use process::backoff::Pauses;
use runtime::reconcile::index::{Event, ListedKind};
use runtime::store::secrets::{
    FIELD_SELECTOR, RequestError, RetryPolicy, SecretContent, Secrets, SplitHead, decode, is_family,
    label_selector_without, namespace_of, size,
};
use runtime::store::{Interner, UnreadableRecord};

/// The watch is blocked meanwhile. Slower reads continue in the background.
const INLINE_PATIENCE: RetryPolicy = RetryPolicy::Bounded(Duration::from_secs(1));

/// The longest pause between two reads of a record with a missing or damaged part.
const PARTS_PAUSE: Duration = Duration::from_mins(1);

/// Forwards events of records.
struct EventSink {
    namespaces: Arc<Namespaces>,
    /// The only namespaces whose records count. Empty: all.
    only: Vec<String>,
}

/// The result of reading a record. `None`: it no longer exists.
type ReadRecord = Option<Result<Stored, UnreadableRecord>>;

impl EventSink {
    fn apply(&self, namespace: &Namespace, event: Event) {
        if self.only.is_empty() || self.only.iter().any(|only| *only == **namespace) {
            self.namespaces.apply(namespace, event);
        }
    }

    /// Handles the result of reading a record of this size. `instance` is the fallback if the record is unreadable.
    fn take(&self, instance: Option<&InstanceId>, bytes: u64, read: ReadRecord) {
        // It no longer exists, which the watch reports.
        let Some(read) = read else { return };
        match (read, instance) {
            (Ok(stored), _) => {
                let namespace = stored.record.namespace.clone();
                self.apply(&namespace, Event::RecordApplied(stored));
            }
            (Err(unreadable), Some((namespace, address))) => {
                let message = unreadable.message;
                tracing::error!(namespace = &**namespace, object = %address, error = message, "a record cannot be read");
                let held = ObjectBlock { reason: Reason::RecordUnreadable, message };
                self.apply(namespace, Event::RecordUnreadable(address.clone(), held));
            }
            // Its owner is unknown.
            (Err(_), None) => {}
        }
        if let Some((namespace, address)) = instance {
            self.apply(namespace, Event::RecordSized(address.clone(), bytes));
        }
    }
}

/// The records, which are all in the controller's own namespace.
pub struct Records {
    namespace: Arc<str>,
    sink: Arc<EventSink>,
    secrets: Secrets,
    random: Arc<dyn Random>,
    strings: Interner,
    /// Background reads. They end with the watch.
    background: JoinSet<()>,
    /// The background reads by Secret name.
    by_name: BTreeMap<String, AbortHandle>,
}

impl WatchedKind for Records {
    type Object = Secret;

    const NAME: &'static str = "records";

    fn api(&self, watch: &Watch) -> Api<Secret> {
        Api::namespaced(watch.client.clone(), &self.namespace)
    }

    fn config(&self, watch: &Watch) -> Config {
        let labels = label_selector_without(&watch.leadership.unwatched_buckets());
        Config::default().fields(FIELD_SELECTOR).labels(&labels)
    }

    // Records of earlier versions are not selected by their bucket.
    fn namespace(secret: &Secret) -> Option<String> {
        Some(namespace_of(secret).to_owned())
    }

    fn relisting(&mut self, watch: &Watch) {
        // Every record in the list is read.
        self.background.abort_all();
        self.by_name.clear();
        watch.namespaces.apply_to_all(None, &Event::Relisting(ListedKind::Records));
    }

    async fn applied(&mut self, _: &Watch, secret: Secret) {
        self.read(&secret).await;
    }

    fn deleted(&mut self, _: &Watch, secret: &Secret) {
        self.forget(secret);
        let Some((namespace, address)) = instance_of(secret) else { return };
        let version = version(&secret.metadata);
        let event = match is_family(secret) {
            true => Event::FamilyDeleted(address.stem.name, version),
            false => Event::RecordDeleted(address, version),
        };
        self.sink.apply(&namespace, event);
    }

    fn listed(&mut self, watch: &Watch) {
        watch.namespaces.apply_to_all(None, &Event::Listed(ListedKind::Records));
    }
}

impl Records {
    /// The records in `namespace`. `only`: the namespaces whose records count. Empty: all.
    pub fn new(
        namespace: &str,
        only: Vec<String>,
        namespaces: Arc<Namespaces>,
        secrets: Secrets,
        random: Arc<dyn Random>,
    ) -> Self {
        let (strings, background, by_name) = (Interner::default(), JoinSet::new(), BTreeMap::new());
        let sink = Arc::new(EventSink { namespaces, only });
        Self { namespace: namespace.into(), sink, secrets, random, strings, background, by_name }
    }

    /// Handles a Secret, immediately or as soon as it can be read.
    async fn read(&mut self, secret: &Secret) {
        // A pending background read is older than this event.
        self.forget(secret);
        let instance = instance_of(secret);
        let mut bytes = size(secret);
        let read = match decode(secret, &mut self.strings) {
            Ok(SecretContent::Family(family)) => {
                let namespace = family.namespace.clone();
                return self.sink.apply(&namespace, Event::FamilyApplied(family));
            }
            Err(unreadable) if is_family(secret) => {
                let Some((namespace, address)) = instance else { return };
                return self.sink.apply(&namespace, Event::FamilyUnreadable(address.stem.name, unreadable.message));
            }
            Ok(SecretContent::Record(stored)) => Some(Ok(stored)),
            Err(unreadable) => Some(Err(unreadable)),
            Ok(SecretContent::Split(head)) => {
                bytes += head.size();
                match self.secrets.assemble(&head, INLINE_PATIENCE).await {
                    Err(failure) => return self.hold(secret, head, instance, bytes, &failure),
                    Ok(read) => {
                        if let Some(Err(unreadable)) = &read {
                            self.read_again(secret, head, instance.clone(), bytes, Some(unreadable.message.clone()));
                        }
                        read
                    }
                }
            }
        };
        self.sink.take(instance.as_ref(), bytes, read);
    }

    /// Holds the object until its record could be read.
    fn hold(
        &mut self,
        secret: &Secret,
        head: SplitHead,
        instance: Option<InstanceId>,
        bytes: u64,
        failure: &RequestError,
    ) {
        let message = format!("the record cannot be read at the moment: {failure}; Purlin retries");
        tracing::warn!(secret = secret.metadata.name, "{message}");
        if let Some((namespace, address)) = &instance {
            let held = ObjectBlock { reason: Reason::RecordUnavailable, message };
            self.sink.apply(namespace, Event::RecordUnreadable(address.clone(), held));
        }
        self.read_again(secret, head, instance, bytes, None);
    }

    /// Reads the record in the background until it is readable. `known`: why it is not, if that was reported.
    fn read_again(
        &mut self,
        secret: &Secret,
        head: SplitHead,
        instance: Option<InstanceId>,
        bytes: u64,
        mut known: Option<String>,
    ) {
        let (sink, secrets) = (self.sink.clone(), self.secrets.clone());
        let mut after_failure = Pauses::new(self.random.clone());
        let mut for_parts = Pauses::up_to(PARTS_PAUSE, self.random.clone());
        let handle = self.background.spawn(async move {
            loop {
                let pauses = if known.is_some() { &mut for_parts } else { &mut after_failure };
                tokio::time::sleep(pauses.after_failure()).await;
                match secrets.assemble(&head, INLINE_PATIENCE).await {
                    Err(failure) => tracing::debug!("could not read a record yet: {failure}"),
                    Ok(Some(Err(unreadable))) if known.as_ref() == Some(&unreadable.message) => {}
                    Ok(Some(Err(unreadable))) => {
                        known = Some(unreadable.message.clone());
                        sink.take(instance.as_ref(), bytes, Some(Err(unreadable)));
                    }
                    Ok(read) => return sink.take(instance.as_ref(), bytes, read),
                }
            }
        });
        self.by_name.insert(secret.metadata.name.clone().unwrap_or_default(), handle);
    }

    /// Cancels the background read of a record.
    fn forget(&mut self, secret: &Secret) {
        while self.background.try_join_next().is_some() {}
        if let Some(handle) = secret.metadata.name.as_ref().and_then(|name| self.by_name.remove(name)) {
            handle.abort();
        }
    }
}

type InstanceId = (Namespace, Address);

/// The namespace and the instance of a record, from the labels and annotations of its Secret, which are readable when
/// the record is not.
fn instance_of(secret: &Secret) -> Option<InstanceId> {
    let namespace = secret.metadata.labels.as_ref()?.get("purlin.dev/namespace")?;
    let address = secret.metadata.annotations.as_ref()?.get("purlin.dev/address")?;
    Some((namespace.as_str().into(), address.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc;

    use super::*;
    use crate::leadership::Leadership;
    use crate::namespaces::NamespaceHandle;
    use crate::shards::Division;
    use model::{Record, Value};
    use process::{Shutdown, SystemRandom};
    use runtime::execute::Limits;
    use testkit::records::typical;
    use testkit::secrets_server::{Fault, SharedServer, server};

    fn alone() -> Leadership {
        Leadership::alone(Division::new(1))
    }

    fn large() -> Record {
        let mut record = typical(1);
        let numbers = (0..250_000_u64).map(|number| format!("{:016x}", number.wrapping_mul(6_364_136_223_846_793_005)));
        let text: String = numbers.collect();
        Arc::make_mut(record.current.as_mut().unwrap()).value = Value::map([("text", Value::from(text.as_str()))]);
        record
    }

    fn head(server: &SharedServer) -> Secret {
        let server = server.lock().unwrap();
        let head = server.objects.values().find(|secret| secret["metadata"]["labels"]["purlin.dev/record"] == "head");
        serde_json::from_value(head.unwrap().clone()).unwrap()
    }

    /// A large record on the server, and a reader that has read nothing yet.
    struct Stage {
        server: SharedServer,
        record: Record,
        reader: Records,
        opened: mpsc::UnboundedReceiver<Arc<NamespaceHandle>>,
        head: Secret,
        address: Address,
    }

    async fn stage() -> Stage {
        let (server, client) = server();
        let secrets = Secrets::new(client, "purlin-system", Arc::new(SystemRandom), Shutdown::default());
        let record = large();
        secrets.put(&record, None, RetryPolicy::SHORT).await.unwrap();
        let (namespaces, opened) = Namespaces::new(&Limits::default(), Arc::new(SystemRandom), alone());
        let reader = Records::new("purlin-system", Vec::new(), namespaces, secrets, Arc::new(SystemRandom));
        let head = head(&server);
        let (_, address) = instance_of(&head).unwrap();
        Stage { server, record, reader, opened, head, address }
    }

    #[tokio::test(start_paused = true)]
    async fn a_part_that_cannot_be_read_is_read_again_and_the_message_mentions_no_backup() {
        let Stage { server, record, mut reader, mut opened, head, address } = stage().await;
        server.lock().unwrap().faults = [Fault::Code(503); 60].into();
        reader.read(&head).await;
        let shared = opened.try_recv().unwrap();
        let held = shared.lock().index().records().unreadable()[&address].clone();
        assert_eq!(held.reason, Reason::RecordUnavailable);
        assert!(!held.message.contains("backup"), "{}", held.message);
        while !shared.lock().index().records().unreadable().is_empty() {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        assert_eq!(*shared.lock().index().records()[&address].record, record);
    }

    #[tokio::test(start_paused = true)]
    async fn a_missing_part_says_that_the_record_must_be_restored() {
        let Stage { server, mut reader, mut opened, head, address, .. } = stage().await;
        server.lock().unwrap().objects.retain(|path, _| !path.ends_with("-1"));
        reader.read(&head).await;
        let held = opened.try_recv().unwrap().lock().index().records().unreadable()[&address].clone();
        assert_eq!(held.reason, Reason::RecordUnreadable);
        assert!(held.message.contains("backup"), "{}", held.message);
    }

    /// As when `kubectl apply` restores the head of a record before its parts.
    #[tokio::test(start_paused = true)]
    async fn a_record_whose_parts_are_restored_after_its_head_is_read_then() {
        let Stage { server, record, mut reader, mut opened, head, address } = stage().await;
        let is_part = |secret: &serde_json::Value| secret["metadata"]["labels"]["purlin.dev/record"] == "part";
        let parts: BTreeMap<_, _> =
            server.lock().unwrap().objects.extract_if(.., |_, secret| is_part(secret)).collect();
        reader.read(&head).await;
        let shared = opened.try_recv().unwrap();
        assert_eq!(shared.lock().index().records().unreadable()[&address].reason, Reason::RecordUnreadable);
        server.lock().unwrap().take_requests();
        tokio::time::sleep(Duration::from_hours(1)).await;
        let requests = server.lock().unwrap().take_requests().len();
        assert!((60..=200).contains(&requests), "one part and the head, about once a minute: {requests}");
        server.lock().unwrap().objects.extend(parts);
        tokio::time::sleep(2 * PARTS_PAUSE).await;
        assert!(shared.lock().index().records().unreadable().is_empty());
        assert_eq!(*shared.lock().index().records()[&address].record, record);
        server.lock().unwrap().take_requests();
        tokio::time::sleep(2 * PARTS_PAUSE).await;
        assert!(server.lock().unwrap().take_requests().is_empty(), "it is not read again");
    }
}
