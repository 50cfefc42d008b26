//! Whatever the situation, a plan ends, tells every object once, and gives no step to what is blocked.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::world::World;
use crate::model::{Action, Address, Change, RecordedObject, ReplaceOrder, Severity};
use crate::plan::{Mode, Plan};

/// A situation of up to six objects, as text.
fn situation() -> impl Strategy<Value = String> {
    let names = ["a", "b", "c", "d", "e", "f"];
    let object = |name: &'static str| {
        let value = prop_oneof![
            Just("1".to_owned()),
            Just("2".to_owned()),
            prop::sample::select(names.to_vec()).prop_map(|target| format!("${{{target}.id}}")),
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
        let after = prop::sample::select(names.to_vec());
        let want = (attribute, value, setting, after, any::<bool>()).prop_map(
            move |(attribute, value, setting, after, refers)| {
                let after = if refers && after != name { format!("after={after}") } else { String::new() };
                format!("want {name} type=named {attribute}={value} {setting} {after}")
            },
        );
        let flags = prop::sample::select(vec!["", "", "", "cbd", "protect", "skip", "tainted", "interrupted"]);
        let uses = prop::sample::subsequence(names.to_vec(), 0..3);
        let have = (flags, uses, 1..3_u8).prop_map(move |(flags, uses, value)| {
            format!("have {name} type=named force={value} name={value} uses={} {flags}", uses.join(","))
        });
        let uses = prop::sample::subsequence(names.to_vec(), 0..2);
        let left = (uses, 1..9_u8, any::<bool>()).prop_map(move |(uses, key, tainted)| {
            let status = if tainted { "tainted" } else { "" };
            format!("left {name} {key} type=named name={key} uses={} {status}", uses.join(","))
        });
        let seen = prop::sample::select(vec!["gone", "input=7", "unreadable", "unplannable", "same", "same"]);
        let seen = seen.prop_map(move |seen| format!("world {name} {seen}"));
        let some = |strategy: BoxedStrategy<String>, weight| prop::option::weighted(weight, strategy);
        (some(want.boxed(), 0.8), some(have.boxed(), 0.7), some(left.boxed(), 0.2), some(seen.boxed(), 0.3))
    };
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
        "option settled=a,b,c,d",
        "option replace=a,c",
        "option cap=3",
    ]);
    let objects = names.map(object);
    (objects, option).prop_map(|(objects, option)| {
        let lines = objects.into_iter().flat_map(|(want, have, left, seen)| [want, have, left, seen]).flatten();
        lines.chain([option.to_owned()]).collect::<Vec<_>>().join("\n")
    })
}

fn tells_every_object_once(world: &World, plan: &Plan) {
    let mut told = BTreeSet::new();
    for change in &plan.changes {
        assert!(told.insert((change.address.clone(), change.deposed)), "{} is told twice", change.address);
    }
    for address in world.config.instances.keys() {
        assert!(told.iter().any(|(known, _)| known == address), "{address} is missing");
    }
    for stored in world.recorded.values() {
        let record = &stored.record;
        assert!(record.current.is_none() || told.contains(&(record.address.clone(), None)), "{}", record.address);
        for key in record.deposed.keys() {
            assert!(told.contains(&(record.address.clone(), Some(*key))), "leftover {key} of {}", record.address);
        }
    }
    let order: Vec<_> = plan.changes.iter().map(|change| (&change.address, change.deposed)).collect();
    assert!(order.is_sorted(), "changes stand in address order");
}

