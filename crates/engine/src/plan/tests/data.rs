//! Data sources, as the controller plans them: a reading is valid until it is due or its configuration changes.

use std::collections::BTreeSet;
use std::sync::Arc;

use expect_test::{Expect, expect};

use super::check;
use super::fixture::{Fixture, instance};
use crate::load::{Config, Instance, Reference};
use crate::plan::DataDependencies;
use model::{Address, Path, Value};

/// Compares the driver calls, the plan, the readings and the data sources that were read.
#[track_caller]
#[expect(clippy::needless_pass_by_value, reason = "so that tests read `check_data(situation, expect![...])`")]
fn check_data(situation: &str, expected: Expect) {
    let fixture = Fixture::parse(situation);
    let text = fixture.plan_as_text();
    let calls = std::mem::take(&mut *fixture.driver_calls.lock().unwrap()).join(", ");
    let plan = fixture.plan();
    let readings = plan.readings().map(|(address, reading)| format!("{address}={:?}", reading.value.get("output")));
    let readings: Vec<String> = readings.collect();
    let read = plan.objects.iter().filter(|(_, object)| object.is_read);
    let read: Vec<String> = read.map(|(address, _)| address.to_string()).collect();
    expected.assert_eq(&format!(
        "calls: {calls}\n{text}\nreadings: {}\nread now: {}",
        readings.join(", "),
        read.join(", ")
    ));
}

