//! Properties of the plans of random situations: planning ends, a plan lists every object once, and blocked objects
//! have no steps.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::fixture::Fixture;
use crate::plan::{Mode, Plan};
use model::{Action, Address, Change, ChangeCause, RecordedObject, ReplaceOrder, Severity};

const NAMES: [&str; 6] = ["a", "b", "c", "d", "e", "f"];

/// A situation of up to six objects, as text.
fn situation() -> impl Strategy<Value = String> {
    let option = prop::sample::select(vec![
        "",
        "",
        "",
        "option destroy",
        "option cluster",
        "option no-refresh",
        "option incomplete",
        "option held=b",
        "option updating=c",
        "option creating=d",
        "option destroying=a",
        "option terminating",
        "option keep",
        "option up-to-date=a,b,c,d",
        "option replace=a,c",
        "option cap=3",
    ]);
    let objects = NAMES.map(object);
    (objects, option).prop_map(|(objects, option)| {
        let lines = objects.into_iter().flat_map(|(want, have, left, seen)| [want, have, left, seen]).flatten();
        lines.chain([option.to_owned()]).collect::<Vec<_>>().join("\n")
    })
}

/// The Resource, the record, the deposed object and the read object of a name, each of which may be absent.
fn object(
    name: &'static str,
) -> impl Strategy<Value = (Option<String>, Option<String>, Option<String>, Option<String>)> {
    let value = prop_oneof![
        Just("1".to_owned()),
        Just("2".to_owned()),
        prop::sample::select(NAMES.to_vec()).prop_map(|target| format!("${{{target}.id}}")),
    ];
    let attribute = prop::sample::select(vec!["input", "force", "name"]);
    let setting = prop::sample::select(vec![
        "",
        "",
        "",
        "",
        "cbd",
        "nocbd",
        "protect",
        "orphan",
        "deleting",
        "suspended",
        "problem=x",
        "request=r",
    ]);
    let after = prop::sample::select(NAMES.to_vec());
    let want = (attribute, value, setting, after, any::<bool>()).prop_map(
        move |(attribute, value, setting, after, refers)| {
            let after = if refers && after != name { format!("after={after}") } else { String::new() };
            format!("want {name} type=named {attribute}={value} {setting} {after}")
        },
    );
    let flags = prop::sample::select(vec!["", "", "", "cbd", "protect", "skip", "tainted", "interrupted"]);
    let uses = prop::sample::subsequence(NAMES.to_vec(), 0..3);
    let have = (flags, uses, 1..3_u8).prop_map(move |(flags, uses, value)| {
        format!("have {name} type=named force={value} name={value} uses={} {flags}", uses.join(","))
    });
    let uses = prop::sample::subsequence(NAMES.to_vec(), 0..2);
    let left = (uses, 1..9_u8, any::<bool>()).prop_map(move |(uses, key, tainted)| {
        let status = if tainted { "tainted" } else { "" };
        format!("deposed {name} {key} type=named name={key} uses={} {status}", uses.join(","))
    });
    let seen = prop::sample::select(vec!["missing", "input=7", "unreadable", "unplannable", "same", "same"]);
    let seen = seen.prop_map(move |seen| format!("actual {name} {seen}"));
    (
        prop::option::weighted(0.8, want),
        prop::option::weighted(0.7, have),
        prop::option::weighted(0.2, left),
        prop::option::weighted(0.3, seen),
    )
}

fn lists_every_object_once(fixture: &Fixture, plan: &Plan) {
    let mut listed = BTreeSet::new();
    for change in plan.changes() {
        assert!(listed.insert((change.address.clone(), change.deposed)), "{} is listed twice", change.address);
    }
    for address in fixture.config.instances.keys() {
        assert!(listed.iter().any(|(known, _)| known == address), "{address} is missing");
    }
    for stored in fixture.recorded.values() {
        let record = &stored.record;
        assert!(record.current.is_none() || listed.contains(&(record.address.clone(), None)), "{}", record.address);
        for key in record.deposed.keys() {
            assert!(
                listed.contains(&(record.address.clone(), Some(*key))),
                "deposed object {key} of {}",
                record.address
            );
        }
    }
    let order: Vec<_> = plan.changes().map(|change| (&change.address, change.deposed)).collect();
    assert!(order.is_sorted(), "changes are sorted by address");
}

