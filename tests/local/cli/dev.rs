//! `purlin dev`: follows edits of a directory.

use super::provider_sandbox::ProviderSandbox;
use super::sandbox::{RunningCommand, Sandbox, manifest};

fn dev(sandbox: &Sandbox, objects: &[&str]) -> RunningCommand {
    let mut dev = sandbox.start(&["dev", "-f", "files"]);
    dev.wait_until("the first objects are created", |_| {
        sandbox.path("purlin.db").exists() && sandbox.recorded() == objects
    });
    dev
}

#[test]
fn edits_are_applied() {
    let sandbox = Sandbox::new();
    sandbox.objects(&[("a", &[])]);
    let mut dev = dev(&sandbox, &["a"]);
    sandbox.write("files/more.yaml", &manifest("b", &["a"]));
    dev.wait_until("b is created", |_| sandbox.recorded() == ["a", "b"]);
    sandbox.remove("files/more.yaml");
    dev.wait_until("b is destroyed", |_| sandbox.recorded() == ["a"]);
    dev.signal("INT");
    assert_eq!(dev.end().code(), Some(0));
}

#[test]
fn a_protected_orphan_prints_hints() {
    let sandbox = Sandbox::new();
    let protected = manifest("a", &[]).replace("spec:", "spec:\n  lifecycle: { preventDestroy: true }");
    sandbox.write("files/a.yaml", &protected);
    sandbox.write("files/b.yaml", &manifest("b", &[]));
    let mut dev = dev(&sandbox, &["a", "b"]);
    let output = |dev: &RunningCommand| dev.out() + &dev.err();
    sandbox.remove("files/a.yaml");
    dev.wait_until("the hints are printed", |dev| {
        let printed = output(dev);
        printed.contains("hint: restore the manifest to keep the object")
            && printed.contains("purlin state unprotect a")
    });
    dev.wait_until("it is idle", |dev| output(dev).contains("until the errors above are fixed. Watching for changes."));
    let refused = sandbox.run(&["state", "unprotect", "a"]);
    assert!(refused.stderr.contains("stop `purlin dev` with Ctrl-C"), "{}", refused.stderr);
    sandbox.write("files/a.yaml", &protected);
    dev.wait_until("it is kept", |dev| {
        output(dev).matches("All objects are up to date. Watching for changes.").count() == 2
    });
    assert_eq!(sandbox.recorded(), ["a", "b"]);
}

#[test]
fn reads_without_drift_print_nothing() {
    let bench = ProviderSandbox::new("corner");
    std::fs::write(bench.sandbox.path("world/release"), "").unwrap();
    bench.resources(&[("a", "type: corner_trouble, config: { on_read: slow }, drift: { interval: 1s }")]);
    let mut dev = dev(&bench.sandbox, &["a"]);
    // Each read leaves a marker file.
    let read = |_: &RunningCommand| std::fs::remove_file(bench.sandbox.path("world/started")).is_ok();
    for _ in 0..4 {
        dev.wait_until("it is read", read);
    }
    let output = dev.out() + &dev.err();
    assert_eq!(output.matches("All objects are up to date. Watching for changes.").count(), 1, "{output}");
}

#[test]
fn nothing_is_destroyed_while_a_file_cannot_be_read() {
    let sandbox = Sandbox::new();
    sandbox.write("files/a.yaml", &manifest("a", &[]));
    sandbox.write("files/b.yaml", &manifest("b", &[]));
    let mut dev = dev(&sandbox, &["a", "b"]);
    sandbox.write("files/b.yaml", "not: [closed\n");
    dev.wait_until("the file is reported", |dev| dev.err().contains("files/b.yaml"));
    // Another edit shows that the loop continues: c is created after the decision about b.
    sandbox.write("files/c.yaml", &manifest("c", &[]));
    dev.wait_until("c is created", |_| sandbox.recorded() == ["a", "b", "c"]);
    sandbox.remove("files/b.yaml");
    dev.wait_until("b is destroyed", |_| sandbox.recorded() == ["a", "c"]);
}
