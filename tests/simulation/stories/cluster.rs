//! Objects in the cluster, of the type `kubernetes_object`.

use std::time::Duration;

use serde_json::{Value, json};

use super::play::{Play, config_map, plain, thing};

/// A spec with this manifest.
fn object(manifest: &Value, more: &Value) -> Value {
    let mut spec =
        json!({ "type": "kubernetes_object", "config": { "manifest": manifest }, "timeouts": { "create": "1m" } });
    for (name, field) in more.as_object().into_iter().flatten() {
        spec[name] = field.clone();
    }
    spec
}

/// A `ConfigMap` with a fixed name.
pub(super) fn site(text: &str) -> Value {
    let metadata = json!({ "name": "site" });
    object(
        &json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": { "text": text } }),
        &Value::Null,
    )
}

/// A `ConfigMap` with this metadata.
fn named(metadata: &Value, text: &str) -> Value {
    object(
        &json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": { "text": text } }),
        &Value::Null,
    )
}

/// An immutable `ConfigMap` whose generated name begins with `site-`.
fn fixed(text: &str, create_first: bool) -> Value {
    let metadata = json!({ "generateName": "site-" });
    let data = json!({ "text": text });
    let manifest =
        json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "immutable": true, "data": data });
    object(&manifest, &json!({ "lifecycle": { "createBeforeDestroy": create_first } }))
}

/// A spec that references the UID of the object `a`.
fn behind() -> Value {
    thing("${a.id}", "f0", Value::Null)
}

pub(super) async fn object_created(play: &Play) {
    play.empty().await;
    play.apply("a", &fixed("v0", false));
    play.apply("b", &behind());
    play.ends(&["a ConfigMap site-* text=v0", "b ->a f0"]).await;
}

pub(super) async fn object_updated(play: &Play) {
    play.apply("a", &site("v0"));
    play.apply("b", &thing("${a.object.data.text}", "f0", Value::Null));
    play.given().await;
    play.apply("a", &site("v1"));
    play.ends(&["a ConfigMap site text=v1", "b v1 f0"]).await;
}

/// The server rejects an update of the object, so it is replaced.
pub(super) async fn object_replaced_destroy_first(play: &Play) {
    play.apply("a", &fixed("v0", false));
    play.apply("b", &behind());
    play.given().await;
    play.apply("a", &fixed("v1", false));
    play.ends(&["a ConfigMap site-* text=v1", "b ->a f0"]).await;
}

pub(super) async fn object_replaced_create_first(play: &Play) {
    play.apply("a", &fixed("v0", true));
    play.apply("b", &behind());
    play.given().await;
    play.apply("a", &fixed("v1", true));
    play.ends(&["a ConfigMap site-* text=v1", "b ->a f0"]).await;
}

pub(super) async fn object_deleted(play: &Play) {
    play.apply("a", &site("v0"));
    play.apply("b", &behind());
    play.given().await;
    play.delete("a");
    play.delete("b");
    play.ends(&[]).await;
}

/// Another client changes the object. Purlin watches it, so no user has to request a reconciliation.
pub(super) async fn object_put_right(play: &Play) {
    play.apply("a", &site("v0"));
    play.given().await;
    play.change("a", &json!({ "data": { "text": "v9" } }));
    play.until("the change is reverted", || {
        play.cluster_object("a").is_some_and(|one| one.value["data"]["text"] == "v0")
    })
    .await;
    play.ends(&["a ConfigMap site text=v0"]).await;
}

pub(super) async fn object_lost(play: &Play) {
    play.apply("a", &site("v0"));
    play.apply("b", &behind());
    play.given().await;
    play.remove("a");
    play.until("the object exists again", || play.cluster_object("a").is_some()).await;
    play.ends(&["a ConfigMap site text=v0", "b ->a f0"]).await;
}

/// Another client has created an object with this name. Purlin leaves it alone, and creates its own after it is
/// deleted.
pub(super) async fn object_in_the_way(play: &Play) {
    play.write("v1", "ConfigMap", "site", &json!({ "data": { "text": "theirs", "own": "yes" } }));
    play.empty().await;
    play.apply("a", &site("v0"));
    play.until_says("a", "Ready", "AlreadyExists").await;
    let theirs = play.delete_object("v1", "ConfigMap", "site");
    if theirs["data"] != json!({ "text": "theirs", "own": "yes" }) {
        play.env.judge.object(&format!("Purlin has changed the object of another client: {theirs}"));
    }
    play.annotate("a", "purlin.dev/reconcile-requested-at", "now");
    play.ends(&["a ConfigMap site text=v0"]).await;
}

/// An object would get a name that another client's object has, then a namespace that does not exist. It is not
/// destroyed for that.
pub(super) async fn object_kept_for_an_impossible_one(play: &Play) {
    play.write("v1", "ConfigMap", "taken", &json!({ "data": { "text": "theirs" } }));
    play.apply("a", &site("v0"));
    play.apply("b", &behind());
    play.given().await;
    let before = play.cluster_object("a").map(|object| object.uid().to_owned());
    play.apply("a", &named(&json!({ "name": "taken" }), "v0"));
    play.until_says("a", "Ready", "AlreadyExists").await;
    play.apply("a", &named(&json!({ "name": "site", "namespace": "missing" }), "v0"));
    play.until_says("a", "Ready", "OperationFailed").await;
    if play.cluster_object("a").map(|object| object.uid().to_owned()) != before {
        play.env.judge.object("Purlin has destroyed an object for one that cannot be created");
    }
    play.apply("a", &site("v1"));
    play.ends(&["a ConfigMap site text=v1", "b ->a f0"]).await;
}

