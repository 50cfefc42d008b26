//! Identities: two objects cannot have the same identity, and two records cannot have the same object.

use expect_test::expect;

use super::check;
use super::fixture::Fixture;

#[test]
fn a_fixed_identity_cannot_be_replaced_create_first() {
    check(
        "
         want a type=named name=n force=2 cbd
         have a type=named name=n force=1 cbd",
        expect![[r#"
            a Blocked CreateBeforeDestroyImpossible: the old and the new object would have the same identity and exist at the same time: the object has `createBeforeDestroy` (hint: let the provider generate the name (such as with `generateName`), or remove `createBeforeDestroy`)
            error a CreateBeforeDestroyImpossible"#]],
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
            a Blocked CreateBeforeDestroyImpossible: the old and the new object would have the same identity and exist at the same time: create-before-destroy is required by `b`, because of `c` (hint: let the provider generate the name (such as with `generateName`), or remove `createBeforeDestroy` from `c`)
            b Blocked DependencyNotReady: spec.dependsOn[0]: waits for `a`: it cannot be planned (CreateBeforeDestroyImpossible: the old and the new object would have the same identity and exist at the same time: create-before-destroy is required by `b`, because of `c`) <- a
            c Blocked DependencyNotReady: spec.dependsOn[0]: waits for `b`: it cannot be planned (DependencyNotReady: waits for `a`) <- b
            error a CreateBeforeDestroyImpossible
            error b DependencyNotReady
            error c DependencyNotReady"#]],
    );
}

#[test]
fn dependents_of_a_blocked_replacement_wait() {
    check(
        "
         want a type=named name=n force=2 cbd
         have a type=named name=n force=1 cbd
         want b input=${a.id}
         have b input=A uses=a",
        expect![[r#"
            a Blocked CreateBeforeDestroyImpossible: the old and the new object would have the same identity and exist at the same time: the object has `createBeforeDestroy` (hint: let the provider generate the name (such as with `generateName`), or remove `createBeforeDestroy`)
            b Blocked DependencyNotReady: spec.config.input: waits for `a`: it cannot be planned (CreateBeforeDestroyImpossible: the old and the new object would have the same identity and exist at the same time: the object has `createBeforeDestroy`) <- a
            error a CreateBeforeDestroyImpossible
            error b DependencyNotReady"#]],
    );
}

#[test]
fn a_fixed_identity_can_be_replaced_destroy_first() {
    check(
        "
         want a type=named name=n force=2
         have a type=named name=n force=1",
        expect!["a Replace DestroyFirst (attributes force replacement) [force] {force=2 id=? name=n output=?}"],
    );
}

#[test]
fn a_new_identity_can_be_replaced_create_first() {
    check(
        "
         want a type=named name=n2 cbd
         have a type=named name=n cbd",
        expect!["a Replace CreateFirst (attributes force replacement) [name] {id=? name=n2 output=?}"],
    );
}

#[test]
fn a_new_object_cannot_have_the_identity_of_a_deposed_object() {
    check(
        "
         want a type=named name=n
         deposed a 1 type=named name=n",
        expect![[r#"
            a Blocked CreateBeforeDestroyImpossible: the new object would have the same identity as the deposed object 00000001, which is destroyed later (hint: destroy the deposed object manually and run `purlin state rm a`, or change the name)
            a#1 Blocked CreateBeforeDestroyImpossible: the deposed object is kept while its object is blocked: the new object would have the same identity as the deposed object 00000001, which is destroyed later
            error a CreateBeforeDestroyImpossible"#]],
    );
}

#[test]
fn the_second_of_two_objects_with_the_same_identity_is_rejected() {
    check(
        "
         want a type=named name=n
         want b type=named name=n",
        expect![[r#"
            a Create {id=? name=n output=?}
            b Blocked IdentityConflict: the object is already managed by `a` (hint: manage the object with one Resource only: change the name in one, or delete one with `deletionPolicy: Orphan`) <- a
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
            a Blocked IdentityConflict: the object is already managed by `b` (hint: manage the object with one Resource only: change the name in one, or delete one with `deletionPolicy: Orphan`) <- b
            b NoOp
            error a IdentityConflict"#]],
    );
}

#[test]
fn a_renamed_resource_waits_until_the_old_object_is_destroyed() {
    check(
        "
         want b type=named name=n
         have a type=named name=n",
        expect![[r#"
            a Destroy (no longer configured)
            b Blocked IdentityConflict: the object is already managed by `a` (hint: manage the object with one Resource only: change the name in one, or delete one with `deletionPolicy: Orphan`) <- a
            error b IdentityConflict
            warning - Deferred: 1 object(s) wait for changes of this plan (hint: run apply again)"#]],
    );
}

#[test]
fn an_object_that_another_record_has_is_not_destroyed() {
    check(
        "
         have a id=X
         want b
         have b id=X",
        expect![[r#"
            a Blocked IdentityConflict: the object is already managed by `b` (hint: manage the object with one Resource only: change the name in one, or delete one with `deletionPolicy: Orphan`) <- b
            b NoOp
            error a IdentityConflict"#]],
    );
}

#[test]
fn an_object_of_another_component_is_not_imported() {
    for [owner, other] in [["a", "b"], ["b", "a"]] {
        let situation = format!("want {owner} input=1\nhave {owner} input=1 id=X\nwant {other} import=X\n");
        let refused = format!(
            "{other} Blocked IdentityConflict: the object is already managed by `{owner}` (hint: manage the object with one Resource only: \
             change the name in one, or delete one with `deletionPolicy: Orphan`)\nerror {other} \
             IdentityConflict"
        );
        assert_eq!(Fixture::parse(&format!("{situation}option other-component={owner}")).plan_as_text(), refused);
    }
}

#[test]
fn one_of_two_imports_of_the_same_object_in_different_plans_succeeds() {
    let blocked = |option: &str| {
        let text = Fixture::parse(&format!("want a import=X\nwant b import=X\noption {option}")).plan_as_text();
        text.contains("Blocked IdentityConflict")
    };
    assert!(blocked("other-component=a"), "the first name wins");
    assert!(!blocked("other-component=b"));
    assert!(blocked("started-in-other-component=b"), "unless another import has started");
}

#[test]
fn an_object_that_a_record_of_another_component_has_is_not_destroyed() {
    let text = |more: &str| Fixture::parse(&format!("have a id=X\nhave b id=X\n{more}")).plan_as_text();
    assert!(
        text("want b\noption other-component=b")
            .contains("a Blocked IdentityConflict: the object is already managed by `b`")
    );
    // If both records are orphans, the first name destroys the object.
    assert!(text("option other-component=b").contains("a Destroy"));
    assert!(text("option other-component=a").contains("b Blocked IdentityConflict"));
}
