//! Failures of providers on files: what is reported and recorded, and how the next apply continues.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use expect_test::{Expect, expect};

use super::provider_sandbox::ProviderSandbox;

/// Asserts the output of two applies. In the second, the provider no longer fails.
fn assert_applies(kind: &'static str, config: &str, expected: &Expect) -> ProviderSandbox {
    let bench = ProviderSandbox::new(kind);
    bench.trouble(config, "");
    let first = bench.apply();
    bench.disable_failures();
    expected.assert_eq(&format!("{first}-- again --\n{}", bench.apply()));
    bench
}

#[test]
fn a_failed_create_records_created_objects() {
    assert_applies(
        "corner",
        "on_create: error",
        &expect![[r#"
        after create skipped
        apart create finished
        bad create failed: spec.config.on_create: It failed as asked: nothing was done
        beside create finished
        recorded: apart ready, beside ready; exist: 1
        -- again --
        after create finished
        bad create finished
        recorded: after ready, apart ready, bad ready, beside ready; exist: 2
    "#]],
    );
    assert_applies(
        "corner",
        "on_create: partial",
        &expect![[r#"
        after create skipped
        apart create finished
        bad create failed: spec.config.on_create: It failed halfway: the object is there
        beside create finished
        recorded: apart ready, bad tainted, beside ready; exist: 2
        -- again --
        after create finished
        bad create finished
        bad destroy finished
        recorded: after ready, apart ready, bad ready, beside ready; exist: 2
    "#]],
    );
    assert_applies(
        "corner",
        "on_create: invalid",
        &expect![[r#"
            after create skipped
            apart create finished
            bad create failed: the provider produced an inconsistent result after apply: text: does not match the planned value (hint: this is a bug in the provider; report it to its developers)
            beside create finished
            recorded: apart ready, bad tainted, beside ready; exist: 2
            -- again --
            after create finished
            bad create finished
            bad destroy finished
            recorded: after ready, apart ready, bad ready, beside ready; exist: 2
        "#]],
    );
    assert_applies(
        "legacy",
        "on_create: error",
        &expect![[r#"
        after create skipped
        apart create finished
        bad create failed: it failed as asked
        beside create finished
        recorded: apart ready, beside ready; exist: 1
        -- again --
        after create finished
        bad create finished
        recorded: after ready, apart ready, bad ready, beside ready; exist: 2
    "#]],
    );
    assert_applies(
        "legacy",
        "on_create: partial",
        &expect![[r#"
        after create skipped
        apart create finished
        bad create failed: it failed halfway
        beside create finished
        recorded: apart ready, bad tainted, beside ready; exist: 2
        -- again --
        after create finished
        bad create finished
        bad destroy finished
        recorded: after ready, apart ready, bad ready, beside ready; exist: 2
    "#]],
    );
}

#[test]
fn an_unverified_create_needs_user_action_and_is_not_repeated() {
    for (kind, what) in [("corner", "panic"), ("corner", "exit"), ("legacy", "panic")] {
        let expected = match what {
            "panic" if kind == "corner" => expect![[r#"
                after create skipped
                apart create finished
                bad create failed: the outcome of the call is unknown: the provider corner exited during ApplyResourceChange: exit status: 2: panic: the provider panics as asked (at purlin.dev/purlin/tests/providers/corner/trouble.go:83)
                beside create finished
                recorded: apart ready, bad creating, beside ready; exist: 2
                -- again --
                after error: spec.config.input: waits for `bad` (at files/resources.yaml:10; it is blocked (CreateOutcomeUnknown: a create was interrupted and it is unknown whether the object was created))
                bad error: a create was interrupted and it is unknown whether the object was created (at files/resources.yaml:2; hint: set spec.import.id if it exists, or run `purlin state recover`)
                recorded: apart ready, bad creating, beside ready; exist: 2
            "#]],
            "exit" => expect![[r#"
                after create skipped
                apart create finished
                bad create failed: the outcome of the call is unknown: the provider corner exited during ApplyResourceChange: exit status: 3: giving up as asked
                beside create finished
                recorded: apart ready, bad creating, beside ready; exist: 2
                -- again --
                after error: spec.config.input: waits for `bad` (at files/resources.yaml:10; it is blocked (CreateOutcomeUnknown: a create was interrupted and it is unknown whether the object was created))
                bad error: a create was interrupted and it is unknown whether the object was created (at files/resources.yaml:2; hint: set spec.import.id if it exists, or run `purlin state recover`)
                recorded: apart ready, bad creating, beside ready; exist: 2
            "#]],
            _ => expect![[r#"
                after create skipped
                apart create finished
                bad create failed: the outcome of the call is unknown: the provider legacy exited during ApplyResourceChange: exit status: 2: panic: the provider panics as asked (at purlin.dev/purlin/tests/providers/legacy/trouble.go:48)
                beside create finished
                recorded: apart ready, bad creating, beside ready; exist: 2
                -- again --
                after error: spec.config.input: waits for `bad` (at files/resources.yaml:10; it is blocked (CreateOutcomeUnknown: a create was interrupted and it is unknown whether the object was created))
                bad error: a create was interrupted and it is unknown whether the object was created (at files/resources.yaml:2; hint: set spec.import.id if it exists, or run `purlin state recover`)
                recorded: apart ready, bad creating, beside ready; exist: 2
            "#]],
        };
        let bench = assert_applies(kind, &format!("on_create: {what}"), &expected);
        if (kind, what) != ("corner", "panic") {
            continue;
        }
        // The first way to resolve it: import the object.
        let id = bench.id_of("t");
        bench.trouble("", &format!(", import: {{ id: \"{id}\" }}"));
        expect![[r#"
            after create finished
            bad update finished
            recorded: after ready, apart ready, bad ready, beside ready; exist: 2
        "#]]
        .assert_eq(&bench.apply());
        assert_eq!(bench.id_of("t"), id, "the created object is imported");
    }
    // The second way: remove the record.
    let bench = ProviderSandbox::new("corner");
    bench.trouble("on_create: exit", "");
    bench.apply();
    let lost = bench.id_of("t");
    bench.disable_failures();
    bench.sandbox.ok(&["state", "rm", "bad", "--state", "purlin.db", "--force", "--yes"]);
    fs::remove_file(bench.sandbox.path("world").join(lost)).unwrap();
    expect![[r#"
        after create finished
        bad create finished
        recorded: after ready, apart ready, bad ready, beside ready; exist: 2
    "#]]
    .assert_eq(&bench.apply());
}

/// As [`story`], for an update of an object that was created without failures.
fn assert_updates(kind: &'static str, what: &str, expected: &Expect) {
    let bench = ProviderSandbox::new(kind);
    bench.disable_failures();
    bench.trouble("", "");
    bench.apply();
    bench.enable_failures();
    bench.trouble(&format!("text: new, {what}"), "");
    let first = bench.apply();
    bench.disable_failures();
    expected.assert_eq(&format!("{first}-- again --\n{}", bench.apply()));
}

#[test]
fn a_failed_update_is_retried_and_does_not_taint() {
    assert_updates(
        "corner",
        "on_update: error",
        &expect![[r#"
        after update skipped
        bad update failed: spec.config.on_update: It failed as asked: nothing was done
        recorded: after ready, apart ready, bad ready, beside ready; exist: 2
        -- again --
        after update finished
        bad update finished
        recorded: after ready, apart ready, bad ready, beside ready; exist: 2
    "#]],
    );
    assert_updates(
        "corner",
        "on_update: partial",
        &expect![[r#"
        after update skipped
        bad update failed: spec.config.on_update: It failed halfway: the object is there
        recorded: after ready, apart ready, bad ready, beside ready; exist: 2
        -- again --
        after update finished
        recorded: after ready, apart ready, bad ready, beside ready; exist: 2
    "#]],
    );
    assert_updates(
        "corner",
        "on_update: invalid",
        &expect![[r#"
            after update skipped
            bad update failed: the provider produced an inconsistent result after apply: text: does not match the planned value (hint: this is a bug in the provider; report it to its developers)
            recorded: after ready, apart ready, bad ready, beside ready; exist: 2
            -- again --
            after update finished
            bad record finished
            recorded: after ready, apart ready, bad ready, beside ready; exist: 2
        "#]],
    );
    assert_updates(
        "corner",
        "on_update: panic",
        &expect![[r#"
            after update skipped
            bad update failed: the outcome of the call is unknown: the provider corner exited during ApplyResourceChange: exit status: 2: panic: the provider panics as asked (at purlin.dev/purlin/tests/providers/corner/trouble.go:83)
            recorded: after ready, apart ready, bad ready, beside ready; exist: 2
            -- again --
            after update finished
            bad update finished
            recorded: after ready, apart ready, bad ready, beside ready; exist: 2
        "#]],
    );
    assert_updates(
        "legacy",
        "on_update: partial",
        &expect![[r#"
        after update skipped
        bad update failed: it failed halfway
        recorded: after ready, apart ready, bad ready, beside ready; exist: 2
        -- again --
        after update finished
        recorded: after ready, apart ready, bad ready, beside ready; exist: 2
    "#]],
    );
    assert_updates(
        "legacy",
        "on_update: exit",
        &expect![[r#"
            after update skipped
            bad update failed: the outcome of the call is unknown: the provider legacy exited during ApplyResourceChange: exit status: 3: giving up as asked
            recorded: after ready, apart ready, bad ready, beside ready; exist: 2
            -- again --
            after update finished
            bad update finished
            recorded: after ready, apart ready, bad ready, beside ready; exist: 2
        "#]],
    );
}

#[test]
fn a_failed_destroy_keeps_the_record() {
    for (kind, what, expected) in [
        (
            "corner",
            "error",
            expect![[r#"
            after destroy finished
            bad destroy failed: spec.config.on_delete: It failed as asked: nothing was done
            beside destroy finished
            recorded: apart ready, bad ready; exist: 1
            -- again --
            bad destroy finished
            recorded: apart ready; exist: 0
        "#]],
        ),
        (
            "corner",
            "panic",
            expect![[r#"
                after destroy finished
                bad destroy failed: the outcome of the call is unknown: the provider corner exited during ApplyResourceChange: exit status: 2: panic: the provider panics as asked (at purlin.dev/purlin/tests/providers/corner/trouble.go:83)
                beside destroy finished
                recorded: apart ready, bad ready; exist: 0
                -- again --
                recorded: apart ready; exist: 0
            "#]],
        ),
        (
            "legacy",
            "exit",
            expect![[r#"
                after destroy finished
                bad destroy failed: the outcome of the call is unknown: the provider legacy exited during ApplyResourceChange: exit status: 3: giving up as asked
                beside destroy finished
                recorded: apart ready, bad ready; exist: 0
                -- again --
                recorded: apart ready; exist: 0
            "#]],
        ),
    ] {
        let bench = ProviderSandbox::new(kind);
        bench.trouble(&format!("on_delete: {what}"), "");
        bench.apply();
        bench.resources(&[("apart", "type: terraform_data, config: { input: 1 }")]);
        let first = bench.apply();
        bench.disable_failures();
        expected.assert_eq(&format!("{first}-- again --\n{}", bench.apply()));
    }
}

#[test]
fn a_failed_plan_or_read_blocks_only_its_object_and_dependents() {
    assert_applies(
        "corner",
        "on_plan: error",
        &expect![[r#"
            after error: spec.config.input: waits for `bad` (at files/resources.yaml:10; it cannot be planned (OperationFailed: It failed as asked: nothing was done))
            apart create finished
            bad error: spec.config.on_plan: the change could not be planned (at files/resources.yaml:5; It failed as asked: nothing was done)
            beside create finished
            recorded: apart ready, beside ready; exist: 1
            -- again --
            after create finished
            bad create finished
            recorded: after ready, apart ready, bad ready, beside ready; exist: 2
        "#]],
    );
    assert_applies(
        "corner",
        "on_plan: invalid",
        &expect![[r#"
            after error: spec.config.input: waits for `bad` (at files/resources.yaml:10; it cannot be planned (OperationRejected: the provider produced an invalid plan: text: the planned value does not match the configuration))
            apart create finished
            bad error: the change could not be planned (at files/resources.yaml:2; the provider produced an invalid plan: text: the planned value does not match the configuration; hint: this is a bug in the provider; report it to its developers)
            beside create finished
            recorded: apart ready, beside ready; exist: 1
            -- again --
            after create finished
            bad create finished
            recorded: after ready, apart ready, bad ready, beside ready; exist: 2
        "#]],
    );
    assert_applies(
        "corner",
        "on_plan: panic",
        &expect![[r#"
            after error: spec.config.input: waits for `bad` (at files/resources.yaml:10; it cannot be planned (OperationFailed: the provider corner exited during PlanResourceChange: exit status: 2: panic: the provider panics as asked (at purlin.dev/purlin/tests/providers/corner/trouble.go:83)))
            apart create finished
            bad error: the change could not be planned (at files/resources.yaml:2; the provider corner exited during PlanResourceChange: exit status: 2: panic: the provider panics as asked (at purlin.dev/purlin/tests/providers/corner/trouble.go:83))
            beside create finished
            recorded: apart ready, beside ready; exist: 1
            -- again --
            after create finished
            bad create finished
            recorded: after ready, apart ready, bad ready, beside ready; exist: 2
        "#]],
    );
    for (kind, what) in [("corner", "error"), ("corner", "panic"), ("legacy", "exit")] {
        let bench = ProviderSandbox::new(kind);
        bench.disable_failures();
        bench.trouble(&format!("on_read: {what}"), "");
        bench.apply();
        bench.enable_failures();
        let expected = match what {
            "error" => expect![[r#"
                after error: spec.config.input: waits for `bad` (at files/resources.yaml:10; it cannot be planned (OperationFailed: It failed as asked: nothing was done))
                bad error: spec.config.on_read: the object could not be read (at files/resources.yaml:5; It failed as asked: nothing was done)
                recorded: after ready, apart ready, bad ready, beside ready; exist: 2
            "#]],
            "panic" => expect![[r#"
                after error: spec.config.input: waits for `bad` (at files/resources.yaml:10; it cannot be planned (OperationFailed: the provider corner exited during ReadResource: exit status: 2: panic: the provider panics as asked (at purlin.dev/purlin/tests/providers/corner/trouble.go:83)))
                bad error: the object could not be read (at files/resources.yaml:2; the provider corner exited during ReadResource: exit status: 2: panic: the provider panics as asked (at purlin.dev/purlin/tests/providers/corner/trouble.go:83))
                recorded: after ready, apart ready, bad ready, beside ready; exist: 2
            "#]],
            _ => expect![[r#"
                after error: spec.config.input: waits for `bad` (at files/resources.yaml:10; it cannot be planned (OperationFailed: the provider legacy exited during ReadResource: exit status: 3: giving up as asked))
                bad error: the object could not be read (at files/resources.yaml:2; the provider legacy exited during ReadResource: exit status: 3: giving up as asked)
                recorded: after ready, apart ready, bad ready, beside ready; exist: 2
            "#]],
        };
        expected.assert_eq(&bench.apply());
    }
}

#[test]
fn a_provider_crash_does_not_fail_other_objects() {
    let bench = ProviderSandbox::new("corner");
    let good: Vec<(String, String)> =
        (0..8).map(|n| (format!("good-{n}"), "type: corner_trouble, config: { text: g }".to_owned())).collect();
    let mut all: Vec<(&str, &str)> = good.iter().map(|(name, spec)| (name.as_str(), spec.as_str())).collect();
    all.push(("bad", "type: corner_trouble, config: { on_plan: panic }"));
    bench.resources(&all);
    let output = bench.apply();
    assert!(output.contains("bad error: ") && output.contains("panic: the provider panics as asked"), "{output}");
    assert_eq!(bench.objects().len(), 8, "{output}");
}

#[test]
fn a_hanging_call_times_out_without_blocking_others() {
    let bench = ProviderSandbox::new("corner");
    bench.trouble("on_plan: hang", ", timeouts: { read: 1s }");
    let output = bench.apply();
    assert!(
        output.contains(
            "bad error: the change could not be planned (at files/resources.yaml:2; the provider corner did not respond to PlanResourceChange within"
        ),
        "{output}"
    );
    assert!(output.contains("beside create finished\n") && output.ends_with("exist: 1\n"), "{output}");

    bench.trouble("on_create: hang", ", timeouts: { create: 1s }");
    let output = bench.apply();
    assert!(output.contains("bad warning: the create exceeds its time limit of 1s"), "{output}");
    assert!(output.contains("bad create failed: the outcome of the call is unknown: the provider corner"), "{output}");
    assert!(output.contains("after create skipped\n") && output.contains("bad creating"), "{output}");
    bench.disable_failures();
    let output = bench.apply();
    assert!(output.contains("it is unknown whether the object was created"), "{output}");
    assert_eq!(bench.objects().len(), 2);
}

#[test]
fn provider_start_errors_are_reported_for_each_object() {
    let bench = ProviderSandbox::new("corner");
    let script = |name: &str, text: &str| {
        let path = bench.sandbox.path(name);
        fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        let program = path.display();
        format!(
            "---\napiVersion: purlin.dev/v1alpha1\nkind: Provider\nmetadata: {{ name: {name} }}\nspec: {{ package: {{ path: '{program}' }} }}\n"
        )
    };
    let config = |name: &str, config: &str| {
        format!(
            "---\napiVersion: purlin.dev/v1alpha1\nkind: ProviderConfig\nmetadata: {{ name: {name} }}\nspec: {{ provider: {{ name: corner }}, config: {config} }}\n"
        )
    };
    let documents = [
        script("old", "echo '1|4|unix|/nowhere|grpc|'; sleep 60"),
        script("older", "echo '1|5|unix|/nowhere'; sleep 60"),
        script("chatty", "echo Hello; sleep 60"),
        script("broken", "echo 'cannot open libfoo.so' >&2; exit 127"),
        script("absent", "exec sleep 60"),
        config("poor", "{ fail: no money }"),
        config("odd", "{ colour: red }"),
    ];
    bench.sandbox.write("files/more.yaml", &documents.concat());
    bench.sandbox.remove("absent");
    bench.resources(&[
        ("old", "type: old_thing"),
        ("older", "type: older_thing"),
        ("chatty", "type: chatty_thing"),
        ("broken", "type: broken_thing"),
        ("absent", "type: absent_thing"),
        ("poor", "type: corner_trouble, providerConfigRef: { name: poor }"),
        ("odd", "type: corner_trouble, providerConfigRef: { name: odd }"),
        ("good", "type: corner_trouble"),
    ]);
    let directory = bench.sandbox.path("").display().to_string();
    expect![[r#"
        absent error: the provider `absent` cannot be used: the program of the provider `absent` is not available: spec.package.path: HERE/absent: No such file or directory (os error 2) (at files/more.yaml:22)
        broken error: the provider `broken` cannot be used: the provider broken did not start: it exited before the handshake: exit status: 127: cannot open libfoo.so (at files/more.yaml:17)
        chatty error: the provider `chatty` cannot be used: the provider chatty did not start: it is not a provider plugin: it wrote `Hello` instead of a handshake (at files/more.yaml:12)
        good create finished
        odd error: the provider configuration `odd` is not valid: spec.config.colour: unsupported argument (at files/resources.yaml:32; hint: supported arguments: `fail`, `folder`, `secret`, `warn`)
        old error: the provider `old` cannot be used: the provider old did not start: it uses version 4 of the provider protocol, but Purlin supports only versions 5 and 6 (hint: use a version of the provider for Terraform 0.12 or newer) (at files/more.yaml:2)
        older error: the provider `older` cannot be used: the provider older did not start: it uses net/rpc, but Purlin supports only gRPC (hint: use a version of the provider for Terraform 0.12 or newer) (at files/more.yaml:7)
        poor error: the provider `corner` rejected the provider configuration `poor`: spec.config.fail: The configuration is refused: no money (at files/resources.yaml:27)
        recorded: good ready; exist: 1
    "#]].assert_eq(&bench.apply().replace(&directory, "HERE/"));
}

#[test]
fn a_replaced_object_is_destroyed_with_its_own_private_data_and_keeps_them_if_that_fails() {
    let bench = ProviderSandbox::new("corner");
    let apply = |place: &str, text: &str, secret: u32| {
        let config = format!("place: {place}, text: {text}, secret_wo: '{secret}'");
        bench.resources(&[("held", &format!("type: corner_guarded, config: {{ {config} }}"))]);
        bench.apply()
    };
    apply("a", "locked", 1);
    expect![[r#"
        held create skipped
        held destroy failed: It is locked: it cannot be destroyed
        recorded: held ready; exist: 1
    "#]]
    .assert_eq(&apply("b", "locked", 1));
    // The write-only argument is still compared with the one that was sent.
    let updated = expect![[r#"
        held update finished
        recorded: held ready; exist: 1
    "#]];
    updated.assert_eq(&apply("a", "locked", 2));
    updated.assert_eq(&apply("a", "open", 2));
    expect![[r#"
        held create finished
        held destroy finished
        recorded: held ready; exist: 1
    "#]]
    .assert_eq(&apply("b", "open", 2));
    // Here, the driver makes no plan from the old object.
    bench.sandbox.ok(&["apply", "-f", "files", "--yes", "--replace", "held"]);
}