fn gives_steps_to_what_is_free_only(world: &World, plan: &Plan) {
    let running: BTreeSet<&Address> = world.options.running.iter().map(|running| &running.step.address).collect();
    for change in plan.changes.iter().filter(|change| change.deposed.is_none()) {
        let steps = matches!(change.action, Action::Create | Action::Update | Action::Replace | Action::Record);
        let expected = steps && !running.contains(&change.address);
        if let Some(prepared) = plan.prepared.get(&change.address).filter(|_| change.action == Action::Blocked) {
            // Nothing but what the manifest says about keeping the object.
            let object = prepared.prior.as_deref().expect("it is recorded");
            let flags = |object: &RecordedObject| (object.prevent_destroy, object.skip_destroy);
            assert!(prepared.only_follows && flags(object) != flags(&prepared.recorded), "{}", change.address);
            let (prevent_destroy, skip_destroy) = flags(object);
            assert_eq!(*object, RecordedObject { prevent_destroy, skip_destroy, ..prepared.recorded.clone() });
            continue;
        }
        assert_eq!(plan.prepared.contains_key(&change.address), expected, "prepared {}", change.address);
    }
    for change in &plan.changes {
        assert_eq!(change.blocked.is_some(), change.action == Action::Blocked);
        assert_eq!(change.order.is_some(), change.action == Action::Replace);
        let told = |problem: &&crate::model::Diagnostic| problem.address.as_ref() == Some(&change.address);
        assert!(
            change.blocked.is_none() || plan.diagnostics.iter().any(|problem| told(&problem)),
            "{}",
            change.address
        );
    }
}

/// What the record of a blocked object names has no step that destroys, nor what it used through others that stay as they
/// are or still have the reference.
fn holds_what_blocked_objects_used(world: &World, plan: &Plan) {
    let current: BTreeMap<&Address, _> =
        plan.changes.iter().filter(|change| change.deposed.is_none()).map(|change| (&change.address, change)).collect();
    let running: BTreeSet<&Address> = world.options.running.iter().map(|running| &running.step.address).collect();
    let mut open: Vec<Address> = current.values().filter(|c| c.blocked.is_some()).map(|c| c.address.clone()).collect();
    let mut reached = BTreeSet::new();
    while let Some(address) = open.pop() {
        let object = world.recorded.get(&address).and_then(|stored| stored.record.current.clone());
        let changes =
            |change: &&Change| matches!(change.action, Action::NoOp | Action::Record | Action::Update | Action::Create);
        let is_changing = current.get(&address).copied().is_some_and(|change| changes(&change));
        let kept = plan.wants.get(&address).filter(|_| is_changing && !running.contains(&address));
        let is_kept = |used: &&Address| kept.is_none_or(|kept| kept.contains(used));
        for used in object.iter().flat_map(|object| object.dependencies.iter()).filter(is_kept) {
            if *used != address && reached.insert(used.clone()) {
                open.push(used.clone());
            }
        }
    }
    for change in plan.changes.iter().filter(|change| reached.contains(&change.address)) {
        let nothing_recorded = change.deposed.is_none()
            && world.recorded.get(&change.address).is_none_or(|stored| stored.record.current.is_none());
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

/// A prevented destroy happens in no plan.
fn keeps_protected_objects(world: &World, plan: &Plan) {
    for change in plan
        .changes
        .iter()
        .filter(|change| !change.forget && change.because.as_deref() != Some("a step of it is running"))
    {
        let Some(stored) = world.recorded.get(&change.address) else { continue };
        let sound =
            |i: &&std::sync::Arc<crate::load::Instance>| !i.problems.iter().any(|p| p.severity == Severity::Error);
        let spec = world.config.instances.get(&change.address).filter(sound);
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

/// In a plan towards nothing nothing is made.
fn makes_nothing_when_destroying(world: &World, plan: &Plan) {
    let makes = |action| matches!(action, Action::Create | Action::Update | Action::Replace | Action::Record);
    if world.options.mode == Mode::Destroy {
        assert!(!plan.changes.iter().any(|change| makes(change.action)));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_plan_keeps_the_rules(situation in situation()) {
        let world = World::parse(&situation);
        let plan = world.plan();
        tells_every_object_once(&world, &plan);
        gives_steps_to_what_is_free_only(&world, &plan);
        holds_what_blocked_objects_used(&world, &plan);
        keeps_protected_objects(&world, &plan);
        makes_nothing_when_destroying(&world, &plan);
        let internal = plan.diagnostics.iter().find(|problem| problem.reason == crate::model::Reason::InternalError);
        prop_assert!(internal.is_none(), "{:?}", internal);
        prop_assert_eq!(world.plan_as_text(), world.plan_as_text());
    }
}
