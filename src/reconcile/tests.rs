//! The reconciler as a value, played through without an API server: plans and steps are really made, by the scripted
//! driver, and time is a number.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use jiff::Timestamp;

use super::index::{Event, Observed, Published};
use super::time::{Moment, Time};
use super::*;
use crate::driver::scripted::{Answer, Line, Operation, World};
use crate::driver::{Registry, Scripted};
use crate::execute::{self, Engine, HolderState, Limits, Wishes, Workers};
use crate::model::{Holder, Intent, Record, Value, Version};
use crate::pipeline;
use crate::process::{Clock, SystemRandom};
use crate::store::MemoryJournal;

/// A reconciler with everything that it needs, and a clock that a test moves.
struct Bench {
    reconciler: Reconciler,
    engine: Arc<Engine>,
    workers: Workers,
    world: Arc<World>,
    now: Duration,
    clock: Arc<BenchClock>,
    /// When to come back though nothing happens.
    wake: Option<Time>,
    /// What was commanded and is still to be done.
    open: Vec<Command>,
    /// The last status of each Resource.
    status: BTreeMap<String, ResourceStatus>,
    /// All commands, as a text.
    tape: Vec<String>,
}

/// The wall clock of a bench, in nanoseconds since its start.
#[derive(Default)]
struct BenchClock(AtomicU64);

impl Clock for BenchClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_nanosecond(self.0.load(Ordering::Relaxed).into()).unwrap()
    }
}

impl Bench {
    fn new() -> Self {
        let clock = Arc::new(BenchClock::default());
        let world = World::new(serde_json::from_str("{}").unwrap());
        let engine = Arc::new(Engine::new(
            Registry::default().with("scripted", Arc::new(Scripted::new(world.clone()))),
            Arc::new(MemoryJournal::default()),
            clock.clone(),
            Arc::new(SystemRandom),
            Limits::default(),
            Holder { pod: "".into(), process: "now".into() },
        ));
        let policy = Policy { steps_at_once: 8, planned_together: 256, destroys_orphans: false };
        Self {
            reconciler: Reconciler::new("shop".into(), policy, 7, 0),
            workers: Workers::new(engine.clone(), Wishes::default()),
            engine,
            world,
            now: Duration::ZERO,
            clock,
            wake: None,
            open: Vec::new(),
            status: BTreeMap::new(),
            tape: Vec::new(),
        }
    }

    /// A Resource as a watch delivers it.
    fn observe(&mut self, mut manifest: serde_json::Value, generation: i64) {
        manifest["apiVersion"] = crate::api::API_VERSION.into();
        manifest["kind"] = "Resource".into();
        manifest["metadata"]["uid"] = "u".into();
        manifest["metadata"]["generation"] = generation.into();
        let resource: crate::api::Resource = serde_json::from_value(manifest).unwrap();
        let instance = crate::load::from_api(&resource, &"default".into(), &mut crate::load::Interner::default());
        self.reconciler.observe(Event::ResourceApplied(Observed {
            instance: Arc::new(instance),
            published: Published::nothing(),
            version: Version(0),
            meta: Arc::default(),
        }));
    }

    /// One turn; its commands stay open.
    fn react(&mut self, happened: Happened) -> Turn {
        self.workers.forget_full();
        self.clock.0.store(u64::try_from(self.now.as_nanos()).unwrap(), Ordering::Relaxed);
        let now = Moment { time: Time(self.now), wall: self.clock.now() };
        let turn = self.reconciler.react([happened], now, &mut self.workers);
        self.wake = turn.wake;
        for command in self.reconciler.take_commands() {
            self.tape.push(format!("{:?}", self.now) + &short(&command));
            self.open.push(command);
        }
        turn
    }

    /// Does one thing that was commanded, or waits for one that runs. Returns whether there was any.
    async fn act(&mut self) -> bool {
        if self.open.is_empty() {
            if self.workers.is_idle() {
                return false;
            }
            let report = self.workers.next().await;
            self.react(Happened::Worker(report));
            return true;
        }
        let happened = match self.open.remove(0) {
            Command::Plan(request) => Happened::Planned(Box::new(self.plan(*request).await)),
            Command::Execute(order) => {
                self.workers.carry_out(order);
                return true;
            }
            Command::Recover(stored) => {
                let (outcome, warnings) = execute::recover(&self.engine, &stored, None, HolderState::Gone).await;
                Happened::Recovered(Box::new(Recovered { address: stored.record.address.clone(), outcome, warnings }))
            }
            Command::WriteStatus { name, status, .. } => {
                self.status.insert(name.to_string(), *status);
                return true;
            }
            _ => return true,
        };
        self.react(happened);
        true
    }

    async fn plan(&self, mut request: PlanRequest) -> Planned {
        let PlanRequest { config, recorded, options, memo, .. } = &mut request;
        let made = pipeline::plan(&self.engine, config, recorded, options, memo).await;
        request.planned(made)
    }

