//! Eleven typical diagrams of step orders. In each, b depends on a, and c depends on b.

use petgraph::algo::has_path_connecting;
use petgraph::graph::NodeIndex;

use crate::graph::ActionGraph;
use crate::graph::fixture::{fixture, graph};
use model::Reason;

/// A fixture, its expected edges, and a valid order.
struct Diagram {
    title: &'static str,
    fixture: &'static str,
    /// The first step waits for the second, with a solid line.
    solid: &'static [(&'static str, &'static str)],
    /// Edges with a dotted line, which others imply.
    dotted: &'static [(&'static str, &'static str)],
    order: &'static [&'static str],
}

const DIAGRAMS: [Diagram; 10] = [
    Diagram {
        title: "creating",
        fixture: "a: create\n b: create, wants a\n c: create, wants b",
        solid: &[("b create", "a create"), ("c create", "b create")],
        dotted: &[],
        order: &["a create", "b create", "c create"],
    },
    Diagram {
        title: "updating objects that refer to a new one",
        fixture: "a: create\n b: update, wants a\n c: update, wants b, used b",
        solid: &[("b update", "a create"), ("c update", "b update")],
        dotted: &[],
        order: &["a create", "b update", "c update"],
    },
    Diagram {
        title: "destroying",
        fixture: "a: destroy\n b: destroy, used a\n c: destroy, used b",
        solid: &[("a destroy", "b destroy"), ("b destroy", "c destroy")],
        dotted: &[],
        order: &["c destroy", "b destroy", "a destroy"],
    },
    Diagram {
        title: "replacing both",
        fixture: "a: replace\n b: replace, wants a, used a",
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
        fixture: "a: replace\n b: update, wants a, used a",
        solid: &[("b update", "a create"), ("a create", "a destroy")],
        dotted: &[("b update", "a destroy")],
        order: &["a destroy", "a create", "b update"],
    },
    Diagram {
        title: "destroying the dependent, updating the dependency",
        fixture: "a: update\n b: destroy, used a",
        solid: &[("a update", "b destroy")],
        dotted: &[],
        order: &["b destroy", "a update"],
    },
    Diagram {
        title: "replacing both, the dependency creates first",
        fixture: "a: replace, cbd\n b: replace, wants a, used a",
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
        fixture: "a: replace, cbd\n b: update, wants a, used a",
        solid: &[("b update", "a create"), ("a destroy", "b update")],
        dotted: &[("a destroy", "a create")],
        order: &["a create", "b update", "a destroy"],
    },
    Diagram {
        title: "removing a dependency that was to create first",
        fixture: "a: destroy, cbd\n b: update, used a",
        solid: &[("a destroy", "b update")],
        dotted: &[],
        order: &["b update", "a destroy"],
    },
    Diagram {
        title: "replacing both, the dependent creates first and so must the dependency",
        fixture: "a: replace\n b: replace, cbd, wants a, used a",
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

/// The intentionally wrong diagram: only the dependent is create-before-destroy.
const NOT_INHERITED: [(&str, &str); 4] =
    [("b create", "a create"), ("a destroy", "b destroy"), ("a create", "a destroy"), ("b destroy", "b create")];

fn named(graph: &ActionGraph, id: &str) -> NodeIndex {
    graph.nodes().find(|&node| graph.id(node) == id).unwrap_or_else(|| panic!("no step {id}"))
}

fn waits(graph: &ActionGraph, from: &str, to: &str) -> bool {
    has_path_connecting(&graph.graph, named(graph, from), named(graph, to), None)
}

#[test]
fn the_graph_implies_all_edges_of_the_diagrams() {
    for diagram in DIAGRAMS {
        let graph = graph(diagram.fixture);
        for (from, to) in diagram.solid.iter().chain(diagram.dotted) {
            assert!(waits(&graph, from, to), "{}: {from} does not wait for {to}", diagram.title);
            assert!(!waits(&graph, to, from), "{}: {to} waits for {from}", diagram.title);
        }
    }
}

#[test]
fn the_graph_allows_the_order_of_each_diagram() {
    for diagram in DIAGRAMS {
        let graph = graph(diagram.fixture);
        assert_eq!(graph.len(), diagram.order.len(), "{}", diagram.title);
        for (at, later) in diagram.order.iter().enumerate() {
            for earlier in &diagram.order[..at] {
                assert!(!waits(&graph, earlier, later), "{}: {earlier} waits for {later}", diagram.title);
            }
        }
    }
}

/// Without inheritance, a would be destroy-before-create and b create-before-destroy: the cycle of the eleventh
/// diagram.
#[test]
fn without_inheritance_the_cycle_of_the_diagram_is_reported_edge_by_edge() {
    let mut situation = fixture("a: replace\n b: replace, cbd, wants a, used a\n z: create");
    let of_a = situation.plan.objects.get_mut(&"a".parse().unwrap()).unwrap();
    of_a.lifecycle.as_mut().unwrap().create_before_destroy = false;
    let objects = [(false, vec![]), (true, vec![0])].map(|(create_before_destroy, edges)| super::super::Object {
        wanted: true,
        create_before_destroy,
        apply: super::super::Presence::Planned,
        remove: super::super::Presence::Planned,
        is_record_only: false,
        wants: edges.clone(),
        used: edges,
        deposed: Vec::new(),
        remedies: Vec::new(),
    });
    let ordering = super::super::order(&objects);
    let names = ["a create", "a destroy", "b create", "b destroy"];
    for (from, to) in NOT_INHERITED {
        let is_drawn =
            ordering.edges.iter().any(|edge| (names[edge.from as usize], names[edge.to as usize]) == (from, to));
        assert!(is_drawn, "{from} waits for {to}");
    }

    let (graph, diagnostics) = situation.graph();
    let left: Vec<String> = graph.nodes().map(|node| graph.id(node)).collect();
    assert_eq!(left, ["z create"], "steps outside of the cycle proceed");
    assert_eq!(diagnostics.len(), 4);
    assert_eq!(diagnostics[0].reason, Reason::InternalError);
    expect_test::expect!["in a cycle of steps, a create waits for a destroy (a is created after the old object is destroyed), which waits for b destroy (a is destroyed after b, which depends on it), which waits for b create (b is create-before-destroy: the old object is destroyed last), which waits for a create (b depends on a)"]
    .assert_eq(&diagnostics[0].detail);
}
