//! Destroys: orphans, deletions, deposed objects, and destroy plans.

use expect_test::expect;

use super::check;

#[test]
fn an_orphan_is_destroyed() {
    check("have a input=1", expect!["a Destroy (no longer configured)"]);
}

#[test]
fn a_missing_orphan_is_dropped_from_the_record() {
    check(
        "
         have a input=1
         actual a missing",
        expect!["a Forget forget (it no longer exists)"],
    );
}

#[test]
fn an_orphan_with_recorded_policy_orphan_is_forgotten() {
    check("have a skip", expect!["a Forget forget (no longer configured; the object is kept (as recorded))"]);
}

#[test]
fn no_orphan_is_destroyed_while_the_source_is_incomplete() {
    check(
        "
         have a input=1
         have b input=1 uses=a
         option incomplete",
        expect![[r#"
            a Blocked SourceIncomplete: not destroyed although its manifest is missing: b.yaml cannot be read
            b Blocked SourceIncomplete: not destroyed although its manifest is missing: b.yaml cannot be read
            warning a SourceIncomplete
            warning b SourceIncomplete"#]],
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
fn the_policy_of_the_spec_overrides_the_recorded_one() {
    check(
        "
         want a deleting
         have a skip changed
         want b deleting orphan
         have b",
        expect![[r#"
            a Destroy (the Resource is being deleted)
            b Forget forget (the Resource is being deleted; the object is kept (`deletionPolicy: Orphan`))"#]],
    );
}

#[test]
fn a_deleted_resource_that_has_only_observed_its_object_keeps_it() {
    check(
        "
         want a deleting
         have a skip",
        expect!["a Forget forget (the Resource is being deleted; the object is kept (as recorded))"],
    );
}

#[test]
fn an_empty_record_is_dropped() {
    check("record a pending", expect!["a Forget (its record holds no object)"]);
}

#[test]
fn a_deposed_object_is_destroyed() {
    check(
        "
         want a input=1
         have a input=1
         deposed a 1 id=old",
        expect![[r#"
            a NoOp
            a#1 Destroy (deposed by a replacement)"#]],
    );
}

#[test]
fn a_missing_deposed_object_is_dropped() {
    check(
        "
         want a input=1
         have a input=1
         deposed a 1 id=old
         actual a missing",
        expect![[r#"
            a Create (it no longer exists) {id=? input=1 output=?}
            a#1 Forget forget (it no longer exists)"#]],
    );
}

#[test]
fn deposed_objects_without_a_current_object_have_one_change_each() {
    check(
        "
         deposed a 1 id=old
         deposed a 2 id=older skip",
        expect![[r#"
            a#1 Destroy (deposed by a replacement)
            a#2 Forget forget (deposed by a replacement; the object is kept (as recorded))"#]],
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
            a Destroy (all objects are destroyed)
            b Destroy (all objects are destroyed)"#]],
    );
}

#[test]
fn a_destroy_plan_respects_prevent_destroy_of_the_spec() {
    check(
        "
         want a protect
         have a
         want b
         have b protect uses=a
         option destroy",
        expect![[r#"
            a Blocked PreventDestroy: the object must be destroyed, but `preventDestroy` forbids it: all objects are destroyed (hint: set `spec.lifecycle.preventDestroy: false`, or run `purlin state unprotect a` to destroy it without its manifest)
            b Destroy (all objects are destroyed)
            error a PreventDestroy"#]],
    );
}

#[test]
fn the_recorded_prevent_destroy_applies_without_a_spec() {
    check(
        "have a protect",
        expect![[r#"
            a Blocked PreventDestroy: the object must be destroyed, but `preventDestroy` forbids it: no longer configured (hint: restore the manifest to keep the object; to destroy it, restore the manifest with `spec.lifecycle.preventDestroy: false` and delete it again, or run `purlin state unprotect a`)
            error a PreventDestroy"#]],
    );
}

#[test]
fn prevent_destroy_covers_deposed_objects() {
    check(
        "
         want a input=1 protect
         have a input=1 protect
         deposed a 1 id=old",
        expect![[r#"
            a NoOp
            a#1 Blocked PreventDestroy: the object must be destroyed, but `preventDestroy` forbids it: deposed by a replacement (hint: set `spec.lifecycle.preventDestroy: false`, or run `purlin state unprotect a` to destroy it without its manifest)
            error a PreventDestroy: deposed 00000001: the object must be destroyed, but `preventDestroy` forbids it: deposed by a replacement (hint: set `spec.lifecycle.preventDestroy: false`, or run `purlin state unprotect a` to destroy it without its manifest)"#]],
    );
}

#[test]
fn prevent_destroy_names_the_attribute_that_forces_the_replacement() {
    check(
        "
         want a force=2 protect
         have a force=1 protect",
        expect![[r#"
            a Blocked PreventDestroy: the object must be replaced, but `preventDestroy` forbids destroying it: `force` cannot be changed in place (hint: set `spec.lifecycle.preventDestroy: false`, or run `purlin state unprotect a` to destroy it without its manifest)
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
            a Blocked PreventDestroy: the object must be replaced, but `preventDestroy` forbids destroying it: it is tainted (hint: set `spec.lifecycle.preventDestroy: false`, or run `purlin state unprotect a` to destroy it without its manifest)
            error a PreventDestroy"#]],
    );
}

#[test]
fn prevent_destroy_does_not_block_forgetting() {
    check(
        "
         want a protect orphan deleting
         have a protect
         want b force=2 orphan protect
         have b force=1 protect",
        expect![[r#"
            a Forget forget (the Resource is being deleted; the object is kept (`deletionPolicy: Orphan`))
            b Replace CreateFirst forget (attributes force replacement) [force] {force=2 id=? output=?}"#]],
    );
}

#[test]
fn the_deletion_of_a_suspended_object_waits() {
    check(
        "
         want a deleting suspended
         have a
         deposed a 1 id=old",
        expect![[r#"
            a Blocked Suspended: suspended (hint: set `spec.suspend: false`)
            a#1 Blocked Suspended: the deposed object is kept while its object is blocked: suspended
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
         deposed d 1 id=old
         option keep",
        expect![[r#"
            a Blocked CustomResourceDefinitionTerminating: a CRD is being deleted
            b Replace CreateFirst (attributes force replacement) [force] {force=2 id=? output=?} holds its destroy: CustomResourceDefinitionTerminating: a CRD is being deleted
            c Blocked CustomResourceDefinitionTerminating: a CRD is being deleted
            d NoOp
            d#1 Blocked CustomResourceDefinitionTerminating: a CRD is being deleted
            error a CustomResourceDefinitionTerminating
            error b CustomResourceDefinitionTerminating
            error c CustomResourceDefinitionTerminating
            error d CustomResourceDefinitionTerminating: deposed 00000001: a CRD is being deleted"#]],
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
            b Forget forget (no longer configured; the object is kept (as recorded))
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
        expect!["a Destroy (a step of this object is running)"],
    );
}

#[test]
fn a_deposed_object_of_a_suspended_resource_is_kept_while_a_destroy_runs() {
    check(
        "
         want a deleting suspended
         have a
         deposed a 1 id=old
         option destroying=a",
        expect![[r#"
            a Destroy (a step of this object is running)
            a#1 Blocked Suspended: the deposed object is kept while its object is blocked: suspended
            warning a Suspended: deposed 00000001: the deposed object is kept while its object is blocked: suspended"#]],
    );
}

#[test]
fn an_orphan_that_depends_on_a_destroyed_object_is_a_warning() {
    check(
        "
         have a
         have b uses=a skip",
        expect![[r#"
            a Destroy (no longer configured)
            b Forget forget (no longer configured; the object is kept (as recorded))
            warning b OrphanDependsOnDestroyed: the object is kept, but `a`, which it depends on, is destroyed"#]],
    );
}
