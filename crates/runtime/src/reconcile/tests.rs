//! Tests of the reconciler without an API server: the scripted driver executes real plans and steps, and the test
//! controls the time.

mod approvals;
mod back_off;
mod backlog;
mod claims;
mod moves;
mod names;
mod panics;
mod preview;
mod provider_configs;
mod quota;
mod recoveries;
mod statuses;
mod waits;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use jiff::Timestamp;

use self::backlog::SharedEnvironment;
use super::index::{Event, ObservedResource, PublishedStatus};
use super::time::{Moment, Time};
use super::*;
use crate::execute::{self, DesiredDigests, Engine, HolderState, Limits, Workers};
use crate::pipeline;
use crate::store::MemoryJournal;
use crate::store::secrets::Family;
use api::ResourceStatus;
use drivers::Registry;
use model::{Holder, Intent, PlannedObject, Quota, Record, RecordedObject, Value, Version};
use process::{Clock, SystemRandom};
use testkit::scripted::{Operation, ScriptLine, Scripted, ScriptedOutcome, World};

/// A reconciler with its dependencies and a clock that the test controls.
struct Bench {
    reconciler: Reconciler,
    engine: Arc<Engine>,
    workers: Workers,
    /// How many namespaces share the room for waiting steps.
    sharing: usize,
    world: Arc<World>,
    now: Duration,
    clock: Arc<BenchClock>,
    /// The next requested turn.
    wake: Option<Time>,
    /// Commands that are not executed yet.
    pending: Vec<Command>,
    status: BTreeMap<String, ResourceStatus>,
    /// The Plans with a digest.
    plans: BTreeMap<String, index::ApprovalPlan>,
    /// All commands as strings.
    log: Vec<String>,
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
        Self::with_policy(|_| {})
    }

    fn with_policy(change: impl FnOnce(&mut Policy)) -> Self {
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
        let mut policy = Policy {
            max_running_steps: 8,
            max_names_per_plan: 256,
            quota: Quota { objects: Some(3), ..Quota::default() },
            requires_approval: true,
            ..Policy::default()
        };
        change(&mut policy);
        Self {
            reconciler: Reconciler::new("shop".into(), policy, 7, 0),
            workers: Workers::new(engine.clone(), "shop".into(), DesiredDigests::default()),
            sharing: 1,
            engine,
            world,
            now: Duration::ZERO,
            clock,
            wake: None,
            pending: Vec::new(),
            status: BTreeMap::new(),
            plans: BTreeMap::new(),
            log: Vec::new(),
        }
    }

    /// A Resource as a watch delivers it.
    fn observe(&mut self, mut manifest: serde_json::Value, generation: i64) {
        manifest["apiVersion"] = api::API_VERSION.into();
        manifest["kind"] = "Resource".into();
        manifest["metadata"]["uid"] = "u".into();
        manifest["metadata"]["generation"] = generation.into();
        let resource = serde_json::from_value(manifest).unwrap();
        let instance = engine::load::from_raw(&resource, &"default".into(), &mut engine::load::Interner::default());
        self.observe_instance(instance);
    }

    fn observe_instance(&mut self, instance: engine::load::Instance) {
        self.reconciler.observe(Event::ResourceApplied(ObservedResource {
            instance: Arc::new(instance),
            published: PublishedStatus::empty(),
            version: Version(0),
            meta: Arc::default(),
        }));
    }

    fn react(&mut self, signal: Signal) -> Turn {
        self.react_to_all(&mut [signal].into())
    }

    /// Runs one turn and queues its commands.
    fn react_to_all(&mut self, signals: &mut VecDeque<Signal>) -> Turn {
        self.workers.clear_exhausted();
        self.clock.0.store(u64::try_from(self.now.as_nanos()).unwrap(), Ordering::Relaxed);
        let now = Moment { time: Time(self.now), wall: self.clock.now() };
        let mut environment = SharedEnvironment { workers: &mut self.workers, namespaces: self.sharing };
        let turn = self.reconciler.react(signals, now, &mut environment);
        self.wake = turn.wake;
        for command in self.reconciler.take_commands() {
            self.log.push(format!("{:?}", self.now) + &short(&command));
            self.pending.push(command);
        }
        turn
    }

    /// Executes one command, or waits for a running step. Returns `false` if there is neither.
    async fn execute_next(&mut self) -> bool {
        if self.pending.is_empty() {
            if self.workers.is_idle() {
                return false;
            }
            let report = self.workers.next().await;
            self.react(Signal::Worker(report));
            return true;
        }
        let signal = match self.pending.remove(0) {
            Command::Plan(request) => Signal::Planned(Box::new(self.plan(*request).await)),
            Command::Execute(order) => {
                self.workers.execute(order);
                return true;
            }
            Command::Recover(stored) => {
                let (outcome, warnings) = execute::recover(&self.engine, &stored, None, HolderState::Ended).await;
                Signal::Recovered(Box::new(RecoveryResult {
                    address: stored.record.address.clone(),
                    outcome,
                    warnings,
                }))
            }
            Command::Move(request) => self.carry_out_moves(*request).await,
            Command::WriteApproval(write) => self.write_approval(*write),
            Command::WriteStatus(target, update) => {
                let api::Status::Resource(status) = update.status else { return true };
                self.status.insert(target.name.to_string(), *status);
                return true;
            }
            _ => return true,
        };
        self.react(signal);
        true
    }

    async fn plan(&self, mut request: PlanRequest) -> PlanResult {
        loop {
            let PlanRequest { config, recorded, options, memo, .. } = &mut request;
            let planned = pipeline::plan(&self.engine, config, recorded, options, memo).await;
            if !request.hold_unapproved(b"salt", &planned) {
                return request.into_result(planned);
            }
        }
    }

    /// Computes the plan of the changes so far. The caller passes it to the reconciler.
    async fn compute_due_plan(&mut self) -> PlanResult {
        self.now += Duration::from_millis(10);
        self.react(Signal::Wake);
        let Some(at) = self.pending.iter().position(|command| matches!(command, Command::Plan(_))) else { panic!() };
        let Command::Plan(request) = self.pending.remove(at) else { panic!() };
        self.plan(*request).await
    }

    /// The object `a` exists, its Resource is being deleted, and the plan of its destroy is computed. The caller passes it
    /// to the reconciler.
    async fn with_planned_destroy() -> (Self, PlanResult) {
        let mut bench = Self::new();
        bench.observe(thing("a", 1), 1);
        bench.react(Signal::Started);
        bench.run_until_idle(MINUTE).await;
        bench.observe(deleting(thing("a", 1)), 1);
        bench.react(Signal::Wake);
        let planned = bench.compute_due_plan().await;
        (bench, planned)
    }

    /// Executes all commands and advances the time until nothing is due within `longest`.
    async fn run_until_idle(&mut self, longest: Duration) {
        let end = self.now + longest;
        loop {
            while self.execute_next().await {}
            match self.wake {
                Some(Time(at)) if at <= end => self.now = self.now.max(at),
                _ => return,
            }
            self.react(Signal::Wake);
        }
    }

    /// Executes commands and advances the time until the condition is true, also while steps are running.
    async fn run_until(&mut self, what: &str, is_true: impl Fn(&Self) -> bool) {
        for _ in 0..1000 {
            if is_true(self) {
                return;
            }
            if !self.pending.is_empty() {
                self.execute_next().await;
            } else if let Ok(report) = tokio::time::timeout(Duration::from_millis(10), self.workers.next()).await {
                self.react(Signal::Worker(report));
            } else {
                self.now = self.wake.map_or(self.now, |Time(at)| self.now.max(at));
                self.react(Signal::Wake);
            }
        }
        panic!("{what} never happens: {:?}", self.log);
    }

    fn ready(&self, name: &str) -> (i64, String) {
        let status = &self.status[name];
        let ready = status.conditions.iter().find(|condition| condition.type_ == "Ready").unwrap();
        (status.observed_generation, format!("{} {}", ready.status, ready.reason))
    }

    fn recorded(&self) -> Vec<String> {
        self.reconciler.records().keys().map(ToString::to_string).collect()
    }

    /// The outcomes of an operation on an object, in order. Further calls succeed.
    fn script(&self, on: &str, operation: Operation, answers: Vec<ScriptedOutcome>) {
        self.world.script(ScriptLine { on: on.to_owned(), operation, answers });
    }

    /// How many lines of the log contain this.
    fn count(&self, what: &str) -> usize {
        self.log.iter().filter(|line| line.contains(what)).count()
    }

    fn commanded(&self, what: &str) -> bool {
        self.pending.iter().any(|command| short(command).contains(what))
    }
}

