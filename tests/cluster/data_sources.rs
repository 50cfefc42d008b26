//! Data sources.

use std::fs;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;

use serde_json::Value as Json;

use crate::command_line::ok;
use crate::controller::Controller;
use crate::controlplane::{wait_for, wait_until};
use crate::installation::*;
use crate::providers::{attribute, provider, typed};

/// A `DataSource` as kubectl shows it; `None` when there is none.
fn data_source(namespace: &str, name: &str) -> Option<Json> {
    let output = plane().kubectl(&["-n", namespace, "get", "pds", name, "-o", "json"]);
    output.status.success().then(|| serde_json::from_slice(&output.stdout).expect("JSON of kubectl"))
}

fn wait_read(namespace: &str, name: &str) -> Json {
    wait_for(&format!("{namespace}/{name} is read"), LIMIT, || data_source(namespace, name).filter(is_ready))
}

fn wait_failed(namespace: &str, name: &str, reason: &str) -> String {
    wait_for(&format!("{namespace}/{name} is not ready: {reason}"), LIMIT, || {
        let ready = condition(&data_source(namespace, name)?, "Ready").filter(|ready| ready["reason"] == reason)?;
        Some(ready["message"].as_str().unwrap_or_default().to_owned())
    })
}

fn source(name: &str, type_name: &str, config: &str, more: &str) -> String {
    let head = "---\napiVersion: purlin.dev/v1alpha1\nkind: DataSource\nmetadata:";
    format!("{head} {{ name: {name} }}\nspec:\n  type: {type_name}\n  config: {config}\n  {more}\n")
}

fn output(namespace: &str, name: &str) -> Json {
    resource(namespace, name).map(|found| found["status"]["attributes"]["output"].clone()).unwrap_or_default()
}

fn may_read_config_maps(namespace: &str) {
    let role = ["-n", namespace, "create", "role", "read", "--verb=get", "--resource=configmaps,secrets"];
    plane().kubectl_ok(&role);
    plane().bind(namespace, "read", "--role=read", "default");
}

/// Creates the Provider `local` and a directory that it may read and write.
fn directory(namespace: &str) -> PathBuf {
    plane().apply(&[], &provider("local", "local"));
    let directory = plane().scratch().join(namespace);
    fs::create_dir_all(&directory).unwrap();
    directory
}

/// Waits until a condition of a `DataSource` has the reason.
fn wait_condition(namespace: &str, name: &str, kind: &str, reason: &str) {
    wait_until(&format!("{namespace}/{name}: {kind} has the reason {reason}"), LIMIT, || {
        data_source(namespace, name)
            .and_then(|found| condition(&found, kind))
            .is_some_and(|condition| condition["reason"] == reason)
    });
}

/// The resource version of each object, which changes with each write.
fn versions(namespace: &str, names: &[&str]) -> Vec<Json> {
    let version = |name: &&str| plane().get(&["-n", namespace, name])["metadata"]["resourceVersion"].clone();
    names.iter().map(version).collect()
}

/// `O_NONBLOCK` on Linux: opening a pipe for writing fails unless another process has it open for reading.
const NO_WAIT: i32 = 0o4000;

const SITE: &str = "{ apiVersion: v1, kind: ConfigMap, name: site }";

