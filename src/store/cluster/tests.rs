use std::sync::Mutex;

use futures::future::join_all;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::*;
use crate::model::{Holder, Intent};
use crate::process::Shutdown;
use crate::store::codec::arbitrary::typical;
use crate::store::fake::{Fault, SharedServer, secrets, server};
use crate::store::secrets::SecretContent;

/// The state of the watches, as set by the test.
#[derive(Default)]
struct View {
    metadata: Mutex<Option<ResourceMeta>>,
    recorded: Mutex<Vec<InstanceKey>>,
    indexed: Mutex<Vec<InstanceKey>>,
}

impl ResourceView for View {
    fn metadata(&self, _: &str, _: &str) -> Option<ResourceMeta> {
        self.metadata.lock().unwrap().clone()
    }

    fn recorded(&self, _: &str, _: &str) -> Vec<InstanceKey> {
        self.recorded.lock().unwrap().clone()
    }

    fn indexed(&self, _: &str, _: &str) -> Vec<InstanceKey> {
        self.indexed.lock().unwrap().clone()
    }
}

struct Fixture {
    server: SharedServer,
    journal: ClusterJournal,
    view: Arc<View>,
    stop: Shutdown,
}

const PATH: &str = "/apis/purlin.dev/v1alpha1/namespaces/shop/resources/web";

/// A Resource `web` that was just created and that the watch shows.
fn fixture() -> Fixture {
    let (server, client) = server();
    let (secrets, stop) = secrets(client);
    let view = Arc::new(View::default());
    *view.metadata.lock().unwrap() = Some(ResourceMeta { uid: "u1".into(), ..ResourceMeta::default() });
    let object = json!({"metadata": {"name": "web", "uid": "u1"}});
    server.lock().unwrap().put(PATH, object);
    Fixture { server, journal: ClusterJournal::new(secrets, view.clone()), view, stop }
}

impl Fixture {
    fn requests(&self) -> String {
        let requests = self.server.lock().unwrap().take_requests();
        let short = |request: String| match request.split_once("-record-").or(request.split_once("-family-")) {
            Some((before, _)) if request.contains("-record-") => format!("{before} record"),
            Some((before, _)) => format!("{before} family"),
            None => request,
        };
        requests.into_iter().map(short).collect::<Vec<_>>().join(", ")
    }

    fn resource(&self) -> Value {
        self.server.lock().unwrap().objects[PATH]["metadata"].clone()
    }

    fn secrets(&self) -> usize {
        self.server.lock().unwrap().objects.keys().filter(|path| path.contains("/secrets/")).count()
    }
}

fn first_intent(address: &str) -> Arc<Record> {
    let mut record = Record::empty("shop".into(), address.parse().unwrap(), "u1".into(), "terraform_data".into());
    record.intent = Some(Box::new(Intent {
        operation: Operation::Create,
        operation_id: "o1".into(),
        holder: Holder { pod: "p".into(), process: "1".into() },
        epoch: 1,
        started: Timestamp::UNIX_EPOCH,
        deadline: Timestamp::UNIX_EPOCH,
        deposed: None,
        planned: None,
        import: None,
        cause: crate::model::Cause::default(),
    }));
    record.into()
}

fn stored(record: &Arc<Record>, version: Version) -> Stored {
    Stored { record: record.clone(), version }
}

fn with_object(intent: &Record) -> Arc<Record> {
    Arc::new(Record { current: typical(1).current, intent: None, ..intent.clone() })
}

#[tokio::test(start_paused = true)]
async fn a_record_that_is_lost_before_the_watch_shows_its_marks_is_not_created_again() {
    let scene = fixture();
    scene.journal.intend(first_intent("web"), None).await.unwrap();
    scene.server.lock().unwrap().objects.retain(|path, _| !path.contains("/secrets/"));
    let refused = scene.journal.intend(first_intent("web"), None).await.unwrap_err();
    assert!(matches!(refused, JournalError::Missing(_)), "{refused:?}");
    assert_eq!((scene.secrets(), &scene.resource()["finalizers"]), (0, &json!([FINALIZER])));
}

