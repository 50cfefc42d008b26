//! What the network does, and what the comparison with the real server cannot show.

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

/// Does with each request what `0` says, and with each event what `1` says.
struct Told<R, W>(R, W);

impl<R, W> Network for Told<R, W>
where
    R: FnMut(&Seen) -> Fate + Send,
    W: FnMut(u64) -> WatchFate + Send,
{
    fn request(&mut self, _: &str, request: &Seen) -> Fate {
        self.0(request)
    }

    fn watch_event(&mut self, _: &str, _: &Seen, event_no: u64) -> WatchFate {
        self.1(event_no)
    }
}

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn at_once(_: u64) -> WatchFate {
    WatchFate::Deliver(Duration::ZERO)
}

/// Describes the events of a watch until `end` has passed.
async fn watched(cluster: &Cluster, config: watcher::Config, end: Duration) -> Vec<String> {
    let api: Api<ConfigMap> = Api::namespaced(cluster.client("watcher"), "shop");
    let mut stream = std::pin::pin!(watcher(api, config).default_backoff());
    let mut seen = Vec::new();
    let watching = async {
        while let Some(event) = stream.next().await {
            seen.push(match event {
                Ok(watcher::Event::Init) => "init".to_owned(),
                Ok(watcher::Event::InitDone) => "done".to_owned(),
                Ok(watcher::Event::InitApply(object)) => format!("has {}", told(&object)),
                Ok(watcher::Event::Apply(object)) => format!("+ {}", told(&object)),
                Ok(watcher::Event::Delete(object)) => format!("- {}", told(&object)),
                Err(watcher::Error::WatchError(status)) => format!("error {}", status.code),
                Err(_) => "cut".to_owned(),
            });
        }
    };
    let _ = tokio::time::timeout(end, watching).await;
    seen
}

fn told(object: &ConfigMap) -> String {
    let data = object.data.clone().unwrap_or_default();
    format!("{}={}", object.metadata.name.clone().unwrap(), data.into_values().collect::<String>())
}

/// Makes and changes objects at these times.
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
async fn a_watch_tells_all_that_happens_in_its_order() {
    let cluster = cluster(Quiet);
    cluster.with(|server, now| server.insert(now, config_map("old", "1")));
    let (seen, ()) = tokio::join!(watched(&cluster, watcher::Config::default(), millis(1000)), act(&cluster));
    assert_eq!(seen, ["init", "has old=1", "done", "+ a=1", "+ a=2", "+ b=1", "- b=1", "+ a=3"]);
}

#[test]
fn the_same_happens_every_time() {
    let run = || {
        let builder = &mut tokio::runtime::Builder::new_current_thread();
        builder.enable_time().start_paused(true).build().unwrap().block_on(async {
            let cluster = cluster(Quiet);
            tokio::join!(watched(&cluster, watcher::Config::default(), millis(1000)), act(&cluster));
            cluster.tape()
        })
    };
    let first = run();
    assert!(first.len() > 5, "{first:?}");
    assert_eq!(first, run());
}

