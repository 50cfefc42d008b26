//! Objects that go: orphans, deletions, leftovers, and plans towards nothing.

use expect_test::expect;

use super::check;

#[test]
fn an_orphan_is_destroyed() {
    check("have a input=1", expect!["a Destroy (no longer wanted)"]);
}

#[test]
fn an_orphan_that_is_gone_is_dropped_from_the_record() {
    check(
        "
         have a input=1
         world a gone",
        expect!["a Forget forget (it does not exist any more)"],
    );
}

#[test]
fn an_orphan_with_recorded_policy_orphan_is_forgotten() {
    check("have a skip", expect!["a Forget forget (no longer wanted; the object stays (as its Resource said))"]);
}

#[test]
fn no_orphan_is_destroyed_while_the_source_is_incomplete() {
    check(
        "
         have a input=1
         have b input=1 uses=a
         option incomplete",
        expect![[r#"
            a Blocked SourceIncomplete: not destroyed, though its manifest is missing: part of the source could not be read: b.yaml cannot be read
            b Blocked SourceIncomplete: not destroyed, though its manifest is missing: part of the source could not be read: b.yaml cannot be read
            error a SourceIncomplete
            error b SourceIncomplete"#]],
    );
}

#[test]
fn a_deleted_resource_is_destroyed() {
    check(
        "
         want a input=1 deleting
         have a input=1",
        expect!["a Destroy (the Resource is being deleted)"],
    );
}

#[test]
fn a_deleted_resource_that_never_had_an_object_needs_nothing() {
    check("want a input=1 deleting", expect!["a NoOp"]);
}

#[test]
fn the_live_policy_decides_over_the_recorded_one() {
    check(
        "
         want a deleting
         have a skip
         want b deleting orphan
         have b",
        expect![[r#"
            a Destroy (the Resource is being deleted)
            b Forget forget (the Resource is being deleted; the object stays (`deletionPolicy: Orphan`))"#]],
    );
}

#[test]
fn a_record_of_nothing_is_dropped() {
    check("record a pending", expect!["a Forget (nothing is left of it)"]);
}

#[test]
fn a_leftover_is_destroyed() {
    check(
        "
         want a input=1
         have a input=1
         left a 1 id=old",
        expect![[r#"
            a NoOp
            a#1 Destroy (left over from a replacement)"#]],
    );
}

#[test]
fn a_leftover_that_is_gone_is_dropped() {
    check(
        "
         want a input=1
         have a input=1
         left a 1 id=old
         world a gone",
        expect![[r#"
            a Create (it does not exist any more) {id=? input=1 output=?}
            a#1 Forget forget (it does not exist any more)"#]],
    );
}

#[test]
fn leftovers_without_a_current_object_have_only_their_own_entries() {
    check(
        "
         left a 1 id=old
         left a 2 id=older skip",
        expect![[r#"
            a#1 Destroy (left over from a replacement)
            a#2 Forget forget (left over from a replacement; the object stays (as its Resource said))"#]],
    );
}

#[test]
fn a_destroy_evaluates_no_configuration() {
    check(
        "
         want a input=${b.nonsense}
         have a input=1
         want b problem=broken
         have b
         option destroy",
        expect![[r#"
            a Destroy (everything is to be destroyed)
            b Destroy (everything is to be destroyed)"#]],
    );
}

#[test]
fn destroying_holds_to_prevent_destroy_of_the_live_spec() {
    check(
        "
         want a protect
         have a
         want b
         have b protect uses=a
         option destroy",
        expect![[r#"
            a Blocked PreventDestroy: the object must be destroyed, and `preventDestroy` forbids it: everything is to be destroyed (hint: set `spec.lifecycle.preventDestroy: false`, or run `purlin state unprotect a` when it is to be destroyed without its manifest)
            b Destroy (everything is to be destroyed)
            error a PreventDestroy"#]],
    );
}

#[test]
fn the_recorded_prevent_destroy_decides_without_a_spec() {
    check(
        "have a protect",
        expect![[r#"
            a Blocked PreventDestroy: the object must be destroyed, and `preventDestroy` forbids it: no longer wanted (hint: to keep it bring the manifest back, for good or with `spec.lifecycle.preventDestroy: false` to remove it again afterwards; or run `purlin state unprotect a` to let it go)
            error a PreventDestroy"#]],
    );
}

#[test]
fn prevent_destroy_covers_leftovers() {
    check(
        "
         want a input=1 protect
         have a input=1 protect
         left a 1 id=old",
        expect![[r#"
            a NoOp
            a#1 Blocked PreventDestroy: the object must be destroyed, and `preventDestroy` forbids it: left over from a replacement (hint: set `spec.lifecycle.preventDestroy: false`, or run `purlin state unprotect a` when it is to be destroyed without its manifest)
            error a PreventDestroy: deposed 00000001: the object must be destroyed, and `preventDestroy` forbids it: left over from a replacement (hint: set `spec.lifecycle.preventDestroy: false`, or run `purlin state unprotect a` when it is to be destroyed without its manifest)"#]],
    );
}

#[test]
fn prevent_destroy_names_the_attribute_that_forces_the_replacement() {
    check(
        "
         want a force=2 protect
         have a force=1 protect",
        expect![[r#"
            a Blocked PreventDestroy: the object must be replaced, and `preventDestroy` forbids to destroy it: `force` cannot be changed in place (hint: set `spec.lifecycle.preventDestroy: false`, or run `purlin state unprotect a` when it is to be destroyed without its manifest)
            error a PreventDestroy"#]],
    );
}

#[test]
fn prevent_destroy_covers_tainted_objects() {
    check(
        "
         want a input=1 protect
         have a input=1 tainted protect",
        expect![[r#"
            a Blocked PreventDestroy: the object must be replaced, and `preventDestroy` forbids to destroy it: it is tainted (hint: set `spec.lifecycle.preventDestroy: false`, or run `purlin state unprotect a` when it is to be destroyed without its manifest)
            error a PreventDestroy"#]],
    );
}

#[test]
fn prevent_destroy_does_not_stop_forgetting() {
    check(
        "
         want a protect orphan deleting
         have a protect
         want b force=2 orphan protect
         have b force=1 protect",
        expect![[r#"
            a Forget forget (the Resource is being deleted; the object stays (`deletionPolicy: Orphan`))
            b Replace CreateFirst forget (attributes force it) [force] {force=2 id=? output=?}"#]],
    );
}

#[test]
fn the_deletion_of_a_suspended_object_waits() {
    check(
        "
         want a deleting suspended
         have a
         left a 1 id=old",
        expect![[r#"
            a Blocked Suspended: suspended (hint: set `spec.suspend: false` and remove the annotation `purlin.dev/paused`)
            a#1 Blocked Suspended: the leftover stays while its object is blocked: suspended
            warning a Suspended"#]],
    );
}

#[test]
fn all_destroys_can_be_held() {
    check(
        "
         want a deleting
         have a
         want b force=2 cbd
         have b force=1 cbd
         want c force=2
         have c force=1
         want d
         have d
         left d 1 id=old
         option keep",
        expect![[r#"
            a Blocked CustomResourceDefinitionDeleted: a CRD is being deleted
            b Replace CreateFirst (attributes force it) [force] {force=2 id=? output=?} holds its destroy: CustomResourceDefinitionDeleted: a CRD is being deleted
            c Blocked CustomResourceDefinitionDeleted: a CRD is being deleted
            d NoOp
            d#1 Blocked CustomResourceDefinitionDeleted: a CRD is being deleted
            error a CustomResourceDefinitionDeleted
            error b CustomResourceDefinitionDeleted
            error c CustomResourceDefinitionDeleted
            error d CustomResourceDefinitionDeleted: deposed 00000001: a CRD is being deleted"#]],
    );
}

#[test]
fn an_object_of_an_unknown_type_cannot_be_destroyed() {
    check(
        "
         have a type=nonsense
         have b type=nonsense skip",
        expect![[r#"
            a Blocked UnknownType: cannot be destroyed: no provider serves the type `nonsense` (hint: add a Provider named `nonsense`, or name a ProviderConfig in `spec.providerConfigRef`)
            b Forget forget (no longer wanted; the object stays (as its Resource said))
            error a UnknownType"#]],
    );
}

#[test]
fn destroying_in_a_terminating_namespace_works() {
    check(
        "
         want a deleting
         have a
         option terminating",
        expect!["a Destroy (the Resource is being deleted)"],
    );
}

#[test]
fn a_running_destroy_is_a_destroy() {
    check(
        "
         want a deleting
         have a
         option destroying=a",
        expect!["a Destroy (a step of it is running)"],
    );
}

#[test]
fn an_orphan_that_stays_and_used_what_goes_is_a_warning() {
    check(
        "
         have a
         have b uses=a skip",
        expect![[r#"
            a Destroy (no longer wanted)
            b Forget forget (no longer wanted; the object stays (as its Resource said))
            warning b OrphanUsesDestroyed: the object stays, and `a`, which it used, is destroyed"#]],
    );
}
