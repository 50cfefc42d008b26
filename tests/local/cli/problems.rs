//! What goes wrong is told in one line, where it was given, and changes nothing.

use super::sandbox::{Sandbox, manifest};

#[test]
fn bad_input_is_told_with_file_and_line() {
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
fn good_input_is_valid() {
    let sandbox = Sandbox::of_example("quickstart");
    assert!(sandbox.ok(&["validate", "-f", "files"]).contains("8 Resources"));
}

#[test]
fn one_bad_object_does_not_stop_the_others() {
    let sandbox = Sandbox::new();
    sandbox.write("files/good.yaml", &manifest("good", &[]));
    sandbox.write("files/bad.yaml", &manifest("bad", &[]).replace("terraform_data", "no_such_type"));
    let events = sandbox.events(&["apply", "-f", "files", "--yes", "-o", "json"]);
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
    assert_eq!(sandbox.recorded(), ["a", "b"], "b may be in the file that cannot be read");
    sandbox.remove("files/b.yaml");
    sandbox.ok(&["apply", "-f", "files", "--yes"]);
    assert_eq!(sandbox.recorded(), ["a"]);
}

#[test]
fn an_empty_folder_is_no_wish_to_destroy_everything() {
    let sandbox = Sandbox::new();
    sandbox.objects(&[("a", &[])]);
    sandbox.ok(&["apply", "-f", "files", "--yes"]);
    sandbox.remove("files/objects.yaml");
    assert_eq!(sandbox.run(&["apply", "-f", "files", "--yes"]).code, Some(1));
    assert_eq!(sandbox.recorded(), ["a"]);
}

#[test]
fn a_state_file_serves_one_process_and_one_namespace() {
    let sandbox = Sandbox::new();
    sandbox.objects(&[("a", &[])]);
    let mut dev = sandbox.start(&["dev", "-f", "files"]);
    dev.until("a is made", |_| sandbox.path("purlin.db").exists() && sandbox.recorded() == ["a"]);
    let ran = sandbox.run(&["apply", "-f", "files", "--yes"]);
    assert!(ran.one_error().contains("in use"), "{ran:?}");
    assert_eq!(sandbox.run(&["plan", "-f", "files"]).code, Some(0), "looking is always possible");
    dev.signal("INT");
    assert_eq!(dev.end().code(), Some(0));

    let elsewhere = manifest("a", &[]).replace("{ name: a }", "{ name: a, namespace: elsewhere }");
    sandbox.write("files/objects.yaml", &elsewhere);
    let ran = sandbox.run(&["apply", "-f", "files", "--yes"]);
    assert!(ran.one_error().contains("elsewhere"), "{ran:?}");
}

#[test]
fn what_cannot_be_asked_must_be_said() {
    let sandbox = Sandbox::of_example("quickstart");
    for command in [&["apply"][..], &["apply", "-o", "json"], &["destroy"]] {
        let ran = sandbox.run(&[command, &["-f", "files"]].concat());
        ran.one_error();
        assert!(ran.stderr.contains("hint: add --yes") && ran.stdout.is_empty(), "{ran:?}");
    }
    assert!(!sandbox.path("purlin.db").exists());
}

#[test]
fn without_files_the_cluster_is_meant() {
    let sandbox = Sandbox::new();
    for arguments in [&["apply", "--yes"][..], &["dev"], &["destroy", "--yes", "-n", "shop"]] {
        assert!(sandbox.run(arguments).one_error().contains("files only"));
    }
    let ran = sandbox.run(&["get"]);
    assert!(ran.one_error().contains("kubeconfig") && ran.stderr.contains("hint:"), "{ran:?}");
}

#[test]
fn wrong_usage_is_no_news_of_changes() {
    let sandbox = Sandbox::new();
    assert_eq!(sandbox.run(&["plan", "--detailed-exitcode", "--no-such-flag"]).code, Some(1));
    assert_eq!(sandbox.run(&["plan", "-f", "files", "-n", "shop"]).code, Some(1));
}

#[test]
fn a_state_file_alone_does_not_say_what_is_wanted() {
    let sandbox = Sandbox::of_example("quickstart");
    sandbox.ok(&["apply", "-f", "files", "--yes"]);
    assert!(sandbox.run(&["plan"]).one_error().contains("no files"));
    assert!(sandbox.ok(&["get"]).contains("load-balancer"), "what is recorded can be listed");
}
