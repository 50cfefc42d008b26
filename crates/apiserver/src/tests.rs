//! Tests of the network, and of behavior that the comparison with the real server does not cover.

use std::time::Duration;

use futures::StreamExt as _;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::Api;
use kube::api::{ListParams, PostParams};
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, watcher};

use super::*;

const SHOP: &str = "/api/v1/namespaces/shop/configmaps";

fn cluster(network: impl Network + 'static) -> Cluster {
    let cluster = Cluster::new(Timestamp::from_second(1_800_000_000).unwrap(), network);
    let shop = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}});
    cluster.with(|server, now| server.insert(now, shop));
    cluster
}

fn config_map(name: &str, data: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "shop"}, "data": {"a": data}})
}

fn typed(name: &str) -> ConfigMap {
    serde_json::from_value(config_map(name, "1")).unwrap()
}

/// `0` determines the fate of each request, and `1` the fate of each event.
struct FateNetwork<R, W>(R, W);

impl<R, W> Network for FateNetwork<R, W>
where
    R: FnMut(&RequestInfo) -> Fate + Send,
    W: FnMut(u64) -> WatchFate + Send,
{
    fn request(&mut self, _: &str, request: &RequestInfo) -> Fate {
        self.0(request)
    }

    fn watch_event(&mut self, _: &str, _: &RequestInfo, event_no: u64) -> WatchFate {
        self.1(event_no)
    }
}

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn at_once(_: u64) -> WatchFate {
    WatchFate::Deliver(Duration::ZERO)
}

/// Returns the events of a watch until `end` has passed, as text.
async fn watched(cluster: &Cluster, config: watcher::Config, end: Duration) -> Vec<String> {
    let api: Api<ConfigMap> = Api::namespaced(cluster.client("watcher"), "shop");
    let mut stream = std::pin::pin!(watcher(api, config).default_backoff());
    let mut seen = Vec::new();
    let watching = async {
        while let Some(event) = stream.next().await {
            seen.push(match event {
                Ok(watcher::Event::Init) => "init".to_owned(),
                Ok(watcher::Event::InitDone) => "done".to_owned(),
                Ok(watcher::Event::InitApply(object)) => format!("has {}", summary(&object)),
                Ok(watcher::Event::Apply(object)) => format!("+ {}", summary(&object)),
                Ok(watcher::Event::Delete(object)) => format!("- {}", summary(&object)),
                Err(watcher::Error::WatchError(status)) => format!("error {}", status.code),
                Err(_) => "cut".to_owned(),
            });
        }
    };
    let _ = tokio::time::timeout(end, watching).await;
    seen
}

fn summary(object: &ConfigMap) -> String {
    let data = object.data.clone().unwrap_or_default();
    format!("{}={}", object.metadata.name.clone().unwrap(), data.into_values().collect::<String>())
}

/// The names of the ConfigMaps.
fn config_maps(cluster: &Cluster) -> Vec<String> {
    cluster.with(|server, _| server.objects("", "configmaps").map(|object| object.name().to_owned()).collect())
}

/// Creates and changes objects at fixed times.
async fn act(cluster: &Cluster) {
    let name = |name: &str| format!("{SHOP}/{name}");
    tokio::time::sleep(millis(100)).await;
    cluster.with(|server, now| {
        server.insert(now, config_map("a", "1"));
        server.modify(now, &name("a"), &json!({"data": {"a": "2"}}));
        server.insert(now, config_map("b", "1"));
        server.erase(now, &name("b"));
    });
    tokio::time::sleep(millis(100)).await;
    cluster.with(|server, now| {
        server.modify(now, &name("a"), &json!({"data": {"a": "3"}}));
    });
}

#[tokio::test(start_paused = true)]
async fn a_watch_delivers_all_events_in_order() {
    let cluster = cluster(NoFaults);
    cluster.with(|server, now| server.insert(now, config_map("old", "1")));
    let (seen, ()) = tokio::join!(watched(&cluster, watcher::Config::default(), millis(1000)), act(&cluster));
    assert_eq!(seen, ["init", "has old=1", "done", "+ a=1", "+ a=2", "+ b=1", "- b=1", "+ a=3"]);
}

#[test]
fn two_runs_are_identical() {
    let first = tape_of_run();
    assert!(first.len() > 5, "{first:?}");
    assert_eq!(first, tape_of_run());
}

fn tape_of_run() -> Vec<String> {
    let builder = &mut tokio::runtime::Builder::new_current_thread();
    builder.enable_time().start_paused(true).build().unwrap().block_on(async {
        let cluster = cluster(NoFaults);
        tokio::join!(watched(&cluster, watcher::Config::default(), millis(1000)), act(&cluster));
        cluster.tape()
    })
}

