//! Objects that are not ready, or being deleted by another client.

use expect_test::expect;

use super::check;
use super::fixture::Fixture;

#[test]
fn only_a_new_object_waits_until_its_dependency_is_ready_again() {
    check(
        "
         want a input=1
         have a input=1
         health a crashed
         want new input=${a.input}
         want same input=1 after=a
         have same input=1 uses=a
         want changed input=2 after=a
         have changed input=1 uses=a
         want replaced force=2 after=a
         have replaced force=1 uses=a",
        expect![[r#"
            a NoOp
            changed Update {id=CHANGED input=2 output=?}
            new Blocked DependencyNotReady: spec.config.input: waits for `a`: it is not ready: crashed <- a
            replaced Replace DestroyFirst (attributes force replacement) [force] {force=2 id=? output=?}
            same NoOp
            error new DependencyNotReady"#]],
    );
}

#[test]
fn an_object_that_another_client_deletes_is_kept_and_everything_that_would_change_with_it_waits() {
    check(
        "
         want a input=1
         have a input=1
         health a terminating
         want new input=${a.input}
         want same input=1 after=a
         have same input=1 uses=a
         want changed input=2 after=a
         have changed input=1 uses=a",
        expect![[r#"
            a Blocked Terminating: it is being deleted, and the finalizer `a/b` keeps it (hint: the controllers of the finalizers must remove them; Purlin creates the object again when it is gone)
            changed Blocked DependencyNotReady: spec.dependsOn[0]: waits for `a`: it is being deleted, and the finalizer `a/b` keeps it <- a
            new Blocked DependencyNotReady: spec.config.input: waits for `a`: it is being deleted, and the finalizer `a/b` keeps it <- a
            same NoOp
            error a Terminating
            error changed DependencyNotReady
            error new DependencyNotReady"#]],
    );
}

#[test]
fn an_object_that_is_being_deleted_is_not_changed_or_replaced_and_its_own_destroy_proceeds() {
    check(
        "
         want a force=2
         have a force=1
         health a terminating
         have gone
         health gone terminating
         want reported drift=report
         have reported
         health reported terminating",
        expect![[r#"
            a Blocked Terminating: it is being deleted, and the finalizer `a/b` keeps it (hint: the controllers of the finalizers must remove them; Purlin creates the object again when it is gone)
            gone Destroy (no longer configured)
            reported Blocked Terminating: it is being deleted, and the finalizer `a/b` keeps it (hint: the controllers of the finalizers must remove them; set `spec.drift.action: Correct` to create the object again when it is gone)
            error a Terminating
            error reported Terminating"#]],
    );
}

#[test]
fn a_dependency_with_a_step_orders_its_dependents() {
    check(
        "
         want a input=2
         have a input=1
         health a crashed
         want new input=${a.input}",
        expect![[r#"
            a Update {id=A input=2 output=?}
            new Create {id=? input=2 output=?}"#]],
    );
}

/// The create of an object that is awaited is not complete, so it is tried again. An object that was ready once is reported.
#[test]
fn a_new_object_that_disappears_before_it_is_ready_is_created_again() {
    check(
        "
         want new input=1 drift=report
         have new input=1 matching awaited
         actual new missing
         want old input=1 drift=report
         have old input=1 matching
         actual old missing
         option cluster
         option due=old",
        expect![[r#"
            new Create (it no longer exists) {id=? input=1 output=?}
            old NoOp (the object no longer exists)
            warning old ObjectMissing: the object no longer exists; not created again (`drift.action: Report`) (hint: set `spec.drift.action: Correct` to correct it, or change the configuration)"#]],
    );
}

/// As after a restart of the controller: nothing was seen yet, and the driver would plan with the object as it is now.
#[test]
fn a_change_by_another_client_of_an_object_that_is_not_ready_is_drift() {
    check(
        "
         want corrected input=1
         have corrected input=1 matching awaited
         actual corrected input=2
         want ignored input=1 drift=ignore
         have ignored input=1 matching awaited
         actual ignored input=2
         want reported input=1 drift=report
         have reported input=1 matching awaited
         actual reported input=2
         want same input=1
         have same input=1 matching awaited
         option cluster
         option due=",
        expect![[r#"
            corrected Update (it was changed outside of Purlin) {id=CORRECTED input=1 output=?}
            ignored Wait (it is not ready yet)
            reported Wait (changed outside of Purlin: `input`)
            same Wait (it is not ready yet)
            warning reported Drifted: changed outside of Purlin: `input`; not corrected (`drift.action: Report`) (hint: set `spec.drift.action: Correct` to correct it, or change the configuration)"#]],
    );
}

#[test]
fn only_an_object_that_is_not_ready_is_read_before_it_is_due() {
    let situation = "
         want awaited input=1
         have awaited input=1 matching awaited
         want ready input=1
         have ready input=1 matching
         option cluster
         option due=";
    let fixture = Fixture::parse(situation);
    fixture.plan();
    assert_eq!(*fixture.driver_calls.lock().unwrap(), ["read awaited", "plan awaited change"]);
}