#[test]
fn a_reading_is_valid_until_it_is_due() {
    let situation = "
         want data.site input=1
         read data.site input=1 output=1
         want web input=${data.site.output}
         have web input=1 matching
         option up-to-date=web";
    check_data(
        &format!("{situation}\n option due="),
        expect![[r#"
            calls: 
            data.site NoOp
            web NoOp
            readings: data.site=Some(Number(Int(1)))
            read now: "#]],
    );
    check_data(
        &format!("{situation}\n option due=data.site"),
        expect![[r#"
        calls: read data.site
        data.site NoOp
        web NoOp
        readings: data.site=Some(Number(Int(1)))
        read now: data.site"#]],
    );
    check_data(
        &format!("{situation}\n option due=data.site\n actual data.site output=2"),
        expect![[r#"
        calls: read data.site, plan web change
        data.site NoOp
        web Update {id=WEB input=2 output=?}
        readings: data.site=Some(Number(Int(2)))
        read now: data.site"#]],
    );
}

#[test]
fn a_reading_with_another_configuration_or_account_is_invalid() {
    check_data(
        "
         want data.site input=2
         read data.site input=1 output=1
         want data.other input=1
         read data.other input=1 output=1 as=robot
         option due=",
        expect![[r#"
            calls: read data.other, read data.site
            data.other NoOp
            data.site NoOp
            readings: data.other=Some(Number(Int(1))), data.site=Some(Number(Int(2)))
            read now: data.other, data.site"#]],
    );
}

#[test]
fn a_reading_from_before_a_change_of_a_dependency_is_invalid() {
    check_data(
        "
         want a input=2
         have a input=1
         want data.site input=1 after=a
         read data.site input=1 output=1
         want web input=${data.site.output}
         have web input=1
         option due=",
        expect![[r#"
            calls: plan a change, check data.site, plan web change
            a Update {id=A input=2 output=?}
            data.site Read (`a` changes first)
            web Update {id=WEB input=? output=?}
            readings: 
            read now: "#]],
    );
}

#[test]
fn direct_changes_and_changes_behind_data_sources_delay_a_read() {
    check(
        "
         want a input=2
         have a input=1
         want b input=1 after=a
         have b input=1 uses=a
         want data.far input=1 after=b
         want data.near input=1 after=a
         want data.behind input=1 after=data.near
         option due=",
        expect![[r#"
            a Update {id=A input=2 output=?}
            b NoOp
            data.behind Read (`data.near` changes first)
            data.far NoOp
            data.near Read (`a` changes first)"#]],
    );
}

#[test]
fn a_read_is_delayed_only_by_the_changes_that_it_names() {
    check(
        "
         want a input=2
         have a input=1
         want b input=1 after=a
         have b input=1 uses=a
         want data.near input=1 after=a,b read-after=b
         want data.far input=1 after=a,b read-after-all=b
         want data.own input=1 after=a,b read-after=a
         want data.behind input=1 after=data.own,b read-after=data.own,b
         option due=",
        expect![[r#"
            a Update {id=A input=2 output=?}
            b NoOp
            data.behind NoOp
            data.far Read (`a` changes first)
            data.near NoOp
            data.own Read (`a` changes first)"#]],
    );
}

#[test]
fn a_failed_read_drops_the_reading_and_blocks_dependents() {
    check_data(
        "
         want data.site input=1
         read data.site input=1 output=1
         actual data.site unreadable
         want web input=${data.site.output}
         have web input=1 matching
         want free input=1
         have free input=1 matching
         option up-to-date=web,free
         option due=data.site",
        expect![[r#"
            calls: read data.site
            data.site Blocked OperationFailed: the data source could not be read: no connection
            free NoOp
            web Blocked DependencyNotReady: spec.config.input: waits for `data.site`: it cannot be planned (OperationFailed: no connection) <- data.site
            error data.site OperationFailed
            error web DependencyNotReady
            readings: 
            read now: "#]],
    );
}

#[test]
fn a_suspended_data_source_keeps_its_last_reading() {
    let situation = "
         want data.site input=2 suspended
         want web input=${data.site.output}
         have web input=0
         option due=";
    check_data(
        &format!("{situation}\n read data.site input=1 output=1"),
        expect![[r#"
        calls: plan web change
        data.site Blocked Suspended: suspended (hint: set `spec.suspend: false`)
        web Update {id=WEB input=1 output=?}
        warning data.site Suspended
        readings: data.site=Some(Number(Int(1)))
        read now: "#]],
    );
    check_data(
        situation,
        expect![[r#"
            calls: 
            data.site Blocked Suspended: suspended (hint: set `spec.suspend: false`)
            web Blocked DependencyNotReady: spec.config.input: waits for `data.site`: it is blocked (Suspended: suspended) <- data.site
            warning data.site Suspended
            warning web DependencyNotReady
            readings: 
            read now: "#]],
    );
}

#[test]
fn a_removed_data_source_blocks_its_dependents() {
    check_data(
        "
         read data.site input=1 output=1
         want web input=${data.site.output}
         have web input=1
         option due=",
        expect![[r#"
            calls: 
            web Blocked DependencyNotFound: spec.config.input: references `data.site`, which does not exist
            error web DependencyNotFound
            readings: 
            read now: "#]],
    );
}

#[test]
fn a_reading_with_a_sensitive_argument_is_sensitive() {
    let fixture = Fixture::parse("want data.site input=1 secret=hush");
    let plan = fixture.plan();
    let reading = plan.objects[&Address::data("site")].reading.as_ref().unwrap();
    assert!(reading.value.to_public_json().to_string().contains("sensitive"), "{:?}", reading.value);
    assert!(!format!("{}", reading.value.to_public_json()).contains("hush"));
}

fn instance_with_dependencies(name: &str, on: &[&str]) -> Instance {
    Instance {
        references: on
            .iter()
            .map(|target| Reference {
                target: target.parse().unwrap(),
                at: Path::default(),
                explicit: true,
                selector: None,
                segments: Arc::default(),
            })
            .collect(),
        ..instance(name.parse().unwrap())
    }
}

#[test]
fn objects_depend_on_the_dependencies_of_their_data_sources() {
    let mut config = Config::default();
    let all = [
        instance_with_dependencies("a", &[]),
        instance_with_dependencies("b", &[]),
        instance_with_dependencies("c", &[]),
        instance_with_dependencies("data.one", &["a", "data.two"]),
        instance_with_dependencies("data.two", &["b"]),
        instance_with_dependencies("data.zone[\"n\"]", &["b"]),
        instance_with_dependencies("data.zone[\"s\"]", &["c"]),
        instance_with_dependencies("data.first", &["data.second", "a"]),
        instance_with_dependencies("data.second", &["data.first"]),
    ];
    for instance in all {
        config.instances.insert(instance.address.clone(), Arc::new(instance));
    }
    let through = DataDependencies::new(&config);
    let targets = |on: &[&str]| {
        let found = through.targets(&config, &instance_with_dependencies("web", on));
        found.map(|found: BTreeSet<Address>| found.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "))
    };
    assert_eq!(targets(&["a", "b"]), None, "it depends on no data source");
    assert_eq!(targets(&["data.one"]).as_deref(), Some("a b"));
    assert_eq!(targets(&["c", "data.two"]).as_deref(), Some("b c"));
    assert_eq!(targets(&["data.zone[\"s\"]"]).as_deref(), Some("c"));
    assert_eq!(targets(&["data.zone"]).as_deref(), Some("b c"), "the whole family");
    assert_eq!(targets(&["data.gone"]).as_deref(), Some(""));
    assert_eq!(targets(&["data.first"]).as_deref(), Some("a"), "a cycle of data sources ends the search");
}

#[test]
fn a_preview_sends_no_sensitive_value_to_a_data_source() {
    let calls = |situation: &str| {
        let mut fixture = Fixture::parse(&format!("want data.site input=1\n{situation}"));
        let hidden = Value::map([("input", Value::from("hidden").into_sensitive())]);
        fixture.set_config(Address::data("site"), hidden);
        let text = fixture.plan_as_text();
        (std::mem::take(&mut *fixture.driver_calls.lock().unwrap()).join(", "), text)
    };
    assert_eq!(calls("").0, "read data.site");
    let (called, text) = calls("option preview");
    assert_eq!(called, "check data.site");
    assert!(text.starts_with("data.site Read"), "{text}");
}