#[tokio::test(start_paused = true)]
async fn coalesced_events_have_only_the_last_state() {
    let cluster = cluster(FateNetwork(
        |_: &RequestInfo| Fate::quick(),
        |event| if event == 1 { WatchFate::Coalesce(millis(50)) } else { at_once(event) },
    ));
    let (seen, ()) = tokio::join!(watched(&cluster, watcher::Config::default(), millis(1000)), act(&cluster));
    assert_eq!(seen, ["init", "done", "+ a=2", "+ b=1", "- b=1", "+ a=3"]);
}

#[tokio::test(start_paused = true)]
async fn a_watch_continues_after_its_stream_ended_or_was_reset() {
    for (fate, error) in [(WatchFate::End, None), (WatchFate::Reset, Some("cut"))] {
        let end = move |event| if event == 2 { fate.clone() } else { at_once(event) };
        let cluster = cluster(FateNetwork(|_: &RequestInfo| Fate::quick(), end));
        let (seen, ()) = tokio::join!(watched(&cluster, watcher::Config::default(), millis(300_000)), act(&cluster));
        let seen: Vec<_> = seen.into_iter().filter(|event| Some(event.as_str()) != error).collect();
        // Each stream ends at its second event, so it delivers one.
        assert_eq!(seen, ["init", "done", "+ a=1", "+ a=2", "+ b=1", "- b=1", "+ a=3"]);
    }
}

#[tokio::test(start_paused = true)]
async fn an_expired_version_starts_a_new_list() {
    let cluster = cluster(FateNetwork(
        |_: &RequestInfo| Fate::quick(),
        |event| if event == 2 { WatchFate::Expired } else { at_once(event) },
    ));
    let (seen, ()) = tokio::join!(watched(&cluster, watcher::Config::default(), millis(30_000)), act(&cluster));
    assert_eq!(&seen[..6], ["init", "done", "+ a=1", "error 410", "init", "has a=3"]);
}

#[tokio::test(start_paused = true)]
async fn a_watch_after_a_list_of_an_old_version_delivers_later_changes() {
    let past = |seen: &RequestInfo| match seen.verb {
        Verb::List => Fate { outcome: Outcome::ListAt(seen.version - 2), ..Fate::quick() },
        _ => Fate::quick(),
    };
    let cluster = cluster(FateNetwork(past, at_once));
    cluster.with(|server, now| {
        server.insert(now, config_map("a", "1"));
        server.insert(now, config_map("b", "1"));
        server.erase(now, &format!("{SHOP}/a"));
    });
    let seen = watched(&cluster, watcher::Config::default(), millis(100)).await;
    assert_eq!(seen, ["init", "has a=1", "done", "+ b=1", "- a=1"]);
    cluster.with(|server, now| {
        server.insert(now, config_map("c", "1"));
        server.compact(server.version());
        server.insert(now, config_map("d", "1"));
    });
    let api: Api<ConfigMap> = Api::namespaced(cluster.client("other"), "shop");
    let gone = api.list(&ListParams::default()).await.unwrap_err();
    assert!(matches!(gone, kube::Error::Api(status) if status.code == 410));
}

#[tokio::test(start_paused = true)]
async fn a_lost_request_has_no_effect_but_one_with_a_lost_answer_has() {
    let lose = |seen: &RequestInfo| {
        let outcome = if seen.index == 1 { Outcome::LoseRequest } else { Outcome::LoseAnswer };
        Fate { outcome, ..Fate::quick() }
    };
    let cluster = cluster(FateNetwork(lose, at_once));
    let api: Api<ConfigMap> = Api::namespaced(cluster.client("a1"), "shop");
    assert!(matches!(api.create(&PostParams::default(), &typed("a")).await, Err(kube::Error::Service(_))));
    assert!(config_maps(&cluster).is_empty());
    assert!(matches!(api.create(&PostParams::default(), &typed("a")).await, Err(kube::Error::Service(_))));
    assert_eq!(config_maps(&cluster), ["a"]);
    let tape = cluster.tape().join("\n");
    assert!(tape.ends_with("a1 CREATE configmaps/shop -> 201 rv=100012 (answer lost)"), "{tape}");
}

#[tokio::test(start_paused = true)]
async fn a_dropped_request_arrives_unless_the_client_disconnects() {
    let cluster = cluster(FateNetwork(|_: &RequestInfo| Fate { before: millis(500), ..Fate::quick() }, at_once));
    let api: Api<ConfigMap> = Api::namespaced(cluster.client("a1"), "shop");
    let params = PostParams::default();
    assert!(tokio::time::timeout(millis(100), api.create(&params, &typed("late"))).await.is_err());
    tokio::time::sleep(millis(1000)).await;
    assert_eq!(config_maps(&cluster), ["late"]);
    let object = typed("never");
    let creating = api.create(&params, &object);
    let (created, ()) = tokio::join!(creating, async {
        tokio::time::sleep(millis(200)).await;
        cluster.disconnect("a1");
    });
    assert!(created.is_err());
    tokio::time::sleep(millis(1000)).await;
    assert_eq!(config_maps(&cluster), ["late"]);
    assert!(api.get("late").await.is_err(), "the client is disconnected");
}

