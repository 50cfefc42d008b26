//! Providers during a run: start, shutdown, interruption, warnings, and all features of schemas.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use expect_test::expect;

use super::provider_sandbox::ProviderSandbox;
use super::sandbox::manifest;
use crate::plugins::DebuggedProvider;
use crate::providers;

#[test]
fn an_interrupted_create_is_resolved_by_import() {
    let bench = ProviderSandbox::new("corner");
    bench.resources(&[("bad", "type: corner_trouble, config: { text: t, on_create: slow }")]);
    let running = bench.slow();
    running.signal("KILL");
    running.end();
    bench.disable_failures();
    expect![[r#"
        bad error: a create was interrupted and it is unknown whether the object was created (at files/resources.yaml:2; hint: set spec.import.id if it exists, or run `purlin state recover`)
        recorded: bad creating; exist: 1
    "#]].assert_eq(&bench.apply());
    bench.trouble("", &format!(", import: {{ id: \"{}\" }}", bench.id_of("t")));
    expect![[r#"
        after create finished
        apart create finished
        bad update finished
        beside create finished
        recorded: after ready, apart ready, bad ready, beside ready; exist: 2
    "#]]
    .assert_eq(&bench.apply());
}

#[test]
fn a_second_signal_cancels_provider_operations() {
    let bench = ProviderSandbox::new("corner");
    bench.resources(&[("bad", "type: corner_trouble, config: { text: t, on_create: slow }")]);
    let mut running = bench.slow();
    running.signal("INT");
    running.wait_until("the first signal is reported", |running| {
        running.err().contains("Stopping: waiting for running steps")
    });
    running.signal("INT");
    running.wait_until("the second signal is reported", |running| {
        running.err().contains("waiting for providers to cancel running operations")
    });
    let out = bench.sandbox.path("out.txt");
    assert_eq!(running.end().code(), Some(1));
    let out = fs::read_to_string(out).unwrap();
    assert!(out.contains("It was stopped: the object is there"), "{out}");
    assert!(bench.summary().contains("bad interrupted"), "{}", bench.summary());
    // The next read shows that the object is complete, so it is kept.
    let id = bench.id_of("t");
    bench.disable_failures();
    expect![[r#"
        bad record finished
        recorded: bad ready; exist: 1
    "#]]
    .assert_eq(&bench.apply());
    assert_eq!(bench.id_of("t"), id);
}

#[test]
fn a_third_signal_exits_immediately() {
    let bench = ProviderSandbox::new("corner");
    bench.trouble("on_create: hang", "");
    let mut running = bench.slow();
    running.signal("INT");
    running.wait_until("the first signal is reported", |running| running.err().contains("Stopping: "));
    running.signal("TERM");
    running.wait_until("the second signal is reported", |running| {
        running.err().contains("waiting for providers to cancel")
    });
    running.signal("INT");
    assert_eq!(running.end().code(), Some(130));
    assert!(bench.summary().contains("bad creating"), "{}", bench.summary());
}

#[test]
fn provider_warnings_are_reported_for_the_object() {
    let bench = ProviderSandbox::new("corner");
    bench.trouble("on_plan: warning", "");
    let plan = bench.sandbox.json(&["plan", "-f", "files", "-o", "json"]);
    let warning = &plan["diagnostics"][0];
    assert_eq!((warning["severity"].as_str(), warning["address"].as_str()), (Some("warning"), Some("bad")), "{plan}");
    assert_eq!(warning["summary"], "It might have failed: but it did not");
    let ran = bench.sandbox.run(&["apply", "-f", "files", "--yes"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stderr.contains("It might have failed: but it did not"), "{}", ran.stderr);
    // Warnings of create, update and destroy are reported too.
    bench.trouble("text: u, on_update: warning, on_delete: warning", "");
    let output = bench.apply();
    assert!(output.contains("bad warning: It might have failed: but it did not"), "{output}");
    assert!(output.contains("bad update finished"), "{output}");
    let ran = bench.sandbox.run(&["destroy", "-f", "files", "--yes"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stdout.contains("bad: warning: It might have failed: but it did not"), "{}", ran.stdout);
}

#[test]
fn an_object_of_another_resource_is_not_imported() {
    let bench = ProviderSandbox::new("corner");
    let one = ("one", "type: corner_thing, config: { name: first, text: x }");
    bench.resources(&[one]);
    bench.apply();
    let id = bench.id_of("x");
    // The imported object has another name, so it would be replaced.
    bench.resources(&[one, ("two", &format!("{}, import: {{ id: \"{id}\" }}", one.1))]);
    let output = bench.apply();
    assert!(output.contains("two error: the object is already managed by `one`"), "{output}");
    assert!(output.ends_with("recorded: one ready; exist: 1\n"), "{output}");
    assert_eq!(bench.objects(), [id]);
}

#[test]
fn a_provider_configuration_warning_is_reported_once() {
    let bench = ProviderSandbox::new("corner");
    let configuration = "---\napiVersion: purlin.dev/v1alpha1\nkind: ProviderConfig\nmetadata: { name: old }\nspec: { provider: { name: corner }, config: { warn: canary-given, secret: canary-given } }\n";
    bench.sandbox.write("files/more.yaml", configuration);
    let of_old = "type: corner_thing, providerConfigRef: { name: old }, config: { name: a }";
    bench.resources(&[("one", of_old), ("other", of_old)]);
    let warning = "the provider `corner` warns about its configuration `old`: spec.config.warn: The configuration is old: (sensitive)";
    for args in [&["plan", "-f", "files"][..], &["apply", "-f", "files", "--yes"]] {
        let ran = bench.sandbox.run(args);
        let output = format!("{}{}", ran.stdout, ran.stderr);
        assert_eq!(ran.code, Some(0), "{output}");
        assert_eq!(output.matches(warning).count(), 1, "{output}");
        assert!(!output.contains("canary"), "{output}");
    }
}

#[test]
fn warnings_are_reported_without_secrets() {
    let bench = ProviderSandbox::new("corner");
    let gossip = |secret: &str, more: &str| {
        let data = format!(
            "---\napiVersion: purlin.dev/v1alpha1\nkind: DataSource\nmetadata: {{ name: seen }}\nspec: {{ type: corner_gossip, config: {{ secret: {secret} }} }}\n"
        );
        bench.resources(&[("gossip", &format!("type: corner_gossip, config: {{ secret: {secret} }} {more}"))]);
        bench.sandbox.write("files/data.yaml", &data);
    };
    let masked = "I should not say: secret <(sensitive)>, token <(sensitive)>";
    // Checks the complete output.
    let run = |args: &[&str]| {
        let ran = bench.sandbox.run(args);
        let output = format!("{}{}", ran.stdout, ran.stderr);
        assert_eq!(ran.code, Some(0), "{output}");
        assert!(!output.contains("canary"), "{output}");
        output
    };
    gossip("canary-one", "");
    let output = run(&["apply", "-f", "files", "--yes"]);
    assert!(output.contains(&format!("gossip: warning: {masked}")), "{output}");
    assert!(output.contains(&format!("data.seen: {masked}")), "{output}");
    // A read returns a secret that was not known before.
    let id = bench.objects().remove(0);
    fs::write(bench.sandbox.path("world").join(&id), "canary-of-another-owner").unwrap();
    let plan = run(&["plan", "-f", "files", "-o", "json"]);
    assert!(plan.contains(&format!("\"summary\":\"{masked}\"")), "{plan}");
    run(&["apply", "-f", "files", "--yes"]);
    gossip("canary-two", "");
    run(&["apply", "-f", "files", "--yes", "-o", "json"]);
    run(&["plan", "-f", "files", "--refresh-only"]);
    // The record is removed, and the object is imported.
    run(&["state", "rm", "gossip", "--state", "purlin.db", "--yes"]);
    gossip("canary-two", &format!(", import: {{ id: \"{id}\" }}"));
    let output = run(&["apply", "-f", "files", "--yes"]);
    assert!(output.contains(&format!("gossip: I should not say: an import looks for {id}")), "{output}");
    let output = run(&["destroy", "-f", "files", "--yes"]);
    assert!(output.contains(masked), "{output}");
}

#[test]
fn a_provider_is_started_once_in_a_run() {
    let bench = ProviderSandbox::new("corner");
    let (program, starts) = (bench.sandbox.path("counted"), bench.sandbox.path("starts"));
    let real = providers::program("corner");
    fs::write(&program, format!("#!/bin/sh\necho start >> '{}'\nexec '{}'\n", starts.display(), real.display()))
        .unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    bench.provider(&program.display().to_string());
    bench.resources(&[("one", "type: corner_thing, config: { name: a }"), ("two", "type: corner_trouble")]);
    bench.apply();
    assert_eq!(fs::read_to_string(&starts).unwrap(), "start\n");
    // Another provider configuration needs another process.
    bench.trouble("", "");
    bench.apply();
    assert_eq!(fs::read_to_string(&starts).unwrap().lines().count(), 3);
}

#[test]
fn a_provider_that_exceeds_its_memory_limit_fails_alone() {
    let bench = ProviderSandbox::new("corner");
    let program = providers::program("corner").display().to_string();
    bench.provider_in(&program, ", limits: { memory: 1Mi }");
    let ran = bench.sandbox.run(&["plan", "-f", "files"]);
    assert!(format!("{ran:?}").contains("spec.limits.memory: `1Mi` is not a valid memory limit"), "{ran:?}");
    bench.provider_in(&program, ", limits: { memory: 64Mi }");
    bench.trouble("on_update: grow", "");
    bench.apply();
    bench.trouble("text: u, on_update: grow", "");
    let output = bench.apply();
    // The Go runtime fails in one of two ways, depending on which of its allocations exceeds the limit.
    let is_out_of_memory = ["out of memory", "cannot allocate memory"].iter().any(|text| output.contains(text));
    assert!(output.contains("bad update failed: ") && is_out_of_memory, "{output}");
    assert!(output.contains("apart ready, bad ready, beside ready; exist: 2"), "{output}");
    bench.disable_failures();
    let output = bench.apply();
    assert!(output.contains("recorded: after ready, apart ready, bad ready, beside ready; exist: 2"), "{output}");
    assert_eq!(bench.id_of("u").len(), 16);
}

#[test]
fn a_provider_in_a_debugger_is_used_instead_of_an_installed_one() {
    let bench = ProviderSandbox::new("corner");
    bench.provider("/nowhere");
    bench.trouble("", "");
    let mut debugged = DebuggedProvider::start();
    let ran =
        bench.sandbox.run_with(&[("TF_REATTACH_PROVIDERS", &debugged.reattach)], &["apply", "-f", "files", "--yes"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(bench.objects().len(), 2);
    assert_eq!(debugged.child.try_wait().unwrap(), None, "it is still running");
    debugged.child.kill().unwrap();
    debugged.child.wait().unwrap();
    let ran = bench.sandbox.run_with(&[("TF_REATTACH_PROVIDERS", "{")], &["plan", "-f", "files"]);
    assert!(ran.one_error().contains("TF_REATTACH_PROVIDERS is not valid"), "{ran:?}");
}

#[test]
fn a_secret_in_a_set_is_never_shown() {
    let bench = ProviderSandbox::new("corner");
    let secret = "apiVersion: v1\nkind: Secret\nmetadata: { name: s }\nstringData: { password: zebra }\n";
    bench.sandbox.write("files/secret.yaml", secret);
    let spec = "type: corner_thing, inputs: [{ name: password, secretKeyRef: { name: s, key: password } }], config: { \
                name: n, names: ['${inputs.password}', quartz], \
                unordered: [{ key: z, value: '${inputs.password}' }, { key: a, value: basalt }], \
                many: [{ key: z, value: '${inputs.password}' }, { key: a, value: gamma }] }";
    bench.resources(&[("thing", spec)]);
    let shows_no_secret = |shown: String| {
        assert!(!shown.contains("zebra") && !shown.contains("quartz") && !shown.contains("basalt"), "{shown}");
        assert!(shown.contains("gamma"), "the items of a list keep their positions: {shown}");
    };
    shows_no_secret(bench.sandbox.ok(&["plan", "-f", "files", "-o", "json"]));
    shows_no_secret(bench.sandbox.ok(&["plan", "-f", "files"]));
    bench.apply();
    shows_no_secret(bench.sandbox.ok(&["state", "show", "thing", "-f", "files", "-o", "json"]));
    assert_eq!(bench.sandbox.run(&["plan", "-f", "files", "--detailed-exitcode"]).code, Some(0), "no changes are left");
}

#[test]
fn all_schema_features_are_supported() {
    let bench = ProviderSandbox::new("corner");
    let thing = |text: &str, secret: u32| {
        format!(
            "type: corner_thing, config: {{ name: n, text: {text}, amount: 123456789012345678901234567890.125, \
             tags: {{ a: b }}, names: [y, x], any: {{ deep: [1, two, true] }}, password: hunter2, secret_wo: hidden, \
             secret_wo_version: {secret}, one: {{ key: k }}, many: [{{ key: a }}, {{ key: b, value: v }}], \
             unordered: [{{ key: b }}, {{ key: a }}], by_key: {{ x: {{ key: k }} }}, rule: [{{ key: r }}] }}"
        )
    };
    let named = "type: corner_identified, config: { region: north, name: n }";
    let counted = |text: &str| format!("type: corner_counted, config: {{ text: {text} }}");
    let all = |text: &str, secret: u32| {
        bench.resources(&[
            ("thing", &thing(text, secret)),
            ("reader", "type: terraform_data, config: { input: ['${thing.many[1].made}', '${thing.amount}', '${thing.any.deep[1]}', '${thing.by_key.x.made}'] }"),
            ("named", named),
            ("versioned", "type: corner_versioned, config: { title: '${named.id}' }"),
            ("counted", &counted(text)),
        ]);
        if secret > 1 {
            // Its plan depends on the other object.
            let late = "---\napiVersion: purlin.dev/v1alpha1\nkind: Resource\nmetadata: { name: late }\nspec: { type: corner_deferred, config: { needs: '${named.id}' } }\n";
            bench.sandbox.write("files/late.yaml", late);
        }
    };
    let summary =
        |output: String| output.lines().filter(|line| !line.contains(" finished")).collect::<Vec<_>>().join("\n");
    let unchanged = || {
        let plan = bench.sandbox.json(&["plan", "-f", "files", "-o", "json"]);
        let changes = plan["changes"].as_array().unwrap().iter().filter(|change| change["action"] != "NoOp");
        let left: Vec<_> = changes.map(|change| (&change["address"], &change["action"], &change["reason"])).collect();
        assert!(left.is_empty(), "{left:?} {}", plan["diagnostics"]);
    };
    all("t", 1);
    expect!["recorded: counted ready, named ready, reader ready, thing ready, versioned ready; exist: 3"]
        .assert_eq(&summary(bench.apply()));
    unchanged();
    let shown = bench.sandbox.ok(&["state", "show", "thing", "-f", "files", "-o", "json"]);
    assert!(shown.contains("123456789012345678901234567890.125") && shown.contains("\"secret_length\":6"), "{shown}");
    assert!(!shown.contains("hunter2") && !shown.contains("hidden"), "{shown}");
    let reader = bench.sandbox.ok(&["state", "show", "reader", "-f", "files", "-o", "json"]);
    assert!(reader.contains("\"made\"") && reader.contains("\"two\""), "{reader}");

    // In place, with private data and a write-only value that is sent again.
    all("u", 2);
    expect!["recorded: counted ready, late ready, named ready, reader ready, thing ready, versioned ready; exist: 3"]
        .assert_eq(&summary(bench.apply()));
    all("v", 2);
    bench.apply();
    unchanged();
    let counted = bench.sandbox.ok(&["state", "show", "counted", "-f", "files", "-o", "json"]);
    assert!(counted.contains("\"updates\":2"), "{counted}");

    // One object drifts, and another is deleted.
    let id = bench.id_of("v");
    fs::write(bench.sandbox.path("world").join(&id), "drifted").unwrap();
    fs::remove_file(bench.sandbox.path("world/north-n")).unwrap();
    bench.apply();
    assert_eq!(bench.id_of("v"), id);
    unchanged();
    bench.sandbox.ok(&["destroy", "-f", "files", "--yes"]);
    assert_eq!(bench.summary(), "recorded: ; exist: 0\n");
}

#[test]
fn legacy_provider_behavior_is_tolerated() {
    let bench = ProviderSandbox::new("legacy");
    let thing = |name: &str, text: &str| {
        format!(
            "type: legacy_thing, config: {{ name: {name}, text: {text}, casing: MiXed, document: '{{ \"a\":  1 }}', \
             size: 0.1, password: hunter2, tags: {{ a: b }}, one: [{{ key: k }}], many: [{{ key: a }}, {{ key: b, port: 8080 }}], \
             unordered: [{{ key: b }}, {{ key: a }}], as_attribute: [{{ key: z, value: w, port: 1 }}] }}"
        )
    };
    let rest = |expected: &[&str]| {
        let plan = bench.sandbox.json(&["plan", "-f", "files", "-o", "json"]);
        let changes = plan["changes"].as_array().unwrap().iter().filter(|change| change["action"] != "NoOp");
        let left: Vec<_> = changes.map(|change| change["action"].as_str().unwrap().to_owned()).collect();
        assert_eq!(left, expected, "{plan}");
    };
    for (name, text, actions) in [("n", "t", ["Create"]), ("n", "u", ["Update"]), ("m", "u", ["Replace"])] {
        bench.resources(&[("thing", &thing(name, text))]);
        rest(&actions);
        bench.apply();
        rest(&[]);
    }
    assert_eq!(bench.objects().len(), 1);
    let shown = bench.sandbox.ok(&["state", "show", "thing", "-f", "files", "-o", "json"]);
    assert!(shown.contains("\"mixed\"") && !shown.contains("hunter2"), "{shown}");
    bench.sandbox.write("files/resources.yaml", &manifest("other", &[]));
    bench.apply();
    assert_eq!(bench.summary(), "recorded: other ready; exist: 0\n");
}
