//! One object in the world belongs to one address, and to one life of it.

use expect_test::expect;

use super::check;
use super::world::World;

#[test]
fn a_fixed_identity_cannot_be_replaced_create_first() {
    check(
        "
         want a type=named name=n force=2 cbd
         have a type=named name=n force=1 cbd",
        expect![[r#"
            a Blocked FixedIdentity: old and new object would have one identity, and would exist at the same time: the object is create-before-destroy (hint: let the provider draw the name (such as `generateName`), or remove `createBeforeDestroy`)
            error a FixedIdentity"#]],
    );
}

#[test]
fn a_fixed_identity_under_inherited_create_before_destroy_names_the_chain() {
    check(
        "
         want a type=named name=n force=2
         have a type=named name=n force=1
         want b after=a
         have b uses=a
         want c after=b cbd
         have c uses=b cbd",
        expect![[r#"
            a Blocked FixedIdentity: old and new object would have one identity, and would exist at the same time: create-before-destroy is required by `b`, because of `c` (hint: let the provider draw the name (such as `generateName`), or remove `createBeforeDestroy` from `c`)
            b Blocked DependencyNotReady: spec.dependsOn[0]: waits for `a`: it cannot be planned (FixedIdentity: old and new object would have one identity, and would exist at the same time: create-before-destroy is required by `b`, because of `c`) <- a
            c Blocked DependencyNotReady: spec.dependsOn[0]: waits for `b`: it cannot be planned (DependencyNotReady: waits for `a`) <- b
            error a FixedIdentity
            error b DependencyNotReady
            error c DependencyNotReady"#]],
    );
}

#[test]
fn dependents_of_a_refused_replacement_wait() {
    check(
        "
         want a type=named name=n force=2 cbd
         have a type=named name=n force=1 cbd
         want b input=${a.id}
         have b input=A uses=a",
        expect![[r#"
            a Blocked FixedIdentity: old and new object would have one identity, and would exist at the same time: the object is create-before-destroy (hint: let the provider draw the name (such as `generateName`), or remove `createBeforeDestroy`)
            b Blocked DependencyNotReady: spec.config.input: waits for `a`: it cannot be planned (FixedIdentity: old and new object would have one identity, and would exist at the same time: the object is create-before-destroy) <- a
            error a FixedIdentity
            error b DependencyNotReady"#]],
    );
}

#[test]
fn a_fixed_identity_can_be_replaced_delete_first() {
    check(
        "
         want a type=named name=n force=2
         have a type=named name=n force=1",
        expect!["a Replace DestroyFirst (attributes force it) [force] {force=2 id=? name=n output=?}"],
    );
}

#[test]
fn a_new_identity_can_be_replaced_create_first() {
    check(
        "
         want a type=named name=n2 cbd
         have a type=named name=n cbd",
        expect!["a Replace CreateFirst (attributes force it) [name] {id=? name=n2 output=?}"],
    );
}

#[test]
fn a_new_object_may_not_have_the_identity_of_a_leftover() {
    check(
        "
         want a type=named name=n
         left a 1 type=named name=n",
        expect![[r#"
            a Blocked FixedIdentity: the new object would have the identity of the leftover 00000001, which goes later (hint: destroy the leftover by hand and run `purlin state rm a`, or change the name)
            a#1 Blocked FixedIdentity: the leftover stays while its object is blocked: the new object would have the identity of the leftover 00000001, which goes later
            error a FixedIdentity"#]],
    );
}

#[test]
fn two_objects_of_one_identity_the_second_is_refused() {
    check(
        "
         want a type=named name=n
         want b type=named name=n",
        expect![[r#"
            a Create {id=? name=n output=?}
            b Blocked IdentityConflict: the object already belongs to `a` (hint: let only one Resource describe it: change the name of one, or delete one with `deletionPolicy: Orphan`) <- a
            error b IdentityConflict"#]],
    );
}

#[test]
fn a_recorded_object_keeps_its_identity_against_a_new_one() {
    check(
        "
         want a type=named name=n
         want b type=named name=n
         have b type=named name=n",
        expect![[r#"
            a Blocked IdentityConflict: the object already belongs to `b` (hint: let only one Resource describe it: change the name of one, or delete one with `deletionPolicy: Orphan`) <- b
            b NoOp
            error a IdentityConflict"#]],
    );
}

#[test]
fn a_renamed_resource_waits_until_the_old_object_is_gone() {
    check(
        "
         want b type=named name=n
         have a type=named name=n",
        expect![[r#"
            a Destroy (no longer wanted)
            b Blocked IdentityConflict: the object already belongs to `a` (hint: let only one Resource describe it: change the name of one, or delete one with `deletionPolicy: Orphan`) <- a
            error b IdentityConflict
            warning - RunAgain: 1 object(s) wait for what this plan does (hint: run apply again)"#]],
    );
}

#[test]
fn an_object_is_not_destroyed_as_that_of_another_record() {
    check(
        "
         have a id=X
         want b
         have b id=X",
        expect![[r#"
            a Blocked IdentityConflict: the object already belongs to `b` (hint: let only one Resource describe it: change the name of one, or delete one with `deletionPolicy: Orphan`) <- b
            b NoOp
            error a IdentityConflict"#]],
    );
}

#[test]
fn nothing_is_imported_that_an_object_elsewhere_has() {
    for [owner, other] in [["a", "b"], ["b", "a"]] {
        let situation = format!("want {owner} input=1\nhave {owner} input=1 id=X\nwant {other} import=X\n");
        let refused = format!(
            "{other} Blocked IdentityConflict: the object already belongs to `{owner}` (hint: let only one Resource \
             describe it: change the name of one, or delete one with `deletionPolicy: Orphan`)\nerror {other} \
             IdentityConflict"
        );
        assert_eq!(World::parse(&format!("{situation}option elsewhere={owner}")).plan_as_text(), refused);
    }
}

#[test]
fn of_two_imports_of_one_object_in_different_plans_one_gets_it() {
    let blocked = |option: &str| {
        let text = World::parse(&format!("want a import=X\nwant b import=X\noption {option}")).plan_as_text();
        text.contains("Blocked IdentityConflict")
    };
    assert!(blocked("elsewhere=a"), "the first by name gets it");
    assert!(!blocked("elsewhere=b"));
    assert!(blocked("begun-elsewhere=b"), "unless another one has begun");
}

#[test]
fn nothing_is_destroyed_that_an_object_elsewhere_has() {
    let text = |more: &str| World::parse(&format!("have a id=X\nhave b id=X\n{more}")).plan_as_text();
    assert!(
        text("want b\noption elsewhere=b").contains("a Blocked IdentityConflict: the object already belongs to `b`")
    );
    // Of two that leave the first by name destroys it.
    assert!(text("option elsewhere=b").contains("a Destroy"));
    assert!(text("option elsewhere=a").contains("b Blocked IdentityConflict"));
}
