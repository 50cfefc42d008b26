//! Objects that harm other tenants if the controller handles them carelessly. Each costs only its own tenant.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::controller::Controller;
use crate::controlplane::{wait_for, wait_until};
use crate::installation::*;
use crate::kubernetes_objects::object;
use crate::providers::{provider, typed};
use crate::trouble::{deployments, slow};

/// A string that no log may contain.
const MARKER: &str = "value-of-the-tenant";

/// A JSON object of this depth.
fn nested(levels: usize) -> String {
    format!("{}\"{MARKER}\"{}", "{\"a\":".repeat(levels), "}".repeat(levels))
}

fn deep(kind: &str, name: &str, spec: &str) -> String {
    format!(r#"{{"apiVersion":"purlin.dev/v1alpha1","kind":"{kind}","metadata":{{"name":"{name}"}},"spec":{spec}}}"#)
}

/// One condition as `REASON: MESSAGE`. The objects are too deep for a parser.
pub(crate) fn ready(namespace: &str, object: &str) -> String {
    let path = "jsonpath={range .status.conditions[?(@.type==\"Ready\")]}{.reason}: {.message}{end}";
    plane().kubectl_ok(&["-n", namespace, "get", object, "-o", path])
}

#[test]
fn objects_that_are_too_deep_are_errors_of_their_own() {
    let _guard = exclusive();
    let (quiet, hostile) = (plane().namespace("quiet"), plane().namespace("deep"));
    let first = Controller::start(plane());
    plane().apply(&["-n", &quiet], &data("calm", "one", ""));
    wait_ready(&quiet, &["calm"]);
    let config = |levels| format!(r#"{{"type":"terraform_data","config":{{"input":{}}}}}"#, nested(levels));
    let source = format!(r#"{{"type":"terraform_data","config":{{"input":{}}}}}"#, nested(200));
    let objects = [
        deep("Resource", "deep", &config(130)),
        deep("Resource", "deeper", &config(3000)),
        deep("DataSource", "deep", &source),
        deep("ProviderConfig", "deep", &format!(r#"{{"provider":{{"name":"none"}},"config":{}}}"#, nested(200))),
    ];
    for object in &objects {
        let output = plane().kubectl_with_stdin(&["create", "-n", &hostile, "-f", "-"], object);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let has_error =
        |object: &str| ready(&hostile, object).contains("the value cannot be decoded: it is nested too deeply");
    for object in ["pres/deep", "pres/deeper", "datasources/deep", "providerconfigs/deep"] {
        wait_until(&format!("{object} has its error"), LIMIT, || has_error(object));
    }
    assert!(
        ready(&hostile, "pres/deep").starts_with("InvalidManifest: spec.config: "),
        "{}",
        ready(&hostile, "pres/deep")
    );
    plane().apply(&["-n", &quiet], &data("calm", "two", ""));
    wait_until("another tenant proceeds", LIMIT, || {
        resource(&quiet, "calm").is_some_and(|calm| is_ready(&calm) && calm["status"]["attributes"]["output"] == "two")
    });
    let log = first.log();
    first.kill(plane());

    // The objects are in the first list of the next process.
    let second = Controller::start(plane());
    plane().apply(&["-n", &quiet], &data("calm", "three", ""));
    wait_until("another tenant proceeds after a restart", LIMIT, || {
        resource(&quiet, "calm")
            .is_some_and(|calm| is_ready(&calm) && calm["status"]["attributes"]["output"] == "three")
    });
    plane().kubectl_ok(&["-n", &hostile, "delete", "pres,datasources,providerconfigs", "--all", "--timeout=60s"]);
    for log in [log, second.log()] {
        assert!(!log.contains(MARKER), "no log contains a value of a tenant");
    }
}

/// The number of pages of Resources that a controller has requested.
fn pages(controller: &Controller) -> usize {
    let metrics = controller.metrics();
    let is_list = |line: &&str| ["GET", "\"resources\"", "\"200\""].iter().all(|label| line.contains(label));
    let line = metrics.lines().filter(|line| line.starts_with("purlin_api_requests_total")).find(is_list);
    line.and_then(|line| line.rsplit(' ').next()?.parse().ok()).unwrap_or_default()
}

#[test]
fn large_objects_are_listed_in_small_pages() {
    let _guard = exclusive();
    let ns = plane().namespace("large");
    // Together they are larger than a page.
    let resource = |number: usize| {
        serde_json::json!({
            "apiVersion": "purlin.dev/v1alpha1", "kind": "Resource", "metadata": { "name": format!("large-{number}") },
            "spec": { "type": "no_such_type", "config": { "text": "x".repeat(1_300_000) } },
        })
    };
    for number in 0..30 {
        let output = plane().kubectl_with_stdin(&["create", "-n", &ns, "-f", "-"], &resource(number).to_string());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let controller = Controller::start(plane());
    // One page with all Resources, also those of other tests, is too large, and then there are at least two.
    let pages = pages(&controller);
    assert!(pages >= 3, "{pages} pages of Resources");
    for number in 0..30 {
        wait_until(&format!("the status of large-{number}"), LIMIT, || {
            ready(&ns, &format!("pres/large-{number}")).starts_with("UnknownType")
        });
    }
    plane().kubectl_ok(&["-n", &ns, "delete", "pres", "--all", "--timeout=60s"]);
}

/// More Deployments than `kubernetes_object` makes calls at the same time, and none becomes ready.
#[test]
fn objects_that_never_become_ready_stop_no_other_namespace() {
    let _guard = shared();
    let (quiet, hostile) = (with_rights("calls"), with_rights("unready"));
    plane().apply(&["-n", &hostile], &(slow("web") + "  count: 100\n  timeouts: { create: 2m }\n"));
    wait_until("all are created", LIMIT, || deployments(&hostile).len() == 100);
    let map = "{ apiVersion: v1, kind: ConfigMap, metadata: { name: calm }, data: { a: b } }";
    plane().apply(&["-n", &quiet], &object("calm", map, ""));
    wait_ready(&quiet, &["calm"]);
    assert!(resource(&hostile, "web").is_some_and(|web| !is_ready(&web)), "they still wait");
    plane().kubectl_ok(&["-n", &hostile, "delete", "pres", "--all", "--timeout=60s"]);
    assert!(deployments(&hostile).is_empty(), "a deletion ends the waits");
}

/// A configuration of `corner` with its objects in a directory.
pub(crate) fn corner_config(world: &Path) -> String {
    format!(
        "apiVersion: purlin.dev/v1alpha1\nkind: ProviderConfig\nmetadata: {{ name: corner }}\nspec:\n  \
         provider: {{ name: corner }}\n  config: {{ folder: '{}' }}\n",
        world.display()
    )
}

/// The processes leave the session of the provider and drop its environment. The provider ends without ending them.
#[test]
fn what_hides_from_the_end_of_its_provider_is_ended_by_the_controller() {
    let _guard = shared();
    let ns = plane().namespace("orphans");
    let directory = plane().scratch().join(&ns);
    fs::create_dir_all(directory.join("world")).unwrap();
    plane().apply(&[], &provider("corner", "corner"));
    plane().apply(&["-n", &ns], &corner_config(&directory.join("world")));
    let config = format!("{{ on_plan: 'orphans {}' }}", directory.display());
    plane().apply(&["-n", &ns], &typed("bad", "corner_trouble", &config, ""));
    let id = |name: &str| fs::read_to_string(directory.join(name)).ok()?.trim().parse::<u32>().ok();
    let orphans = wait_for("the processes start", LIMIT, || Some([id("child")?, id("grandchild")?]));
    plane().kubectl_ok(&["-n", &ns, "delete", "pres", "--all", "--timeout=60s"]);
    let plugin = parent(orphans[0]).unwrap();
    assert_eq!(parent(orphans[1]), Some(plugin), "the kernel gives orphans to the provider as long as it runs");
    let killed = Command::new("kill").args(["-KILL", &plugin.to_string()]).status();
    assert!(killed.is_ok_and(|status| status.success()));
    wait_until("the controller ends them", LIMIT, || orphans.iter().all(|process| parent(*process).is_none()));
}

/// The parent of a process; `None` if the process has ended and its parent has waited for it.
fn parent(process: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()
}

/// With one process in total, each namespace gets it in turn: idle ones end, and who waits for a busy one says so.
#[test]
fn namespaces_take_turns_when_there_are_too_few_processes() {
    let _guard = exclusive();
    let controller = Controller::launch_with(plane(), &["--max-provider-processes=1"]);
    plane().apply(&[], &(provider("random", "random") + &provider("corner", "corner")));
    let [busy, waiting] = ["busy", "waiting"].map(|name| plane().namespace(name));
    plane().apply(&["-n", &waiting], &typed("first", "random_pet", "{ length: 2 }", ""));
    wait_ready(&waiting, &["first"]);

    let world = plane().scratch().join(&busy);
    fs::create_dir_all(&world).unwrap();
    plane().apply(&["-n", &busy], &corner_config(&world));
    plane().apply(&["-n", &busy], &typed("slow", "corner_trouble", "{ on_create: slow }", ""));
    wait_until("the only process is busy", LIMIT, || world.join("started").exists());
    plane().apply(&["-n", &waiting], &typed("second", "random_pet", "{ length: 2 }", ""));
    let refused = wait_reason(&waiting, "second", "Ready", "ProviderNotReady");
    let expected = "the provider random waits for a process: all processes that the controller may run are in use";
    assert!(refused["message"].as_str().unwrap().contains(expected), "{refused}");
    fs::write(world.join("release"), "").unwrap();
    wait_ready(&busy, &["slow"]);
    wait_ready(&waiting, &["second"]);
    for ns in [&busy, &waiting] {
        plane().kubectl_ok(&["-n", ns, "delete", "pres", "--all", "--timeout=60s"]);
    }
    controller.kill(plane());
}
