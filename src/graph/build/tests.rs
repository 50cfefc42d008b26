use expect_test::{Expect, expect};

use crate::graph::render::text;
use crate::graph::situation::{graph, situation};
use crate::model::{Operation, Step};
use crate::plan::RunningStep;

fn check(situation: &str, expected: Expect) {
    expected.assert_eq(&text(&graph(situation)));
}

fn running(address: &str, operation: Operation) -> RunningStep {
    let step = Step { address: address.parse().unwrap(), deposed: None, operation, replaces: false };
    RunningStep { step, planned: None, recorded: None, only_follows: false }
}

fn told(situation_text: &str, running: &[RunningStep]) -> String {
    let (graph, diagnostics) = situation(situation_text).graph_while(running);
    assert_eq!(diagnostics, []);
    text(&graph)
}

#[test]
fn nothing_to_do_is_an_empty_graph() {
    let graph = graph("a: noop\n b: blocked, wants a\n c: held, used a");
    assert!(graph.is_empty());
}

#[test]
fn a_replaced_object_is_split_into_two_steps() {
    let graph = graph("a: replace");
    let steps: Vec<&Step> = graph.nodes().map(|node| graph.step(node)).collect();
    assert_eq!(steps.iter().map(|step| step.operation).collect::<Vec<_>>(), [Operation::Create, Operation::Destroy]);
    assert!(steps.iter().all(|step| step.replaces));
}

#[test]
fn order_holds_through_objects_that_have_no_step() {
    check(
        "a: update\n b: noop, wants a, used a\n c: destroy, used b\n d: blocked, wants a\n e: update, wants d",
        expect![[r#"
            c destroy
            a update
              after c destroy: a changes only after c, which used it through others, is gone
            e update
              after a update: e refers to a through others
        "#]],
    );
}

#[test]
fn a_recorded_family_is_what_was_recorded_of_it() {
    check(
        "net[0]: destroy\n net[1]: update\n net[2]: create\n web: update, wants net, used net",
        expect![[r#"
            net[1] update
            net[2] create
            web update
              after net[1] update: web refers to net[1]
              after net[2] create: web refers to net[2]
            net[0] destroy
              after web update: web no longer uses net[0], which stays until web has let go of it
        "#]],
    );
}

#[test]
fn a_name_that_was_single_and_becomes_a_family_is_two_things() {
    check(
        "net: destroy\n net[0]: create\n web: update, wants net, used net",
        expect![[r#"
            net[0] create
            web update
              after net[0] create: web refers to net[0]
            net destroy
              after web update: web no longer uses net, which stays until web has let go of it
        "#]],
    );
}

#[test]
fn a_running_step_waits_for_nothing_and_the_rest_of_its_object_for_it() {
    let text = told("a: create\n b: update, wants a\n c: update, wants b", &[running("b", Operation::Update)]);
    expect![[r#"
        a create
        b update (running)
        b update
          after a create: b refers to a
          after b update (running): another step of b is running
        c update
          after b update: c refers to b
    "#]]
    .assert_eq(&text);
}

#[test]
fn a_planned_destroy_that_runs_is_one_step() {
    let text = told("a: replace\n b: update, wants a, used a", &[running("a", Operation::Destroy)]);
    expect![[r#"
        a destroy (running)
        a create
          after a destroy (running): another step of a is running
        b update
          after a create: b refers to a
    "#]]
    .assert_eq(&text);
}

#[test]
fn what_runs_without_being_planned_any_more_is_there() {
    let text = told("a: noop\n b: update, wants a", &[running("a", Operation::Create)]);
    expect![[r#"
        a create (running)
        b update
          after a create (running): b refers to a
    "#]]
    .assert_eq(&text);
}

#[test]
fn a_ring_in_records_is_cut_at_the_oldest_with_a_warning() {
    let (graph, diagnostics) = situation("a: destroy, used b\n b: destroy, used a").graph();
    let warnings: Vec<String> = diagnostics.iter().map(ToString::to_string).collect();
    expect![[r#"
        a: the recorded dependency on b is ignored, since records form a ring: in the ring stand a, b (hint: apply the configuration once: it writes the records anew)
        b destroy
        a destroy
          after b destroy: a goes only after b, which uses it
    "#]].assert_eq(&format!("{}\n{}", warnings.join("\n"), text(&graph)));
}

#[test]
fn a_released_object_that_falls_back_is_told_with_the_ring() {
    let (graph, diagnostics) = situation("a: replace\n b: destroy, used a\n c: update, used b").graph();
    let warnings: Vec<String> = diagnostics.iter().map(ToString::to_string).collect();
    expect![[r#"
        b: it is destroyed before its former dependents let go of it: in the safer order b destroy waits for a create (the old b stays until a, which it used, has changed), which waits for a destroy (a is made anew only after the old one is gone), which waits for b destroy (a goes only after b, which uses it)
        b destroy
        c update
          after b destroy: c no longer uses b, which goes first since the safer order would close a ring
        a destroy
          after c update: c no longer uses a, which stays until c has let go of it
        a create
          after a destroy: a is made anew only after the old one is gone
    "#]]
    .assert_eq(&format!("{}\n{}", warnings.join("\n"), text(&graph)));
}

#[test]
fn the_same_input_gives_the_same_text() {
    let situation = "a: replace\n b: replace, cbd, wants a, used a\n c: destroy, used a b\n d: update, used c";
    assert_eq!(text(&graph(situation)), text(&graph(situation)));
}
