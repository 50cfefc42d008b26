//! The alerts and the dashboard of the chart: they use metrics that the controller serves, each alert has a section in
//! the runbook, and it fires when it must and only then.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::Command;

use purlin::model::Reason;
use purlin::reconcile::ObjectState;
use regex::Regex;
use serde_json::{Value as Json, json};

use crate::reference::anchor;
use crate::reference::metrics::registered;
use crate::tidy::root;

const RUNBOOK: &str = "docs/runbook.md";

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The alerts in the order of the file.
fn alerts() -> Vec<Json> {
    let file: Json = serde_saphyr::from_str(&read("charts/purlin/files/alerts.yaml")).unwrap();
    let groups = file["groups"].as_array().unwrap();
    groups.iter().flat_map(|group| group["rules"].as_array().unwrap().clone()).collect()
}

fn dashboard() -> Json {
    serde_json::from_str(&read("charts/purlin/files/dashboard.json")).unwrap()
}

/// The expressions of the dashboard, with the legends of their lines.
fn queries() -> Vec<(String, String)> {
    let dashboard = dashboard();
    let panels = dashboard["panels"].as_array().unwrap().iter();
    let targets = panels.flat_map(|panel| panel["targets"].as_array().into_iter().flatten());
    targets.map(|target| (text(&target["expr"]), text(&target["legendFormat"]))).collect()
}

fn text(value: &Json) -> String {
    value.as_str().unwrap_or_else(|| panic!("{value} is not a text")).to_owned()
}

fn name(alert: &Json) -> String {
    text(&alert["alert"])
}

/// The labels of each metric, from its reference.
fn labels() -> BTreeMap<String, BTreeSet<String>> {
    let page = read("docs/reference/metrics.md");
    let code = Regex::new("`([a-z]+)`").unwrap();
    let label = |cell: &str| {
        // Values are in parentheses, such as `outcome` (`finished`, `failed`).
        let names = Regex::new(r"\([^)]*\)").unwrap().replace_all(cell, "").into_owned();
        let link = Regex::new(r"\[`([a-z]+)`\]").unwrap();
        let linked: Vec<String> = link.captures_iter(cell).map(|found| found[1].to_owned()).collect();
        code.captures_iter(&names).map(|found| found[1].to_owned()).chain(linked).collect::<BTreeSet<_>>()
    };
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `purlin_"));
    let cells = rows.map(|row| row.split('|').map(str::trim).collect::<Vec<_>>());
    cells.map(|cells| (format!("purlin_{}", cells[0].trim_end_matches('`')), label(cells[2]))).collect()
}

