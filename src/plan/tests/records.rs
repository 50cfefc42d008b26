//! What a record, or its absence, forbids.

use expect_test::expect;

use super::check;

#[test]
fn an_annotation_without_a_record_is_never_a_create() {
    check(
        "want a input=1 uid=u1 annotation=u1",
        expect![[r#"
            a Blocked RecordMissing: the Resource says that it has a record, and there is none: an object may exist (hint: set `spec.import.id` to take the object over, or run `purlin state rm a` when there is none)
            error a RecordMissing"#]],
    );
}

#[test]
fn an_import_is_the_way_out_of_a_missing_record() {
    check("want a input=1 uid=u1 annotation=u1 import=X", expect!["a Record (imported)"]);
}

#[test]
fn an_annotation_that_names_another_resource_counts_as_absent() {
    check("want a input=1 uid=u1 annotation=u2", expect!["a Create {id=? input=1 output=?}"]);
}

#[test]
fn a_record_of_another_type_is_not_touched() {
    check(
        "
         want a type=named name=x
         have a type=thing",
        expect![[r#"
            a Blocked RecordOfOtherType: the record of this name is of type `thing`, not `named` (hint: use another name for the new object, destroy the recorded one first, or annotate with `purlin.dev/moved-from: a` what its provider can take over)
            error a RecordOfOtherType"#]],
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
            a Blocked OperationInProgress: an earlier create is still open
            error a OperationInProgress"#]],
    );
}

#[test]
fn the_callers_reason_wins_over_an_open_intent() {
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
fn an_import_is_the_way_out_of_an_unknown_outcome() {
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
         left a 1 id=old
         option cluster",
        expect![[r#"
            a Blocked Abandoned: there is a record, but no Resource: the object is left alone (hint: create the Resource again to adopt it, or run `purlin state rm a`)
            a#1 Blocked Abandoned: the leftover stays while its object is blocked: there is a record, but no Resource: the object is left alone
            warning a Abandoned"#]],
    );
}

#[test]
fn an_import_id_of_a_destroyed_object_is_not_imported_again() {
    check(
        "
         want a input=1 import=X
         record a pending",
        expect!["a Create (replacement: the old object is already destroyed) {id=? input=1 output=?}"],
    );
}