/// A short form of a command.
fn short(command: &Command) -> String {
    match command {
        Command::Plan(request) => format!(" plan {:?}", request.names()),
        Command::Execute(WorkerCommand::Start(input, _)) => format!(" start {}", input.step().id()),
        Command::Progress(step, kind) => format!(" {} {kind:?}", step.id()),
        Command::WriteStatus(target, update) => format!(" status {} {:?}", target.name, update.status.conditions()),
        Command::Recover(stored) => format!(" recover {}", stored.record.address),
        Command::Release { name, .. } => format!(" release {name}"),
        Command::Claim { address, .. } => format!(" claim {address}"),
        Command::Report { about: ReportSubject::Resource(about), note, .. } => {
            format!(" event {} {}", about.address.name(), note.reason)
        }
        other => format!(" {:.12?}", std::mem::discriminant(other)),
    }
}

fn thing(name: &str, value: i64) -> serde_json::Value {
    serde_json::json!({
        "metadata": { "name": name },
        "spec": { "type": "scripted", "config": { "value": value } },
    })
}

/// The manifest with a field, whose path is like `spec.config.value`.
fn with(mut manifest: serde_json::Value, path: &str, value: impl Into<serde_json::Value>) -> serde_json::Value {
    *path.split('.').fold(&mut manifest, |place, key| &mut place[key]) = value.into();
    manifest
}

