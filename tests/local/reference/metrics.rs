//! `docs/reference/metrics.md`: the page has every metric that the controller registers, and no other.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use jiff::Timestamp;
use purlin::controller::metrics::{Metrics, PlanOutcome, ProcessSample};
use purlin::execute::{Pool, Recovery};
use purlin::model::{Operation, Reason};
use purlin::plugin::Observer as _;
use purlin::reconcile::{Gauges, ObjectState};

/// Returns the metrics that the controller serves: name, type and description.
pub(crate) fn registered() -> BTreeMap<String, (String, String)> {
    let metrics = Metrics::default();
    // A metric with labels is served once it has a value.
    metrics.steps.ended(Operation::Create, "terraform_data", false, Duration::ZERO);
    metrics.steps.planned(PlanOutcome::Planned, Duration::ZERO);
    metrics.steps.recovered(&Recovery::Missing);
    let ready = BTreeMap::from([((ObjectState::Ready, Reason::Available), 1)]);
    metrics.objects.update(&Gauges::default(), &Gauges { objects: ready, ..Gauges::default() });
    metrics.requests.ended("GET", "secrets", Some(200), Duration::ZERO);
    metrics.requests.record_written("intent", "written", Duration::ZERO);
    metrics.watches.failed("resources");
    metrics.watches.listing("resources");
    metrics.watches.delivered("resources", Timestamp::UNIX_EPOCH);
    metrics.providers.set_processes([ProcessSample { provider: "aws".to_owned(), memory: 1, in_pod: true }]);
    metrics.providers.started("aws", true, Duration::ZERO);
    metrics.providers.crashed("aws");
    metrics.providers.called("aws", "ReadResource", "ok", Duration::ZERO);
    metrics.permits.set("calls", &Pool::shared(1).usage());
    metrics.shards_moved(1, 1);
    metrics.lease_attempted(Some(true), Timestamp::UNIX_EPOCH);
    let text = metrics.render();
    let lines = |kind: &str| {
        let begin = format!("# {kind} ");
        let lines = text.lines().filter_map(|line| line.strip_prefix(&begin)?.split_once(' '));
        lines.map(|(name, rest)| (name.to_owned(), rest.to_owned())).collect::<BTreeMap<_, _>>()
    };
    let (types, helps) = (lines("TYPE"), lines("HELP"));
    let metric = |(name, kind): (String, String)| {
        let help = helps[&name].trim_end_matches('.').to_owned();
        let suffix = match kind.as_str() {
            "counter" => "_total",
            "info" => "_info",
            _ => "",
        };
        let name = name + suffix;
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
    let source = fs::read_to_string(crate::tidy::root().join("crates/controller/src/metrics.rs")).unwrap();
    let table = source.split("\nmetrics! {\n").nth(1).and_then(|rest| rest.split("\n}\n").next()).expect("the table");
    let rows = table.lines().filter_map(|line| line.strip_prefix("        ")).filter(|row| !row.starts_with(' '));
    // And the version.
    assert_eq!(registered.len(), rows.count() + 1, "give every metric a value above");
    assert_eq!(documented, registered);
}
