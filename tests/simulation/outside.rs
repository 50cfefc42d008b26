//! The service whose objects Purlin manages, and its faults.
//!
//! `Scripted` and its `World` are the service. The driver here wraps it: it delays calls, fails, loses responses,
//! panics, and reports every call and every effect to the judge when it happens.

use std::collections::BTreeMap;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use purlin::driver::{
    ApplyRequest, ApplyResponse, CallContext, CreateRecovery, DataPlan, DataSources, Driver, FindCreated, HealthReport,
    ObjectWatcher, ReadinessError,
};
use purlin::model::{
    Diagnostics, DriverError, ErrorKind, ImportRequest, ObjectState, PlanRequest, PlanResponse, Provider,
    RecordedObject, Schema, Value,
};
use purlin::process::lock;
use testkit::scripted::{Effect, Recovery, Script, Scripted, World};
use tokio::time::{Instant, sleep, sleep_until};

use crate::judge::{Call, Judge};
use crate::random::Seeded;

/// How often each fault happens, in a thousand calls.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ServiceFaults {
    /// A call fails before it has any effect.
    pub(crate) fails: u64,
    /// A create or an update fails after a partial effect.
    pub(crate) fails_partly: u64,
    /// The call takes effect, and its response is lost with the provider process.
    pub(crate) loses_answer: u64,
    /// The driver panics: in a read, in a plan, or before or after the effect of a call.
    pub(crate) panics: u64,
    /// A call takes far longer than others.
    pub(crate) is_slow: u64,
    /// A call runs for long after its time limit.
    pub(crate) hangs: u64,
    /// A read or a plan fails.
    pub(crate) refuses: u64,
}

impl ServiceFaults {
    /// Every fault may happen, about a few times in each history.
    pub(crate) fn random(random: &mut Seeded) -> Self {
        Self {
            fails: random.below(120),
            fails_partly: random.below(60),
            loses_answer: random.below(60),
            panics: random.below(20),
            is_slow: random.below(150),
            hangs: if random.chance(300) { random.below(60) } else { 0 },
            refuses: random.below(60),
        }
    }

    pub(crate) fn faults(&mut self) -> [(&'static str, &mut u64); 7] {
        [
            ("a call fails", &mut self.fails),
            ("a call fails half way", &mut self.fails_partly),
            ("the answer of a call is lost", &mut self.loses_answer),
            ("a driver panics", &mut self.panics),
            ("a call is slow", &mut self.is_slow),
            ("a call hangs", &mut self.hangs),
            ("a read or a plan fails", &mut self.refuses),
        ]
    }
}

/// How long a call hangs, in milliseconds. Users configure a timeout of 10 s for some objects.
const HANGS: (u64, u64) = (11_000, 90_000);

/// The interruption of a call in a story.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Interruption {
    No,
    /// The process crashes before the call.
    Before,
    /// The process crashes after the effect.
    After,
    LosesAnswer,
    Fails,
    /// The driver panics.
    Panics,
}

/// Decides which calls are interrupted.
pub(crate) trait CallInterrupter: Send + Sync {
    /// A create, update or destroy.
    fn call(&self, replica: &Arc<str>, call: &str) -> Interruption;
    /// A read or a plan.
    fn question(&self, replica: &Arc<str>, question: &str) -> Interruption;
    /// The process has crashed after the effect of its call.
    fn crashed(&self, replica: &Arc<str>);
}

/// The service that all replicas call.
pub(crate) struct Outside {
    pub(crate) world: Arc<World>,
    pub(crate) recovery: Recovery,
    interrupter: Option<Arc<dyn CallInterrupter>>,
    judge: Arc<Judge>,
    inside: Mutex<Inside>,
    panics: AtomicU8,
}

/// The next turn panics; a turn has panicked.
const TO_PANIC: u8 = 1;
const PANICKED: u8 = 2;