    /// Does all that is commanded, letting time pass until nothing is due within `longest`.
    async fn settle(&mut self, longest: Duration) {
        let end = self.now + longest;
        loop {
            while self.act().await {}
            match self.wake {
                Some(Time(at)) if at <= end => self.now = self.now.max(at),
                _ => return,
            }
            self.react(Happened::Nothing);
        }
    }

    fn ready(&self, name: &str) -> (i64, String) {
        let status = &self.status[name];
        let ready = status.conditions.iter().find(|condition| condition.type_ == "Ready").unwrap();
        (status.observed_generation, format!("{} {}", ready.status, ready.reason))
    }

    fn recorded(&self) -> Vec<String> {
        self.reconciler.records().keys().map(ToString::to_string).collect()
    }

    fn commanded(&self, what: &str) -> bool {
        self.open.iter().any(|command| short(command).contains(what))
    }
}

/// What a command is, without all that it holds.
fn short(command: &Command) -> String {
    match command {
        Command::Plan(request) => format!(" plan {:?}", request.names()),
        Command::Execute(Order::Start(input, _)) => format!(" start {}", input.step().id()),
        Command::Progress(step, kind) => format!(" {} {kind:?}", step.id()),
        Command::WriteStatus { name, status, .. } => format!(" status {name} {:?}", status.conditions),
        Command::Recover(stored) => format!(" recover {}", stored.record.address),
        other => format!(" {:.12?}", std::mem::discriminant(other)),
    }
}

fn thing(name: &str, value: i64) -> serde_json::Value {
    serde_json::json!({
        "metadata": { "name": name },
        "spec": { "type": "scripted", "config": { "value": value } },
    })
}

const MINUTE: Duration = Duration::from_mins(1);

#[tokio::test]
async fn a_resource_goes_from_its_event_to_its_status() {
    let mut bench = Bench::new();
    bench.observe(thing("a", 1), 1);
    let turn = bench.react(Happened::Begun);
    assert!(!bench.commanded("plan"), "events are gathered for a moment");
    assert_eq!(turn.wake, Some(Time(Duration::from_millis(10))));
    bench.now = Duration::from_millis(10);
    assert!(!bench.react(Happened::Nothing).is_quiet);
    assert!(bench.commanded("plan {\"a\"}"));
    bench.settle(MINUTE).await;
    assert_eq!(bench.ready("a"), (1, "True Available".to_owned()));
    assert_eq!(bench.recorded(), ["a"]);
    assert_eq!(bench.reconciler.gauges().objects, BTreeMap::from([(ObjectState::Ready, 1)]));
}

#[tokio::test]
async fn the_same_events_give_the_same_commands() {
    let mut tapes = Vec::new();
    for _ in 0..2 {
        let mut bench = Bench::new();
        for (name, value) in [("a", 1), ("b", 2), ("c", 3)] {
            bench.observe(thing(name, value), 1);
        }
        bench.react(Happened::Begun);
        bench.settle(MINUTE).await;
        bench.observe(thing("b", 9), 2);
        bench.react(Happened::Nothing);
        bench.settle(MINUTE).await;
        assert_eq!(bench.ready("b"), (2, "True Available".to_owned()));
        tapes.push(bench.tape);
    }
    assert_eq!(tapes[0], tapes[1]);
}

#[tokio::test]
async fn what_is_wanted_again_while_its_end_was_planned_stays() {
    let mut bench = Bench::new();
    bench.observe(thing("a", 1), 1);
    bench.react(Happened::Begun);
    bench.settle(MINUTE).await;
    let mut leaving = thing("a", 1);
    leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    leaving["metadata"]["finalizers"] = serde_json::json!([crate::api::FINALIZER]);
    bench.observe(leaving, 1);
    bench.react(Happened::Nothing);
    bench.now += Duration::from_millis(10);
    bench.react(Happened::Nothing);
    let Some(at) = bench.open.iter().position(|command| matches!(command, Command::Plan(_))) else { panic!() };
    let Command::Plan(request) = bench.open.remove(at) else { panic!() };
    let planned = bench.plan(*request).await;
    // It took long; meanwhile another Resource of the name is wanted.
    bench.now += Duration::from_secs(5);
    bench.observe(thing("a", 1), 2);
    bench.react(Happened::Planned(Box::new(planned)));
    assert!(!bench.commanded("start"), "{:?}", bench.tape);
    bench.settle(MINUTE).await;
    assert!(bench.tape.iter().all(|line| !line.contains("destroy")), "{:?}", bench.tape);
    assert_eq!(bench.ready("a"), (2, "True Available".to_owned()));
}

