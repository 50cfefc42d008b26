//! The world outside: the objects that exist, who made and destroyed them, and how badly its service behaves.
//!
//! `Scripted` and its `World` are the service; the driver here stands before it, as a bad line would: it delays, fails,
//! loses answers, panics, and tells the judge of every call and every effect at the moment at which it happens.

use std::collections::BTreeMap;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::BoxFuture;
use purlin::driver::scripted::{Recovery, Script, World};
use purlin::driver::{
    ApplyRequest, ApplyResponse, CallContext, CreateRecovery, DataSources, Driver, Expected, FindCreated, NotReady,
    ObjectWatcher, Scripted,
};
use purlin::model::{
    Diagnostics, DriverError, ErrorKind, ImportRequest, ObjectState, PlanRequest, PlanResponse, Provider,
    RecordedObject, Schema, Value,
};
use purlin::process::lock;
use tokio::time::sleep;

use crate::judge::{Call, Judge};
use crate::random::Seeded;

/// How often the service misbehaves, in a thousand calls.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Moods {
    /// A call fails before it has any effect.
    pub(crate) fails: u64,
    /// A create or an update is made in part, and fails.
    pub(crate) fails_partly: u64,
    /// The effect happens, and its answer is lost with the process of the provider.
    pub(crate) loses_answer: u64,
    /// The driver panics, before or after the effect.
    pub(crate) panics: u64,
    /// A call takes far longer than others.
    pub(crate) is_slow: u64,
    /// A call goes on for long after its time limit.
    pub(crate) hangs: u64,
    /// A read or a plan fails.
    pub(crate) refuses: u64,
}

impl Moods {
    /// Everything happens, about as often as a few times in each history.
    pub(crate) fn bad(random: &mut Seeded) -> Self {
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

    /// Each by its name.
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

/// How long a call that hangs does so, in milliseconds: users give some of their objects 10 s.
const HANGS: (u64, u64) = (11_000, 90_000);

/// What becomes of one chosen call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    No,
    /// The process crashes before it is made.
    Before,
    /// The process crashes after its effect.
    After,
    LosesAnswer,
    Fails,
}

/// Decides which calls are cut.
pub(crate) trait Cuts: Send + Sync {
    /// A call that changes something.
    fn call(&self, replica: &Arc<str>, call: &str) -> Cut;
    /// A question.
    fn question(&self, replica: &Arc<str>, question: &str) -> Cut;
    /// The process has crashed after the effect of its call.
    fn crashed(&self, replica: &Arc<str>);
}

/// The service that all replicas call.
pub(crate) struct Outside {
    pub(crate) world: Arc<World>,
    cuts: Option<Arc<dyn Cuts>>,
    judge: Arc<Judge>,
    inside: Mutex<Inside>,
    panics: AtomicU8,
}

/// A turn is to panic, and one has.
const TO_PANIC: u8 = 1;
const PANICKED: u8 = 2;

struct Inside {
    seed: u64,
    /// How often each thing was asked for.
    asked: BTreeMap<String, u64>,
    moods: Moods,
    slowest: Duration,
}

impl Inside {
    fn random(&mut self, what: String) -> Seeded {
        let number = self.asked.entry(what.clone()).or_default();
        *number += 1;
        Seeded::of(self.seed, &what, *number)
    }
}

/// What becomes of one call.
enum Mood {
    Well,
    Fails(ErrorKind),
    FailsPartly,
    LosesAnswer,
    PanicsBefore,
    PanicsAfter,
}

impl Outside {
    pub(crate) fn new(seed: u64, recovery: Recovery, judge: Arc<Judge>) -> Self {
        let recovery = match recovery {
            Recovery::Repeat => "repeat",
            Recovery::Find => "find",
            Recovery::Unknown => "unknown",
        };
        let script: Script = serde_json::from_value(serde_json::json!({ "createRecovery": recovery })).unwrap();
        let inside = Inside { seed, asked: BTreeMap::new(), moods: Moods::default(), slowest: Duration::from_secs(20) };
        Self { world: World::new(script), cuts: None, judge, inside: Mutex::new(inside), panics: AtomicU8::new(0) }
    }

    /// The same, of which some calls are cut.
    pub(crate) fn cut_by(self, cuts: Arc<dyn Cuts>) -> Self {
        Self { cuts: Some(cuts), ..self }
    }

    /// The next turn of a reconciler that asks whether objects can be watched panics.
    pub(crate) fn panic_next_turn(&self) {
        self.panics.store(TO_PANIC, Ordering::Relaxed);
    }