struct Inside {
    seed: u64,
    /// How often each call was made.
    asked: BTreeMap<String, u64>,
    faults: ServiceFaults,
    slowest: Duration,
    /// Replicas that do nothing, and until when.
    paused: BTreeMap<String, Instant>,
}

impl Inside {
    fn random(&mut self, what: String) -> Seeded {
        let number = self.asked.entry(what.clone()).or_default();
        *number += 1;
        Seeded::of(self.seed, &what, *number)
    }
}

/// The fate of a call in a random history.
enum CallFate {
    Well,
    Fails(ErrorKind),
    FailsPartly,
    LosesAnswer,
    PanicsBefore,
    PanicsAfter,
}

impl Outside {
    pub(crate) fn new(seed: u64, recovery: Recovery, judge: Arc<Judge>) -> Self {
        let name = match recovery {
            Recovery::Repeat => "repeat",
            Recovery::Find => "find",
            Recovery::Unknown => "unknown",
        };
        let script: Script = serde_json::from_value(serde_json::json!({ "createRecovery": name })).unwrap();
        let inside = Inside {
            seed,
            asked: BTreeMap::new(),
            faults: ServiceFaults::default(),
            slowest: Duration::from_secs(20),
            paused: BTreeMap::new(),
        };
        Self {
            world: World::new(script),
            recovery,
            interrupter: None,
            judge,
            inside: Mutex::new(inside),
            panics: AtomicU8::new(0),
        }
    }

    /// Lets `interrupter` interrupt calls.
    pub(crate) fn interrupted_by(self, interrupter: Arc<dyn CallInterrupter>) -> Self {
        Self { interrupter: Some(interrupter), ..self }
    }

    /// Lets the next turn of a reconciler that calls `Driver::watcher` panic.
    pub(crate) fn panic_next_turn(&self) {
        self.panics.store(TO_PANIC, Ordering::Relaxed);
    }

    pub(crate) fn has_panicked(&self) -> bool {
        self.panics.load(Ordering::Relaxed) == PANICKED
    }

    pub(crate) fn set_faults(&self, faults: ServiceFaults) {
        lock(&self.inside).faults = faults;
    }

    /// Ends all faults and pauses.
    pub(crate) fn end_faults(&self) {
        let mut inside = lock(&self.inside);
        inside.faults = ServiceFaults::default();
        inside.paused.clear();
    }

    /// A replica does nothing for a time: its calls begin later, and it learns their results later.
    pub(crate) fn pause(&self, replica: &str, time: Duration) {
        lock(&self.inside).paused.insert(replica.to_owned(), Instant::now() + time);
    }

    /// Waits while a replica is paused.
    async fn continues(&self, replica: &str) {
        let until = || lock(&self.inside).paused.get(replica).copied().filter(|until| *until > Instant::now());
        while let Some(until) = until() {
            sleep_until(until).await;
        }
    }

    fn call_fate(&self, call: &str) -> (Duration, CallFate, Duration) {
        let inside = &mut *lock(&self.inside);
        let random = &mut inside.random(call.to_owned());
        let Inside { faults, slowest, .. } = inside;
        let slow = random.chance(faults.is_slow);
        let longest = if slow { u64::try_from(slowest.as_millis()).unwrap_or(u64::MAX) } else { 8 };
        let (mut before, mut after) = (random.millis(0, longest), random.millis(0, longest));
        if random.chance(faults.hangs) {
            let hanging = if random.chance(500) { &mut before } else { &mut after };
            *hanging = random.millis(HANGS.0, HANGS.1);
        }
        let fate = match () {
            () if random.chance(faults.fails) => {
                CallFate::Fails(*random.pick(&[ErrorKind::Transient, ErrorKind::Transient, ErrorKind::Terminal]))
            }
            () if random.chance(faults.fails_partly) => CallFate::FailsPartly,
            () if random.chance(faults.loses_answer) => CallFate::LosesAnswer,
            () if random.chance(faults.panics) && random.chance(500) => CallFate::PanicsBefore,
            () if random.chance(faults.panics) => CallFate::PanicsAfter,
            () => CallFate::Well,
        };
        (before, fate, after)
    }