/// A Resource whose value is that of another one.
fn dependent(name: &str, on: &str) -> serde_json::Value {
    with(thing(name, 0), "spec.config.value", format!("${{{on}.value}}"))
}

const MINUTE: Duration = Duration::from_mins(1);

#[tokio::test]
async fn a_watched_resource_gets_a_status() {
    let mut bench = Bench::new();
    bench.observe(thing("a", 1), 1);
    let turn = bench.react(Signal::Started);
    assert!(!bench.commanded("plan"), "events are debounced");
    assert_eq!(turn.wake, Some(Time(Duration::from_millis(10))));
    bench.now = Duration::from_millis(10);
    assert!(!bench.react(Signal::Wake).is_quiet);
    assert!(bench.commanded("plan {\"a\"}"));
    bench.run_until_idle(MINUTE).await;
    assert_eq!(bench.ready("a"), (1, "True Available".to_owned()));
    assert_eq!(bench.recorded(), ["a"]);
    assert_eq!(bench.reconciler.gauges().objects, BTreeMap::from([((ObjectState::Ready, Reason::Available), 1)]));
}

#[tokio::test]
async fn the_same_events_result_in_the_same_commands() {
    let mut tapes = Vec::new();
    for _ in 0..2 {
        let mut bench = Bench::new();
        for (name, value) in [("a", 1), ("b", 2), ("c", 3)] {
            bench.observe(thing(name, value), 1);
        }
        bench.react(Signal::Started);
        bench.run_until_idle(MINUTE).await;
        bench.observe(thing("b", 9), 2);
        bench.react(Signal::Wake);
        bench.run_until_idle(MINUTE).await;
        assert_eq!(bench.ready("b"), (2, "True Available".to_owned()));
        tapes.push(bench.log);
    }
    assert_eq!(tapes[0], tapes[1]);
}

#[tokio::test]
async fn an_object_desired_again_while_its_destroy_is_planned_is_not_destroyed() {
    let (mut bench, planned) = Bench::with_planned_destroy().await;
    // Planning takes long; meanwhile a new Resource of the name is applied.
    bench.now += Duration::from_secs(5);
    bench.observe(thing("a", 1), 2);
    bench.react(Signal::Planned(Box::new(planned)));
    assert!(!bench.commanded("start"), "{:?}", bench.log);
    bench.run_until_idle(MINUTE).await;
    assert!(bench.log.iter().all(|line| !line.contains("destroy")), "{:?}", bench.log);
    assert_eq!(bench.ready("a"), (2, "True Available".to_owned()));
}

