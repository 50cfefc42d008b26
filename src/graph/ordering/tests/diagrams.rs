//! The eleven diagrams by which the order of steps is usually taught. In each, b depends on a, and c on b.

use petgraph::algo::has_path_connecting;
use petgraph::graph::NodeIndex;

use crate::graph::ActionGraph;
use crate::graph::situation::{graph, situation};
use crate::model::Reason;

/// A situation, what it must come to, and one order in which it may be carried out.
struct Diagram {
    title: &'static str,
    situation: &'static str,
    /// The first waits for the second, drawn with a solid line.
    solid: &'static [(&'static str, &'static str)],
    /// Drawn with a dotted line: it follows from the others.
    dotted: &'static [(&'static str, &'static str)],
    order: &'static [&'static str],
}

const DIAGRAMS: [Diagram; 10] = [
    Diagram {
        title: "creating",
        situation: "a: create\n b: create, wants a\n c: create, wants b",
        solid: &[("b create", "a create"), ("c create", "b create")],
        dotted: &[],
        order: &["a create", "b create", "c create"],
    },
    Diagram {
        title: "updating objects that refer to a new one",
        situation: "a: create\n b: update, wants a\n c: update, wants b, used b",
        solid: &[("b update", "a create"), ("c update", "b update")],
        dotted: &[],
        order: &["a create", "b update", "c update"],
    },
    Diagram {
        title: "destroying",
        situation: "a: destroy\n b: destroy, used a\n c: destroy, used b",
        solid: &[("a destroy", "b destroy"), ("b destroy", "c destroy")],
        dotted: &[],
        order: &["c destroy", "b destroy", "a destroy"],
    },
    Diagram {
        title: "replacing both",
        situation: "a: replace\n b: replace, wants a, used a",
        solid: &[
            ("b create", "a create"),
            ("a destroy", "b destroy"),
            ("a create", "a destroy"),
            ("b create", "b destroy"),
        ],
        dotted: &[("a create", "b destroy"), ("b create", "a destroy")],
        order: &["b destroy", "a destroy", "a create", "b create"],
    },
    Diagram {
        title: "replacing the dependency alone",
        situation: "a: replace\n b: update, wants a, used a",
        solid: &[("b update", "a create"), ("a create", "a destroy")],
        dotted: &[("b update", "a destroy")],
        order: &["a destroy", "a create", "b update"],
    },
    Diagram {
        title: "destroying the dependent, updating the dependency",
        situation: "a: update\n b: destroy, used a",
        solid: &[("a update", "b destroy")],
        dotted: &[],
        order: &["b destroy", "a update"],
    },
    Diagram {
        title: "replacing both, the dependency creates first",
        situation: "a: replace, cbd\n b: replace, wants a, used a",
        solid: &[
            ("b create", "a create"),
            ("a destroy", "b destroy"),
            ("a destroy", "a create"),
            ("a create", "b destroy"),
            ("a destroy", "b create"),
            ("b create", "b destroy"),
        ],
        dotted: &[],
        order: &["b destroy", "a create", "b create", "a destroy"],
    },
    Diagram {
        title: "replacing the dependency alone, which creates first",
        situation: "a: replace, cbd\n b: update, wants a, used a",
        solid: &[("b update", "a create"), ("a destroy", "b update")],
        dotted: &[("a destroy", "a create")],
        order: &["a create", "b update", "a destroy"],
    },
    Diagram {
        title: "removing a dependency that was to create first",
        situation: "a: destroy, cbd\n b: update, used a",
        solid: &[("a destroy", "b update")],
        dotted: &[],
        order: &["b update", "a destroy"],
    },
    Diagram {
        title: "replacing both, the dependent creates first and so must the dependency",
        situation: "a: replace\n b: replace, cbd, wants a, used a",
        solid: &[
            ("b create", "a create"),
            ("a destroy", "b destroy"),
            ("a destroy", "a create"),
            ("b destroy", "b create"),
        ],
        dotted: &[("b destroy", "a create"), ("a destroy", "b create")],
        order: &["a create", "b create", "b destroy", "a destroy"],
    },
];

/// The diagram that is wrong on purpose: the dependent creates first, the dependency does not.
const NOT_INHERITED: [(&str, &str); 4] =
    [("b create", "a create"), ("a destroy", "b destroy"), ("a create", "a destroy"), ("b destroy", "b create")];

fn named(graph: &ActionGraph, id: &str) -> NodeIndex {
    graph.nodes().find(|&node| graph.id(node) == id).unwrap_or_else(|| panic!("no step {id}"))
}

fn waits(graph: &ActionGraph, from: &str, to: &str) -> bool {
    has_path_connecting(&graph.graph, named(graph, from), named(graph, to), None)
}

#[test]
fn every_drawn_edge_is_implied_and_none_is_contradicted() {
    for diagram in DIAGRAMS {
        let graph = graph(diagram.situation);
        for (from, to) in diagram.solid.iter().chain(diagram.dotted) {
            assert!(waits(&graph, from, to), "{}: {from} does not wait for {to}", diagram.title);
            assert!(!waits(&graph, to, from), "{}: {to} waits for {from}", diagram.title);
        }
    }
}

#[test]
fn the_order_told_with_each_diagram_is_one_that_the_graph_allows() {
    for diagram in DIAGRAMS {
        let graph = graph(diagram.situation);
        assert_eq!(graph.len(), diagram.order.len(), "{}", diagram.title);
        for (at, later) in diagram.order.iter().enumerate() {
            for earlier in &diagram.order[..at] {
                assert!(!waits(&graph, earlier, later), "{}: {earlier} waits for {later}", diagram.title);
            }
        }
    }
}

/// Without inheritance a would be delete-first and b create-first: the ring of the eleventh diagram.
#[test]
fn without_inheritance_there_is_the_ring_of_the_diagram_and_it_is_told_edge_by_edge() {
    let mut situation = situation("a: replace\n b: replace, cbd, wants a, used a\n z: create");
    situation.plan.lifecycle.get_mut(&"a".parse().unwrap()).unwrap().create_before_destroy = false;
    let objects = [(false, vec![]), (true, vec![0])].map(|(create_before_destroy, edges)| super::super::Object {
        wanted: true,
        create_before_destroy,
        make: super::super::Presence::Planned,
        remove: super::super::Presence::Planned,
        only_records: false,
        wants: edges.clone(),
        used: edges,
        leftovers: Vec::new(),
    });
    let ordering = super::super::order(&objects);
    let names = ["a create", "a destroy", "b create", "b destroy"];
    for (from, to) in NOT_INHERITED {
        let drawn = |edge: &&super::super::Edge| (names[edge.from as usize], names[edge.to as usize]) == (from, to);
        assert!(ordering.edges.iter().any(|edge| drawn(&edge)), "{from} waits for {to}");
    }

    let (graph, diagnostics) = situation.graph();
    let left: Vec<String> = graph.nodes().map(|node| graph.id(node)).collect();
    assert_eq!(left, ["z create"], "what has nothing to do with the ring proceeds");
    assert_eq!(diagnostics.len(), 4);
    assert_eq!(diagnostics[0].reason, Reason::InternalError);
    expect_test::expect!["in a ring of steps a create waits for a destroy (a is made anew only after the old one is gone), which waits for b destroy (a goes only after b, which uses it), which waits for b create (b is create-before-destroy: the old object goes last), which waits for a create (b refers to a)"]
    .assert_eq(&diagnostics[0].detail);
}
