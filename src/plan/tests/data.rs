//! Data sources, as the controller plans them: what was read before counts until it is due or something else is asked.

use std::collections::BTreeSet;
use std::sync::Arc;

use expect_test::{Expect, expect};

use super::check;
use super::world::{World, instance};
use crate::load::{Config, Instance, Reference};
use crate::model::{Address, Path};
use crate::plan::Through;

/// What is asked, then the plan, then what counts as read from now on.
#[track_caller]
#[expect(clippy::needless_pass_by_value, reason = "so that tests read `told(situation, expect![...])`")]
fn told(situation: &str, expected: Expect) {
    let world = World::parse(situation);
    let text = world.plan_as_text();
    let asked = std::mem::take(&mut *world.asked.lock().unwrap()).join(", ");
    let plan = world.plan();
    let readings =
        plan.readings.iter().map(|(address, reading)| format!("{address}={:?}", reading.value.get("output")));
    let readings: Vec<String> = readings.collect();
    let read: Vec<String> = plan.read.iter().map(ToString::to_string).collect();
    expected.assert_eq(&format!(
        "asked: {asked}\n{text}\nreadings: {}\nread now: {}",
        readings.join(", "),
        read.join(", ")
    ));
}

#[test]
fn what_was_read_counts_until_it_is_due() {
    let situation = "
         want data.site input=1
         read data.site input=1 output=1
         want web input=${data.site.output}
         have web input=1 agreed
         option settled=web";
    told(
        &format!("{situation}\n option due="),
        expect![[r#"
            asked: 
            data.site NoOp
            web NoOp
            readings: data.site=Some(Number(Int(1)))
            read now: "#]],
    );
    told(
        &format!("{situation}\n option due=data.site"),
        expect![[r#"
        asked: read data.site
        data.site NoOp
        web NoOp
        readings: data.site=Some(Number(Int(1)))
        read now: data.site"#]],
    );
    told(
        &format!("{situation}\n option due=data.site\n world data.site output=2"),
        expect![[r#"
        asked: read data.site, plan web change
        data.site NoOp
        web Update {id=WEB input=2 output=?}
        readings: data.site=Some(Number(Int(2)))
        read now: data.site"#]],
    );
}

#[test]
fn what_was_read_with_something_else_or_as_somebody_else_counts_no_more() {
    told(
        "
         want data.site input=2
         read data.site input=1 output=1
         want data.other input=1
         read data.other input=1 output=1 as=robot
         option due=",
        expect![[r#"
            asked: read data.other, read data.site
            data.other NoOp
            data.site NoOp
            readings: data.other=Some(Number(Int(1))), data.site=Some(Number(Int(2)))
            read now: data.other, data.site"#]],
    );
}

#[test]
fn what_was_read_before_a_change_of_what_it_depends_on_counts_no_more() {
    told(
        "
         want a input=2
         have a input=1
         want data.site input=1 after=a
         read data.site input=1 output=1
         want web input=${data.site.output}
         have web input=1
         option due=",
        expect![[r#"
            asked: plan a change, check data.site, plan web change
            a Update {id=A input=2 output=?}
            data.site Read (`a` changes first)
            web Update {id=WEB input=? output=?}
            readings: 
            read now: "#]],
    );
}

#[test]
fn only_direct_changes_delay_a_read_and_those_behind_data_sources() {
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
fn a_read_that_fails_forgets_what_was_read_and_is_waited_for() {
    told(
        "
         want data.site input=1
         read data.site input=1 output=1
         world data.site unreadable
         want web input=${data.site.output}
         have web input=1 agreed
         want free input=1
         have free input=1 agreed
         option settled=web,free
         option due=data.site",
        expect![[r#"
            asked: read data.site
            data.site Blocked OperationFailed: the data source could not be read: no connection
            free NoOp
            web Blocked DependencyNotReady: spec.config.input: waits for `data.site`: it cannot be planned (OperationFailed: the data source could not be read) <- data.site
            error data.site OperationFailed
            error web DependencyNotReady
            readings: 
            read now: "#]],
    );
}

#[test]
fn while_nothing_is_done_about_it_what_was_read_last_counts() {
    let situation = "
         want data.site input=2 suspended
         want web input=${data.site.output}
         have web input=0
         option due=";
    told(
        &format!("{situation}\n read data.site input=1 output=1"),
        expect![[r#"
        asked: plan web change
        data.site Blocked Suspended: suspended (hint: set `spec.suspend: false` and remove the annotation `purlin.dev/paused`)
        web Update {id=WEB input=1 output=?}
        warning data.site Suspended
        readings: data.site=Some(Number(Int(1)))
        read now: "#]],
    );
    told(
        situation,
        expect![[r#"
        asked: 
        data.site Blocked Suspended: suspended (hint: set `spec.suspend: false` and remove the annotation `purlin.dev/paused`)
        web Blocked DependencyNotReady: spec.config.input: waits for `data.site`: it is held (Suspended: suspended) <- data.site
        warning data.site Suspended
        warning web DependencyNotReady
        readings: 
        read now: "#]],
    );
}

#[test]
fn one_that_is_gone_leaves_what_read_it_as_it_is() {
    told(
        "
         read data.site input=1 output=1
         want web input=${data.site.output}
         have web input=1
         option due=",
        expect![[r#"
            asked: 
            web Blocked DependencyNotFound: spec.config.input: refers to `data.site`, which does not exist
            error web DependencyNotFound
            readings: 
            read now: "#]],
    );
}

#[test]
fn what_a_sensitive_argument_gives_is_sensitive() {
    let world = World::parse("want data.site input=1 secret=hush");
    let plan = world.plan();
    let reading = &plan.readings[&Address::data("site")];
    assert!(reading.value.to_public_json().to_string().contains("sensitive"), "{:?}", reading.value);
    assert!(!format!("{}", reading.value.to_public_json()).contains("hush"));
}

fn depends(name: &str, on: &[&str]) -> Instance {
    let reference = |target: &&str| Reference {
        target: target.parse().unwrap(),
        at: Path::default(),
        explicit: true,
        choice: None,
    };
    Instance { references: on.iter().map(reference).collect(), ..instance(name.parse().unwrap()) }
}

#[test]
fn objects_use_what_stands_behind_data_sources() {
    let mut config = Config::default();
    let all = [
        depends("a", &[]),
        depends("b", &[]),
        depends("c", &[]),
        depends("data.one", &["a", "data.two"]),
        depends("data.two", &["b"]),
        depends("data.zone[\"n\"]", &["b"]),
        depends("data.zone[\"s\"]", &["c"]),
        depends("data.ring", &["data.round", "a"]),
        depends("data.round", &["data.ring"]),
    ];
    for instance in all {
        config.instances.insert(instance.address.clone(), Arc::new(instance));
    }
    let through = Through::new(&config);
    let targets = |on: &[&str]| {
        let found = through.targets(&config, &depends("web", on));
        found.map(|found: BTreeSet<Address>| found.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "))
    };
    assert_eq!(targets(&["a", "b"]), None, "who reads no data source is none of its business");
    assert_eq!(targets(&["data.one"]).as_deref(), Some("a b"));
    assert_eq!(targets(&["c", "data.two"]).as_deref(), Some("b c"));
    assert_eq!(targets(&["data.zone[\"s\"]"]).as_deref(), Some("c"));
    assert_eq!(targets(&["data.zone"]).as_deref(), Some("b c"), "a whole family");
    assert_eq!(targets(&["data.gone"]).as_deref(), Some(""));
    assert_eq!(targets(&["data.ring"]).as_deref(), Some("a"), "a ring is told elsewhere, and ends here");
}