    /// Delays a read or a plan, or lets it fail.
    async fn asked(&self, replica: &Arc<str>, what: &str, context: &CallContext) -> Result<(), DriverError> {
        self.continues(replica).await;
        let question = format!("{what} {}", context.address);
        match self.interrupter.as_ref().map_or(Interruption::No, |interrupter| interrupter.question(replica, &question))
        {
            Interruption::No => {}
            Interruption::Before | Interruption::After => std::future::pending().await,
            Interruption::Fails | Interruption::LosesAnswer => {
                return Err(error(ErrorKind::Transient, "the service is busy"));
            }
            Interruption::Panics => panic_in(what),
        }
        let (wait, refuses, panics) = {
            let inside = &mut *lock(&self.inside);
            let random = &mut inside.random(question);
            let Inside { faults, slowest, .. } = inside;
            let slow = random.chance(faults.is_slow);
            let longest = if slow { u64::try_from(slowest.as_millis()).unwrap_or(u64::MAX) } else { 3 };
            (random.millis(0, longest), random.chance(faults.refuses), random.chance(faults.panics))
        };
        sleep(wait).await;
        if panics {
            panic_in(what);
        }
        if refuses { Err(error(ErrorKind::Transient, "the service is busy")) } else { Ok(()) }
    }
}

fn panic_in(what: &str) -> ! {
    resume_unwind(Box::new(format!("the driver panics in {what}")))
}

fn error(kind: ErrorKind, message: &str) -> DriverError {
    DriverError { kind, message: message.to_owned(), path: None, hint: None }
}

/// The driver of one replica.
pub(crate) struct FaultyDriver {
    scripted: Scripted,
    outside: Arc<Outside>,
    replica: Arc<str>,
}

impl FaultyDriver {
    pub(crate) fn new(outside: Arc<Outside>, replica: Arc<str>) -> Self {
        Self { scripted: Scripted::new(outside.world.clone()), outside, replica }
    }

    async fn apply_with_faults(&self, context: &CallContext, request: ApplyRequest) -> ApplyResponse {
        self.outside.continues(&self.replica).await;
        let judge = &self.outside.judge;
        let call_name = format!("apply {}", context.address);
        let operation = match (&request.prior, &request.planned) {
            (None, _) => "create",
            (Some(_), Some(_)) => "update",
            (Some(_), None) => "destroy",
        };
        let interrupter = self.outside.interrupter.as_ref();
        let used = context.provider.as_ref().and_then(|used| used.configuration.get("endpoint")?.as_str());
        let under = used.map(|endpoint| format!(" at {endpoint}")).unwrap_or_default();
        let called = format!("{operation} {}{under}", context.address);
        let interruption = interrupter.map_or(Interruption::No, |interrupter| interrupter.call(&self.replica, &called));
        if interruption == Interruption::Before {
            return std::future::pending().await;
        }
        let call = judge.call_begins(Call::of(&self.replica, context, &request));
        let (before, fate, after) = self.outside.call_fate(&call_name);
        let fate = match interruption {
            Interruption::LosesAnswer => CallFate::LosesAnswer,
            Interruption::Fails => CallFate::Fails(ErrorKind::Transient),
            Interruption::No | Interruption::Before | Interruption::After | Interruption::Panics => fate,
        };
        sleep(before).await;
        match fate {
            CallFate::Fails(kind) => {
                let error = Some(error(kind, "the service rejected the request"));
                return ApplyResponse { error, ..ApplyResponse::default() };
            }
            CallFate::PanicsBefore => resume_unwind(Box::new("the driver panics before the effect")),
            _ => {}
        }
        let known = self.outside.world.effects().len();
        let mut response = self.scripted.apply(context, request).await;
        // Other calls may have taken effect meanwhile.
        let own = (&context.namespace, &context.address);
        let is_own = |effect: &Effect| (&effect.namespace, &effect.address) == own;
        for effect in self.outside.world.effects().drain(known..).filter(is_own) {
            judge.took_effect(&call, &effect);
        }
        if let (Interruption::After, Some(interrupter)) = (interruption, interrupter) {
            interrupter.crashed(&self.replica);
            return std::future::pending().await;
        }
        sleep(after).await;
        self.outside.continues(&self.replica).await;
        match fate {
            CallFate::FailsPartly if response.object.is_some() => {
                response.error = Some(error(ErrorKind::Terminal, "the service failed half way"));
            }
            CallFate::LosesAnswer => {
                let error = Some(error(ErrorKind::Transient, "the process of the provider ended"));
                response = ApplyResponse { error, outcome_unknown: true, ..ApplyResponse::default() };
            }
            CallFate::PanicsAfter => resume_unwind(Box::new("the driver panics after the effect")),
            _ => {}
        }
        drop(call);
        response
    }
}

