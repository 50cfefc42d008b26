//! Many objects: nothing is quadratic, nothing recurses as deep as a chain of dependencies is long.

use std::sync::Arc;

use super::world::{World, object};
use crate::load::Reference;
use crate::model::*;
use crate::plan::{Plan, Planner, Question, Reply};

/// `count` objects in a world of its own, each with references to those before it that `targets` names.
pub(super) fn many(count: usize, targets: impl Fn(usize) -> Vec<usize>, recorded: bool) -> World {
    let mut world = World::default();
    world.options.destroy_orphans = true;
    let name = |at: usize| Address::single(format!("object-{at:06}"));
    for at in 0..count {
        let address = name(at);
        let mut made = super::world::instance(address.clone());
        let place = Path::default().name("spec").name("config").name("input");
        let mut references: Vec<Reference> = targets(at)
            .into_iter()
            .map(|target| Reference { target: name(target), at: place.clone(), explicit: true, choice: None })
            .collect();
        references.sort();
        if recorded {
            let mut record = Record::empty("ns".into(), address.clone(), "".into(), "thing".into());
            let mut held = object(&address.to_string(), &[]);
            held.value = held.value.with("input", Value::from(1));
            held.dependencies = references.iter().map(|reference| reference.target.clone()).collect();
            record.current = Some(Arc::new(held));
            world.recorded.insert(address.clone(), Stored { record: Arc::new(record), version: Version(1) });
        }
        made.references = references.into();
        world.set_config(address.clone(), Value::map([("input", Value::from(1))]));
        world.config.instances.insert(address, Arc::new(made));
    }
    world
}

/// Plans with a driver that costs next to nothing.
pub(super) fn plan(world: &World) -> Plan {
    let mut planner = Planner::with_evaluator(&world.config, &world.recorded, &world.options, world, world);
    loop {
        let asks = planner.ready();
        if asks.is_empty() {
            return planner.finish();
        }
        for ask in asks {
            let reply = match &ask.question {
                Question::Read(object) => Reply::Object(
                    Vec::new(),
                    Ok(Some(ObjectState {
                        value: object.value.clone(),
                        private: object.private.clone(),
                        identity: None,
                    })),
                    "".into(),
                ),
                Question::Copies(_) => Reply::Copies(false),
                Question::Data { config, .. } => Reply::Data(Vec::new(), Ok(Some(config.clone()))),
                Question::Import(_) => Reply::Object(Vec::new(), Ok(None), "".into()),
                Question::Plan(request) => {
                    let id = request.prior.as_ref().and_then(|prior| prior.value.get("id")).cloned();
                    let planned = request.config.with("id", id.unwrap_or(Value::Unknown));
                    let identity = None;
                    let response = PlanResponse { planned, identity, ..PlanResponse::default() };
                    Reply::Planned(Vec::new(), Ok(Some(response)))
                }
            };
            planner.answer(ask.id, reply);
        }
    }
}

#[test]
fn a_long_chain_of_new_objects_is_planned() {
    let world = many(20_000, |at| at.checked_sub(1).into_iter().collect(), false);
    let plan = plan(&world);
    assert!(plan.changes.iter().all(|change| change.action == Action::Create));
    assert_eq!(plan.prepared.len(), 20_000);
}

#[test]
fn a_long_chain_under_create_before_destroy_is_told_by_its_ends() {
    let mut world = many(20_000, |at| at.checked_sub(1).into_iter().collect(), true);
    let last = world.config.instances.values_mut().next_back().unwrap();
    Arc::make_mut(last).create_before_destroy = Some(true);
    let plan = plan(&world);
    assert!(plan.changes.iter().all(|change| change.action == Action::Record));
    let first = plan.lifecycle.values().next().unwrap();
    assert_eq!(first.forced_by.len(), 16);
    assert_eq!(first.forced_by.last().map(ToString::to_string).as_deref(), Some("object-019999"));
}

#[test]
fn what_a_blocked_object_used_is_held_along_a_long_chain() {
    let mut world = many(20_000, |at| at.checked_sub(1).into_iter().collect(), true);
    world.options.mode = crate::plan::Mode::Destroy;
    let last = world.config.instances.values_mut().next_back().unwrap();
    Arc::make_mut(last).prevent_destroy = true;
    let plan = plan(&world);
    assert!(plan.changes.iter().all(|change| change.action == Action::Blocked));
}