/// Each object takes the name of the next one, and is planned before the change of that one is known. It is planned again
/// as soon as the name is free, and not only after a back-off.
pub(super) async fn names_move_down_a_chain(play: &Play) {
    let names = ["one", "two", "three", "four"];
    ["a", "b", "c"].iter().zip(names).for_each(|(resource, name)| play.apply(resource, &config_map(name)));
    play.given().await;
    for (resource, name) in ["a", "b", "c"].iter().zip(&names[1..]) {
        play.apply(resource, &config_map(name));
        play.pass(Duration::from_millis(30)).await;
    }
    let began = tokio::time::Instant::now();
    play.until_up_to_date().await;
    if !play.is_disturbed && began.elapsed() > Duration::from_secs(1) {
        play.env.judge.object(&format!("the names are free after {:?}", began.elapsed()));
    }
    play.ends(&["a ConfigMap two a=b", "b ConfigMap three a=b", "c ConfigMap four a=b"]).await;
}

/// Two objects exchange their names, one after the other. Both say so, and a third name opens the circle, as the hint says.
pub(super) async fn names_go_round_in_a_circle(play: &Play) {
    play.apply("a", &config_map("one"));
    play.apply("b", &config_map("two"));
    play.given().await;
    play.apply("a", &config_map("two"));
    play.until_says("a", "Ready", "AlreadyExists").await;
    play.apply("b", &config_map("one"));
    play.until_says("a", "Ready", "NameCycle").await;
    play.until_says("b", "Ready", "NameCycle").await;
    play.apply("b", &config_map("three"));
    play.until_up_to_date().await;
    play.apply("b", &config_map("one"));
    play.ends(&["a ConfigMap two a=b", "b ConfigMap one a=b"]).await;
}

/// A Resource is renamed without a move. Its object stays until the new Resource no longer claims it.
pub(super) async fn object_of_a_renamed_resource(play: &Play) {
    play.apply("a", &site("v0"));
    play.given().await;
    let before = play.cluster_object("a").map(|object| object.uid().to_owned());
    play.apply("b", &site("v0"));
    play.until_says("b", "Ready", "AlreadyExists").await;
    play.delete("a");
    play.until_says("a", "DeletionBlocked", "IdentityConflict").await;
    if play.cluster_object("a").map(|object| object.uid().to_owned()) != before {
        play.env.judge.object("Purlin has destroyed the object of a renamed Resource");
    }
    play.delete("b");
    play.ends(&[]).await;
}

/// The namespace controller deletes the object while Purlin destroys it.
pub(super) async fn objects_namespace_deleted(play: &Play) {
    play.apply("a", &site("v0"));
    play.apply("b", &behind());
    play.given().await;
    play.delete_namespace().await;
    play.ends(&[]).await;
}

/// A Deployment that may take this long to become ready.
pub(super) fn web(image: &str, timeout: &str) -> Value {
    let labels = json!({ "app": "web" });
    object(
        &json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "web" },
            "spec": {
                "replicas": 2, "selector": { "matchLabels": labels },
                "template": {
                    "metadata": { "labels": labels }, "spec": { "containers": [{ "name": "web", "image": image }] },
                },
            },
        }),
        &json!({ "timeouts": { "create": timeout } }),
    )
}

/// A Deployment is ready when its Pods run, and again after an update.
pub(super) async fn deployment_becomes_ready(play: &Play) {
    play.empty().await;
    for image in ["web:1", "web:2"] {
        play.apply("a", &web(image, "1m"));
        let has_image = |one: std::sync::Arc<apiserver::Object>| {
            one.value.pointer("/spec/template/spec/containers/0/image").is_some_and(|found| found == image)
        };
        play.until("the Deployment exists", || play.cluster_object("a").is_some_and(has_image)).await;
        play.until_says("a", "Ready", "False").await;
        play.pass(Duration::from_secs(5)).await;
        play.run_pods("a");
        play.until_up_to_date().await;
    }
    play.ends(&["a Deployment web image=web:2"]).await;
}

/// An upgrade: while no process runs, users change and delete Resources, and another client changes an object. The new
/// process finds records and annotations of the previous one.
pub(super) async fn upgraded(play: &Play) {
    play.apply("a", &site("v0"));
    play.apply("b", &fixed("v0", true));
    play.apply("c", &thing("${b.id}", "f0", Value::Null));
    play.apply("d", &plain("v0", "f0"));
    play.given().await;
    play.stop().await;
    play.change("a", &json!({ "data": { "text": "v9" } }));
    play.apply("b", &fixed("v1", true));
    play.delete("d");
    play.start();
    play.until("the change of a is reverted", || {
        play.cluster_object("a").is_some_and(|one| one.value["data"]["text"] == "v0")
    })
    .await;
    play.ends(&["a ConfigMap site text=v0", "b ConfigMap site-* text=v1", "c ->b f0"]).await;
}