    /// Whether it has.
    pub(crate) fn has_panicked(&self) -> bool {
        self.panics.load(Ordering::Relaxed) == PANICKED
    }

    /// From now on the service behaves so.
    pub(crate) fn behave(&self, moods: Moods) {
        lock(&self.inside).moods = moods;
    }

    fn mood(&self, call: &str) -> (Duration, Mood, Duration) {
        let inside = &mut *lock(&self.inside);
        let random = &mut inside.random(call.to_owned());
        let Inside { moods, slowest, .. } = inside;
        let slow = random.chance(moods.is_slow);
        let longest = if slow { u64::try_from(slowest.as_millis()).unwrap_or(u64::MAX) } else { 8 };
        let (mut before, mut after) = (random.millis(0, longest), random.millis(0, longest));
        if random.chance(moods.hangs) {
            let hanging = if random.chance(500) { &mut before } else { &mut after };
            *hanging = random.millis(HANGS.0, HANGS.1);
        }
        let mood = match () {
            () if random.chance(moods.fails) => {
                Mood::Fails(*random.pick(&[ErrorKind::Transient, ErrorKind::Transient, ErrorKind::Terminal]))
            }
            () if random.chance(moods.fails_partly) => Mood::FailsPartly,
            () if random.chance(moods.loses_answer) => Mood::LosesAnswer,
            () if random.chance(moods.panics) && random.chance(500) => Mood::PanicsBefore,
            () if random.chance(moods.panics) => Mood::PanicsAfter,
            () => Mood::Well,
        };
        (before, mood, after)
    }

    /// A question, which changes nothing.
    async fn asked(&self, replica: &Arc<str>, what: &str, context: &CallContext) -> Result<(), DriverError> {
        let question = format!("{what} {}", context.address);
        match self.cuts.as_ref().map_or(Cut::No, |cuts| cuts.question(replica, &question)) {
            Cut::No => {}
            Cut::Before | Cut::After => std::future::pending().await,
            Cut::Fails | Cut::LosesAnswer => return Err(error(ErrorKind::Transient, "the service is busy")),
        }
        let (wait, refuses) = {
            let inside = &mut *lock(&self.inside);
            let random = &mut inside.random(question);
            let Inside { moods, slowest, .. } = inside;
            let slow = random.chance(moods.is_slow);
            let longest = if slow { u64::try_from(slowest.as_millis()).unwrap_or(u64::MAX) } else { 3 };
            (random.millis(0, longest), random.chance(moods.refuses))
        };
        sleep(wait).await;
        if refuses { Err(error(ErrorKind::Transient, "the service is busy")) } else { Ok(()) }
    }
}

fn error(kind: ErrorKind, message: &str) -> DriverError {
    DriverError { kind, message: message.to_owned(), path: None, hint: None }
}

/// The line of one replica to the service.
pub(crate) struct Line {
    scripted: Scripted,
    outside: Arc<Outside>,
    replica: Arc<str>,
}

impl Line {
    pub(crate) fn new(outside: Arc<Outside>, replica: Arc<str>) -> Self {
        Self { scripted: Scripted::new(outside.world.clone()), outside, replica }
    }

    async fn carry_out(&self, context: &CallContext, request: ApplyRequest) -> ApplyResponse {
        let judge = &self.outside.judge;
        let call_name = format!("apply {}", context.address);
        let operation = match (&request.prior, &request.planned) {
            (None, _) => "create",
            (Some(_), Some(_)) => "update",
            (Some(_), None) => "destroy",
        };
        let cuts = self.outside.cuts.as_ref();
        let used = context.provider.as_ref().and_then(|used| used.settings.get("endpoint")?.as_str());
        let under = used.map(|endpoint| format!(" at {endpoint}")).unwrap_or_default();
        let called = format!("{operation} {}{under}", context.address);
        let cut = cuts.map_or(Cut::No, |cuts| cuts.call(&self.replica, &called));
        if cut == Cut::Before {
            return std::future::pending().await;
        }
        let call = judge.call_begins(Call::of(&self.replica, context, &request));
        let (before, mood, after) = self.outside.mood(&call_name);
        let mood = match cut {
            Cut::LosesAnswer => Mood::LosesAnswer,
            Cut::Fails => Mood::Fails(ErrorKind::Transient),
            Cut::No | Cut::Before | Cut::After => mood,
        };
        sleep(before).await;
        match mood {
            Mood::Fails(kind) => {
                let error = Some(error(kind, "the service refused"));
                return ApplyResponse { error, ..ApplyResponse::default() };
            }
            Mood::PanicsBefore => resume_unwind(Box::new("a fault of the driver, before the effect")),
            _ => {}
        }
        let known = self.outside.world.effects().len();
        let mut response = self.scripted.apply(context, request).await;
        for effect in self.outside.world.effects().drain(known..) {
            judge.took_effect(&call, &effect);
        }
        if let (Cut::After, Some(cuts)) = (cut, cuts) {
            cuts.crashed(&self.replica);
            return std::future::pending().await;
        }
        sleep(after).await;
        match mood {
            Mood::FailsPartly if response.object.is_some() => {
                response.error = Some(error(ErrorKind::Terminal, "the service stopped half way"));
            }
            Mood::LosesAnswer => {
                let error = Some(error(ErrorKind::Transient, "the process of the provider ended"));
                response = ApplyResponse { error, unsettled: true, ..ApplyResponse::default() };
            }
            Mood::PanicsAfter => resume_unwind(Box::new("a fault of the driver, after the effect")),
            _ => {}
        }
        drop(call);
        response
    }
}

impl Driver for Line {
    fn schema(&self, type_name: &str, provider: Option<&Provider>) -> Option<Arc<Schema>> {
        self.scripted.schema(type_name, provider)
    }

