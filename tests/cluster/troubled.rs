//! Providers that fail, hang and warn, used by the controller.

use std::fs;
use std::path::PathBuf;

use crate::command_line::ok;
use crate::controller::Controller;
use crate::controlplane::wait_until;
use crate::installation::*;
use crate::real_providers;

/// A namespace with the provider `corner` and the ProviderConfigs `corner` and `calm`, so with two provider processes.
/// Its objects are files in a directory that the provider may write.
pub(crate) struct Bench {
    pub(crate) ns: String,
    directory: PathBuf,
    pub(crate) provider: String,
}

impl Bench {
    pub(crate) fn new(name: &str) -> Self {
        let bench = Self::without_files(name);
        plane().apply(&[], &bench.provider(&format!("files: {{ write: ['{}'] }}", bench.directory.display())));
        bench
    }

    /// Like [`Bench::new`], but the provider may not access the directory.
    fn without_files(name: &str) -> Self {
        let ns = plane().namespace(name);
        let directory = plane().scratch().join(format!("world-{ns}"));
        fs::create_dir(&directory).unwrap();
        let bench = Self { provider: format!("corner-{ns}"), ns, directory };
        plane().apply(&[], &bench.provider(""));
        let configs = bench.config("corner", "") + &bench.config("calm", "/.");
        plane().apply(&["-n", &bench.ns], &configs);
        bench
    }

    /// A ProviderConfig, whose spec can be continued. `more`: the end of the directory.
    pub(crate) fn config(&self, name: &str, more: &str) -> String {
        format!(
            "---\napiVersion: purlin.dev/v1alpha1\nkind: ProviderConfig\nmetadata: {{ name: {name} }}\nspec:\n  \
             provider: {{ name: {} }}\n  config: {{ folder: '{}{more}' }}\n",
            self.provider,
            self.directory.display()
        )
    }

    fn provider(&self, more: &str) -> String {
        format!(
            "apiVersion: purlin.dev/v1alpha1\nkind: Provider\nmetadata: {{ name: {} }}\nspec:\n  \
             source: purlin/corner\n  package: {{ path: '{}' }}\n  {more}\n",
            self.provider,
            real_providers::program("corner").display()
        )
    }

    pub(crate) fn trouble(&self, name: &str, config: &str, more: &str) {
        let text = format!(
            "apiVersion: purlin.dev/v1alpha1\nkind: Resource\nmetadata: {{ name: {name} }}\nspec:\n  \
             type: corner_trouble\n  config: {{ text: {name}, {config} }}\n  {more}\n"
        );
        plane().apply(&["-n", &self.ns], &text);
    }

    /// The ids of the objects with this text.
    pub(crate) fn created(&self, text: &str) -> Vec<String> {
        let entries = fs::read_dir(&self.directory).unwrap().map(|entry| entry.unwrap().path());
        let own = entries.filter(|path| fs::read_to_string(path).unwrap_or_default() == text);
        own.map(|path| path.file_name().unwrap().to_str().unwrap().to_owned()).collect()
    }

    pub(crate) fn wait_started(&self) {
        wait_until("the call has begun", LIMIT, || self.directory.join("started").exists());
    }

    pub(crate) fn stop_failures(&self) {
        fs::write(self.directory.join("peace"), "").unwrap();
    }

    pub(crate) fn clean(&self) {
        plane().kubectl_ok(&["-n", &self.ns, "delete", "pres", "--all", "--wait=false"]);
        wait_empty(&self.ns);
        assert!(records(&self.ns).is_empty());
        plane().kubectl_ok(&["delete", "provider.purlin.dev", &self.provider]);
    }
}

#[test]
fn a_provider_that_hangs_affects_only_its_own_objects() {
    let _guard = shared();
    let bench = Bench::new("hung");
    bench.trouble("hung", "on_plan: hang", "timeouts: { read: 1h }");
    bench.wait_started();
    // All of these are planned while the provider of `hung` hangs.
    for round in 0..3 {
        let (beside, apart) = (format!("beside-{round}"), format!("apart-{round}"));
        bench.trouble(&beside, "", "providerConfigRef: { name: calm }");
        plane().apply(&["-n", &bench.ns], &data(&apart, "1", ""));
        wait_ready(&bench.ns, &[&beside, &apart]);
    }
    let hung = resource(&bench.ns, "hung").unwrap();
    assert!(!is_ready(&hung) && bench.created("hung").is_empty(), "{hung}");
    plane().kubectl_ok(&["-n", &bench.ns, "delete", "pres", "hung", "--wait=false"]);
    bench.stop_failures();
}