#[tokio::test]
async fn a_lease_that_is_held_again_plans_at_once_though_a_call_still_runs() {
    let mut bench = Bench::new();
    bench.observe(thing("a", 1), 1);
    bench.react(Happened::Begun);
    bench.now += Duration::from_millis(10);
    bench.react(Happened::Nothing);
    while !bench.commanded("start a") {
        assert!(bench.act().await);
    }
    // The create is under way from here on: its order is kept, and nothing is known of its end.
    let Some(at) = bench.open.iter().position(|command| matches!(command, Command::Execute(_))) else { panic!() };
    let Command::Execute(order) = bench.open.remove(at) else { panic!() };
    assert!(!bench.react(Happened::StoodDown).is_quiet, "the call is awaited");
    bench.observe(thing("b", 1), 1);
    assert!(!bench.commanded("plan {\"b\"}"));
    bench.react(Happened::Begun);
    bench.now += Duration::from_millis(10);
    bench.react(Happened::Nothing);
    bench.settle(Duration::from_secs(1)).await;
    assert_eq!(bench.ready("b"), (1, "True Available".to_owned()));
    bench.workers.carry_out(order);
    bench.settle(MINUTE).await;
    assert_eq!(bench.ready("a"), (1, "True Available".to_owned()));
    assert_eq!(bench.tape.iter().filter(|line| line.contains(" start a")).count(), 1, "{:?}", bench.tape);
}

#[tokio::test]
async fn a_precondition_that_others_make_true_is_looked_at_again() {
    let mut bench = Bench::new();
    let mut first = thing("a", 1);
    first["spec"]["lifecycle"] = serde_json::json!({ "ignoreChanges": ["value"] });
    bench.observe(first, 1);
    let mut second = thing("b", 1);
    let condition = serde_json::json!({ "condition": "${a.value == 2}", "errorMessage": "not yet" });
    second["spec"]["lifecycle"] = serde_json::json!({ "preconditions": [condition] });
    bench.observe(second, 1);
    bench.react(Happened::Begun);
    bench.settle(Duration::from_millis(500)).await;
    assert_eq!(bench.recorded(), ["a"]);
    let made = bench.reconciler.records()[&Address::single("a")].record.current.clone().unwrap();
    bench.world.put(made.id().unwrap(), &made.value.with("value", Value::from(2)));
    bench.settle(MINUTE).await;
    assert_eq!(bench.recorded(), ["a", "b"]);
}

/// A record with an update that an earlier process has begun, over an object that exists.
fn cut_update(address: &Address) -> Record {
    let mut record = Record::empty("shop".into(), address.clone(), "u".into(), "scripted".into());
    record.current = Some(Arc::new(RecordedObject {
        value: Value::map([("id", Value::from("it")), ("value", Value::from(1))]),
        ..RecordedObject::default()
    }));
    record.intent = Some(Box::new(Intent {
        operation: crate::model::Operation::Update,
        operation_id: "op".into(),
        holder: Holder { pod: "".into(), process: "earlier".into() },
        epoch: 1,
        started: Timestamp::UNIX_EPOCH,
        deadline: Timestamp::UNIX_EPOCH,
        deposed: None,
        planned: None,
    }));
    record
}

/// An update of `a` was cut, and the object cannot be read at first: `transient`, `forbidden`.
async fn cut_and_unreadable(bench: &mut Bench, kind: &str) -> Address {
    let address = Address::single("a");
    bench.world.put("it", &Value::map([("value", Value::from(1))]));
    let kind = serde_json::from_value(kind.into()).unwrap();
    let answers = vec![Answer::Fail { kind, message: "not now".to_owned() }];
    bench.world.script(Line { on: "a".to_owned(), operation: Operation::Read, answers });
    let record = Arc::new(cut_update(&address));
    let version = bench.engine.journal.intend(record.clone(), None).await.unwrap();
    bench.observe(thing("a", 1), 1);
    bench.reconciler.observe(Event::RecordApplied(Stored { record, version }));
    bench.react(Happened::Begun);
    bench.settle(Duration::from_millis(100)).await;
    address
}

#[tokio::test]
async fn what_is_forbidden_in_a_namespace_that_goes_is_tried_again_when_less_is_left_of_it() {
    let mut bench = Bench::new();
    let told = |version| Event::Namespace { value: Value::Null, terminating: Some(Version(version)) };
    bench.reconciler.observe(told(1));
    let address = cut_and_unreadable(&mut bench, "forbidden").await;
    let recoveries = |bench: &Bench| bench.tape.iter().filter(|line| line.contains("recover a")).count();
    bench.settle(MINUTE / 2).await;
    assert_eq!(recoveries(&bench), 1, "not again and again: {:?}", bench.tape);
    bench.reconciler.observe(told(2));
    bench.react(Happened::Nothing);
    bench.settle(MINUTE / 2).await;
    assert!(bench.reconciler.records().get(&address).is_none_or(|stored| stored.record.intent.is_none()));
    assert_eq!(recoveries(&bench), 2, "{:?}", bench.tape);
}

#[tokio::test]
async fn a_recovery_that_could_not_end_is_tried_again() {
    let mut bench = Bench::new();
    let address = cut_and_unreadable(&mut bench, "transient").await;
    assert!(bench.reconciler.records()[&address].record.intent.is_some(), "the first attempt could not read it");
    bench.settle(MINUTE).await;
    assert!(bench.reconciler.records()[&address].record.intent.is_none());
    assert_eq!(bench.tape.iter().filter(|line| line.contains("recover a")).count(), 2, "{:?}", bench.tape);
}