#[test]
fn an_object_of_the_cluster_is_read_as_the_service_account_and_refreshed() {
    let _guard = shared();
    let ns = plane().namespace("data-object");
    let site = |domain: &str| {
        let text =
            format!("{{ apiVersion: v1, kind: ConfigMap, metadata: {{ name: site }}, data: {{ domain: {domain} }} }}");
        plane().apply(&["-n", &ns], &text);
    };
    site("one");
    let objects = [
        source("site", "kubernetes_object", SITE, "drift: { interval: 2s }"),
        data("reader", "\"${data.site.object.data.domain}\"", ""),
        data("free", "fixed", ""),
    ];
    plane().apply(&["-n", &ns], &objects.concat());
    // Purlin reads the object as the service account of the namespace, which has no permission yet.
    let message = wait_failed(&ns, "site", "Forbidden");
    assert!(message.contains("configmaps"), "{message}");
    wait_ready(&ns, &["free"]);
    wait_reason(&ns, "reader", "Ready", "DependencyNotReady");
    may_read_config_maps(&ns);
    plane().kubectl_ok(&["-n", &ns, "annotate", "pds", "site", "purlin.dev/reconcile-requested-at=now"]);
    let found = wait_read(&ns, "site");
    assert_eq!(found["status"]["attributes"]["object"]["data"]["domain"], "one");
    assert_eq!(found["metadata"]["finalizers"], Json::Null, "a data source needs no finalizer");
    wait_ready(&ns, &["reader"]);
    assert_eq!(output(&ns, "reader"), "one");
    assert_eq!(records(&ns).len(), 2, "a data source has no record");

    // There is no watch on the object; the controller reads it again after the interval.
    site("two");
    wait_until("the change has arrived", LIMIT, || output(&ns, "reader") == "two");
    wait_ready(&ns, &["reader"]);
    let found = data_source(&ns, "site").unwrap();
    assert_eq!(found["status"]["attributes"]["object"]["data"]["domain"], "two");

    // The data source is deleted immediately, and its dependent reports what is missing. The object of the dependent
    // does not change.
    plane().kubectl_ok(&["-n", &ns, "delete", "pds", "site"]);
    let ready = wait_reason(&ns, "reader", "Ready", "DependencyNotFound");
    assert!(ready["message"].as_str().unwrap().contains("data.site"), "{ready}");
    assert_eq!(output(&ns, "reader"), "two");
    plane().kubectl_ok(&["-n", &ns, "delete", "pres", "--all", "--wait=false"]);
    wait_empty(&ns);
}

#[test]
fn nothing_is_written_while_the_object_that_is_read_does_not_change() {
    let _guard = shared();
    let ns = plane().namespace("data-idle");
    may_read_config_maps(&ns);
    let secret = "{ apiVersion: v1, kind: Secret, metadata: { name: login }, stringData: { password: hush-hush } }";
    plane().apply(&["-n", &ns], secret);
    let login = "{ apiVersion: v1, kind: Secret, name: login }";
    let objects = [
        source("login", "kubernetes_object", login, "drift: { interval: 1s }"),
        data("reader", "\"${data.login.object.data.password}\"", ""),
        data("beacon", "\"${data.clock.object.data.count}\"", ""),
    ];
    plane().apply(&["-n", &ns], &objects.concat());
    let first = wait_read(&ns, "login");
    wait_ready(&ns, &["reader"]);
    let shown = plane().kubectl_ok(&["-n", &ns, "get", "pres,pds", "-o", "yaml"]);
    assert!(!shown.contains("aHVzaC1odXNo"), "{shown}");
    // A second data source, which is read later and often, shows that time has passed.
    let count = |n: u32| {
        let text =
            format!("{{ apiVersion: v1, kind: ConfigMap, metadata: {{ name: clock }}, data: {{ count: \"{n}\" }} }}");
        plane().apply(&["-n", &ns], &text);
        let text = n.to_string();
        wait_until("the ConfigMap was read again", LIMIT, || output(&ns, "beacon") == *text);
    };
    let clock = "{ apiVersion: v1, kind: ConfigMap, metadata: { name: clock }, data: { count: \"0\" } }";
    plane().apply(&["-n", &ns], clock);
    let clock = "{ apiVersion: v1, kind: ConfigMap, name: clock }";
    plane().apply(&["-n", &ns], &source("clock", "kubernetes_object", clock, "drift: { interval: 1s }"));
    (1..4).for_each(count);
    let now = data_source(&ns, "login").unwrap();
    assert_eq!(now["metadata"]["resourceVersion"], first["metadata"]["resourceVersion"]);
    plane().kubectl_ok(&["-n", &ns, "delete", "pres,pds", "--all", "--wait=false"]);
    wait_empty(&ns);
}

