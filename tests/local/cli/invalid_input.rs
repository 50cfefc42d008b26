//! Each problem is reported in one line with its place, and changes nothing.

use super::sandbox::{Sandbox, manifest};

#[test]
fn invalid_manifests_are_reported_with_file_and_line() {
    let good = manifest("bad", &[]);
    let cases = [
        "kind: Resource\nmetadata: [\n".to_owned(),
        format!("{good}  lifecycel: {{ preventDestroy: true }}\n"),
        good.replace("{ name: bad }", "{ name: Bad_Name }"),
        good.replace("name: bad\n", "name: ${1 +}\n"),
    ];
    for text in cases {
        let sandbox = Sandbox::new();
        sandbox.write("files/bad.yaml", &text);
        sandbox.write("files/good.yaml", &manifest("good", &[]));
        let ran = sandbox.run(&["validate", "-f", "files"]);
        assert!(ran.one_error().contains("files/bad.yaml:"), "{text}: {ran:?}");
    }
}

#[test]
fn validate_reports_all_problems_at_once() {
    let sandbox = Sandbox::new();
    sandbox.write("files/a.yaml", "not: [closed\n");
    sandbox.write("files/b.yaml", &manifest("b", &[]).replace("spec:", "sepc:"));
    sandbox.write("files/c.yaml", &manifest("c", &[]).replace("name: c\n", "name: ${c.id\n"));
    sandbox.write("files/d.yaml", &manifest("d", &[]));
    let ran = sandbox.run(&["validate", "-f", "files"]);
    assert_eq!(ran.code, Some(1));
    for file in ["files/a.yaml:", "files/b.yaml:", "files/c.yaml:"] {
        assert!(ran.errors().iter().any(|error| error.contains(file)), "{file}: {ran:?}");
    }
    assert_eq!(sandbox.json(&["validate", "-f", "files", "-o", "json"])["valid"], false);
}

#[test]
fn the_consequences_of_an_error_are_no_errors_of_their_own() {
    let sandbox = Sandbox::new();
    sandbox.write("files/base.yaml", &(manifest("base", &[]) + &manifest("b", &["base"])));
    let users: String = (1..=8).map(|number| manifest(&format!("user-{number}"), &["b"])).collect();
    sandbox.write("files/users.yaml", &(users + &manifest("last", &["user-1"])));
    sandbox.ok(&["apply", "-f", "files", "--yes"]);
    sandbox.remove("files/base.yaml");
    let ran = sandbox.run(&["plan", "-f", "files"]);
    assert!(ran.one_error().contains("files/users.yaml:") && ran.one_error().contains("references `b`"), "{ran:?}");
    assert!(ran.stderr.contains("  7 more objects have this problem: user-2, "), "{ran:?}");
    assert!(ran.stderr.contains("  3 objects wait for this: b, base, last"), "{ran:?}");

    // The error of a provider is at the Provider.
    let sandbox = Sandbox::new();
    let provider = "apiVersion: purlin.dev/v1alpha1\nkind: Provider\nmetadata: { name: tls }\nspec: { package: { path: \
                    /nowhere } }\n";
    sandbox.write("files/provider.yaml", provider);
    let key = |number: u32| manifest(&format!("key-{number}"), &[]).replace("terraform_data", "tls_private_key");
    sandbox.write("files/keys.yaml", &((1..=8).map(key).collect::<String>() + &manifest("last", &["key-1"])));
    for command in ["plan", "validate"] {
        let ran = sandbox.run(&[command, "-f", "files"]);
        assert!(ran.one_error().contains("files/provider.yaml:1: the provider `tls` cannot be used"), "{ran:?}");
        assert!(ran.stderr.contains("  9 objects wait for this: key-1, "), "{ran:?}");
    }
}

#[test]
fn good_input_is_valid() {
    let sandbox = Sandbox::from_example("quickstart");
    assert!(sandbox.ok(&["validate", "-f", "files"]).contains("8 Resources"));
}

