use super::*;
use crate::graph::fixture::{fixture, graph};
use crate::plan::RunningStep;

/// A walk whose steps are identified by their IDs.
struct NamedWalk(Walk);

impl NamedWalk {
    fn of(fixture: &str) -> Self {
        Self(Walk::new(Arc::new(graph(fixture))))
    }

    fn names(&self, nodes: &[NodeIndex]) -> Vec<String> {
        nodes.iter().map(|&node| self.0.graph().id(node)).collect()
    }

    fn start(&mut self) -> Vec<String> {
        let ready = self.0.start();
        self.names(&ready)
    }

    fn node(&self, id: &str) -> NodeIndex {
        let graph = self.0.graph();
        graph.nodes().find(|&node| graph.id(node) == id).unwrap()
    }

    fn done(&mut self, id: &str) -> Vec<String> {
        let finished = self.0.finish(self.node(id), Outcome::Done);
        assert!(finished.skipped.is_empty());
        self.names(&finished.ready)
    }

    fn failed(&mut self, id: &str) -> Vec<(String, String)> {
        let finished = self.0.finish(self.node(id), Outcome::Failed);
        assert!(finished.ready.is_empty());
        let graph = self.0.graph();
        finished.skipped.iter().map(|&(node, cause)| (graph.id(node), graph.id(cause))).collect()
    }

    fn waits_for(&self, id: &str) -> Vec<String> {
        self.names(&self.0.waits_for(self.node(id)))
    }
}

fn pair(a: &str, b: &str) -> (String, String) {
    (a.to_owned(), b.to_owned())
}

#[test]
fn an_empty_walk_is_finished() {
    let mut walk = NamedWalk::of("a: noop");
    assert!(walk.0.is_finished());
    assert!(walk.start().is_empty());
}

#[test]
fn a_step_is_returned_once_when_all_its_dependencies_are_done() {
    let mut walk = NamedWalk::of("a: create\n b: create\n c: create, wants a b");
    assert_eq!(walk.start(), ["a create", "b create"]);
    assert!(walk.start().is_empty());
    assert_eq!(walk.waits_for("c create"), ["a create", "b create"]);
    assert!(walk.done("a create").is_empty());
    assert_eq!(walk.waits_for("c create"), ["b create"]);
    assert!(walk.done("a create").is_empty(), "a second end says nothing");
    assert_eq!(walk.done("b create"), ["c create"]);
    assert!(!walk.0.is_finished());
    assert!(walk.done("c create").is_empty());
    assert!(walk.0.is_finished());
}

#[test]
fn a_failure_skips_direct_and_indirect_dependents_only() {
    let mut walk =
        NamedWalk::of("a: create\n b: create, wants a\n c: create, wants b\n x: create\n y: create, wants x");
    walk.start();
    assert_eq!(walk.failed("a create"), [pair("b create", "a create"), pair("c create", "a create")]);
    assert_eq!(walk.done("x create"), ["y create"]);
    walk.done("y create");
    assert!(walk.0.is_finished());
}

#[test]
fn a_skipped_step_stays_skipped_when_its_other_dependencies_are_done() {
    let mut walk = NamedWalk::of("a: create\n b: create\n c: create, wants a b");
    walk.start();
    assert_eq!(walk.failed("a create"), [pair("c create", "a create")]);
    assert!(walk.done("b create").is_empty());
    assert!(walk.0.is_finished());
}

#[test]
fn a_failed_create_keeps_the_old_object() {
    let mut walk = NamedWalk::of("a: replace, cbd\n b: update, wants a, used a");
    assert_eq!(walk.start(), ["a create"]);
    assert_eq!(walk.done("a create"), ["b update"]);
    assert_eq!(walk.failed("b update"), [pair("a destroy", "b update")]);
    assert!(walk.0.is_finished());
}

#[test]
fn unchanged_objects_are_passed_through_and_not_returned() {
    let mut walk =
        NamedWalk::of("a: update\n b: update\n hub: noop, wants a b\n x: update, wants hub\n y: update, wants hub");
    assert!(walk.0.graph().graph.node_count() > walk.0.graph().len() + 1, "there is a junction");
    assert_eq!(walk.start(), ["a update", "b update"]);
    assert_eq!(walk.waits_for("x update"), ["a update", "b update"]);
    assert!(walk.done("a update").is_empty());
    assert_eq!(walk.waits_for("y update"), ["b update"]);
    assert_eq!(walk.done("b update"), ["x update", "y update"]);
}

#[test]
fn a_failure_skips_dependents_through_unchanged_objects() {
    let mut walk =
        NamedWalk::of("a: update\n b: update\n hub: noop, wants a b\n x: update, wants hub\n y: update, wants hub");
    walk.start();
    assert_eq!(walk.failed("b update"), [pair("x update", "b update"), pair("y update", "b update")]);
    assert!(!walk.0.is_finished(), "a is running");
    walk.done("a update");
    assert!(walk.0.is_finished());
}

#[test]
fn a_shutdown_skips_steps_that_were_not_started() {
    let mut walk = NamedWalk::of("a: create\n b: create, wants a\n c: create, wants b");
    walk.start();
    let rest = walk.0.skip_rest();
    assert_eq!(walk.names(&rest), ["b create", "c create"]);
    assert!(!walk.0.is_finished());
    assert!(walk.done("a create").is_empty());
    assert!(walk.0.is_finished());
    assert!(walk.0.skip_rest().is_empty());
}

#[test]
fn running_steps_are_not_returned_but_their_outcome_counts() {
    let fixture = fixture("a: update\n b: update, wants a");
    let step = fixture.graph().0.steps[0].step.clone();
    let running = [RunningStep { step, planned: None, recorded: None, record_only: false, reported_drift: None }];
    let (graph, diagnostics) = fixture.graph_with_running(&running);
    assert_eq!(diagnostics, []);
    let mut walk = NamedWalk(Walk::new(Arc::new(graph)));
    assert!(walk.start().is_empty());
    assert_eq!(walk.waits_for("a update"), ["a update (running)"]);
    assert_eq!(walk.waits_for("b update"), ["a update"]);
    assert_eq!(walk.done("a update (running)"), ["a update"]);
    assert_eq!(walk.done("a update"), ["b update"]);
}