#[test]
fn the_controller_recovers_from_provider_crashes_and_creates_nothing_twice() {
    let _guard = shared();
    let bench = Bench::new("crash");
    // All objects share one process. If it exits during a create, the outcome of the create is unknown.
    bench.trouble("good", "", "");
    wait_ready(&bench.ns, &["good"]);
    bench.trouble("moody", "on_plan: panic", "");
    let failed = wait_reason(&bench.ns, "moody", "Ready", "OperationFailed");
    assert!(failed["message"].as_str().unwrap().contains("panic: the provider panics as asked"), "{failed}");
    bench.trouble("moody", "", "");
    wait_ready(&bench.ns, &["moody", "good"]);

    // An object with an unknown outcome waits for the user.
    bench.trouble("lost", "on_create: exit", "");
    let unknown = wait_reason(&bench.ns, "lost", "Ready", "CreateOutcomeUnknown");
    assert!(unknown["message"].as_str().unwrap().contains("spec.import.id"), "{unknown}");
    let [id] = &bench.created("lost")[..] else { panic!("{:?}", bench.created("lost")) };
    bench.stop_failures();
    wait_ready(&bench.ns, &["moody"]);
    bench.trouble("lost", "", &format!("import: {{ id: \"{id}\" }}"));
    wait_ready(&bench.ns, &["lost"]);
    assert_eq!(bench.created("lost"), std::slice::from_ref(id));
    bench.clean();
    assert!(bench.created("lost").is_empty() && bench.created("good").is_empty());
}

#[test]
fn a_partly_created_object_is_recorded_and_replaced() {
    let _guard = shared();
    let bench = Bench::new("half");
    bench.trouble("half", "on_create: partial", "");
    let failed = wait_reason(&bench.ns, "half", "Ready", "OperationFailed");
    let expected = "spec.config.on_create: It failed halfway: the object is there";
    assert!(failed["message"].as_str().unwrap().contains(expected), "{failed}");
    bench.stop_failures();
    wait_ready(&bench.ns, &["half"]);
    assert_eq!(bench.created("half").len(), 1, "the tainted object is destroyed");
    bench.clean();
}

#[test]
fn a_provider_cannot_access_other_files() {
    let _guard = shared();
    let bench = Bench::without_files("confined");
    bench.trouble("object", "", "");
    let failed = wait_reason(&bench.ns, "object", "Ready", "OperationFailed");
    assert!(failed["message"].as_str().unwrap().contains("permission denied"), "{failed}");
    assert!(fs::read_dir(&bench.directory).unwrap().next().is_none());
    plane().apply(&[], &bench.provider(&format!("files: {{ write: ['{}'] }}", bench.directory.display())));
    wait_ready(&bench.ns, &["object"]);
    bench.clean();
    let refused = plane().kubectl_with_stdin(&["apply", "-f", "-"], &bench.provider("files: { read: [data] }"));
    assert!(!refused.status.success(), "{refused:?}");
}

#[test]
fn a_warning_of_a_create_is_reported() {
    let _guard = shared();
    let bench = Bench::new("creating");
    bench.trouble("object", "on_create: warning", "");
    wait_ready(&bench.ns, &["object"]);
    wait_until("the event exists", LIMIT, || {
        events(&bench.ns, "object")
            .iter()
            .any(|event| event.starts_with("ProviderWarning") && event.contains("It might have failed: but it did not"))
    });
    bench.clean();
}

#[test]
fn warnings_of_reads_are_reported_once_and_show_no_secret() {
    let guard = shared();
    let bench = Bench::new("gossip");
    let gossip = |kind: &str, name: &str| {
        format!(
            "---\napiVersion: purlin.dev/v1alpha1\nkind: {kind}\nmetadata: {{ name: {name} }}\nspec:\n  \
             type: corner_gossip\n  config: {{ secret: canary-given }}\n"
        )
    };
    plane().apply(&["-n", &bench.ns], &(gossip("Resource", "object") + &gossip("DataSource", "source")));
    wait_ready(&bench.ns, &["object"]);
    let masked = "I should not say: secret <(sensitive)>, token <(sensitive)>";
    let warnings = |name: &str| -> Vec<String> {
        let all = events(&bench.ns, name).into_iter();
        all.filter(|event| event.starts_with("ProviderWarning")).collect()
    };
    wait_until("the data source was read", LIMIT, || warnings("source").iter().any(|event| event.contains(masked)));
    wait_until("the object was created", LIMIT, || warnings("object").iter().any(|event| event.contains(masked)));
    let before = warnings("object");
    // Each refresh finds a secret that is new to Purlin.
    let [file] = &fs::read_dir(&bench.directory).unwrap().map(|file| file.unwrap().path()).collect::<Vec<_>>()[..]
    else {
        panic!("one object");
    };
    for round in 0..3 {
        fs::write(file, format!("canary-found-{round}")).unwrap();
        reconcile(&bench.ns, &["object"], &format!("round-{round}"));
    }
    assert_eq!(warnings("object"), before, "the warning is the same after masking");
    let clean = |what: &str, text: &str| {
        for canary in ["canary-given", "canary-token", "canary-found", "canary-rumour"] {
            assert!(!text.contains(canary), "{what} shows {canary}: {text}");
        }
    };
    for kind in ["pres", "pds"] {
        let all = plane().get(&["-n", &bench.ns, kind]);
        all["items"].as_array().unwrap().iter().for_each(|item| clean(kind, &item["status"].to_string()));
    }
    clean("an event", &plane().get(&["-n", &bench.ns, "events.events.k8s.io"]).to_string());
    guard.controller().log().lines().for_each(|line| clean("the log", line));
    plane().kubectl_ok(&["-n", &bench.ns, "delete", "pds", "source"]);
    bench.clean();
}