#[test]
fn one_bad_object_does_not_stop_the_others() {
    let sandbox = Sandbox::new();
    sandbox.write("files/good.yaml", &manifest("good", &[]));
    sandbox.write("files/bad.yaml", &manifest("bad", &[]).replace("terraform_data", "no_such_type"));
    let events = sandbox.events(&["apply", "-f", "files", "--yes", "--keep-going", "-o", "json"]);
    assert_eq!((&events[0]["event"], &events[0]["address"]), (&"diagnostic".into(), &"bad".into()), "{events:?}");
    assert_eq!(events.last().unwrap()["created"], 1);
    assert_eq!(sandbox.run(&["plan", "-f", "files"]).code, Some(1));
    assert_eq!(sandbox.recorded(), ["good"]);
}

#[test]
fn an_unreadable_file_holds_orphans() {
    let sandbox = Sandbox::new();
    sandbox.write("files/a.yaml", &manifest("a", &[]));
    sandbox.write("files/b.yaml", &manifest("b", &[]));
    sandbox.ok(&["apply", "-f", "files", "--yes"]);
    sandbox.write("files/b.yaml", "not: [closed\n");
    let ran = sandbox.run(&["apply", "-f", "files", "--yes"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert_eq!(sandbox.recorded(), ["a", "b"], "b may be in the unreadable file");
    sandbox.remove("files/b.yaml");
    sandbox.ok(&["apply", "-f", "files", "--yes"]);
    assert_eq!(sandbox.recorded(), ["a"]);
}

#[test]
fn a_state_file_serves_one_process_and_one_namespace() {
    let sandbox = Sandbox::new();
    sandbox.objects(&[("a", &[])]);
    let mut dev = sandbox.start(&["dev", "-f", "files"]);
    dev.wait_until("a is created", |_| sandbox.path("purlin.db").exists() && sandbox.recorded() == ["a"]);
    let ran = sandbox.run(&["apply", "-f", "files", "--yes"]);
    assert!(ran.one_error().contains("in use"), "{ran:?}");
    assert_eq!(sandbox.run(&["plan", "-f", "files"]).code, Some(0), "plan works while the file is locked");
    dev.signal("INT");
    assert_eq!(dev.end().code(), Some(0));

    let elsewhere = manifest("a", &[]).replace("{ name: a }", "{ name: a, namespace: elsewhere }");
    sandbox.write("files/objects.yaml", &elsewhere);
    let ran = sandbox.run(&["apply", "-f", "files", "--yes"]);
    assert!(ran.one_error().contains("elsewhere"), "{ran:?}");
}

#[test]
fn without_a_terminal_yes_is_required() {
    let sandbox = Sandbox::from_example("quickstart");
    for command in [&["apply"][..], &["apply", "-o", "json"], &["destroy"]] {
        let ran = sandbox.run(&[command, &["-f", "files"]].concat());
        ran.one_error();
        assert!(ran.stderr.contains("hint: add --yes") && ran.stdout.is_empty(), "{ran:?}");
    }
    assert!(!sandbox.path("purlin.db").exists());
}

#[test]
fn without_files_the_target_is_the_cluster() {
    let sandbox = Sandbox::new();
    for arguments in [&["apply", "--yes"][..], &["dev"], &["destroy", "--yes", "-n", "shop"]] {
        assert!(sandbox.run(arguments).one_error().contains("works only on files"));
    }
    let ran = sandbox.run(&["get"]);
    assert!(ran.one_error().contains("kubeconfig") && ran.stderr.contains("hint:"), "{ran:?}");
}

#[test]
fn usage_errors_exit_with_1() {
    let sandbox = Sandbox::new();
    assert_eq!(sandbox.run(&["plan", "--detailed-exitcode", "--no-such-flag"]).code, Some(1));
    assert_eq!(sandbox.run(&["plan", "-f", "files", "-n", "shop"]).code, Some(1));
}

#[test]
fn plan_requires_files() {
    let sandbox = Sandbox::from_example("quickstart");
    sandbox.ok(&["apply", "-f", "files", "--yes"]);
    assert!(sandbox.run(&["plan"]).one_error().contains("no files"));
    assert!(sandbox.ok(&["get"]).contains("load-balancer"), "records can be listed");
}
