//! What an object that stays still uses is not destroyed.

use expect_test::expect;

use super::check;

#[test]
fn what_a_blocked_object_used_is_held() {
    check(
        "
         have a
         want b problem=broken
         have b uses=a",
        expect![[r#"
            a Blocked StillUsed: still used by `b`, which is blocked: InvalidManifest (hint: resolve what blocks `b` first) <- b
            b Blocked InvalidManifest: broken
            error a StillUsed
            error b InvalidManifest"#]],
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
            a Blocked StillUsed: still used by `b`, which is blocked: StillUsed (hint: resolve what blocks `b` first) <- b
            b Blocked StillUsed: still used by `c`, which is blocked: StillUsed (hint: resolve what blocks `c` first) <- c
            c Blocked StillUsed: still used by `d`, which is blocked: Suspended (hint: resolve what blocks `d` first) <- d
            d Blocked Suspended: suspended (hint: set `spec.suspend: false` and remove the annotation `purlin.dev/paused`)
            error a StillUsed
            error b StillUsed
            error c StillUsed
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
            a Blocked StillUsed: still used by `c` through others, which is blocked: InvalidManifest (hint: resolve what blocks `c` first) <- c
            b NoOp
            c Blocked InvalidManifest: broken
            error a StillUsed
            error c InvalidManifest"#]],
    );
}

#[test]
fn holding_ends_at_an_object_that_lets_go() {
    check(
        "
         have a
         want b
         have b uses=a
         want c problem=broken
         have c uses=b",
        expect![[r#"
            a Destroy (no longer wanted)
            b Record (its dependencies changed)
            c Blocked InvalidManifest: broken
            error c InvalidManifest"#]],
    );
}

#[test]
fn a_delete_first_replacement_of_what_a_blocked_object_used_is_held_whole() {
    check(
        "
         want a force=2
         have a force=1
         want b problem=broken after=a
         have b uses=a",
        expect![[r#"
            a Blocked StillUsed: still used by `b`, which is blocked: InvalidManifest (hint: resolve what blocks `b` first) <- b
            b Blocked InvalidManifest: broken
            error a StillUsed
            error b InvalidManifest"#]],
    );
}

#[test]
fn a_create_first_replacement_of_what_a_blocked_object_used_keeps_the_old_object() {
    check(
        "
         want a force=2 cbd
         have a force=1 cbd
         want b problem=broken after=a
         have b uses=a",
        expect![[r#"
            a Replace CreateFirst (attributes force it) [force] {force=2 id=? output=?} holds its destroy: StillUsed: still used by `b`, which is blocked: InvalidManifest (hint: resolve what blocks `b` first) <- b
            b Blocked InvalidManifest: broken
            error a StillUsed
            error b InvalidManifest"#]],
    );
}

#[test]
fn an_update_of_what_a_blocked_object_used_goes_ahead() {
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
fn dependents_of_a_held_replacement_are_planned_with_what_is_recorded() {
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
            a Blocked StillUsed: still used by `b`, which is blocked: InvalidManifest (hint: resolve what blocks `b` first) <- b
            b Blocked InvalidManifest: broken
            c NoOp
            d NoOp
            error a StillUsed
            error b InvalidManifest"#]],
    );
}

#[test]
fn a_deleted_object_that_is_still_wanted_is_held() {
    check(
        "
         want a deleting
         have a
         want b input=${a.id}
         have b input=A uses=a",
        expect![[r#"
            a Blocked StillUsed: still used by `b` (hint: delete `b` too, or remove its reference) <- b
            b NoOp
            error a StillUsed"#]],
    );
}

#[test]
fn a_new_reference_waits_for_the_successor_of_what_is_being_deleted() {
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
            warning - RunAgain: 2 object(s) wait for what this plan does (hint: run apply again)"#]],
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
fn a_deleted_object_that_was_released_goes() {
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
fn a_deleted_object_that_only_a_blocked_newcomer_wants_goes() {
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
fn what_is_protected_holds_what_it_used() {
    check(
        "
         have a
         have b uses=a protect",
        expect![[r#"
            a Blocked StillUsed: still used by `b`, which is blocked: PreventDestroy (hint: resolve what blocks `b` first) <- b
            b Blocked PreventDestroy: the object must be destroyed, and `preventDestroy` forbids it: no longer wanted (hint: to keep it bring the manifest back, for good or with `spec.lifecycle.preventDestroy: false` to remove it again afterwards; or run `purlin state unprotect b` to let it go)
            error a StillUsed
            error b PreventDestroy"#]],
    );
}

#[test]
fn a_protected_dependent_holds_the_replacement_that_would_force_its_own() {
    check(
        "
         want a force=2
         have a force=1
         want b force=${a.id} protect
         have b force=A uses=a protect",
        expect![[r#"
            a Blocked StillUsed: still used by `b`, which is blocked: PreventDestroy (hint: resolve what blocks `b` first) <- b
            b Blocked PreventDestroy: the object must be replaced, and `preventDestroy` forbids to destroy it: `force` cannot be changed in place (hint: set `spec.lifecycle.preventDestroy: false`, or run `purlin state unprotect b` when it is to be destroyed without its manifest)
            error a StillUsed
            error b PreventDestroy"#]],
    );
}

#[test]
fn destroying_everything_holds_what_a_protected_object_used() {
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
            a Blocked StillUsed: still used by `b`, which is blocked: PreventDestroy (hint: resolve what blocks `b` first) <- b
            b Blocked PreventDestroy: the object must be destroyed, and `preventDestroy` forbids it: everything is to be destroyed (hint: set `spec.lifecycle.preventDestroy: false`, or run `purlin state unprotect b` when it is to be destroyed without its manifest)
            c Destroy (everything is to be destroyed)
            error a StillUsed
            error b PreventDestroy"#]],
    );
}

#[test]
fn leftovers_of_what_is_used_are_held_too() {
    check(
        "
         want a
         have a
         left a 1 id=old
         want b problem=broken
         have b uses=a",
        expect![[r#"
            a NoOp
            a#1 Blocked StillUsed: still used by `b`, which is blocked: InvalidManifest (hint: resolve what blocks `b` first) <- b
            b Blocked InvalidManifest: broken
            error a StillUsed: deposed 00000001: still used by `b`, which is blocked: InvalidManifest (hint: resolve what blocks `b` first)
            error b InvalidManifest"#]],
    );
}

#[test]
fn a_held_leftover_holds_what_it_used() {
    check(
        "
         have a
         want b suspended
         have b
         left b 1 id=old uses=a",
        expect![[r#"
            a Blocked StillUsed: still used by `b` (deposed 00000001), which is blocked: Suspended (hint: resolve what blocks `b` first) <- b
            b Blocked Suspended: suspended (hint: set `spec.suspend: false` and remove the annotation `purlin.dev/paused`)
            b#1 Blocked Suspended: the leftover stays while its object is blocked: suspended
            error a StillUsed
            warning b Suspended"#]],
    );
}

#[test]
fn the_last_complete_object_is_kept_while_its_successor_cannot_be_made() {
    check(
        "
         want a problem=broken
         left a 1 id=old",
        expect![[r#"
            a Blocked InvalidManifest: broken
            a#1 Blocked InvalidManifest: the leftover stays while its object is blocked: broken
            error a InvalidManifest"#]],
    );
}

#[test]
fn a_leftover_of_a_blocked_but_complete_object_goes() {
    check(
        "
         want a problem=broken
         have a
         left a 1 id=old",
        expect![[r#"
            a Blocked InvalidManifest: broken
            a#1 Destroy (left over from a replacement)
            error a InvalidManifest"#]],
    );
}

#[test]
fn what_a_running_object_used_is_held() {
    check(
        "
         have a
         want b input=9
         have b uses=a
         option updating=b",
        expect![[r#"
            a Blocked Waiting: still used by `b`, a step of which is running <- b
            b Update (a step of it is running) {id=? input=9}
            warning a Waiting
            warning - RunAgain: 1 object(s) wait for what this plan does (hint: run apply again)"#]],
    );
}

#[test]
fn a_held_deletion_holds_a_delete_first_replacement_of_its_dependents() {
    check(
        "
         want a deleting
         have a
         want b after=a force=2
         have b force=1 uses=a",
        expect![[r#"
            a Blocked StillUsed: still used by `b` (hint: delete `b` too, or remove its reference) <- b
            b Blocked DependencyNotReady: must be replaced, and the old object is not given up before its successor can be made: waits for `a`: which is blocked (StillUsed) <- a
            error a StillUsed
            error b DependencyNotReady"#]],
    );
}