fn gives_steps_to_unblocked_objects_only(fixture: &Fixture, plan: &Plan) {
    let running: BTreeSet<&Address> = fixture.options.running.iter().map(|running| &running.step.address).collect();
    for change in plan.current_changes() {
        let steps = matches!(change.action, Action::Create | Action::Update | Action::Replace | Action::Record);
        let expected = steps && !running.contains(&change.address);
        if change.action == Action::Destroy {
            // Only an object that was read and differs from its record.
            let prepared = plan.prepared(&change.address);
            let is_read = prepared.is_none_or(|prepared| prepared.prior.is_none() && prepared.replaced.is_some());
            assert!(is_read, "prepared {}", change.address);
            continue;
        }
        if let Some(prepared) = plan.prepared(&change.address).filter(|_| change.action == Action::Blocked) {
            // A blocked object may only record `prevent_destroy` and `skip_destroy`.
            let object = prepared.prior.as_deref().expect("it is recorded");
            let flags = |object: &RecordedObject| (object.prevent_destroy, object.skip_destroy);
            assert!(prepared.record_only && flags(object) != flags(&prepared.recorded), "{}", change.address);
            let (prevent_destroy, skip_destroy) = flags(object);
            assert_eq!(*object, RecordedObject { prevent_destroy, skip_destroy, ..prepared.recorded.clone() });
            continue;
        }
        assert_eq!(plan.prepared(&change.address).is_some(), expected, "prepared {}", change.address);
    }
    for change in plan.changes() {
        assert_eq!(change.blocked.is_some(), change.action == Action::Blocked);
        assert_eq!(change.order.is_some(), change.action == Action::Replace);
        let is_explained = plan.diagnostics.iter().any(|problem| problem.address.as_ref() == Some(&change.address));
        assert!(is_explained || change.blocked.is_none(), "{}", change.address);
    }
}

/// No step destroys a recorded dependency of a blocked object, directly or through objects that are unchanged or keep
/// the dependency.
fn holds_dependencies_of_blocked_objects(fixture: &Fixture, plan: &Plan) {
    let current: BTreeMap<&Address, _> = plan.current_changes().map(|change| (&change.address, change)).collect();
    let running: BTreeSet<&Address> = fixture.options.running.iter().map(|running| &running.step.address).collect();
    let mut open: Vec<Address> = current.values().filter(|c| c.blocked.is_some()).map(|c| c.address.clone()).collect();
    let mut reached = BTreeSet::new();
    while let Some(address) = open.pop() {
        let object = fixture.recorded.get(&address).and_then(|stored| stored.record.current.clone());
        let changes =
            |change: &&Change| matches!(change.action, Action::NoOp | Action::Record | Action::Update | Action::Create);
        let is_changing = current.get(&address).copied().is_some_and(|change| changes(&change));
        let kept = plan
            .objects
            .get(&address)
            .and_then(|object| object.dependencies.as_ref())
            .filter(|_| is_changing && !running.contains(&address));
        for used in object.iter().flat_map(|object| object.dependencies.iter()) {
            let is_kept = kept.is_none_or(|kept| kept.contains(used));
            if is_kept && *used != address && reached.insert(used.clone()) {
                open.push(used.clone());
            }
        }
    }
    for change in plan.changes().filter(|change| reached.contains(&change.address)) {
        let nothing_recorded = change.deposed.is_none()
            && fixture.recorded.get(&change.address).is_none_or(|stored| stored.record.current.is_none());
        if nothing_recorded || running.contains(&change.address) {
            continue;
        }
        let gives_up = match change.action {
            Action::Destroy | Action::Forget => true,
            Action::Replace => change.order == Some(ReplaceOrder::DestroyFirst) || change.hold_destroy.is_none(),
            _ => false,
        };
        assert!(!gives_up, "{} is used by a blocked object", change.address);
    }
}

/// No plan destroys an object with `prevent_destroy`.
fn keeps_protected_objects(fixture: &Fixture, plan: &Plan) {
    for change in plan.changes().filter(|change| !change.forget && change.because != Some(ChangeCause::Running)) {
        let Some(stored) = fixture.recorded.get(&change.address) else { continue };
        let sound =
            |i: &&std::sync::Arc<crate::load::Instance>| !i.problems.iter().any(|p| p.severity == Severity::Error);
        let spec = fixture.config.instances.get(&change.address).filter(sound);
        let object = change.deposed.map_or(stored.record.current.as_ref(), |key| stored.record.deposed.get(&key));
        let prevented = spec.map_or(object.is_some_and(|object| object.prevent_destroy), |spec| spec.prevent_destroy);
        let destroys = match change.action {
            Action::Destroy => true,
            Action::Replace => change.hold_destroy.is_none(),
            _ => false,
        };
        assert!(!(prevented && destroys), "{} is protected", change.address);
    }
}

fn creates_nothing_in_a_destroy_plan(fixture: &Fixture, plan: &Plan) {
    if fixture.options.mode == Mode::Destroy {
        assert!(!plan.changes().any(|change| {
            matches!(change.action, Action::Create | Action::Update | Action::Replace | Action::Record)
        }));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_plan_satisfies_the_rules(situation in situation()) {
        let fixture = Fixture::parse(&situation);
        let plan = fixture.plan();
        lists_every_object_once(&fixture, &plan);
        gives_steps_to_unblocked_objects_only(&fixture, &plan);
        holds_dependencies_of_blocked_objects(&fixture, &plan);
        keeps_protected_objects(&fixture, &plan);
        creates_nothing_in_a_destroy_plan(&fixture, &plan);
        let internal = plan.diagnostics.iter().find(|problem| problem.reason == model::Reason::InternalError);
        prop_assert!(internal.is_none(), "{:?}", internal);
        prop_assert_eq!(fixture.plan_as_text(), fixture.plan_as_text());
    }
}
