//! Requests to a provider and its responses, call by call.

use std::fs;

use purlin::cty::Value;
use purlin::plugin::{Deferred, DynamicValue, Identity, ImportResourceState, MoveResourceState, RawState};
use serde_json::json;

use super::corner::{Corner, Object};
use super::launch;

fn string(object: &Value, attribute: &str) -> String {
    object.get(attribute).and_then(Value::as_str).unwrap_or_else(|| panic!("{attribute} of {object:?}")).to_owned()
}

#[tokio::test]
async fn an_object_of_a_published_provider_is_created_updated_and_destroyed() {
    let random = Corner::with(launch("random"), json!({})).await;
    let made = random.create("random_integer", json!({"min": 5, "max": 5})).await;
    assert_eq!(made.state.get("result"), random.value("random_integer", json!({"result": 5})).get("result"));
    let config = random.value("random_integer", json!({"min": 6, "max": 6}));
    let planned = random.plan("random_integer", Some(&made), &config).await.unwrap();
    let paths: Vec<String> = planned.requires_replace.iter().map(|listed| listed.path.to_string()).collect();
    assert!(paths.contains(&"min".to_owned()), "{paths:?}");
    assert!(random.destroy("random_integer", &made).await.unwrap().state.is_null());
    random.client.close().await;
}

#[tokio::test]
async fn a_provider_with_the_old_sdk_accepts_the_same_messages() {
    let kafka = Corner::with(launch("kafka"), json!({"bootstrap_servers": ["localhost:9092"]})).await;
    let config = json!({"name": "orders", "partitions": 2, "replication_factor": 1});
    let planned = kafka.plan("kafka_topic", None, &kafka.value("kafka_topic", config)).await.unwrap();
    assert!(planned.legacy_type_system && planned.diagnostics.is_empty());
    assert!(!kafka.decoded("kafka_topic", &planned.state).get("id").unwrap().is_known());
    kafka.client.close().await;
}