#[async_trait]
impl Driver for FaultyDriver {
    fn schema(&self, type_name: &str, provider: Option<&Provider>) -> Option<Arc<Schema>> {
        self.scripted.schema(type_name, provider)
    }

    async fn validate(&self, context: &CallContext, config: &Value) -> Result<Diagnostics, DriverError> {
        self.scripted.validate(context, config).await
    }

    async fn read(&self, context: &CallContext, object: &RecordedObject) -> Result<Option<ObjectState>, DriverError> {
        self.outside.asked(&self.replica, "read", context).await?;
        self.scripted.read(context, object).await
    }

    async fn plan(&self, context: &CallContext, request: PlanRequest) -> Result<PlanResponse, DriverError> {
        self.outside.asked(&self.replica, "plan", context).await?;
        self.scripted.plan(context, request).await
    }

    async fn apply(&self, context: &CallContext, request: ApplyRequest) -> ApplyResponse {
        self.apply_with_faults(context, request).await
    }

    async fn import(&self, context: &CallContext, request: &ImportRequest) -> Result<Option<ObjectState>, DriverError> {
        self.outside.asked(&self.replica, "import", context).await?;
        self.scripted.import(context, request).await
    }

    async fn wait_ready(
        &self,
        context: &CallContext,
        object: &RecordedObject,
        report: &HealthReport<'_>,
    ) -> Result<ObjectState, ReadinessError> {
        self.scripted.wait_ready(context, object, report).await
    }

    fn recovery(&self) -> CreateRecovery<'_> {
        self.scripted.recovery().with_finder(self)
    }

    fn data(&self) -> Option<&dyn DataSources> {
        Some(self)
    }

    /// The only driver method that a reconciler calls in its turn.
    fn watcher(&self) -> Option<&dyn ObjectWatcher> {
        let panics = &self.outside.panics;
        let now = panics.compare_exchange(TO_PANIC, PANICKED, Ordering::Relaxed, Ordering::Relaxed);
        assert!(now.is_err(), "the reconciler panics");
        None
    }
}

#[async_trait]
impl FindCreated for FaultyDriver {
    async fn find_created(&self, context: &CallContext, planned: &Value) -> Result<Option<ObjectState>, DriverError> {
        self.outside.asked(&self.replica, "find_created", context).await?;
        self.scripted.find_created(context, planned).await
    }
}

#[async_trait]
impl DataSources for FaultyDriver {
    fn data_schema(&self, type_name: &str, provider: Option<&Provider>) -> Option<Arc<Schema>> {
        self.scripted.data_schema(type_name, provider)
    }

    async fn plan_data(&self, context: &CallContext, config: &Value) -> Result<DataPlan, DriverError> {
        self.scripted.plan_data(context, config).await
    }

    async fn read_data(&self, context: &CallContext, config: &Value) -> Result<Value, DriverError> {
        self.outside.asked(&self.replica, "read_data", context).await?;
        self.scripted.read_data(context, config).await
    }
}
