use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;

use super::*;
use crate::store::tests::secrets;
use model::Value;
use testkit::records::typical;
use testkit::secrets_server::{Fault, SharedServer, server};

const SHORT: RetryPolicy = RetryPolicy::SHORT;
const LONG: RetryPolicy = RetryPolicy::UntilStopped;

fn faults(server: &SharedServer, faults: &[Fault]) {
    server.lock().unwrap().faults.extend(faults);
}

fn requests(server: &SharedServer) -> Vec<String> {
    let of = |request: String| request.split(' ').next().unwrap().to_owned();
    server.lock().unwrap().take_requests().into_iter().map(of).collect()
}

/// A record that needs several parts; `seed` selects its content.
fn large(seed: u64) -> Record {
    let mut number = seed;
    let text: String = std::iter::repeat_with(|| {
        number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        format!("{number:016x}")
    })
    .take(250_000)
    .collect();
    let mut record = typical(1);
    Arc::make_mut(record.current.as_mut().unwrap()).value = Value::map([("text", Value::from(text.as_str()))]);
    record
}

async fn read(secrets: &Secrets, record: &Record) -> Option<Record> {
    match secrets.get(&record.namespace, &record.address, SHORT).await.unwrap()? {
        Ok(SecretContent::Record(stored)) => Some(stored.record.as_ref().clone()),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_record_is_one_request_and_versions_are_compared() {
    let (server, client) = server();
    let (secrets, _stop) = secrets(client);
    let record = typical(1);
    let first = secrets.put(&record, None, SHORT).await.unwrap();
    let second = secrets.put(&record, Some(first), LONG).await.unwrap();
    assert!(second > first);
    assert_eq!(requests(&server), ["POST", "PUT"]);
    let changed = typical(1).tap(|record| record.epoch = 7);
    assert_eq!(secrets.put(&changed, Some(first), LONG).await, Err(RequestError::Conflict));
    assert_eq!(secrets.put(&changed, None, SHORT).await, Err(RequestError::Conflict));
    assert_eq!(secrets.delete("shop", &record.address, first, LONG).await, Err(RequestError::Conflict));
    assert_eq!(read(&secrets, &record).await, Some(record.clone()));
    secrets.delete("shop", &record.address, second, LONG).await.unwrap();
    secrets.delete("shop", &record.address, second, LONG).await.unwrap();
    assert_eq!(secrets.put(&changed, Some(second), LONG).await, Err(RequestError::Conflict));
    assert_eq!(read(&secrets, &record).await, None);
}

#[tokio::test(start_paused = true)]
async fn a_write_with_a_lost_response_succeeds() {
    let (server, client) = server();
    let (secrets, _stop) = secrets(client);
    let record = typical(1);
    faults(&server, &[Fault::LoseAnswer]);
    let first = secrets.put(&record, None, SHORT).await.unwrap();
    assert_eq!(requests(&server), ["POST", "POST", "GET"]);
    let changed = typical(1).tap(|record| record.epoch = 7);
    faults(&server, &[Fault::LoseAnswer, Fault::Code(503)]);
    let second = secrets.put(&changed, Some(first), LONG).await.unwrap();
    assert_eq!(requests(&server), ["PUT", "PUT", "PUT", "GET"]);
    faults(&server, &[Fault::LoseAnswer]);
    secrets.delete("shop", &record.address, second, LONG).await.unwrap();
    assert_eq!(requests(&server), ["DELETE", "DELETE"]);
}

#[tokio::test(start_paused = true)]
async fn transient_errors_are_retried() {
    let (server, client) = server();
    let (secrets, _stop) = secrets(client);
    faults(&server, &[Fault::CutBefore, Fault::Code(429), Fault::Code(500), Fault::Code(503), Fault::Code(401)]);
    secrets.put(&typical(1), None, SHORT).await.unwrap();
    assert_eq!(requests(&server).len(), 6);
}

#[tokio::test(start_paused = true)]
async fn bounded_retries_end_after_their_time_limit() {
    let (server, client) = server();
    let (secrets, _stop) = secrets(client);
    faults(&server, &[Fault::Code(503); 100]);
    let start = tokio::time::Instant::now();
    assert!(matches!(secrets.put(&typical(1), None, SHORT).await, Err(RequestError::Unavailable(_))));
    assert!(start.elapsed() <= Duration::from_secs(30));
    server.lock().unwrap().faults = [Fault::Code(403)].into();
    requests(&server);
    assert!(matches!(secrets.put(&typical(1), None, SHORT).await, Err(RequestError::Rejected(_))));
    assert_eq!(requests(&server).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn unlimited_retries_end_only_at_shutdown() {
    let (server, client) = server();
    let (secrets, stop) = secrets(client);
    let record = typical(1);
    let base = secrets.put(&record, None, SHORT).await.unwrap();
    faults(&server, &[Fault::Code(503); 60]);
    faults(&server, &[Fault::Code(403); 3]);
    let start = tokio::time::Instant::now();
    let base = secrets.put(&record, Some(base), LONG).await.unwrap();
    assert!(start.elapsed() > Duration::from_mins(5));
    faults(&server, &[Fault::Code(503); 60]);
    let (outcome, ()) = tokio::join!(secrets.put(&record, Some(base), LONG), async {
        tokio::time::sleep(Duration::from_secs(5)).await;
        stop.trigger();
    });
    assert!(matches!(outcome, Err(RequestError::Unavailable(_))));
}

#[tokio::test(start_paused = true)]
async fn a_large_record_is_stored_in_parts_and_old_parts_are_removed() {
    let (server, client) = server();
    let (secrets, _stop) = secrets(client);
    let (one, two) = (large(1), large(2));
    let first = secrets.put(&one, None, SHORT).await.unwrap();
    assert!(requests(&server).iter().all(|request| request == "POST"));
    let parts = |server: &SharedServer| server.lock().unwrap().objects.len() - 1;
    let of_one = parts(&server);
    assert!(of_one >= 2);
    assert_eq!(read(&secrets, &one).await.as_ref(), Some(&one));
    let second = secrets.put(&two, Some(first), LONG).await.unwrap();
    assert_eq!((parts(&server), read(&secrets, &two).await.as_ref()), (of_one, Some(&two)));
    let third = secrets.put(&typical(1), Some(second), LONG).await.unwrap();
    assert_eq!((parts(&server), read(&secrets, &one).await), (0, Some(typical(1))));
    let fourth = secrets.put(&one, Some(third), LONG).await.unwrap();
    secrets.delete("shop", &one.address, fourth, LONG).await.unwrap();
    assert!(server.lock().unwrap().objects.is_empty());
}

#[tokio::test(start_paused = true)]
async fn the_write_of_the_head_commits() {
    let (server, client) = server();
    let (secrets, _stop) = secrets(client);
    let base = secrets.put(&typical(1), None, SHORT).await.unwrap();
    faults(&server, &[Fault::None, Fault::Code(413)]);
    assert!(matches!(secrets.put(&large(1), Some(base), LONG).await, Err(RequestError::Rejected(_))));
    assert_eq!(read(&secrets, &typical(1)).await, Some(typical(1)));
    assert_eq!(server.lock().unwrap().objects.len(), 2);
    let base = secrets.put(&typical(1).tap(|record| record.epoch = 7), Some(base), LONG).await.unwrap();
    assert_eq!(server.lock().unwrap().objects.len(), 1, "the next write removes the remaining parts");
    secrets.put(&large(1), Some(base), LONG).await.unwrap();
    assert_eq!(secrets.sweep_parts(NOW).await, Ok(0));
}

const NOW: Timestamp = Timestamp::UNIX_EPOCH;

#[tokio::test(start_paused = true)]
async fn parts_whose_head_is_about_to_be_written_survive_the_sweep_of_another_replica() {
    for is_new in [true, false] {
        let (server, client) = server();
        let (writer, _stop) = secrets(client.clone());
        let (sweeper, _stop) = secrets(client);
        let base = match is_new {
            true => None,
            false => Some(writer.put(&typical(1), None, SHORT).await.unwrap()),
        };
        // The server accepts the parts, and is busy when the head is written.
        let parts = codec::encode(&large(1)).unwrap().len().div_ceil(shape::LARGEST);
        faults(&server, &vec![Fault::None; parts]);
        faults(&server, &[Fault::Code(503); 5]);
        let record = large(1);
        let (written, swept) = tokio::join!(writer.put(&record, base, SHORT), async {
            tokio::time::sleep(Duration::from_millis(200)).await;
            server.lock().unwrap().faults.clear();
            for part in server.lock().unwrap().objects.values_mut() {
                part["metadata"]["creationTimestamp"] = "1970-01-01T00:00:00Z".into();
            }
            sweeper.sweep_parts(NOW).await
        });
        written.unwrap();
        assert_eq!(swept, Ok(0));
        assert_eq!(read(&sweeper, &record).await, Some(record));
    }
}

#[tokio::test(start_paused = true)]
async fn parts_that_no_head_can_name_are_swept() {
    let (server, client) = server();
    let (crashed, _stop) = secrets(client.clone());
    let (next, _stop) = secrets(client);
    let base = crashed.put(&typical(1), None, SHORT).await.unwrap();
    faults(&server, &[Fault::None, Fault::Code(413)]);
    assert!(crashed.put(&large(1), Some(base), LONG).await.is_err());
    next.put(&typical(1).tap(|record| record.epoch = 7), Some(base), SHORT).await.unwrap();
    assert_eq!((next.sweep_parts(NOW).await, server.lock().unwrap().objects.len()), (Ok(1), 1));
    // Parts of a record that was never created.
    let (server, client) = testkit::secrets_server::server();
    let (crashed, _stop) = secrets(client);
    faults(&server, &[Fault::None, Fault::Code(413)]);
    assert!(crashed.put(&large(1), None, LONG).await.is_err());
    for part in server.lock().unwrap().objects.values_mut() {
        part["metadata"]["creationTimestamp"] = "1970-01-01T00:00:00Z".into();
    }
    assert_eq!(crashed.sweep_parts(NOW).await, Ok(0), "its head may still be written");
    assert_eq!(crashed.sweep_parts(NOW + jiff::SignedDuration::from_hours(25)).await, Ok(1));
}

#[tokio::test(start_paused = true)]
async fn an_unreadable_index_is_removed_without_its_record() {
    let (server, client) = server();
    let (secrets, _stop) = secrets(client);
    let record = typical(1);
    let (namespace, name) = (record.namespace.clone(), record.address.name().clone());
    secrets.put(&record, None, SHORT).await.unwrap();
    let instances = [record.address.clone()].into();
    let family = Family { namespace, name, uid: "u".into(), instances, rebuilt: false, version: None };
    secrets.put_family(&family, None, SHORT).await.unwrap();
    let index = server.lock().unwrap().objects.keys().find(|path| path.contains("-family-")).unwrap().clone();
    server.lock().unwrap().objects.get_mut(&index).unwrap()["data"]["family"] = "AAAA".into();
    let found = secrets.load_all(None).await.unwrap().into_iter().find_map(Result::err).unwrap();
    assert!(secrets.is_index(&found, SHORT).await.unwrap());
    secrets.delete_unreadable(&found, SHORT).await.unwrap();
    assert!(!server.lock().unwrap().objects.contains_key(&index));
    assert_eq!(read(&secrets, &record).await, Some(record));
}

#[tokio::test(start_paused = true)]
async fn damaged_and_missing_parts_are_reported() {
    let (server, client) = server();
    let (secrets, _stop) = secrets(client);
    let record = large(1);
    secrets.put(&record, None, SHORT).await.unwrap();
    let path = server.lock().unwrap().objects.keys().find(|path| path.ends_with("-1")).unwrap().clone();
    let part = server.lock().unwrap().objects[&path].clone();
    let message = async || secrets.load_all(None).await.unwrap().remove(0).unwrap_err().to_string();
    server.lock().unwrap().objects.get_mut(&path).unwrap()["data"]["part"] = "AAAA".into();
    expect_test::expect![
        "the record of resource-1 cannot be read: its parts are damaged (hint: restore it from a backup)"
    ]
    .assert_eq(&message().await);
    server.lock().unwrap().objects.remove(&path);
    expect_test::expect![
        "the record of resource-1 cannot be read: a part of it is missing (hint: restore it from a backup)"
    ]
    .assert_eq(&message().await);
    server.lock().unwrap().objects.insert(path, part);
    assert_eq!(read(&secrets, &record).await, Some(record));
}

#[test]
fn the_secret_of_a_record_has_labels_for_users() {
    let address = r#"web["a/b"]"#.parse().unwrap();
    let record = typical(1).tap(|record| record.address = address);
    let mut secret = shape::head(&record, vec![1, 2, 3]);
    secret.metadata.resource_version = Some("7".to_owned());
    expect_test::expect![[r#"
        {
          "apiVersion": "v1",
          "kind": "Secret",
          "data": {
            "record": "AQID"
          },
          "metadata": {
            "annotations": {
              "purlin.dev/address": "web[\"a/b\"]"
            },
            "labels": {
              "app.kubernetes.io/managed-by": "purlin",
              "purlin.dev/bucket": "13",
              "purlin.dev/namespace": "shop",
              "purlin.dev/record": "head",
              "purlin.dev/resource": "web"
            },
            "name": "purlin-record-057a3142fc0bad7f44d2726c4f545ae0",
            "resourceVersion": "7"
          },
          "type": "purlin.dev/record.v1"
        }"#]]
    .assert_eq(&serde_json::to_string_pretty(&secret).unwrap());
}

#[test]
fn a_secret_without_its_own_record_is_reported() {
    let message = |secret: &Secret| decode(secret, &mut Interner::default()).unwrap_err().to_string();
    let record = typical(1);
    let mut secret = shape::head(&record, codec::encode(&record).unwrap());
    assert!(message(&secret).contains("resourceVersion"));
    secret.metadata.resource_version = Some("7".to_owned());
    assert!(matches!(decode(&secret, &mut Interner::default()), Ok(SecretContent::Record(_))));
    let mut copy = secret.clone();
    copy.metadata.name = Some("copy".to_owned());
    expect_test::expect!["the record of resource-1 cannot be read: the Secret `copy` holds a copy of the record of resource-1 (hint: delete the copy)"].assert_eq(&message(&copy));
    secret.data = None;
    expect_test::expect!["the record of resource-1 cannot be read: the Secret `purlin-record-5e92e8dff8a5e2f75ca1d9edb463aad3` holds no record"].assert_eq(&message(&secret));
}

trait Tap: Sized {
    fn tap(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }
}

impl Tap for Record {}
