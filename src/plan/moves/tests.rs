//! Moves that are found, and records after them.

use super::*;
use crate::load::source::read_texts;
use crate::model::{Stored, Version};
use crate::plan::tests::world::object;

fn recorded(all: &[(&str, &[&str])]) -> Recorded {
    let record = |(address, uses): &(&str, &[&str])| {
        let address: Address = address.parse().unwrap();
        let mut record = Record::empty("ns".into(), address.clone(), "".into(), "thing".into());
        let dependencies = uses.iter().map(|name| name.parse().unwrap()).collect();
        record.current = Some(Arc::new(RecordedObject { dependencies, ..object("x", &[]) }));
        (address, Stored { record: Arc::new(record), version: Version(1) })
    };
    all.iter().map(record).collect()
}

fn one(from: &str, to: &str) -> Move {
    Move { from: from.parse().unwrap(), to: to.parse().unwrap(), uid: "".into(), back: false, conversion: None }
}

fn told(recorded: &Recorded) -> Vec<String> {
    let uses = |record: &Record| {
        objects(record).flat_map(|o| o.dependencies.iter().map(ToString::to_string)).collect::<Vec<_>>().join(" ")
    };
    recorded.iter().map(|(address, stored)| format!("{address}: {}", uses(&stored.record))).collect()
}

#[test]
fn dependencies_follow_instance_by_instance_and_as_a_whole() {
    let before = recorded(&[("a[0]", &[]), ("b", &["a", "a[0]"]), ("s", &[]), ("u", &["s", "b"])]);
    let after = carried(&before, &[one("a[0]", "z[0]"), one("s", "s[0]")]);
    assert_eq!(told(&after), ["b: z z[0]", "s[0]: ", "u: b s[0]", "z[0]: "]);
}

#[test]
fn a_family_that_is_torn_apart_is_named_instance_by_instance() {
    let mut before = recorded(&[("a[0]", &[]), ("a[1]", &[]), ("b", &[])]);
    let user = before.get_mut(&Address::single("b")).unwrap();
    let object = Arc::make_mut(&mut user.record).current.as_mut().unwrap();
    Arc::make_mut(object).dependencies = [Address::whole("a")].into();
    assert_eq!(told(&carried(&before, &[one("a[0]", "a")])), ["a: ", "a[1]: ", "b: a a[1]"]);
    assert_eq!(told(&carried(&before, &[one("a[0]", "z")])), ["a[1]: ", "b: a[1] z", "z: "]);
    assert_eq!(told(&carried(&before, &[one("b", "a[2]")])), ["a[0]: ", "a[1]: ", "a[2]: a[0] a[1]"]);
    let renamed = carried(&before, &[one("a[0]", "z[0]"), one("a[1]", "z[1]")]);
    assert_eq!(told(&renamed), ["b: z", "z[0]: ", "z[1]: "]);
    let user = renamed[&Address::single("b")].record.current.as_ref().unwrap();
    assert_eq!(*user.dependencies, [Address::whole("z")]);
}

#[test]
fn nothing_is_made_where_the_object_of_a_lost_record_may_belong() {
    let resource = |spec: &str| {
        let head = "apiVersion: purlin.dev/v1alpha1\nkind: Resource\nmetadata: {name: a}\n";
        read_texts(&[("f.yaml", &format!("{head}spec: {{type: thing, {spec}}}\n"))]).config
    };
    let found = |spec: &str, records: &[&str], index: &[&str]| {
        let records: Vec<(&str, &[&str])> = records.iter().map(|address| (*address, &[] as &[&str])).collect();
        let indexed = index.iter().map(|address| address.parse().unwrap()).collect();
        let found = find(
            &resource(spec),
            &recorded(&records),
            &PlanOptions { indexed, ..PlanOptions::default() },
            &Takeovers::new(),
        );
        let held = found.held.iter().map(|(address, held)| format!("{address} {}", held.reason));
        held.chain(found.moves.iter().map(|one| format!("{} -> {}", one.from, one.to))).collect::<Vec<_>>()
    };
    assert_eq!(found("count: 2", &["a[1]"], &["a", "a[1]"]), ["a[0] RecordMissing"]);
    assert_eq!(found("forEach: [x]", &[], &["a"]), [r#"a["x"] RecordMissing"#]);
    assert_eq!(found("config: {}", &[], &["a[0]"]), ["a RecordMissing"]);
    assert_eq!(found("config: {}", &["a[1]"], &["a[0]", "a[1]"]), ["a RecordMissing"]);
    // What is there is moved, and what is lost is no part of that.
    assert_eq!(found("config: {}", &["a[0]"], &["a[0]", "a[1]"]), ["a[0] -> a"]);
    assert_eq!(found("count: 2", &["a[0]"], &["a[0]", "a[1]"]), [] as [&str; 0]);
    // Nor does anything else take its place.
    assert_eq!(found("config: {}", &["a[1]"], &["a", "a[1]"]), [] as [&str; 0]);
}

#[test]
fn a_move_to_where_another_object_was_made_meanwhile_is_taken_back_and_both_stay() {
    let mut records = recorded(&[("a", &[]), ("b", &[]), ("c", &["a", "b"])]);
    let cut = Arc::make_mut(&mut records.get_mut(&Address::single("a")).unwrap().record);
    cut.moving_to = Some(Box::new(Address::single("b")));
    cut.current = Some(Arc::new(object("another", &[])));
    let found = find(&Config::default(), &records, &PlanOptions::default(), &Takeovers::new());
    assert_eq!(found.moves, [Move { back: true, ..one("a", "b") }]);
    assert_eq!(told(&carried(&records, &found.moves)), ["a: ", "b: ", "c: a b"]);
}

#[test]
fn a_move_that_a_crash_cut_is_finished_and_its_object_is_there_once() {
    let mut records = recorded(&[("a", &[]), ("b", &[]), ("c", &["a"])]);
    let cut = records.get_mut(&Address::single("a")).unwrap();
    Arc::make_mut(&mut cut.record).moving_to = Some(Box::new(Address::single("b")));
    let options = PlanOptions { mode: Mode::Destroy, ..PlanOptions::default() };
    let found = find(&Config::default(), &records, &options, &Takeovers::new());
    assert_eq!(found.moves, [one("a", "b")]);
    assert_eq!(told(&carried(&records, &found.moves)), ["b: ", "c: b"]);
}