#[tokio::test(start_paused = true)]
async fn a_lifecycle_takes_one_request_for_each_write() {
    let scene = fixture();
    let intent = first_intent("web");
    let record = with_object(&intent);
    let version = scene.journal.intend(intent.clone(), None).await.unwrap();
    assert_eq!(scene.requests(), "POST secrets, PATCH web");
    assert_eq!(scene.resource()["finalizers"], json!([FINALIZER]));
    assert_eq!(scene.resource()["annotations"], json!({RECORD_ANNOTATION: "u1"}));
    let version = scene.journal.record(record.clone(), stored(&intent, version)).await.unwrap();
    *scene.view.metadata.lock().unwrap() = Some(ResourceMeta {
        finalizers: Some(vec![FINALIZER.into()]),
        has_annotations: true,
        record: Some("u1".into()),
        uid: "u1".into(),
        deleting: false,
    });
    scene.requests();
    let destroyed = Arc::new(Record { intent: intent.intent.clone(), ..Record::clone(&record) });
    let version = scene.journal.intend(destroyed.clone(), Some(version)).await.unwrap();
    scene.journal.erase(stored(&destroyed, version)).await.unwrap();
    assert_eq!(scene.requests(), "PUT purlin record, PATCH web, DELETE purlin record");
    assert_eq!((scene.resource()["finalizers"].clone(), scene.secrets()), (json!([]), 0));
}

#[tokio::test(start_paused = true)]
async fn a_forgotten_object_is_removed_from_its_record_before_the_marks() {
    let scene = fixture();
    let intent = first_intent("web");
    let record = with_object(&intent);
    let version = scene.journal.intend(intent.clone(), None).await.unwrap();
    let version = scene.journal.record(record.clone(), stored(&intent, version)).await.unwrap();
    scene.requests();
    scene.journal.erase(stored(&record, version)).await.unwrap();
    let requests = scene.requests();
    assert!(requests.starts_with("PUT purlin record, ") && requests.ends_with("DELETE purlin record"), "{requests}");
    assert_eq!((scene.resource()["finalizers"].clone(), scene.secrets()), (json!([]), 0));
}

/// Like an annotation or a storage migration: the Secret gets a new version, the record does not change.
fn touch_secrets(scene: &Fixture) {
    let mut server = scene.server.lock().unwrap();
    let secrets: Vec<_> = server.objects.keys().filter(|path| path.contains("/secrets/")).cloned().collect();
    for path in secrets {
        let mut secret = server.objects[&path].clone();
        secret["metadata"]["labels"]["audit.example.com/seen"] = "yes".into();
        server.put(&path, secret);
    }
}

#[tokio::test(start_paused = true)]
async fn a_result_is_written_despite_changed_metadata() {
    let scene = fixture();
    let intent = first_intent("web");
    let record = with_object(&intent);
    let version = scene.journal.intend(intent.clone(), None).await.unwrap();
    touch_secrets(&scene);
    let written = scene.journal.record(record.clone(), stored(&intent, version)).await.unwrap();
    touch_secrets(&scene);
    scene.journal.erase(stored(&record, written)).await.unwrap();
    assert_eq!((scene.resource()["finalizers"].clone(), scene.secrets()), (json!([]), 0));
}

#[tokio::test(start_paused = true)]
async fn a_result_conflicts_with_a_changed_record() {
    let scene = fixture();
    let intent = first_intent("web");
    let version = scene.journal.intend(intent.clone(), None).await.unwrap();
    // Another process has resolved the intent.
    let finished = with_object(&Record { epoch: 7, ..intent.as_ref().clone() });
    scene.journal.record(finished.clone(), stored(&intent, version)).await.unwrap();
    let late = scene.journal.record(with_object(&intent), stored(&intent, version)).await;
    assert!(matches!(late, Err(JournalError::Conflict { .. })), "{late:?}");
    let erased = scene.journal.erase(stored(&intent, version)).await;
    assert!(matches!(erased, Err(JournalError::Conflict { .. })), "{erased:?}");
}

