//! Plans with targets: they change only the targets and their dependencies.

use expect_test::expect;

use super::check;
use super::fixture::Fixture;

#[test]
fn only_a_target_and_its_dependencies_are_selected() {
    check(
        "
         want a input=2
         have a input=1
         want b input=2 after=a
         have b input=1 uses=a
         want c input=2 after=b
         have c input=1 uses=b
         want other input=2
         have other input=1
         option target=b",
        expect![[r#"
            a Update {id=A input=2 output=?}
            b Update {id=B input=2 output=?}
            c NoOp (not selected)
            other NoOp (not selected)
            warning - NotSelected: targeting is in effect: 2 object(s) are left unchanged (hint: the plan may not include all changes of the configuration; plan without --target afterwards)"#]],
    );
}

#[test]
fn flags_and_dependencies_of_unselected_objects_are_not_recorded() {
    check(
        "
         want a
         have a
         want b after=a cbd
         have b
         option target=a",
        expect![[r#"
            a Record (its create-before-destroy flag changed)
            b NoOp (not selected)
            warning - NotSelected: targeting is in effect: 1 object(s) are left unchanged (hint: the plan may not include all changes of the configuration; plan without --target afterwards)"#]],
    );
}

#[test]
fn an_orphan_is_destroyed_only_if_it_is_a_target() {
    let situation = "
         have old
         want a input=2
         have a input=1 uses=old";
    check(
        &format!("{situation}\n option target=a"),
        expect![[r#"
            a Update {id=A input=2 output=?}
            old NoOp (not selected)
            warning - NotSelected: targeting is in effect: 1 object(s) are left unchanged (hint: the plan may not include all changes of the configuration; plan without --target afterwards)"#]],
    );
    check(
        &format!("{situation}\n option target=old"),
        expect![[r#"
            a NoOp (not selected)
            old Blocked InUse: in use by `a`, which is not selected (hint: select it too with `--target a`) <- a
            error old InUse
            warning - NotSelected: targeting is in effect: 1 object(s) are left unchanged (hint: the plan may not include all changes of the configuration; plan without --target afterwards)"#]],
    );
    check(
        &format!("{situation}\n option target=a,old"),
        expect![[r#"
            a Update {id=A input=2 output=?}
            old Destroy (no longer configured)
            warning - NotSelected: targeting is in effect: 0 object(s) are left unchanged (hint: the plan may not include all changes of the configuration; plan without --target afterwards)"#]],
    );
}

#[test]
fn a_create_first_replacement_keeps_the_old_object_for_unselected_dependents() {
    check(
        "
         want a force=2
         have a force=1 cbd
         want b input=${a.id} cbd
         have b input=a uses=a cbd
         option target=a",
        expect![[r#"
            a Replace CreateFirst (attributes force replacement) [force] {force=2 id=? output=?} holds its destroy: InUse: in use by `b`, which is not selected (hint: select it too with `--target b`) <- b
            b NoOp (not selected)
            warning a InUse
            warning - NotSelected: targeting is in effect: 1 object(s) are left unchanged (hint: the plan may not include all changes of the configuration; plan without --target afterwards)"#]],
    );
}

#[test]
fn a_destroy_first_replacement_is_blocked_while_unselected_objects_depend_on_it() {
    check(
        "
         want a force=2
         have a force=1
         want b input=${a.id}
         have b input=a uses=a
         option target=a",
        expect![[r#"
            a Blocked InUse: in use by `b`, which is not selected (hint: select it too with `--target b`) <- b
            b NoOp (not selected)
            error a InUse
            warning - NotSelected: targeting is in effect: 1 object(s) are left unchanged (hint: the plan may not include all changes of the configuration; plan without --target afterwards)"#]],
    );
}

#[test]
fn a_deposed_object_of_an_unselected_object_is_kept() {
    check(
        "
         want a protect
         have a
         deposed a 1
         want b input=2
         have b input=1
         option target=b",
        expect![[r#"
            a NoOp (not selected)
            a#1 NoOp (not selected)
            b Update {id=B input=2 output=?}
            warning - NotSelected: targeting is in effect: 1 object(s) are left unchanged (hint: the plan may not include all changes of the configuration; plan without --target afterwards)"#]],
    );
}

#[test]
fn errors_of_unselected_objects_are_not_reported() {
    check(
        "
         want a problem=broken
         want b input=1
         option target=b",
        expect![[r#"
            a NoOp (not selected)
            b Create {id=? input=1 output=?}
            warning - NotSelected: targeting is in effect: 1 object(s) are left unchanged (hint: the plan may not include all changes of the configuration; plan without --target afterwards)"#]],
    );
}

#[test]
fn a_name_selects_all_of_its_instances() {
    check(
        "
         want web[0] input=2
         have web[0] input=1
         want web[1] input=2
         have web[1] input=1
         option target=web",
        expect![[r#"
            web[0] Update {id=WEB[0] input=2 output=?}
            web[1] Update {id=WEB[1] input=2 output=?}
            warning - NotSelected: targeting is in effect: 0 object(s) are left unchanged (hint: the plan may not include all changes of the configuration; plan without --target afterwards)"#]],
    );
}

#[test]
fn a_destroy_plan_selects_the_dependents_of_a_target_and_not_its_dependencies() {
    check(
        "
         have a
         have b uses=a
         have c uses=b
         have d uses=a
         option target=b
         option destroy",
        expect![[r#"
            a NoOp (not selected)
            b Destroy (selected, or depends on a selected object)
            c Destroy (selected, or depends on a selected object)
            d NoOp (not selected)
            warning - NotSelected: targeting is in effect: 2 object(s) are left unchanged (hint: the plan may not include all changes of the configuration; plan without --target afterwards)"#]],
    );
}

#[test]
fn no_driver_is_called_for_unselected_objects() {
    let fixture = Fixture::parse(
        "
         want a
         have a
         want b
         have b
         option target=a",
    );
    fixture.plan();
    assert_eq!(*fixture.driver_calls.lock().unwrap(), ["read a", "plan a change"]);
}