#[tokio::test]
async fn a_provider_with_the_old_sdk_responds_as_documented() {
    let legacy = Corner::with(launch("legacy"), json!({})).await;
    let given = json!({
        "name": "a", "casing": "MiXed", "one": [{"key": "k", "value": null, "port": null}], "many": [], "unordered": [],
    });
    let config = legacy.value("legacy_thing", given.clone());
    let planned = legacy.plan("legacy_thing", None, &config).await.unwrap();
    assert!(planned.legacy_type_system);
    let made = legacy.create("legacy_thing", given).await;
    assert_eq!(string(&made.state, "casing"), "mixed", "the provider changes the configured value");
    assert!(String::from_utf8_lossy(&made.private).contains("schema_version"));
    let seen = legacy.read("legacy_thing", &made).await.unwrap();
    assert_eq!(seen.private, made.private);

    let old = RawState::new(r#"{"id":"1","label":"old"}"#);
    let upgraded = legacy.client.upgrade_resource_state("legacy_thing", 0, old).await.unwrap();
    assert_eq!(string(&legacy.decoded("legacy_thing", &upgraded.state), "name"), "old");

    let error = legacy.change("legacy_trouble", None, json!({"on_create": "panic"})).await.unwrap_err().to_string();
    assert!(
        error.contains("panic: the provider panics as asked (at purlin.dev/purlin/tests/providers/legacy/"),
        "{error}"
    );
    assert_eq!(legacy.objects(), 2);
}

#[tokio::test]
async fn every_kind_of_attribute_is_transferred() {
    let corner = Corner::start().await;
    let given = json!({
        "name": "a", "text": "t", "amount": 12_345_678_901_234_567_890_u64, "tags": {"x": "y"}, "names": ["b", "a"],
        "any": {"type": "string", "value": "free"}, "password": "hunter2", "secret_wo": "sesame",
        "one": {"key": "k", "value": null, "made": null}, "many": [{"key": "k", "value": "v", "made": null}],
        "unordered": [{"key": "k", "value": "v", "made": null}], "by_key": {"z": {"key": "k", "value": "v", "made": null}},
        "rule": [{"key": "k", "value": "v", "made": null}],
    });
    let config = corner.value("corner_thing", given.clone());
    let planned = corner.plan("corner_thing", None, &config).await.unwrap();
    assert!(!corner.decoded("corner_thing", &planned.state).get("id").unwrap().is_known());
    let made = corner.create("corner_thing", given).await.state;
    assert!(made.is_wholly_known());
    assert_eq!(string(&made, "id").len(), 16);
    for attribute in ["text", "amount", "tags", "names", "any", "password"] {
        assert_eq!(made.get(attribute), config.get(attribute), "{attribute}");
    }
    assert!(made.get("secret_wo").unwrap().is_null(), "write-only attributes are not returned");
    assert_eq!(
        made.get("secret_length"),
        corner.value("corner_thing", json!({"secret_length": 6})).get("secret_length")
    );
    assert_eq!(string(made.get("one").unwrap(), "made"), "made");
    corner.client.close().await;
}

#[tokio::test]
async fn attributes_that_force_a_replacement_are_returned() {
    let corner = Corner::start().await;
    let made = corner.create("corner_thing", json!({"name": "a", "rule": []})).await;
    let config = corner.value("corner_thing", json!({"name": "b", "rule": []}));
    let planned = corner.plan("corner_thing", Some(&made), &config).await.unwrap();
    let paths: Vec<String> = planned.requires_replace.iter().map(|listed| listed.path.to_string()).collect();
    assert_eq!(paths, ["name"]);
    corner.client.close().await;
}

#[tokio::test]
async fn private_data_is_passed_from_call_to_call() {
    let corner = Corner::start().await;
    let mut made = corner.create("corner_counted", json!({"text": "a"})).await;
    for text in ["b", "c"] {
        let applied = corner.change("corner_counted", Some(&made), json!({"text": text})).await.unwrap();
        made = corner.object("corner_counted", applied);
    }
    let expected = corner.value("corner_counted", json!({"text": "c", "updates": 2}));
    assert_eq!(made.state, expected);
    made.private = Vec::new();
    let applied = corner.change("corner_counted", Some(&made), json!({"text": "d"})).await.unwrap();
    assert_eq!(applied.diagnostics[0].summary, "The private data are lost");
    corner.client.close().await;
}

#[tokio::test]
async fn a_read_returns_changes_of_another_client() {
    let corner = Corner::start().await;
    let made = corner.create("corner_thing", json!({"name": "a", "text": "t", "rule": []})).await;
    let file = corner.directory_path().join(string(&made.state, "id"));
    fs::write(&file, "changed").unwrap();
    let seen = corner.read("corner_thing", &made).await.unwrap();
    assert_eq!(string(&corner.decoded("corner_thing", &seen.state), "text"), "changed");
    fs::remove_file(&file).unwrap();
    assert!(corner.read("corner_thing", &made).await.unwrap().state.is_null());
    corner.client.close().await;
}

#[tokio::test]
async fn an_object_is_imported_by_id_and_by_identity() {
    let corner = Corner::start().await;
    let (schemas, _) = corner.client.identity_schemas().await.unwrap().unwrap();
    let schema = &schemas["corner_identified"];
    assert_eq!(schema.version, 1);
    assert!(schema.attributes.iter().any(|attribute| attribute.name == "name" && attribute.required_for_import));

    let made = corner.create("corner_identified", json!({"region": "north", "name": "x"})).await;
    let identity = made.identity.clone().unwrap();
    assert_eq!(identity, made_identity("north", "x"));
    let by_identity = ImportResourceState { identity: Some(identity), ..<_>::default() };
    let by_id = ImportResourceState { id: "x".into(), ..<_>::default() };
    for (request, id) in [(by_identity, "north-x"), (by_id, "home-x")] {
        let request = ImportResourceState { type_name: "corner_identified".into(), ..request };
        let found = corner.client.import_resource_state(request).await.unwrap();
        assert!(found.diagnostics.is_empty(), "{:?}", found.diagnostics);
        assert_eq!(found.objects.len(), 1);
        let state = corner.decoded("corner_identified", &found.objects[0].state);
        assert_eq!(string(&state, "id"), id);
        let found = Object { state, private: found.objects[0].private.clone(), identity: None };
        let seen = corner.read("corner_identified", &found).await.unwrap();
        assert_eq!(seen.state.is_null(), id != "north-x", "only one exists");
    }
    corner.client.close().await;
}

fn made_identity(region: &str, name: &str) -> Identity {
    let mut bytes = vec![0x82];
    for text in ["name", name, "region", region] {
        bytes.push(0xa0 | u8::try_from(text.len()).unwrap());
        bytes.extend_from_slice(text.as_bytes());
    }
    Identity { data: Some(DynamicValue::encoded(bytes)) }
}

#[tokio::test]
async fn old_states_and_identities_are_upgraded() {
    let corner = Corner::start().await;
    let old = RawState::new(r#"{"id":"1","label":"old"}"#);
    let upgraded = corner.client.upgrade_resource_state("corner_versioned", 0, old).await.unwrap();
    let expected = corner.value("corner_versioned", json!({"id": "1", "title": "old"}));
    assert_eq!(corner.decoded("corner_versioned", &upgraded.state), expected);

    let identity = RawState::new(r#"{"name":"x"}"#);
    let upgraded = corner.client.upgrade_resource_identity("corner_identified", 0, identity).await.unwrap().unwrap();
    assert_eq!(upgraded.identity, Some(made_identity("home", "x")));

    let request = MoveResourceState {
        source_provider: "registry.opentofu.org/purlin/corner".into(),
        source_type: "corner_thing".into(),
        source_state: RawState::new(r#"{"id":"2","name":"moved"}"#),
        target_type: "corner_versioned".into(),
        ..MoveResourceState::default()
    };
    let moved = corner.client.move_resource_state(request).await.unwrap().unwrap();
    let expected = corner.value("corner_versioned", json!({"id": "2", "title": "moved"}));
    assert_eq!(corner.decoded("corner_versioned", &moved.state), expected);
    corner.client.close().await;
}

#[tokio::test]
async fn a_provider_defers_only_if_allowed() {
    let mut patient = launch("corner");
    patient.deferral_allowed = true;
    for (launch, allowed) in [(patient, true), (launch("corner"), false)] {
        let corner = Corner::with(launch, json!({})).await;
        let config = corner.value("corner_deferred", json!({"needs": "x"}));
        let planned = corner.plan("corner_deferred", None, &config).await.unwrap();
        assert_eq!(planned.deferred, allowed.then_some(Deferred { reason: 3 }));
        let paths: Vec<_> = planned.diagnostics.iter().map(|said| said.path().unwrap().to_string()).collect();
        assert_eq!(paths, if allowed { vec![] } else { vec!["needs"] });
        corner.client.close().await;
    }
}

#[tokio::test]
async fn a_data_source_is_read() {
    let corner = Corner::start().await;
    fs::write(corner.directory_path().join("x"), "found").unwrap();
    let config = |id: &str| corner.encoded("corner_lookup", &corner.value("corner_lookup", json!({"id": id})));
    assert_eq!(corner.client.validate_data_source_config("corner_lookup", config("x")).await.unwrap(), []);
    let answer = corner.client.read_data_source("corner_lookup", config("x")).await.unwrap();
    assert_eq!(string(&corner.decoded("corner_lookup", &answer.state), "text"), "found");
    let answer = corner.client.read_data_source("corner_lookup", config("y")).await.unwrap();
    assert_eq!(answer.diagnostics[0].path().unwrap().to_string(), "id");
    corner.client.close().await;
}

#[tokio::test]
async fn a_missing_optional_method_is_allowed() {
    let kafka = Corner::with(launch("kafka"), json!({"bootstrap_servers": ["localhost:9092"]})).await;
    let null = DynamicValue::null();
    assert_eq!(kafka.client.generate_resource_config("kafka_topic", null).await.unwrap(), None);
    kafka.client.close().await;
}
