//! Changes that the driver refuses as things are now, changed imports, and adopted objects.

use expect_test::expect;

use super::check;
use super::fixture::Fixture;

#[test]
fn a_refused_create_is_an_error_of_the_plan() {
    check(
        "want a input=1\nactual a refused\nwant b input=${a.id}",
        expect![[r#"
            a Blocked AlreadyExists: the object cannot be created: it exists
            b Blocked DependencyNotReady: spec.config.input: waits for `a`: it cannot be planned (AlreadyExists: it exists) <- a
            error a AlreadyExists
            error b DependencyNotReady"#]],
    );
}

#[test]
fn an_object_is_not_destroyed_for_one_that_is_refused() {
    check(
        "
         want a force=2
         have a force=1
         actual a refused
         want b input=${a.id}
         have b input=A uses=a",
        expect![[r#"
            a Blocked AlreadyExists: must be replaced, but the old object is kept because the new one cannot be created: it exists
            b NoOp
            error a AlreadyExists"#]],
    );
}

#[test]
fn a_change_of_a_dependency_may_resolve_a_refusal() {
    let text = |b: &str| {
        let head = "want a force=2 after=c\nhave a force=1\nactual a refused\nwant c after=b";
        Fixture::parse(&format!("{head}\n{b}")).plan_as_text()
    };
    assert!(text("want b input=1").contains("a Replace"), "it is created");
    assert!(text("want b input=1\nhave b input=2\nhave c").contains("a Replace"), "it is updated");
    assert!(text("want b input=1\nhave b input=1\nhave c").contains("a Blocked"), "nothing changes");
}

#[test]
fn a_step_of_another_object_may_resolve_a_refusal() {
    let plan = |more: &str| {
        Fixture::parse(&format!("want a type=named force=2 name=n\nhave a type=named force=1 name=n\n{more}")).plan()
    };
    let remedies = |more: &str| {
        plan(more).objects.values().flat_map(|object| &object.remedies).map(ToString::to_string).collect::<Vec<_>>()
    };
    let applied = "actual a refused=applied:ns\n";
    assert_eq!(remedies(&format!("{applied}want b type=named input=ns")), ["b"]);
    assert!(remedies(&format!("{applied}want b type=named input=other")).is_empty());
    assert!(remedies(&format!("{applied}want b type=named input=ns\nhave b type=named input=ns")).is_empty());
    let removed = "actual a refused=removed:old\n";
    assert_eq!(remedies(&format!("{removed}have b type=named name=old")), ["b"], "it is destroyed");
    let renamed = "want b type=named name=new\nhave b type=named name=old";
    assert_eq!(remedies(&format!("{removed}{renamed}")), ["b"], "it is replaced");
    assert!(
        remedies(&format!("{removed}{renamed}\nactual b refused=removed:n")).is_empty(),
        "both wait for each other"
    );
    let chain = "want c type=named name=older\nhave c type=named name=new\nactual b refused=removed:new";
    assert!(remedies(&format!("{removed}{renamed}\n{chain}")) == ["b", "c"], "each waits for the next one");
    assert!(remedies(&format!("{removed}{renamed}\n{chain}\nactual c refused=removed:none")).is_empty());
    assert!(remedies(&format!("{removed}have b type=named name=old skip")).is_empty(), "it is kept");
    assert!(remedies(&format!("{removed}want b type=named name=old\nhave b type=named name=old")).is_empty());
}

#[test]
fn an_object_that_belongs_to_the_address_is_adopted() {
    check(
        "want a input=2\nactual a owned",
        expect![
            "a Update (adopts the existing object, which Purlin created for this Resource) {id=OWN input=2 output=?}"
        ],
    );
    check(
        "want a input=1\nactual a owned",
        expect!["a Record (adopts the existing object, which Purlin created for this Resource)"],
    );
}

#[test]
fn a_changed_import_of_an_observed_object_reads_the_new_object() {
    check(
        "want a observe import=X\nhave a id=A\nrecord a imported=A\nwant b input=${a.id}\nhave b input=A uses=a",
        expect![[r#"
            a Record (imported)
            b Update {id=B input=X output=?}"#]],
    );
    check(
        "want a observe import=X\nhave a id=A\nrecord a imported=A\nactual a missing\noption no-refresh",
        expect![[r#"
            a Blocked ImportNotFound: spec.import.id: the object to import does not exist: `X` (hint: correct `spec.import.id`)
            error a ImportNotFound"#]],
    );
    check(
        "want a observe import=A\nhave a id=A\nrecord a imported=A",
        expect!["a Record (its deletion policy changed)"],
    );
}

#[test]
fn a_changed_import_of_a_managed_object_must_name_the_same_object() {
    check(
        "want a force=2 import=X\nhave a force=1 id=A\nrecord a imported=A",
        expect![[r#"
        a Blocked IdentityConflict: spec.import.id: `X` is not the object that this Resource manages (hint: to give up the managed object without destroying it and to import the other one, run `purlin state rm a`; or import the other object with another Resource)
        error a IdentityConflict"#]],
    );
    check(
        "want a force=2 import=X\nhave a force=1 id=A",
        expect![[r#"
        a Blocked IdentityConflict: spec.import.id: `X` is not the object that this Resource manages (hint: to give up the managed object without destroying it and to import the other one, run `purlin state rm a`; or import the other object with another Resource)
        error a IdentityConflict"#]],
    );
    check("want a input=1 import=A\nhave a input=1 id=A", expect!["a NoOp"]);
    check(
        "want a input=1 import=A\nhave a input=1 id=A\nrecord a imported=Z",
        expect!["a Record (`spec.import` changed)"],
    );
    check("want a input=1 import=A\nhave a input=1 id=A\nactual a missing\noption no-refresh", expect!["a NoOp"]);
}
