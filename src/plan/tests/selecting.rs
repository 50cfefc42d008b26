//! A plan with targets is about them and what they need; everything else is left exactly as it is.

use expect_test::expect;

use super::check;
use super::world::World;

#[test]
fn what_a_target_needs_is_selected_and_nothing_else() {
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
            warning - NotSelected: targeting is in effect: 2 object(s) are left as they are (hint: the plan may not be all that the configuration asks for; plan without --target afterwards)"#]],
    );
}

#[test]
fn neither_flags_nor_edges_of_what_is_not_selected_are_recorded() {
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
            warning - NotSelected: targeting is in effect: 1 object(s) are left as they are (hint: the plan may not be all that the configuration asks for; plan without --target afterwards)"#]],
    );
}

#[test]
fn what_is_no_longer_wanted_goes_only_when_it_is_named() {
    let situation = "
         have old
         want a input=2
         have a input=1 uses=old";
    check(
        &format!("{situation}\n option target=a"),
        expect![[r#"
        a Update {id=A input=2 output=?}
        old NoOp (not selected)
        warning - NotSelected: targeting is in effect: 1 object(s) are left as they are (hint: the plan may not be all that the configuration asks for; plan without --target afterwards)"#]],
    );
    check(
        &format!("{situation}\n option target=old"),
        expect![[r#"
        a NoOp (not selected)
        old Blocked StillUsed: still used by `a`, which is not selected (hint: select it too: `--target a`) <- a
        error old StillUsed
        warning - NotSelected: targeting is in effect: 1 object(s) are left as they are (hint: the plan may not be all that the configuration asks for; plan without --target afterwards)"#]],
    );
    check(
        &format!("{situation}\n option target=a,old"),
        expect![[r#"
        a Update {id=A input=2 output=?}
        old Destroy (no longer wanted)
        warning - NotSelected: targeting is in effect: 0 object(s) are left as they are (hint: the plan may not be all that the configuration asks for; plan without --target afterwards)"#]],
    );
}

#[test]
fn a_create_first_replacement_keeps_the_old_object_for_those_that_are_not_selected() {
    check(
        "
         want a force=2
         have a force=1 cbd
         want b input=${a.id} cbd
         have b input=a uses=a cbd
         option target=a",
        expect![[r#"
            a Replace CreateFirst (attributes force it) [force] {force=2 id=? output=?} holds its destroy: StillUsed: still used by `b`, which is not selected (hint: select it too: `--target b`) <- b
            b NoOp (not selected)
            warning a StillUsed
            warning - NotSelected: targeting is in effect: 1 object(s) are left as they are (hint: the plan may not be all that the configuration asks for; plan without --target afterwards)"#]],
    );
}

#[test]
fn a_delete_first_replacement_does_not_take_away_what_others_use() {
    check(
        "
         want a force=2
         have a force=1
         want b input=${a.id}
         have b input=a uses=a
         option target=a",
        expect![[r#"
            a Blocked StillUsed: still used by `b`, which is not selected (hint: select it too: `--target b`) <- b
            b NoOp (not selected)
            error a StillUsed
            warning - NotSelected: targeting is in effect: 1 object(s) are left as they are (hint: the plan may not be all that the configuration asks for; plan without --target afterwards)"#]],
    );
}

#[test]
fn a_leftover_of_what_is_not_selected_stays() {
    check(
        "
         want a protect
         have a
         left a 1
         want b input=2
         have b input=1
         option target=b",
        expect![[r#"
            a NoOp (not selected)
            a#1 NoOp (not selected)
            b Update {id=B input=2 output=?}
            warning - NotSelected: targeting is in effect: 1 object(s) are left as they are (hint: the plan may not be all that the configuration asks for; plan without --target afterwards)"#]],
    );
}

#[test]
fn errors_of_what_is_not_selected_are_not_told() {
    check(
        "
         want a problem=broken
         want b input=1
         option target=b",
        expect![[r#"
            a NoOp (not selected)
            b Create {id=? input=1 output=?}
            warning - NotSelected: targeting is in effect: 1 object(s) are left as they are (hint: the plan may not be all that the configuration asks for; plan without --target afterwards)"#]],
    );
}

#[test]
fn a_name_means_all_of_its_instances() {
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
            warning - NotSelected: targeting is in effect: 0 object(s) are left as they are (hint: the plan may not be all that the configuration asks for; plan without --target afterwards)"#]],
    );
}

#[test]
fn towards_nothing_goes_what_depends_on_the_target_and_not_what_it_needs() {
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
            b Destroy (selected, or depends on what is selected)
            c Destroy (selected, or depends on what is selected)
            d NoOp (not selected)
            warning - NotSelected: targeting is in effect: 2 object(s) are left as they are (hint: the plan may not be all that the configuration asks for; plan without --target afterwards)"#]],
    );
}

#[test]
fn nothing_is_asked_about_what_is_not_selected() {
    let world = World::parse(
        "
         want a
         have a
         want b
         have b
         option target=a",
    );
    world.plan();
    assert_eq!(*world.asked.lock().unwrap(), ["read a", "plan a change"]);
}
