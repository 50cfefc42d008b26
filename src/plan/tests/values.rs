//! What objects see of each other, and what happens to marks.

use std::sync::Arc;

use expect_test::expect;

use super::{World, check};
use crate::model::{Address, ConfigDigest, ObjectStatus, RecordedObject};

#[test]
fn a_dependent_of_an_object_that_stays_sees_its_recorded_value() {
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
fn a_dependent_of_an_object_that_changes_sees_what_is_planned() {
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
fn a_family_that_is_named_whole_is_a_list() {
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
fn an_instance_that_is_not_wanted_any_more_is_no_part_of_its_family() {
    check(
        "
         want w[0] input=1
         have w[0] input=1
         have w[1] input=2
         want b input=${w}",
        expect![[r#"
            b Create {id=? input=[{id=W[0] input=1}] output=?}
            w[0] NoOp
            w[1] Destroy (no longer wanted)"#]],
    );
}

#[test]
fn a_settled_object_is_not_asked_about() {
    check(
        "
         want a input=1
         have a input=5
         option settled=a",
        expect!["a NoOp"],
    );
}

#[test]
fn a_settled_object_is_planned_when_a_dependency_changes() {
    check(
        "
         want a input=2
         have a input=1
         want b input=${a.input}
         have b input=1 uses=a
         option settled=b",
        expect![[r#"
            a Update {id=A input=2 output=?}
            b Update {id=B input=2 output=?}"#]],
    );
}

#[test]
fn a_settled_object_still_follows_a_changed_flag() {
    check(
        "
         want a input=1
         want b after=a cbd
         have a input=1
         have b uses=a
         option settled=a,b",
        expect![[r#"
            a Record (its create-before-destroy flag changed)
            b Record (its create-before-destroy flag changed)"#]],
    );
}

#[test]
fn dependents_of_a_running_step_see_what_it_will_make() {
    check(
        "
         want a input=9
         have a input=1
         want b input=${a.input}
         want c input=${a.id}
         option updating=a",
        expect![[r#"
            a Update (a step of it is running) {id=? input=9}
            b Create {id=? input=9 output=?}
            c Create {id=? input=? output=?}"#]],
    );
}

#[test]
fn a_running_create_is_a_create_and_is_not_asked_about() {
    check(
        "
         want a input=9
         want b input=${a.id}
         option creating=a",
        expect![[r#"
            a Create (a step of it is running) {id=? input=9}
            b Create {id=? input=? output=?}"#]],
    );
}

#[test]
fn what_depends_on_an_object_that_is_just_being_destroyed_waits() {
    check(
        "
         want a input=9
         have a input=1
         want b input=${a.id}
         option destroying=a",
        expect![[r#"
            a Destroy (a step of it is running)
            b Blocked DependencyNotReady: spec.config.input: waits for `a`: it is being deleted <- a
            warning b DependencyNotReady
            warning - RunAgain: 1 object(s) wait for what this plan does (hint: run apply again)"#]],
    );
}

#[track_caller]
fn check_asked(situation: &str, expected: &[&str]) {
    let world = super::World::parse(situation);
    world.plan();
    assert_eq!(*world.asked.lock().unwrap(), expected);
}

#[test]
fn an_object_is_asked_about_once_its_dependencies_are_decided() {
    check_asked(
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
    check_asked("want a force=2\nhave a force=1\noption no-refresh", &["plan a change", "plan a new"]);
}

#[test]
fn a_requested_replacement_is_planned_as_a_new_object_at_once() {
    check_asked("want a\nhave a\noption replace=a", &["read a", "plan a new"]);
}

#[test]
fn nothing_is_asked_about_what_is_settled_or_cannot_be_planned() {
    check_asked(
        "
         want a input=1
         have a input=5
         want b inptu=1
         want c after=nothing
         have c
         option settled=a",
        &[],
    );
}

#[test]
fn what_is_known_to_agree_is_not_asked_about_before_it_is_due() {
    let known = "want a input=1\nhave a input=1 agreed\n";
    check_asked(&format!("{known}option due="), &[]);
    check_asked(&format!("{known}option due=a"), &["read a", "plan a change"]);
    check_asked(&format!("{known}option no-refresh"), &["plan a change"]);
    check_asked(&format!("{known}option due=\noption replace=a"), &["plan a new"]);
    check_asked("want a input=1\nhave a input=1\noption due=", &["plan a change"]);
}

#[test]
fn whoever_reads_what_changes_is_asked_about_again() {
    let both = "want a input=2\nhave a input=1 output=1\nwant b input=${a.output}\nhave b input=1 uses=a agreed\n";
    check_asked(&format!("{both}option due="), &["plan a change", "plan b change"]);
}

#[test]
fn another_configuration_account_schema_or_state_is_asked_about() {
    let asked = |change: fn(&mut RecordedObject)| {
        let mut world = World::parse("want a input=1\nhave a input=1 agreed\noption due=");
        let stored = world.recorded.get_mut(&Address::single("a")).unwrap();
        let record = Arc::make_mut(&mut stored.record);
        change(Arc::make_mut(record.current.as_mut().unwrap()));
        world.plan();
        world.asked.lock().unwrap().len()
    };
    assert_eq!(asked(|_| ()), 0);
    assert_eq!(asked(|object| object.agrees_with = Some(ConfigDigest([0; 16]))), 1);
    assert_eq!(asked(|object| object.service_account = "another".into()), 1);
    assert_eq!(asked(|object| object.schema_version = 1), 1);
    assert_eq!(asked(|object| object.status = ObjectStatus::Tainted), 1);
}
