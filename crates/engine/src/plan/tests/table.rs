//! The action table: the change for each situation, and its reason.

use expect_test::expect;

use super::check;
use super::fixture::Fixture;

#[test]
fn an_object_without_a_record_is_created() {
    check("want a input=1", expect!["a Create {id=? input=1 output=?}"]);
}

#[test]
fn an_up_to_date_object_is_unchanged() {
    check(
        "
         want a input=1
         have a input=1",
        expect!["a NoOp"],
    );
}

#[test]
fn an_object_that_differs_is_updated() {
    check(
        "
         want a input=2
         have a input=1",
        expect!["a Update {id=A input=2 output=?}"],
    );
}

#[test]
fn an_attribute_that_cannot_change_in_place_forces_a_replacement() {
    check(
        "
         want a force=2
         have a force=1",
        expect!["a Replace DestroyFirst (attributes force replacement) [force] {force=2 id=? output=?}"],
    );
}

#[test]
fn an_attribute_that_requires_replacement_but_does_not_change_forces_nothing() {
    check(
        "
         want a force=1 input=2
         have a force=1 input=1",
        expect!["a Update {force=1 id=A input=2 output=?}"],
    );
}

#[test]
fn create_before_destroy_replaces_create_first() {
    check(
        "
         want a force=2 cbd
         have a force=1 cbd",
        expect!["a Replace CreateFirst (attributes force replacement) [force] {force=2 id=? output=?}"],
    );
}

