//! Held destroys: an object is not destroyed while another one still depends on it.

use expect_test::expect;

use super::check;

#[test]
fn a_dependency_of_a_blocked_object_is_held() {
    check(
        "
         have a
         want b suspended
         have b uses=a",
        expect![[r#"
            a Blocked InUse: in use by `b`, which is blocked: Suspended (hint: resolve the problem that blocks `b` first) <- b
            b Blocked Suspended: suspended (hint: set `spec.suspend: false`)
            error a InUse
            warning b Suspended"#]],
    );
}

#[test]
fn holding_is_transitive() {
    check(
        "
         have a
         have b uses=a
         have c uses=b
         want d suspended
         have d uses=c",
        expect![[r#"
            a Blocked InUse: in use by `b`, which is blocked: InUse (hint: resolve the problem that blocks `b` first) <- b
            b Blocked InUse: in use by `c`, which is blocked: InUse (hint: resolve the problem that blocks `c` first) <- c
            c Blocked InUse: in use by `d`, which is blocked: Suspended (hint: resolve the problem that blocks `d` first) <- d
            d Blocked Suspended: suspended (hint: set `spec.suspend: false`)
            error a InUse
            error b InUse
            error c InUse
            warning d Suspended"#]],
    );
}

#[test]
fn holding_goes_through_objects_without_a_step() {
    check(
        "
         want a force=2
         have a force=1
         want b after=a
         have b uses=a
         want c problem=broken after=b
         have c uses=b",
        expect![[r#"
            a Blocked InUse: in use by `c` indirectly, which is blocked: InvalidManifest (hint: resolve the problem that blocks `c` first) <- c
            b NoOp
            c Blocked InvalidManifest: broken
            error a InUse
            error c InvalidManifest"#]],
    );
}

#[test]
fn holding_ends_at_an_object_that_releases_its_dependency() {
    check(
        "
         have a
         want b
         have b uses=a
         want c suspended
         have c uses=b",
        expect![[r#"
            a Destroy (no longer configured)
            b Record (its dependencies changed)
            c Blocked Suspended: suspended (hint: set `spec.suspend: false`)
            warning c Suspended"#]],
    );
}

#[test]
fn a_destroy_first_replacement_of_a_dependency_of_a_blocked_object_is_held() {
    check(
        "
         want a force=2
         have a force=1
         want b problem=broken after=a
         have b uses=a",
        expect![[r#"
            a Blocked InUse: in use by `b`, which is blocked: InvalidManifest (hint: resolve the problem that blocks `b` first) <- b
            b Blocked InvalidManifest: broken
            error a InUse
            error b InvalidManifest"#]],
    );
}

#[test]
fn a_create_first_replacement_of_a_dependency_of_a_blocked_object_keeps_the_old_object() {
    check(
        "
         want a force=2 cbd
         have a force=1 cbd
         want b problem=broken after=a
         have b uses=a",
        expect![[r#"
            a Replace CreateFirst (attributes force replacement) [force] {force=2 id=? output=?} holds its destroy: InUse: in use by `b`, which is blocked: InvalidManifest (hint: resolve the problem that blocks `b` first) <- b
            b Blocked InvalidManifest: broken
            error a InUse
            error b InvalidManifest"#]],
    );
}

#[test]
fn an_update_of_a_dependency_of_a_blocked_object_is_planned() {
    check(
        "
         want a input=2
         have a input=1
         want b problem=broken after=a
         have b uses=a",
        expect![[r#"
            a Update {id=A input=2 output=?}
            b Blocked InvalidManifest: broken
            error b InvalidManifest"#]],
    );
}

#[test]
fn dependents_of_a_held_replacement_are_planned_with_the_recorded_value() {
    check(
        "
         want a force=2
         have a force=1
         want b problem=broken after=a
         have b uses=a
         want c input=${a.id}
         have c input=A uses=a
         want d input=${c.input}
         have d input=A uses=c",
        expect![[r#"
            a Blocked InUse: in use by `b`, which is blocked: InvalidManifest (hint: resolve the problem that blocks `b` first) <- b
            b Blocked InvalidManifest: broken
            c NoOp
            d NoOp
            error a InUse
            error b InvalidManifest"#]],
    );
}

#[test]
fn a_deleted_object_that_is_still_referenced_is_held() {
    check(
        "
         want a deleting
         have a
         want b input=${a.id}
         have b input=A uses=a",
        expect![[r#"
            a Blocked InUse: the Resource is being deleted, but it is in use by `b` (hint: delete `b` too, or remove its reference) <- b
            b NoOp
            error a InUse"#]],
    );
}

#[test]
fn a_new_reference_to_an_object_that_is_being_deleted_waits_for_its_successor() {
    check(
        "
         want a deleting
         have a
         want b input=${a.id}
         want c input=${a.id}
         have c input=1",
        expect![[r#"
            a Destroy (the Resource is being deleted)
            b Blocked DependencyNotReady: spec.config.input: waits for `a`: it is being deleted <- a
            c Blocked DependencyNotReady: spec.config.input: waits for `a`: it is being deleted <- a
            warning b DependencyNotReady
            warning c DependencyNotReady
            warning - Waiting: 2 object(s) wait for changes of this plan (hint: run apply again)"#]],
    );
}

#[test]
fn a_new_reference_to_a_family_that_is_being_deleted_waits() {
    check(
        "
         want a deleting count=2
         have a[0]
         have a[1]
         want b after=a",
        expect![[r#"
            a NoOp
            a[0] Destroy (the Resource is being deleted)
            a[1] Destroy (the Resource is being deleted)
            b Blocked DependencyNotReady: spec.dependsOn[0]: waits for `a`: it is being deleted <- a
            warning b DependencyNotReady"#]],
    );
}

#[test]
fn a_deleted_object_that_was_released_is_destroyed() {
    check(
        "
         want a deleting
         have a
         want b input=2
         have b input=A uses=a",
        expect![[r#"
            a Destroy (the Resource is being deleted)
            b Update {id=B input=2 output=?}"#]],
    );
}

#[test]
fn a_deleted_object_that_only_a_blocked_new_object_references_is_destroyed() {
    check(
        "
         want a deleting
         have a
         want b problem=broken after=a",
        expect![[r#"
            a Destroy (the Resource is being deleted)
            b Blocked InvalidManifest: broken
            error b InvalidManifest"#]],
    );
}

#[test]
fn a_protected_object_holds_its_dependencies() {
    check(
        "
         have a
         have b uses=a protect",
        expect![[r#"
            a Blocked InUse: in use by `b`, which is blocked: PreventDestroy (hint: resolve the problem that blocks `b` first) <- b
            b Blocked PreventDestroy: the object must be destroyed, but `preventDestroy` forbids it: no longer configured (hint: restore the manifest to keep the object; to destroy it, restore the manifest with `spec.lifecycle.preventDestroy: false` and delete it again, or run `purlin state unprotect b`)
            error a InUse
            error b PreventDestroy"#]],
    );
}

#[test]
fn a_protected_dependent_holds_the_replacement_that_would_replace_it_too() {
    check(
        "
         want a force=2
         have a force=1
         want b force=${a.id} protect
         have b force=A uses=a protect",
        expect![[r#"
            a Blocked InUse: must be replaced, but `b`, which has to follow, cannot be changed: the object must be replaced, but `preventDestroy` forbids destroying it: `force` cannot be changed in place (hint: revert the change, or resolve the problem of `b`: set `spec.lifecycle.preventDestroy: false`, or run `purlin state unprotect b` to destroy it without its manifest) <- b
            b NoOp
            error a InUse"#]],
    );
}

#[test]
fn a_destroy_plan_holds_the_dependencies_of_a_protected_object() {
    check(
        "
         want a
         have a
         want b protect
         have b uses=a
         want c
         have c uses=b
         option destroy",
        expect![[r#"
            a Blocked InUse: in use by `b`, which is blocked: PreventDestroy (hint: resolve the problem that blocks `b` first) <- b
            b Blocked PreventDestroy: the object must be destroyed, but `preventDestroy` forbids it: all objects are destroyed (hint: set `spec.lifecycle.preventDestroy: false`, or run `purlin state unprotect b` to destroy it without its manifest)
            c Destroy (all objects are destroyed)
            error a InUse
            error b PreventDestroy"#]],
    );
}

#[test]
fn deposed_objects_of_a_dependency_are_held_too() {
    check(
        "
         want a
         have a
         deposed a 1 id=old
         want b problem=broken
         have b uses=a",
        expect![[r#"
            a NoOp
            a#1 Blocked InUse: in use by `b`, which is blocked: InvalidManifest (hint: resolve the problem that blocks `b` first) <- b
            b Blocked InvalidManifest: broken
            error a InUse: deposed 00000001: in use by `b`, which is blocked: InvalidManifest (hint: resolve the problem that blocks `b` first)
            error b InvalidManifest"#]],
    );
}

#[test]
fn a_held_deposed_object_holds_its_dependencies() {
    check(
        "
         have a
         want b suspended
         have b
         deposed b 1 id=old uses=a",
        expect![[r#"
            a Blocked InUse: in use by `b` (deposed 00000001), which is blocked: Suspended (hint: resolve the problem that blocks `b` first) <- b
            b Blocked Suspended: suspended (hint: set `spec.suspend: false`)
            b#1 Blocked Suspended: the deposed object is kept while its object is blocked: suspended
            error a InUse
            warning b Suspended"#]],
    );
}

#[test]
fn the_last_complete_object_is_kept_while_its_successor_cannot_be_created() {
    check(
        "
         want a problem=broken
         deposed a 1 id=old",
        expect![[r#"
            a Blocked InvalidManifest: broken
            a#1 Blocked InvalidManifest: the deposed object is kept while its object is blocked: broken
            error a InvalidManifest"#]],
    );
}

#[test]
fn a_deposed_object_of_a_blocked_but_complete_object_is_destroyed() {
    check(
        "
         want a problem=broken
         have a
         deposed a 1 id=old",
        expect![[r#"
            a Blocked InvalidManifest: broken
            a#1 Destroy (deposed by a replacement)
            error a InvalidManifest"#]],
    );
}

#[test]
fn a_dependency_of_a_running_step_is_held() {
    check(
        "
         have a
         want b input=9
         have b uses=a
         option updating=b",
        expect![[r#"
            a Blocked Waiting: in use by `b`, which has a running step <- b
            b Update (a step of this object is running) {id=? input=9}
            warning a Waiting
            warning - Waiting: 1 object(s) wait for changes of this plan (hint: run apply again)"#]],
    );
}

#[test]
fn a_held_deletion_holds_a_destroy_first_replacement_of_its_dependents() {
    check(
        "
         want a deleting
         have a
         want b after=a force=2
         have b force=1 uses=a",
        expect![[r#"
            a Blocked InUse: the Resource is being deleted, but it is in use by `b` (hint: delete `b` too, or remove its reference) <- b
            b Blocked DependencyNotReady: must be replaced, but the old object is kept until the new one can be created: waits for `a`: it is blocked (InUse) <- a
            error a InUse
            error b DependencyNotReady"#]],
    );
}

#[test]
fn a_follower_through_a_family_holds_the_replacement() {
    check(
        "
         want a force=2 cbd
         have a force=1 cbd
         want b[0] input=${a.id}
         have b[0] input=A uses=a
         want c force=${b} protect after=b
         have c force=1 uses=b protect",
        expect![[r#"
            a Blocked InUse: must be replaced, but `c`, which has to follow, cannot be changed: the object must be replaced, but `preventDestroy` forbids destroying it: `force` cannot be changed in place (hint: revert the change, or resolve the problem of `c`: set `spec.lifecycle.preventDestroy: false`, or run `purlin state unprotect c` to destroy it without its manifest) <- c
            b[0] NoOp
            c Blocked PreventDestroy: the object must be replaced, but `preventDestroy` forbids destroying it: `force` cannot be changed in place (hint: set `spec.lifecycle.preventDestroy: false`, or run `purlin state unprotect c` to destroy it without its manifest)
            error a InUse
            error c PreventDestroy"#]],
    );
}
