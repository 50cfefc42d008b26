use super::*;
use crate::graph::situation::{graph, situation};
use crate::plan::RunningStep;

/// A walk whose steps are spoken of by their ids.
struct Told(Walk);

impl Told {
    fn of(situation: &str) -> Self {
        Self(Walk::new(Arc::new(graph(situation))))
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
fn nothing_to_do_is_over_at_once() {
    let mut walk = Told::of("a: noop");
    assert!(walk.0.is_over());
    assert!(walk.start().is_empty());
}

#[test]
fn a_step_is_ready_when_all_that_it_waits_for_is_done_and_is_given_once() {
    let mut walk = Told::of("a: create\n b: create\n c: create, wants a b");
    assert_eq!(walk.start(), ["a create", "b create"]);
    assert!(walk.start().is_empty());
    assert_eq!(walk.waits_for("c create"), ["a create", "b create"]);
    assert!(walk.done("a create").is_empty());
    assert_eq!(walk.waits_for("c create"), ["b create"]);
    assert!(walk.done("a create").is_empty(), "a second end says nothing");
    assert_eq!(walk.done("b create"), ["c create"]);
    assert!(!walk.0.is_over());
    assert!(walk.done("c create").is_empty());
    assert!(walk.0.is_over());
}

#[test]
fn a_failure_skips_what_waits_for_it_through_others_and_nothing_else() {
    let mut walk = Told::of("a: create\n b: create, wants a\n c: create, wants b\n x: create\n y: create, wants x");
    walk.start();
    assert_eq!(walk.failed("a create"), [pair("b create", "a create"), pair("c create", "a create")]);
    assert_eq!(walk.done("x create"), ["y create"]);
    walk.done("y create");
    assert!(walk.0.is_over());
}

#[test]
fn a_skipped_step_stays_skipped_when_its_other_needs_are_done() {
    let mut walk = Told::of("a: create\n b: create\n c: create, wants a b");
    walk.start();
    assert_eq!(walk.failed("a create"), [pair("c create", "a create")]);
    assert!(walk.done("b create").is_empty());
    assert!(walk.0.is_over());
}

#[test]
fn a_failed_create_keeps_the_old_object() {
    let mut walk = Told::of("a: replace, cbd\n b: update, wants a, used a");
    assert_eq!(walk.start(), ["a create"]);
    assert_eq!(walk.done("a create"), ["b update"]);
    assert_eq!(walk.failed("b update"), [pair("a destroy", "b update")]);
    assert!(walk.0.is_over());
}

#[test]
fn untouched_objects_are_looked_through_and_never_shown() {
    let mut walk =
        Told::of("a: update\n b: update\n hub: noop, wants a b\n x: update, wants hub\n y: update, wants hub");
    assert!(walk.0.graph().graph.node_count() > walk.0.graph().len() + 1, "there is a junction");
    assert_eq!(walk.start(), ["a update", "b update"]);
    assert_eq!(walk.waits_for("x update"), ["a update", "b update"]);
    assert!(walk.done("a update").is_empty());
    assert_eq!(walk.waits_for("y update"), ["b update"]);
    assert_eq!(walk.done("b update"), ["x update", "y update"]);
}

#[test]
fn a_failure_is_seen_through_untouched_objects() {
    let mut walk =
        Told::of("a: update\n b: update\n hub: noop, wants a b\n x: update, wants hub\n y: update, wants hub");
    walk.start();
    assert_eq!(walk.failed("b update"), [pair("x update", "b update"), pair("y update", "b update")]);
    assert!(!walk.0.is_over(), "a is running");
    walk.done("a update");
    assert!(walk.0.is_over());
}

#[test]
fn a_stop_skips_what_was_not_started_and_lets_the_rest_end() {
    let mut walk = Told::of("a: create\n b: create, wants a\n c: create, wants b");
    walk.start();
    let rest = walk.0.skip_rest();
    assert_eq!(walk.names(&rest), ["b create", "c create"]);
    assert!(!walk.0.is_over());
    assert!(walk.done("a create").is_empty());
    assert!(walk.0.is_over());
    assert!(walk.0.skip_rest().is_empty());
}

#[test]
fn running_steps_are_not_given_out_and_their_end_counts() {
    let situation = situation("a: update\n b: update, wants a");
    let step = situation.graph().0.steps[0].step.clone();
    let running = [RunningStep { step, planned: None, recorded: None, only_follows: false }];
    let (graph, diagnostics) = situation.graph_while(&running);
    assert_eq!(diagnostics, []);
    let mut walk = Told(Walk::new(Arc::new(graph)));
    assert!(walk.start().is_empty());
    assert_eq!(walk.waits_for("a update"), ["a update (running)"]);
    assert_eq!(walk.waits_for("b update"), ["a update"]);
    assert_eq!(walk.done("a update (running)"), ["a update"]);
    assert_eq!(walk.done("a update"), ["b update"]);
}