#[test]
fn a_data_source_of_a_provider_is_read_after_what_it_depends_on() {
    let _guard = shared();
    let ns = plane().namespace("data-provider");
    let directory = directory(&ns);
    let file = directory.join("greeting");
    let file = file.display();
    let objects = |text: &str| {
        let head = "---\napiVersion: purlin.dev/v1alpha1\nkind: Resource\nmetadata: { name: greeting }\nspec:\n";
        let greeting = format!("{head}  type: local_file\n  config: {{ filename: '{file}', content: {text} }}\n");
        let read = source("greeting", "local_file", "{ filename: '${greeting.filename}' }", "");
        let reader = data("reader", "\"${data.greeting.content}!\"", "");
        plane().apply(&["-n", &ns], &[greeting, read, reader].concat());
    };
    objects("hello");
    wait_read(&ns, "greeting");
    wait_ready(&ns, &["greeting", "reader"]);
    assert_eq!(output(&ns, "reader"), "hello!");
    // A change of the file changes its readers in the same plan.
    objects("goodbye");
    wait_until("the change has arrived", LIMIT, || output(&ns, "reader") == "goodbye!");
    wait_ready(&ns, &["greeting", "reader"]);
    // All are deleted together. The reader is destroyed before the file that it depends on through the data source,
    // although the data source itself is deleted immediately.
    plane().kubectl_ok(&["-n", &ns, "delete", "pres,pds", "--all", "--wait=false"]);
    wait_empty(&ns);
    assert!(records(&ns).is_empty());
}

#[test]
fn a_failed_read_blocks_only_its_dependents_until_it_succeeds() {
    let _guard = shared();
    let ns = plane().namespace("data-fails");
    let directory = directory(&ns);
    let file = directory.join("late");
    // The plan reads `now`. A step reads `later`, because its file name is known only after `spot` is created.
    let objects = [
        data("spot", &file.display().to_string(), ""),
        source("now", "local_file", &format!("{{ filename: '{}' }}", file.display()), ""),
        source("later", "local_file", "{ filename: '${spot.output}' }", ""),
        data("of-now", "\"${data.now.content}\"", ""),
        data("of-later", "\"${data.later.content}\"", ""),
        data("free", "\"${spot.output}\"", ""),
    ];
    plane().apply(&["-n", &ns], &objects.concat());
    wait_ready(&ns, &["spot", "free"]);
    for name in ["now", "later"] {
        let message = wait_failed(&ns, name, "OperationFailed");
        assert!(message.contains("no such file"), "{message}");
    }
    let ready = wait_reason(&ns, "of-now", "Ready", "DependencyNotReady");
    assert!(ready["message"].as_str().unwrap().contains("`data.now`"), "{ready}");
    wait_reason(&ns, "of-later", "Ready", "DependencyNotReady");
    wait_event(&ns, "later", "OperationFailed: ");
    fs::write(&file, "here").unwrap();
    wait_ready(&ns, &["of-now", "of-later"]);
    assert_eq!((output(&ns, "of-now"), output(&ns, "of-later")), (Json::from("here"), Json::from("here")));
    wait_read(&ns, "now");
    wait_read(&ns, "later");

    // The file is deleted again: the dependents keep their values.
    fs::remove_file(&file).unwrap();
    ok(&["reconcile", "data.now", "-n", &ns, "--no-wait"]);
    wait_failed(&ns, "now", "OperationFailed");
    wait_reason(&ns, "of-now", "Ready", "DependencyNotReady");
    assert_eq!(output(&ns, "of-now"), "here");
    plane().kubectl_ok(&["-n", &ns, "delete", "pds,pres", "--all", "--wait=false"]);
    wait_empty(&ns);
    assert!(records(&ns).is_empty());
}

