//! Objects that are not ready, or being deleted by another client.

use expect_test::expect;

use super::check;

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
         health gone terminating",
        expect![[r#"
            a Blocked Terminating: it is being deleted, and the finalizer `a/b` keeps it (hint: the controllers of the finalizers must remove them; Purlin creates the object again when it is gone)
            gone Destroy (no longer configured)
            error a Terminating"#]],
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
