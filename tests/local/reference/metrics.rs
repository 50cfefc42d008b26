//! `docs/reference/metrics.md`: the page has every metric that the controller registers, and no other.

use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;
use std::time::Duration;

use purlin::controller::metrics::Metrics;
use purlin::model::Operation;
use purlin::reconcile::{Gauges, ObjectState};

/// Returns the metrics that the controller serves: name, type and description.
fn registered() -> BTreeMap<String, (String, String)> {
    let metrics = Metrics::default();
    // A metric with labels is served once it has a value.
    metrics.step_ended(Operation::Create, &Arc::from("terraform_data"), false, Duration::ZERO);
    let ready = Gauges { objects: BTreeMap::from([(ObjectState::Ready, 1)]), ..Gauges::default() };
    metrics.count(&Gauges::default(), &ready);
    metrics.wrote("status", true);
    metrics.watch_failed("resources");
    let text = metrics.render();
    let lines = |kind: &str| {
        let begin = format!("# {kind} ");
        let lines = text.lines().filter_map(|line| line.strip_prefix(&begin)?.split_once(' '));
        lines.map(|(name, rest)| (name.to_owned(), rest.to_owned())).collect::<BTreeMap<_, _>>()
    };
    let (types, helps) = (lines("TYPE"), lines("HELP"));
    let metric = |(name, kind): (String, String)| {
        let help = helps[&name].trim_end_matches('.').to_owned();
        // The samples of a counter have this suffix.
        let name = if kind == "counter" { format!("{name}_total") } else { name };
        (name, (kind, help))
    };
    types.into_iter().map(metric).collect()
}

#[test]
fn the_page_of_metrics_has_exactly_the_metrics_that_the_controller_registers() {
    let page = fs::read_to_string(crate::tidy::root().join("docs/reference/metrics.md")).unwrap();
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `purlin_"));
    let documented: BTreeMap<String, (String, String)> = rows
        .map(|row| {
            let cells: Vec<&str> = row.split('|').map(str::trim).collect();
            let name = format!("purlin_{}", cells[0].trim_end_matches('`'));
            let meaning = cells[3].split(". ").next().unwrap().trim_end_matches('.');
            (name, (cells[1].to_owned(), meaning.to_owned()))
        })
        .collect();
    let registered = registered();
    let source = fs::read_to_string(crate::tidy::root().join("src/controller/metrics.rs")).unwrap();
    assert_eq!(registered.len(), source.matches("registry.register(").count(), "give every metric a value above");
    assert_eq!(documented, registered);
}
