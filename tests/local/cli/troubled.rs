//! Providers that fail in every way they can, through the whole of local mode: what is told, what is recorded, and how
//! it goes on.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use expect_test::{Expect, expect};

use super::bench::Bench;

/// Everything that was told in two applies, the second of which finds the provider well.
fn story(kind: &'static str, config: &str, expected: &Expect) -> Bench {
    let bench = Bench::new(kind);
    bench.trouble(config, "");
    let first = bench.apply();
    bench.peace();
    expected.assert_eq(&format!("{first}-- again --\n{}", bench.apply()));
    bench
}

#[test]
fn a_create_that_fails_leaves_nothing_or_what_it_has_made() {
    story(
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
    story(
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
    story(
        "corner",
        "on_create: invalid",
        &expect![[r#"
        after create skipped
        apart create finished
        bad create failed: the provider made something else than it planned: text: is not as planned (hint: this is a fault of the provider; report it to its authors)
        beside create finished
        recorded: apart ready, bad tainted, beside ready; exist: 2
        -- again --
        after create finished
        bad create finished
        bad destroy finished
        recorded: after ready, apart ready, bad ready, beside ready; exist: 2
    "#]],
    );
    story(
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
    story(
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
fn a_create_that_nobody_can_tell_about_waits_for_a_person_and_is_never_made_twice() {
    for (kind, what) in [("corner", "panic"), ("corner", "exit"), ("legacy", "panic")] {
        let expected = match what {
            "panic" if kind == "corner" => expect![[r#"
                after create skipped
                apart create finished
                bad create failed: whether it was done is not known: the provider corner ended during ApplyResourceChange: exit status: 2: panic: the provider panics as asked (at purlin.dev/purlin/tests/providers/corner/trouble.go:82)
                beside create finished
                recorded: apart ready, bad creating, beside ready; exist: 2
                -- again --
                after error: spec.config.input: waits for `bad` (at files/resources.yaml:7; it is held (CreateOutcomeUnknown: a creation was cut off and nobody can tell whether an object was made (hint: set spec.import.id to the object's id to adopt it, or declare that it never happened with `purlin state rm --force`)))
                bad error: a creation was cut off and nobody can tell whether an object was made (hint: set spec.import.id to the object's id to adopt it, or declare that it never happened with `purlin state rm --force`) (at files/resources.yaml:2)
                recorded: apart ready, bad creating, beside ready; exist: 2
            "#]],
            "exit" => expect![[r#"
                after create skipped
                apart create finished
                bad create failed: whether it was done is not known: the provider corner ended during ApplyResourceChange: exit status: 3: giving up as asked
                beside create finished
                recorded: apart ready, bad creating, beside ready; exist: 2
                -- again --
                after error: spec.config.input: waits for `bad` (at files/resources.yaml:7; it is held (CreateOutcomeUnknown: a creation was cut off and nobody can tell whether an object was made (hint: set spec.import.id to the object's id to adopt it, or declare that it never happened with `purlin state rm --force`)))
                bad error: a creation was cut off and nobody can tell whether an object was made (hint: set spec.import.id to the object's id to adopt it, or declare that it never happened with `purlin state rm --force`) (at files/resources.yaml:2)
                recorded: apart ready, bad creating, beside ready; exist: 2
            "#]],
            _ => expect![[r#"
                after create skipped
                apart create finished
                bad create failed: whether it was done is not known: the provider legacy ended during ApplyResourceChange: exit status: 2: panic: the provider panics as asked (at purlin.dev/purlin/tests/providers/legacy/trouble.go:49)
                beside create finished
                recorded: apart ready, bad creating, beside ready; exist: 2
                -- again --
                after error: spec.config.input: waits for `bad` (at files/resources.yaml:7; it is held (CreateOutcomeUnknown: a creation was cut off and nobody can tell whether an object was made (hint: set spec.import.id to the object's id to adopt it, or declare that it never happened with `purlin state rm --force`)))
                bad error: a creation was cut off and nobody can tell whether an object was made (hint: set spec.import.id to the object's id to adopt it, or declare that it never happened with `purlin state rm --force`) (at files/resources.yaml:2)
                recorded: apart ready, bad creating, beside ready; exist: 2
            "#]],
        };
        let bench = story(kind, &format!("on_create: {what}"), &expected);
        if (kind, what) != ("corner", "panic") {
            continue;
        }
        // One way out: it is named.
        let id = bench.id_of("t");
        bench.trouble("", &format!(", import: {{ id: {id} }}"));
        expect![[r#"
            after create finished
            recorded: after ready, apart ready, bad ready, beside ready; exist: 2
        "#]]
        .assert_eq(&bench.apply());
        assert_eq!(bench.id_of("t"), id, "the object is the one that was made");
    }
    // The other: it never happened.
    let bench = Bench::new("corner");
    bench.trouble("on_create: exit", "");
    bench.apply();
    let lost = bench.id_of("t");
    bench.peace();
    bench.sandbox.ok(&["state", "rm", "bad", "--state", "purlin.db", "--force", "--yes"]);
    fs::remove_file(bench.sandbox.path("world").join(lost)).unwrap();
    expect![[r#"
        after create finished
        bad create finished
        recorded: after ready, apart ready, bad ready, beside ready; exist: 2
    "#]]
    .assert_eq(&bench.apply());
}

/// As [`story`], of a change of an object that was made in peace.
fn change(kind: &'static str, what: &str, expected: &Expect) {
    let bench = Bench::new(kind);
    bench.peace();
    bench.trouble("", "");
    bench.apply();
    bench.war();
    bench.trouble(&format!("text: new, {what}"), "");
    let first = bench.apply();
    bench.peace();
    expected.assert_eq(&format!("{first}-- again --\n{}", bench.apply()));
}

#[test]
fn an_update_that_fails_taints_nothing_and_is_tried_again() {
    change(
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
    change(
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
    change(
        "corner",
        "on_update: invalid",
        &expect![[r#"
        after update skipped
        bad update failed: the provider made something else than it planned: text: is not as planned (hint: this is a fault of the provider; report it to its authors)
        recorded: after ready, apart ready, bad ready, beside ready; exist: 2
        -- again --
        after update finished
        bad record finished
        recorded: after ready, apart ready, bad ready, beside ready; exist: 2
    "#]],
    );
    change(
        "corner",
        "on_update: panic",
        &expect![[r#"
        after update skipped
        bad update failed: whether it was done is not known: the provider corner ended during ApplyResourceChange: exit status: 2: panic: the provider panics as asked (at purlin.dev/purlin/tests/providers/corner/trouble.go:82)
        recorded: after ready, apart ready, bad ready, beside ready; exist: 2
        -- again --
        after update finished
        bad update finished
        recorded: after ready, apart ready, bad ready, beside ready; exist: 2
    "#]],
    );
    change(
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
    change(
        "legacy",
        "on_update: exit",
        &expect![[r#"
        after update skipped
        bad update failed: whether it was done is not known: the provider legacy ended during ApplyResourceChange: exit status: 3: giving up as asked
        recorded: after ready, apart ready, bad ready, beside ready; exist: 2
        -- again --
        after update finished
        bad update finished
        recorded: after ready, apart ready, bad ready, beside ready; exist: 2
    "#]],
    );
}

#[test]
fn a_destroy_that_fails_keeps_the_record_until_the_object_is_gone() {
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
            bad destroy failed: whether it was done is not known: the provider corner ended during ApplyResourceChange: exit status: 2: panic: the provider panics as asked (at purlin.dev/purlin/tests/providers/corner/trouble.go:82)
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
            bad destroy failed: whether it was done is not known: the provider legacy ended during ApplyResourceChange: exit status: 3: giving up as asked
            beside destroy finished
            recorded: apart ready, bad ready; exist: 0
            -- again --
            recorded: apart ready; exist: 0
        "#]],
        ),
    ] {
        let bench = Bench::new(kind);
        bench.trouble(&format!("on_delete: {what}"), "");
        bench.apply();
        bench.resources(&[("apart", "type: terraform_data, config: { input: 1 }")]);
        let first = bench.apply();
        bench.peace();
        expected.assert_eq(&format!("{first}-- again --\n{}", bench.apply()));
    }
}

#[test]
fn a_plan_or_a_read_that_fails_changes_nothing_and_holds_up_its_object_only() {
    story(
        "corner",
        "on_plan: error",
        &expect![[r#"
            after error: spec.config.input: waits for `bad` (at files/resources.yaml:7; it cannot be planned (OperationFailed: the change could not be planned))
            apart create finished
            bad error: spec.config.on_plan: the change could not be planned (at files/resources.yaml:2; It failed as asked: nothing was done)
            beside create finished
            recorded: apart ready, beside ready; exist: 1
            -- again --
            after create finished
            bad create finished
            recorded: after ready, apart ready, bad ready, beside ready; exist: 2
        "#]],
    );
    story(
        "corner",
        "on_plan: invalid",
        &expect![[r#"
            after error: spec.config.input: waits for `bad` (at files/resources.yaml:7; it cannot be planned (OperationRefused: the change could not be planned))
            apart create finished
            bad error: the change could not be planned (at files/resources.yaml:2; the provider gave an invalid plan: text: is not planned as configured; hint: this is a fault of the provider; report it to its authors)
            beside create finished
            recorded: apart ready, beside ready; exist: 1
            -- again --
            after create finished
            bad create finished
            recorded: after ready, apart ready, bad ready, beside ready; exist: 2
        "#]],
    );
    story(
        "corner",
        "on_plan: panic",
        &expect![[r#"
            after error: spec.config.input: waits for `bad` (at files/resources.yaml:7; it cannot be planned (OperationFailed: the change could not be planned))
            apart create finished
            bad error: the change could not be planned (at files/resources.yaml:2; the provider corner ended during PlanResourceChange: exit status: 2: panic: the provider panics as asked (at purlin.dev/purlin/tests/providers/corner/trouble.go:82))
            beside create finished
            recorded: apart ready, beside ready; exist: 1
            -- again --
            after create finished
            bad create finished
            recorded: after ready, apart ready, bad ready, beside ready; exist: 2
        "#]],
    );
    for (kind, what) in [("corner", "error"), ("corner", "panic"), ("legacy", "exit")] {
        let bench = Bench::new(kind);
        bench.peace();
        bench.trouble(&format!("on_read: {what}"), "");
        bench.apply();
        bench.war();
        let expected = match what {
            "error" => expect![[r#"
                after error: spec.config.input: waits for `bad` (at files/resources.yaml:7; it cannot be planned (OperationFailed: the object could not be read))
                bad error: spec.config.on_read: the object could not be read (at files/resources.yaml:2; It failed as asked: nothing was done)
                recorded: after ready, apart ready, bad ready, beside ready; exist: 2
            "#]],
            "panic" => expect![[r#"
                after error: spec.config.input: waits for `bad` (at files/resources.yaml:7; it cannot be planned (OperationFailed: the object could not be read))
                bad error: the object could not be read (at files/resources.yaml:2; the provider corner ended during ReadResource: exit status: 2: panic: the provider panics as asked (at purlin.dev/purlin/tests/providers/corner/trouble.go:82))
                recorded: after ready, apart ready, bad ready, beside ready; exist: 2
            "#]],
            _ => expect![[r#"
                after error: spec.config.input: waits for `bad` (at files/resources.yaml:7; it cannot be planned (OperationFailed: the object could not be read))
                bad error: the object could not be read (at files/resources.yaml:2; the provider legacy ended during ReadResource: exit status: 3: giving up as asked)
                recorded: after ready, apart ready, bad ready, beside ready; exist: 2
            "#]],
        };
        expected.assert_eq(&bench.apply());
    }
}

#[test]
fn objects_of_the_same_process_survive_the_crash_that_one_of_them_causes() {
    let bench = Bench::new("corner");
    let good: Vec<(String, String)> =
        (0..8).map(|n| (format!("good-{n}"), "type: corner_trouble, config: { text: g }".to_owned())).collect();
    let mut all: Vec<(&str, &str)> = good.iter().map(|(name, spec)| (name.as_str(), spec.as_str())).collect();
    all.push(("bad", "type: corner_trouble, config: { on_plan: panic }"));
    bench.resources(&all);
    let told = bench.apply();
    assert!(told.contains("bad error: ") && told.contains("panic: the provider panics as asked"), "{told}");
    assert_eq!(bench.objects().len(), 8, "{told}");
}

#[test]
fn a_call_that_hangs_is_given_up_in_its_time_and_the_rest_goes_on() {
    let bench = Bench::new("corner");
    bench.trouble("on_plan: hang", ", timeouts: { read: 1s }");
    let told = bench.apply();
    assert!(
        told.contains(
            "bad error: the change could not be planned (at files/resources.yaml:2; the provider corner did not answer PlanResourceChange within"
        ),
        "{told}"
    );
    assert!(told.contains("beside create finished\n") && told.ends_with("exist: 1\n"), "{told}");

    bench.trouble("on_create: hang", ", timeouts: { create: 1s }");
    let told = bench.apply();
    assert!(told.contains("bad warning: the create takes longer than its limit of 1s"), "{told}");
    assert!(told.contains("bad create failed: whether it was done is not known: the provider corner"), "{told}");
    assert!(told.contains("after create skipped\n") && told.contains("bad creating"), "{told}");
    bench.peace();
    let told = bench.apply();
    assert!(told.contains("nobody can tell whether an object was made"), "{told}");
    assert_eq!(bench.objects().len(), 2);
}

#[test]
fn what_is_no_provider_or_cannot_be_configured_is_told_at_each_object() {
    let bench = Bench::new("corner");
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
    let folder = bench.sandbox.path("").display().to_string();
    expect![[r#"
        absent error: the provider `absent` cannot be used: there is no program of the provider `absent`: spec.package.path: HERE/absent: No such file or directory (os error 2) (at files/resources.yaml:22)
        broken error: the provider `broken` cannot be used: the provider broken did not start: it ended without a handshake: exit status: 127: cannot open libfoo.so (at files/resources.yaml:17)
        chatty error: the provider `chatty` cannot be used: the provider chatty did not start: it is no provider plugin: it wrote `Hello` where a plugin tells its address (at files/resources.yaml:12)
        good create finished
        odd error: the settings `odd` are not valid: spec.config.colour: there is no such argument (at files/resources.yaml:32; hint: there are `fail`, `folder`, `secret`, `warn`)
        old error: the provider `old` cannot be used: the provider old did not start: it speaks version 4 of the provider protocol, Purlin speaks 5 and 6 (hint: use a version of the provider that was made for Terraform 0.12 or newer) (at files/resources.yaml:2)
        older error: the provider `older` cannot be used: the provider older did not start: it speaks net/rpc, Purlin speaks gRPC (hint: use a version of the provider that was made for Terraform 0.12 or newer) (at files/resources.yaml:7)
        poor error: the settings `poor` are refused by the provider `corner`: spec.config.fail: The configuration is refused: no money (at files/resources.yaml:27)
        recorded: good ready; exist: 1
    "#]].assert_eq(&bench.apply().replace(&folder, "HERE/"));
}
