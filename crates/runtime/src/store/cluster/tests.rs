mod family;

use std::sync::Mutex;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::*;
use crate::store::tests::secrets;
use model::{Holder, Intent, Name};
use process::Shutdown;
use testkit::records::typical;
use testkit::secrets_server::{Fault, SharedServer, server};

/// The state of the watches, as set by the test.
#[derive(Default)]
struct View {
    metadata: Mutex<Option<ResourceMeta>>,
    recorded: Mutex<Vec<Address>>,
    indexed: Mutex<Vec<Address>>,
}

impl ResourceView for View {
    fn metadata(&self, _: &str, _: &Name) -> Option<ResourceMeta> {
        self.metadata.lock().unwrap().clone()
    }

    fn recorded(&self, _: &str, _: &Name) -> Vec<Address> {
        self.recorded.lock().unwrap().clone()
    }

    fn indexed(&self, _: &str, _: &Name) -> Vec<Address> {
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
        cause: model::Cause::default(),
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
async fn a_resource_is_claimed_for_an_object_and_never_for_what_is_being_removed() {
    let (namespace, uid, address) = ("shop".into(), "u1".into(), Address::single("web"));
    let finalizers = |scene: &Fixture| scene.resource()["finalizers"].clone();
    let strip = |scene: &Fixture, marks: &[&str]| {
        let mut server = scene.server.lock().unwrap();
        let metadata = server.objects.get_mut(PATH).unwrap()["metadata"].as_object_mut().unwrap();
        marks.iter().for_each(|mark| _ = metadata.remove(*mark));
    };
    let scene = fixture();
    let intent = first_intent("web");
    let version = scene.journal.intend(intent.clone(), None).await.unwrap();
    strip(&scene, &["finalizers"]);
    scene.journal.claim(&namespace, &address, &uid).await.unwrap();
    assert_eq!(finalizers(&scene), json!([FINALIZER]), "the annotation shows that a call may have been made");
    strip(&scene, &["finalizers", "annotations"]);
    scene.journal.claim(&namespace, &address, &uid).await.unwrap();
    assert_eq!(finalizers(&scene), Value::Null, "without marks, the intent proves that no call was made");
    let record = with_object(&intent);
    let version = scene.journal.record(record.clone(), stored(&intent, version)).await.unwrap();
    scene.journal.claim(&namespace, &address, &"other".into()).await.unwrap();
    assert_eq!(finalizers(&scene), Value::Null, "another Resource");
    scene.journal.claim(&namespace, &address, &uid).await.unwrap();
    assert_eq!(finalizers(&scene), json!([FINALIZER]));
    assert_eq!(scene.resource()["annotations"], json!({RECORD_ANNOTATION: "u1"}));
    let mut destroyed = Record::clone(&record);
    destroyed.intent.clone_from(&intent.intent);
    destroyed.intent.as_mut().unwrap().operation = Operation::Destroy;
    scene.journal.intend(Arc::new(destroyed), Some(version)).await.unwrap();
    strip(&scene, &["finalizers", "annotations"]);
    scene.journal.claim(&namespace, &address, &uid).await.unwrap();
    assert_eq!(finalizers(&scene), Value::Null, "the marks are removed before the record");
}

fn held_by(process: &str) -> Arc<Record> {
    let mut record = Record::clone(&first_intent("web"));
    record.intent.as_mut().unwrap().holder.process = process.into();
    Arc::new(record)
}

#[tokio::test(start_paused = true)]
async fn one_process_takes_an_operation_over_and_the_earlier_holder_records_no_result() {
    let scene = fixture();
    let (first, second) = (held_by("1"), held_by("2"));
    let left = scene.journal.intend(first.clone(), None).await.unwrap();
    let taken = scene.journal.take_over(second.clone(), left).await.unwrap();
    let refused = [
        scene.journal.take_over(held_by("3"), left).await,
        scene.journal.record(with_object(&first), stored(&first, left)).await,
    ];
    assert!(refused.iter().all(|result| matches!(result, Err(JournalError::Conflict { .. }))), "{refused:?}");
    scene.journal.record(with_object(&second), stored(&second, taken)).await.unwrap();
}