#[tokio::test(start_paused = true)]
async fn what_is_gathered_is_told_by_its_last_state_only() {
    let gather = |event| if event == 1 { WatchFate::Coalesce(millis(50)) } else { at_once(event) };
    let cluster = cluster(Told(|_: &Seen| Fate::quick(), gather));
    let (seen, ()) = tokio::join!(watched(&cluster, watcher::Config::default(), millis(1000)), act(&cluster));
    assert_eq!(seen, ["init", "done", "+ a=2", "+ a=3"]);
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_ends_or_is_cut_goes_on_where_it_was() {
    for (fate, told) in [(WatchFate::End, None), (WatchFate::Reset, Some("cut"))] {
        let end = move |event| if event == 2 { fate.clone() } else { at_once(event) };
        let cluster = cluster(Told(|_: &Seen| Fate::quick(), end));
        let (seen, ()) = tokio::join!(watched(&cluster, watcher::Config::default(), millis(300_000)), act(&cluster));
        let seen: Vec<_> = seen.into_iter().filter(|event| Some(event.as_str()) != told).collect();
        // Each stream ends at its second event, so each tells one.
        assert_eq!(seen, ["init", "done", "+ a=1", "+ a=2", "+ b=1", "- b=1", "+ a=3"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_version_that_is_too_old_begins_a_new_list() {
    let expire = |event| if event == 2 { WatchFate::Expired } else { at_once(event) };
    let cluster = cluster(Told(|_: &Seen| Fate::quick(), expire));
    let (seen, ()) = tokio::join!(watched(&cluster, watcher::Config::default(), millis(30_000)), act(&cluster));
    assert_eq!(&seen[..6], ["init", "done", "+ a=1", "error 410", "init", "has a=3"]);
}

#[tokio::test(start_paused = true)]
async fn a_list_of_the_past_is_followed_by_what_came_since() {
    let past = |seen: &Seen| match seen.verb {
        Verb::List => Fate { outcome: Outcome::ListAt(seen.version - 2), ..Fate::quick() },
        _ => Fate::quick(),
    };
    let cluster = cluster(Told(past, at_once));
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
async fn a_lost_request_has_no_effect_and_a_lost_answer_has() {
    let lose = |seen: &Seen| {
        let outcome = if seen.index == 1 { Outcome::LoseRequest } else { Outcome::LoseAnswer };
        Fate { outcome, ..Fate::quick() }
    };
    let cluster = cluster(Told(lose, at_once));
    let api: Api<ConfigMap> = Api::namespaced(cluster.client("a1"), "shop");
    let count = |cluster: &Cluster| cluster.with(|server, _| server.objects("", "configmaps").count());
    assert!(matches!(api.create(&PostParams::default(), &typed("a")).await, Err(kube::Error::Service(_))));
    assert_eq!(count(&cluster), 0);
    assert!(matches!(api.create(&PostParams::default(), &typed("a")).await, Err(kube::Error::Service(_))));
    assert_eq!(count(&cluster), 1);
    let tape = cluster.tape().join("\n");
    assert!(tape.ends_with("a1 CREATE configmaps/shop -> 201 rv=100010 (answer lost)"), "{tape}");
}

#[tokio::test(start_paused = true)]
async fn what_is_on_its_way_arrives_though_nobody_waits_but_not_after_a_crash() {
    let slow = |_: &Seen| Fate { before: millis(500), ..Fate::quick() };
    let cluster = cluster(Told(slow, at_once));
    let api: Api<ConfigMap> = Api::namespaced(cluster.client("a1"), "shop");
    let params = PostParams::default();
    assert!(tokio::time::timeout(millis(100), api.create(&params, &typed("late"))).await.is_err());
    tokio::time::sleep(millis(1000)).await;
    let names = |cluster: &Cluster| -> Vec<String> {
        cluster.with(|server, _| server.objects("", "configmaps").map(|object| object.name().to_owned()).collect())
    };
    assert_eq!(names(&cluster), ["late"]);
    let object = typed("never");
    let creating = api.create(&params, &object);
    let (created, ()) = tokio::join!(creating, async {
        tokio::time::sleep(millis(200)).await;
        cluster.disconnect("a1");
    });
    assert!(created.is_err());
    tokio::time::sleep(millis(1000)).await;
    assert_eq!(names(&cluster), ["late"]);
    assert!(api.get("late").await.is_err(), "nothing gets through any more");
}

#[tokio::test(start_paused = true)]
async fn a_refusal_tells_when_to_come_back() {
    let refuse = |_: &Seen| {
        let (reason, message) = ("TooManyRequests".to_owned(), "slow down".to_owned());
        Fate { outcome: Outcome::Refuse { code: 429, reason, message, retry_after: Some(3) }, ..Fate::quick() }
    };
    let cluster = cluster(Told(refuse, at_once));
    let api: Api<Secret> = Api::namespaced(cluster.client("a1"), "shop");
    let Err(kube::Error::Api(status)) = api.get("a").await else { panic!("it is refused") };
    assert_eq!((status.code, status.details.unwrap().retry_after_seconds), (429, 3));
}

#[tokio::test(start_paused = true)]
async fn the_rights_of_an_account_end_with_its_role() {
    let cluster = cluster(Quiet);
    let rbac = "rbac.authorization.k8s.io";
    let make = |kind: &str, more: Value| {
        let mut object = json!({"apiVersion": format!("{rbac}/v1"), "kind": kind, "metadata": {"name": "edit", "namespace": "shop"}});
        object.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        cluster.with(|server, now| server.insert(now, object));
    };
    make("Role", json!({"rules": []}));
    let subjects = json!([{"kind": "ServiceAccount", "name": "default", "namespace": "shop"}]);
    make("RoleBinding", json!({"roleRef": {"kind": "Role", "name": "edit"}, "subjects": subjects}));
    let may = || {
        cluster.with(|server, now| {
            server.access.need_bindings(true);
            let request = Request::get(SHOP).header("Impersonate-User", "system:serviceaccount:shop:default");
            let Answer::Full(answer) = server.respond(now, &request.body(Bytes::new()).unwrap()) else { panic!() };
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
async fn a_namespace_ends_when_all_that_is_in_it_has() {
    let cluster = cluster(Quiet);
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
fn many_requests_leave_as_many_changes_and_cost_little() {
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
        server.ask(now, &http::Method::PATCH, &path, "application/json-patch+json", &patch).unwrap();
        assert!(server.object("purlin.dev", "resources", "shop", &name).is_some());
    }
    assert_eq!(server.version(), before + 2 * OBJECTS);
    assert_eq!(server.changes(before).count() as u64, 2 * OBJECTS);
}
