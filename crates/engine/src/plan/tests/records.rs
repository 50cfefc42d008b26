//! Plans that a record or its absence blocks.

use expect_test::expect;

use super::check;

#[test]
fn an_annotation_without_a_record_is_never_a_create() {
    check(
        "want a input=1 uid=u1 annotation=u1",
        expect![[r#"
            a Blocked RecordMissing: the record is missing although the Resource is marked as recorded: an object may exist (hint: set `spec.import.id` to import the object, or run `purlin state rm a` if it does not exist)
            error a RecordMissing"#]],
    );
}

#[test]
fn a_family_that_lost_its_index_creates_no_instance() {
    let family = "
         want a[0] input=1 uid=u1 annotation=u1
         want a[1] input=1 uid=u1 annotation=u1
         have a[0] input=1";
    check(
        family,
        expect![[r#"
            a[0] NoOp
            a[1] Create {id=? input=1 output=?}"#]],
    );
    check(
        &format!("{family}\n         option rebuilt-index=a"),
        expect![[r#"
            a[0] NoOp
            a[1] Blocked RecordMissing: the index of the family was lost, so it is unknown whether an object exists (hint: restore the index from a backup, or destroy the objects of `a` that have no record manually, and then run `purlin state rm 'a[1]'`)
            error a[1] RecordMissing"#]],
    );
}

#[test]
fn an_import_resolves_a_missing_record() {
    check("want a input=1 uid=u1 annotation=u1 import=X", expect!["a Record (imported)"]);
}

/// As the hint says, the instance can also be imported.
#[test]
fn an_instance_that_its_index_lists_is_never_created_without_its_record() {
    let family = "
         want a[0] input=1 uid=u1 annotation=u1
         have a[0] input=1
         option indexed=a[1]
         want a[1] input=1 uid=u1 annotation=u1";
    check(
        family,
        expect![[r#"
        a[0] NoOp
        a[1] Blocked RecordMissing: the record is missing although the index of the family lists it: an object may exist (hint: to import the object, let `spec.import.id` return its id for this instance, and null for the others; or find it and destroy it manually, then run `purlin state rm 'a[1]'`)
        error a[1] RecordMissing"#]],
    );
    check(
        &format!("{family} import=X"),
        expect![[r#"
        a[0] NoOp
        a[1] Record (imported)"#]],
    );
}

#[test]
fn an_annotation_that_names_another_resource_counts_as_absent() {
    check("want a input=1 uid=u1 annotation=u2", expect!["a Create {id=? input=1 output=?}"]);
}

#[test]
fn a_record_of_another_type_is_unchanged() {
    check(
        "
         want a type=named name=x
         have a type=thing",
        expect![[r#"
            a Blocked RecordTypeMismatch: the record of this name has the type `thing`, not `named` (hint: use another name for the new object, destroy the recorded object first, or, if the provider can take it over, add the annotation `purlin.dev/moved-from: a`)
            error a RecordTypeMismatch"#]],
    );
}

#[test]
fn an_open_intent_blocks() {
    check(
        "
         want a input=2
         have a input=1
         record a intent",
        expect![[r#"
            a Blocked OperationInProgress: an earlier create is unresolved
            error a OperationInProgress"#]],
    );
}

#[test]
fn the_reason_of_the_caller_overrides_an_open_intent() {
    check(
        "
         want a input=2
         have a input=1
         record a intent
         option held=a",
        expect![[r#"
            a Blocked OperationFailed: it failed and backs off
            error a OperationFailed"#]],
    );
}

#[test]
fn an_import_resolves_an_unknown_outcome() {
    check(
        "
         want a input=1 import=X
         record a intent
         option unknown-outcome=a",
        expect!["a Record (imported)"],
    );
}

#[test]
fn an_unknown_outcome_without_an_import_blocks() {
    check(
        "
         want a input=1
         record a intent
         option unknown-outcome=a",
        expect![[r#"
            a Blocked CreateOutcomeUnknown: it failed and backs off
            error a CreateOutcomeUnknown"#]],
    );
}

#[test]
fn in_a_cluster_a_record_without_a_resource_is_abandoned() {
    check(
        "
         have a input=1
         deposed a 1 id=old
         option cluster",
        expect![[r#"
            a Blocked Abandoned: the record has no Resource; the object is left unchanged (hint: create the Resource again to adopt the object, or run `purlin state rm a`)
            a#1 Blocked Abandoned: the deposed object is kept while its object is blocked: the record has no Resource; the object is left unchanged
            warning a Abandoned"#]],
    );
}

#[test]
fn the_import_id_of_a_destroyed_object_is_not_imported_again() {
    check(
        "
         want a input=1 import=X
         record a pending",
        expect!["a Create (replacement: the old object is already destroyed) {id=? input=1 output=?}"],
    );
}