#[test]
fn a_family_of_data_sources_reports_its_instances_and_can_be_suspended() {
    let _guard = shared();
    let ns = plane().namespace("data-family");
    may_read_config_maps(&ns);
    let zone = |name: &str, hosts: &str| {
        let head = "---\napiVersion: v1\nkind: ConfigMap\nmetadata:";
        plane().apply(&["-n", &ns], &format!("{head} {{ name: {name} }}\ndata: {{ hosts: \"{hosts}\" }}\n"));
    };
    zone("north", "a,b");
    zone("south", "c");
    let more = "drift: { interval: 1s }\n  forEach: [north, south]";
    let zones = source("zone", "kubernetes_object", "{ apiVersion: v1, kind: ConfigMap, name: '${each.key}' }", more);
    let hosts = "data.zone['north'].object.data.hosts.split(',') + data.zone['south'].object.data.hosts.split(',')";
    let host = data("host", "\"${each.key}\"", &format!("forEach: \"${{{hosts}}}\""));
    plane().apply(&["-n", &ns], &(zones + &host));
    let found = wait_read(&ns, "zone");
    assert_eq!(
        (&found["status"]["instances"]["desired"], &found["status"]["instances"]["ready"]),
        (&2.into(), &2.into())
    );
    wait_until("there are three hosts", LIMIT, || {
        resource(&ns, "host").is_some_and(|found| found["status"]["instances"]["ready"] == 3)
    });
    wait_ready(&ns, &["host"]);
    let shown = plane().kubectl_ok(&["-n", &ns, "get", "datasources"]);
    assert!(shown.contains("READY") && shown.contains("kubernetes_object"), "{shown}");
    assert!(ok(&["get", "-n", &ns]).contains("data.zone"));
    assert!(ok(&["explain", "data.zone", "-n", &ns]).contains("2 of 2 ready"));

    ok(&["suspend", "data.zone", "-n", &ns]);
    wait_condition(&ns, "zone", "Synced", "Suspended");
    zone("south", "");
    // While it is suspended, the last result is used, also for new dependents.
    plane().apply(&["-n", &ns], &data("late", "\"${data.zone['south'].object.data.hosts}\"", ""));
    wait_ready(&ns, &["late"]);
    assert_eq!(output(&ns, "late"), "c");
    ok(&["resume", "data.zone", "-n", &ns]);
    wait_until("the change has arrived", LIMIT, || output(&ns, "late") == "");
    plane().kubectl_ok(&["-n", &ns, "delete", "pres,pds", "--all", "--wait=false"]);
    wait_empty(&ns);
}

#[test]
fn a_provider_configuration_can_reference_data_sources() {
    let _guard = shared();
    let ns = plane().namespace("data-settings");
    plane().apply(&[], &provider("corner", "corner"));
    may_read_config_maps(&ns);
    let directory = plane().scratch().join(&ns);
    fs::create_dir_all(&directory).unwrap();
    let place = format!(
        "{{ apiVersion: v1, kind: ConfigMap, metadata: {{ name: place }}, data: {{ path: '{}' }} }}",
        directory.display()
    );
    plane().apply(&["-n", &ns], &place);
    let provider_config = "---\napiVersion: purlin.dev/v1alpha1\nkind: ProviderConfig\nmetadata: { name: corner }\nspec:\n  \
                    provider: { name: corner }\n  config: { folder: '${data.place.object.data.path}' }\n";
    let objects = [
        provider_config.to_owned(),
        source("place", "kubernetes_object", "{ apiVersion: v1, kind: ConfigMap, name: place }", ""),
        typed("thing", "corner_thing", "{ name: a, text: b }", ""),
        source("thing", "corner_lookup", "{ id: '${thing.id}' }", ""),
        data("reader", "\"${data.thing.text}\"", ""),
    ];
    plane().apply(&["-n", &ns], &objects.concat());
    wait_ready(&ns, &["thing", "reader"]);
    assert_eq!((attribute(&ns, "thing", "text"), output(&ns, "reader")), (Json::from("b"), Json::from("b")));
    wait_until("its ProviderConfig is ready", LIMIT, || {
        condition(&plane().get(&["-n", &ns, "ppc", "corner"]), "Ready").is_some_and(|ready| ready["status"] == "True")
    });
    plane().kubectl_ok(&["-n", &ns, "delete", "pds,ppc,pres", "--all", "--wait=false"]);
    wait_empty(&ns);
    wait_until("the ProviderConfig is deleted", LIMIT, || {
        plane().get(&["-n", &ns, "ppc"])["items"].as_array().is_some_and(Vec::is_empty)
    });
    assert_eq!(fs::read_dir(&directory).unwrap().count(), 0);
}

