//! Many objects: no quadratic algorithms, and no recursion along a chain of dependencies.

use std::sync::Arc;

use super::fixture::{Fixture, object};
use crate::load::Reference;
use crate::plan::{DriverRequest, DriverResponse, Plan, Planner};
use model::*;

/// A fixture with `count` objects. `targets` returns the indexes of the objects that an object references.
pub fn many(count: usize, targets: impl Fn(usize) -> Vec<usize>, recorded: bool) -> Fixture {
    let mut fixture = Fixture::default();
    fixture.options.destroy_orphans = true;
    let name = |at: usize| Address::single(format!("object-{at:06}"));
    for at in 0..count {
        let address = name(at);
        let mut resource = super::fixture::instance(address.clone());
        let place = Path::default().name("spec").name("config").name("input");
        let mut references: Vec<Reference> = targets(at)
            .into_iter()
            .map(|target| Reference {
                target: name(target),
                at: place.clone(),
                explicit: true,
                selector: None,
                segments: Arc::default(),
            })
            .collect();
        references.sort();
        if recorded {
            let mut record = Record::empty("ns".into(), address.clone(), "".into(), "thing".into());
            let mut held = object(&address.to_string(), &[]);
            held.value = held.value.with("input", Value::from(1));
            held.dependencies = references.iter().map(|reference| reference.target.clone()).collect();
            record.current = Some(Arc::new(held));
            fixture.recorded.insert(address.clone(), Stored { record: Arc::new(record), version: Version(1) });
        }
        resource.references = references.into();
        fixture.set_config(address.clone(), Value::map([("input", Value::from(1))]));
        fixture.config.instances.insert(address, Arc::new(resource));
    }
    fixture
}

/// Plans with a minimal driver.
pub fn plan(fixture: &Fixture) -> Plan {
    let mut planner = Planner::with_evaluator(&fixture.config, &fixture.recorded, &fixture.options, fixture, fixture);
    loop {
        let asks = planner.ready_calls();
        if asks.is_empty() {
            return planner.finish();
        }
        for ask in asks {
            let reply = match &ask.request {
                DriverRequest::Read(object) => DriverResponse::Object(
                    Vec::new(),
                    Ok(Some(ObjectState { identity: None, ..object.as_ref().into() })),
                    "".into(),
                ),
                DriverRequest::Copies(_) => DriverResponse::Copies(false),
                DriverRequest::Data { config, .. } => DriverResponse::Data(Vec::new(), Ok(Some(config.clone()))),
                DriverRequest::Import(_) => DriverResponse::Object(Vec::new(), Ok(None), "".into()),
                DriverRequest::Plan(request) => {
                    let id = request.prior.as_ref().and_then(|prior| prior.value.get("id")).cloned();
                    let planned = request.config.with("id", id.unwrap_or(Value::Unknown));
                    let identity = None;
                    let response = PlanResponse { planned, identity, ..PlanResponse::default() };
                    DriverResponse::Planned(Vec::new(), Ok(Some(response)), "".into())
                }
            };
            planner.handle_response(ask.id, reply);
        }
    }
}

#[test]
fn a_long_chain_of_new_objects_is_planned() {
    let fixture = many(20_000, |at| at.checked_sub(1).into_iter().collect(), false);
    let plan = plan(&fixture);
    assert!(plan.changes().all(|change| change.action == Action::Create));
    assert_eq!(plan.objects.values().filter(|object| object.prepared.is_some()).count(), 20_000);
}

#[test]
fn a_long_create_before_destroy_chain_is_shortened_in_the_plan() {
    let mut fixture = many(20_000, |at| at.checked_sub(1).into_iter().collect(), true);
    let last = fixture.config.instances.values_mut().next_back().unwrap();
    Arc::make_mut(last).create_before_destroy = Some(true);
    let plan = plan(&fixture);
    assert!(plan.changes().all(|change| change.action == Action::Record));
    let first = plan.objects.values().next().unwrap().lifecycle.as_ref().unwrap();
    assert_eq!(first.forced_by.len(), 16);
    assert_eq!(first.forced_by.last().map(ToString::to_string).as_deref(), Some("object-019999"));
}

#[test]
fn dependencies_of_a_blocked_object_are_held_along_a_long_chain() {
    let mut fixture = many(20_000, |at| at.checked_sub(1).into_iter().collect(), true);
    fixture.options.mode = crate::plan::Mode::Destroy;
    let last = fixture.config.instances.values_mut().next_back().unwrap();
    Arc::make_mut(last).prevent_destroy = true;
    let plan = plan(&fixture);
    assert!(plan.changes().all(|change| change.action == Action::Blocked));
}