#[tokio::test]
async fn a_regained_lease_plans_immediately_while_a_call_is_running() {
    let mut bench = Bench::new();
    bench.observe(thing("a", 1), 1);
    bench.react(Signal::Started);
    bench.now += Duration::from_millis(10);
    bench.react(Signal::Wake);
    while !bench.commanded("start a") {
        assert!(bench.execute_next().await);
    }
    // The create is running from here on: its order is withheld, so its end is unknown.
    let Some(at) = bench.pending.iter().position(|command| matches!(command, Command::Execute(_))) else { panic!() };
    let Command::Execute(order) = bench.pending.remove(at) else { panic!() };
    assert!(!bench.react(Signal::LeadershipLost).is_quiet, "the call is awaited");
    bench.observe(thing("b", 1), 1);
    assert!(!bench.commanded("plan {\"b\"}"));
    bench.react(Signal::Started);
    bench.now += Duration::from_millis(10);
    bench.react(Signal::Wake);
    bench.run_until_idle(Duration::from_secs(1)).await;
    assert_eq!(bench.ready("b"), (1, "True Available".to_owned()));
    bench.workers.execute(order);
    bench.run_until_idle(MINUTE).await;
    assert_eq!(bench.ready("a"), (1, "True Available".to_owned()));
    assert_eq!(bench.count(" start a"), 1, "{:?}", bench.log);
}

/// The step started for an older generation, before the lease was lost and regained.
#[tokio::test]
async fn a_permanent_failure_of_an_older_generation_does_not_hold_the_newest_one() {
    let mut bench = Bench::new();
    bench.observe(thing("a", 1), 1);
    bench.react(Signal::Started);
    bench.run_until_idle(MINUTE).await;
    bench.observe(thing("a", 2), 2);
    bench.react(Signal::Wake);
    bench.now += Duration::from_millis(10);
    bench.react(Signal::Wake);
    while !bench.commanded("start a") {
        assert!(bench.execute_next().await);
    }
    let Some(at) = bench.pending.iter().position(|command| matches!(command, Command::Execute(_))) else { panic!() };
    let Command::Execute(order) = bench.pending.remove(at) else { panic!() };
    let kind = serde_json::from_value("terminal".into()).unwrap();
    let answers = vec![ScriptedOutcome::Fail { kind, message: "not allowed".to_owned() }];
    bench.script("a", Operation::Update, answers);
    bench.react(Signal::LeadershipLost);
    bench.react(Signal::Started);
    bench.observe(thing("a", 3), 3);
    bench.react(Signal::Wake);
    bench.run_until_idle(Duration::from_secs(1)).await;
    bench.workers.execute(order);
    bench.run_until_idle(MINUTE).await;
    assert_eq!(bench.ready("a"), (3, "True Available".to_owned()), "{:?}", bench.log);
}

#[tokio::test]
async fn a_precondition_that_another_client_makes_true_is_checked_again() {
    let mut bench = Bench::new();
    let mut first = thing("a", 1);
    first["spec"]["lifecycle"] = serde_json::json!({ "ignoreChanges": ["value"] });
    bench.observe(first, 1);
    let mut second = thing("b", 1);
    let condition = serde_json::json!({ "condition": "${a.value == 2}", "errorMessage": "not yet" });
    second["spec"]["lifecycle"] = serde_json::json!({ "preconditions": [condition] });
    bench.observe(second, 1);
    bench.react(Signal::Started);
    bench.run_until_idle(Duration::from_millis(500)).await;
    assert_eq!(bench.recorded(), ["a"]);
    let object = bench.reconciler.records()[&Address::single("a")].record.current.clone().unwrap();
    bench.world.put(object.id().unwrap(), &object.value.with("value", Value::from(2)));
    bench.run_until_idle(MINUTE).await;
    assert_eq!(bench.recorded(), ["a", "b"]);
}

/// Otherwise the object would be created with the old values of `a` and replaced again after the update.
#[tokio::test]
async fn a_triggered_object_is_created_after_the_failed_update_of_its_trigger_succeeds() {
    let mut bench = Bench::new();
    bench.observe(thing("a", 1), 1);
    let mut triggered = thing("b", 1);
    triggered["spec"]["lifecycle"] = serde_json::json!({ "replaceTriggeredBy": ["a"] });
    bench.observe(triggered.clone(), 1);
    bench.react(Signal::Started);
    bench.run_until_idle(MINUTE).await;
    let kind = serde_json::from_value("transient".into()).unwrap();
    let answers = vec![ScriptedOutcome::Fail { kind, message: "not now".to_owned() }; 2];
    bench.script("a", Operation::Update, answers);
    bench.log.clear();
    bench.observe(thing("a", 2), 2);
    bench.react(Signal::Wake);
    bench.run_until_idle(Duration::from_millis(500)).await;
    // While `a` is in back-off, a change of `b` plans it again.
    triggered["spec"]["config"]["value"] = 2.into();
    bench.observe(triggered, 2);
    bench.react(Signal::Wake);
    bench.run_until_idle(10 * MINUTE).await;
    assert_eq!(bench.ready("a"), (2, "True Available".to_owned()));
    assert_eq!(bench.ready("b"), (2, "True Available".to_owned()));
    let started: Vec<&str> = bench.log.iter().filter_map(|line| Some(line.split_once(" start ")?.1)).collect();
    expect_test::expect!["b destroy, a update, a update, a update, b create"].assert_eq(&started.join(", "));
}