/// Returns what an expression uses that no metric in it has. `legend` can also name labels.
fn unknown(expression: &str, legend: &str) -> Vec<String> {
    let (registered, labels) = (registered(), labels());
    let metric = Regex::new("purlin_[a-z_]+").unwrap();
    let mut problems = Vec::new();
    // What Prometheus adds to every series, and histograms to their buckets.
    let mut known: BTreeSet<String> = ["namespace", "pod", "le"].map(str::to_owned).into();
    for found in metric.find_iter(expression) {
        let is_histogram = |name: &&str| registered.get(*name).is_some_and(|(kind, _)| kind == "histogram");
        let series = ["_bucket", "_sum", "_count"].iter().find_map(|suffix| found.as_str().strip_suffix(suffix));
        let of = series.filter(is_histogram).unwrap_or(found.as_str());
        match labels.get(of).filter(|_| registered.contains_key(of)) {
            Some(own) => known.extend(own.iter().cloned()),
            None => problems.push(format!("no metric {of}")),
        }
    }
    let grouped = Regex::new(r"by \(([a-z_, ]+)\)").unwrap();
    let matched = Regex::new(r#"([a-z_]+)\s*(?:=~|!~|!=|=)\s*""#).unwrap();
    let shown = Regex::new(r"\{\{\s*(?:\$labels\.)?([a-z_]+)\s*\}\}").unwrap();
    let grouped = grouped
        .captures_iter(expression)
        .flat_map(|found| found[1].split(',').map(|label| label.trim().to_owned()).collect::<Vec<_>>());
    let matched = matched.captures_iter(expression).map(|found| found[1].to_owned());
    let shown = shown.captures_iter(legend).map(|found| found[1].to_owned());
    let used = grouped.chain(matched).chain(shown).filter(|label| !known.contains(label));
    problems.extend(used.map(|label| format!("no label {label}")));
    let values = |label: &str| {
        let matcher = Regex::new(&format!(r#"\b{label}\s*(?:=~|!~|!=|=)\s*"([^"]*)""#)).unwrap();
        let found: Vec<String> = matcher.captures_iter(expression).map(|found| found[1].to_owned()).collect();
        found.into_iter().flat_map(|all| all.split('|').map(str::to_owned).collect::<Vec<_>>()).collect::<Vec<_>>()
    };
    let no_reason = |reason: &String| !Reason::ALL.iter().any(|known| known.as_str() == reason);
    problems.extend(values("reason").into_iter().filter(no_reason).map(|reason| format!("no reason {reason}")));
    let no_state = |state: &String| !ObjectState::ALL.iter().any(|known| known.as_str() == state);
    problems.extend(values("state").into_iter().filter(no_state).map(|state| format!("no state {state}")));
    problems.into_iter().map(|problem| format!("{problem}: {expression} {legend}")).collect()
}

#[test]
fn alerts_and_dashboard_use_metrics_labels_and_reasons_that_exist() {
    let alerts = alerts();
    let texts =
        |alert: &Json| format!("{} {}", text(&alert["annotations"]["summary"]), alert["annotations"]["description"]);
    let of_alerts = alerts.iter().map(|alert| (text(&alert["expr"]), texts(alert)));
    let all: Vec<(String, String)> = of_alerts.chain(queries()).collect();
    assert!(all.len() > 50, "{}", all.len());
    let problems: Vec<String> = all.iter().flat_map(|(expression, legend)| unknown(expression, legend)).collect();
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    let wrong = unknown(r#"sum by (typ) (purlin_object{reason=~"Forbidden|Gone", state="red"})"#, "{{pod}} {{x}}");
    let wrong: Vec<&str> = wrong.iter().map(|problem| problem.split(':').next().unwrap()).collect();
    let expected = ["no metric purlin_object", "no label typ", "no label reason", "no label state", "no label x"];
    assert_eq!(wrong, [&expected[..], &["no reason Gone", "no state red"]].concat());
}

#[test]
fn the_dashboard_shows_each_metric_of_one_installation() {
    let queries = queries();
    let everything: String = queries.iter().map(|(expression, _)| format!("{expression}\n")).collect();
    // Shown by the log, by another metric, or as the number of its waits.
    let left_out = [
        "purlin_input_watches",
        "purlin_leader",
        "purlin_lease_attempts_total",
        "purlin_permit_wait_seconds_total",
        "purlin_permit_waits_total",
        "purlin_permits_limit",
        "purlin_provider_pods",
        "purlin_recoveries_total",
        "purlin_shards_moved_total",
        "purlin_watch_event_timestamp_seconds",
        "purlin_watch_lists_total",
        "purlin_build_info",
    ];
    let left_out = BTreeSet::from(left_out);
    for name in registered().keys() {
        assert_ne!(everything.contains(name), left_out.contains(&**name), "{name}");
    }
    let selector = Regex::new(r"purlin_[a-z_]+\{([^}]*)\}").unwrap();
    let metric = Regex::new("purlin_[a-z_]+").unwrap();
    for (expression, _) in &queries {
        let scoped = selector.captures_iter(expression).filter(|found| found[1].contains("namespace=\"$namespace\""));
        assert_eq!(scoped.count(), metric.find_iter(expression).count(), "{expression} reads other installations");
    }
    let dashboard = dashboard();
    let ids: Vec<u64> =
        dashboard["panels"].as_array().unwrap().iter().map(|panel| panel["id"].as_u64().unwrap()).collect();
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len(), "Grafana identifies panels by their IDs");
}

#[test]
fn each_alert_has_a_section_in_the_runbook() {
    let page = read(RUNBOOK);
    let sections: Vec<&str> = page.split("\n### ").skip(1).collect();
    let titles: Vec<&str> = sections.iter().map(|section| section.lines().next().unwrap()).collect();
    let alerts = alerts();
    assert_eq!(titles, alerts.iter().map(name).collect::<Vec<_>>(), "sections in the order of the alerts");
    for (alert, section) in alerts.iter().zip(&sections) {
        let name = name(alert);
        for part in ["**Meaning.**", "**Look at.**", "**Do.**"] {
            assert!(section.contains(part), "{name} has no {part}");
        }
        let url = format!("https://github.com/purlin-dev/purlin/blob/main/{RUNBOOK}#{}", anchor(&name));
        assert_eq!(text(&alert["annotations"]["runbook_url"]), url);
        let severity = text(&alert["labels"]["severity"]);
        assert!(["critical", "warning", "info"].contains(&&*severity), "{name}: {severity}");
    }
}

fn promtool(arguments: &[&str]) -> Option<Result<(), String>> {
    let output = Command::new("promtool").args(arguments).current_dir(root()).output();
    let Ok(output) = output else {
        // Not with a macro: the test framework shows the output of a test only if it fails.
        let notice = "no program `promtool` was found in PATH: whether the alerts of the chart fire, and whether \
                      Prometheus can read the queries of the dashboard, was not tested (hint: install Prometheus, for \
                      example the Debian package prometheus)\n";
        let _ = std::io::stderr().write_all(notice.as_bytes());
        return None;
    };
    let text = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
    Some(if output.status.success() { Ok(()) } else { Err(text) })
}

#[test]
fn each_alert_fires_when_it_must_and_only_then() {
    let path = "tests/local/alerts/tests.yaml";
    let tests: Json = serde_saphyr::from_str(&read(path)).unwrap();
    let cases = tests["tests"].as_array().unwrap().iter().flat_map(|test| test["alert_rule_test"].as_array().unwrap());
    let cases: BTreeSet<(String, bool)> =
        cases.map(|case| (text(&case["alertname"]), case["exp_alerts"].is_array())).collect();
    let expected = alerts().iter().flat_map(|alert| [(name(alert), false), (name(alert), true)]).collect();
    assert_eq!(cases, expected, "each alert has a case in which it fires, and one in which it does not");
    if let Some(result) = promtool(&["test", "rules", path]) {
        result.unwrap_or_else(|problems| panic!("{problems}"));
    }
}

#[test]
fn prometheus_can_read_the_queries_of_the_dashboard() {
    let directory = tempfile::tempdir().unwrap();
    let rule = |(number, (expression, _)): (usize, (String, String))| {
        let expression = expression.replace("$__rate_interval", "5m");
        json!({ "record": format!("query:{number}"), "expr": expression })
    };
    let rules: Vec<Json> = queries().into_iter().enumerate().map(rule).collect();
    let file: PathBuf = directory.path().join("rules.yaml");
    // JSON is YAML.
    fs::write(&file, json!({ "groups": [{ "name": "dashboard", "rules": rules }] }).to_string()).unwrap();
    if let Some(result) = promtool(&["check", "rules", file.to_str().unwrap()]) {
        result.unwrap_or_else(|problems| panic!("{problems}"));
    }
}
