//! `purlin dev`: the folder is edited, and everything follows.

use super::bench::Bench;
use super::sandbox::{Sandbox, Started, manifest};

fn dev(sandbox: &Sandbox, objects: &[&str]) -> Started {
    let mut dev = sandbox.start(&["dev", "-f", "files"]);
    dev.until("the first objects are made", |_| sandbox.path("purlin.db").exists() && sandbox.recorded() == objects);
    dev
}

#[test]
fn edits_are_followed() {
    let sandbox = Sandbox::new();
    sandbox.objects(&[("a", &[])]);
    let mut dev = dev(&sandbox, &["a"]);
    sandbox.write("files/more.yaml", &manifest("b", &["a"]));
    dev.until("b is made", |_| sandbox.recorded() == ["a", "b"]);
    sandbox.remove("files/more.yaml");
    dev.until("b is destroyed", |_| sandbox.recorded() == ["a"]);
    dev.signal("INT");
    assert_eq!(dev.end().code(), Some(0));
}

#[test]
fn what_is_missing_and_protected_says_what_to_do_next() {
    let sandbox = Sandbox::new();
    let protected = manifest("a", &[]).replace("spec:", "spec:\n  lifecycle: { preventDestroy: true }");
    sandbox.write("files/a.yaml", &protected);
    sandbox.write("files/b.yaml", &manifest("b", &[]));
    let mut dev = dev(&sandbox, &["a", "b"]);
    let said = |dev: &Started| dev.out() + &dev.err();
    sandbox.remove("files/a.yaml");
    dev.until("the ways out are told", |dev| {
        let told = said(dev);
        told.contains("hint: to keep it bring the manifest back") && told.contains("purlin state unprotect a")
    });
    dev.until("it is at rest", |dev| said(dev).contains("the errors above say what to do about the rest. Watching."));
    let refused = sandbox.run(&["state", "unprotect", "a"]);
    assert!(refused.stderr.contains("`purlin dev` ends with Ctrl-C"), "{}", refused.stderr);
    sandbox.write("files/a.yaml", &protected);
    dev.until("it is kept", |dev| said(dev).matches("Everything is as the files ask for. Watching.").count() == 2);
    assert_eq!(sandbox.recorded(), ["a", "b"]);
}

#[test]
fn readings_that_find_nothing_say_nothing() {
    let bench = Bench::new("corner");
    std::fs::write(bench.sandbox.path("world/release"), "").unwrap();
    bench.resources(&[("a", "type: corner_trouble, config: { on_read: slow }, drift: { interval: 1s }")]);
    let mut dev = dev(&bench.sandbox, &["a"]);
    // Each reading says when it begins.
    let read = |_: &Started| std::fs::remove_file(bench.sandbox.path("world/started")).is_ok();
    for _ in 0..4 {
        dev.until("it is read", read);
    }
    let said = dev.out() + &dev.err();
    assert_eq!(said.matches("Everything is as the files ask for. Watching.").count(), 1, "{said}");
}

#[test]
fn nothing_is_destroyed_while_a_file_cannot_be_read() {
    let sandbox = Sandbox::new();
    sandbox.write("files/a.yaml", &manifest("a", &[]));
    sandbox.write("files/b.yaml", &manifest("b", &[]));
    let mut dev = dev(&sandbox, &["a", "b"]);
    sandbox.write("files/b.yaml", "not: [closed\n");
    dev.until("the file is complained about", |dev| dev.err().contains("files/b.yaml"));
    // Another edit shows that the loop goes on: what it makes comes after the decision about b.
    sandbox.write("files/c.yaml", &manifest("c", &[]));
    dev.until("c is made", |_| sandbox.recorded() == ["a", "b", "c"]);
    sandbox.remove("files/b.yaml");
    dev.until("b is destroyed", |_| sandbox.recorded() == ["a", "c"]);
}