#[tokio::test(start_paused = true)]
async fn a_result_with_a_lost_response_succeeds_despite_changed_metadata() {
    let scene = fixture();
    let intent = first_intent("web");
    let version = scene.journal.intend(intent.clone(), None).await.unwrap();
    scene.server.lock().unwrap().faults = [Fault::LoseAnswer].into();
    let journal = &scene.journal;
    let (written, ()) = tokio::join!(journal.record(with_object(&intent), stored(&intent, version)), async {
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        touch_secrets(&scene);
    });
    assert!(written.unwrap() > version);
}

#[tokio::test(start_paused = true)]
async fn a_rejected_result_is_retried_until_it_is_stored() {
    let scene = fixture();
    let intent = first_intent("web");
    for code in [400, 413, 422] {
        let version = scene.journal.intend(first_intent(&format!("web[{code}]")), None).await.unwrap();
        let intent = first_intent(&format!("web[{code}]"));
        scene.server.lock().unwrap().faults = [Fault::Code(code); 30].into();
        let record = with_object(&intent);
        let (written, trouble) = tokio::join!(scene.journal.record(record.clone(), stored(&intent, version)), async {
            tokio::time::sleep(std::time::Duration::from_mins(1)).await;
            scene.journal.pending_error(&record)
        });
        assert!(written.unwrap() > version, "{code}");
        assert_eq!(trouble.as_deref(), Some("the API server rejects it: injected fault"));
        assert_eq!(scene.journal.pending_error(&record), None);
    }
    assert_eq!((scene.journal.report_lost(), scene.journal.pending_error(&intent)), (0, None));
}

#[tokio::test(start_paused = true)]
async fn a_rejected_removal_after_a_call_is_retried_until_the_record_is_removed() {
    for code in [400, 413, 422] {
        let scene = fixture();
        let intent = first_intent("web");
        let version = scene.journal.intend(intent.clone(), None).await.unwrap();
        scene.requests();
        scene.server.lock().unwrap().faults = [Fault::Code(code); 30].into();
        scene.journal.erase(stored(&intent, version)).await.unwrap();
        assert!(scene.requests().ends_with("DELETE purlin record"), "{code}");
        assert_eq!((scene.journal.report_lost(), scene.journal.pending_error(&intent)), (0, None));
    }
}

