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
fn a_resource_that_was_renamed_without_a_move_keeps_its_object() {
    check(
        "
         want b type=named name=n
         have a type=named name=n",
        expect![[r#"
            a Blocked IdentityConflict: not destroyed, because `b` claims the same object (hint: to keep the object, add the annotation `purlin.dev/moved-from: a` to `b`; to destroy it, remove `b` first) <- b
            b Blocked IdentityConflict: the object is already managed by `a` (hint: to keep the object, add the annotation `purlin.dev/moved-from: a` to `b`) <- a
            error a IdentityConflict
            error b IdentityConflict"#]],
    );
}

#[test]
fn a_renamed_family_keeps_its_objects() {
    check(
        "
         want b[0] type=named name=n
         have a[0] type=named name=n
         want c[1] type=named name=m
         have a[1] type=named name=m
         want c[0] type=named name=o",
        expect![[r#"
            a[0] Blocked IdentityConflict: not destroyed, because `b[0]` claims the same object (hint: to keep the object, add the annotation `purlin.dev/moved-from: a` to `b`; to destroy it, remove `b[0]` first) <- b[0]
            a[1] Blocked IdentityConflict: not destroyed, because `c[1]` claims the same object (hint: to keep the object, add the annotation `purlin.dev/moved-from: a` to `c`; to destroy it, remove `c[1]` first) <- c[1]
            b[0] Blocked IdentityConflict: the object is already managed by `a[0]` (hint: to keep the object, add the annotation `purlin.dev/moved-from: a` to `b`) <- a[0]
            c[0] Create {id=? name=o output=?}
            c[1] Blocked IdentityConflict: the object is already managed by `a[1]` (hint: to keep the object, add the annotation `purlin.dev/moved-from: a` to `c`) <- a[1]
            error a[0] IdentityConflict
            error a[1] IdentityConflict
            error b[0] IdentityConflict
            error c[1] IdentityConflict"#]],
    );
}

#[test]
fn the_object_of_a_removed_resource_that_another_one_imports_is_not_destroyed() {
    check(
        "
         want b import=A
         have a id=A",
        expect![[r#"
            a Blocked IdentityConflict: not destroyed, because `b` claims the same object (hint: to keep the object, add the annotation `purlin.dev/moved-from: a` to `b`; to destroy it, remove `b` first) <- b
            b Blocked IdentityConflict: the object is already managed by `a` (hint: to keep the object, add the annotation `purlin.dev/moved-from: a` to `b`) <- a
            error a IdentityConflict
            error b IdentityConflict"#]],
    );
    let text = |option: &str| Fixture::parse(&format!("want b import=A\nhave a id=A\noption {option}")).plan_as_text();
    assert!(text("other-component=b").contains("a Blocked IdentityConflict: not destroyed, because `b` claims"));
    assert!(text("other-component=a").contains("b Blocked IdentityConflict"));
}

#[test]
fn the_object_of_an_orphan_policy_is_released_and_then_imported() {
    check(
        "
         want b import=A
         have a id=A skip",
        expect![[r#"
            a Forget forget (no longer configured; the object is kept (as recorded))
            b Blocked IdentityConflict: waits until `a` gives the object or its name up <- a
            warning b IdentityConflict
            warning - Waiting: 1 object(s) wait for changes of this plan (hint: run apply again)"#]],
    );
}

#[test]
fn an_object_that_gives_up_its_name_leaves_it_to_another_one() {
    check(
        "
         want a type=named name=n2
         have a type=named name=n
         want b type=named name=n",
        expect![[r#"
            a Replace DestroyFirst (attributes force replacement) [name] {id=? name=n2 output=?}
            b Blocked IdentityConflict: waits until `a` gives the object or its name up <- a
            warning b IdentityConflict"#]],
    );
}

#[test]
fn two_objects_cannot_exchange_their_names() {
    check(
        "
         want a type=named name=n2
         have a type=named name=n1
         want b type=named name=n1
         have b type=named name=n2",
        expect![[r#"
            a Blocked NameCycle: `a` takes the name of `b`, and `b` that of `a`, so none of these names becomes free (hint: give `a` a third name first, and its new name when the others have theirs) <- b
            b Blocked NameCycle: `b` takes the name of `a`, and `a` that of `b`, so none of these names becomes free (hint: give `b` a third name first, and its new name when the others have theirs) <- a
            error a NameCycle
            error b NameCycle"#]],
    );
}

#[test]
fn objects_that_exchange_their_names_in_a_circle_name_all_of_it() {
    let circle = "
        want a type=named name=n2
        have a type=named name=n1
        want b type=named name=n3
        have b type=named name=n2
        want c type=named name=n1
        have c type=named name=n3";
    let text = |more: &str| Fixture::parse(&format!("{circle}\n{more}")).plan_as_text();
    // Also if the driver refuses the new objects.
    let refused = "actual a refused=removed:n2\nactual b refused=removed:n3\nactual c refused=removed:n1";
    for more in ["", refused] {
        let text = text(more);
        let first = "c Blocked NameCycle: `c` takes the name of `a`, `a` that of `b`, and `b` that of `c`, so none of these \
                     names becomes free (hint: give `c` a third name first, and its new name when the others have theirs) <- a";
        assert!(text.contains(first), "{text}");
        assert_eq!(text.matches("Blocked NameCycle").count(), 3, "{text}");
    }
    let other = text("want d type=named name=n1\nwant e type=named name=n9\nhave e type=named name=n8");
    assert_eq!(other.matches("Blocked NameCycle").count(), 3, "{other}");
    assert!(other.contains("d Blocked IdentityConflict: the object is already managed by `a`"), "{other}");
    assert!(other.contains("e Replace"), "{other}");
    // A third name opens the circle.
    let opened =
        Fixture::parse(&circle.replace("want c type=named name=n1", "want c type=named name=n4")).plan_as_text();
    assert!(opened.contains("c Replace") && !opened.contains("NameCycle"), "{opened}");
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