#[test]
fn an_interrupted_read_is_repeated_and_a_new_controller_writes_nothing() {
    let _guard = exclusive();
    let controller = Controller::start(plane());
    let ns = plane().namespace("data-crash");
    let directory = directory(&ns);
    let (cut, still) = (directory.join("cut"), directory.join("still"));
    fs::write(&still, "still").unwrap();
    // Reading a pipe blocks until another process writes.
    let mkfifo = std::process::Command::new("mkfifo").arg(&cut).status().unwrap();
    assert!(mkfifo.success());
    let objects = [
        source("cut", "local_file", "{ filename: '${spot.output}' }", ""),
        source("still", "local_file", &format!("{{ filename: '{}' }}", still.display()), ""),
        data("reader", "\"${data.cut.content} ${data.still.content}\"", ""),
        data("quiet", "\"${data.still.content}\"", ""),
        // The last one: if it were created before the others are planned, the plan would read the pipe and wait.
        data("spot", &cut.display().to_string(), ""),
    ];
    plane().apply(&["-n", &ns], &objects.concat());
    wait_ready(&ns, &["spot", "quiet"]);
    let open = || fs::OpenOptions::new().write(true).custom_flags(NO_WAIT).open(&cut).ok();
    let writer = wait_for("the pipe is being read", LIMIT, open);
    controller.kill(plane());
    drop(writer);
    fs::remove_file(&cut).unwrap();
    fs::write(&cut, "one").unwrap();
    let controller = Controller::start(plane());
    wait_ready(&ns, &["reader"]);
    assert_eq!(output(&ns, "reader"), "one still");
    assert_eq!(records(&ns).len(), 3);
    wait_read(&ns, "cut");
    wait_read(&ns, "still");

    // Results are not stored. A new controller reads again, and writes nothing if the result is the same.
    let names = ["pds/still", "pres/quiet", "pres/spot"];
    let before = versions(&ns, &names);
    controller.kill(plane());
    fs::write(&cut, "two").unwrap();
    let _controller = Controller::start(plane());
    wait_until("the file was read again", LIMIT, || output(&ns, "reader") == "two still");
    wait_ready(&ns, &["reader"]);
    assert_eq!(versions(&ns, &names), before);
    plane().kubectl_ok(&["-n", &ns, "delete", "pres,pds", "--all", "--wait=false"]);
    wait_empty(&ns);
}

#[test]
fn the_api_server_rejects_fields_that_a_data_source_does_not_have() {
    let _guard = shared();
    let ns = plane().namespace("data-bad");
    let refused = |spec: &str| {
        let text =
            format!("apiVersion: purlin.dev/v1alpha1\nkind: DataSource\nmetadata: {{ name: bad }}\nspec: {spec}\n");
        let apply = ["-n", &ns, "apply", "--server-side", "--validate=strict", "-f", "-"];
        let output = plane().kubectl_with_stdin(&apply, &text);
        assert!(!output.status.success(), "{spec}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    assert!(refused("{ type: t, deletionPolicy: Orphan }").contains("deletionPolicy"));
    assert!(refused("{ type: t, lifecycle: { preventDestroy: true } }").contains("preventDestroy"));
    assert!(refused("{ type: t, timeouts: { create: 1m } }").contains("create"));
    assert!(refused("{ type: t, enabled: 'true' }").contains("spec.enabled"));
}
