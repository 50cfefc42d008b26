//! Providers that fail, hang and warn, driven by the controller.

use std::fs;
use std::path::PathBuf;

use crate::controller::Controller;
use crate::controlplane::wait_until;
use crate::installation::*;
use crate::real_providers;

/// A namespace with the provider `corner` under the settings `corner` and `calm`, which means two processes. Its objects
/// are files in a folder that it may write.
pub(crate) struct Bench {
    pub(crate) ns: String,
    world: PathBuf,
    provider: String,
}

impl Bench {
    pub(crate) fn new(name: &str) -> Self {
        let bench = Self::without_files(name);
        plane().apply(&[], &bench.provider(&format!("files: {{ write: ['{}'] }}", bench.world.display())));
        bench
    }

    /// The same, and the provider has not been given the folder.
    fn without_files(name: &str) -> Self {
        let ns = plane().namespace(name);
        let world = plane().scratch().join(format!("world-{ns}"));
        fs::create_dir(&world).unwrap();
        let bench = Self { provider: format!("corner-{ns}"), ns, world };
        plane().apply(&[], &bench.provider(""));
        let config = |name: &str, more: &str| {
            format!(
                "---\napiVersion: purlin.dev/v1alpha1\nkind: ProviderConfig\nmetadata: {{ name: {name} }}\nspec:\n  \
                 provider: {{ name: {} }}\n  config: {{ folder: '{}{more}' }}\n",
                bench.provider,
                bench.world.display()
            )
        };
        plane().apply(&["-n", &bench.ns], &format!("{}{}", config("corner", ""), config("calm", "/.")));
        bench
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
    fn made(&self, text: &str) -> Vec<String> {
        let entries = fs::read_dir(&self.world).unwrap().map(|entry| entry.unwrap().path());
        let own = entries.filter(|path| fs::read_to_string(path).unwrap_or_default() == text);
        own.map(|path| path.file_name().unwrap().to_str().unwrap().to_owned()).collect()
    }

    pub(crate) fn at_work(&self) {
        wait_until("the call has begun", LIMIT, || self.world.join("started").exists());
    }

    fn peace(&self) {
        fs::write(self.world.join("peace"), "").unwrap();
    }

    fn clean(&self) {
        plane().kubectl_ok(&["-n", &self.ns, "delete", "pres", "--all", "--wait=false"]);
        wait_empty(&self.ns);
        assert!(records(&self.ns).is_empty());
        plane().kubectl_ok(&["delete", "provider.purlin.dev", &self.provider]);
    }
}

#[test]
fn a_provider_that_hangs_disturbs_its_own_objects_only() {
    let _world = shared();
    let bench = Bench::new("hung");
    bench.trouble("hung", "on_plan: hang", "timeouts: { read: 1h }");
    bench.at_work();
    // All of these are planned while that one hangs.
    for round in 0..3 {
        let (beside, apart) = (format!("beside-{round}"), format!("apart-{round}"));
        bench.trouble(&beside, "", "providerConfigRef: { name: calm }");
        plane().apply(&["-n", &bench.ns], &data(&apart, "1", ""));
        wait_ready(&bench.ns, &[&beside, &apart]);
    }
    let hung = resource(&bench.ns, "hung").unwrap();
    assert!(!is_ready(&hung) && bench.made("hung").is_empty(), "{hung}");
    plane().kubectl_ok(&["-n", &bench.ns, "delete", "pres", "hung", "--wait=false"]);
    bench.peace();
}

#[test]
fn the_controller_goes_on_by_itself_after_crashes_and_makes_nothing_twice() {
    let _world = shared();
    let bench = Bench::new("crash");
    // One process serves them all: what is being created when it ends is for a person to look after.
    bench.trouble("good", "", "");
    wait_ready(&bench.ns, &["good"]);
    bench.trouble("moody", "on_plan: panic", "");
    let told = wait_reason(&bench.ns, "moody", "Ready", "OperationFailed");
    assert!(told["message"].as_str().unwrap().contains("panic: the provider panics as asked"), "{told}");
    bench.trouble("moody", "", "");
    wait_ready(&bench.ns, &["moody", "good"]);

    // An object that nobody can tell about waits for a person.
    bench.trouble("lost", "on_create: exit", "");
    let told = wait_reason(&bench.ns, "lost", "Ready", "CreateOutcomeUnknown");
    assert!(told["message"].as_str().unwrap().contains("spec.import.id"), "{told}");
    let [id] = &bench.made("lost")[..] else { panic!("{:?}", bench.made("lost")) };
    bench.peace();
    wait_ready(&bench.ns, &["moody"]);
    bench.trouble("lost", "", &format!("import: {{ id: {id} }}"));
    wait_ready(&bench.ns, &["lost"]);
    assert_eq!(bench.made("lost"), std::slice::from_ref(id));
    bench.clean();
    assert!(bench.made("lost").is_empty() && bench.made("good").is_empty());
}

#[test]
fn what_was_made_halfway_is_kept_and_replaced() {
    let _world = shared();
    let bench = Bench::new("half");
    bench.trouble("half", "on_create: partial", "");
    let told = wait_reason(&bench.ns, "half", "Ready", "OperationFailed");
    let expected = "spec.config.on_create: It failed halfway: the object is there";
    assert!(told["message"].as_str().unwrap().contains(expected), "{told}");
    bench.peace();
    wait_ready(&bench.ns, &["half"]);
    assert_eq!(bench.made("half").len(), 1, "what was tainted is gone");
    bench.clean();
}

#[test]
fn a_provider_reaches_no_file_that_it_was_not_given() {
    let _world = shared();
    let bench = Bench::without_files("confined");
    bench.trouble("object", "", "");
    let told = wait_reason(&bench.ns, "object", "Ready", "OperationFailed");
    assert!(told["message"].as_str().unwrap().contains("permission denied"), "{told}");
    assert!(fs::read_dir(&bench.world).unwrap().next().is_none());
    plane().apply(&[], &bench.provider(&format!("files: {{ write: ['{}'] }}", bench.world.display())));
    wait_ready(&bench.ns, &["object"]);
    bench.clean();
    let refused = plane().kubectl_with_stdin(&["apply", "-f", "-"], &bench.provider("files: { read: [data] }"));
    assert!(!refused.status.success(), "{refused:?}");
}

#[test]
fn what_a_provider_warns_of_while_it_makes_an_object_is_told() {
    let _world = shared();
    let bench = Bench::new("made");
    bench.trouble("object", "on_create: warning", "");
    wait_ready(&bench.ns, &["object"]);
    wait_until("the event is there", LIMIT, || {
        events(&bench.ns, "object")
            .iter()
            .any(|event| event.starts_with("ProviderWarning") && event.contains("It might have failed: but it did not"))
    });
    bench.clean();
}

#[test]
fn warnings_of_readings_are_told_once_and_show_no_secret() {
    let world = shared();
    let bench = Bench::new("gossip");
    let gossip = |kind: &str, name: &str| {
        format!(
            "---\napiVersion: purlin.dev/v1alpha1\nkind: {kind}\nmetadata: {{ name: {name} }}\nspec:\n  \
             type: corner_gossip\n  config: {{ secret: canary-given }}\n"
        )
    };
    plane().apply(&["-n", &bench.ns], &(gossip("Resource", "object") + &gossip("DataSource", "seen")));
    wait_ready(&bench.ns, &["object"]);
    let masked = "I should not say: secret <(sensitive)>, token <(sensitive)>";
    let warnings = |name: &str| -> Vec<String> {
        let all = events(&bench.ns, name).into_iter();
        all.filter(|event| event.starts_with("ProviderWarning")).collect()
    };
    wait_until("the data source was read", LIMIT, || warnings("seen").iter().any(|event| event.contains(masked)));
    wait_until("the object was made", LIMIT, || warnings("object").iter().any(|event| event.contains(masked)));
    let before = warnings("object");
    // A reading finds a secret that nobody knew before, again and again.
    let [file] = &fs::read_dir(&bench.world).unwrap().map(|file| file.unwrap().path()).collect::<Vec<_>>()[..] else {
        panic!("one object");
    };
    for round in 0..3 {
        fs::write(file, format!("canary-found-{round}")).unwrap();
        reconcile(&bench.ns, &["object"], &format!("round-{round}"));
    }
    assert_eq!(warnings("object"), before, "it says the same again");
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
    world.controller().log().lines().for_each(|line| clean("the log", line));
    plane().kubectl_ok(&["-n", &bench.ns, "delete", "pds", "seen"]);
    bench.clean();
}

#[test]
fn what_a_provider_warns_of_is_told_once() {
    let _world = shared();
    let bench = Bench::new("warned");
    bench.trouble("planned", "on_plan: warning", "");
    bench.trouble("read", "on_read: warning", "");
    wait_ready(&bench.ns, &["planned", "read"]);
    for round in 0..3 {
        reconcile(&bench.ns, &["planned", "read"], &format!("round-{round}"));
    }
    for name in ["planned", "read"] {
        let warnings = || events(&bench.ns, name).into_iter().filter(|event| event.starts_with("ProviderWarning"));
        wait_until("the event is there", LIMIT, || warnings().next().is_some());
        let told: Vec<String> = warnings().collect();
        assert!(matches!(&told[..], [only] if only.contains("It might have failed: but it did not")), "{told:?}");
    }
    bench.clean();
}

#[test]
fn a_stop_asks_providers_in_time_and_a_kill_leaves_what_a_person_finds() {
    let _world = exclusive();
    let bench = Bench::new("ended");
    // So short a grace period ends in less than the time that providers get to give up.
    let mut first = Controller::launch_with(plane(), &["--grace-period=20s"]);
    bench.trouble("stopped", "on_create: slow", "");
    bench.at_work();
    assert_eq!(first.terminate(plane()), Some(0));
    let kept = bench.made("stopped");
    assert_eq!(kept.len(), 1);
    fs::remove_file(bench.world.join("started")).unwrap();
    let second = Controller::start(plane());
    wait_ready(&bench.ns, &["stopped"]);
    assert_eq!(bench.made("stopped"), kept, "it was complete");

    bench.trouble("killed", "on_create: slow", "");
    bench.at_work();
    second.kill(plane());
    let _third = Controller::start(plane());
    wait_reason(&bench.ns, "killed", "Ready", "CreateOutcomeUnknown");
    assert_eq!(bench.made("killed").len(), 1);
    bench.peace();
    bench.trouble("killed", "", &format!("import: {{ id: {} }}", bench.made("killed")[0]));
    wait_ready(&bench.ns, &["killed"]);
    bench.clean();
}
