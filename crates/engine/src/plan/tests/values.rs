//! The values that objects see of each other, sensitive marks, and driver calls.

use std::sync::Arc;

use expect_test::expect;

use super::{Fixture, check};
use crate::plan::policy;
use model::{Address, ConfigDigest, Drift, ObjectStatus, Path, RecordedObject, Value};

#[test]
fn a_dependent_of_an_unchanged_object_sees_its_recorded_value() {
    check(
        "
         want a input=1
         have a input=1
         want b input=${a.id}",
        expect![[r#"
            a NoOp
            b Create {id=? input=A output=?}"#]],
    );
}

#[test]
fn a_dependent_of_a_changing_object_sees_its_planned_value() {
    check(
        "
         want a input=2
         have a input=1 output=1
         want b input=${a.input}
         want c input=${a.output}",
        expect![[r#"
            a Update {id=A input=2 output=?}
            b Create {id=? input=2 output=?}
            c Create {id=? input=? output=?}"#]],
    );
}

#[test]
fn a_sensitive_value_stays_sensitive() {
    check(
        "
         want a secret=7
         have a secret=7
         want b input=${a.secret}",
        expect![[r#"
            a NoOp
            b Create {id=? input=*** output=?}"#]],
    );
}

#[test]
fn a_value_that_became_sensitive_is_recorded_as_such() {
    check(
        "
         want a secret=7
         have a secret=7
         want b input=${a.secret}
         have b input=7 uses=a",
        expect![[r#"
            a NoOp
            b Record (sensitive marks or provider data changed)"#]],
    );
}

#[test]
fn no_message_and_no_path_has_a_key_of_a_sensitive_value() {
    let situation = "
         want s secret={\"key\":1}
         have s secret={\"key\":1}
         want drifted input=${s.secret}
         have drifted input={\"key\":1} uses=s
         actual drifted input={\"key\":1,\"other\":2}
         want replaced force=${s.secret}
         have replaced force={\"key\":2} uses=s
         actual replaced deep-path
         want kept force=${s.secret} protect
         have kept force={\"key\":2} uses=s
         actual kept deep-path";
    let plan = Fixture::parse(situation).plan();
    let of = |name: &str| plan.change(&Address::single(name)).unwrap();
    assert_eq!(of("drifted").drift, Some(Drift::Changed(vec![Path::of(&["input"])])));
    assert_eq!(of("replaced").replace_paths, [Path::of(&["force"])]);
    let kept = &of("kept").message;
    assert!(kept.contains("`force` cannot be changed in place"), "{kept}");
    let value = |number: i64| Value::map([("input", Value::map([("key", Value::from(number))]).into_sensitive())]);
    assert_eq!(policy::differences(&value(1), &value(2)), "`input` differs");
}

#[test]
fn a_reference_to_a_family_is_a_list() {
    check(
        "
         want w[0] input=1
         want w[1] input=2
         want b input=${w}
         have w[0] input=1
         have w[1] input=2",
        expect![[r#"
            b Create {id=? input=[{id=W[0] input=1} {id=W[1] input=2}] output=?}
            w[0] NoOp
            w[1] NoOp"#]],
    );
}

#[test]
fn an_orphaned_instance_is_not_part_of_its_family() {
    check(
        "
         want w[0] input=1
         have w[0] input=1
         have w[1] input=2
         want b input=${w}",
        expect![[r#"
            b Create {id=? input=[{id=W[0] input=1}] output=?}
            w[0] NoOp
            w[1] Destroy (no longer configured)"#]],
    );
}

#[test]
fn no_driver_is_called_for_an_up_to_date_object() {
    check(
        "
         want a input=1
         have a input=5
         option up-to-date=a",
        expect!["a NoOp"],
    );
}

#[test]
fn an_up_to_date_object_is_planned_when_a_dependency_changes() {
    check(
        "
         want a input=2
         have a input=1
         want b input=${a.input}
         have b input=1 uses=a
         option up-to-date=b",
        expect![[r#"
            a Update {id=A input=2 output=?}
            b Update {id=B input=2 output=?}"#]],
    );
}

#[test]
fn a_changed_flag_of_an_up_to_date_object_is_recorded() {
    check(
        "
         want a input=1
         want b after=a cbd
         have a input=1
         have b uses=a
         option up-to-date=a,b",
        expect![[r#"
            a Record (its create-before-destroy flag changed)
            b Record (its create-before-destroy flag changed)"#]],
    );
}

#[test]
fn dependents_of_a_running_step_see_its_planned_value() {
    check(
        "
         want a input=9
         have a input=1
         want b input=${a.input}
         want c input=${a.id}
         option updating=a",
        expect![[r#"
            a Update (a step of this object is running) {id=? input=9}
            b Create {id=? input=9 output=?}
            c Create {id=? input=? output=?}"#]],
    );
}

#[test]
fn a_running_create_is_planned_as_a_create_without_a_driver_call() {
    check(
        "
         want a input=9
         want b input=${a.id}
         option creating=a",
        expect![[r#"
            a Create (a step of this object is running) {id=? input=9}
            b Create {id=? input=? output=?}"#]],
    );
}

#[test]
fn a_dependent_of_an_object_with_a_running_destroy_waits() {
    check(
        "
         want a input=9
         have a input=1
         want b input=${a.id}
         option destroying=a",
        expect![[r#"
            a Destroy (a step of this object is running)
            b Blocked DependencyNotReady: spec.config.input: waits for `a`: it is being deleted <- a
            warning b DependencyNotReady
            warning - Waiting: 1 object(s) wait for changes of this plan (hint: run apply again)"#]],
    );
}

#[track_caller]
fn check_driver_calls(situation: &str, expected: &[&str]) {
    let fixture = super::Fixture::parse(situation);
    fixture.plan();
    assert_eq!(*fixture.driver_calls.lock().unwrap(), expected);
}

#[test]
fn a_driver_is_called_after_the_dependencies_are_decided() {
    check_driver_calls(
        "
         want a input=${b.id}
         want b input=1
         have a input=B
         have b input=1",
        &["read b", "plan b change", "read a", "plan a change"],
    );
}

#[test]
fn a_replacement_is_planned_as_a_change_and_then_as_a_new_object() {
    check_driver_calls("want a force=2\nhave a force=1\noption no-refresh", &["plan a change", "plan a new"]);
}

#[test]
fn a_requested_replacement_is_planned_as_a_new_object_only() {
    check_driver_calls("want a\nhave a\noption replace=a", &["read a", "plan a new"]);
}

#[test]
fn no_driver_is_called_for_up_to_date_and_unplannable_objects() {
    check_driver_calls(
        "
         want a input=1
         have a input=5
         want b inptu=1
         want c after=nothing
         have c
         option up-to-date=a",
        &[],
    );
}

#[test]
fn no_driver_is_called_for_a_matching_object_before_it_is_due() {
    let known = "want a input=1\nhave a input=1 matching\n";
    check_driver_calls(&format!("{known}option due="), &[]);
    check_driver_calls(&format!("{known}option due=a"), &["read a", "plan a change"]);
    check_driver_calls(&format!("{known}option no-refresh"), &["plan a change"]);
    check_driver_calls(&format!("{known}option due=\noption replace=a"), &["plan a new"]);
    check_driver_calls("want a input=1\nhave a input=1\noption due=", &["plan a change"]);
}

#[test]
fn a_dependent_of_a_changing_object_is_planned_again() {
    let both = "want a input=2\nhave a input=1 output=1\nwant b input=${a.output}\nhave b input=1 uses=a matching\n";
    check_driver_calls(&format!("{both}option due="), &["plan a change", "plan b change"]);
}

#[test]
fn another_configuration_account_schema_or_status_is_planned_again() {
    let count_calls = |change: fn(&mut RecordedObject)| {
        let mut fixture = Fixture::parse("want a input=1\nhave a input=1 matching\noption due=");
        let stored = fixture.recorded.get_mut(&Address::single("a")).unwrap();
        let record = Arc::make_mut(&mut stored.record);
        change(Arc::make_mut(record.current.as_mut().unwrap()));
        fixture.plan();
        fixture.driver_calls.lock().unwrap().len()
    };
    assert_eq!(count_calls(|_| ()), 0);
    assert_eq!(count_calls(|object| object.matching_config = Some(ConfigDigest([0; 16]))), 1);
    assert_eq!(count_calls(|object| object.service_account = "another".into()), 1);
    assert_eq!(count_calls(|object| object.schema_version = 1), 1);
    assert_eq!(count_calls(|object| object.status = ObjectStatus::Tainted), 1);
}