    fn validate<'a>(
        &'a self,
        context: &'a CallContext,
        config: &'a Value,
    ) -> BoxFuture<'a, Result<Diagnostics, DriverError>> {
        self.scripted.validate(context, config)
    }

    fn read<'a>(
        &'a self,
        context: &'a CallContext,
        object: &'a RecordedObject,
    ) -> BoxFuture<'a, Result<Option<ObjectState>, DriverError>> {
        Box::pin(async move {
            self.outside.asked(&self.replica, "read", context).await?;
            self.scripted.read(context, object).await
        })
    }

    fn plan<'a>(
        &'a self,
        context: &'a CallContext,
        request: PlanRequest,
    ) -> BoxFuture<'a, Result<PlanResponse, DriverError>> {
        Box::pin(async move {
            self.outside.asked(&self.replica, "plan", context).await?;
            self.scripted.plan(context, request).await
        })
    }

    fn apply<'a>(&'a self, context: &'a CallContext, request: ApplyRequest) -> BoxFuture<'a, ApplyResponse> {
        Box::pin(self.carry_out(context, request))
    }

    fn import<'a>(
        &'a self,
        context: &'a CallContext,
        request: &'a ImportRequest,
    ) -> BoxFuture<'a, Result<Option<ObjectState>, DriverError>> {
        Box::pin(async move {
            self.outside.asked(&self.replica, "import", context).await?;
            self.scripted.import(context, request).await
        })
    }

    fn wait_ready<'a>(
        &'a self,
        context: &'a CallContext,
        object: &'a RecordedObject,
        tell: &'a (dyn Fn(&str) + Send + Sync),
    ) -> BoxFuture<'a, Result<ObjectState, NotReady>> {
        self.scripted.wait_ready(context, object, tell)
    }

    fn recovery(&self) -> CreateRecovery<'_> {
        self.scripted.recovery().through(self)
    }

    fn data(&self) -> Option<&dyn DataSources> {
        Some(self)
    }

    /// The one thing that a reconciler asks a driver for in its own turn.
    fn watcher(&self) -> Option<&dyn ObjectWatcher> {
        let panics = &self.outside.panics;
        let now = panics.compare_exchange(TO_PANIC, PANICKED, Ordering::Relaxed, Ordering::Relaxed);
        assert!(now.is_err(), "a fault of the reconciler");
        None
    }
}

impl FindCreated for Line {
    fn find_created<'a>(
        &'a self,
        context: &'a CallContext,
        planned: &'a Value,
    ) -> BoxFuture<'a, Result<Option<ObjectState>, DriverError>> {
        Box::pin(async move {
            self.outside.asked(&self.replica, "find_created", context).await?;
            self.scripted.find_created(context, planned).await
        })
    }
}

impl DataSources for Line {
    fn data_schema(&self, type_name: &str, provider: Option<&Provider>) -> Option<Arc<Schema>> {
        self.scripted.data_schema(type_name, provider)
    }

    fn expect_data<'a>(
        &'a self,
        context: &'a CallContext,
        config: &'a Value,
    ) -> BoxFuture<'a, Result<Expected, DriverError>> {
        self.scripted.expect_data(context, config)
    }

    fn read_data<'a>(
        &'a self,
        context: &'a CallContext,
        config: &'a Value,
    ) -> BoxFuture<'a, Result<Value, DriverError>> {
        Box::pin(async move {
            self.outside.asked(&self.replica, "read_data", context).await?;
            self.scripted.read_data(context, config).await
        })
    }
}