#[tokio::test(start_paused = true)]
async fn an_error_has_retry_after_seconds() {
    let refuse = |_: &RequestInfo| {
        let (reason, message) = ("TooManyRequests".to_owned(), "slow down".to_owned());
        Fate { outcome: Outcome::Refuse { code: 429, reason, message, retry_after: Some(3) }, ..Fate::quick() }
    };
    let cluster = cluster(FateNetwork(refuse, at_once));
    let api: Api<Secret> = Api::namespaced(cluster.client("a1"), "shop");
    let Err(kube::Error::Api(status)) = api.get("a").await else { panic!("the request succeeds") };
    assert_eq!((status.code, status.details.unwrap().retry_after_seconds), (429, 3));
}

#[tokio::test(start_paused = true)]
async fn a_service_account_loses_its_permissions_with_its_role() {
    let cluster = cluster(NoFaults);
    let rbac = "rbac.authorization.k8s.io";
    let create = |kind: &str, more: Value| {
        let mut object = json!({"apiVersion": format!("{rbac}/v1"), "kind": kind, "metadata": {"name": "edit", "namespace": "shop"}});
        object.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        cluster.with(|server, now| server.insert(now, object));
    };
    create("Role", json!({"rules": []}));
    let subjects = json!([{"kind": "ServiceAccount", "name": "default", "namespace": "shop"}]);
    create("RoleBinding", json!({"roleRef": {"kind": "Role", "name": "edit"}, "subjects": subjects}));
    let may = || {
        cluster.with(|server, now| {
            server.access.need_bindings(true);
            let request = Request::get(SHOP).header("Impersonate-User", "system:serviceaccount:shop:default");
            let ServerResponse::Full(answer) = server.respond(now, &request.body(Bytes::new()).unwrap()) else {
                panic!()
            };
            (answer.status().as_u16(), String::from_utf8(answer.body().to_vec()).unwrap())
        })
    };
    assert_eq!(may().0, 200);
    cluster.with(|server, now| server.erase(now, "/apis/rbac.authorization.k8s.io/v1/namespaces/shop/roles/edit"));
    let (code, text) = may();
    assert_eq!(code, 403);
    let words = "User \\\"system:serviceaccount:shop:default\\\" cannot list resource \\\"configmaps\\\" in API group";
    assert!(text.contains(words), "{text}");
}

#[tokio::test(start_paused = true)]
async fn a_namespace_is_removed_after_its_content() {
    let cluster = cluster(NoFaults);
    let path = "/apis/purlin.dev/v1alpha1/namespaces/shop/resources/web";
    cluster.with(|server, now| {
        server.insert(now, config_map("a", "1"));
        server.insert(
            now,
            json!({"apiVersion": "purlin.dev/v1alpha1", "kind": "Resource", "spec": {"type": "terraform_data"},
                "metadata": {"name": "web", "namespace": "shop", "finalizers": ["purlin.dev/destroy"]}}),
        );
        assert!(server.erase(now, "/api/v1/namespaces/shop"));
        while server.tick_namespaces(now, 1, |_| {}) {}
        let left: Vec<_> = server.contents("shop").iter().map(|object| object.name().to_owned()).collect();
        assert_eq!(left, ["web"]);
        assert!(server.object("purlin.dev", "resources", "shop", "web").unwrap().is_deleting());
        server.force_finalizers(now, path);
        assert!(server.tick_namespaces(now, 1, |_| {}));
        assert!(server.object("", "namespaces", "", "shop").is_none());
    });
}

#[test]
fn every_write_adds_one_change() {
    const OBJECTS: u64 = 2000;
    let now = Timestamp::from_second(1_800_000_000).unwrap();
    let mut server = Server::new(now);
    server.insert(now, json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}));
    let before = server.version();
    let resources = "/apis/purlin.dev/v1alpha1/namespaces/shop/resources";
    for number in 0..OBJECTS {
        let name = format!("r{number}");
        server.insert(
            now,
            json!({"apiVersion": "purlin.dev/v1alpha1", "kind": "Resource", "spec": {"type": "terraform_data"},
                "metadata": {"name": name, "namespace": "shop"}}),
        );
        let patch = json!([{"op": "add", "path": "/status", "value": {"observedGeneration": 1}}]);
        let path = format!("{resources}/{name}/status");
        server.send(now, &http::Method::PATCH, &path, "application/json-patch+json", &patch).unwrap();
        assert!(server.object("purlin.dev", "resources", "shop", &name).is_some());
    }
    assert_eq!(server.version(), before + 2 * OBJECTS);
    assert_eq!(server.changes(before).count() as u64, 2 * OBJECTS);
}
