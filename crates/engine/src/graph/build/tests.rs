use expect_test::{Expect, expect};

use crate::graph::fixture::{fixture, graph};
use crate::graph::render::text;
use crate::plan::RunningStep;
use model::{Operation, Step};

fn check(situation: &str, expected: Expect) {
    expected.assert_eq(&text(&graph(situation)));
}

fn running(address: &str, operation: Operation) -> RunningStep {
    let step = Step { address: address.parse().unwrap(), deposed: None, operation, replaces: false };
    RunningStep { step, planned: None, recorded: None, record_only: false, reported_drift: None }
}

fn graph_text(situation_text: &str, running: &[RunningStep]) -> String {
    let (graph, diagnostics) = fixture(situation_text).graph_with_running(running);
    assert_eq!(diagnostics, []);
    text(&graph)
}

#[test]
fn a_plan_without_changes_has_an_empty_graph() {
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
fn unchanged_objects_connect_their_dependents_and_dependencies() {
    check(
        "a: update\n b: noop, wants a, used a\n c: destroy, used b\n d: blocked, wants a\n e: update, wants d",
        expect![[r#"
            c destroy
            a update
              after c destroy: a changes after c, which depended on it through other objects, is destroyed
            e update
              after a update: e depends on a through other objects
        "#]],
    );
}

/// A step of another component would run twice, and without what was prepared for it.
#[test]
fn a_part_of_a_graph_has_no_steps_of_other_components() {
    let mut situation = fixture("a: replace\n b: replace");
    situation.plan.objects.entry("a".parse().unwrap()).or_default().remedies = vec!["b".parse().unwrap()];
    let (whole, _) = situation.graph_with_running(&[]);
    let names = |names: &[&str]| names.iter().map(|name| (*name).into()).collect();
    assert_eq!(text(&whole.subgraph(&names(&["a", "b"]))), text(&whole));
    assert!(text(&whole).contains("a destroy\n  after b"), "{}", text(&whole));
    let part = whole.subgraph(&names(&["b"]));
    assert!(part.nodes().all(|node| part.step(node).address.stem == "b".into()), "{}", text(&part));
    assert_eq!(part.nodes().count(), 2);
}

#[test]
fn a_recorded_family_has_its_recorded_instances() {
    check(
        "net[0]: destroy\n net[1]: update\n net[2]: create\n web: update, wants net, used net",
        expect![[r#"
            net[1] update
            net[2] create
            web update
              after net[1] update: web depends on net[1]
              after net[2] create: web depends on net[2]
            net[0] destroy
              after web update: net[0] is kept until web, which no longer depends on it, has changed
        "#]],
    );
}

#[test]
fn a_single_object_differs_from_the_family_with_its_name() {
    check(
        "net: destroy\n net[0]: create\n web: update, wants net, used net",
        expect![[r#"
            net[0] create
            web update
              after net[0] create: web depends on net[0]
            net destroy
              after web update: net is kept until web, which no longer depends on it, has changed
        "#]],
    );
}

#[test]
fn the_other_steps_of_an_object_wait_for_its_running_step() {
    let text = graph_text("a: create\n b: update, wants a\n c: update, wants b", &[running("b", Operation::Update)]);
    expect![[r#"
        a create
        b update (running)
        b update
          after a create: b depends on a
          after b update (running): another step of b is running
        c update
          after b update: c depends on b
    "#]]
    .assert_eq(&text);
}

#[test]
fn a_planned_destroy_that_runs_is_one_step() {
    let text = graph_text("a: replace\n b: update, wants a, used a", &[running("a", Operation::Destroy)]);
    expect![[r#"
        a destroy (running)
        a create
          after a destroy (running): another step of a is running
        b update
          after a create: b depends on a
    "#]]
    .assert_eq(&text);
}

#[test]
fn a_running_step_that_is_no_longer_planned_is_in_the_graph() {
    let text = graph_text("a: noop\n b: update, wants a", &[running("a", Operation::Create)]);
    expect![[r#"
        a create (running)
        b update
          after a create (running): b depends on a
    "#]]
    .assert_eq(&text);
}

#[test]
fn a_cycle_in_records_is_broken_at_the_oldest_edge_with_a_warning() {
    let (graph, diagnostics) = fixture("a: destroy, used b\n b: destroy, used a").graph();
    let warnings: Vec<String> = diagnostics.iter().map(ToString::to_string).collect();
    expect![[r#"
        a: the recorded dependency on b is ignored because it is part of a cycle: the cycle consists of a, b (hint: apply the configuration once to rewrite the records)
        b destroy
        a destroy
          after b destroy: a is destroyed after b, which depends on it
    "#]].assert_eq(&format!("{}\n{}", warnings.join("\n"), text(&graph)));
}

#[test]
fn the_release_order_fallback_is_reported_with_the_cycle() {
    let (graph, diagnostics) = fixture("a: replace\n b: destroy, used a\n c: update, used b").graph();
    let warnings: Vec<String> = diagnostics.iter().map(ToString::to_string).collect();
    expect![[r#"
        b: it is destroyed before its former dependents are updated: in the safer order, b destroy waits for a create (the old b is kept until a, on which it depended, has changed), which waits for a destroy (a is created after the old object is destroyed), which waits for b destroy (a is destroyed after b, which depends on it)
        b destroy
        c update
          after b destroy: c no longer depends on b, which is destroyed first to avoid a cycle
        a destroy
          after c update: a is kept until c, which no longer depends on it, has changed
        a create
          after a destroy: a is created after the old object is destroyed
    "#]]
    .assert_eq(&format!("{}\n{}", warnings.join("\n"), text(&graph)));
}

#[test]
fn equal_plans_have_equal_graphs() {
    let situation = "a: replace\n b: replace, cbd, wants a, used a\n c: destroy, used a b\n d: update, used c";
    assert_eq!(text(&graph(situation)), text(&graph(situation)));
}