#[test]
fn create_before_destroy_is_inherited_by_dependencies() {
    check(
        "
         want a force=2
         want b input=${a.id} cbd
         have a force=1
         have b input=A uses=a cbd",
        expect![[r#"
            a Replace CreateFirst (attributes force replacement) [force] {force=2 id=? output=?}
            b Update {id=B input=? output=?}"#]],
    );
}

#[test]
fn an_overridden_create_before_destroy_is_a_warning_with_the_path() {
    check(
        "
         want a input=1 nocbd
         want b after=a
         want c after=b cbd",
        expect![[r#"
            a Create {id=? input=1 output=?}
            b Create {id=? output=?}
            c Create {id=? output=?}
            warning a CreateBeforeDestroyForced: `createBeforeDestroy: false` is overridden: required by `b`, because of `c`"#]],
    );
}

#[test]
fn a_tainted_object_is_replaced() {
    check(
        "
         want a input=1
         have a input=1 tainted",
        expect!["a Replace DestroyFirst (tainted) {id=? input=1 output=?}"],
    );
}

#[test]
fn an_interrupted_object_that_is_complete_is_kept() {
    check(
        "
         want a input=1
         have a input=1 interrupted
         option no-refresh",
        expect!["a Record (interrupted, but complete)"],
    );
}

#[test]
fn an_interrupted_object_that_is_not_complete_is_replaced() {
    check(
        "
         want a input=1
         have a interrupted",
        expect!["a Replace DestroyFirst (interrupted) {id=? input=1 output=?}"],
    );
}

#[test]
fn a_replacement_can_be_requested_by_option() {
    check(
        "
         want a input=1
         have a input=1
         option replace=a",
        expect!["a Replace DestroyFirst (requested) {id=? input=1 output=?}"],
    );
}

#[test]
fn a_replacement_can_be_requested_by_annotation() {
    check(
        "
         want a input=1 request=today
         have a input=1",
        expect!["a Replace DestroyFirst (requested) {id=? input=1 output=?}"],
    );
}

#[test]
fn a_request_that_was_handled_is_not_repeated() {
    check(
        "
         want a input=1 request=today
         have a input=1
         record a handled=today",
        expect!["a NoOp"],
    );
}

#[test]
fn a_replacement_with_policy_orphan_creates_first_and_forgets() {
    check(
        "
         want a force=2 orphan
         have a force=1",
        expect!["a Replace CreateFirst forget (attributes force replacement) [force] {force=2 id=? output=?}"],
    );
}

#[test]
fn after_an_interrupted_destroy_first_replacement_the_new_object_is_created() {
    check(
        "
         want a input=1
         record a pending",
        expect!["a Create (replacement: the old object is already destroyed) {id=? input=1 output=?}"],
    );
}

#[test]
fn a_missing_object_is_created_again() {
    check(
        "
         want a input=1
         have a input=1
         actual a missing",
        expect!["a Create (it no longer exists) {id=? input=1 output=?}"],
    );
}

#[test]
fn a_changed_flag_is_recorded_without_changing_the_object() {
    check(
        "
         want a input=1 protect
         have a input=1",
        expect!["a Record (`preventDestroy` changed)"],
    );
}

#[test]
fn a_changed_dependency_is_recorded() {
    check(
        "
         want a input=1
         want b input=1 after=a
         have a input=1
         have b input=1",
        expect![[r#"
            a NoOp
            b Record (its dependencies changed)"#]],
    );
}

#[test]
fn drift_of_an_unconfigured_attribute_is_recorded() {
    check(
        "
         want a
         have a output=1
         actual a output=2",
        expect!["a Record (it was changed outside of Purlin)"],
    );
}

#[test]
fn drift_of_a_configured_attribute_is_corrected() {
    check(
        "
         want a input=1
         have a input=1
         actual a input=2",
        expect!["a Update (it was changed outside of Purlin) {id=A input=1 output=?}"],
    );
}

#[test]
fn without_a_refresh_nothing_is_read() {
    check(
        "
         want a input=1
         have a input=1
         actual a missing
         option no-refresh",
        expect!["a NoOp"],
    );
}

#[test]
fn a_record_of_another_resource_with_the_same_name_and_type_is_adopted() {
    check(
        "
         want a input=1 uid=new
         have a input=1
         record a uid=old",
        expect!["a Record (another Resource of the same name adopted it)"],
    );
}

#[test]
fn an_imported_object_that_is_up_to_date_is_only_recorded() {
    check("want a input=1 import=X", expect!["a Record (imported)"]);
}

#[test]
fn an_imported_object_that_differs_is_updated() {
    check("want a input=2 import=X", expect!["a Update (imported) {id=X input=2 output=?}"]);
}

#[test]
fn an_object_is_not_replaced_by_the_plan_that_imports_it_unless_the_plan_is_shown_first() {
    let manifest = "want a input=1 force=1 import=X";
    check(
        &format!("{manifest}\noption cluster"),
        expect![[r#"
        a Blocked IdentityConflict: spec.import: the object to import would be replaced: `force` cannot be changed in place (hint: correct `spec.import`, or change `spec.config` to match the object; to replace it, change `spec.config` when Purlin manages it)
        error a IdentityConflict"#]],
    );
    check(
        manifest,
        expect![
            "a Replace DestroyFirst (imported, attributes force replacement) [force] {force=1 id=? input=1 output=?}"
        ],
    );
    check(
        "want a input=1 import=X\noption replace=a",
        expect!["a Replace DestroyFirst (imported, requested) {id=? input=1 output=?}"],
    );
}

#[test]
fn an_object_that_was_only_observed_is_not_replaced_by_the_plan_that_begins_to_manage_it() {
    let observed = "have a input=1 force=1 skip";
    check(
        &format!("want a input=1 force=2\n{observed}\noption cluster"),
        expect![[r#"
        a Blocked IdentityConflict: spec.config: the observed object would be replaced: `force` cannot be changed in place (hint: change `spec.config` to match the object; to replace it, change `spec.config` when Purlin manages it)
        error a IdentityConflict"#]],
    );
    check(
        &format!("want a input=2 force=1\n{observed}\noption cluster"),
        expect!["a Update {force=1 id=A input=2 output=?}"],
    );
    check(
        &format!("want a input=1 force=1 request=today\n{observed}\noption cluster"),
        expect![[r#"
        a Blocked IdentityConflict: metadata.annotations["purlin.dev/replace-requested-at"]: the observed object would be replaced: it is requested (hint: remove the annotation from the manifest and the Resource: `kubectl annotate pres a purlin.dev/replace-requested-at-`; to replace the object, set it again when Purlin manages it)
        error a IdentityConflict"#]],
    );
    // The plan that holds it does not record that the manifest no longer keeps it: the next one must hold it too.
    let plan = Fixture::parse(&format!("want a input=1 force=2\n{observed}\noption cluster")).plan();
    assert!(plan.objects.values().all(|object| object.prepared.is_none()));
}

#[test]
fn an_old_request_does_not_replace_an_object_that_is_imported_or_adopted() {
    check("want a input=1 import=X request=today", expect!["a Record (imported)"]);
    check("want a input=2 import=X request=today", expect!["a Update (imported) {id=X input=2 output=?}"]);
}

#[test]
fn an_import_of_a_missing_object_creates_nothing() {
    check(
        "
         want a input=1 import=X
         actual a missing",
        expect![[r#"
            a Blocked ImportNotFound: spec.import.id: the object to import does not exist: `X` (hint: correct `spec.import.id`, or remove `spec.import` to create a new object)
            error a ImportNotFound"#]],
    );
}

#[test]
fn an_import_must_name_the_recorded_object() {
    check(
        "
         want a input=1 import=X
         have a input=1",
        expect![[r#"
            a Blocked IdentityConflict: spec.import.id: `X` is not the object that this Resource manages (hint: to give up the managed object without destroying it and to import the other one, run `purlin state rm a`; or import the other object with another Resource)
            error a IdentityConflict"#]],
    );
}

#[test]
fn an_unknown_value_is_planned_as_an_update() {
    check(
        "
         want a input=1
         want b input=${a.id}
         have b input=A uses=a",
        expect![[r#"
            a Create {id=? input=1 output=?}
            b Update {id=B input=? output=?}"#]],
    );
}

#[test]
fn an_unknown_value_of_an_attribute_that_forces_replacement_is_planned_as_a_replacement() {
    check(
        "
         want a input=1
         want b force=${a.id}
         have b force=A uses=a",
        expect![[r#"
            a Create {id=? input=1 output=?}
            b Replace DestroyFirst (attributes force replacement) [force] {force=? id=? output=?}"#]],
    );
}