#[tokio::test(start_paused = true)]
async fn a_result_rejected_until_shutdown_is_reported_as_lost() {
    let scene = fixture();
    let intent = first_intent("web");
    let version = scene.journal.intend(intent.clone(), None).await.unwrap();
    scene.server.lock().unwrap().faults = [Fault::Code(413); 1000].into();
    let journal = &scene.journal;
    let (written, ()) = tokio::join!(journal.record(with_object(&intent), stored(&intent, version)), async {
        tokio::time::sleep(std::time::Duration::from_mins(1)).await;
        scene.stop.trigger();
    });
    assert!(matches!(written, Err(JournalError::Unavailable { .. })), "{written:?}");
    assert_eq!((journal.report_lost(), journal.report_lost()), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn an_outdated_watch_costs_only_a_request() {
    let scene = fixture();
    let intent = first_intent("web");
    scene.server.lock().unwrap().objects.get_mut(PATH).unwrap()["metadata"]["finalizers"] = json!(["other.dev/wait"]);
    let version = scene.journal.intend(intent.clone(), None).await.unwrap();
    assert_eq!(scene.requests(), "POST secrets, PATCH web, GET web, PATCH web");
    assert_eq!(scene.resource()["finalizers"], json!(["other.dev/wait", FINALIZER]));
    scene.journal.erase(stored(&intent, version)).await.unwrap();
    assert_eq!(scene.requests(), "GET web, PATCH web, DELETE purlin record");
    assert_eq!(scene.resource()["finalizers"], json!(["other.dev/wait"]));
    let mut late = ResourceMeta::of(&serde_json::from_value(scene.resource()).unwrap(), |text| text.into());
    late.finalizers.get_or_insert_default().push(FINALIZER.into());
    late.record = Some("u1".into());
    *scene.view.metadata.lock().unwrap() = Some(late);
    scene.journal.intend(intent, None).await.unwrap();
    assert_eq!(scene.resource()["finalizers"], json!(["other.dev/wait", FINALIZER]));
}

#[tokio::test(start_paused = true)]
async fn a_missing_or_deleted_resource_gets_no_record() {
    let cases = [
        json!(null),
        json!({"metadata": {"name": "web", "uid": "u2"}}),
        json!({"metadata": {"name": "web", "uid": "u1", "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["x/y"]}}),
    ];
    for object in cases {
        let scene = fixture();
        scene.server.lock().unwrap().objects.remove(PATH);
        if !object.is_null() {
            scene.server.lock().unwrap().put(PATH, object);
        }
        let outcome = scene.journal.intend(first_intent("web"), None).await;
        assert!(matches!(outcome, Err(JournalError::Conflict { .. })), "{outcome:?}");
        assert_eq!(scene.secrets(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_second_controller_gets_a_conflict_before_its_call() {
    let scene = fixture();
    let (other, _stop) = secrets(scene.journal.secrets().caller().client().clone());
    let other = ClusterJournal::new(other, scene.view.clone());
    scene.journal.intend(first_intent("web"), None).await.unwrap();
    let mut theirs = first_intent("web").as_ref().clone();
    theirs.intent.as_mut().unwrap().operation_id = "o2".into();
    assert!(matches!(other.intend(theirs.into(), None).await, Err(JournalError::Conflict { .. })));
    assert_eq!((scene.secrets(), &scene.resource()["finalizers"]), (1, &json!([FINALIZER])));
}

#[tokio::test(start_paused = true)]
async fn an_intent_without_marks_fails() {
    let scene = fixture();
    scene.server.lock().unwrap().faults = std::iter::once(Fault::None).chain([Fault::Code(503); 60]).collect();
    let outcome = scene.journal.intend(first_intent("web"), None).await;
    assert!(matches!(outcome, Err(JournalError::Unavailable { .. })));
    assert_eq!(scene.resource()["finalizers"], Value::Null);
}

#[tokio::test(start_paused = true)]
async fn a_family_has_an_index_and_one_pair_of_marks() {
    let scene = fixture();
    let intents: Vec<_> = (0..50).map(|number| first_intent(&format!("web[{number}]"))).collect();
    let versions = join_all(intents.iter().map(|intent| scene.journal.intend(intent.clone(), None))).await;
    let requests = scene.requests();
    assert_eq!(requests.matches("PATCH web").count(), 1, "{requests}");
    assert!(requests.matches("family").count() <= 2, "{requests}");
    let index = scene.journal.secrets().get_family("shop", "web", RetryPolicy::SHORT).await.unwrap().unwrap();
    assert_eq!(index.instances.len(), 50);
    *scene.view.recorded.lock().unwrap() = intents.iter().map(|intent| intent.address.key.clone()).collect();
    let mut lives = intents.into_iter().zip(versions);
    let (last, version) = lives.next().unwrap();
    let erased = join_all(lives.map(|(record, version)| scene.journal.erase(stored(&record, version.unwrap())))).await;
    assert!(erased.iter().all(Result::is_ok));
    assert_eq!((scene.secrets(), &scene.resource()["finalizers"]), (2, &json!([FINALIZER])));
    scene.journal.erase(stored(&last, version.unwrap())).await.unwrap();
    assert_eq!((scene.secrets(), &scene.resource()["finalizers"]), (0, &json!([])));
}

async fn index(scene: &Fixture) -> Vec<String> {
    let family = scene.journal.secrets().get_family("shop", "web", RetryPolicy::SHORT).await.unwrap();
    family.iter().flat_map(|family| family.instances.iter().map(ToString::to_string)).collect()
}

#[tokio::test(start_paused = true)]
async fn an_object_without_a_key_is_indexed_only_with_siblings() {
    let scene = fixture();
    let single = first_intent("web");
    let version = scene.journal.intend(single.clone(), None).await.unwrap();
    assert_eq!(index(&scene).await, Vec::<String>::new(), "a single object needs no index");
    let other = first_intent("web[1]");
    let its_version = scene.journal.intend(other.clone(), None).await.unwrap();
    assert_eq!(index(&scene).await, ["web", "web[1]"]);
    scene.journal.erase(stored(&other, its_version)).await.unwrap();
    assert_eq!(index(&scene).await, Vec::<String>::new());
    assert_eq!(scene.resource()["finalizers"], json!([FINALIZER]));
    scene.journal.erase(stored(&single, version)).await.unwrap();
    assert_eq!((scene.secrets(), &scene.resource()["finalizers"]), (0, &json!([])));
}

#[tokio::test(start_paused = true)]
async fn a_later_object_without_a_key_joins_and_leaves_the_index() {
    let scene = fixture();
    let other = first_intent("web[1]");
    scene.journal.intend(other.clone(), None).await.unwrap();
    // Another process, which knows only the watches, for a record that was lost meanwhile.
    *scene.view.indexed.lock().unwrap() = vec![other.address.key.clone()];
    let (own, _stop) = secrets(scene.journal.secrets().caller().client().clone());
    let journal = ClusterJournal::new(own, scene.view.clone());
    let version = journal.intend(first_intent("web"), None).await.unwrap();
    assert_eq!(index(&scene).await, ["web", "web[1]"]);
    journal.erase(stored(&first_intent("web"), version)).await.unwrap();
    assert_eq!(index(&scene).await, ["web[1]"]);
    assert_eq!(scene.resource()["finalizers"], json!([FINALIZER]), "another instance had a record");
}

#[tokio::test(start_paused = true)]
async fn a_lost_object_without_a_key_stays_in_the_index_without_siblings() {
    let scene = fixture();
    let other = first_intent("web[1]");
    scene.journal.intend(first_intent("web"), None).await.unwrap();
    let version = scene.journal.intend(other.clone(), None).await.unwrap();
    // The record of `web` is lost, and another process takes over.
    let (own, _stop) = secrets(scene.journal.secrets().caller().client().clone());
    let journal = ClusterJournal::new(own, scene.view.clone());
    *scene.view.recorded.lock().unwrap() = vec![other.address.key.clone()];
    journal.erase(stored(&other, version)).await.unwrap();
    assert_eq!(index(&scene).await, ["web"]);
    assert_eq!(scene.resource()["finalizers"], json!([FINALIZER]));
    journal.release(&"shop".into(), &Address::single("web"), &"u1".into()).await.unwrap();
    assert_eq!(index(&scene).await, Vec::<String>::new());
    assert_eq!(scene.resource()["finalizers"], json!([]));
}

#[tokio::test(start_paused = true)]
async fn an_instance_without_a_record_can_be_released() {
    let scene = fixture();
    for address in ["web[0]", "web[1]"] {
        scene.journal.intend(first_intent(address), None).await.unwrap();
    }
    let (namespace, uid) = ("shop".into(), "u1".into());
    scene.journal.release(&namespace, &"web[0]".parse().unwrap(), &uid).await.unwrap();
    assert_eq!(scene.resource()["finalizers"], json!([FINALIZER]));
    scene.journal.release(&namespace, &"web[1]".parse().unwrap(), &uid).await.unwrap();
    assert_eq!(scene.resource()["finalizers"], json!([]));
}

#[tokio::test(start_paused = true)]
async fn a_family_is_removed_in_the_reverse_order_of_its_creation() {
    let scene = fixture();
    let intents: Vec<_> = (0..3).map(|number| first_intent(&format!("web[{number}]"))).collect();
    let version = scene.journal.intend(intents[0].clone(), None).await.unwrap();
    assert_eq!(scene.requests(), "GET purlin family, POST secrets, POST secrets, PATCH web");
    let mut stored_intents = vec![stored(&intents[0], version)];
    for intent in &intents[1..] {
        stored_intents.push(stored(intent, scene.journal.intend(intent.clone(), None).await.unwrap()));
        assert_eq!(scene.requests(), "POST secrets, PUT purlin family");
    }
    scene.shows_server(&["web[0]", "web[1]", "web[2]"]);
    let erased = join_all(stored_intents.into_iter().map(|stored| scene.journal.erase(stored))).await;
    assert!(erased.iter().all(Result::is_ok), "{erased:?}");
    // The first removal does not wait; it leaves the others to the second.
    let requests = scene.requests();
    assert_eq!(
        requests,
        "PUT purlin family, DELETE purlin record, PATCH web, DELETE purlin family, DELETE purlin record, DELETE purlin \
         record"
    );
    assert_eq!((scene.secrets(), &scene.resource()["finalizers"]), (0, &json!([])));
}

impl Fixture {
    /// Loses a Secret: its record, or the index of the family.
    fn lose(&self, secret: &str) {
        let name = match secret {
            "index" => crate::store::secrets::family_name("shop", "web"),
            address => crate::store::secrets::record_name("shop", &address.parse().unwrap()),
        };
        let lost =
            self.server.lock().unwrap().objects.remove(&format!("/api/v1/namespaces/purlin-system/secrets/{name}"));
        assert!(lost.is_some(), "{secret}");
    }

    /// The watches show the present Resource and these records.
    fn shows_server(&self, recorded: &[&str]) {
        let meta = ResourceMeta::of(&serde_json::from_value(self.resource()).unwrap(), |text| text.into());
        *self.view.metadata.lock().unwrap() = Some(meta);
        let keys = recorded.iter().map(|address| address.parse::<Address>().unwrap().key);
        *self.view.recorded.lock().unwrap() = keys.collect();
    }

    /// A journal of another process, which knows only the watches.
    fn other_process(&self) -> ClusterJournal {
        let (secrets, _stop) = secrets(self.journal.secrets().caller().client().clone());
        ClusterJournal::new(secrets, self.view.clone())
    }
}

/// A family with two instances that the watches show.
async fn family_of_two() -> Fixture {
    let scene = fixture();
    for address in ["web[0]", "web[1]"] {
        scene.journal.intend(first_intent(address), None).await.unwrap();
    }
    scene.shows_server(&["web[0]", "web[1]"]);
    scene
}

/// Requires that the create is refused with `RecordMissing`, and that no record of it remains. Returns the message.
async fn refused(scene: &Fixture, journal: &ClusterJournal, address: &str) -> String {
    let before = scene.resource();
    let outcome = journal.intend(first_intent(address), None).await;
    let Err(JournalError::Missing(diagnostic)) = outcome else { panic!("{address}: {outcome:?}") };
    let record = scene.journal.secrets().get("shop", &address.parse().unwrap(), RetryPolicy::SHORT).await.unwrap();
    assert!(record.is_none(), "{address}");
    assert_eq!(scene.resource(), before, "the marks stay");
    assert_eq!(diagnostic.reason, crate::model::Reason::RecordMissing);
    diagnostic.message()
}

#[tokio::test(start_paused = true)]
async fn an_instance_that_lost_its_record_is_not_created_again() {
    for index_is_lost in [false, true] {
        for is_same_process in [false, true] {
            let scene = family_of_two().await;
            scene.lose("web[1]");
            if index_is_lost {
                scene.lose("index");
            }
            let other = scene.other_process();
            let journal = if is_same_process { &scene.journal } else { &other };
            scene.shows_server(&["web[0]"]);
            for _ in 0..2 {
                let message = refused(&scene, journal, "web[1]").await;
                assert!(message.contains("purlin state rm web[1]"), "{message}");
            }
            assert!(index(&scene).await.contains(&"web[0]".to_owned()), "the index is written again");
            let cli = scene.other_process();
            cli.release_missing(&"shop".into(), &"web[1]".parse().unwrap(), &"u1".into()).await.unwrap();
            assert_eq!(index(&scene).await, ["web[0]"]);
            journal.intend(first_intent("web[1]"), None).await.unwrap();
            assert_eq!(index(&scene).await, ["web[0]", "web[1]"]);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_family_that_lost_its_index_grows_after_a_user_has_confirmed_it() {
    for is_same_process in [false, true] {
        let scene = family_of_two().await;
        scene.lose("index");
        let other = scene.other_process();
        let journal = if is_same_process { &scene.journal } else { &other };
        for _ in 0..2 {
            let message = refused(&scene, journal, "web[2]").await;
            assert!(message.contains("purlin state rm web[2]"), "{message}");
        }
        assert_eq!(index(&scene).await, ["web[0]", "web[1]"]);
        let cli = scene.other_process();
        cli.release_missing(&"shop".into(), &"web[2]".parse().unwrap(), &"u1".into()).await.unwrap();
        scene.requests();
        journal.intend(first_intent("web[2]"), None).await.unwrap();
        journal.intend(first_intent("web[3]"), None).await.unwrap();
        assert_eq!(index(&scene).await, ["web[0]", "web[1]", "web[2]", "web[3]"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_family_that_lost_all_its_records_and_its_index_creates_nothing() {
    let scene = family_of_two().await;
    ["web[0]", "web[1]", "index"].iter().for_each(|secret| scene.lose(secret));
    scene.shows_server(&[]);
    let other = scene.other_process();
    for address in ["web[0]", "web[2]"] {
        refused(&scene, &other, address).await;
    }
    other.release_missing(&"shop".into(), &"web[0]".parse().unwrap(), &"u1".into()).await.unwrap();
    assert_eq!(scene.resource()["finalizers"], json!([]));
    other.intend(first_intent("web[0]"), None).await.unwrap();
    assert_eq!(index(&scene).await, ["web[0]"]);
}

#[tokio::test(start_paused = true)]
async fn a_family_that_was_empty_grows_although_the_watches_are_late() {
    let scene = fixture();
    let intent = first_intent("web[0]");
    let version = scene.journal.intend(intent.clone(), None).await.unwrap();
    scene.shows_server(&["web[0]"]);
    scene.journal.erase(stored(&intent, version)).await.unwrap();
    // The watches still show the marks and the record.
    scene.requests();
    scene.journal.intend(intent.clone(), None).await.unwrap();
    assert_eq!(index(&scene).await, ["web[0]"]);
    scene.journal.intend(first_intent("web[1]"), None).await.unwrap();
    assert_eq!(index(&scene).await, ["web[0]", "web[1]"]);
}

#[tokio::test(start_paused = true)]
async fn an_object_without_a_key_gets_siblings_although_no_watch_shows_its_record() {
    let scene = fixture();
    scene.journal.intend(first_intent("web"), None).await.unwrap();
    scene.shows_server(&[]);
    scene.other_process().intend(first_intent("web[1]"), None).await.unwrap();
    assert_eq!(index(&scene).await, ["web[1]"]);
}

async fn erase(journal: &ClusterJournal, address: &str) {
    let whose = address.parse().unwrap();
    let found = journal.secrets().get("shop", &whose, RetryPolicy::SHORT).await.unwrap().unwrap();
    let Ok(SecretContent::Record(stored)) = found else { panic!("{found:?}") };
    journal.erase(stored).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_last_instance_removes_the_marks_although_another_process_has_removed_the_others() {
    let scene = family_of_two().await;
    erase(&scene.other_process(), "web[0]").await;
    scene.shows_server(&["web[1]"]);
    erase(&scene.journal, "web[1]").await;
    assert_eq!((scene.secrets(), &scene.resource()["finalizers"]), (0, &json!([])));
}

#[tokio::test(start_paused = true)]
async fn marks_that_another_process_has_removed_are_added_again() {
    let scene = family_of_two().await;
    let other = scene.other_process();
    for address in ["web[0]", "web[1]"] {
        erase(&other, address).await;
    }
    assert_eq!(scene.resource()["finalizers"], json!([]));
    scene.shows_server(&[]);
    scene.journal.forget(&"shop".into());
    scene.journal.intend(first_intent("web[0]"), None).await.unwrap();
    assert_eq!((index(&scene).await, &scene.resource()["finalizers"]), (vec!["web[0]".into()], &json!([FINALIZER])));
}