#[test]
fn repeated_warnings_are_reported_once() {
    let _guard = shared();
    let bench = Bench::new("warned");
    bench.trouble("planned", "on_plan: warning", "");
    bench.trouble("read", "on_read: warning", "");
    wait_ready(&bench.ns, &["planned", "read"]);
    for round in 0..3 {
        reconcile(&bench.ns, &["planned", "read"], &format!("round-{round}"));
    }
    for name in ["planned", "read"] {
        let warnings = || events(&bench.ns, name).into_iter().filter(|event| event.starts_with("ProviderWarning"));
        wait_until("the event exists", LIMIT, || warnings().next().is_some());
        let reported: Vec<String> = warnings().collect();
        assert!(
            matches!(&reported[..], [only] if only.contains("It might have failed: but it did not")),
            "{reported:?}"
        );
    }
    bench.clean();
}

#[test]
fn a_shutdown_stops_providers_in_time_and_a_crash_leaves_an_unknown_outcome() {
    let _guard = exclusive();
    let bench = Bench::new("ended");
    // The providers must be stopped before this short grace period ends.
    let mut first = Controller::launch_with(plane(), &["--grace-period=20s"]);
    bench.trouble("stopped", "on_create: slow", "");
    bench.wait_started();
    assert_eq!(first.terminate(plane()), Some(0));
    let kept = bench.created("stopped");
    assert_eq!(kept.len(), 1);
    fs::remove_file(bench.directory.join("started")).unwrap();
    let second = Controller::start(plane());
    wait_ready(&bench.ns, &["stopped"]);
    assert_eq!(bench.created("stopped"), kept, "the object was complete");

    bench.trouble("killed", "on_create: slow", "");
    bench.wait_started();
    second.kill(plane());
    let _third = Controller::start(plane());
    wait_reason(&bench.ns, "killed", "Ready", "CreateOutcomeUnknown");
    assert_eq!(bench.created("killed").len(), 1);
    bench.stop_failures();
    bench.trouble("killed", "", &format!("import: {{ id: \"{}\" }}", bench.created("killed")[0]));
    wait_ready(&bench.ns, &["killed"]);
    bench.clean();
}

#[test]
fn an_interrupted_create_is_found_by_its_identity_or_resolved_by_the_user() {
    let _guard = shared();
    let bench = Bench::new("unknown");
    let ns = &bench.ns;
    fs::write(bench.directory.join("crash-after"), "").unwrap();
    let identified = |name: &str| {
        format!(
            "---\napiVersion: purlin.dev/v1alpha1\nkind: Resource\nmetadata: {{ name: {name} }}\nspec:\n  type: \
             corner_identified\n  config: {{ region: home, name: {name} }}\n"
        )
    };
    plane().apply(&["-n", ns], &identified("found"));
    wait_ready(ns, &["found"]);
    fs::remove_file(bench.directory.join("crash-after")).unwrap();

    for name in ["here", "absent"] {
        bench.trouble(name, "on_create: exit", "");
        wait_reason(ns, name, "Ready", "CreateOutcomeUnknown");
    }
    let listed = ok(&["state", "recover", "-n", ns]);
    assert!(listed.contains("here") && listed.contains("absent") && !listed.contains("found"), "{listed}");
    bench.stop_failures();
    let [id] = &bench.created("here")[..] else { panic!("one object") };
    // The user has looked: the object of the other one is gone.
    for lost in bench.created("absent") {
        fs::remove_file(bench.directory.join(lost)).unwrap();
    }
    let import = format!("here={id}");
    ok(&["state", "recover", "-n", ns, "--import", &import, "--absent", "absent", "--yes"]);
    wait_ready(ns, &["here", "absent"]);
    assert_eq!((bench.created("here").len(), bench.created("absent").len()), (1, 1));
    assert_eq!(bench.created("here")[0], *id);
    bench.clean();
}