fn deleting(mut manifest: serde_json::Value) -> serde_json::Value {
    manifest["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    manifest["metadata"]["finalizers"] = serde_json::json!([api::FINALIZER]);
    manifest
}

#[tokio::test]
async fn a_planning_that_panics_cancels_no_other_planning() {
    let mut bench = Bench::new();
    bench.reconciler.policy.max_names_per_plan = 1;
    bench.observe(thing("a", 1), 1);
    bench.observe(thing("b", 1), 1);
    bench.react(Signal::Started);
    bench.now += Duration::from_millis(10);
    bench.react(Signal::Wake);
    let commands = std::mem::take(&mut bench.pending).into_iter();
    let mut plans = commands.filter_map(|command| if let Command::Plan(plan) = command { Some(plan) } else { None });
    let (first, second) = (plans.next().unwrap(), plans.next().unwrap());
    bench.react(Signal::PlanningPanicked(first.names().clone()));
    assert!(!bench.pending.iter().any(|command| matches!(command, Command::CancelPlans)), "{:?}", bench.log);
    let planned = bench.plan(*second).await;
    bench.react(Signal::Planned(Box::new(planned)));
    bench.run_until_idle(Duration::from_secs(10)).await;
    assert_eq!(bench.recorded(), ["b"]);
    bench.run_until_idle(MINUTE).await;
    assert_eq!(bench.ready("a"), (1, "True Available".to_owned()), "it is planned again");
}

#[tokio::test]
async fn a_deleted_family_without_objects_is_released() {
    let mut bench = Bench::new();
    let mut family = thing("f", 1);
    family["spec"]["count"] = 2.into();
    bench.observe(deleting(family), 1);
    bench.react(Signal::Started);
    bench.run_until_idle(MINUTE).await;
    assert!(bench.log.iter().any(|line| line.contains("release f")), "{:?}", bench.log);
}

/// The first create of `n`, which uses `base`, was interrupted, and its Resource no longer exists.
#[tokio::test]
async fn a_dependency_that_an_interrupted_create_held_is_destroyed_after_the_recovery() {
    let mut bench = Bench::new();
    bench.observe(thing("base", 1), 1);
    bench.react(Signal::Started);
    bench.run_until_idle(MINUTE).await;
    let mut cut = cut_update(&Address::single("n"));
    cut.current = None;
    let intent = cut.intent.as_mut().unwrap();
    intent.operation = model::Operation::Create;
    let dependencies = [Address::single("base")].into();
    intent.planned = Some(PlannedObject {
        config: Value::Null,
        planned: Value::Unknown,
        private: [].into(),
        recorded: Box::new(RecordedObject { dependencies, ..RecordedObject::default() }),
    });
    let record = Arc::new(cut);
    let version = bench.engine.journal.intend(record.clone(), None).await.unwrap();
    bench.reconciler.observe(Event::RecordApplied(Stored { record, version }));
    bench.observe(deleting(thing("base", 1)), 1);
    bench.react(Signal::Wake);
    bench.now += Duration::from_millis(10);
    bench.react(Signal::Wake);
    // The recovery takes longer than the plan.
    let Some(at) = bench.pending.iter().position(|command| matches!(command, Command::Recover(_))) else { panic!() };
    let recovery = bench.pending.remove(at);
    bench.run_until_idle(Duration::from_secs(10)).await;
    assert_eq!(bench.recorded(), ["base", "n"]);
    bench.pending.push(recovery);
    bench.run_until_idle(MINUTE).await;
    assert!(bench.recorded().is_empty(), "{:?}", bench.log);
}

/// A record with an update that an earlier process started, for an object that exists.
/// The index of the family `a` with these instances.
fn index_of_a(instances: &[&str], version: u64) -> Family {
    Family {
        namespace: "shop".into(),
        name: "a".into(),
        uid: "u".into(),
        instances: instances.iter().map(|address| address.parse().unwrap()).collect(),
        rebuilt: false,
        version: Some(Version(version)),
    }
}

fn cut_update(address: &Address) -> Record {
    let mut record = Record::empty("shop".into(), address.clone(), "u".into(), "scripted".into());
    record.current = Some(Arc::new(RecordedObject {
        value: Value::map([("id", Value::from("it")), ("value", Value::from(1))]),
        ..RecordedObject::default()
    }));
    record.intent = Some(Box::new(Intent {
        operation: model::Operation::Update,
        operation_id: "op".into(),
        holder: Holder { pod: "".into(), process: "earlier".into() },
        epoch: 1,
        started: Timestamp::UNIX_EPOCH,
        deadline: Timestamp::UNIX_EPOCH,
        deposed: None,
        planned: None,
        import: None,
        cause: model::Cause::default(),
    }));
    record
}

/// An update of `a` was interrupted, and the first reading of the object fails: `transient` or `forbidden`.
async fn cut_and_unreadable(bench: &mut Bench, kind: &str) -> Address {
    let address = Address::single("a");
    bench.world.put("it", &Value::map([("value", Value::from(1))]));
    let kind = serde_json::from_value(kind.into()).unwrap();
    let answers = vec![ScriptedOutcome::Fail { kind, message: "not now".to_owned() }];
    bench.script("a", Operation::Read, answers);
    let record = Arc::new(cut_update(&address));
    let version = bench.engine.journal.intend(record.clone(), None).await.unwrap();
    bench.observe(thing("a", 1), 1);
    bench.reconciler.observe(Event::RecordApplied(Stored { record, version }));
    bench.react(Signal::Started);
    bench.run_until_idle(Duration::from_millis(100)).await;
    address
}

#[tokio::test]
async fn a_forbidden_recovery_in_a_terminating_namespace_is_retried_when_the_namespace_changes() {
    let mut bench = Bench::new();
    bench.reconciler.observe(Event::Namespace { value: Value::Null, terminating: Some(Version(1)) });
    let address = cut_and_unreadable(&mut bench, "forbidden").await;
    bench.run_until_idle(MINUTE / 2).await;
    assert_eq!(bench.count("recover a"), 1, "only once: {:?}", bench.log);
    bench.reconciler.observe(Event::Namespace { value: Value::Null, terminating: Some(Version(2)) });
    bench.react(Signal::Wake);
    bench.run_until_idle(MINUTE / 2).await;
    assert!(bench.reconciler.records().get(&address).is_none_or(|stored| stored.record.intent.is_none()));
    assert_eq!(bench.count("recover a"), 2, "{:?}", bench.log);
}

/// The marks of the Resource say that there was a record. Creating the object again would make it twice.
#[tokio::test]
async fn an_object_whose_record_disappeared_during_its_recovery_is_not_created_again() {
    let mut bench = Bench::new();
    let address = Address::single("a");
    let mut marked = thing("a", 1);
    marked["metadata"]["uid"] = "u".into();
    marked["metadata"]["annotations"] = serde_json::json!({ api::RECORD: "u" });
    marked["metadata"]["finalizers"] = serde_json::json!([api::FINALIZER]);
    bench.observe(marked, 1);
    let stored = Stored { record: Arc::new(cut_update(&address)), version: Version(2) };
    bench.reconciler.observe(Event::RecordApplied(stored));
    bench.react(Signal::Started);
    bench.pending.retain(|command| !matches!(command, Command::Recover(_)));
    let outcome = execute::Recovery::Missing;
    bench.react(Signal::Recovered(Box::new(RecoveryResult { address, outcome, warnings: Vec::new() })));
    bench.run_until_idle(MINUTE).await;
    assert_eq!(bench.ready("a").1, "False RecordMissing", "{:?}", bench.log);
    assert!(bench.world.objects().is_empty(), "{:?}", bench.log);
}

#[tokio::test]
async fn a_failed_recovery_is_retried() {
    let mut bench = Bench::new();
    let address = cut_and_unreadable(&mut bench, "transient").await;
    assert!(
        bench.reconciler.records()[&address].record.intent.is_some(),
        "the first attempt could not read the object"
    );
    bench.run_until_idle(MINUTE).await;
    assert!(bench.reconciler.records()[&address].record.intent.is_none());
    assert_eq!(bench.count("recover a"), 2, "{:?}", bench.log);
}
