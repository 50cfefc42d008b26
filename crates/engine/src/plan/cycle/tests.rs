use std::sync::Arc;

use expect_test::{Expect, expect};

use super::find;
use crate::load::{Config, Instance, Reference};
use model::{Address, Path};

/// Instances as lines: `web: db at spec.config.input, net at spec.dependsOn`.
fn config(text: &str) -> Config {
    let mut config = Config::default();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (name, rest) = line.split_once(':').unwrap();
        let references = rest.split(',').map(str::trim).filter(|part| !part.is_empty()).map(|part| {
            let (target, field) = part.split_once(" at ").unwrap();
            let at = field.split('.').fold(Path::default(), |path, name| path.name(name));
            Reference {
                target: target.parse().unwrap(),
                at,
                explicit: field == "spec.dependsOn",
                selector: None,
                segments: Arc::default(),
            }
        });
        let address: Address = name.parse().unwrap();
        config.instances.insert(address.clone(), Arc::new(instance(address, references.collect())));
    }
    config
}

fn instance(address: Address, references: Arc<[Reference]>) -> Instance {
    Instance { references, ..Instance::plain(address, "thing") }
}

fn check(text: &str, expected: Expect) {
    let shown: Vec<String> = find(&config(text))
        .iter()
        .map(|cycle| {
            let members: Vec<String> = cycle.members.iter().map(ToString::to_string).collect();
            format!("{}\n  {cycle}\n  {}\n", members.join(" "), cycle.hint())
        })
        .collect();
    expected.assert_eq(&shown.concat());
}

#[test]
fn acyclic_references_have_no_cycle() {
    check(
        "a:\n b: a at spec.config.x\n c: a at spec.config.x, b at spec.config.y, absent at spec.config.z",
        expect![""],
    );
}

#[test]
fn a_cycle_names_the_field_of_each_reference_and_one_to_remove() {
    check(
        "a: c at spec.config.input\n b: a at spec.config.x, a at spec.dependsOn\n c: b at spec.config.y\n d: c at spec.config.z",
        expect![[r#"
            a b c
              a references c (spec.config.input), c references b (spec.config.y), b references a (spec.config.x, spec.dependsOn)
              remove the reference from a to c (spec.config.input)
        "#]],
    );
}

#[test]
fn the_reference_that_breaks_every_cycle_is_found() {
    check(
        "a: b at spec.one, c at spec.two\n b: d at spec.three\n c: d at spec.four\n d: a at spec.five",
        expect![[r#"
            a b c d
              a references b (spec.one), b references d (spec.three), d references a (spec.five), a references c (spec.two), c references d (spec.four)
              remove the reference from d to a (spec.five)
        "#]],
    );
}

#[test]
fn cycles_that_share_one_object_need_a_reference_each() {
    check(
        "a: b at spec.one, c at spec.two\n b: a at spec.three\n c: a at spec.four",
        expect![[r#"
            a b c
              a references b (spec.one), b references a (spec.three), a references c (spec.two), c references a (spec.four)
              remove the reference from b to a (spec.three) and the reference from c to a (spec.four)
        "#]],
    );
}

#[test]
fn separate_cycles_and_self_references_are_reported_separately() {
    check(
        "a: b at spec.one\n b: a at spec.two\n c: c at spec.three",
        expect![[r#"
            a b
              a references b (spec.one), b references a (spec.two)
              remove the reference from a to b (spec.one)
            c
              c references c (spec.three)
              remove the reference from c to c (spec.three)
        "#]],
    );
}

#[test]
fn a_cycle_may_include_a_whole_family() {
    check(
        "web[0]: db at spec.x\n web[1]:\n db: web at spec.y",
        expect![[r#"
            db web[0]
              db references web (spec.y), web[0] references db (spec.x)
              remove the reference from db to web (spec.y)
        "#]],
    );
}

#[test]
fn an_object_being_deleted_is_not_part_of_a_cycle() {
    let mut config = config("a: b at spec.one\n b: a at spec.two");
    let gone = config.instances.get_mut(&Address::single("a")).map(Arc::make_mut).unwrap();
    gone.deleting = true;
    assert!(find(&config).is_empty());
}

#[test]
fn every_member_reports_the_same_cycle() {
    let cycles = find(&config("a: b at spec.one\n b: a at spec.two"));
    let errors: Vec<String> = cycles[0].diagnostics().iter().map(ToString::to_string).collect();
    expect![[r#"
        [
            "a: dependency cycle: a references b (spec.one), b references a (spec.two) (hint: remove the reference from a to b (spec.one))",
            "b: dependency cycle: a references b (spec.one), b references a (spec.two) (hint: remove the reference from a to b (spec.one))",
        ]
    "#]]
    .assert_debug_eq(&errors);
}

#[test]
fn a_long_cycle_is_found_without_delay() {
    let count = 5_000;
    let lines: Vec<String> = (0..count).map(|at| format!("n{at}: n{} at spec.next", (at + 1) % count)).collect();
    let cycles = find(&config(&lines.join("\n")));
    assert_eq!((cycles.len(), cycles[0].members.len(), cycles[0].fix.len()), (1, count, 1));
}
